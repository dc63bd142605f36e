/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handoff.c - an allocator for family.c: the C library's, which when armed gives a block away
 * again, by the program's own malloc, before the free or realloc that gave it up has returned:
 * what another thread does in the worst moment, without the luck.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

void handoff_arm(void);
void handoff_watch(void *p);
int handoff_state(void);
void *handoff_taken(void);

static __thread int armed;
static __thread void *taken;

/*
 * A walk of the heap that asks for the size of this block is kept there for a while: what
 * must not happen is that the block is freed meanwhile. 0 not there yet, 1 there, 2 gone on, 3 freed under it.
 */
static void *watched;
static int watch_state;
static __thread int watching;

void handoff_watch(void *p)
{
	watched = p;
	watching = 1;
	__atomic_store_n(&watch_state, 0, __ATOMIC_RELEASE);
}

int handoff_state(void)
{
	return __atomic_load_n(&watch_state, __ATOMIC_ACQUIRE);
}

static void keep_here(void)
{
	int there = 1;

	watching = 0;
	__atomic_store_n(&watch_state, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 50 && handoff_state() == 1; i++)
		(void)usleep(1000);
	(void)__atomic_compare_exchange_n(&watch_state, &there, 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void freed_here(void)
{
	int there = 1;

	(void)__atomic_compare_exchange_n(&watch_state, &there, 3, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Not by dlsym, which allocates and frees itself. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void handoff_arm(void)
{
	armed = 1;
}

void *handoff_taken(void)
{
	void *p = taken;

	taken = NULL;
	return p;
}

/* Not this file's but the first in the program, whatever the compiler thinks it knows. */
static void *(*volatile first_malloc)(size_t) = malloc;

static void hand_on(void)
{
	if (armed == 0)
		return;
	armed = 0;
	taken = first_malloc(1000);
}

void *malloc(size_t n)
{
	return __libc_malloc(n);
}

void free(void *p)
{
	if (p != NULL && p == watched)
		freed_here();
	__libc_free(p);
	hand_on();
}

void *realloc(void *p, size_t n)
{
	void *q = __libc_realloc(p, n);

	hand_on();
	return q;
}

void *calloc(size_t n, size_t m)
{
	return __libc_calloc(n, m);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p;

	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	p = __libc_memalign(align, n);
	if (p == NULL)
		return ENOMEM;
	*out = p;
	return 0;
}

/* The word in front of a block is its size, with its own length; bit 1: mapped, and another word in front of that. */
size_t malloc_usable_size(void *p)
{
	size_t size = p == NULL ? 0 : ((size_t *)p)[-1];

	if (watching && p == watched)
		keep_here();
	return p == NULL ? 0 : (size & ~(size_t)7) - ((size & 2) != 0 ? 16 : 8);
}
