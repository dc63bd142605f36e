/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* One atomic for all threads: exact, and every allocation of every thread writes its line. */
#ifndef USED_ATOMIC_H
#define USED_ATOMIC_H

#include <stdatomic.h>
#include <stddef.h>

static _Alignas(64) atomic_size_t used_bytes;

static inline void used_add(size_t bytes)
{
	(void)atomic_fetch_add_explicit(&used_bytes, bytes, memory_order_relaxed);
}

static inline void used_sub(size_t bytes)
{
	(void)atomic_fetch_sub_explicit(&used_bytes, bytes, memory_order_relaxed);
}

static inline size_t used_read(void)
{
	return atomic_load_explicit(&used_bytes, memory_order_relaxed);
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
	return "one atomic";
}

#endif /* USED_ATOMIC_H */
