/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim.c - replays what the virtual CPUs did in the order of time instead of in the
 * order of the trace. Between accesses to lines that several CPUs use and somebody
 * writes, a CPU needs what such code needs when everything hits. Those lines move:
 *
 *	- a request reaches the line's owner `reach` after it was made; requests for
 *	  one line are served one after another, first come first served;
 *	- the owner goes on using the line until then, and keeps it for `hold` after it
 *	  got it, whoever waits; then it travels for `travel`;
 *	- a store invalidates all other copies in one such transfer, however many;
 *	- loads of a line that nobody has dirty do not wait for each other;
 *	- a CPU asks for one such line at a time, when it comes to it: locked instructions
 *	  are not overtaken.
 *
 * reach + travel is the time of a load of a line dirty elsewhere; hold and travel come
 * from two CPUs that fight for one word (the operations of an owner, the time
 * between owners). A CPU that ends its piece goes on with the piece of the CPU that was
 * where it is now (see spread of trace.c).
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct moving {
	int32_t owner; /* -1: shared, or on its way */
	uint64_t sharers[WORK_CPUS_MAX / 64];
	double arrived;
	uint32_t head, queued; /* of its ring of requests; leaving: the head is being served */
	uint8_t leaving, clean;
	uint16_t *ring_cpu;
	double *ring_time;
};

struct cpu {
	uint32_t stream, op, step; /* where it is */
};

enum event_kind { RUN, LEAVE, ARRIVE };

struct event {
	double time;
	uint32_t what; /* a CPU or a line */
	uint32_t kind;
};

/* ------------------------------------------------------------------ the heap */

