/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - what every bench says, in the same words: a table on stdout and, with
 * --json FILE, the same for bench/report.c:
 *
 *	{"section":"add","backend":"rseq",
 *	 "rows":[{"name":"...","threads":1,"unit":"ns","min":1,"median":1,"samples":9}],
 *	 "ratios":{"stable_name":1.5},"notes":["..."],
 *	 "plots":[{"file":"add_batch","title":"...","x":"...","y":"...","log":"x",
 *	           "series":[{"name":"...","points":[[1,2.5]]}]}]}
 *
 * backend and plots may be missing. log is "", "x", "y" or "xy". Wanted limits of the ratios stand in report.c.
 */
#ifndef PCBATCH_BENCH_OUT_H
#define PCBATCH_BENCH_OUT_H

#include <stdarg.h>

#include "bench.h"

enum { BENCH_OUT_ROWS, BENCH_OUT_RATIOS, BENCH_OUT_NOTES, BENCH_OUT_PLOTS, BENCH_OUT_PARTS };

struct bench_out {
	const char *section, *backend, *path;
	int quick;
	unsigned int rounds;
	FILE *part[BENCH_OUT_PARTS];
	char *text[BENCH_OUT_PARTS];
	size_t size[BENCH_OUT_PARTS];
	unsigned int count[BENCH_OUT_PARTS], series, points, failed;
};

/* Begins an element of a part. */
static inline FILE *bench_out_next(struct bench_out *out, int part)
{
	fprintf(out->part[part], "%s\n    ", out->count[part]++ == 0 ? "" : ",");
	return out->part[part];
}

static inline void bench_out_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if ((unsigned char)*s >= 0x20)
			fputc(*s, f);
	}
	fputc('"', f);
}

/* Options that every bench has: --json FILE, --quick, --rounds N. */
static inline void bench_out_begin(struct bench_out *out, const char *section, int argc, char **argv, unsigned int rounds,
				   unsigned int quick_rounds)
{
	int i, wrong = 0;

	memset(out, 0, sizeof(*out));
	out->section = section;
	for (i = 1; i < argc && !wrong; i++) {
		if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
			out->path = argv[++i];
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			out->rounds = (unsigned int)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--quick") == 0)
			out->quick = 1;
		else
			wrong = 1;
	}
	if (out->rounds == 0)
		out->rounds = out->quick ? quick_rounds : rounds;
	if (wrong || out->rounds > BENCH_ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_%s [--quick] [--rounds 1..%d] [--json FILE]\n", section, BENCH_ROUNDS_MAX);
		exit(2);
	}
	for (i = 0; i < BENCH_OUT_PARTS; i++) {
		out->part[i] = open_memstream(&out->text[i], &out->size[i]);
		if (out->part[i] == NULL)
			bench_die("out of memory");
	}
}

static inline void bench_out_head(const char *title)
{
	printf("\n%-52s %3s %10s %10s\n", title, "T", "min", "median");
}

static inline void bench_out_value(struct bench_out *out, const char *name, unsigned int threads, const char *unit, double min,
				   double median, unsigned int samples)
{
	FILE *f = bench_out_next(out, BENCH_OUT_ROWS);

	printf("%-52s %3u %10.4g %10.4g %s\n", name, threads, min, median, unit);
	fprintf(f, "{\"name\":");
	bench_out_string(f, name);
	fprintf(f, ",\"threads\":%u,\"unit\":\"%s\",\"min\":%.5g,\"median\":%.5g,\"samples\":%u}", threads, unit, min, median,
		samples);
}

/* Prints values of one kind: the sorted median and the least of v[0..n). */
static inline double bench_out_values(struct bench_out *out, const char *name, unsigned int threads, const char *unit, double *v,
				      unsigned int n)
{
	double median = bench_median(v, n);

	bench_out_value(out, name, threads, unit, v[0], median, n);
	return median;
}

static inline unsigned int bench_out_places(const struct bench_work *work)
{
	unsigned int p = 0;

	while (p < BENCH_PLACES && work->place[p] != NULL)
		p++;
	return p;
}

