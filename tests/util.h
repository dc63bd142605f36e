/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/util.h - what the unit tests share: a domain in a box whose allocator
 * counts, checks and fails on demand; pinning; a second CPU's view; what slots hold.
 *
 * A test is exact on every backend: it runs pinned to one CPU, so that one line of
 * slots is in play, and errand() is how it gets another one into play.
 */
#ifndef TESTS_UTIL_H
#define TESTS_UTIL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcbatch.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---------------------------------------------------------------- allocator */

/* Counts allocations and fails the fail_at-th call (from 1; 0: none); a wrong size or alignment at free stops the test. */
struct tracker {
	size_t calls, fail_at, live, bytes;
};

struct tracker_header {
	void *raw;
	size_t size, align;
};

static inline void *tracker_zalloc(void *ctx, size_t size, size_t align)
{
	struct tracker *t = (struct tracker *)ctx;
	struct tracker_header *header;
	char *raw, *ptr;

	assert_true(align >= sizeof(void *) && (align & (align - 1)) == 0);
	if (++t->calls == t->fail_at)
		return NULL;
	/* Untouched pages stay so: a domain for very many CPUs is mostly address space. */
	raw = (char *)calloc(1, sizeof(*header) + align + size);
	if (raw == NULL)
		return NULL;
	ptr = raw + sizeof(*header);
	ptr += (align - ((uintptr_t)ptr & (align - 1))) & (align - 1);
	header = (struct tracker_header *)(void *)(ptr - sizeof(*header));
	header->raw = raw;
	header->size = size;
	header->align = align;
	t->live++;
	t->bytes += size;
	return ptr;
}

static inline void tracker_free(void *ctx, void *ptr, size_t size, size_t align)
{
	struct tracker *t = (struct tracker *)ctx;
	struct tracker_header *header = (struct tracker_header *)(void *)((char *)ptr - sizeof(*header));

	assert_non_null(ptr);
	assert_int_equal(header->size, size);
	assert_int_equal(header->align, align);
	assert_true(t->live > 0);
	t->live--;
	t->bytes -= size;
	free(header->raw);
}

/* ------------------------------------------------------------------- domain */

struct box {
	struct pcbatch_domain dom;
	struct tracker memory;
	int cpu; /* what box_cpu answers */
};

static inline int box_cpu(void *ctx)
{
	return ((struct box *)ctx)->cpu;
}

/* Storage for a domain, with its attributes' callbacks pointed at it. */
static inline struct box *box_new(struct pcbatch_domain_attr *attr)
{
	struct box *box = (struct box *)aligned_alloc(PCBATCH_CACHE_LINE, sizeof(*box));

	assert_non_null(box);
	memset(box, 0, sizeof(*box));
	attr->zalloc = tracker_zalloc;
	attr->free = tracker_free;
	attr->alloc_ctx = &box->memory;
	if (attr->current_cpu == box_cpu)
		attr->cpu_ctx = box;
	return box;
}

/* A domain of the backend that the environment asks for (generic when attr.current_cpu is box_cpu). */
static inline struct box *box_open(struct pcbatch_domain_attr attr)
{
	struct box *box = box_new(&attr);
	const char *env = getenv("PCBATCH_BACKEND");

	assert_int_equal(pcbatch_domain_init(&box->dom, &attr), 0);
	if (env != NULL && attr.backend == PCBATCH_BACKEND_AUTO && attr.current_cpu == NULL)
		assert_string_equal(pcbatch_backend_name(pcbatch_domain_backend(&box->dom)), env);
	return box;
}

/* Everything in it must have been destroyed, and every allocation is given back. */
static inline void box_close(struct box *box)
{
	assert_int_equal(pcbatch_domain_destroy(&box->dom), 0);
	assert_int_equal(box->memory.live, 0);
	assert_int_equal(box->memory.bytes, 0);
	free(box);
}

/* Out of line, so that no compiler wonders what the group is when creation fails. */
static __attribute__((noinline, unused)) struct pcbatch_group *group_from(struct box *box, struct pcbatch_group *parent,
									     const struct pcbatch_group_attr *attr)
{
	struct pcbatch_group *g = NULL;

	assert_int_equal(pcbatch_group_create(&box->dom, parent, attr, &g), 0);
	assert_non_null(g);
	return g;
}

