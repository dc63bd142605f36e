/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A domain and, beside it, what the contract says must be true of it: plain numbers in plain C, one
 * thread, no caches. Every operation is done on both and its result compared.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcbatch.h>

#define FUZZ_GROUPS 12 /* more than a line has slots */
#define FUZZ_COUNTERS 3
#define FUZZ_CPUS 3 /* numbers that an input can choose; on sections, as many as there are */
#define FUZZ_ITEMS 3
#define FUZZ_ITEM 1 /* the one in the slots */

struct fuzz_input {
	const uint8_t *at, *end;
};

/* What must be true of a group. Of the group alone, without those below. */
struct fuzz_group {
	struct pcbatch_group *g; /* NULL: there is none */
	int parent;              /* -1: none */
	uint64_t pages, bytes;   /* live charges */
	int64_t stat[FUZZ_ITEMS];
	uint64_t max;
	uint64_t peak_min; /* the highest that live charges, in pages, have been */
	bool forced;       /* something went over a limit: max no longer bounds the peak */
};

struct fuzz_world {
	struct pcbatch_domain dom;
	struct fuzz_group group[FUZZ_GROUPS];
	int64_t gone[FUZZ_GROUPS][FUZZ_ITEMS]; /* statistics that destroyed children left to a group */
	struct pcbatch_counter counter[FUZZ_COUNTERS];
	uint64_t value[FUZZ_COUNTERS];
	uint64_t fail_in; /* allocations until one fails; 0: none does */
	uint64_t allocated, freed;
	int cpu;
	bool sections, failed_allocation;
	struct fuzz_input in;
};

/* Runs one input. A difference aborts the process with a message. */
void fuzz_one(const uint8_t *data, size_t size);

void fuzz_die(const char *file, int line, const char *text, long long a, long long b);

#define FUZZ_EQUAL(a, b)                                                                        \
	do {                                                                                    \
		long long fuzz_a = (long long)(a), fuzz_b = (long long)(b);                     \
		if (fuzz_a != fuzz_b)                                                           \
			fuzz_die(__FILE__, __LINE__, #a " is not " #b, fuzz_a, fuzz_b);         \
	} while (0)
#define FUZZ_TRUE(cond, a, b)                                                                   \
	do {                                                                                    \
		if (!(cond))                                                                    \
			fuzz_die(__FILE__, __LINE__, #cond, (long long)(a), (long long)(b));    \
	} while (0)

/* ------------------------------------------------------------------- the input */

static inline uint64_t fuzz_take(struct fuzz_input *in, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | (in->at < in->end ? *in->at++ : 0);
	return value;
}

/* Numbers of all sizes: mostly small, sometimes the edges of what is allowed. */
static inline uint64_t fuzz_number(struct fuzz_input *in)
{
	uint64_t kind = fuzz_take(in, 1);

	if (kind < 160)
		return kind % 80;
	if (kind < 220)
		return fuzz_take(in, 2);
	if (kind < 240)
		return fuzz_take(in, 4);
	switch (kind) {
	case 240:
		return (uint64_t)PCBATCH_PAGES_MAX;
	case 241:
		return (uint64_t)PCBATCH_PAGES_MAX + 1;
	case 242:
		return UINT64_MAX;
	case 243:
		return (uint64_t)INT64_MAX;
	case 244:
		return (uint64_t)INT64_MIN;
	case 245:
		return PCBATCH_STOCK_HIGH_MAX + (fuzz_take(in, 1) & 3);
	case 246:
		return 4096 - 2 + (fuzz_take(in, 1) & 3);
	default:
		return fuzz_take(in, 8);
	}
}

/* ------------------------------------------------------------------- the model */

static inline uint64_t fuzz_byte_pages(uint64_t bytes)
{
	return (bytes + 4095) / 4096;
}

static inline bool fuzz_below(const struct fuzz_world *w, int i, int root)
{
	while (i >= 0 && i != root)
		i = w->group[i].parent;
	return i == root;
}

/* Live charges of a group and all below it, in pages. */
static inline uint64_t fuzz_live(const struct fuzz_world *w, int root)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < FUZZ_GROUPS; i++)
		if (w->group[i].g != NULL && fuzz_below(w, i, root))
			sum += w->group[i].pages + fuzz_byte_pages(w->group[i].bytes);
	return sum;
}

/* The nearest level that has no room for so many pages more, or -1. */
static inline int fuzz_limiting(const struct fuzz_world *w, int i, uint64_t pages)
{
	for (; i >= 0; i = w->group[i].parent) {
		uint64_t live = fuzz_live(w, i);

		if (live > w->group[i].max || w->group[i].max - live < pages)
			return i;
	}
	return -1;
}

/* Whether an error is that of the allocation that was to fail; then everything must be as before. */
static inline bool fuzz_no_memory(struct fuzz_world *w, int err)
{
	bool failed = w->failed_allocation;

	w->failed_allocation = false;
	if (failed)
		FUZZ_EQUAL(err, -ENOMEM);
	return failed;
}

static inline uint64_t fuzz_at_once(uint64_t n)
{
	return n < (uint64_t)PCBATCH_PAGES_MAX ? n : (uint64_t)PCBATCH_PAGES_MAX;
}

/* Takes one operation from the input and does it. */
void fuzz_step(struct fuzz_world *w);

void fuzz_audit(struct fuzz_world *w, bool drained);

#endif /* FUZZ_WORLD_H */
