/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cycle counter. It is the only clock that is cheap enough to time one charge in 61 without
 * the timing showing up in the result.
 */
#ifndef MEMCG_SOCKET_CLOCK_H
#define MEMCG_SOCKET_CLOCK_H

#include <stdint.h>

#include "util.h"

extern double cycle_clock_ns; /* of one cycle */

void clock_calibrate(void);

#if defined(__x86_64__)

static inline uint64_t cycles_now(void)
{
	return __builtin_ia32_rdtsc();
}

/* The fences keep the timed call inside: without them it would run past the second read. */
static inline uint64_t cycles_fenced(void)
{
	uint64_t t;

	__builtin_ia32_lfence();
	t = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return t;
}

#elif defined(__aarch64__)

static inline uint64_t cycles_now(void)
{
	uint64_t t;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

static inline uint64_t cycles_fenced(void)
{
	uint64_t t;

	__asm__ __volatile__("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(t) : : "memory");
	return t;
}

#else

static inline uint64_t cycles_now(void)
{
	return now_ns();
}

static inline uint64_t cycles_fenced(void)
{
	return now_ns();
}

#endif

static inline double cycles_to_ns(double cycles)
{
	return cycles * cycle_clock_ns;
}

#endif
