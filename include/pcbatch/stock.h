/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/stock.h - the per-CPU stock: pages that were charged to an owner's page
 * counter and are held ready for it on this CPU, with one statistic batched beside
 * them (seed 000), in both directions (seed 002).
 *
 * Each CPU has seven slots and a gate in one line. An owner's first probe is slot
 * `id mod 7`; when it lives elsewhere in the line, a call finds it on the slow path. A
 * new owner takes an empty slot, else the one of its first probe: the victim's
 * content comes back from the very commit that replaced it, so eviction needs no
 * lock and no random number. A slot whose counts reached zero stays its owner's: the
 * next refill would only take it again, and each taking costs two reference counts.
 *
 * Whoever finds the gate closed, a request larger than a slot, or no CPU, goes to
 * the page counter directly. Nothing here waits; all of it is async-signal-safe.
 */
#ifndef PCBATCH_STOCK_H
#define PCBATCH_STOCK_H

#include "counter.h"
#include "owner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What came of one try on one line. */
enum pcbatch_priv_try {
	PCBATCH_PRIV_TRY_DONE,
	PCBATCH_PRIV_TRY_MISS,   /* no slot of this owner with enough in it */
	PCBATCH_PRIV_TRY_AGAIN,  /* disturbed */
	PCBATCH_PRIV_TRY_CLOSED  /* gate closed, or nothing may be cached for this owner */
};

/* ----------------------------------------------------------------- hit paths */

/* What a request must pass to be a hit: 0 to PCBATCH_SLOT_STEP_MAX each, tested in one comparison. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_stock_small(uint64_t pages, int64_t stat)
{
	return PCBATCH_LIKELY((pages | (uint64_t)stat) <= PCBATCH_SLOT_STEP_MAX);
}

/* Takes pages from this CPU's slot and adds stat there, when that needs nothing else. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_stock_consume_hit(struct pcbatch_owner *owner, uint64_t pages, int64_t stat)
{
	uint64_t delta = pcbatch_slot_delta((int64_t)(0 - pages), stat);
	intptr_t off = pcbatch_priv_hit_off(owner->rseq_off);

	PCBATCH_PRIV_CHECK_PROCESS(owner->dom);
	return pcbatch_priv_stock_small(pages, stat) && pcbatch_priv_try_section(off) &&
	       pcbatch_priv_section_slot(off, &owner->bound, &owner->line, &owner->slot_off, owner->check_consume + delta,
					 delta);
}

/* Puts pages into this CPU's slot and takes stat off there, when that needs nothing else. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_stock_refill_hit(struct pcbatch_owner *owner, uint64_t pages, int64_t stat)
{
	uint64_t delta = pcbatch_slot_delta((int64_t)pages, (int64_t)(0 - (uint64_t)stat));
	intptr_t off = pcbatch_priv_hit_off(owner->rseq_off);

	PCBATCH_PRIV_CHECK_PROCESS(owner->dom);
	return pcbatch_priv_stock_small(pages, stat) && pcbatch_priv_try_section(off) &&
	       pcbatch_priv_section_slot(off, &owner->bound, &owner->line, &owner->slot_off, owner->check_refill + delta,
					 delta);
}

/* --------------------------------------------------------------- slow pieces */

PCBATCH_INLINE void pcbatch_priv_stock_stat(struct pcbatch_owner *owner, int64_t stat)
{
	if (stat != 0)
		(void)pcbatch_stats_mod(&owner->stats, owner->dom->attr.stock_item, stat);
}

/* Past the slots: 0, or -ERANGE when the owner had less than pages. */
PCBATCH_INLINE int pcbatch_priv_stock_uncharge(struct pcbatch_owner *owner, uint64_t pages)
{
	return pages == 0 ? 0 : pcbatch_page_counter_uncharge(&owner->pages, pages);
}

/* Hands on what a taken word held, and drops its reference last. */
PCBATCH_INLINE int pcbatch_priv_stock_release(struct pcbatch_domain *dom, uint64_t word)
{
	struct pcbatch_owner *owner = pcbatch_priv_owner_at(dom, pcbatch_slot_owner(word));
	int err;

	PCBATCH_INJECT_C(9);
	err = pcbatch_priv_stock_uncharge(owner, pcbatch_slot_pages(word));
	pcbatch_priv_stock_stat(owner, pcbatch_slot_stat(word));
	PCBATCH_INJECT_C(10);
	pcbatch_priv_owner_put(owner);
	return err;
}

