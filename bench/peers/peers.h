/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers.h - how a peer is described, for the C and the C++ program.
 *
 * A peer that counts gives x_add(k) for counter k and x_total() over all counters; one
 * that limits gives x_charge(), x_uncharge() and x_total(), and refuses at PEER_LIMIT.
 * PEER_COUNTER(x, ...) and PEER_LIMITER(x, ...) make the loops that are timed, each at
 * several offsets in the code (placement alone can double a short loop's time), and
 * the description x_peer. peers.c runs them and checks every total.
 */
#ifndef PEERS_H
#define PEERS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_COUNTERS 64
#define PEER_LIMIT 4096 /* pages */
#define PEER_BATCH 64   /* what limiters that cache take at once; pcbatch's default */
#define PEER_PLACES 5

struct peer {
	const char *name, *key;
	int depth; /* levels with a limit; 0: a counter */
	void (*one[PEER_PLACES])(long n);
	void (*many[PEER_PLACES])(long n); /* 64 counters in turn */
	int64_t (*total)(void);
	long (*grab)(void);   /* charges until refused, returns how often it was not */
	void (*give)(long n); /* uncharges */
};

/* One counter and nothing else on its cache line. */
struct peer_line {
	int64_t v;
	char pad[56];
} __attribute__((aligned(64)));

/* Shifts the loop that follows: 0, 11, 22 ... bytes. */
#if defined(__x86_64__)
#define PEER_SHIFT(place) __asm__ __volatile__(".skip %c0, 0x90" : : "i"(place * 11 + 1))
#else
#define PEER_SHIFT(place) __asm__ __volatile__(".skip %c0" : : "i"(place * 8))
#endif

#define PEER_LOOP(fn, place, op)                                              \
	static __attribute__((noinline, aligned(64))) void fn##_##place(long n) \
	{                                                                       \
		long i;                                                         \
                                                                                \
		PEER_SHIFT(place);                                              \
		for (i = 0; i < n; i++) {                                       \
			op;                                                     \
		}                                                               \
	}

#define PEER_LOOPS(fn, op) PEER_LOOP(fn, 0, op) PEER_LOOP(fn, 1, op) PEER_LOOP(fn, 2, op) PEER_LOOP(fn, 3, op) PEER_LOOP(fn, 4, op)
#define PEER_PLACED(fn) { fn##_0, fn##_1, fn##_2, fn##_3, fn##_4 }

#define PEER_COUNTER(x, title)                                                                                       \
	PEER_LOOPS(x##_one, x##_add(0))                                                                              \
	PEER_LOOPS(x##_many, x##_add((unsigned int)i & (PEER_COUNTERS - 1)))                                         \
	static const struct peer x##_peer = { title, #x, 0, PEER_PLACED(x##_one), PEER_PLACED(x##_many), x##_total, \
					      NULL,  NULL };

#define PEER_LIMITER(x, title, levels)                                                                              \
	PEER_LOOPS(x##_pair, if (!x##_charge()) abort(); x##_uncharge())                                            \
	static long x##_grab(void)                                                                                  \
	{                                                                                                           \
		long n = 0;                                                                                         \
                                                                                                                    \
		while (x##_charge())                                                                                \
			n++;                                                                                        \
		return n;                                                                                           \
	}                                                                                                           \
	static void x##_give(long n)                                                                                \
	{                                                                                                           \
		while (n-- > 0)                                                                                     \
			x##_uncharge();                                                                             \
	}                                                                                                           \
	static const struct peer x##_peer = { title, #x, levels, PEER_PLACED(x##_pair), PEER_PLACED(x##_pair),     \
					      x##_total, x##_grab, x##_give };

/* The sum of 64 padded counters. */
static inline int64_t peer_line_sum(const struct peer_line *line)
{
	int64_t sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += __atomic_load_n(&line[k].v, __ATOMIC_RELAXED);
	return sum;
}

/* Zeroed, a multiple of a cache line, at the start of one; or the program ends. */
void *peers_zalloc(size_t size);

/* Takes part in the run. */
void peers_add(const struct peer *p);

/* Says in the output why something does not: peers_skip("oneTBB", "apt-get install libtbb-dev"). */
void peers_skip(const char *what, const char *why);

/* Runs what was added, prints the tables; returns the exit status. */
int peers_main(int argc, char **argv, const char *section);

#ifdef __cplusplus
}
#endif

#endif /* PEERS_H */
