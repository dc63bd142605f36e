/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mesi.c - reads a memory trace of valgrind's lackey, cuts it into the operations of
 * the virtual CPUs by the marks, and prints for each section what the directory
 * (directory.c) counted and, when costs are given, what it will take (timed.c).
 *
 *	mesi MARK RMWFILE MAPFILE SETS WAYS [COSTS] < trace
 *
 * RMWFILE: "ADDRESS KIND" of every locked instruction of the traced program (the trace
 * shows them as a load and a store). Output, tab-separated, an operation each:
 *	count VARIANT CPUS OPS INSTR LOADS STORES ADDS CASES XCHGS HITS CAPACITY DIRTY CLEAN
 *	      UPGRADES TRANSFERS INVALIDATED COLD_SEEN
 *	line VARIANT CPUS NAME COHERENCE_MISSES TOUCHED
 *	time VARIANT CPUS LOCAL_NS NS TRANSFERS
 */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#define RMW_MAX 65536

static struct {
	uint64_t address;
	uint8_t kind;
} rmws[RMW_MAX];
static unsigned int nr_rmws;

void *model_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL) {
		fprintf(stderr, "mesi: out of memory\n");
		exit(1);
	}
	return p;
}

static void rmws_read(const char *path)
{
	FILE *in = fopen(path, "r");
	unsigned long address;
	char kind[8];

	if (in == NULL) {
		perror(path);
		exit(1);
	}
	while (nr_rmws < RMW_MAX && fscanf(in, "%lx %7s", &address, kind) == 2) {
		rmws[nr_rmws].address = address;
		rmws[nr_rmws++].kind = strcmp(kind, "cas") == 0 ? RMW_CAS : strcmp(kind, "xchg") == 0 ? RMW_XCHG : RMW_ADD;
	}
	fclose(in);
}

/* They come sorted, as the disassembler prints them. */
static uint8_t rmw_kind(uint64_t address)
{
	unsigned int lo = 0, hi = nr_rmws;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (rmws[mid].address < address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr_rmws && rmws[lo].address == address ? rmws[lo].kind : (uint8_t)LOAD;
}

static void section_read(struct section *s, FILE *map)
{
	char text[256];
	struct name *n;
	unsigned long a, b;

	s->nr_names = s->nr_privates = s->nr_ops = s->nr_accesses = 0;
	while (fgets(text, sizeof(text), map) != NULL && strcmp(text, "end\n") != 0) {
		n = &s->names[s->nr_names];
		if (sscanf(text, "run %31s %u %u %u", s->name, &s->cpus, &s->rounds, &s->period) == 4)
			continue;
		if (s->nr_privates < PRIVATES_MAX && sscanf(text, "private %lx %lx", &a, &b) == 2) {
			s->private_from[s->nr_privates] = a;
			s->private_to[s->nr_privates++] = b;
		} else if (s->nr_names < NAMES_MAX &&
			   sscanf(text, "line %23s %lx %lx %u %u", n->name, &a, &b, &n->count, &n->bytes) == 5) {
			n->base = a;
			n->stride = b;
			s->nr_names++;
		}
	}
}

static int is_private(const struct section *s, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < s->nr_privates; i++)
		if (address >= s->private_from[i] && address < s->private_to[i])
			return 1;
	return 0;
}

static struct op *new_op(struct section *s, uint32_t cpu)
{
	if (s->nr_ops == s->max_ops) {
		s->max_ops = s->max_ops == 0 ? 4096 : 2 * s->max_ops;
		s->ops = realloc(s->ops, s->max_ops * sizeof(*s->ops));
	}
	if (s->ops == NULL)
		exit(1);
	s->ops[s->nr_ops] = (struct op){ cpu, s->nr_accesses, 0, 0 };
	return &s->ops[s->nr_ops++];
}

static void new_access(struct section *s, struct op *op, uint64_t address, uint8_t kind)
{
	struct access *a;

	if (s->nr_accesses == s->max_accesses) {
		s->max_accesses = s->max_accesses == 0 ? 65536 : 2 * s->max_accesses;
		s->accesses = realloc(s->accesses, s->max_accesses * sizeof(*s->accesses));
	}
	if (s->accesses == NULL)
		exit(1);
	a = &s->accesses[s->nr_accesses];
	a->private = (uint8_t)is_private(s, address);
	a->line = (address >> 6) | (a->private ? (uint64_t)(op->cpu + 1) << 52 : 0);
	a->instr = op->instr;
	a->kind = kind;
	/* A locked instruction shows twice, and is one. */
	if (kind >= RMW_ADD && op->count > 0 && a[-1].kind == kind && a[-1].instr == a->instr)
		return;
	s->nr_accesses++;
	op->count++;
}

