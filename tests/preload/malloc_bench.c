/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: malloc_bench OPS
 * CPU time of a malloc and its free, by what is in front of the allocator (run_bench.sh preloads it). One line:
 *	same 1: 64 bytes, the block just freed, one thread; mix 1: up to 512 bytes, 1000 blocks live, one thread; mix 2: two.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIVE 1000

static long ops;
static int threads_now;

static double cpu_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static double same(void)
{
	double start = cpu_now();

	for (long i = 0; i < ops; i++) {
		void *volatile p = malloc(64);

		free(p);
	}
	return (cpu_now() - start) / (double)ops;
}

static double mix(void)
{
	static __thread void *live[LIVE];
	uint32_t seed = 1;
	double start;

	for (int i = 0; i < LIVE; i++)
		live[i] = malloc((size_t)(i % 512) + 1);
	start = cpu_now();
	for (long i = 0; i < ops; i++) {
		uint32_t k;

		seed = seed * 1664525u + 1013904223u;
		k = (seed >> 8) % LIVE;
		free(live[k]);
		live[k] = malloc(((seed >> 16) & 511) + 1);
	}
	start = (cpu_now() - start) / (double)ops;
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
	return start;
}

static void *mix_thread(void *result)
{
	pin(__atomic_fetch_add(&threads_now, 1, __ATOMIC_RELAXED));
	*(double *)result = mix();
	return NULL;
}

int main(int argc, char **argv)
{
	double one, two[2];
	pthread_t thread[2];

	ops = argc == 2 ? atol(argv[1]) : 0;
	if (ops <= 0) {
		fprintf(stderr, "usage: malloc_bench OPS\n");
		return 2;
	}
	one = same();
	printf("%.2f %.2f ", one, mix());
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, mix_thread, &two[i]) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		(void)pthread_join(thread[i], NULL);
	printf("%.2f\n", (two[0] + two[1]) / 2);
	return 0;
}
