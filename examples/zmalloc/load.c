/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command looks at maxmemory, evicts when it must, and writes one value: allocate, resize, or
 * hand it to another thread, which frees it (as lazy-free threads and I/O threads do). At the end
 * the bytes that the entries really have, by malloc_usable_size, are compared with the counter.
 */
#include "load.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTRIES 8192u

struct worker {
	_Alignas(64) _Atomic(void *) mailbox; /* an entry that another thread gave this one to free */
	void **entry;
	struct load *load;
	uint64_t seed, ns, evicted;
	unsigned int index, hand;
};

struct load {
	const struct variant *v;
	struct worker worker[LOAD_THREADS_MAX];
	uint64_t commands;
	size_t maxmemory;
	unsigned int threads;
};

static uint64_t thread_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define VALUE_MAX 32768u

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* Most values are small, as in caches: 16 bytes to 2 KiB, one in 64 up to 32 KiB. */
static size_t value_size(uint32_t random)
{
	return random % 64 == 0 ? 2048 + random / 64 % (VALUE_MAX - 2048) : 16 + (random / 64 % 2048) * (random % 8) / 8;
}

static void evict(struct worker *w, size_t excess)
{
	unsigned int looked;

	for (looked = 0; excess > 0 && looked < ENTRIES; looked++) {
		void **entry = &w->entry[w->hand++ % ENTRIES];
		size_t size = *entry == NULL ? 0 : malloc_usable_size(*entry);

		if (*entry == NULL)
			continue;
		w->load->v->release(*entry);
		*entry = NULL;
		w->evicted++;
		excess -= size < excess ? size : excess;
	}
}

static void command(struct worker *w)
{
	const struct load *load = w->load;
	struct zmalloc_state state = load->v->state(load->maxmemory);
	uint32_t random = next_random(&w->seed);
	void **entry = &w->entry[random % ENTRIES];
	struct worker *other;
	void *old;

	if (state.excess > 0)
		evict(w, state.excess);
	old = *entry;
	random = next_random(&w->seed);
	if (old != NULL && random % 4 == 0) {
		*entry = load->v->resize(old, value_size(next_random(&w->seed)));
		return;
	}
	*entry = load->v->alloc(value_size(next_random(&w->seed)));
	if (old != NULL && random % 16 == 1) {
		other = &w->load->worker[(w->index + 1) % load->threads];
		old = atomic_exchange_explicit(&other->mailbox, old, memory_order_acq_rel);
	}
	if (old != NULL)
		load->v->release(old);
}

static void *work(void *arg)
{
	struct worker *w = (struct worker *)arg;
	uint64_t i, start = thread_ns();

	for (i = 0; i < w->load->commands; i++)
		command(w);
	w->ns = thread_ns() - start;
	return NULL;
}

static size_t live(const struct load *load)
{
	size_t sum = 0;
	unsigned int t, i;

	for (t = 0; t < load->threads; t++) {
		void *box = atomic_load(&load->worker[t].mailbox);

		sum += box == NULL ? 0 : malloc_usable_size(box);
		for (i = 0; i < ENTRIES; i++)
			sum += load->worker[t].entry[i] == NULL ? 0 : malloc_usable_size(load->worker[t].entry[i]);
	}
	return sum;
}

/* With all threads joined. Says what is wrong; returns how many things are. */
static uint64_t audit(const struct load *load, size_t expected)
{
	const struct variant *v = load->v;
	size_t used = v->used(), exact = v->exact(), slack = v->slack();

	if (v->alloc == none_zmalloc)
		return 0;
	if (exact != expected)
		(void)fprintf(stderr, "zmalloc: %s: counted %zu bytes, there are %zu\n", v->name(), exact, expected);
	if (used < expected || used > expected + slack)
		(void)fprintf(stderr, "zmalloc: %s: read %zu bytes, not in %zu to %zu\n", v->name(), used, expected,
			      expected + slack);
	return (uint64_t)(exact != expected) + (uint64_t)(used < expected || used > expected + slack);
}

/*
 * Each thread looks, then allocates: so much may be above the limit. And eviction must not begin early by more than the slack.
 * A sum over several counters promises neither.
 */
static uint64_t too_much(const struct load *load, uint64_t evicted)
{
	size_t bytes = live(load), margin = (size_t)load->threads * 2 * VALUE_MAX;

	if (load->v->alloc == none_zmalloc || evicted == 0 || !load->v->one_value)
		return 0;
	if (bytes > load->maxmemory + margin)
		(void)fprintf(stderr, "zmalloc: %s: %zu bytes, maxmemory is %zu\n", load->v->name(), bytes, load->maxmemory);
	if (bytes + load->v->slack() + margin < load->maxmemory)
		(void)fprintf(stderr, "zmalloc: %s: evicted down to %zu bytes, maxmemory is %zu\n", load->v->name(), bytes,
			      load->maxmemory);
	return (uint64_t)(bytes > load->maxmemory + margin) + (uint64_t)(bytes + load->v->slack() + margin < load->maxmemory);
}

static void release_all(struct load *load)
{
	unsigned int t, i;

	for (t = 0; t < load->threads; t++) {
		void *box = atomic_load(&load->worker[t].mailbox);

		if (box != NULL)
			load->v->release(box);
		for (i = 0; i < ENTRIES; i++)
			if (load->worker[t].entry[i] != NULL)
				load->v->release(load->worker[t].entry[i]);
		free(load->worker[t].entry);
	}
}

struct load_result load_run(const struct variant *v, unsigned int threads, uint64_t commands, size_t maxmemory)
{
	static struct load load;
	struct load_result r = { 0, commands * threads, 0, 0 };
	pthread_t thread[LOAD_THREADS_MAX];
	unsigned int t;

	memset(&load, 0, sizeof(load));
	load.v = v;
	load.commands = commands;
	load.maxmemory = maxmemory;
	load.threads = threads;
	r.wrong = audit(&load, 0);
	for (t = 0; t < threads; t++) {
		load.worker[t].load = &load;
		load.worker[t].index = t;
		load.worker[t].seed = t + 1;
		load.worker[t].entry = (void **)calloc(ENTRIES, sizeof(void *));
		if (load.worker[t].entry == NULL || pthread_create(&thread[t], NULL, work, &load.worker[t]) != 0) {
			(void)fprintf(stderr, "zmalloc: can't start thread %u\n", t);
			exit(1);
		}
	}
	for (t = 0; t < threads; t++) {
		(void)pthread_join(thread[t], NULL);
		r.ns += (double)load.worker[t].ns / (double)r.commands;
		r.evicted += load.worker[t].evicted;
	}
	r.wrong += audit(&load, live(&load)) + too_much(&load, r.evicted);
	release_all(&load);
	r.wrong += audit(&load, 0);
	return r;
}
