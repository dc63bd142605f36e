/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - puts the benches' outputs (see out.h) together:
 *
 *	report merge MACHINE.json SECTION.json... > results.json
 *	report verdicts RESULTS.json        the ratios, what is wanted, and whether it was reached
 *	report markdown RESULTS.json        the same for README.md
 *	report plots RESULTS.json DIR       a gnuplot script for each plot
 *	report compare OLD.json NEW.json    ratio by ratio and row by row
 */
#include "json.h"

/* What is wanted. contended: counts only where a line takes its time to get to the other CPU. */
static const struct wanted {
	const char *name;
	int at_least;
	double limit;
	int contended;
} wanted[] = {
	{ "add64_vs_bare_b1024", 0, 1.5, 0 },
	{ "add64_vs_bare_b64", 0, 2.0, 0 },
	{ "add64_vs_sched_getcpu_line", 1, 7, 0 },
	{ "add64_2t_vs_shared_atomic", 1, 30, 1 },
	{ "pair_vs_bare", 0, 5.5, 0 },
	{ "pair_vs_atomics_1t", 1, 6, 0 },
	{ "pair_depth3_vs_atomics_1t", 1, 12, 0 },
	{ "pair_vs_atomics_2t", 1, 25, 1 },
	{ "pair7_vs_pair1", 0, 1.4, 0 },
	{ "pair64_vs_atomics_2t", 1, 0.8, 1 },
	{ "pair_depth8_vs_depth1", 0, 1.05, 0 },
	{ "stats_depth8_cold_cached_vs_walk", 0, 0.75, 0 },
	{ "stats_per_level_vs_bare_rseq", 0, 2, 0 },
	{ "sum_512_vs_plain_loop", 0, 1.15, 0 },
	{ "drain_owner_us_over_membarrier", 0, 2, 0 },
	{ "bytes_per_counter_2cpu", 0, 64, 0 },
	{ "million_counters_seconds", 0, 1, 0 },
	{ "generic_pair_vs_atomics_2t", 1, 4, 1 },
	{ "replay_000_off_to_on", 0, 0.42, 0 },
	{ "model_error_1cpu_max", 0, 0.25, 0 },
	{ "model_error_2cpu_max", 0, 0.25, 0 },
};

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))
#define TRANSFER "line_transfer_ns"
#define TRANSFER_LEAST 40.0

static struct json *must_read(const char *path)
{
	struct json *v = json_read(path);

	if (v == NULL) {
		fprintf(stderr, "report: %s: can't be read as JSON\n", path);
		exit(2);
	}
	return v;
}

static const struct wanted *wanted_of(const char *name)
{
	size_t i;

	for (i = 0; i < WANTED; i++)
		if (strcmp(wanted[i].name, name) == 0)
			return &wanted[i];
	return NULL;
}

/* ---- merge ---- */

/* All ratios in one object; the line transfer is that of the limits, the sections keep theirs. */
static void merge_ratios(int n, char **paths)
{
	const char *comma = "";
	int i;

	printf("],\n\"ratios\":{");
	for (i = 0; i < n; i++) {
		const struct json *section = must_read(paths[i]), *r = json_first(json_get(section, "ratios"));

		for (; r != NULL; r = r->next) {
			if (r->kind != JSON_NUMBER || (strcmp(r->key, TRANSFER) == 0 && strcmp(json_text(section, "section", ""), "limits") != 0))
				continue;
			printf("%s\n  \"%s\":%.4g", comma, r->key, r->number);
			comma = ",";
		}
	}
	printf("\n}}\n");
}

static int merge(int n, char **paths)
{
	const char *comma = "";
	char *text = json_slurp(paths[0]);
	int i;

	if (text == NULL)
		return 2;
	printf("{\"machine\":%s,\n\"sections\":[", text);
	for (i = 1; i < n; i++) {
		(void)must_read(paths[i]);
		printf("%s\n%s", comma, json_slurp(paths[i]));
		comma = ",";
	}
	merge_ratios(n - 1, paths + 1);
	return 0;
}

/* ---- verdicts ---- */