/* How many want no new slots now; see pcbatch_priv_stock_hold. */
PCBATCH_INLINE bool pcbatch_priv_stock_held(uint64_t install_gate)
{
	return (install_gate & 0xffff) != 0;
}

/*
 * Stores `now` where `old` was: on this CPU, with the gate open and *chk what it
 * was. A generic store looks at gate and chk by itself afterwards, see undo below.
 */
PCBATCH_INLINE bool pcbatch_priv_stock_commit(const struct pcbatch_domain *dom, uint32_t cpu, const uint64_t *chk,
					      uint64_t chkval, uint64_t *word, uint64_t old, uint64_t now)
{
	if (!pcbatch_priv_is_rseq(dom))
		return pcbatch_priv_cas(word, old, now);
	return pcbatch_priv_section_cmp_store(dom->rseq_off, cpu, &pcbatch_priv_stock(dom, cpu)->page.gate, chk, chkval, word,
					      old, now);
}

/*
 * The same for a slot that gets another owner. `installs` was read before the line was
 * searched: an owner that another thread of this CPU has installed since would be
 * missed, and have two slots. (A generic store looks for that afterwards as well.)
 */
PCBATCH_INLINE bool pcbatch_priv_stock_install(struct pcbatch_domain *dom, uint32_t cpu, uint64_t installs,
					       uint64_t install_gate, uint64_t *word, uint64_t old, uint64_t now)
{
	if (!pcbatch_priv_is_rseq(dom))
		return pcbatch_priv_cas(word, old, now);
	return pcbatch_priv_section_install(dom->rseq_off, cpu, &pcbatch_priv_stock(dom, cpu)->page.gate, installs,
					    &dom->install_gate, install_gate, word, old, now);
}

/* -1: no slot of the line is the owner's. Begins with the first probe. */
PCBATCH_INLINE int pcbatch_priv_stock_find(const struct pcbatch_priv_line *line, uint32_t id, uint64_t *word)
{
	uint32_t i, k = id % PCBATCH_STOCK_SLOTS;

	for (i = 0; i < PCBATCH_STOCK_SLOTS; i++) {
		*word = pcbatch_priv_load(&line->slot[k]);
		if (pcbatch_slot_owner(*word) == id)
			return (int)k;
		k = k + 1 == PCBATCH_STOCK_SLOTS ? 0 : k + 1;
	}
	return -1;
}

/*
 * Finds the owner's slot (*k, or -1) as of a moment when no install was under way. One that is has raised the count
 * already, but its word is not there yet, and who looks at the line from another CPU would see the one and not the
 * other. On its own CPU nobody can stand between the two: storing the count once more, as it was, proves that.
 * Returns false when disturbed.
 */
PCBATCH_INLINE bool pcbatch_priv_stock_search(struct pcbatch_domain *dom, uint32_t cpu, const struct pcbatch_priv_line *line,
					      uint32_t id, uint64_t installs, uint64_t *word, int *k)
{
	struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, cpu);

	*k = pcbatch_priv_stock_find(line, id, word);
	if (*k >= 0 || !pcbatch_priv_is_rseq(dom))
		return true;
	if (!pcbatch_priv_section_cmp_store(dom->rseq_off, cpu, &stock->page.gate, &stock->page.gate, 0, &stock->installs,
					    installs, installs))
		return false;
	*k = pcbatch_priv_stock_find(line, id, word);
	return true;
}

/* The empty slot nearest behind the first probe, else the first probe's: where a new owner goes. */
PCBATCH_INLINE uint32_t pcbatch_priv_stock_place(const struct pcbatch_priv_line *line, uint32_t id, uint64_t *word)
{
	uint32_t i, home = id % PCBATCH_STOCK_SLOTS, k = home;

	for (i = 0; i < PCBATCH_STOCK_SLOTS; i++) {
		*word = pcbatch_priv_load(&line->slot[k]);
		if (*word == 0)
			return k;
		k = k + 1 == PCBATCH_STOCK_SLOTS ? 0 : k + 1;
	}
	*word = pcbatch_priv_load(&line->slot[home]);
	return home;
}

