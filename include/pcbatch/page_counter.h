/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/page_counter.h - the hierarchical limit counter: charge a leaf, and it
 * and every ancestor are charged, or none.
 *
 * Add first, then look at the limit, and take back what was too much: usage may
 * show for a moment a charge that is about to be refused, so two that race for the
 * last pages may both be refused, but what was granted never exceeds max. The
 * protocol with set_max (add then read max; write max then read usage: one of the
 * two sees the other) is the kernel's page_counter.
 *
 * Any two calls may run at once but init. Unless a function says otherwise: any
 * thread, async-signal-safe, lock-free. Counts are pages, 0 to PCBATCH_PAGES_MAX.
 */
#ifndef PCBATCH_PAGE_COUNTER_H
#define PCBATCH_PAGE_COUNTER_H

#include <errno.h>
#include <string.h>

#include "atomic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "No limit", and the most that one call can charge. */
#define PCBATCH_PAGES_MAX (INT64_MAX / 4096)

struct pcbatch_page_counter {
	/* Written by every charge. */
	uint64_t usage PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	/* Written seldom, next to nothing that a charge reads. */
	uint64_t peak PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	uint64_t failcnt;   /* charges refused by this level */
	uint64_t underflow; /* pages uncharged that had not been charged */
	/* Read by every charge. */
	uint64_t max PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	uint64_t high;
	struct pcbatch_page_counter *parent;
};

/*
 * Makes a counter: usage 0, no limit.
 *
 * c: storage of the caller's, aligned as the type says. Its old contents don't
 *	matter, unless parent's ancestors include it.
 * parent: what is charged along, or NULL; must outlive c. There is no way to
 *	change it later, so a counter has at most one.
 * Returns: 0; -EINVAL c is NULL; -ELOOP c is parent or an ancestor of it.
 * Threading: before c is shared.
 */
PCBATCH_INLINE int pcbatch_page_counter_init(struct pcbatch_page_counter *c, struct pcbatch_page_counter *parent)
{
	const struct pcbatch_page_counter *up;

	if (c == NULL)
		return -EINVAL;
	for (up = parent; up != NULL; up = up->parent)
		if (up == c)
			return -ELOOP;
	memset(c, 0, sizeof(*c));
	c->max = PCBATCH_PAGES_MAX;
	c->high = PCBATCH_PAGES_MAX;
	c->parent = parent;
	return 0;
}

PCBATCH_INLINE int64_t pcbatch_priv_clamp(uint64_t value)
{
	return (int64_t)value > 0 ? (int64_t)value : 0;
}

/* Pages charged and not uncharged, cached ones included; may show charges about to be taken back. Never below 0. */
PCBATCH_INLINE int64_t pcbatch_page_counter_read(const struct pcbatch_page_counter *c)
{
	return pcbatch_priv_clamp(pcbatch_priv_load(&c->usage));
}

/* The highest usage that was granted since init or the last reset. */
PCBATCH_INLINE int64_t pcbatch_page_counter_peak(const struct pcbatch_page_counter *c)
{
	return (int64_t)pcbatch_priv_load(&c->peak);
}

/* Starts a new peak at the usage of now. */
PCBATCH_INLINE void pcbatch_page_counter_peak_reset(struct pcbatch_page_counter *c)
{
	pcbatch_priv_store(&c->peak, (uint64_t)pcbatch_page_counter_read(c));
}

/* The limit in pages. */
PCBATCH_INLINE int64_t pcbatch_page_counter_max(const struct pcbatch_page_counter *c)
{
	return (int64_t)pcbatch_priv_load(&c->max);
}

/* The mark in pages above which users should be slowed down; nothing here enforces it. */
PCBATCH_INLINE int64_t pcbatch_page_counter_high(const struct pcbatch_page_counter *c)
{
	return (int64_t)pcbatch_priv_load(&c->high);
}

/* How many charges this level has refused. */
PCBATCH_INLINE uint64_t pcbatch_page_counter_failcnt(const struct pcbatch_page_counter *c)
{
	return pcbatch_priv_load(&c->failcnt);
}

/* How many pages were uncharged at this level that had not been charged: a bug of the caller's. */
PCBATCH_INLINE uint64_t pcbatch_page_counter_underflow(const struct pcbatch_page_counter *c)
{
	return pcbatch_priv_load(&c->underflow);
}

/*
 * Takes pages off one level; returns how many of them had been there. What was
 * not is put back, whoever raced: usage ends where it would without the excess.
 */
PCBATCH_INLINE uint64_t pcbatch_priv_page_counter_cancel(struct pcbatch_page_counter *c, uint64_t pages)
{
	int64_t left = (int64_t)pcbatch_priv_add_return(&c->usage, 0 - pages);
	uint64_t excess;

	if (PCBATCH_LIKELY(left >= 0))
		return pages;
	excess = 0 - (uint64_t)left;
	if (excess > pages)
		excess = pages;
	PCBATCH_PRIV_ASSERT(excess == 0, "page counter underflow: more was uncharged than charged");
	(void)pcbatch_priv_fetch_add(&c->usage, excess);
	(void)pcbatch_priv_fetch_add(&c->underflow, excess);
	return pages - excess;
}

/*
 * Takes pages off this level and every ancestor.
 *
 * What a level never had (a bug of the caller's) is counted there in underflow, is
 * not taken from the levels above, and stops a debug build. Usage does not wrap.
 *
 * Returns: 0; -ERANGE more than was charged: what there was has been uncharged;
 *	-EINVAL c is NULL or pages above PCBATCH_PAGES_MAX: nothing was done.
 */
