/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hot path: charging a socket's pages to its memcg, the statistics and the events.
 *
 * Every function takes the set of changes that are on, and a struct acct that counts and samples
 * the calls, or NULL for nothing but the work itself. All of it is inlined, so that a caller that
 * passes constants (the replay) gets code without a branch on them.
 */
#ifndef MEMCG_SOCKET_MEMCG_SK_H
#define MEMCG_SOCKET_MEMCG_SK_H

#include "before.h"
#include "memcg.h"

/* Every level refused to make room: the sockets below hear of it. Always false. */
bool memcg_charge_refused(struct memcg *memcg, uint32_t pages, struct acct *acct);

static ALWAYS_INLINE void memcg_stat_update(struct memcg *memcg, int64_t delta, unsigned int changes,
					    struct acct *acct)
{
	uint64_t start = acct ? acct_enter(acct, ACCT_STAT) : 0;

	if (changes & CHANGE_001)
		pcbatch_group_stat_mod(memcg->group, MEMCG_SOCK, delta);
	else
		memcg_stat_walk(memcg, MEMCG_SOCK, delta);
	if (acct)
		acct_exit(acct, ACCT_STAT, start);
}

/*
 * With change 000 pages and statistic leave the stock in one go; without, the statistic follows.
 * A hit is all that is inlined; behind it the library buys a batch, then what was asked for, drains
 * the stocks and lets memcg_reclaim ask this thread's sockets.
 */
static ALWAYS_INLINE bool memcg_sk_charge(struct memcg *memcg, uint32_t pages, unsigned int changes, struct acct *acct)
{
	int64_t stat = changes & CHANGE_000 ? (int64_t)pages : 0;

	if (unlikely(pcbatch_group_charge_stat(memcg->group, pages, stat) != 0))
		return memcg_charge_refused(memcg, pages, acct);
	if (!(changes & CHANGE_000))
		memcg_stat_update(memcg, pages, changes, acct);
	return true;
}

static ALWAYS_INLINE void memcg_sk_uncharge(struct memcg *memcg, uint32_t pages, unsigned int changes,
					    struct acct *acct)
{
	int64_t stat = changes & CHANGE_000 ? (int64_t)pages : 0;

	if (!(changes & CHANGE_000))
		memcg_stat_update(memcg, -(int64_t)pages, changes, acct);
	if (changes & CHANGE_002) {
		pcbatch_group_uncharge_stat(memcg->group, pages, stat);
		return;
	}
	pcbatch_group_uncharge_direct(memcg->group, pages);
	if (changes & CHANGE_000)
		pcbatch_group_uncharge_stat(memcg->group, 0, stat);
}

/* never refused: may take the memcg over its limit, and is counted there */
static inline void memcg_sk_charge_force(struct memcg *memcg, uint32_t pages, unsigned int changes, struct acct *acct)
{
	pcbatch_group_charge_force(memcg->group, pages, changes & CHANGE_000 ? (int64_t)pages : 0);
	if (!(changes & CHANGE_000))
		memcg_stat_update(memcg, pages, changes, acct);
	acct->forced++;
}

/* ---- events ------------------------------------------------------------------------------------ */

/*
 * Adds to a cell of this thread so that a signal handler of the same thread comes before or after,
 * never in between; other threads only read it. On x86 that takes one instruction, no lock prefix.
 */
static ALWAYS_INLINE void event_cell_add(int64_t *cell, int64_t delta)
{
#if defined(__x86_64__)
	__asm__ __volatile__("addq %1, %0" : "+m"(*cell) : "er"(delta) : "cc");
#else
	__atomic_fetch_add(cell, delta, __ATOMIC_RELAXED);
#endif
}

void count_events_flush(struct memcg *memcg, enum memcg_event event, int64_t *cell, int64_t x, int64_t count);

static ALWAYS_INLINE void count_events_narrow(struct task *task, struct memcg *memcg, enum memcg_event event,
					      int64_t count)
{
	int64_t *cell = &task->events[memcg->index * MEMCG_EVENTS + event];
	int64_t x = READ_ONCE(*cell) + count;

	if (unlikely(x > EVENT_BATCH_AFTER))
		count_events_flush(memcg, event, cell, x, count);
	else
		event_cell_add(cell, count);
}

static ALWAYS_INLINE void count_memcg_events(struct task *task, struct memcg *memcg, enum memcg_event event,
					     int64_t count, unsigned int changes)
{
	if (changes & CHANGE_004)
		count_events_narrow(task, memcg, event, count);
	else
		count_events_blocked(task, memcg, event, count);
}

#endif
