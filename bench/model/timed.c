/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timed.c - what the counted events cost: a CPU's own work, from the time between two
 * locked instructions, and the moving of lines, by sim.c.
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIM_OPS 24u /* operations a CPU, at least */
#define SIM_OPS_MIN 12000u

static double interpolate(const struct costs *c, uint32_t kind, double k)
{
	uint32_t i = 1;

	while (i + 1 < c->nr_grid && c->grid[i] < k)
		i++;
	if (k < c->grid[0])
		return c->rmw[0][kind];
	return c->rmw[i - 1][kind] + (c->rmw[i][kind] - c->rmw[i - 1][kind]) * (k - c->grid[i - 1]) / (c->grid[i] - c->grid[i - 1]);
}

/* What k instructions cost that no locked one follows: the slope of the steepest part. */
static double plain(const struct costs *c, double k)
{
	const uint32_t n = c->nr_grid - 1;

	return k * (c->rmw[n][0] - c->rmw[n - 1][0]) / (c->grid[n] - c->grid[n - 1]);
}

/* Where a CPU is in its own instructions. */
struct walk {
	double time;  /* local time up to the last locked instruction */
	double since; /* instructions since then */
	uint32_t rmws;
};

static double walk_rmw(struct walk *w, const struct costs *c, double instr, uint32_t kind)
{
	double cost = interpolate(c, kind - RMW_ADD, instr);

	w->time += cost;
	w->since = 0;
	w->rmws++;
	return cost;
}

double timed_local(const struct section *s, const struct costs *c, const struct counts *overhead)
{
	struct walk w[WORK_CPUS_MAX];
	double sum = 0;
	uint32_t i, k, at;

	memset(w, 0, sizeof(w));
	for (i = 0; i < 2 * s->nr_ops; i++) {
		const struct op *op = &s->ops[i % s->nr_ops];
		struct walk *me = &w[op->cpu];

		/* The first time only brings the CPUs to where one operation follows another. */
		if (i == s->nr_ops)
			for (k = 0; k < s->cpus; k++)
				w[k].time = 0;
		for (k = 0, at = 0; k < op->count; k++) {
			const struct access *a = &s->accesses[op->first + k];

			if (a->kind < RMW_ADD)
				continue;
			(void)walk_rmw(me, c, me->since + a->instr - at, a->kind);
			at = a->instr;
		}
		me->since += op->instr - at - overhead->instr;
	}
	for (i = 0; i < s->cpus; i++)
		sum += w[i].time + plain(c, w[i].rmws == 0 ? w[i].since / 2 : 0);
	return sum / s->nr_ops;
}

struct seen {
	uint64_t line;
	int32_t cpu; /* the only one, or -1: several */
	int32_t written;
	int32_t index;
};