PCBATCH_INLINE int pcbatch_page_counter_uncharge(struct pcbatch_page_counter *c, uint64_t pages)
{
	int err = 0;

	if (c == NULL || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	for (; c != NULL && pages > 0; c = c->parent) {
		uint64_t had = pcbatch_priv_page_counter_cancel(c, pages);

		if (had != pages)
			err = -ERANGE;
		pages = had;
		PCBATCH_INJECT_C(19);
	}
	return err;
}

/* After every level accepted. Usage may hold others' refused charges by now: never above max from those. */
PCBATCH_INLINE void pcbatch_priv_page_counter_peaks(struct pcbatch_page_counter *c, bool forced)
{
	for (; c != NULL; c = c->parent) {
		int64_t usage = pcbatch_page_counter_read(c), max = pcbatch_page_counter_max(c);

		if (!forced && usage > max)
			usage = max;
		if (usage > pcbatch_page_counter_peak(c))
			pcbatch_priv_raise(&c->peak, usage);
	}
}

/*
 * Charges pages to this level and every ancestor, or to none.
 *
 * pages: 0 to PCBATCH_PAGES_MAX. failed: when not NULL, gets the level that
 *	refused (or NULL on success).
 * Returns: 0; -ENOMEM a level's max would be exceeded: only its failcnt has
 *	changed; -EINVAL c is NULL or pages out of range.
 */
PCBATCH_INLINE int pcbatch_page_counter_try_charge(struct pcbatch_page_counter *c, uint64_t pages,
						   struct pcbatch_page_counter **failed)
{
	struct pcbatch_page_counter *level, *undo;

	if (failed != NULL)
		*failed = NULL;
	if (c == NULL || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	for (level = c; level != NULL; level = level->parent) {
		/* Pairs with set_max: a full barrier between the add and the look at max. */
		int64_t usage = (int64_t)pcbatch_priv_add_return(&level->usage, pages);

		PCBATCH_INJECT_C(4);
		if (PCBATCH_LIKELY(usage <= (int64_t)pcbatch_priv_load(&level->max)))
			continue;
		(void)pcbatch_priv_fetch_add(&level->usage, 0 - pages);
		PCBATCH_INJECT_C(21);
		for (undo = c; undo != level; undo = undo->parent)
			(void)pcbatch_priv_fetch_add(&undo->usage, 0 - pages);
		(void)pcbatch_priv_fetch_add(&level->failcnt, 1);
		if (failed != NULL)
			*failed = level;
		return -ENOMEM;
	}
	pcbatch_priv_page_counter_peaks(c, false);
	return 0;
}

/*
 * Charges pages to this level and every ancestor, whatever the limits.
 *
 * Returns: 0; -EINVAL c is NULL or pages above PCBATCH_PAGES_MAX.
 */
PCBATCH_INLINE int pcbatch_page_counter_charge(struct pcbatch_page_counter *c, uint64_t pages)
{
	struct pcbatch_page_counter *level;

	if (c == NULL || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	for (level = c; level != NULL; level = level->parent) {
		(void)pcbatch_priv_fetch_add(&level->usage, pages);
		PCBATCH_INJECT_C(22);
	}
	pcbatch_priv_page_counter_peaks(c, true);
	return 0;
}

/*
 * Sets the limit, unless usage is above it already.
 *
 * A charge that runs at the same time either sees the new limit or is seen here.
 *
 * pages: 0 to PCBATCH_PAGES_MAX (no limit).
 * Returns: 0, and from now on what is granted stays within it; -EBUSY usage is
 *	above it, and the old limit stands; -EINVAL c is NULL or pages out of range.
 * Threading: setters of one counter must be serialised. Progress: lock-free; goes
 *	round again while charges come in between.
 */
PCBATCH_INLINE int pcbatch_page_counter_set_max(struct pcbatch_page_counter *c, int64_t pages)
{
	if (c == NULL || pages < 0 || pages > PCBATCH_PAGES_MAX)
		return -EINVAL;
	for (;;) {
		int64_t usage = pcbatch_page_counter_read(c);
		int64_t old;

		if (usage > pages)
			return -EBUSY;
		PCBATCH_INJECT_C(28);
		old = (int64_t)pcbatch_priv_exchange(&c->max, (uint64_t)pages);
		PCBATCH_INJECT_C(4);
		if (pages >= old || pcbatch_page_counter_read(c) <= pages)
			return 0;
		/* Someone charged in between, and may have looked at the old limit: put it back and look again. */
		pcbatch_priv_store(&c->max, (uint64_t)old);
	}
}

/*
 * Sets the high mark.
 *
 * pages: 0 to PCBATCH_PAGES_MAX.
 * Returns: 0; -EINVAL c is NULL or pages out of range.
 */
PCBATCH_INLINE int pcbatch_page_counter_set_high(struct pcbatch_page_counter *c, int64_t pages)
{
	if (c == NULL || pages < 0 || pages > PCBATCH_PAGES_MAX)
		return -EINVAL;
	pcbatch_priv_store(&c->high, (uint64_t)pages);
	return 0;
}

/* Is a an ancestor of b? */
PCBATCH_INLINE bool pcbatch_priv_page_counter_above(const struct pcbatch_page_counter *a, const struct pcbatch_page_counter *b)
{
	for (b = b->parent; b != NULL && b != a; b = b->parent)
		;
	return b != NULL;
}

/* How many more pages this level and every ancestor would take now. Never below 0. */
PCBATCH_INLINE int64_t pcbatch_page_counter_margin(const struct pcbatch_page_counter *c)
{
	int64_t margin = PCBATCH_PAGES_MAX;

	for (; c != NULL; c = c->parent) {
		int64_t here = pcbatch_page_counter_max(c) - pcbatch_page_counter_read(c);

		margin = here < margin ? here : margin;
	}
	return margin > 0 ? margin : 0;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_PAGE_COUNTER_H */
