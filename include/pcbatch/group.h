/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/group.h - what a user reaches for first: an owner with limit, stock and
 * statistics in one. Charge it before taking memory (or anything counted in
 * units), uncharge it after giving back.
 *
 * A charge tries, in this order: this CPU's stock; a batch from the page counters of
 * the group and every ancestor; exactly what was asked; the same after draining what
 * CPUs hold under the ancestor that refused, while nobody can cache anything new; the
 * reclaim callback of that ancestor, a bounded number of times. Then it is refused,
 * or, when forced, goes over the limit and is counted.
 *
 * Threading: any two calls may run at once on one group, but destroy. Charges,
 * uncharges, statistics updates and reads are async-signal-safe and never block; only
 * pcbatch_group_charge and its like may call reclaim. Creation, destruction, setters
 * and flushes take locks and are not for signal handlers. Callers hold the group
 * (have created it and not destroyed it) during every call.
 * A child process may go on with its copy at once. Don't use a domain in a vfork
 * child or under clone(CLONE_VM) without CLONE_THREAD: its CPU number is stale.
 */
#ifndef PCBATCH_GROUP_H
#define PCBATCH_GROUP_H

#include "obj_stock.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pcbatch_group;

enum pcbatch_event {
	PCBATCH_EVENT_LOW,    /* reclaim was asked of a group at or below its low mark */
	PCBATCH_EVENT_HIGH,   /* a charge left usage above the high mark */
	PCBATCH_EVENT_MAX,    /* a charge met the limit */
	PCBATCH_EVENT_FAIL,   /* a charge was refused */
	PCBATCH_EVENT_FORCED, /* a forced charge went over a limit */
	PCBATCH_EVENTS
};

/* What a group is made from; pcbatch_group_attr_init sets the defaults. */
struct pcbatch_group_attr {
	int64_t max;  /* pages; PCBATCH_PAGES_MAX: none */
	int64_t high; /* pages above which charges count HIGH and call reclaim; PCBATCH_PAGES_MAX: none */
	int64_t low;  /* pages below which reclaiming is worth an event; 0 */
	/*
	 * Frees (uncharges) pages of `limiting` or below it, about as many as asked,
	 * and returns how many; 0: it can't. Runs in the charging thread.
	 */
	uint64_t (*reclaim)(struct pcbatch_group *limiting, uint64_t pages, void *ctx);
	void *reclaim_ctx;
	uint32_t reclaim_retries; /* calls of reclaim for one charge, 1 to 1000; 0: 16 */
	void *user;               /* returned by pcbatch_group_user */
};

struct pcbatch_group {
	struct pcbatch_owner owner; /* first: a group is found from its owner */
	struct pcbatch_group_attr attr PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	uint64_t low;
	uint64_t events[PCBATCH_EVENTS]; /* of the group and its descendants */
	uint64_t events_local[PCBATCH_EVENTS];
};

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_group) <= PCBATCH_PRIV_OWNER_BYTES, "a group fits the owners' table");

#define PCBATCH_PRIV_RECLAIM 1u /* may call reclaim */
#define PCBATCH_PRIV_FORCE 2u   /* must not fail */
#define PCBATCH_PRIV_PROBE 4u   /* may be tried again: neither counts a refusal nor forces */

PCBATCH_INLINE struct pcbatch_group *pcbatch_priv_group_of(struct pcbatch_owner *owner)
{
	return (struct pcbatch_group *)(void *)owner;
}

PCBATCH_INLINE struct pcbatch_group *pcbatch_priv_group_of_pages(struct pcbatch_page_counter *pages)
{
	return (struct pcbatch_group *)(void *)((char *)pages - offsetof(struct pcbatch_owner, pages));
}

PCBATCH_INLINE bool pcbatch_priv_group_valid(const struct pcbatch_group *g)
{
	bool valid = g != NULL && (pcbatch_priv_load(&g->owner.state) == PCBATCH_PRIV_OWNER_ONLINE ||
				   pcbatch_priv_load(&g->owner.state) == PCBATCH_PRIV_OWNER_OFFLINE);

	PCBATCH_PRIV_ASSERT(valid, "group is NULL, not created or destroyed");
	return valid;
}

