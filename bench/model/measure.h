/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * measure.h - times a function on one or two pinned threads. Samples are short, about
 * a millisecond, so that most of them fit between two interruptions; one during which
 * a thread was off its CPU for more than 3 % is thrown away, and so is one of two
 * threads that ran together for less than most of it. A sample of two threads goes on
 * until both have had the time: operations are counted, not given.
 */
#ifndef MODEL_MEASURE_H
#define MODEL_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MEASURE_SAMPLES_MAX 512
#define MEASURE_CHUNK 256 /* operations between two looks at the clock: whole periods of every variant of work.c */

/* Runs n operations of thread `id`, the first of which is its `first`th of this sample. */
typedef void (*measure_fn)(void *arg, unsigned int id, uint64_t first, uint64_t n);

struct measured {
	double min, median;
	unsigned int samples, tries;
};

struct measure_thread {
	measure_fn fn;
	void *arg;
	pthread_barrier_t *barrier;
	volatile int *ready;
	unsigned int id, threads;
	double budget; /* ns */
	double start, end, cpu;
	uint64_t done;
};

static inline double measure_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void *measure_thread_run(void *arg)
{
	struct measure_thread *t = arg;
	double cpu;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->id, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	t->fn(t->arg, t->id, 0, MEASURE_CHUNK); /* pages, predictors */
	t->done = MEASURE_CHUNK;
	(void)pthread_barrier_wait(t->barrier);
	/* Together, as well as two can. */
	(void)__atomic_fetch_add(t->ready, 1, __ATOMIC_SEQ_CST);
	while (*t->ready < (int)t->threads)
		;
	cpu = measure_clock(CLOCK_THREAD_CPUTIME_ID);
	t->start = measure_clock(CLOCK_MONOTONIC);
	do {
		t->fn(t->arg, t->id, t->done, MEASURE_CHUNK);
		t->done += MEASURE_CHUNK;
		t->end = measure_clock(CLOCK_MONOTONIC);
	} while (t->end - t->start < t->budget);
	t->cpu = measure_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	t->done -= MEASURE_CHUNK;
	return NULL;
}

/* One sample: ns an operation, CPU time of all threads; or a negative number when it was disturbed. */
static inline double measure_once(measure_fn fn, void *arg, unsigned int threads, double budget)
{
	struct measure_thread t[2];
	pthread_barrier_t barrier;
	pthread_t id[2];
	volatile int ready = 0;
	double cpu = 0, from, to;
	uint64_t done = 0;
	unsigned int i;
	int bad = 0;

	pthread_barrier_init(&barrier, NULL, threads);
	for (i = 0; i < threads; i++) {
		t[i] = (struct measure_thread){ fn, arg, &barrier, &ready, i, threads, budget, 0, 0, 0, 0 };
		if (pthread_create(&id[i], NULL, measure_thread_run, &t[i]) != 0) {
			fprintf(stderr, "model: can't start a thread\n");
			exit(1);
		}
	}
	for (i = 0; i < threads; i++) {
		(void)pthread_join(id[i], NULL);
		cpu += t[i].end - t[i].start;
		done += t[i].done;
		bad |= t[i].end - t[i].start > 1.03 * t[i].cpu + 2000;
	}
	pthread_barrier_destroy(&barrier);
	if (threads == 2) {
		from = t[0].start > t[1].start ? t[0].start : t[1].start;
		to = t[0].end < t[1].end ? t[0].end : t[1].end;
		bad |= to - from < 0.95 * budget;
	}
	return bad ? -1 : cpu / (double)done;
}

static inline int measure_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline struct measured measure(measure_fn fn, void *arg, unsigned int threads, unsigned int samples, double budget)
{
	static double v[MEASURE_SAMPLES_MAX];
	struct measured m = { 0, 0, 0, 0 };

	samples = samples > MEASURE_SAMPLES_MAX ? MEASURE_SAMPLES_MAX : samples;
	for (; m.samples < samples && m.tries < 6 * samples; m.tries++) {
		double ns = measure_once(fn, arg, threads, budget);

		if (ns > 0)
			v[m.samples++] = ns;
	}
	if (m.samples == 0)
		return m;
	qsort(v, m.samples, sizeof(v[0]), measure_compare);
	m.min = v[0];
	m.median = v[m.samples / 2];
	return m;
}

#endif /* MODEL_MEASURE_H */
