// SPDX-FileCopyrightText: 2026 the pcbatch authors
// SPDX-License-Identifier: BSD-2-Clause
// new.cpp - C++ operator new in all its forms is accounted, and throws at a limit; the same output without the accounting.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "../../examples/malloc-group/malloc_group.h"

#define CHECK(cond)                                                          \
	do {                                                                 \
		if (!(cond)) {                                               \
			std::fprintf(stderr, "new: line %d: %s\n", __LINE__, #cond); \
			std::_Exit(1);                                       \
		}                                                            \
	} while (0)

struct alignas(64) wide {
	char bytes[448]; // mimalloc 2.0.9 misaligns 512 by itself
};

static std::size_t bytes_of(int g)
{
	malloc_group_info info;
	malloc_group_sum(g, &info);
	return info.bytes;
}

// The compiler must not know that nobody looks, or it leaves the allocation out.
static void *volatile seen;

static int handled;
static void handler()
{
	if (++handled == 3)
		std::set_new_handler(nullptr);
}

int main()
{
	const bool on = malloc_group_active() != 0;
	const int g = malloc_group_create("cpp", MALLOC_GROUP_ROOT, std::size_t(1) << 20), before = malloc_group_enter(g);
	bool thrown = !on;

	{
		std::unique_ptr<wide> one(new wide);
		std::unique_ptr<wide[]> many(new wide[7]);
		CHECK(reinterpret_cast<std::uintptr_t>(one.get()) % 64 == 0);
		CHECK(!on || malloc_group_of(one.get()) == g || malloc_group_of(many.get()) == g);
		std::map<int, std::string> map;
		for (int i = 0; i < 500; i++)
			map[i] = std::string(static_cast<std::size_t>(i), 'x');
		CHECK(!on || bytes_of(g) > 500 * 250);
		char *p = new (std::nothrow) char[100];
		CHECK(p != nullptr && (!on || malloc_group_of(p) == g));
		delete[] p;
	}
	CHECK(bytes_of(g) == 0);
	if (on) {
		seen = new (std::nothrow) char[std::size_t(2) << 20];
		CHECK(seen == nullptr);
		std::set_new_handler(handler);
		try {
			std::vector<char> v(std::size_t(2) << 20);
			seen = v.data();
		} catch (const std::bad_alloc &) {
			thrown = true;
		}
		CHECK(handled == 3);
		try {
			seen = ::operator new(std::size_t(2) << 20, std::align_val_t(64));
			CHECK(false);
		} catch (const std::bad_alloc &) {
		}
	}
	CHECK(thrown && bytes_of(g) == 0);
	malloc_group_leave(before);
	CHECK(malloc_group_destroy(g) == 0);
	std::puts("new and delete");
	return 0;
}
