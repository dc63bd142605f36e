/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch/group_info.h - limits, readings, drains and statistics of a group (group.h). */
#ifndef PCBATCH_GROUP_INFO_H
#define PCBATCH_GROUP_INFO_H

#include "group.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sets the limit. When usage is above it because CPUs hold pages, they are drained,
 * and it is tried once more while nobody can cache anything.
 *
 * pages: 0 to PCBATCH_PAGES_MAX (none).
 * Returns: 0, and what is granted stays within it; -EBUSY live charges are above it,
 *	and the old limit stands; -EINVAL g is not a group or pages out of range.
 * Threading: any thread, not a signal handler. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_group_set_max(struct pcbatch_group *g, int64_t pages)
{
	struct pcbatch_domain *dom;
	uint64_t pid;
	int err;

	if (!pcbatch_priv_group_valid(g) || !pcbatch_priv_pages_valid(pages))
		return -EINVAL;
	dom = g->owner.dom;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	err = pcbatch_page_counter_set_max(&g->owner.pages, pages);
	if (err == -EBUSY) {
		pid = pcbatch_priv_stock_hold(dom);
		(void)pcbatch_priv_drain(dom, &g->owner, true, true);
		err = pcbatch_page_counter_set_max(&g->owner.pages, pages);
		pcbatch_priv_stock_let(dom, pid);
	}
	pcbatch_priv_unlock(&dom->lock);
	return err;
}

/* Sets the high mark. pages: 0 to PCBATCH_PAGES_MAX (none). Returns: 0; -EINVAL g is not a group or pages out of range. */
PCBATCH_INLINE int pcbatch_group_set_high(struct pcbatch_group *g, int64_t pages)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_page_counter_set_high(&g->owner.pages, pages) : -EINVAL;
}

/* Sets the low mark. pages: 0 to PCBATCH_PAGES_MAX. Returns: 0; -EINVAL g is not a group or pages out of range. */
PCBATCH_INLINE int pcbatch_group_set_low(struct pcbatch_group *g, int64_t pages)
{
	if (!pcbatch_priv_group_valid(g) || !pcbatch_priv_pages_valid(pages))
		return -EINVAL;
	pcbatch_priv_store(&g->low, (uint64_t)pages);
	return 0;
}

/*
 * Pages charged to the group and its descendants, with those that CPUs hold: at most
 * high x CPUs more than the live charges, for each group below. One load.
 */
PCBATCH_INLINE int64_t pcbatch_group_current(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_read(&g->owner.pages);
}

/* The highest current that was granted since creation or the last reset. */
PCBATCH_INLINE int64_t pcbatch_group_peak(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_peak(&g->owner.pages);
}

/* Starts a new peak at the current of now. Returns: 0; -EINVAL g is not a group. */
PCBATCH_INLINE int pcbatch_group_peak_reset(struct pcbatch_group *g)
{
	if (!pcbatch_priv_group_valid(g))
		return -EINVAL;
	pcbatch_page_counter_peak_reset(&g->owner.pages);
	return 0;
}

/* The limit, pages. */
PCBATCH_INLINE int64_t pcbatch_group_max(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_max(&g->owner.pages);
}

/* The high mark, pages. */
PCBATCH_INLINE int64_t pcbatch_group_high(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_high(&g->owner.pages);
}

/* The low mark, pages. */
PCBATCH_INLINE int64_t pcbatch_group_low(const struct pcbatch_group *g)
{
	return (int64_t)pcbatch_priv_load(&g->low);
}

/* How often an event happened in the group or below it. */
PCBATCH_INLINE uint64_t pcbatch_group_event(const struct pcbatch_group *g, enum pcbatch_event event)
{
	return event < PCBATCH_EVENTS ? pcbatch_priv_load(&g->events[event]) : 0;
}

/* How often an event happened in the group itself. */
PCBATCH_INLINE uint64_t pcbatch_group_event_local(const struct pcbatch_group *g, enum pcbatch_event event)
{
	return event < PCBATCH_EVENTS ? pcbatch_priv_load(&g->events_local[event]) : 0;
}

/* How many charges met this group's limit at its page counter, batches included. */
PCBATCH_INLINE uint64_t pcbatch_group_failcnt(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_failcnt(&g->owner.pages);
}

/* Pages uncharged that had not been charged: a bug of the caller's. */
PCBATCH_INLINE uint64_t pcbatch_group_underflow(const struct pcbatch_group *g)
{
	return pcbatch_page_counter_underflow(&g->owner.pages);
}

/* The parent, or NULL. */
PCBATCH_INLINE struct pcbatch_group *pcbatch_group_parent(struct pcbatch_group *g)
{
	return g->owner.parent == NULL ? NULL : pcbatch_priv_group_of(g->owner.parent);
}

/*
 * Whose limit is in the way of `pages` more: the lowest of g and its ancestors with less room
 * than that, NULL when there is none. For the message after a refusal; others may charge
 * and uncharge in between.
 */
PCBATCH_INLINE struct pcbatch_group *pcbatch_group_limiting(struct pcbatch_group *g, uint64_t pages)
{
	return g == NULL ? NULL : pcbatch_priv_group_limiting(g, pages);
}

/* What attr.user was at creation. */
PCBATCH_INLINE void *pcbatch_group_user(const struct pcbatch_group *g)
{
	return g->attr.user;
}

/*
 * Gives back what CPUs hold for this group; the slots of others stay warm.
 *
 * Returns: 0; -EINVAL g is not a group; -ERANGE something drained had never been
 *	charged; another negative errno: the kernel refused the fence, nothing was taken.
 * Threading: any thread, async-signal-safe. Progress: never waits for a charge; one system call.
 */
