/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - how the benches measure.
 *
 * A workload is one loop, compiled several times at different offsets in the code
 * (placement alone can double a short loop's time). A sample is CPU time per
 * operation of one placement; rounds go over all workloads in turn, so that a busy
 * moment hits them alike. A sample during which the threads did not have their CPUs
 * to themselves (wall time against CPU time, over all threads) is taken again, up to
 * BENCH_TRIES times, and counts only where no quiet one could be had. A workload's
 * figure is the median over placements of each placement's best sample (contended
 * ones: of its median, since a partner that was descheduled makes a sample look good).
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
#define BENCH_TRIES 4
#define BENCH_QUIET 0.95 /* of its CPUs that a sample must have had; 0.9 with several threads */
#define BENCH_UNUSED __attribute__((unused))

typedef void (*bench_fn)(void *arg, long n);

struct bench_work {
	const char *name;
	bench_fn place[BENCH_PLACES];
	void *arg;
	unsigned int threads;
	long n; /* operations a sample and thread */
	double sample[BENCH_PLACES][BENCH_ROUNDS_MAX];
	unsigned int samples;
	double ns;                 /* the figure */
	void (*before)(void *arg); /* not timed; by the first thread */
	double min;
	unsigned long long done; /* operations of all samples, those taken again included: what totals must show */
	unsigned int disturbed;  /* samples that count though they were */
	unsigned char noisy[BENCH_PLACES][BENCH_ROUNDS_MAX];
};

/* Shifts the loop that follows: 0, 11, 22 ... bytes. */
#if defined(__x86_64__)
#define BENCH_SHIFT(place) __asm__ __volatile__(".skip %c0, 0x90" : : "i"(place * 11 + 1))
#else
#define BENCH_SHIFT(place) __asm__ __volatile__(".skip %c0" : : "i"(place * 8))
#endif

#define BENCH_KERNEL_AT(name, place, setup, op)                                                      \
	static __attribute__((noinline, aligned(64))) void name##_##place(void *arg, long n)         \
	{                                                                                            \
		setup;                                                                               \
		long i;                                                                              \
                                                                                                     \
		(void)arg;                                                                           \
		BENCH_SHIFT(place);                                                                  \
		for (i = 0; i < n; i++) {                                                            \
			op;                                                                          \
		}                                                                                    \
	}

/* The loop over `op` (with i, n, arg and what `setup` declares), at every placement. */
#define BENCH_KERNEL(name, setup, op)                                                                          \
	BENCH_KERNEL_AT(name, 0, setup, op)                                                                    \
	BENCH_KERNEL_AT(name, 1, setup, op) BENCH_KERNEL_AT(name, 2, setup, op) BENCH_KERNEL_AT(name, 3, setup, op) \
	BENCH_KERNEL_AT(name, 4, setup, op) BENCH_KERNEL_AT(name, 5, setup, op) BENCH_KERNEL_AT(name, 6, setup, op)

#define BENCH_PLACED(name) { name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 }
#define BENCH_WORK(text, kernel, data, t, count) \
	{ .name = text, .place = BENCH_PLACED(kernel), .arg = data, .threads = t, .n = count }

/* Keeps the compiler from removing what computes `value`. */
#define BENCH_KEEP(value) __asm__ __volatile__("" : : "r"(value) : "memory")

/* Which of a sample's threads this is. */
static __thread unsigned int bench_self BENCH_UNUSED;