PCBATCH_INLINE void pcbatch_priv_group_event(struct pcbatch_group *g, enum pcbatch_event event)
{
	struct pcbatch_owner *owner;

	(void)pcbatch_priv_fetch_add(&g->events_local[event], 1);
	for (owner = &g->owner; owner != NULL; owner = owner->parent)
		(void)pcbatch_priv_fetch_add(&pcbatch_priv_group_of(owner)->events[event], 1);
}

/* The lowest of g and its ancestors with less room than `pages`; NULL: all have it. */
PCBATCH_INLINE struct pcbatch_group *pcbatch_priv_group_limiting(struct pcbatch_group *g, uint64_t pages)
{
	struct pcbatch_owner *owner;

	for (owner = &g->owner; owner != NULL; owner = owner->parent) {
		int64_t room = pcbatch_page_counter_max(&owner->pages) - pcbatch_page_counter_read(&owner->pages);

		if (room < 0 || (uint64_t)room < pages)
			return pcbatch_priv_group_of(owner);
	}
	return NULL;
}

/* ------------------------------------------------------------------ lifetime */

/*
 * Sets every field to its default.
 *
 * Returns: 0; -EINVAL attr is NULL.
 */
PCBATCH_INLINE int pcbatch_group_attr_init(struct pcbatch_group_attr *attr)
{
	if (attr == NULL)
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->max = PCBATCH_PAGES_MAX;
	attr->high = PCBATCH_PAGES_MAX;
	return 0;
}

PCBATCH_INLINE bool pcbatch_priv_pages_valid(int64_t pages)
{
	return pages >= 0 && pages <= PCBATCH_PAGES_MAX;
}

PCBATCH_INLINE void pcbatch_priv_group_set_up(struct pcbatch_group *g, const struct pcbatch_group_attr *attr)
{
	g->attr = *attr;
	if (g->attr.reclaim_retries == 0)
		g->attr.reclaim_retries = 16;
	g->owner.pages.max = (uint64_t)attr->max;
	g->owner.pages.high = (uint64_t)attr->high;
	g->low = (uint64_t)attr->low;
	memset(g->events, 0, sizeof(g->events));
	memset(g->events_local, 0, sizeof(g->events_local));
}

/*
 * Makes a group.
 *
 * dom: its domain. parent: what is charged along with it, in the same domain and
 * not offline; NULL: nothing. attr: see struct pcbatch_group_attr; NULL: no limits.
 * out: gets the group, which the domain's memory holds; unchanged on error.
 * Returns: 0; -EINVAL dom is not a domain, out is NULL, a value of attr is out of
 *	range; -EXDEV parent is of another domain; -ENODEV parent is offline or
 *	destroyed; -ENOMEM.
 * Threading: any thread, not a signal handler. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_group_create(struct pcbatch_domain *dom, struct pcbatch_group *parent,
					const struct pcbatch_group_attr *attr, struct pcbatch_group **out)
{
	struct pcbatch_group_attr defaults;
	struct pcbatch_owner *owner;

	(void)pcbatch_group_attr_init(&defaults);
	attr = attr == NULL ? &defaults : attr;
	if (!pcbatch_priv_domain_valid(dom) || out == NULL || !pcbatch_priv_pages_valid(attr->max) ||
	    !pcbatch_priv_pages_valid(attr->high) || !pcbatch_priv_pages_valid(attr->low) || attr->reclaim_retries > 1000)
		return -EINVAL;
	if (parent != NULL && parent->owner.dom != dom)
		return -EXDEV;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	pcbatch_priv_owner_reap_locked(dom);
	if (parent != NULL && !pcbatch_priv_owner_online(&parent->owner)) {
		pcbatch_priv_unlock(&dom->lock);
		return -ENODEV;
	}
	owner = pcbatch_priv_owner_create_locked(dom, parent == NULL ? NULL : &parent->owner);
	if (owner != NULL) {
		pcbatch_priv_group_set_up(pcbatch_priv_group_of(owner), attr);
		*out = pcbatch_priv_group_of(owner);
	}
	pcbatch_priv_unlock(&dom->lock);
	return owner == NULL ? -ENOMEM : 0;
}

/*
 * Takes the group off the slots: what CPUs hold for it is given back, nothing is
 * cached for it again, later calls go to the page counters. No children can be made.
 *
 * Returns: 0, also when it was offline; -EINVAL g is not a group; -ERANGE something
 *	drained had never been charged; another negative errno: the kernel refused the
 *	fence, so slots may pin the group until their CPUs use them for others.
 * Threading: any thread, not a signal handler. Progress: never waits for a charge; system calls.
 */
