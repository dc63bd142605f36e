/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accounting as it was before changes 001 and 004. Both are right and both are written with
 * care: what they cost is the way they go about it.
 *
 * 001: memcg_stat_walk, the statistics update that walks the owners. For each level it loads the
 * memcg, the counter, the counter's cell on this CPU, then the parent: three loads a level, each
 * a possible miss, where pcbatch_group_stat_mod does one.
 *
 * 004: count_events_blocked, batch 32, with signals blocked around the whole update. Blocking
 * signals is to a thread what disabling interrupts is to a CPU: the update is a plain read,
 * change, write, so nothing may come in between.
 */
#ifndef MEMCG_SOCKET_BEFORE_H
#define MEMCG_SOCKET_BEFORE_H

#include <signal.h>

#include "memcg.h"

#define EVENT_BATCH_BEFORE 32
#define EVENT_BATCH_AFTER 256

struct memcg_walk {
	struct pcbatch_counter state[MEMCG_ITEMS];
	struct pcbatch_counter updates; /* how much has changed here and below, for the decision to flush */
};

int memcg_walk_create(struct memcg *memcg);
void memcg_walk_destroy(struct memcg *memcg);
/* this memcg and everything below it */
int64_t memcg_walk_read(struct memcg *memcg, enum memcg_item item);

/* Updates are folded every 64, as the groups' are; states are only ever summed, so they may lag. */
#define WALK_BATCH 64
#define WALK_STATE_BATCH 4096

static ALWAYS_INLINE void memcg_stat_walk(struct memcg *memcg, enum memcg_item item, int64_t delta)
{
	int64_t magnitude = delta < 0 ? -delta : delta;

	pcbatch_counter_add_batch(&memcg->walk->state[item], delta, WALK_STATE_BATCH);
	for (; memcg; memcg = memcg->parent)
		pcbatch_counter_add_batch(&memcg->walk->updates, magnitude, WALK_BATCH);
}

static ALWAYS_INLINE void count_events_blocked(struct task *task, struct memcg *memcg, enum memcg_event event,
					       int64_t count)
{
	int64_t *cell = &task->events[memcg->index * MEMCG_EVENTS + event];
	sigset_t all, old;
	int64_t x;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	x = *cell + count;
	if (unlikely(x > EVENT_BATCH_BEFORE)) {
		__atomic_fetch_add(&memcg->totals->events[event], x, __ATOMIC_RELAXED);
		x = 0;
	}
	WRITE_ONCE(*cell, x);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

#endif
