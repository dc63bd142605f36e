/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch/group_charge.h - the charge and uncharge paths of group.h, where the order of the attempts is explained. */
#ifndef PCBATCH_GROUP_CHARGE_H
#define PCBATCH_GROUP_CHARGE_H

#include "group.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After a charge that went to the page counters: marks it left behind. */
PCBATCH_INLINE void pcbatch_priv_group_check_high(struct pcbatch_group *g, unsigned int flags)
{
	struct pcbatch_owner *owner;

	for (owner = &g->owner; owner != NULL; owner = owner->parent) {
		struct pcbatch_group *level = pcbatch_priv_group_of(owner);
		int64_t over = pcbatch_page_counter_read(&owner->pages) - pcbatch_page_counter_high(&owner->pages);

		if (PCBATCH_LIKELY(over <= 0))
			continue;
		pcbatch_priv_group_event(level, PCBATCH_EVENT_HIGH);
		if ((flags & PCBATCH_PRIV_RECLAIM) != 0 && level->attr.reclaim != NULL)
			(void)level->attr.reclaim(level, (uint64_t)over, level->attr.reclaim_ctx);
		return;
	}
}

/*
 * Once more, with nothing cached under the group that refused, and nobody able to
 * cache anything before this attempt is decided: so that a refusal is right. Another
 * level may refuse then, which is drained in its turn; each round adds a level, so
 * there are no more rounds than levels.
 */
PCBATCH_INLINE int pcbatch_priv_group_charge_drained(struct pcbatch_group *g, uint64_t pages,
						     struct pcbatch_page_counter **failed)
{
	struct pcbatch_domain *dom = g->owner.dom;
	struct pcbatch_page_counter *drained = NULL;
	uint64_t pid = pcbatch_priv_stock_hold(dom);
	int err = -ENOMEM;

	/* What is drained once stays so while held, and with a level all below it: only a higher one is news. */
	while (err == -ENOMEM && (drained == NULL || pcbatch_priv_page_counter_above(*failed, drained))) {
		drained = *failed;
		PCBATCH_INJECT_C(24);
		(void)pcbatch_priv_drain(dom, &pcbatch_priv_group_of_pages(drained)->owner, true, true);
		PCBATCH_INJECT_C(25);
		err = pcbatch_page_counter_try_charge(&g->owner.pages, pages, failed);
	}
	pcbatch_priv_stock_let(dom, pid);
	return err;
}

/* Asks the group that refused to make room. Returns false when it can't. */
PCBATCH_INLINE bool pcbatch_priv_group_reclaim(struct pcbatch_group *limiting, uint64_t pages)
{
	if (limiting->attr.reclaim == NULL)
		return false;
	if (pcbatch_page_counter_read(&limiting->owner.pages) <= (int64_t)pcbatch_priv_load(&limiting->low))
		pcbatch_priv_group_event(limiting, PCBATCH_EVENT_LOW);
	return limiting->attr.reclaim(limiting, pages, limiting->attr.reclaim_ctx) > 0;
}

/* When no attempt was granted: refuses and says at which level, or goes over the limit. Returns 0 or -ENOMEM. */
PCBATCH_INLINE int pcbatch_priv_group_refuse(struct pcbatch_group *g, struct pcbatch_group *limiting, uint64_t pages,
					     unsigned int flags)
{
	if ((flags & PCBATCH_PRIV_FORCE) == 0) {
		pcbatch_priv_group_event(limiting, PCBATCH_EVENT_FAIL);
		return -ENOMEM;
	}
	(void)pcbatch_page_counter_charge(&g->owner.pages, pages);
	pcbatch_priv_group_event(g, PCBATCH_EVENT_FORCED);
	return 0;
}

/* Charges exactly `pages` to the page counters. Returns 0 or -ENOMEM. */
PCBATCH_INLINE int pcbatch_priv_group_charge_exact(struct pcbatch_group *g, uint64_t pages, unsigned int flags)
{
	struct pcbatch_page_counter *failed = NULL;
	struct pcbatch_group *limiting = NULL;
	uint32_t tries = 0;

	do {
		if (pcbatch_page_counter_try_charge(&g->owner.pages, pages, &failed) == 0)
			return 0;
		limiting = pcbatch_priv_group_of_pages(failed);
		pcbatch_priv_group_event(limiting, PCBATCH_EVENT_MAX);
		if (pcbatch_priv_group_charge_drained(g, pages, &failed) == 0)
			return 0;
		/* Another level may have refused the second time. */
		limiting = pcbatch_priv_group_of_pages(failed);
	} while ((flags & PCBATCH_PRIV_RECLAIM) != 0 && tries++ < limiting->attr.reclaim_retries &&
		 pcbatch_priv_group_reclaim(limiting, pages));
	return (flags & PCBATCH_PRIV_PROBE) != 0 ? -ENOMEM : pcbatch_priv_group_refuse(g, limiting, pages, flags);
}

