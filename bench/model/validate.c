/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * validate.c - times the variants of work.c on one and two real CPUs.
 *
 *	validate SAMPLES
 *
 * Output, tab-separated: measured VARIANT THREADS MIN_NS MEDIAN_NS SAMPLES TRIES. A
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

int main(int argc, char **argv)
{
	unsigned int samples = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	unsigned int threads, i, cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	struct measured m;

	if (samples < 1) {
		fprintf(stderr, "usage: validate SAMPLES\n");
		return 2;
	}
	work_set_up(2);
	for (threads = 1; threads <= 2 && threads <= cpus; threads++) {
		for (i = 0; i < WORKS; i++) {
			const struct work *w = &works[i];

			m = measure(run, (void *)(uintptr_t)w, threads, samples, 1e6, work_flush);
			printf("measured\t%s\t%u\t%.3f\t%.3f\t%u\t%u\n", w->name, threads, m.min, m.median, m.samples, m.tries);
			fflush(stdout);
			if (w->balanced && w->total() != 0) {
				fprintf(stderr, "validate: %s: %lld left\n", w->name, (long long)w->total());
				return 1;
			}
		}
	}
	return 0;
}