static void report(const struct section *s, const struct cache_shape *shape, const struct counts *overhead,
		   const struct costs *costs)
{
	struct counts c;
	double transfers = 0, ns;
	uint32_t i, k;

	mesi_count(s, shape, overhead, &c);
	printf("count\t%s\t%u\t%u\t%.2f", s->name, s->cpus, s->nr_ops, c.instr);
	for (k = 0; k < KINDS; k++)
		printf("\t%.4f", c.kind[k]);
	printf("\t%.4f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\n", c.hits, c.miss[MISS_CAPACITY], c.miss[MISS_DIRTY],
	       c.miss[MISS_CLEAN], c.miss[MISS_UPGRADE], c.transfers, c.invalidated, c.miss[MISS_COLD]);
	for (i = 0; i < s->nr_names; i++)
		if (c.name_cold[i] > 0)
			printf("line\t%s\t%u\t%s\t%.6f\t%.6f\n", s->name, s->cpus, s->names[i].name, c.name_miss[i], c.name_cold[i]);
	if (costs != NULL) {
		ns = timed_replay(s, costs, overhead, &transfers);
		printf("time\t%s\t%u\t%.3f\t%.3f\t%.6f\n", s->name, s->cpus, timed_local(s, costs, overhead), ns, transfers);
	}
	fflush(stdout);
}

static struct section section;

/* Finishes the section so far; the first one is the empty loop, which the others are freed of. */
static void finish(const struct cache_shape *shape, const struct costs *costs)
{
	static struct counts overhead;

	if (section.nr_ops == 0)
		return;
	if (strcmp(section.name, "empty") == 0)
		mesi_count(&section, shape, NULL, &overhead);
	else
		report(&section, shape, &overhead, costs);
}

static void trace_read(uint64_t mark, const char *mappath, const struct cache_shape *shape, const struct costs *costs)
{
	struct op *op = NULL;
	FILE *map = NULL;
	uint8_t rmw = LOAD;
	char text[256];
	uint64_t address;

	while (fgets(text, sizeof(text), stdin) != NULL) {
		if (text[0] == 'I') {
			if (op != NULL) {
				op->instr++;
				rmw = rmw_kind(strtoull(text + 3, NULL, 16));
			}
			continue;
		}
		if (text[0] != ' ' || text[1] == '\0')
			continue;
		if (op == NULL && text[1] != 'S')
			continue;
		address = strtoull(text + 3, NULL, 16);
		if (address >= mark && address < mark + WORK_CPUS_MAX + 2) {
			op = address < mark + WORK_CPUS_MAX ? new_op(&section, (uint32_t)(address - mark)) : NULL;
			if (address != mark + WORK_CPUS_MAX + 1)
				continue;
			finish(shape, costs);
			map = map == NULL ? fopen(mappath, "r") : map;
			if (map == NULL) {
				perror(mappath);
				exit(1);
			}
			section_read(&section, map);
		} else if (op != NULL) {
			if (rmw != LOAD) {
				new_access(&section, op, address, rmw);
				continue;
			}
			if (text[1] != 'S')
				new_access(&section, op, address, LOAD);
			if (text[1] != 'L')
				new_access(&section, op, address, STORE);
		}
	}
	finish(shape, costs);
	if (map != NULL)
		fclose(map);
}

int costs_read(struct costs *c, const char *path)
{
	const struct {
		const char *name;
		double *value;
	} wanted[] = {
		{ "read_dirty", &c->read_dirty }, { "migratory", &c->migratory },
		{ "period", &c->period }, { "burst", &c->burst }, { "alone", &c->alone },
	};
	const unsigned int all = sizeof(wanted) / sizeof(wanted[0]);
	FILE *in = fopen(path, "r");
	unsigned int i, found = 0;
	char text[256], name[32];
	double v[4];
	int n;

	if (in == NULL)
		return -1;
	c->nr_grid = 0;
	while (fgets(text, sizeof(text), in) != NULL) {
		n = sscanf(text, "%31s %lf %lf %lf %lf", name, &v[0], &v[1], &v[2], &v[3]);
		if (n == 5 && strcmp(name, "rmw") == 0 && c->nr_grid < GRID_MAX) {
			c->grid[c->nr_grid] = v[0];
			memcpy(c->rmw[c->nr_grid++], &v[1], sizeof(c->rmw[0]));
		}
		for (i = 0; n == 2 && i < all; i++) {
			if (strcmp(name, wanted[i].name) == 0) {
				*wanted[i].value = v[0];
				found++;
			}
		}
	}
	fclose(in);
	return found == all && c->nr_grid >= 2 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct cache_shape shape;
	struct costs costs;

	if (argc != 6 && argc != 7) {
		fprintf(stderr, "usage: mesi MARK RMWFILE MAPFILE SETS WAYS [COSTS] < trace\n");
		return 2;
	}
	shape.sets = (uint32_t)strtoul(argv[4], NULL, 10);
	shape.ways = (uint32_t)strtoul(argv[5], NULL, 10);
	if (shape.sets < 1 || (shape.sets & (shape.sets - 1)) != 0 || shape.ways < 1 || shape.ways > 64) {
		fprintf(stderr, "mesi: SETS is a power of two, WAYS 1 to 64\n");
		return 2;
	}
	if (argc == 7 && costs_read(&costs, argv[6]) != 0) {
		fprintf(stderr, "mesi: %s: not all costs are there\n", argv[6]);
		return 1;
	}
	rmws_read(argv[2]);
	trace_read(strtoull(argv[1], NULL, 16), argv[3], &shape, argc == 7 ? &costs : NULL);
	return 0;
}
