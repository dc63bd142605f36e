# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/examples/jemalloc-group; without jemalloc, a script that says which package it wants and
# exits 77, which make check counts as skipped.

jemalloc_src  = $(wildcard examples/jemalloc-group/*.c)
jemalloc_have = $(eval jemalloc_have := $(call have,jemalloc))$(jemalloc_have)
jemalloc_wants = jemalloc was not found. On Debian: apt-get install -y libjemalloc-dev

all check: build/examples/jemalloc-group
check_more += 'build/examples/jemalloc-group' 'PCBATCH_BACKEND=generic build/examples/jemalloc-group'

build/examples/jemalloc-group: $(jemalloc_src) examples/jemalloc-group/tenant.h $(HEADERS:%=include/%) build/flags \
  build/jemalloc-package
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(if $(jemalloc_have),$(CC) $(filter-out -MMD -MP,$(cppflags)) $(cflags) $(LDFLAGS) -o $@ $(jemalloc_src) \
	  $(shell $(PKG_CONFIG) --cflags --libs jemalloc) -lpthread $(LDLIBS),printf '#!/bin/sh\necho "%s"\nexit 77\n' \
	  '$(jemalloc_wants)' > $@ && chmod +x $@)

# Rewritten only when the package came or went.
build/jemalloc-package: FORCE
	@mkdir -p build
	@echo 'jemalloc=$(jemalloc_have)' | cmp -s - $@ || echo 'jemalloc=$(jemalloc_have)' > $@
