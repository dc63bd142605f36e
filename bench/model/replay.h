/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* replay.h - what mesi.c read from one section of a trace, and what is done with it. */
#ifndef MODEL_REPLAY_H
#define MODEL_REPLAY_H

#include <stdint.h>
#include <stdio.h>

#include "work.h"

enum kind { LOAD, STORE, RMW_ADD, RMW_CAS, RMW_XCHG, KINDS };

struct access {
	uint64_t line;  /* address / 64; with the CPU in the top bits when it is the thread's own */
	uint32_t instr; /* how many instructions of its operation came before */
	uint8_t kind;
	uint8_t private;
};

struct op {
	uint32_t cpu, first, count; /* its accesses */
	uint32_t instr;
};

struct name {
	char name[24];
	uint64_t base, stride;
	uint32_t count, bytes;
};

#define NAMES_MAX 32
#define PRIVATES_MAX 8

struct section {
	char name[32];
	uint32_t cpus, rounds, period;
	struct name names[NAMES_MAX];
	uint64_t private_from[PRIVATES_MAX], private_to[PRIVATES_MAX];
	uint32_t nr_names, nr_privates;
	struct op *ops;
	struct access *accesses;
	uint32_t nr_ops, nr_accesses, max_ops, max_accesses;
};

enum miss { MISS_COLD, MISS_CAPACITY, MISS_DIRTY, MISS_CLEAN, MISS_UPGRADE, MISSES };

struct counts {
	double instr, kind[KINDS];   /* an operation */
	double miss[MISSES];         /* cold ones only in the pass that warms up */
	double transfers, invalidated; /* dirty + clean + upgrades; copies that were taken away */
	double hits;
	double name_miss[NAMES_MAX], name_cold[NAMES_MAX];
};

/* The private cache: one level that is coherent, least recently used. */
struct cache_shape {
	uint32_t sets, ways;
};

/* Replays twice, counts the second time. overhead: counts of the empty loop, or NULL. */
void mesi_count(const struct section *s, const struct cache_shape *shape, const struct counts *overhead, struct counts *out);

#define GRID_MAX 16

/*
 * What the machine costs, in ns; all from calibrate.c. rmw[i][k] is the time from one
 * locked instruction to the end of the next, of kind k (RMW_ADD first), when grid[i]
 * instructions that hit stand between them: what the core overlaps is in it.
 */
struct costs {
	uint32_t nr_grid;
	double grid[GRID_MAX], rmw[GRID_MAX][3];
	double read_dirty;      /* a load of a line that is dirty elsewhere, from start to end */
	double migratory;       /* 1: the first load of a line that is dirty elsewhere takes it over */
	double period, burst;   /* one line that two want: time between owners, operations of an owner */
	double alone;           /* such an operation when nobody else wants the line */
};

int costs_read(struct costs *c, const char *path);

/* CPU time of an operation when nothing has to be fetched from elsewhere. */
double timed_local(const struct section *s, const struct costs *c, const struct counts *overhead);
/* The same by replay in time order; *transfers: an operation. */
double timed_replay(const struct section *s, const struct costs *c, const struct counts *overhead, double *transfers);

void *model_alloc(size_t n, size_t size);

#endif /* MODEL_REPLAY_H */
