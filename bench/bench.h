/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - how the benches measure.
 *
 * A workload is one loop, compiled several times at different offsets in the code
 * (placement alone can double a short loop's time). A sample is CPU time per
 * operation of one placement; rounds go over all workloads in turn, so that a busy
 * moment hits them alike; a workload's figure is the median over placements of each
 * placement's best sample (contended ones: of its median, since a partner that was
 * descheduled makes a sample look good).
 */
#ifndef PCBATCH_BENCH_H
#define PCBATCH_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_PLACES 7
#define BENCH_ROUNDS_MAX 64
#define BENCH_THREADS_MAX 8

typedef void (*bench_fn)(void *arg, long n);

struct bench_work {
	const char *name;
	bench_fn place[BENCH_PLACES];
	void *arg;
	unsigned int threads;
	long n; /* operations a sample and thread */
	double sample[BENCH_PLACES][BENCH_ROUNDS_MAX];
	unsigned int samples;
	double ns; /* the figure */
};

static inline double bench_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void bench_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

struct bench_thread {
	const struct bench_work *work;
	pthread_barrier_t *barrier;
	unsigned int place, cpu;
	double ns;
};

static inline void *bench_thread_run(void *arg)
{
	struct bench_thread *t = arg;
	double start;

	bench_pin(t->cpu);
	(void)pthread_barrier_wait(t->barrier);
	start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
	t->work->place[t->place](t->work->arg, t->work->n);
	t->ns = bench_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return NULL;
}

/* CPU time per operation of all threads together. */
static inline double bench_sample(const struct bench_work *work, unsigned int place)
{
	struct bench_thread t[BENCH_THREADS_MAX];
	pthread_t id[BENCH_THREADS_MAX];
	pthread_barrier_t barrier;
	unsigned int i, cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	double sum = 0;

	pthread_barrier_init(&barrier, NULL, work->threads);
	for (i = 0; i < work->threads; i++) {
		t[i] = (struct bench_thread){ work, &barrier, place, (cpus - 1 + i) % cpus, 0 };
		if (pthread_create(&id[i], NULL, bench_thread_run, &t[i]) != 0) {
			fprintf(stderr, "bench: can't start a thread\n");
			exit(1);
		}
	}
	for (i = 0; i < work->threads; i++) {
		(void)pthread_join(id[i], NULL);
		sum += t[i].ns;
	}
	pthread_barrier_destroy(&barrier);
	return sum / ((double)work->n * work->threads);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double bench_median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), bench_compare);
	return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static inline void bench_figure(struct bench_work *work)
{
	double best[BENCH_PLACES];
	unsigned int p;

	for (p = 0; p < BENCH_PLACES; p++) {
		double median = bench_median(work->sample[p], work->samples);

		best[p] = work->threads > 1 ? median : work->sample[p][0];
	}
	work->ns = bench_median(best, BENCH_PLACES);
}

/* Runs `rounds` rounds over all works; progress on a terminal. */
static inline void bench_run(struct bench_work *work, unsigned int works, unsigned int rounds)
{
	unsigned int r, w, p;

	for (r = 0; r < rounds; r++) {
		for (w = 0; w < works; w++) {
			if (isatty(2))
				fprintf(stderr, "\rround %u of %u: %-32s", r + 1, rounds, work[w].name);
			for (p = 0; p < BENCH_PLACES; p++)
				work[w].sample[p][r] = bench_sample(&work[w], p);
			work[w].samples = r + 1;
		}
	}
	if (isatty(2))
		fprintf(stderr, "\r%60s\r", "");
	for (w = 0; w < works; w++)
		bench_figure(&work[w]);
}

#endif /* PCBATCH_BENCH_H */
