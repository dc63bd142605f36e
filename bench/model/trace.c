/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - runs N virtual CPUs one after another, operation by operation, round
 * robin, for valgrind's memory trace. A store to mark[c] says that what follows is
 * CPU c's next operation (the address is the message: the trace has no values), to
 * mark[MARK_NONE] that it is nobody's, to mark[MARK_RUN] that the map file has
 * another section, for what comes next.
 *
 * Before anything is marked, the CPUs are spread evenly over the variant's period, so
 * that a short piece has folds and refills as often as a long run: CPU 0 runs through
 * a period, and each CPU is given the counts of CPU 0's lines at its own phase.
 *
 *	trace --mark				prints the address of mark
 *	trace --list				prints the variants
 *	trace VARIANT MAPFILE CPUS:OPS...	OPS: of all CPUs together
 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#define MARK_NONE WORK_CPUS_MAX
#define MARK_RUN (WORK_CPUS_MAX + 1)

static volatile char mark[WORK_CPUS_MAX + 2] __attribute__((aligned(64)));
static uint64_t done[WORK_CPUS_MAX];

static void step(const struct work *w, uint32_t c, uint64_t n)
{
	work_cpu = c;
	w->run(c, done[c], n);
	done[c] += n;
}

static void print_map(FILE *out, const struct work *w, uint32_t cpus, uint64_t rounds)
{
	const uintptr_t stack = (uintptr_t)__builtin_frame_address(0), tls = (uintptr_t)&work_cpu;

	fprintf(out, "run %s %u %llu %u\n", w->name, cpus, (unsigned long long)rounds, work_period(w));
	/* What a thread has for itself, and the virtual CPUs share because they are one thread. */
	fprintf(out, "private %lx %lx\n", (unsigned long)stack - 65536, (unsigned long)stack + 65536);
	fprintf(out, "private %lx %lx\n", (unsigned long)tls - 1024, (unsigned long)tls + 4096);
	fprintf(out, "private %lx %lx\n", (unsigned long)(uintptr_t)done, (unsigned long)(uintptr_t)(done + WORK_CPUS_MAX));
	work_print_lines(out, cpus);
	fprintf(out, "end\n");
	if (fflush(out) != 0) {
		perror("trace: map");
		exit(1);
	}
}

/* Puts CPU c at c / cpus of the period. */
static void spread(const struct work *w, uint32_t cpus, uint32_t period)
{
	uint32_t c, r;

	/* Slots taken, statistics armed. */
	for (c = 0; c < cpus; c++) {
		done[c] = 0;
		step(w, c, 1);
	}
	step(w, 0, 2 * (uint64_t)period - 1);
	for (r = 0, c = 1; r < period; r++) {
		for (; c < cpus && (uint64_t)c * period / cpus == r; c++) {
			work_clone(c);
			done[c] = done[0];
		}
		step(w, 0, 1);
	}
}

static void run(FILE *map, const struct work *w, uint32_t cpus, uint64_t ops)
{
	uint64_t r, rounds;
	uint32_t c, period;

	work_set_up(cpus);
	period = work_period(w);
	/* More than one CPU should come to its rarest event. */
	ops = ops < 2 * (uint64_t)period ? 2 * (uint64_t)period : ops;
	rounds = ops / cpus;
	print_map(map, w, cpus, rounds);
	spread(w, cpus, period);
	mark[MARK_RUN] = 1;
	for (r = 0; r < rounds; r++) {
		for (c = 0; c < cpus; c++) {
			mark[c] = 1;
			step(w, c, 1);
			mark[MARK_NONE] = 1;
		}
	}
}

int main(int argc, char **argv)
{
	const struct work *w = NULL;
	FILE *map;
	char *end;
	uint32_t cpus;
	int i;

	if (argc == 2 && strcmp(argv[1], "--mark") == 0) {
		printf("%lx\n", (unsigned long)(uintptr_t)mark);
		return 0;
	}
	for (i = 0; argc == 2 && strcmp(argv[1], "--list") == 0 && i < WORKS; i++)
		printf("%s\n", works[i].name);
	if (i == WORKS)
		return 0;
	for (i = 0; argc >= 4 && i < WORKS; i++)
		if (strcmp(works[i].name, argv[1]) == 0)
			w = &works[i];
	if (w == NULL) {
		fprintf(stderr, "usage: trace VARIANT MAPFILE CPUS:OPS...\n");
		return 2;
	}
	map = fopen(argv[2], "w");
	if (map == NULL) {
		perror(argv[2]);
		return 1;
	}
	run(map, &work_empty, 1, 64);
	for (i = 3; i < argc; i++) {
		cpus = (uint32_t)strtoul(argv[i], &end, 10);
		if (cpus < 1 || cpus > WORK_CPUS_MAX || (cpus & (cpus - 1)) != 0 || *end != ':') {
			fprintf(stderr, "trace: %s: CPUS is a power of two up to %d\n", argv[i], WORK_CPUS_MAX);
			return 2;
		}
		run(map, w, cpus, strtoull(end + 1, NULL, 10));
	}
	return fclose(map) == 0 ? 0 : 1;
}
