# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# make soak: the long storm.

.PHONY: soak
all: build/tests/soak
check: build/tests/soak
check_more += 'build/tests/soak --minutes 0.2 --round 1'

soak: build/tests/soak build/tests/fuzz build/tests/rseq_probe ## storm for MINUTES=10, auditing every few seconds, then fuzz for as much CPU time
	@build/tests/soak --minutes $(MINUTES)
	@sh tests/fuzz/fuzz.sh $$(($(MINUTES) * 60))

build/tests/soak: private extra = $(cmocka_libs)
build/obj/tests/soak/soak.o: private extra = $(cmocka_flags)
build/tests/soak: build/obj/tests/soak/soak.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(extra) -lpthread $(LDLIBS)