PCBATCH_INLINE enum pcbatch_priv_try pcbatch_priv_stock_try_consume(struct pcbatch_owner *owner, uint32_t cpu, uint64_t pages,
								    int64_t stat, struct pcbatch_slot_step *step)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_line *line = &pcbatch_priv_stock(dom, cpu)->page;
	uint64_t word;
	int k;

	if (pcbatch_priv_load(&line->gate) != 0)
		return PCBATCH_PRIV_TRY_CLOSED;
	k = pcbatch_priv_stock_find(line, owner->id, &word);
	if (k < 0 || !pcbatch_slot_consume(word, pages, stat, pcbatch_priv_marks_now(dom).batch, step))
		return PCBATCH_PRIV_TRY_MISS;
	PCBATCH_INJECT_C(6);
	if (!pcbatch_priv_stock_commit(dom, cpu, &line->gate, 0, &line->slot[k], word, step->word))
		return PCBATCH_PRIV_TRY_AGAIN;
	return PCBATCH_PRIV_TRY_DONE;
}

/* The line to try next after a disturbed try: generic threads part, an rseq thread looks where it is. */
PCBATCH_INLINE uint32_t pcbatch_priv_stock_next(const struct pcbatch_domain *dom, uint32_t cpu)
{
	if (pcbatch_priv_is_rseq(dom) || dom->attr.current_cpu != NULL)
		return pcbatch_priv_cpu(dom);
	return cpu + 1 >= dom->lines ? 0 : cpu + 1;
}

/*
 * A hit on the slow path. A generic line is shared by few threads, and two that count
 * at the same moment may count one: an atomic would cost as much as the hit did.
 */
PCBATCH_INLINE void pcbatch_priv_stock_count_hit(struct pcbatch_domain *dom, uint32_t cpu)
{
	uint64_t *hits = &pcbatch_priv_stock(dom, cpu)->page_hits[0];

	if (pcbatch_priv_is_rseq(dom))
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_SLOW_HIT, 1);
	else
		pcbatch_priv_store(hits, pcbatch_priv_load(hits) + 1);
}

/* Consumes from any slot of this CPU's line; false: it has not enough, or can't be used now. */
PCBATCH_INLINE bool pcbatch_priv_stock_consume(struct pcbatch_owner *owner, uint64_t pages, int64_t stat)
{
	struct pcbatch_domain *dom = owner->dom;
	enum pcbatch_priv_try result = PCBATCH_PRIV_TRY_CLOSED;
	struct pcbatch_slot_step step;
	uint32_t cpu = pcbatch_priv_cpu(dom);
	int i;

	for (i = 0; i < PCBATCH_RETRIES && cpu < dom->lines; i++) {
		result = pcbatch_priv_stock_try_consume(owner, cpu, pages, stat, &step);
		if (result != PCBATCH_PRIV_TRY_AGAIN)
			break;
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_ABORT, 1);
		cpu = pcbatch_priv_stock_next(dom, cpu);
	}
	if (result == PCBATCH_PRIV_TRY_DONE) {
		pcbatch_priv_stock_count_hit(dom, cpu);
		pcbatch_priv_stock_stat(owner, step.stat);
		return true;
	}
	if (result == PCBATCH_PRIV_TRY_CLOSED)
		(void)pcbatch_priv_fork_check(dom);
	return false;
}

/* What a refill's commit brought: what it put, and the word it replaced when that was another owner's. */
struct pcbatch_priv_filled {
	struct pcbatch_slot_step step;
	uint64_t victim;
	uint32_t slot;
	bool fresh; /* the owner had no slot here */
};