static struct seen *seen_at(struct seen *table, uint32_t mask, uint64_t line)
{
	uint32_t i = (uint32_t)((line * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

	while (table[i].cpu != -2 && table[i].line != line)
		i = (i + 1) & mask;
	return &table[i];
}

/* Instructions behind the last locked one of a CPU's piece: what its next piece begins with. */
static double tail(const struct section *s, uint32_t cpu, const struct counts *overhead)
{
	double since = 0;
	uint32_t i, k;

	for (i = s->nr_ops; i-- > 0;) {
		const struct op *op = &s->ops[i];

		if (op->cpu != cpu)
			continue;
		for (k = op->count; k-- > 0;)
			if (s->accesses[op->first + k].kind >= RMW_ADD)
				return since + op->instr - overhead->instr - s->accesses[op->first + k].instr;
		since += op->instr - overhead->instr;
	}
	return since;
}

/*
 * Cuts the trace into the CPUs' pieces, of which only accesses to moving lines are kept as such. The work
 * since the last locked instruction is accounted for at the next.
 */
static void cut(struct sim *m, const struct section *s, const struct costs *costs, const struct counts *overhead,
		struct seen *table, uint32_t mask)
{
	uint32_t c, i, k, steps = 0, ops = 0;

	for (c = 0; c < s->cpus; c++) {
		double since = tail(s, c, overhead); /* instructions since the last locked one */

		m->first_op[c] = ops;
		for (i = 0; i < s->nr_ops; i++) {
			const struct op *op = &s->ops[i];
			struct piece_op *p = &m->ops[ops];
			double wait = 0;
			uint32_t at = 0;

			if (op->cpu != c)
				continue;
			*p = (struct piece_op){ steps, 0, 0 };
			for (k = 0; k < op->count; k++) {
				const struct access *a = &s->accesses[op->first + k];
				const struct seen *l = seen_at(table, mask, a->line);
				int moves = l->index >= 0;
				double cost = 0;

				if (a->kind < RMW_ADD && !moves)
					continue;
				since += a->instr - at;
				at = a->instr;
				if (a->kind >= RMW_ADD) {
					cost = interpolate(costs, a->kind - (uint32_t)RMW_ADD, since);
					since = 0;
				}
				if (!moves) {
					wait += cost;
					continue;
				}
				m->steps[steps++] = (struct step){ wait, cost, (uint32_t)l->index, a->kind != LOAD };
				p->count++;
				wait = 0;
			}
			since += op->instr - at - overhead->instr;
			p->rest = wait;
			ops++;
		}
	}
	m->first_op[c] = ops;
}

/* Which lines several CPUs use and somebody writes; numbers them. */
static uint32_t find_moving(const struct section *s, struct seen *table, uint32_t mask)
{
	uint32_t i, k, lines = 0;

	for (i = 0; i <= mask; i++)
		table[i].cpu = -2;
	for (i = 0; i < s->nr_ops; i++) {
		const struct op *op = &s->ops[i];

		for (k = 0; k < op->count; k++) {
			const struct access *a = &s->accesses[op->first + k];
			struct seen *l = seen_at(table, mask, a->line);

			if (l->cpu == -2)
				*l = (struct seen){ a->line, (int32_t)op->cpu, 0, -1 };
			l->cpu = l->cpu == (int32_t)op->cpu ? l->cpu : -1;
			l->written |= a->kind != LOAD;
		}
	}
	for (i = 0; i <= mask; i++)
		if (table[i].cpu == -1 && table[i].written)
			table[i].index = (int32_t)lines++;
	return lines;
}

double timed_replay(const struct section *s, const struct costs *c, const struct counts *overhead, double *transfers)
{
	struct sim m;
	struct seen *table;
	uint32_t mask = 1023, piece, ops;
	double ns;

	memset(&m, 0, sizeof(m));
	*transfers = 0;
	while (mask + 1 < 64 * s->cpus)
		mask = 2 * mask + 1;
	table = model_alloc((size_t)mask + 1, sizeof(*table));
	m.lines = find_moving(s, table, mask);
	if (m.lines == 0) {
		free(table);
		return timed_local(s, c, overhead);
	}
	piece = s->nr_ops / s->cpus;
	m.hold = fmin(c->alone * c->burst, c->period);
	m.travel = c->period - m.hold;
	m.reach = fmax(c->read_dirty - m.travel, 0);
	m.migratory = c->migratory > 0;
	m.cpus = s->cpus;
	m.shift = (uint32_t)((uint64_t)piece * s->cpus / s->period) % s->cpus;
	m.steps = model_alloc((size_t)s->nr_accesses + 1, sizeof(*m.steps));
	m.ops = model_alloc((size_t)s->nr_ops + 1, sizeof(*m.ops));
	m.first_op = model_alloc((size_t)s->cpus + 1, sizeof(*m.first_op));
	cut(&m, s, c, overhead, table, mask);
	/* Whole rounds of every piece, so that what is rare comes as often as it should. */
	ops = 2 * (s->period > piece ? s->period : piece);
	while (ops < SIM_OPS || ops * s->cpus < SIM_OPS_MIN)
		ops *= 2;
	ns = sim_run(&m, ops, transfers);
	free(m.steps);
	free(m.ops);
	free(m.first_op);
	free(table);
	return ns;
}
