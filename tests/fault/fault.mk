# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds the programs of the fault matrix that need more than a unit test.

fault_tests = $(patsubst %.c,build/%,$(wildcard tests/fault/test_*.c))

all check: $(fault_tests)
check_more += $(call on_both,$(fault_tests))

$(fault_tests): private extra = $(cmocka_libs)
$(fault_tests:build/%=build/obj/%.o): private extra = $(cmocka_flags)
$(fault_tests): build/%: build/obj/%.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(extra) -lpthread $(LDLIBS)

# Each instruction of each operation: one program, that runs in a virtual machine as well.
all check: build/tests/fault/step
check_more += 'build/tests/rseq_probe && build/tests/fault/step 4' 'PCBATCH_BACKEND=generic build/tests/fault/step 4'

build/tests/fault/step: $(patsubst %.c,build/obj/%.o,$(wildcard tests/fault/step*.c))
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lpthread $(LDLIBS)
