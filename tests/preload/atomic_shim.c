/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic_shim.c - what libpcbatch-malloc.so is compared with: the least that code does by
 * hand. One shared counter of usable bytes with a limit, one group, no memory of whose
 * block it is, no bootstrap worth the name. Only for malloc_bench.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *(*real_malloc)(size_t);
static void (*real_free)(void *);
static size_t (*real_usable)(void *);
static struct {
	char before[128];
	int64_t used;
	char after[120];
	int64_t max;
} total = { { 0 }, 0, { 0 }, INT64_MAX };

static __attribute__((noinline, cold)) void find(void)
{
	void *f[3] = { dlsym(RTLD_NEXT, "malloc"), dlsym(RTLD_NEXT, "free"), dlsym(RTLD_NEXT, "malloc_usable_size") };

	memcpy(&real_free, &f[1], sizeof(void *));
	memcpy(&real_usable, &f[2], sizeof(void *));
	memcpy(&real_malloc, &f[0], sizeof(void *));
}

void *malloc(size_t n)
{
	int64_t size;
	void *p;

	if (__builtin_expect(real_malloc == NULL, 0))
		find();
	p = real_malloc(n);
	if (p == NULL)
		return NULL;
	size = (int64_t)real_usable(p);
	if (__atomic_add_fetch(&total.used, size, __ATOMIC_RELAXED) <= total.max)
		return p;
	__atomic_fetch_sub(&total.used, size, __ATOMIC_RELAXED);
	real_free(p);
	errno = ENOMEM;
	return NULL;
}

void free(void *p)
{
	if (p == NULL)
		return;
	if (__builtin_expect(real_malloc == NULL, 0))
		find();
	__atomic_fetch_sub(&total.used, (int64_t)real_usable(p), __ATOMIC_RELAXED);
	real_free(p);
}