/* The section that a ratio comes from. */
static const struct json *section_of(const struct json *results, const char *ratio)
{
	const struct json *s = json_first(json_get(results, "sections"));

	while (s != NULL && json_get(json_get(s, "ratios"), ratio) == NULL)
		s = s->next;
	return s;
}

static const char *verdict(const struct json *results, const struct wanted *w, double value)
{
	double transfer = json_number(json_get(section_of(results, w->name), "ratios"), TRANSFER, 0);

	if (w->contended && transfer < TRANSFER_LEAST)
		return "not counted: a line gets to the other CPU in less than 40 ns";
	return (w->at_least ? value >= w->limit : value <= w->limit) ? "ok" : "SHORT";
}

/* Ratios that nothing is wanted of; the peers' are in their tables. */
static void others(const struct json *ratios)
{
	const struct json *r;
	unsigned int peers = 0;

	for (r = json_first(ratios); r != NULL; r = r->next)
		if (strncmp(r->key, "peers_", 6) == 0)
			peers++;
		else if (wanted_of(r->key) == NULL)
			printf("%-44s %10.4g\n", r->key, r->number);
	if (peers > 0)
		printf("and %u of the peers, see their tables\n", peers);
}

static void warnings(const struct json *results)
{
	const struct json *s, *note;

	for (s = json_first(json_get(results, "sections")); s != NULL; s = s->next)
		for (note = json_first(json_get(s, "notes")); note != NULL; note = note->next)
			if (note->kind == JSON_STRING && (strncmp(note->text, "WRONG", 5) == 0 || strstr(note->text, "was busy") != NULL))
				printf("%s: %s\n", json_text(s, "section", "?"), note->text);
}

static int verdicts(const char *path, int markdown)
{
	const struct json *results = must_read(path), *ratios = json_get(results, "ratios");
	const char *row = markdown ? "| %s | %.3g | %s %g | %s |\n" : "%-44s %10.4g   %s %-6g %s\n";
	size_t i;

	if (!markdown)
		others(ratios);
	if (!markdown)
		printf("\n%-44s %10s   %-9s\n", "ratio", "here", "wanted");
	else
		printf("| ratio | here | wanted | |\n|---|---|---|---|\n");
	for (i = 0; i < WANTED; i++) {
		const struct wanted *w = &wanted[i];
		const struct json *r = json_get(ratios, w->name);

		printf(row, w->name, r == NULL ? 0 : r->number, w->at_least ? ">=" : "<=", w->limit,
		       r == NULL ? "not measured here" : verdict(results, w, r->number));
	}
	if (!markdown)
		warnings(results);
	return 0;
}

/* ---- plots ---- */

static void series_data(FILE *f, const struct json *series)
{
	const struct json *s, *p;

	for (s = series; s != NULL; s = s->next) {
		for (p = json_first(json_get(s, "points")); p != NULL; p = p->next)
			if (p->first != NULL && p->first->next != NULL)
				fprintf(f, "%g %g\n", p->first->number, p->first->next->number);
		fprintf(f, "e\n");
	}
}

static int plot(const struct json *p, const char *dir)
{
	const char *name = json_text(p, "file", "plot"), *log = json_text(p, "log", "");
	const struct json *s, *series = json_first(json_get(p, "series"));
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s.gp", dir, name);
	f = fopen(path, "w");
	if (f == NULL) {
		perror(path);
		return 2;
	}
	fprintf(f, "set terminal svg size 800,500 font 'sans,13' background 'white'\nset output '%s/%s.svg'\n", dir, name);
	fprintf(f, "set title \"%s\"\nset xlabel \"%s\"\nset ylabel \"%s\"\n", json_text(p, "title", name), json_text(p, "x", ""),
		json_text(p, "y", ""));
	if (log[0] != '\0')
		fprintf(f, "set logscale %s\n", log);
	fprintf(f, "set grid\nset key outside bottom center horizontal\nset yrange [%s:*]\nplot ", strchr(log, 'y') != NULL ? "*" : "0");
	for (s = series; s != NULL; s = s->next)
		fprintf(f, "%s'-' using 1:2 with linespoints linewidth 2 title \"%s\"", s == series ? "" : ", ", json_text(s, "name", ""));
	fprintf(f, "\n");
	series_data(f, series);
	return fclose(f) == 0 ? 0 : 2;
}

