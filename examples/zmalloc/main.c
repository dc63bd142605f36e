/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the ways of counting used_memory under the load of load.c, in interleaved rounds. Exit
 * status 1 when a counter was ever wrong: the figures are no test, the audits are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define ROUNDS_MAX 99
enum { ALONE, TOGETHER, EVICTING, CASES };

struct options {
	unsigned long rounds, threads, commands, megabytes;
	bool json;
};

struct figure {
	double ns[ROUNDS_MAX];
	struct load_result last;
};

static int usage(void)
{
	(void)fprintf(stderr,
		      "usage: zmalloc [--rounds 1..%d] [--threads 1..%d] [--commands 1000..100000000] [--mb 1..4096] [--json]\n"
		      "Threads that cache values below maxmemory (--mb) count used_memory in three ways; each round runs\n"
		      "every way with one thread and with --threads (default: 15 rounds, 4 threads, 40000 commands, 12 MiB).\n",
		      ROUNDS_MAX, LOAD_THREADS_MAX);
	return 2;
}

static bool number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	char *end = NULL;
	unsigned long value = text == NULL || *text < '0' || *text > '9' ? 0 : strtoul(text, &end, 10);

	if (end == NULL || *end != '\0' || value < min || value > max) {
		(void)fprintf(stderr, "zmalloc: %s wants a number from %lu to %lu, not '%s'\n", name, min, max,
			      text == NULL ? "" : text);
		return false;
	}
	*out = value;
	return true;
}

static bool parse(int argc, char **argv, struct options *o)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool right = true;

		if (strcmp(argv[i], "--json") == 0) {
			o->json = true;
			continue;
		}
		if (strcmp(argv[i], "--rounds") == 0)
			right = number(argv[i], value, 1, ROUNDS_MAX, &o->rounds);
		else if (strcmp(argv[i], "--threads") == 0)
			right = number(argv[i], value, 1, LOAD_THREADS_MAX, &o->threads);
		else if (strcmp(argv[i], "--commands") == 0)
			right = number(argv[i], value, 1000, 100000000, &o->commands);
		else if (strcmp(argv[i], "--mb") == 0)
			right = number(argv[i], value, 1, 4096, &o->megabytes);
		else
			right = false;
		if (!right)
			return false;
		i++;
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, unsigned long n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(double));
	qsort(sorted, n, sizeof(double), by_value);
	return n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* The median over rounds of what counting costs beyond not counting, in the same round. */
static double extra(const struct figure *f, const struct figure *none, unsigned long rounds)
{
	double diff[ROUNDS_MAX];
	unsigned long r;

	for (r = 0; r < rounds; r++)
		diff[r] = f->ns[r] - none->ns[r];
	return median(diff, rounds);
}

static void print_table(const struct options *o, struct figure figure[CASES][VARIANTS])
{
	int c, v;

	(void)printf("CPU time a command (state, allocate or resize, free), ns, median of %lu rounds; maxmemory %lu MiB\n\n", o->rounds,
		     o->megabytes);
	(void)printf("%-8s %-10s %-16s %10s %10s %10s\n", "threads", "maxmemory", "counter", "ns", "counting", "evicted");
	for (c = 0; c < CASES; c++)
		for (v = c == EVICTING ? ATOMIC : NONE; v < VARIANTS; v++) {
			const struct figure *f = &figure[c][v];

			(void)printf("%-8lu %-10s %-16s %10.1f", c == ALONE ? 1 : o->threads, c == EVICTING ? "reached" : "far",
				     variants[v].name(), median(f->ns, o->rounds));
			/* What does not count does not evict, so there is nothing to compare with. */
			if (c == EVICTING)
				(void)printf(" %10s %10llu\n", "", (unsigned long long)f->last.evicted);
			else
				(void)printf(" %10.1f\n", extra(f, &figure[c][NONE], o->rounds));
		}
	(void)printf("\nslack of pcbatch's cheap reading: %zu bytes; one atomic's is none;\n"
		     "the sharded array's has no bound: what others do while it is added up is in it or not\n",
		     variants[PCBATCH].slack());
}

static void print_json(const struct options *o, struct figure figure[CASES][VARIANTS])
{
	int c, v;

	(void)printf("{\"rounds\":%lu,\"commands\":%lu,\"maxmemory\":%lu,\"slack\":%zu,\"rows\":[", o->rounds, o->commands,
		     o->megabytes << 20, variants[PCBATCH].slack());
	for (c = 0; c < CASES; c++)
		for (v = c == EVICTING ? ATOMIC : NONE; v < VARIANTS; v++) {
			const struct figure *f = &figure[c][v];

			(void)printf("%s\n{\"threads\":%lu,\"counter\":\"%s\",\"ns\":%.2f,\"counting_ns\":%.2f,"
				     "\"evicted\":%llu,\"wrong\":%llu}",
				     c + v == 0 ? "" : ",", c == ALONE ? 1 : o->threads, variants[v].name(),
				     median(f->ns, o->rounds), c == EVICTING ? 0.0 : extra(f, &figure[c][NONE], o->rounds),
				     (unsigned long long)f->last.evicted, (unsigned long long)f->last.wrong);
		}
	(void)printf("]}\n");
}

int main(int argc, char **argv)
{
	static struct figure figure[CASES][VARIANTS];
	struct options o = { 15, 4, 40000, 12, false };
	uint64_t wrong = 0;
	unsigned long r;
	int c, v, i;

	if (!parse(argc, argv, &o))
		return usage();
	for (r = 0; r < o.rounds; r++) {
		for (c = 0; c < CASES; c++)
			for (i = 0; i < VARIANTS; i++) {
				/* Another one begins each round. */
				v = (i + (int)r) % VARIANTS;
				if (c == EVICTING && v == NONE)
					continue;
				figure[c][v].last = load_run(&variants[v], c == ALONE ? 1 : (unsigned int)o.threads, o.commands,
							     c == EVICTING ? (size_t)o.megabytes << 20 : SIZE_MAX);
				figure[c][v].ns[r] = figure[c][v].last.ns;
				wrong += figure[c][v].last.wrong;
			}
		if (isatty(2))
			(void)fprintf(stderr, "\rround %lu of %lu", r + 1, o.rounds);
	}
	if (isatty(2))
		(void)fprintf(stderr, "\r%30s\r", "");
	if (o.json)
		print_json(&o, figure);
	else
		print_table(&o, figure);
	if (wrong != 0)
		(void)fprintf(stderr, "zmalloc: %llu audits failed\n", (unsigned long long)wrong);
	else if (!o.json)
		(void)printf("every audit exact\n");
	return wrong != 0;
}
