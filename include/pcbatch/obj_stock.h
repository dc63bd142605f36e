/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/obj_stock.h - the byte-granular twin of the stock: what an allocator
 * needs, whose objects are smaller than a page and whose limits are in pages.
 *
 * A second line of seven slots per CPU caches bytes of started pages. Charging takes
 * bytes from there; when there are not enough, whole pages are charged like any
 * others and the rest is put there. Above obj_high, whole pages are given back down
 * to obj_low. A part of a page that leaves a slot goes to the owner's shared
 * remainder, where parts meet again; it is never lost. Idea: the kernel's obj_stock.
 *
 * The gate is that of the page line, so a drainer closes both at once.
 */
#ifndef PCBATCH_OBJ_STOCK_H
#define PCBATCH_OBJ_STOCK_H

#include "stock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes bytes from this CPU's slot, when there are enough. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_obj_consume_hit(struct pcbatch_owner *owner, uint64_t bytes)
{
	intptr_t off = pcbatch_priv_hit_off(owner->rseq_off);

	PCBATCH_PRIV_CHECK_PROCESS(owner->dom);
	return PCBATCH_LIKELY(bytes <= PCBATCH_SLOT_OBJ_STEP_MAX) && pcbatch_priv_try_section(off) &&
	       pcbatch_priv_section_obj(off, &owner->bound, &owner->line, &owner->obj_slot_off,
					owner->obj_check_consume - bytes, 0 - bytes);
}

/* Puts bytes into this CPU's slot, when it stays within obj_high. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_obj_refill_hit(struct pcbatch_owner *owner, uint64_t bytes)
{
	intptr_t off = pcbatch_priv_hit_off(owner->rseq_off);

	PCBATCH_PRIV_CHECK_PROCESS(owner->dom);
	return PCBATCH_LIKELY(bytes <= PCBATCH_SLOT_OBJ_STEP_MAX) && pcbatch_priv_try_section(off) &&
	       pcbatch_priv_section_obj(off, &owner->bound, &owner->line, &owner->obj_slot_off,
					owner->obj_check_refill + bytes, bytes);
}

PCBATCH_INLINE enum pcbatch_priv_try pcbatch_priv_obj_try_consume(struct pcbatch_owner *owner, uint32_t cpu, uint64_t bytes)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, cpu);
	uint64_t word;
	int k;

	if (pcbatch_priv_load(&stock->page.gate) != 0)
		return PCBATCH_PRIV_TRY_CLOSED;
	k = pcbatch_priv_stock_find(&stock->obj, owner->id, &word);
	if (k < 0 || pcbatch_slot_obj_bytes(word) < bytes)
		return PCBATCH_PRIV_TRY_MISS;
	PCBATCH_INJECT_C(11);
	if (!pcbatch_priv_stock_commit(dom, cpu, &stock->page.gate, 0, &stock->obj.slot[k], word, word - bytes))
		return PCBATCH_PRIV_TRY_AGAIN;
	return PCBATCH_PRIV_TRY_DONE;
}

/* Consumes from any byte slot of this CPU's line; false: not enough there, or it can't be used now. */
PCBATCH_INLINE bool pcbatch_priv_obj_consume(struct pcbatch_owner *owner, uint64_t bytes)
{
	struct pcbatch_domain *dom = owner->dom;
	enum pcbatch_priv_try result = PCBATCH_PRIV_TRY_MISS;
	uint32_t cpu = pcbatch_priv_cpu(dom);
	int i;

	for (i = 0; i < PCBATCH_RETRIES && cpu < dom->lines; i++) {
		result = pcbatch_priv_obj_try_consume(owner, cpu, bytes);
		if (result != PCBATCH_PRIV_TRY_AGAIN)
			break;
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_ABORT, 1);
		cpu = pcbatch_priv_stock_next(dom, cpu);
	}
	if (result == PCBATCH_PRIV_TRY_CLOSED)
		(void)pcbatch_priv_fork_check(dom);
	if (result == PCBATCH_PRIV_TRY_DONE)
		pcbatch_priv_stock_count_hit(dom, cpu);
	return result == PCBATCH_PRIV_TRY_DONE;
}

/* What a byte refill's commit brought. */
struct pcbatch_priv_obj_filled {
	uint64_t word;
	uint64_t victim;
	uint64_t pages; /* above the mark, to uncharge */
	uint32_t slot;
	bool fresh;
};