PCBATCH_INLINE int pcbatch_group_offline(struct pcbatch_group *g)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_priv_owner_take_offline(&g->owner) : -EINVAL;
}

/*
 * Ends a group. The memory is used again for later groups, once no slot holds it.
 *
 * Returns: 0; -ERANGE it is ended like that, but more had been uncharged than charged
 *	in its time; -EINVAL g is not a group, or destroyed already; -EBUSY it has
 *	children or live charges, or another thread is just handing back what it evicted
 *	from a slot (try again): it stays as it was; another negative errno: the kernel
 *	refused the fence, it stays too.
 * Threading: no other call on g may run or follow; not a signal handler. Progress: may block.
 */
PCBATCH_INLINE int pcbatch_group_destroy(struct pcbatch_group *g)
{
	struct pcbatch_domain *dom;
	struct pcbatch_owner *owner;
	bool was_online;
	int err;

	if (!pcbatch_priv_group_valid(g))
		return -EINVAL;
	owner = &g->owner;
	dom = owner->dom;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	was_online = pcbatch_priv_owner_online(owner);
	err = pcbatch_priv_load(&owner->children) != 0 ? -EBUSY : pcbatch_priv_owner_take_offline(owner);
	if ((err == 0 || err == -ERANGE) && pcbatch_page_counter_read(&owner->pages) != 0)
		err = -EBUSY;
	if (err != 0 && err != -ERANGE) {
		if (was_online)
			pcbatch_priv_owner_take_online(owner);
		pcbatch_priv_unlock(&dom->lock);
		return err;
	}
	/* With no live charge left, a started page is one whose bytes were uncharged twice. */
	if (pcbatch_page_counter_underflow(&owner->pages) != 0 || pcbatch_priv_load(&owner->remainder) != 0)
		err = -ERANGE;
	pcbatch_priv_store(&owner->state, PCBATCH_PRIV_OWNER_DEAD);
	if (owner->parent != NULL)
		(void)pcbatch_priv_fetch_add(&owner->parent->children, UINT64_MAX);
	pcbatch_priv_owner_put(owner);
	pcbatch_priv_owner_reap_locked(dom);
	pcbatch_priv_unlock(&dom->lock);
	return err;
}

/*
 * Frees groups whose last slot was given up since; create and destroy do so too.
 *
 * Returns: 0; -EINVAL dom is not a domain.
 * Threading: any thread, not a signal handler. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_group_reap(struct pcbatch_domain *dom)
{
	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	pcbatch_priv_owner_reap_locked(dom);
	pcbatch_priv_unlock(&dom->lock);
	return 0;
}

/*
 * Ends a domain and frees all its memory.
 *
 * Returns: 0; -EINVAL dom is not a domain, or destroyed already; -EBUSY groups or
 *	counters remain, or slots still pin groups that were destroyed while the kernel
 *	refused the fence: it stays as it was.
 * Threading: no other call on the domain may run or follow; not a signal handler.
 */
PCBATCH_INLINE int pcbatch_domain_destroy(struct pcbatch_domain *dom)
{
	int err = pcbatch_group_reap(dom);

	if (err != 0)
		return err;
	if (dom->owners != 0 || dom->counters != 0)
		return -EBUSY;
	pcbatch_priv_domain_release(dom);
	return 0;
}

#ifdef __cplusplus
}
#endif

#include "group_charge.h"
#include "group_info.h"

#endif /* PCBATCH_GROUP_H */
