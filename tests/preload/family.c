/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * family.c - every function of the malloc family, in one program that prints the same with
 * and without libpcbatch-malloc.so in front of an allocator (run_family.sh compares). With
 * it, what is charged is compared to the sum of malloc_usable_size of the live blocks
 * at every step; exits 1 at the first difference.
 */
#include "family.h"

bool on;
void *volatile hide;

size_t bytes_of(int group)
{
	struct malloc_group_info info;

	CHECK(malloc_group_sum(group, &info) == 0);
	return info.bytes;
}

void exact(int group, size_t want)
{
	size_t have = bytes_of(group);

	if (on && have != want) {
		fprintf(stderr, "family: charged %zu, live %zu\n", have, want);
		_exit(1);
	}
}

void audited(int group, uint64_t blocks, size_t bytes)
{
	struct malloc_group_found a;

	CHECK(malloc_group_audit(group, &a) == 0);
	CHECK(!on || (a.blocks == blocks && a.bytes == bytes && a.difference == 0));
}

int group_new(const char *name, int parent, size_t max)
{
	int g = malloc_group_create(name, parent, max);

	CHECK(g >= 0 && (on ? g >= 2 : g == 0));
	return g;
}

uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* jemalloc has none, and the C library's would be of another heap. */
static bool pvalloc_is_foreign(void)
{
	Dl_info a, b;

	return dladdr(dlsym(RTLD_DEFAULT, "pvalloc"), &a) != 0 && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &b) != 0 &&
	       a.dli_fbase != b.dli_fbase;
}

void *call(enum call c, size_t align, size_t n)
{
	void *p = NULL;

	switch (c) {
	case MALLOC: return malloc(n);
	case CALLOC: return calloc(n, 1);
	case REALLOC: return realloc(NULL, n);
	case REALLOCARRAY: return reallocarray(NULL, n, 1);
	case MEMALIGN: return memalign(align, n);
	case POSIX_MEMALIGN:
		errno = posix_memalign(&p, align, n);
		return errno == 0 ? p : NULL;
	case ALIGNED_ALLOC: return aligned_alloc(align, n);
	case VALLOC: return valloc(n);
	default: return pvalloc_is_foreign() ? valloc(n) : pvalloc(n);
	}
}

bool all_are(const unsigned char *p, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != value)
			return false;
	return true;
}

bool out_of_memory(const void *p)
{
	return p == NULL && (errno == ENOMEM || !on);
}

/* ------------------------------------------------------- before main, plugins */

static void *from_constructor;

static __attribute__((constructor(101))) void early(void)
{
	from_constructor = strdup("from a constructor");
}

/* A plugin bound to its own libraries first gets the C library's malloc, past anything preloaded. */
static void plugin(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	void *(*get)(size_t), *p;
	void (*put)(void *);
	void *f, *g;

	CHECK(lib != NULL);
	f = dlsym(lib, "plugin_get");
	g = dlsym(lib, "plugin_put");
	CHECK(f != NULL && g != NULL);
	memcpy(&get, &f, sizeof(f));
	memcpy(&put, &g, sizeof(g));
	for (size_t i = 1; i < 300; i++) {
		size_t before = bytes_of(0);

		p = get(i * 7);
		CHECK(p != NULL && malloc_usable_size(p) >= i * 7);
		p = realloc(p, i * 20);
		free(p);
		CHECK(bytes_of(0) == before);
	}
	CHECK(dlclose(lib) == 0);
	printf("plugin: its blocks were freed here\n");
}

int main(int argc, char **argv)
{
	on = malloc_group_active();
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	printf("%s\n", (char *)from_constructor);
	CHECK(!on || malloc_group_of(from_constructor) >= 0);
	free(from_constructor);
	every_call();
	refusals_of_nonsense();
	reallocs();
	from_libc();
	limits();
	no_address_space();
	groups();
	handed_on();
	walked();
	movers();
	threads();
	forks();
	if (argc > 1)
		plugin(argv[1]);
	if (on) {
		struct malloc_group_found a;

		CHECK(malloc_group_audit(0, &a) == 0 && a.difference == 0);
		exact(0, a.bytes);
	}
	return 0;
}