static inline void bench_out_work(struct bench_out *out, const struct bench_work *work)
{
	bench_out_value(out, work->name, work->threads, "ns", work->min, work->ns, work->samples * bench_out_places(work));
}

/* Under a name that results.json keeps for ever. */
static inline void bench_out_ratio(struct bench_out *out, const char *name, double value)
{
	fprintf(bench_out_next(out, BENCH_OUT_RATIOS), "\"%s\":%.4g", name, value);
}

__attribute__((format(printf, 2, 3))) static inline void bench_out_note(struct bench_out *out, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("  %s\n", text);
	bench_out_string(bench_out_next(out, BENCH_OUT_NOTES), text);
}

/* A total is wrong: the run fails, and says why. */
static inline void bench_out_check(struct bench_out *out, const char *what, long long got, long long want)
{
	if (got == want)
		return;
	out->failed = 1;
	bench_out_note(out, "WRONG: %s: %lld instead of %lld", what, got, want);
}

static inline void bench_plot(struct bench_out *out, const char *file, const char *title, const char *x, const char *y,
			      const char *log)
{
	FILE *f = out->part[BENCH_OUT_PLOTS];

	if (out->count[BENCH_OUT_PLOTS] > 0)
		fprintf(f, "]}]}");
	fprintf(bench_out_next(out, BENCH_OUT_PLOTS), "{\"file\":\"%s\",\"title\":\"%s\",\"x\":\"%s\",\"y\":\"%s\",\"log\":\"%s\",\"series\":[",
		file, title, x, y, log);
	out->series = 0;
}

static inline void bench_plot_series(struct bench_out *out, const char *name)
{
	fprintf(out->part[BENCH_OUT_PLOTS], "%s\n      {\"name\":\"%s\",\"points\":[", out->series++ == 0 ? "" : "]},", name);
	out->points = 0;
}

static inline void bench_plot_point(struct bench_out *out, double x, double y)
{
	fprintf(out->part[BENCH_OUT_PLOTS], "%s[%.6g,%.6g]", out->points++ == 0 ? "" : ",", x, y);
}

/* Says how much of all this was measured on a busy machine. */
static inline void bench_out_quiet(struct bench_out *out, const struct bench_work *work, unsigned int works)
{
	unsigned int w, noisy = 0, all = 0;

	for (w = 0; w < works; w++) {
		noisy += work[w].disturbed;
		all += work[w].samples * bench_out_places(&work[w]);
	}
	if (noisy > 0)
		bench_out_note(out, "the machine was busy: %u of %u samples are disturbed ones", noisy, all);
}

/* Writes the file; returns the exit status. */
static inline int bench_out_end(struct bench_out *out)
{
	static const char *const key[BENCH_OUT_PARTS] = { "\"rows\":[", "\"ratios\":{", "\"notes\":[", "\"plots\":[" };
	FILE *f = out->path == NULL ? NULL : fopen(out->path, "w");
	int i;

	if (out->count[BENCH_OUT_PLOTS] > 0)
		fprintf(out->part[BENCH_OUT_PLOTS], "]}]}");
	if (f != NULL) {
		fprintf(f, "{\"section\":\"%s\"", out->section);
		if (out->backend != NULL)
			fprintf(f, ",\"backend\":\"%s\"", out->backend);
	}
	for (i = 0; i < BENCH_OUT_PARTS; i++) {
		(void)fclose(out->part[i]);
		if (f != NULL)
			fprintf(f, ",\n  %s%s\n  %s", key[i], out->text[i], i == BENCH_OUT_RATIOS ? "}" : "]");
		free(out->text[i]);
	}
	if (out->path != NULL && (f == NULL || fprintf(f, "}\n") < 0 || fclose(f) != 0)) {
		perror(out->path);
		return 1;
	}
	return (int)out->failed;
}

#endif /* PCBATCH_BENCH_OUT_H */
