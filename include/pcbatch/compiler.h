/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch/compiler.h - attributes, inline policy, alignment and static assertions, for C and C++. */
#ifndef PCBATCH_COMPILER_H
#define PCBATCH_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"

/* Everything public is this: no symbol leaves the unit, and no warning when it is not used. */
#define PCBATCH_INLINE static inline __attribute__((unused))

/* For the hit path only: it must be specialised by its constant arguments, and a call would cost more than it does. */
#define PCBATCH_ALWAYS_INLINE static inline __attribute__((unused, always_inline))

/* For what happens seldom: out of line, out of the hot cache lines, and small. */
#define PCBATCH_COLD static __attribute__((unused, noinline, cold))

/* For what happens once in a batch here, and at every call on the generic backend: out of line, but fast. */
#define PCBATCH_SLOW static __attribute__((unused, noinline))

#define PCBATCH_LIKELY(x) __builtin_expect(!!(x), 1)
#define PCBATCH_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define PCBATCH_ALIGNED(n) __attribute__((aligned(n)))

#ifdef __cplusplus
#define PCBATCH_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define PCBATCH_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* 17: a CPU number times the region is computed in 32 bits, see PCBATCH_CPUS_MAX. */
PCBATCH_STATIC_ASSERT(PCBATCH_REGION_SHIFT >= 12 && PCBATCH_REGION_SHIFT <= 17, "PCBATCH_REGION_SHIFT: 12 to 17");
PCBATCH_STATIC_ASSERT(PCBATCH_RETRIES >= 1 && PCBATCH_RETRIES <= 100, "PCBATCH_RETRIES: 1 to 100");
PCBATCH_STATIC_ASSERT(PCBATCH_CACHE_LINE >= 64 && (PCBATCH_CACHE_LINE & (PCBATCH_CACHE_LINE - 1)) == 0,
		      "PCBATCH_CACHE_LINE: a power of two, at least 64");

#ifdef __cplusplus
extern "C" {
#endif

PCBATCH_COLD void pcbatch_priv_panic(const char *text, size_t length)
{
	/* write, not stdio: this may run in a signal handler or inside malloc. */
	if (write(2, text, length) < 0)
		abort();
	abort();
}

#ifdef __cplusplus
}
#endif

/* Catches misuse in debug builds; what it tests is also handled in release builds, by an error or a clamp. */
#if PCBATCH_DEBUG
#define PCBATCH_PRIV_ASSERT(cond, text)                                                     \
	do {                                                                                \
		if (PCBATCH_UNLIKELY(!(cond)))                                              \
			pcbatch_priv_panic("pcbatch: " text "\n", sizeof("pcbatch: " text)); \
	} while (0)
#else
#define PCBATCH_PRIV_ASSERT(cond, text) ((void)0)
#endif

/* Tests define these to delay or interrupt inside a section; x86-64 may clobber flags, AArch64 also x16 and x17. */
#ifndef PCBATCH_INJECT_ASM
#define PCBATCH_INJECT_ASM(n)
#endif
/* The same for points in C: where something is in one hand only, 1 to 39; they may be reached in any context. */
#ifndef PCBATCH_INJECT_C
#define PCBATCH_INJECT_C(n)
#endif

#endif /* PCBATCH_COMPILER_H */