PCBATCH_INLINE enum pcbatch_priv_try pcbatch_priv_stock_try_refill(struct pcbatch_owner *owner, uint32_t cpu, uint64_t pages,
								   int64_t stat, uint64_t install_gate,
								   struct pcbatch_priv_filled *r)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_line *line = &pcbatch_priv_stock(dom, cpu)->page;
	uint64_t installs = pcbatch_priv_load_acquire(&pcbatch_priv_stock(dom, cpu)->installs);
	struct pcbatch_priv_marks marks = pcbatch_priv_marks_now(dom);
	uint64_t word, base;
	bool done;
	int k;

	if (pcbatch_priv_load(&line->gate) != 0)
		return PCBATCH_PRIV_TRY_CLOSED;
	if (!pcbatch_priv_stock_search(dom, cpu, line, owner->id, installs, &word, &k))
		return PCBATCH_PRIV_TRY_AGAIN;
	r->slot = k >= 0 ? (uint32_t)k : pcbatch_priv_stock_place(line, owner->id, &word);
	base = k >= 0 ? word : pcbatch_slot_pack(owner->id, 0, 0);
	r->victim = k >= 0 ? 0 : word;
	r->fresh = k < 0;
	pcbatch_slot_refill(base, pages, stat, marks.batch, marks.high, marks.low, &r->step);
	if (r->fresh)
		pcbatch_priv_owner_get(owner);
	PCBATCH_INJECT_C(7);
	done = r->fresh ? pcbatch_priv_stock_install(dom, cpu, installs, install_gate, &line->slot[r->slot], word, r->step.word)
			: pcbatch_priv_stock_commit(dom, cpu, &dom->install_gate, install_gate, &line->slot[r->slot], word,
						    r->step.word);
	if (done)
		return PCBATCH_PRIV_TRY_DONE;
	if (r->fresh)
		pcbatch_priv_owner_put(owner);
	return PCBATCH_PRIV_TRY_AGAIN;
}

/*
 * The generic half of the handshakes: the store is out (a full barrier), so either a
 * drainer that closed the gate or raised the epoch before this look sees the word,
 * or this look sees that; and of two threads that gave an owner a slot each, at least
 * one sees the other's. Then the word has to be taken back.
 */
PCBATCH_INLINE bool pcbatch_priv_stock_stays(struct pcbatch_domain *dom, uint32_t cpu, const struct pcbatch_priv_line *line,
					     uint32_t id, uint32_t slot, bool fresh, uint64_t install_gate)
{
	uint32_t k;

	if (pcbatch_priv_is_rseq(dom))
		return true;
	for (k = 0; fresh && k < PCBATCH_STOCK_SLOTS; k++)
		if (k != slot && pcbatch_slot_owner(pcbatch_priv_load(&line->slot[k])) == id)
			return false;
	return pcbatch_priv_load(&pcbatch_priv_stock(dom, cpu)->page.gate) == 0 &&
	       pcbatch_priv_load(&dom->install_gate) == install_gate;
}

/* Takes the owner's word out of the slot again, if it is still there; 0 if not. */
PCBATCH_INLINE uint64_t pcbatch_priv_stock_take_back(struct pcbatch_priv_line *line, uint32_t id, uint32_t slot)
{
	uint64_t word;

	do {
		word = pcbatch_priv_load(&line->slot[slot]);
		if (pcbatch_slot_owner(word) != id)
			return 0;
	} while (!pcbatch_priv_cas(&line->slot[slot], word, 0));
	return word;
}

PCBATCH_INLINE int pcbatch_priv_stock_refilled(struct pcbatch_owner *owner, uint32_t cpu, uint64_t install_gate,
					       const struct pcbatch_priv_filled *r)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_line *line = &pcbatch_priv_stock(dom, cpu)->page;
	uint64_t word;
	int err = 0, more = 0;

	PCBATCH_INJECT_C(20);
	if (r->victim != 0) {
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_EVICTION, 1);
		/* The victim's owner hears of its own mistakes, not this one's. */
		(void)pcbatch_priv_stock_release(dom, r->victim);
	}
	if (r->step.pages != 0) {
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_TRIM, 1);
		err = pcbatch_priv_stock_uncharge(owner, r->step.pages);
	}
	pcbatch_priv_stock_stat(owner, r->step.stat);
	if (!pcbatch_priv_stock_stays(dom, cpu, line, owner->id, r->slot, r->fresh, install_gate)) {
		word = pcbatch_priv_stock_take_back(line, owner->id, r->slot);
		more = word == 0 ? 0 : pcbatch_priv_stock_release(dom, word);
	}
	return err != 0 ? err : more;
}

