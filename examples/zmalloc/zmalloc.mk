# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/examples/zmalloc, with zmalloc.c in it once for each way of counting.

zmalloc_ways = none atomic sharded pcbatch
zmalloc_dir  = build/obj/examples/zmalloc

# The last one is what a server would take: zmalloc.c alone, names without a prefix.
all check: build/examples/zmalloc $(zmalloc_dir)/zmalloc.o
check_more += 'build/examples/zmalloc --rounds 2 --commands 20000' \
  'PCBATCH_BACKEND=generic build/examples/zmalloc --rounds 2 --commands 20000'

build/examples/zmalloc: $(call obj,$(wildcard examples/zmalloc/main.c examples/zmalloc/load.c)) \
  $(zmalloc_ways:%=$(zmalloc_dir)/zmalloc_%.o)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)

$(zmalloc_dir)/zmalloc_%.o: examples/zmalloc/zmalloc.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) -DZMALLOC_PREFIX=$*_ -DZMALLOC_USED='"used_$*.h"' $(cflags) -c -o $@ $<