static inline struct pcbatch_group *group_with(struct box *box, struct pcbatch_group *parent, int64_t max)
{
	struct pcbatch_group_attr attr;

	assert_int_equal(pcbatch_group_attr_init(&attr), 0);
	attr.max = max;
	return group_from(box, parent, &attr);
}

static inline struct pcbatch_group *group_new(struct box *box, struct pcbatch_group *parent)
{
	return group_with(box, parent, PCBATCH_PAGES_MAX);
}

static inline struct pcbatch_stock_info info_of(struct box *box)
{
	struct pcbatch_stock_info info;

	assert_int_equal(pcbatch_stock_info_read(&box->dom, &info), 0);
	return info;
}

/* --------------------------------------------------------------- what slots hold */

struct cached {
	int64_t pages, stat, bytes;
	uint64_t slots; /* page and byte slots */
};

static inline struct cached cached_of(const struct pcbatch_group *g)
{
	const struct pcbatch_domain *dom = g->owner.dom;
	struct cached held = { 0, 0, 0, 0 };
	uint32_t c, k;

	for (c = 0; c < dom->lines; c++) {
		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
			uint64_t page = pcbatch_priv_stock(dom, c)->page.slot[k], obj = pcbatch_priv_stock(dom, c)->obj.slot[k];

			if (pcbatch_slot_owner(page) == g->owner.id) {
				held.pages += pcbatch_slot_pages(page);
				held.stat += pcbatch_slot_stat(page);
				held.slots++;
			}
			if (pcbatch_slot_owner(obj) == g->owner.id) {
				held.bytes += pcbatch_slot_obj_bytes(obj);
				held.slots++;
			}
		}
	}
	return held;
}

/* Contract 1 of a group without children that is charged in pages; and each slot holds one reference, whatever its counts. */
static inline void assert_live(const struct pcbatch_group *g, int64_t live)
{
	struct cached held = cached_of(g);

	assert_int_equal(pcbatch_group_current(g), live + held.pages);
	assert_int_equal(g->owner.refs, 1 + held.slots + g->owner.children);
}

/* ---------------------------------------------------------------------- CPUs */

static cpu_set_t util_allowed;

/* The n-th CPU this process may use; -1: it may not use that many. */
static inline int nth_cpu(int n)
{
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &util_allowed) && n-- == 0)
			return cpu;
	return -1;
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

/* cmocka group setup: the whole file runs on one CPU. */
static inline int pin_tests(void **state)
{
	(void)state;
	if (sched_getaffinity(0, sizeof(util_allowed), &util_allowed) != 0)
		return -1;
	pin(nth_cpu(0));
	return 0;
}

struct errand {
	struct pcbatch_domain *dom;
	void (*fn)(void *);
	void *arg;
	uint32_t from;
	bool done;
};

static inline void *errand_thread(void *arg)
{
	struct errand *e = (struct errand *)arg;

	if (nth_cpu(1) >= 0)
		pin(nth_cpu(1));
	if (pcbatch_priv_cpu(e->dom) == e->from)
		return NULL;
	e->fn(e->arg);
	e->done = true;
	return NULL;
}

/*
 * Runs fn(arg) in a thread that uses other slots than this one: on another CPU, and
 * on the generic backend on another line (whichever stack leads to one). fn must not
 * assert. Skips the test where there is one CPU only.
 */
static inline void errand(struct box *box, void (*fn)(void *), void *arg)
{
	struct errand e = { &box->dom, fn, arg, pcbatch_priv_cpu(&box->dom), false };
	pthread_attr_t attr;
	pthread_t thread;
	size_t i;

	assert_int_equal(pthread_attr_init(&attr), 0);
	for (i = 1; i <= 32 && !e.done; i++) {
		assert_int_equal(pthread_attr_setstacksize(&attr, i << 20), 0);
		assert_int_equal(pthread_create(&thread, &attr, errand_thread, &e), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(pthread_attr_destroy(&attr), 0);
	if (!e.done)
		skip();
}

/* A small generator, the same on every machine. */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif /* TESTS_UTIL_H */