static inline double bench_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Asked once: it reads a file. */
static inline unsigned int bench_cpus(void)
{
	static unsigned int cpus;

	if (__atomic_load_n(&cpus, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&cpus, (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), __ATOMIC_RELAXED);
	return __atomic_load_n(&cpus, __ATOMIC_RELAXED);
}

static inline void bench_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static inline void bench_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

/* Zeroed, on a line of its own; or the program ends. */
static inline void *bench_alloc(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (p == NULL)
		bench_die("out of memory");
	memset(p, 0, (size + 63) & ~(size_t)63);
	return p;
}

struct bench_thread {
	struct bench_work *work;
	pthread_barrier_t *barrier;
	unsigned int *arrived;
	unsigned int place, cpu, self;
	double ns, start, end;
};

static inline void *bench_thread_run(void *arg)
{
	struct bench_thread *t = arg;
	double start;

	bench_pin(t->cpu);
	bench_self = t->self;
	if (t->self == 0 && t->work->before != NULL)
		t->work->before(t->work->arg);
	(void)pthread_barrier_wait(t->barrier);
	/* Waking takes longer than many a sample: where each has a CPU they spin for each other. */
	(void)__atomic_add_fetch(t->arrived, 1, __ATOMIC_ACQ_REL);
	while (t->work->threads <= bench_cpus() && __atomic_load_n(t->arrived, __ATOMIC_ACQUIRE) < t->work->threads)
		;
	t->start = bench_ns(CLOCK_MONOTONIC);
	start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
	t->work->place[t->place](t->work->arg, t->work->n);
	t->ns = bench_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	t->end = bench_ns(CLOCK_MONOTONIC);
	return NULL;
}

/* CPU time per operation of all threads together; share: how much of its CPUs the sample had. */
static inline double bench_sample_share(struct bench_work *work, unsigned int place, double *share)
{
	struct bench_thread t[BENCH_THREADS_MAX];
	pthread_t id[BENCH_THREADS_MAX];
	pthread_barrier_t barrier;
	unsigned int i, cpus = bench_cpus(), arrived = 0;
	double sum = 0, first = 0, last = 0;

	pthread_barrier_init(&barrier, NULL, work->threads);
	for (i = 0; i < work->threads; i++) {
		t[i] = (struct bench_thread){ work, &barrier, &arrived, place, (cpus - 1 + i) % cpus, i, 0, 0, 0 };
		if (pthread_create(&id[i], NULL, bench_thread_run, &t[i]) != 0)
			bench_die("can't start a thread");
	}
	for (i = 0; i < work->threads; i++) {
		(void)pthread_join(id[i], NULL);
		sum += t[i].ns;
		first = i == 0 || t[i].start < first ? t[i].start : first;
		last = i == 0 || t[i].end > last ? t[i].end : last;
	}
	pthread_barrier_destroy(&barrier);
	work->done += (unsigned long long)work->n * work->threads;
	*share = sum / ((last - first) * (work->threads < cpus ? work->threads : cpus));
	return sum / ((double)work->n * work->threads);
}

static inline double bench_sample(struct bench_work *work, unsigned int place)
{
	double share;

	return bench_sample_share(work, place, &share);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double bench_median(double *v, unsigned int n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), bench_compare);
	return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static inline void bench_figure(struct bench_work *work)
{
	double best[BENCH_PLACES], quiet[BENCH_ROUNDS_MAX];
	unsigned int p, r, n, places = 0, kept = 0;

	work->min = 0;
	work->disturbed = 0;
	for (p = 0; p < BENCH_PLACES && work->place[p] != NULL; p++) {
		for (n = 0, r = 0; r < work->samples; r++)
			if (!work->noisy[p][r])
				quiet[n++] = work->sample[p][r];
		if (n == 0) {
			memcpy(quiet, work->sample[p], sizeof(quiet[0]) * work->samples);
			n = work->samples;
			work->disturbed += n;
		}
		best[places] = bench_median(quiet, n);
		if (work->threads == 1)
			best[places] = quiet[0];
		if (kept == 0 || quiet[0] < work->min)
			work->min = quiet[0];
		kept += n;
		places++;
	}
	work->ns = bench_median(best, places);
}

static inline void bench_take(struct bench_work *work, unsigned int place, unsigned int round)
{
	double limit = work->threads > 1 ? 0.9 : BENCH_QUIET, share = 0, ns = 0;
	unsigned int tries;

	for (tries = 0; tries < BENCH_TRIES && share < limit; tries++)
		ns = bench_sample_share(work, place, &share);
	work->sample[place][round] = ns;
	work->noisy[place][round] = share < limit;
}

/* Runs `rounds` rounds over all works; progress on a terminal. */
static inline void bench_run(struct bench_work *work, unsigned int works, unsigned int rounds)
{
	unsigned int r, w, p;

	for (r = 0; r < rounds; r++) {
		for (w = 0; w < works; w++) {
			if (isatty(2))
				fprintf(stderr, "\rround %u of %u: %-48.48s", r + 1, rounds, work[w].name);
			for (p = 0; p < BENCH_PLACES && work[w].place[p] != NULL; p++)
				bench_take(&work[w], p, r);
			work[w].samples = r + 1;
		}
	}
	if (isatty(2))
		fprintf(stderr, "\r%72s\r", "");
	for (w = 0; w < works; w++)
		bench_figure(&work[w]);
}

/* ---- the line transfer that contended figures stand and fall with ---- */

#define BENCH_BATS 4000
#define BENCH_GAMES 60

static inline void bench_bat(volatile uint64_t *ball, uint64_t odd, double *stamp)
{
	uint64_t i;

	for (i = odd; i < BENCH_BATS * BENCH_GAMES; i += 2) {
		while (__atomic_load_n(ball, __ATOMIC_ACQUIRE) != i)
			;
		if (stamp != NULL && i % BENCH_BATS == 0)
			stamp[i / BENCH_BATS] = bench_ns(CLOCK_MONOTONIC);
		__atomic_store_n(ball, i + 1, __ATOMIC_RELEASE);
	}
}

static inline void *bench_bat_other(void *arg)
{
	bench_pin(1);
	bench_bat(arg, 1, NULL);
	return NULL;
}

/*
 * ns for a line to get from one CPU to the other, one way: two threads write it in turn.
 * The lower quartile of many games, since whoever comes in between only makes one longer. 0: one CPU only.
 */
static inline double bench_line_transfer(void)
{
	double stamp[BENCH_GAMES], ns[BENCH_GAMES];
	uint64_t *ball = bench_alloc(64);
	pthread_t other;
	cpu_set_t set;
	unsigned int i;

	if (bench_cpus() < 2 || sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	bench_pin(0);
	if (pthread_create(&other, NULL, bench_bat_other, ball) != 0)
		bench_die("can't start a thread");
	bench_bat(ball, 0, stamp);
	(void)pthread_join(other, NULL);
	(void)sched_setaffinity(0, sizeof(set), &set);
	free(ball);
	for (i = 0; i + 1 < BENCH_GAMES; i++)
		ns[i] = (stamp[i + 1] - stamp[i]) / BENCH_BATS;
	(void)bench_median(ns, BENCH_GAMES - 1);
	return ns[BENCH_GAMES / 4];
}

#endif /* PCBATCH_BENCH_H */