/*
 * Puts pages into this CPU's line and adds stat (any sign) there, or passes both on
 * when they can't be cached. surplus: these are left over from a batch, and no call
 * that could count as a hit. Returns 0 or -ERANGE: the owner had less than that.
 */
PCBATCH_INLINE int pcbatch_priv_stock_refill(struct pcbatch_owner *owner, uint64_t pages, int64_t stat, bool surplus)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_filled r;
	enum pcbatch_priv_try result = PCBATCH_PRIV_TRY_CLOSED;
	/* Read before the state: an offline that this state read missed has raised it since. */
	uint64_t install_gate = pcbatch_priv_load_acquire(&dom->install_gate);
	uint32_t cpu = pcbatch_priv_cpu(dom);
	int i;

	if (pages > pcbatch_priv_marks_now(dom).batch || pcbatch_priv_stock_held(install_gate) || !pcbatch_priv_owner_online(owner))
		cpu = UINT32_MAX;
	for (i = 0; i < PCBATCH_RETRIES && cpu < dom->lines; i++) {
		result = pcbatch_priv_stock_try_refill(owner, cpu, pages, stat, install_gate, &r);
		if (result == PCBATCH_PRIV_TRY_DONE) {
			if (!surplus && !r.fresh && r.step.pages == 0)
				pcbatch_priv_stock_count_hit(dom, cpu);
			return pcbatch_priv_stock_refilled(owner, cpu, install_gate, &r);
		}
		if (result == PCBATCH_PRIV_TRY_CLOSED)
			break;
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_ABORT, 1);
		cpu = pcbatch_priv_stock_next(dom, cpu);
	}
	/* Closed for good, or in a child that was forked meanwhile? */
	if ((cpu < dom->lines && result == PCBATCH_PRIV_TRY_CLOSED) || pcbatch_priv_stock_held(install_gate))
		(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_DIRECT, 1);
	pcbatch_priv_stock_stat(owner, stat);
	return pcbatch_priv_stock_uncharge(owner, pages);
}

/* ------------------------------------------------------------------- visible */

/* What the slots of a domain have done so far. Aborted tries may count a hit too many; generic lines may miss some. */
struct pcbatch_stock_info {
	uint64_t hits;          /* charges and uncharges that touched this CPU's line only */
	uint64_t misses;        /* charges that had to go to the page counters */
	uint64_t evictions;     /* slots taken from another owner */
	uint64_t direct;        /* charges and uncharges that no slot could take */
	uint64_t drains;        /* slots emptied by drains */
	uint64_t drained_pages; /* pages those held */
	uint64_t trims;         /* slots above the high mark trimmed to the low one */
	uint64_t aborts;        /* slow-path tries disturbed by another thread, a signal or a migration */
};

/*
 * Sums up the counts of all CPUs.
 *
 * info: gets the counts; zeros on error.
 * Returns: 0; -EINVAL dom is not a domain or info is NULL.
 * Threading: any thread, async-signal-safe. Progress: wait-free, walks the CPUs.
 */
PCBATCH_INLINE int pcbatch_stock_info_read(struct pcbatch_domain *dom, struct pcbatch_stock_info *info)
{
	uint32_t c, k;

	if (info != NULL)
		memset(info, 0, sizeof(*info));
	if (!pcbatch_priv_domain_valid(dom) || info == NULL)
		return -EINVAL;
	info->hits = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_SLOW_HIT);
	info->misses = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_MISS);
	info->evictions = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_EVICTION);
	info->direct = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_DIRECT);
	info->drains = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_DRAIN);
	info->drained_pages = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_DRAINED_PAGES);
	info->trims = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_TRIM);
	info->aborts = pcbatch_priv_count_sum(dom, PCBATCH_PRIV_COUNT_ABORT);
	for (c = 0; c < dom->lines; c++) {
		const struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, c);

		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
			info->hits += pcbatch_priv_load(&stock->page_hits[k]) + pcbatch_priv_load(&stock->obj_hits[k]);
	}
	return 0;
}

#ifdef __cplusplus
}
#endif

#include "drain.h"

#endif /* PCBATCH_STOCK_H */
