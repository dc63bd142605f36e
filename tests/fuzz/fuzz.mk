# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/tests/fuzz, which replays inputs and makes its own; fuzz.sh builds it again for libFuzzer and AFL++.

fuzz_src = $(wildcard tests/fuzz/*.c)

.PHONY: fuzz
all check: build/tests/fuzz
check_more += 'sh tests/fuzz/fuzz.sh 60'

fuzz: build/tests/fuzz build/tests/rseq_probe ## fuzz for MINUTES=10 of CPU time
	@sh tests/fuzz/fuzz.sh $$(($(MINUTES) * 60))

$(call obj,$(fuzz_src)): private extra = -DPCBATCH_REGION_SHIFT=12
build/tests/fuzz: $(call obj,$(fuzz_src))
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)