static int plots(const char *path, const char *dir)
{
	const struct json *s = json_first(json_get(must_read(path), "sections")), *p;
	int status = 0;

	for (; s != NULL; s = s->next)
		for (p = json_first(json_get(s, "plots")); p != NULL; p = p->next)
			status |= plot(p, dir);
	return status;
}

/* ---- compare ---- */

static void compare_line(const char *name, double old, double now)
{
	double percent = old != 0 ? 100 * (now / old - 1) : 0;

	printf("%-64.64s %10.4g %10.4g %+8.1f %%%s\n", name, old, now, percent, percent > 10 || percent < -10 ? "  <--" : "");
}

/* The row of the same name, threads and unit. */
static const struct json *same_row(const struct json *rows, const struct json *row)
{
	for (; rows != NULL; rows = rows->next)
		if (strcmp(json_text(rows, "name", ""), json_text(row, "name", "?")) == 0 &&
		    strcmp(json_text(rows, "unit", ""), json_text(row, "unit", "?")) == 0 &&
		    json_number(rows, "threads", 0) == json_number(row, "threads", -1))
			break;
	return rows;
}

static void compare_rows(const struct json *old, const struct json *now)
{
	const struct json *s, *t, *row, *was;

	for (s = json_first(json_get(now, "sections")); s != NULL; s = s->next) {
		t = json_first(json_get(old, "sections"));
		while (t != NULL && strcmp(json_text(t, "section", ""), json_text(s, "section", "?")) != 0)
			t = t->next;
		for (row = json_first(json_get(s, "rows")); row != NULL; row = row->next) {
			double a, b = json_number(row, "median", 0);
			char name[160];

			was = t == NULL ? NULL : same_row(json_first(json_get(t, "rows")), row);
			a = was == NULL ? 0 : json_number(was, "median", 0);
			if (a == 0 || (b <= 1.1 * a && b >= 0.9 * a))
				continue;
			(void)snprintf(name, sizeof(name), "%s: %s, %gT, %s", json_text(s, "section", "?"), json_text(row, "name", "?"),
				       json_number(row, "threads", 0), json_text(row, "unit", ""));
			compare_line(name, a, b);
		}
	}
}

static int compare(const char *old_path, const char *now_path)
{
	const struct json *old = must_read(old_path), *now = must_read(now_path), *r, *was;

	printf("%-64s %10s %10s %10s\n", "ratio (<--: more than 10 %)", "old", "new", "change");
	for (r = json_first(json_get(now, "ratios")); r != NULL; r = r->next) {
		was = json_get(json_get(old, "ratios"), r->key);
		if (was == NULL)
			printf("%-64s %10s %10.4g\n", r->key, "-", r->number);
		else
			compare_line(r->key, was->number, r->number);
	}
	for (r = json_first(json_get(old, "ratios")); r != NULL; r = r->next)
		if (json_get(json_get(now, "ratios"), r->key) == NULL)
			printf("%-64s %10.4g %10s\n", r->key, r->number, "-");
	printf("\n%-64s %10s %10s %10s\n", "rows that changed by more than 10 %", "old", "new", "change");
	compare_rows(old, now);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "merge") == 0)
		return merge(argc - 2, argv + 2);
	if (argc == 3 && strcmp(argv[1], "verdicts") == 0)
		return verdicts(argv[2], 0);
	if (argc == 3 && strcmp(argv[1], "markdown") == 0)
		return verdicts(argv[2], 1);
	if (argc == 4 && strcmp(argv[1], "plots") == 0)
		return plots(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "compare") == 0)
		return compare(argv[2], argv[3]);
	fprintf(stderr, "usage: report merge MACHINE.json SECTION.json... | verdicts RESULTS | markdown RESULTS | plots RESULTS DIR | compare OLD NEW\n");
	return 2;
}
