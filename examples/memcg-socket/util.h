/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Small helpers that every file here needs. Atomics are the compiler's, with the order spelled out. */
#ifndef MEMCG_SOCKET_UTIL_H
#define MEMCG_SOCKET_UTIL_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_SHIFT	12
#define PAGE_BYTES	((int64_t)1 << PAGE_SHIFT)

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

static inline int64_t pages_ceil(int64_t bytes)
{
	return (bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
}

static inline uint64_t now_ns_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return now_ns_clock(CLOCK_MONOTONIC);
}

/* calloc on a cache line boundary */
static inline void *zalloc_line(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (p)
		__builtin_memset(p, 0, (size + 63) & ~(size_t)63);
	return p;
}

/* thread n on the n-th CPU that the process may use, round and round */
void pin_thread(unsigned int thread);

static inline double ratio(double a, double b)
{
	return b != 0.0 ? a / b : 0.0;
}

#endif
