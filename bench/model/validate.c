/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * validate.c - times the variants of work.c on one and two real CPUs.
 *
 *	validate SAMPLES
 *
 * Output, tab-separated: measured VARIANT THREADS MIN_NS MEDIAN_NS SAMPLES ROUNDS. A
 * wrong total ends it with an error: no variant wins by losing updates.
 */
#include "work.h"

#include "measure.h"

static void run(void *arg, unsigned int id, uint64_t first, uint64_t n)
{
	const struct work *w = arg;

	work_cpu = id;
	w->run(id, first, n);
}

static double values[2][WORKS][MEASURE_SAMPLES_MAX];
static unsigned int taken[2][WORKS];

/* One more sample, if one of a few is good; false: the total is wrong. */
static int sample(unsigned int i, unsigned int threads)
{
	const struct work *w = &works[i];
	double ns = -1;
	int tries;

	for (tries = 0; ns < 0 && tries < 4; tries++) {
		ns = measure_once(run, (void *)(uintptr_t)w, threads, 1e6);
		work_flush();
	}
	if (ns > 0)
		values[threads - 1][i][taken[threads - 1][i]++] = ns;
	if (w->balanced && w->total() != 0) {
		fprintf(stderr, "validate: %s: %lld left\n", w->name, (long long)w->total());
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	unsigned int samples = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	unsigned int threads, i, r;

	if (samples < 1 || samples > MEASURE_SAMPLES_MAX) {
		fprintf(stderr, "usage: validate SAMPLES\n");
		return 2;
	}
	work_set_up(2);
	/* In turn, so that a busy second hits all alike. */
	for (r = 0; r < samples; r++)
		for (threads = 1; threads <= 2; threads++)
			for (i = 0; i < WORKS; i++)
				if (!sample(i, threads))
					return 1;
	for (threads = 1; threads <= 2; threads++) {
		for (i = 0; i < WORKS; i++) {
			unsigned int n = taken[threads - 1][i];
			double *v = values[threads - 1][i];

			qsort(v, n, sizeof(v[0]), measure_compare);
			printf("measured\t%s\t%u\t%.3f\t%.3f\t%u\t%u\n", works[i].name, threads, n > 0 ? v[0] : 0,
			       n > 0 ? v[n / 2] : 0, n, samples);
		}
	}
	return 0;
}