PCBATCH_INLINE int pcbatch_group_drain(struct pcbatch_group *g)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_priv_drain(g->owner.dom, &g->owner, false, false) : -EINVAL;
}

/* As pcbatch_group_drain, for this group and all below it. */
PCBATCH_INLINE int pcbatch_group_drain_subtree(struct pcbatch_group *g)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_priv_drain(g->owner.dom, &g->owner, true, false) : -EINVAL;
}

/*
 * Goes through the group and all below it, in the order of their ids: the next one
 * behind *id (0: the first), whose id is then there; NULL: no more. Others may come
 * and go meanwhile, and be met or not.
 */
PCBATCH_INLINE const struct pcbatch_owner *pcbatch_priv_group_next_within(const struct pcbatch_group *g, uint64_t *id)
{
	const struct pcbatch_domain *dom = g->owner.dom;

	while (++*id <= pcbatch_priv_load(&dom->owner_ids)) {
		const struct pcbatch_owner *owner = pcbatch_priv_owner_at(dom, (uint32_t)*id);

		/* A freed owner's parent pointer is an old one. */
		if (pcbatch_priv_load(&owner->state) != PCBATCH_PRIV_OWNER_FREE && pcbatch_priv_owner_within(owner, &g->owner))
			return owner;
	}
	return NULL;
}

/*
 * What is charged to the group and all below it, to the byte; a page charge counts
 * page_size. Drains the subtree first. Exact when no call is in flight, and off by what
 * those in flight hold otherwise.
 *
 * bytes: gets it, at most INT64_MAX; unchanged on error.
 * Returns: 0; -EINVAL g is not a group or bytes is NULL; another negative errno: as
 *	pcbatch_group_drain.
 * Threading: any thread, async-signal-safe. Progress: one system call; walks the CPUs and the domain's groups.
 */
PCBATCH_INLINE int pcbatch_group_bytes(struct pcbatch_group *g, int64_t *bytes)
{
	uint64_t id = 0, rest = 0, size, pages;
	const struct pcbatch_owner *owner;
	int err;

	if (!pcbatch_priv_group_valid(g) || bytes == NULL)
		return -EINVAL;
	err = pcbatch_group_drain_subtree(g);
	if (err != 0)
		return err;
	size = g->owner.dom->attr.page_size;
	/* What of started pages neither a live charge nor a slot holds. */
	while ((owner = pcbatch_priv_group_next_within(g, &id)) != NULL)
		rest += pcbatch_priv_load(&owner->remainder);
	pages = (uint64_t)pcbatch_group_current(g);
	if (pages > (uint64_t)INT64_MAX / size)
		*bytes = INT64_MAX;
	else
		*bytes = pages * size > rest ? (int64_t)(pages * size - rest) : 0;
	return 0;
}

/*
 * pcbatch_group_current is at most this many pages above the live charges (a live byte
 * charge counting its part of a page), plus what calls in flight hold, and never below:
 * what the group and those below it can have in slots, at most seven of them a CPU, and
 * a started page each.
 *
 * Threading: any thread, async-signal-safe. Progress: wait-free, walks the domain's groups.
 */
PCBATCH_INLINE int64_t pcbatch_group_error_bound(const struct pcbatch_group *g)
{
	const struct pcbatch_domain *dom = g->owner.dom;
	uint64_t slot = pcbatch_priv_marks_now(dom).high + pcbatch_priv_pages_for(dom, dom->attr.obj_high);
	uint64_t id = 0, groups = 0, slots;

	while (pcbatch_priv_group_next_within(g, &id) != NULL)
		groups++;
	slots = groups < PCBATCH_STOCK_SLOTS ? groups : PCBATCH_STOCK_SLOTS;
	return (int64_t)(slots * slot * dom->lines + groups);
}

/* Adds delta units to a statistics item: pcbatch_stats_mod of this group. Returns: 0; -EINVAL item is out of range. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_stat_mod(struct pcbatch_group *g, uint32_t item, int64_t delta)
{
	return pcbatch_stats_mod(&g->owner.stats, item, delta);
}

/* The item's value of the group and all below as of the last flush, never below 0; what slots hold of stock_item is not in it. */
PCBATCH_INLINE int64_t pcbatch_group_stat_read(const struct pcbatch_group *g, uint32_t item)
{
	return pcbatch_stats_read(&g->owner.stats, item);
}

/* As pcbatch_group_stat_read, and may be below 0. */
PCBATCH_INLINE int64_t pcbatch_group_stat_read_signed(const struct pcbatch_group *g, uint32_t item)
{
	return pcbatch_stats_read_signed(&g->owner.stats, item);
}

/* The item's value of the group alone as of the last flush; may be below 0. */
PCBATCH_INLINE int64_t pcbatch_group_stat_read_local(const struct pcbatch_group *g, uint32_t item)
{
	return pcbatch_stats_read_local(&g->owner.stats, item);
}

/* Whether a flush of this group is worth it: pcbatch_stats_needs_flush. */
PCBATCH_INLINE bool pcbatch_group_stat_needs_flush(const struct pcbatch_group *g)
{
	return pcbatch_stats_needs_flush(&g->owner.stats);
}

/* Brings the statistics of the group and all below up to date: pcbatch_stats_flush. */
PCBATCH_INLINE int pcbatch_group_stat_flush(struct pcbatch_group *g)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_stats_flush(g->owner.dom, &g->owner.stats) : -EINVAL;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_GROUP_INFO_H */