PCBATCH_INLINE enum pcbatch_priv_try pcbatch_priv_obj_try_refill(struct pcbatch_owner *owner, uint32_t cpu, uint64_t bytes,
								 uint64_t install_gate, struct pcbatch_priv_obj_filled *r)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, cpu);
	uint64_t installs = pcbatch_priv_load_acquire(&stock->installs);
	uint64_t old, sum = bytes;
	bool done;
	int k;

	if (pcbatch_priv_load(&stock->page.gate) != 0)
		return PCBATCH_PRIV_TRY_CLOSED;
	if (!pcbatch_priv_stock_search(dom, cpu, &stock->obj, owner->id, installs, &old, &k))
		return PCBATCH_PRIV_TRY_AGAIN;
	r->fresh = k < 0;
	r->slot = k >= 0 ? (uint32_t)k : pcbatch_priv_stock_place(&stock->obj, owner->id, &old);
	r->victim = r->fresh ? old : 0;
	r->pages = 0;
	if (!r->fresh)
		sum += pcbatch_slot_obj_bytes(old);
	if (sum > dom->attr.obj_high) {
		r->pages = (sum - dom->attr.obj_low) / dom->attr.page_size;
		sum -= r->pages * dom->attr.page_size;
	}
	r->word = pcbatch_slot_obj_pack(owner->id, (uint32_t)sum);
	if (r->fresh)
		pcbatch_priv_owner_get(owner);
	PCBATCH_INJECT_C(12);
	done = r->fresh ? pcbatch_priv_stock_install(dom, cpu, installs, install_gate, &stock->obj.slot[r->slot], old, r->word)
			: pcbatch_priv_stock_commit(dom, cpu, &dom->install_gate, install_gate, &stock->obj.slot[r->slot], old,
						    r->word);
	if (done)
		return PCBATCH_PRIV_TRY_DONE;
	if (r->fresh)
		pcbatch_priv_owner_put(owner);
	return PCBATCH_PRIV_TRY_AGAIN;
}

PCBATCH_INLINE int pcbatch_priv_obj_refilled(struct pcbatch_owner *owner, uint32_t cpu, uint64_t install_gate,
					     const struct pcbatch_priv_obj_filled *r)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_line *line = &pcbatch_priv_stock(dom, cpu)->obj;
	uint64_t word;

	PCBATCH_INJECT_C(20);
	if (r->victim != 0) {
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_EVICTION, 1);
		/* The victim's owner hears of its own mistakes, not this one's. */
		(void)pcbatch_priv_obj_release(dom, r->victim);
	}
	if (r->pages != 0)
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_TRIM, 1);
	if (pcbatch_priv_stock_stays(dom, cpu, line, owner->id, r->slot, r->fresh, install_gate))
		return 0;
	word = pcbatch_priv_stock_take_back(line, owner->id, r->slot);
	return word == 0 ? 0 : pcbatch_priv_obj_release(dom, word);
}

/*
 * Puts bytes into this CPU's line, or gives them back past it. *pages gets the whole
 * pages that are too many, for the caller to uncharge (they may go to the page stock).
 * Returns 0, or -ERANGE: the owner had less than that.
 */
PCBATCH_INLINE int pcbatch_priv_obj_refill(struct pcbatch_owner *owner, uint64_t bytes, bool surplus, uint64_t *pages)
{
	struct pcbatch_domain *dom = owner->dom;
	struct pcbatch_priv_obj_filled r;
	enum pcbatch_priv_try result = PCBATCH_PRIV_TRY_CLOSED;
	/* Read before the state, as in pcbatch_priv_stock_refill. */
	uint64_t install_gate = pcbatch_priv_load_acquire(&dom->install_gate);
	uint32_t cpu = pcbatch_priv_cpu(dom);
	int i;

	*pages = 0;
	if (bytes > dom->attr.obj_high || pcbatch_priv_stock_held(install_gate) || !pcbatch_priv_owner_online(owner))
		cpu = UINT32_MAX;
	for (i = 0; i < PCBATCH_RETRIES && cpu < dom->lines; i++) {
		result = pcbatch_priv_obj_try_refill(owner, cpu, bytes, install_gate, &r);
		if (result == PCBATCH_PRIV_TRY_DONE) {
			if (!surplus && !r.fresh && r.pages == 0)
				pcbatch_priv_stock_count_hit(dom, cpu);
			*pages = r.pages;
			return pcbatch_priv_obj_refilled(owner, cpu, install_gate, &r);
		}
		if (result == PCBATCH_PRIV_TRY_CLOSED)
			break;
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_ABORT, 1);
		cpu = pcbatch_priv_stock_next(dom, cpu);
	}
	if ((cpu < dom->lines && result == PCBATCH_PRIV_TRY_CLOSED) || pcbatch_priv_stock_held(install_gate))
		(void)pcbatch_priv_fork_check(dom);
	if (!surplus)
		pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_DIRECT, 1);
	return pcbatch_priv_obj_give_back(owner, bytes);
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_OBJ_STOCK_H */
