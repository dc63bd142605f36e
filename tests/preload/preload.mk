# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Tests of build/examples/libpcbatch-malloc.so; included by the Makefile.

preload_so   = build/examples/libpcbatch-malloc.so
preload_bin  = build/tests/preload
preload_bins = $(preload_bin)/family $(preload_bin)/new $(preload_bin)/plugin.so $(preload_bin)/handoff.so

check: $(preload_so) build/examples/malloc-group-demo $(preload_bins)
check_more += 'sh tests/preload/run_family.sh glibc' 'sh tests/preload/run_family.sh jemalloc' \
              'sh tests/preload/run_family.sh mimalloc' 'sh tests/preload/run_family.sh handoff' \
              'sh tests/preload/run_config.sh'

# The compiler may leave out a malloc whose block it sees freed.
preload_family = $(patsubst %.c,build/obj/%.o,$(wildcard tests/preload/family*.c))
$(preload_family): private extra = -fno-builtin -Wno-deprecated-declarations
$(preload_bin)/family: $(preload_family)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(preload_family) -ldl -lpthread $(LDLIBS)

$(preload_bin)/new: tests/preload/new.cpp build/flags
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) $(cppflags) $(cxxflags) $(LDFLAGS) -o $@ $< -ldl $(LDLIBS)

$(preload_bin)/%.so: tests/preload/%.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(cflags) -fPIC -shared -fno-builtin $(LDFLAGS) -o $@ $< -ldl $(LDLIBS)

-include $(wildcard $(preload_bin)/*.d)

$(preload_bin)/malloc_bench: tests/preload/malloc_bench.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(cflags) -fno-builtin $(LDFLAGS) -o $@ $< -lpthread $(LDLIBS)

.PHONY: bench-malloc
bench-malloc: $(preload_so) $(preload_bin)/malloc_bench $(preload_bin)/atomic_shim.so ## measure a malloc and free without, with and with an atomic counter (ROUNDS=9)
	@sh tests/preload/run_bench.sh

$(preload_bin)/load: tests/preload/load.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(cflags) $(LDFLAGS) -o $@ $< $(LDLIBS)

.PHONY: check-preload
check-preload: $(preload_so) $(preload_bin)/load ## run programs from Debian under the accounting; cost of redis and memcached (PAIRS=15; 0: not measured)
	@TEST_TIMEOUT=$(TEST_TIMEOUT) sh tests/run.sh $(patsubst %,'sh tests/preload/check_%.sh',redis memcached sqlite python gcc nginx)
	@[ '$(PAIRS)' = 0 ] || sh tests/preload/cost.sh
