/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* peers_report.c - the peers' tables, their JSON and the command line. */
#include "peers_run.h"

#include <string.h>

/* one counter, 64 in turn, pairs */
static const char *const table_key[] = { "add", "add64", "charge" };
static const char *const table_name[] = { "add(1), one counter", "add(1), 64 counters in turn",
					  "charge + uncharge against a limit" };

#define TABLES ((int)(sizeof(table_key) / sizeof(table_key[0])))

static const struct peers_cell *cells(const struct peers_entry *e, int table)
{
	if ((e->peer->depth > 0) != (table == 2))
		return NULL;
	return e->cell[table == 1];
}

/* pcbatch's row to compare a peer with: its first one with as many levels. */
static const struct peers_entry *yardstick(const struct peers_entry *e)
{
	const struct peers_entry *y;

	for (y = peers_entry; y < peers_entry + peers_count; y++)
		if (y->peer->depth == e->peer->depth && strncmp(y->peer->key, "pcbatch", 7) == 0)
			return y;
	return NULL;
}

/* A peer's time over pcbatch's; 0: there is none. */
static double ratio(const struct peers_entry *e, int table, int count)
{
	const struct peers_entry *y = yardstick(e);

	if (y == NULL || y->wrong || e->wrong)
		return 0;
	return cells(e, table)[count].median / cells(y, table)[count].median;
}

static void print_table(int table)
{
	const struct peers_entry *e;
	const struct peers_cell *c;
	char head[3][24];
	int i;

	for (i = 0; i < PEERS_COUNTS; i++)
		(void)snprintf(head[i], sizeof(head[i]), "%u thread%s", peers_threads[i], i == 0 ? "" : "s");
	printf("\n%-54s %15s %15s %15s %11s\n", table_name[table], head[0], head[1], head[2], "/pcbatch 2T");
	for (e = peers_entry; e < peers_entry + peers_count; e++) {
		c = cells(e, table);
		if (c == NULL)
			continue;
		printf("%-54s", e->peer->name);
		for (i = 0; i < PEERS_COUNTS; i++)
			printf(" %6.2f / %6.2f", c[i].min, c[i].median);
		if (e->wrong)
			printf(" %11s\n", "WRONG");
		else
			printf(" %11.2f\n", ratio(e, table, 1));
	}
}

static void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

static void json_rows(FILE *f)
{
	const struct peers_entry *e;
	const struct peers_cell *c;
	const char *sep = "";
	char name[200];
	int table, i;

	for (table = 0; table < TABLES; table++) {
		for (e = peers_entry; e < peers_entry + peers_count; e++) {
			c = cells(e, table);
			for (i = 0; c != NULL && !e->wrong && i < PEERS_COUNTS; i++) {
				(void)snprintf(name, sizeof(name), "%s: %s", table_name[table], e->peer->name);
				fprintf(f, "%s\n    {\"name\": ", sep);
				json_string(f, name);
				fprintf(f, ", \"threads\": %u, \"unit\": \"ns\", \"min\": %.3f, \"median\": %.3f, \"samples\": %u}",
					peers_threads[i], c[i].min, c[i].median, c[i].samples);
				sep = ",";
			}
		}
	}
}

static void json_ratios(FILE *f)
{
	const struct peers_entry *e;
	const char *sep = "";
	int table, i;

	for (table = 0; table < TABLES; table++) {
		for (e = peers_entry; e < peers_entry + peers_count; e++) {
			if (cells(e, table) == NULL || yardstick(e) == e || !(ratio(e, table, 1) > 0))
				continue;
			for (i = 0; i < PEERS_COUNTS; i++) {
				fprintf(f, "%s\n    \"peers_%s_%s_%ut\": %.3f", sep, table_key[table], e->peer->key,
					peers_threads[i], ratio(e, table, i));
				sep = ",";
			}
		}
	}
}

static int write_json(const char *path, const char *section)
{
	const struct peers_entry *y = yardstick(peers_entry);
	FILE *f = fopen(path, "w");
	unsigned int i;

	if (f == NULL) {
		perror(path);
		return 1;
	}
	fprintf(f, "{\n  \"section\": \"%s\",", section);
	if (y != NULL) /* of the rows that the ratios are over */
		fprintf(f, "\n  \"backend\": \"%s\",", strstr(y->peer->key, "rseq") != NULL ? "rseq" : "generic");
	fprintf(f, "\n  \"rows\": [");
	json_rows(f);
	fprintf(f, "\n  ],\n  \"ratios\": {");
	json_ratios(f);
	fprintf(f, "\n  },\n  \"notes\": [");
	for (i = 0; i < peers_notes; i++) {
		fprintf(f, "%s\n    ", i == 0 ? "" : ",");
		json_string(f, peers_note[i]);
	}
	fprintf(f, "\n  ]\n}\n");
	if (fclose(f) != 0) {
		perror(path);
		return 1;
	}
	return 0;
}

int peers_main(int argc, char **argv, const char *section)
{
	const char *json = NULL;
	unsigned int i, wrong, rounds = 0;
	double target = 6e5;
	int arg, table, quick = 0, bad = 0, err = 0;

	for (arg = 1; arg < argc; arg++) {
		if (strcmp(argv[arg], "--quick") == 0) {
			quick = 1;
		} else if (strcmp(argv[arg], "--json") == 0 && arg + 1 < argc) {
			json = argv[++arg];
		} else if (strcmp(argv[arg], "--rounds") == 0 && arg + 1 < argc) {
			rounds = (unsigned int)strtoul(argv[++arg], NULL, 10);
			bad |= rounds < 1 || rounds > PEERS_ROUNDS_MAX;
		} else {
			bad = 1;
		}
	}
	if (bad) {
		fprintf(stderr, "usage: %s [--quick] [--rounds 1..%d] [--json FILE]\n", argv[0], PEERS_ROUNDS_MAX);
		return 2;
	}
	if (rounds == 0)
		rounds = quick ? 2 : 5;
	if (quick)
		target = 3e5;
	wrong = peers_run(rounds, target);
	printf("%s: CPU ns an operation, min / median; %u rounds of %d placements; (design): written here after the named code\n",
	       section, rounds, PEER_PLACES);
	for (table = 0; table < TABLES; table++)
		print_table(table);
	if (peers_notes > 0)
		printf("\n");
	for (i = 0; i < peers_notes; i++)
		printf("%s\n", peers_note[i]);
	if (json != NULL)
		err = write_json(json, section);
	return wrong > 0 ? 1 : err;
}
