# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/examples/libpcbatch-malloc.so and a program that uses its groups; included by the Makefile.

malloc_group_so  = build/examples/libpcbatch-malloc.so
malloc_group_src = shim init config group report cxx
malloc_group_obj = $(malloc_group_src:%=build/pic/examples/malloc-group/%.o)

# A compiler that knows what malloc does may turn one into another. Sections leave no way to unload the code, hence nodelete.
malloc_group_cflags = -O2 -fPIC -fvisibility=hidden -fno-builtin -ftls-model=initial-exec -fasynchronous-unwind-tables
malloc_group_ld     = -shared -Wl,-soname,libpcbatch-malloc.so -Wl,-z,nodelete -Wl,-z,now -Wl,-z,defs

all: $(malloc_group_so) build/examples/malloc-group-demo

$(malloc_group_so): $(malloc_group_obj)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) $(malloc_group_ld) -o $@ $^ -ldl $(LDLIBS)

build/pic/examples/malloc-group/%.o: examples/malloc-group/%.c build/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cppflags) $(cflags) $(malloc_group_cflags) -c -o $@ $<

build/examples/malloc-group-demo: build/obj/examples/malloc-group/demo.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -ldl -lpthread $(LDLIBS)

-include $(malloc_group_obj:.o=.d)