/* Past this CPU's stock. */
PCBATCH_INLINE int pcbatch_priv_group_try_charge(struct pcbatch_group *g, uint64_t pages, int64_t stat, unsigned int flags)
{
	struct pcbatch_owner *owner = &g->owner;
	struct pcbatch_domain *dom = owner->dom;
	uint64_t batch = pcbatch_priv_marks_now(dom).batch;
	/* Only where what is left of the batch can be kept. */
	bool batched = pages < batch && pcbatch_priv_cpu(dom) < dom->lines && pcbatch_priv_owner_online(owner) &&
		       !pcbatch_priv_stock_held(pcbatch_priv_load(&dom->install_gate));
	int err;

	pcbatch_priv_count(dom, pages <= batch ? PCBATCH_PRIV_COUNT_MISS : PCBATCH_PRIV_COUNT_DIRECT, 1);
	if (batched && pcbatch_page_counter_try_charge(&owner->pages, batch, NULL) == 0) {
		PCBATCH_INJECT_C(23);
		/* What is left over and the statistic go into the slot in one word. */
		(void)pcbatch_priv_stock_refill(owner, batch - pages, stat, true);
	} else {
		err = pcbatch_priv_group_charge_exact(g, pages, flags);
		if (err != 0)
			return err;
		pcbatch_priv_stock_stat(owner, stat);
	}
	pcbatch_priv_group_check_high(g, flags);
	return 0;
}

