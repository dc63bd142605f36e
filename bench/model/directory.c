/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * directory.c - MESI: a private cache a CPU (sets x ways lines, least recently used
 * out) and a directory that knows who has what. Accesses are replayed in the order of
 * the trace, the whole of it twice: the first time fills the caches, the second is
 * counted, so that what is missed then is missed for ever.
 */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

struct dir_line {
	uint64_t line;
	uint64_t sharers[WORK_CPUS_MAX / 64];
	int32_t owner; /* has it exclusively (E or M), or -1 */
	uint8_t dirty, used, evicted;
};

struct way {
	uint64_t line;
	uint64_t stamp; /* 0: empty */
};

struct model {
	struct dir_line *dir;
	uint32_t mask, used;
	struct way *ways;
	struct cache_shape shape;
	uint64_t now;
};

static uint32_t hash(uint64_t line)
{
	return (uint32_t)((line * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static struct dir_line *dir_at(struct model *m, uint64_t line)
{
	uint32_t i = hash(line) & m->mask;

	while (m->dir[i].used && m->dir[i].line != line)
		i = (i + 1) & m->mask;
	if (!m->dir[i].used) {
		if (++m->used > m->mask / 2) {
			fprintf(stderr, "mesi: more lines than expected\n");
			exit(1);
		}
		m->dir[i].used = 1;
		m->dir[i].line = line;
		m->dir[i].owner = -1;
	}
	return &m->dir[i];
}

static struct way *set_of(const struct model *m, uint32_t cpu, uint64_t line)
{
	return &m->ways[((size_t)cpu * m->shape.sets + (line & (m->shape.sets - 1))) * m->shape.ways];
}

static void share(struct dir_line *d, uint32_t cpu, int on)
{
	if (on)
		d->sharers[cpu / 64] |= UINT64_C(1) << cpu % 64;
	else
		d->sharers[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
}

static int shares(const struct dir_line *d, uint32_t cpu)
{
	return (d->sharers[cpu / 64] >> cpu % 64) & 1;
}

static uint32_t sharers(const struct dir_line *d)
{
	uint32_t i, n = 0;

	for (i = 0; i < WORK_CPUS_MAX / 64; i++)
		n += (uint32_t)__builtin_popcountll(d->sharers[i]);
	return n;
}

static void cache_drop(struct model *m, uint32_t cpu, uint64_t line)
{
	struct way *w = set_of(m, cpu, line);
	uint32_t i;

	for (i = 0; i < m->shape.ways; i++)
		if (w[i].stamp != 0 && w[i].line == line)
			w[i].stamp = 0;
}

/* Notes the use, and puts the line in when it was not there; what had to go for it goes. */
static void cache_use(struct model *m, uint32_t cpu, uint64_t line)
{
	struct way *w = set_of(m, cpu, line), *oldest = w;
	struct dir_line *d;
	uint32_t i;

	for (i = 0; i < m->shape.ways; i++) {
		if (w[i].stamp != 0 && w[i].line == line) {
			w[i].stamp = ++m->now;
			return;
		}
		if (w[i].stamp < oldest->stamp)
			oldest = &w[i];
	}
	if (oldest->stamp != 0) {
		d = dir_at(m, oldest->line);
		share(d, cpu, 0);
		d->owner = d->owner == (int32_t)cpu ? -1 : d->owner;
		d->evicted = 1;
	}
	oldest->line = line;
	oldest->stamp = ++m->now;
}

/* Takes every other copy away; returns how many there were. */
static uint32_t invalidate(struct model *m, struct dir_line *d, uint32_t cpu)
{
	uint32_t i, n = 0;

	for (i = 0; i < WORK_CPUS_MAX; i++) {
		if (i != cpu && shares(d, i)) {
			cache_drop(m, i, d->line);
			n++;
		}
	}
	memset(d->sharers, 0, sizeof(d->sharers));
	return n;
}

/* What the access missed, or MISSES for a hit. */
static enum miss access_line(struct model *m, uint32_t cpu, uint64_t line, int write, uint32_t *taken)
{
	struct dir_line *d = dir_at(m, line);
	enum miss miss;
	int had = shares(d, cpu);

	*taken = 0;
	if (d->owner == (int32_t)cpu || (had && !write))
		miss = MISSES;
	else if (had)
		miss = MISS_UPGRADE;
	else if (d->owner >= 0 && d->dirty)
		miss = MISS_DIRTY;
	else if (sharers(d) > 0)
		miss = MISS_CLEAN;
	else
		miss = d->evicted ? MISS_CAPACITY : MISS_COLD;
	if (write) {
		*taken = invalidate(m, d, cpu);
		d->owner = (int32_t)cpu;
		d->dirty = 1;
	} else if (miss != MISSES) {
		/* Nobody has it: exclusive, so that a later store need not ask. */
		d->owner = sharers(d) == 0 ? (int32_t)cpu : -1;
		d->dirty = 0;
	}
	share(d, cpu, 1);
	cache_use(m, cpu, line);
	return miss;
}

static int name_of(const struct section *s, uint64_t line)
{
	uint64_t address = line << 6, at;
	uint32_t i;

	for (i = 0; i < s->nr_names; i++) {
		const struct name *n = &s->names[i];
		uint64_t base = n->base & ~(uint64_t)63;

		if (address < base)
			continue;
		at = n->stride == 0 ? 0 : (address - base) / n->stride;
		if (at < n->count && address - base - at * n->stride < n->bytes + (n->base & 63))
			return (int)i;
	}
	return -1;
}

static void one_op(struct model *m, const struct section *s, const struct op *op, struct counts *out)
{
	const struct access *a = &s->accesses[op->first];
	uint32_t i, k, taken;

	for (i = 0; i < op->count; i++) {
		enum miss miss = access_line(m, op->cpu, a[i].line, a[i].kind != LOAD, &taken);
		int name = a[i].private ? -1 : name_of(s, a[i].line);
		int coherence = miss == MISS_DIRTY || miss == MISS_CLEAN || miss == MISS_UPGRADE;

		out->kind[a[i].kind] += 1;
		out->invalidated += taken;
		if (miss == MISSES)
			out->hits += 1;
		else
			out->miss[miss] += 1;
		out->transfers += coherence;
		if (name < 0)
			continue;
		out->name_miss[name] += coherence;
		/* With a cache that others have emptied, each line is missed once an operation. */
		for (k = 0; k < i && a[k].line != a[i].line; k++)
			;
		out->name_cold[name] += k == i;
	}
	out->instr += op->instr;
}

void mesi_count(const struct section *s, const struct cache_shape *shape, const struct counts *overhead, struct counts *out)
{
	struct model m = { NULL, 0, 0, NULL, *shape, 0 };
	double *sum, cold = 0;
	uint32_t pass, i;

	for (m.mask = 1024; m.mask < 64 * s->cpus; m.mask *= 2)
		;
	m.dir = model_alloc(m.mask, sizeof(*m.dir));
	m.mask--;
	m.ways = model_alloc((size_t)s->cpus * shape->sets * shape->ways, sizeof(*m.ways));
	for (pass = 0; pass < 2; pass++) {
		memset(out, 0, sizeof(*out));
		for (i = 0; i < s->nr_ops; i++)
			one_op(&m, s, &s->ops[i], out);
		if (pass == 0)
			cold = out->miss[MISS_COLD];
	}
	out->miss[MISS_COLD] = cold;
	for (sum = (double *)(void *)out, i = 0; i < sizeof(*out) / sizeof(*sum); i++)
		sum[i] /= s->nr_ops;
	/* The loop around an operation stays, the machinery around the loop goes. */
	for (i = 0; overhead != NULL && i < KINDS; i++)
		out->kind[i] -= overhead->kind[i];
	if (overhead != NULL) {
		out->instr -= overhead->instr;
		out->hits -= overhead->hits;
	}
	free(m.dir);
	free(m.ways);
}