static void push(struct sim *m, double time, enum event_kind kind, uint32_t what)
{
	uint32_t i = m->events++;

	for (; i > 0 && m->heap[(i - 1) / 2].time > time; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = (struct event){ time, what, kind };
}

static struct event pop(struct sim *m)
{
	struct event top = m->heap[0], last = m->heap[--m->events];
	uint32_t i = 0, k;

	while ((k = 2 * i + 1) < m->events) {
		if (k + 1 < m->events && m->heap[k + 1].time < m->heap[k].time)
			k++;
		if (m->heap[k].time >= last.time)
			break;
		m->heap[i] = m->heap[k];
		i = k;
	}
	m->heap[i] = last;
	return top;
}

/* ----------------------------------------------------------------- the lines */

static int has(const struct moving *l, uint32_t cpu, int write)
{
	return l->owner == (int32_t)cpu || (!write && ((l->sharers[cpu / 64] >> cpu % 64) & 1));
}

/* Begins to serve the line's first request, if there is one. */
static void serve(struct sim *m, uint32_t at)
{
	struct moving *l = &m->line[at];
	double leave;

	if (l->leaving || l->queued == 0)
		return;
	leave = fmax(l->ring_time[l->head] + m->reach, l->arrived + m->hold);
	l->leaving = 1;
	push(m, leave, LEAVE, at);
}

static void ask(struct sim *m, uint32_t cpu, uint32_t at, int write, double now)
{
	struct moving *l = &m->line[at];
	uint32_t end = (l->head + l->queued) % m->cpus;

	m->asked[(size_t)at * m->cpus + cpu] = write ? 2 : 1;
	l->ring_cpu[end] = (uint16_t)cpu;
	l->ring_time[end] = now;
	l->queued++;
	serve(m, at);
}

static void leave(struct sim *m, uint32_t at, double now)
{
	struct moving *l = &m->line[at];
	uint32_t cpu = l->ring_cpu[l->head];
	int write = m->asked[(size_t)at * m->cpus + cpu] == 2;

	if (write || (l->owner >= 0 && !l->clean && m->migratory)) {
		memset(l->sharers, 0, sizeof(l->sharers));
		l->owner = -1;
	} else if (l->owner >= 0) {
		l->sharers[l->owner / 64] |= UINT64_C(1) << l->owner % 64;
		l->owner = -1;
	}
	push(m, now + m->travel, ARRIVE, at);
}

static void arrive(struct sim *m, uint32_t at, double now)
{
	struct moving *l = &m->line[at];
	uint32_t i, cpu = l->ring_cpu[l->head];
	int write = m->asked[(size_t)at * m->cpus + cpu] == 2, alone = 1;

	for (i = 0; i < WORK_CPUS_MAX / 64; i++)
		alone &= l->sharers[i] == 0;
	m->asked[(size_t)at * m->cpus + cpu] = 0;
	m->transfers++;
	l->head = (l->head + 1) % m->cpus;
	l->queued--;
	l->leaving = 0;
	if (write || alone) {
		l->owner = (int32_t)cpu;
		l->clean = !write;
		l->arrived = now;
	} else {
		/* A clean copy holds nobody up. */
		l->sharers[cpu / 64] |= UINT64_C(1) << cpu % 64;
		l->arrived = now - m->hold - m->travel;
	}
	push(m, now, RUN, cpu);
	serve(m, at);
}

/* ------------------------------------------------------------------ the CPUs */

/* The CPU has done the work in front of its step, or has just got the line it waited for. */
static void run(struct sim *m, uint32_t c, double now)
{
	struct cpu *me = &m->cpu[c];
	const struct piece_op *op;

	op = &m->ops[m->first_op[me->stream] + me->op];
	if (me->step < op->count) {
		const struct step *s = &m->steps[op->first + me->step];

		if (!has(&m->line[s->line], c, s->write)) {
			ask(m, c, s->line, s->write, now);
			return;
		}
		if (s->write)
			m->line[s->line].clean = 0;
		now += s->cost;
		me->step++;
	}
	if (me->step == op->count) {
		now += op->rest;
		me->step = 0;
		m->done++;
		if (m->first_op[me->stream] + ++me->op == m->first_op[me->stream + 1]) {
			me->op = 0;
			me->stream = (me->stream + m->shift) % m->cpus;
		}
		op = &m->ops[m->first_op[me->stream] + me->op];
	}
	if (me->step < op->count)
		now += m->steps[op->first + me->step].wait;
	push(m, now, RUN, c);
}

double sim_run(struct sim *m, uint32_t ops, double *transfers)
{
	const uint64_t total = (uint64_t)ops * m->cpus;
	double half_time = -1, ns;
	uint64_t half_done = 0, half_transfers = 0;
	struct event e = { 0, 0, RUN };
	uint32_t i;

	m->line = model_alloc(m->lines + 1, sizeof(*m->line));
	m->cpu = model_alloc(m->cpus, sizeof(*m->cpu));
	m->asked = model_alloc((size_t)(m->lines + 1) * m->cpus, 1);
	m->heap = model_alloc(m->cpus + 2 * m->lines + 2, sizeof(*m->heap));
	m->events = 0;
	m->transfers = m->done = 0;
	for (i = 0; i < m->lines; i++) {
		m->line[i].owner = 0;
		m->line[i].arrived = -1e9;
		m->line[i].ring_cpu = model_alloc(m->cpus, sizeof(*m->line[i].ring_cpu));
		m->line[i].ring_time = model_alloc(m->cpus, sizeof(*m->line[i].ring_time));
	}
	/* Not in step: each begins a little later than the one before, in an order that is no order. */
	for (i = 0; i < m->cpus; i++) {
		m->cpu[i].stream = i;
		push(m, (double)((i * 2654435761u) >> 16 & 1023) / 8, RUN, i);
	}
	while (m->done < total) {
		e = pop(m);
		if (half_time < 0 && m->done >= total / 2) {
			half_time = e.time;
			half_done = m->done;
			half_transfers = m->transfers;
		}
		if (e.kind == RUN)
			run(m, e.what, e.time);
		else if (e.kind == LEAVE)
			leave(m, e.what, e.time);
		else
			arrive(m, e.what, e.time);
	}
	ns = (e.time - half_time) * m->cpus / (double)(m->done - half_done);
	*transfers = (double)(m->transfers - half_transfers) / (double)(m->done - half_done);
	for (i = 0; i < m->lines; i++) {
		free(m->line[i].ring_cpu);
		free(m->line[i].ring_time);
	}
	free(m->line);
	free(m->cpu);
	free(m->asked);
	free(m->heap);
	return ns;
}