PCBATCH_SLOW int pcbatch_priv_group_charge_slow(struct pcbatch_group *g, uint64_t pages, int64_t stat, unsigned int flags)
{
	if (!pcbatch_priv_group_valid(g) || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	if (pages == 0) {
		pcbatch_priv_stock_stat(&g->owner, stat);
		return 0;
	}
	if (pages <= PCBATCH_STOCK_HIGH_MAX && pcbatch_priv_stock_consume(&g->owner, pages, stat))
		return 0;
	return pcbatch_priv_group_try_charge(g, pages, stat, flags);
}

PCBATCH_SLOW int pcbatch_priv_group_uncharge_slow(struct pcbatch_group *g, uint64_t pages, int64_t stat)
{
	if (!pcbatch_priv_group_valid(g) || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	stat = (int64_t)(0 - (uint64_t)stat);
	if (pages == 0) {
		pcbatch_priv_stock_stat(&g->owner, stat);
		return 0;
	}
	return pcbatch_priv_stock_refill(&g->owner, pages, stat, false);
}

/*
 * Charges pages to the group and every ancestor, and adds stat to the domain's
 * stock_item of the group, both or neither.
 *
 * pages: 0 to PCBATCH_PAGES_MAX; up to the batch they are usually a hit. stat: units, any.
 * Returns: 0; -ENOMEM a limit is in the way, also after draining and reclaiming, and
 *	only events and failure counts have changed; -EINVAL pages out of range, g not a group.
 * Threading: any thread; async-signal-safe where the ancestors' reclaim callbacks are.
 * Progress: a hit is wait-free; never blocks but in a reclaim callback. Origin: seed 000.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_group_charge_stat(struct pcbatch_group *g, uint64_t pages, int64_t stat)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_stock_consume_hit(&g->owner, pages, stat)))
		return 0;
	return pcbatch_priv_group_charge_slow(g, pages, stat, PCBATCH_PRIV_RECLAIM);
}

/* As pcbatch_group_charge_stat with a statistic of 0. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_charge(struct pcbatch_group *g, uint64_t pages)
{
	return pcbatch_group_charge_stat(g, pages, 0);
}

/* As pcbatch_group_charge_stat, but never calls reclaim: for signal handlers and for whoever has a better idea. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_try_charge(struct pcbatch_group *g, uint64_t pages, int64_t stat)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_stock_consume_hit(&g->owner, pages, stat)))
		return 0;
	return pcbatch_priv_group_charge_slow(g, pages, stat, 0);
}

/*
 * As pcbatch_group_charge_stat, for what can't be refused: goes over the limits when
 * it must, and counts PCBATCH_EVENT_FORCED then.
 *
 * Returns: 0; -EINVAL pages out of range or g is not a group.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_group_charge_force(struct pcbatch_group *g, uint64_t pages, int64_t stat)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_stock_consume_hit(&g->owner, pages, stat)))
		return 0;
	return pcbatch_priv_group_charge_slow(g, pages, stat, PCBATCH_PRIV_FORCE);
}

/*
 * Gives pages back to the group and every ancestor, through this CPU's stock, and
 * takes stat off its stock_item.
 *
 * pages: 0 to PCBATCH_PAGES_MAX, charged before. stat: units, any.
 * Returns: 0; -ERANGE the page counter underflowed: more was uncharged than charged,
 *	here or earlier through the stock; it is counted and clamped; -EINVAL pages out of
 *	range or g is not a group.
 * Threading: any thread (not only the one that charged), async-signal-safe. Progress: a
 *	hit is wait-free; never blocks. Origin: seeds 002 and 000.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_group_uncharge_stat(struct pcbatch_group *g, uint64_t pages, int64_t stat)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_stock_refill_hit(&g->owner, pages, stat)))
		return 0;
	return pcbatch_priv_group_uncharge_slow(g, pages, stat);
}

/* As pcbatch_group_uncharge_stat with a statistic of 0. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_uncharge(struct pcbatch_group *g, uint64_t pages)
{
	return pcbatch_group_uncharge_stat(g, pages, 0);
}

/*
 * Charges the page counters past the stock (but drains it when they refuse). Slower in
 * every case; for comparison, and for charges that stay.
 *
 * Returns: as pcbatch_group_try_charge.
 */
PCBATCH_INLINE int pcbatch_group_charge_direct(struct pcbatch_group *g, uint64_t pages)
{
	int err;

	if (!pcbatch_priv_group_valid(g) || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	err = pcbatch_priv_group_charge_exact(g, pages, 0);
	if (err == 0)
		pcbatch_priv_group_check_high(g, 0);
	return err;
}

/* Uncharges the page counters past the stock. Returns: as pcbatch_group_uncharge. */
PCBATCH_INLINE int pcbatch_group_uncharge_direct(struct pcbatch_group *g, uint64_t pages)
{
	return pcbatch_priv_group_valid(g) ? pcbatch_page_counter_uncharge(&g->owner.pages, pages) : -EINVAL;
}

/* --------------------------------------------------------------------- bytes */

/* Charges what `bytes` need beyond those in *have, in pages, which then are in *have too. */
PCBATCH_INLINE int pcbatch_priv_group_charge_rest(struct pcbatch_group *g, uint64_t bytes, uint64_t *have, unsigned int flags)
{
	uint64_t pages;
	int err = 0;

	if (*have >= bytes)
		return 0;
	pages = pcbatch_priv_pages_for(g->owner.dom, bytes - *have);
	if (!pcbatch_priv_stock_consume_hit(&g->owner, pages, 0))
		err = pcbatch_priv_group_charge_slow(g, pages, 0, flags);
	if (err == 0)
		*have += pages * g->owner.dom->attr.page_size;
	return err;
}

/* What no attempt was granted is refused, or forced, once. */
PCBATCH_INLINE int pcbatch_priv_group_refuse_rest(struct pcbatch_group *g, uint64_t bytes, uint64_t *have, unsigned int flags)
{
	uint64_t pages = pcbatch_priv_pages_for(g->owner.dom, bytes - *have);
	/* Somebody may have made room since; then it is as well g's. */
	struct pcbatch_group *limiting = pcbatch_priv_group_limiting(g, pages);
	int err = pcbatch_priv_group_refuse(g, limiting == NULL ? g : limiting, pages, flags);

	if (err == 0) {
		*have += pages * g->owner.dom->attr.page_size;
		pcbatch_priv_group_check_high(g, flags);
	}
	return err;
}

PCBATCH_SLOW int pcbatch_priv_group_charge_bytes_slow(struct pcbatch_group *g, uint64_t bytes, unsigned int flags)
{
	uint64_t have = 0, parts, more = 0;
	int err;

	if (!pcbatch_priv_group_valid(g) || bytes > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	if (bytes == 0 || (bytes <= PCBATCH_SLOT_OBJ_STEP_MAX && pcbatch_priv_obj_consume(&g->owner, bytes)))
		return 0;
	/*
	 * Parts of pages that slots gave up come first. A refused charge drains byte slots,
	 * so there may be some only afterwards: it is over when that brought nothing, and
	 * only then counts as refused or goes over the limit.
	 */
	do {
		parts = pcbatch_priv_load(&g->owner.remainder) == 0 ? 0 : pcbatch_priv_exchange(&g->owner.remainder, 0);
		have += parts;
		PCBATCH_INJECT_C(32);
		err = pcbatch_priv_group_charge_rest(g, bytes, &have, flags | PCBATCH_PRIV_PROBE);
	} while (err == -ENOMEM && pcbatch_priv_load(&g->owner.remainder) != 0);
	if (err == -ENOMEM)
		err = pcbatch_priv_group_refuse_rest(g, bytes, &have, flags);
	if (err != 0) {
		(void)pcbatch_priv_obj_give_back(&g->owner, have);
		return err;
	}
	if (have > bytes)
		(void)pcbatch_priv_obj_refill(&g->owner, have - bytes, true, &more);
	return more == 0 ? 0 : pcbatch_group_uncharge(g, more);
}

PCBATCH_SLOW int pcbatch_priv_group_uncharge_bytes_slow(struct pcbatch_group *g, uint64_t bytes)
{
	uint64_t size, pages = 0, more = 0;
	int err, err2 = 0;

	if (!pcbatch_priv_group_valid(g) || bytes > (uint64_t)PCBATCH_PAGES_MAX)
		return -EINVAL;
	size = g->owner.dom->attr.page_size;
	if (bytes > g->owner.dom->attr.obj_high) {
		/* Whole pages go the pages' way, whose stock may take them. */
		pages = bytes / size;
		bytes %= size;
	}
	err = bytes == 0 ? 0 : pcbatch_priv_obj_refill(&g->owner, bytes, false, &more);
	if (pages + more != 0)
		err2 = pcbatch_group_uncharge(g, pages + more);
	return err != 0 ? err : err2;
}

/*
 * Charges bytes: whole pages to the group and every ancestor, what is left of the
 * last page stays with this CPU for the next call.
 *
 * bytes: 0 to PCBATCH_PAGES_MAX. A page is the domain's page_size.
 * Returns: as pcbatch_group_charge_stat. Threading, progress: likewise.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_group_charge_bytes(struct pcbatch_group *g, uint64_t bytes)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_obj_consume_hit(&g->owner, bytes)))
		return 0;
	return pcbatch_priv_group_charge_bytes_slow(g, bytes, PCBATCH_PRIV_RECLAIM);
}

/* As pcbatch_group_charge_bytes, but never calls reclaim. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_try_charge_bytes(struct pcbatch_group *g, uint64_t bytes)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_obj_consume_hit(&g->owner, bytes)))
		return 0;
	return pcbatch_priv_group_charge_bytes_slow(g, bytes, 0);
}

/* As pcbatch_group_charge_bytes, for what can't be refused. Returns: as pcbatch_group_charge_force. */
PCBATCH_ALWAYS_INLINE int pcbatch_group_charge_bytes_force(struct pcbatch_group *g, uint64_t bytes)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_obj_consume_hit(&g->owner, bytes)))
		return 0;
	return pcbatch_priv_group_charge_bytes_slow(g, bytes, PCBATCH_PRIV_FORCE);
}

/*
 * Gives bytes back that were charged with a byte charge, in any pieces.
 *
 * bytes: 0 to PCBATCH_PAGES_MAX.
 * Returns: as pcbatch_group_uncharge_stat. Threading, progress: likewise.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_group_uncharge_bytes(struct pcbatch_group *g, uint64_t bytes)
{
	if (PCBATCH_LIKELY(g != NULL) && PCBATCH_LIKELY(pcbatch_priv_obj_refill_hit(&g->owner, bytes)))
		return 0;
	return pcbatch_priv_group_uncharge_bytes_slow(g, bytes);
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_GROUP_CHARGE_H */
