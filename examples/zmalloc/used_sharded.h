/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What such servers do today: an array of counters, one a cache line, and each thread has an
 * index into it from a running number. Threads beyond the array's size share lines, and every
 * reading, also the one before each command, walks the array.
 */
#ifndef USED_SHARDED_H
#define USED_SHARDED_H

#include <stdatomic.h>
#include <stddef.h>

#define USED_SHARDS 16u

static struct {
	_Alignas(64) atomic_size_t bytes;
} used_shard[USED_SHARDS];

static atomic_uint used_threads;
static _Thread_local unsigned int used_index; /* 1 and up; 0: this thread has none yet */

static inline atomic_size_t *used_mine(void)
{
	if (__builtin_expect(used_index == 0, 0))
		used_index = atomic_fetch_add_explicit(&used_threads, 1, memory_order_relaxed) % USED_SHARDS + 1;
	return &used_shard[used_index - 1].bytes;
}

static inline void used_add(size_t bytes)
{
	(void)atomic_fetch_add_explicit(used_mine(), bytes, memory_order_relaxed);
}

static inline void used_sub(size_t bytes)
{
	(void)atomic_fetch_sub_explicit(used_mine(), bytes, memory_order_relaxed);
}

static inline size_t used_read(void)
{
	size_t sum = 0;
	unsigned int i;

	/* A block freed by another thread than its own makes shards wrap; the sum is right. */
	for (i = 0; i < USED_SHARDS; i++)
		sum += atomic_load_explicit(&used_shard[i].bytes, memory_order_relaxed);
	return sum;
}

static inline size_t used_sum(void)
{
	return used_read();
}

static inline size_t used_slack(void)
{
	return 0;
}

static inline const char *used_name(void)
{
	return "sharded array";
}

#endif /* USED_SHARDED_H */
