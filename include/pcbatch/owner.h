/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/owner.h - whom a slot belongs to: identity, references and lifetime.
 *
 * An occupied slot holds one reference on its owner, whatever its counts; so does
 * each child, and the creator. A remote scan looks at owners it has no reference
 * on, so owners live in memory that belongs to owners until the domain ends, and
 * an id is mapped to its owner only by whoever took the word that held it. The last
 * drop may happen in a signal handler: it only puts the owner on the dead list,
 * which create, destroy and reap empty.
 */
#ifndef PCBATCH_OWNER_H
#define PCBATCH_OWNER_H

#include "page_counter.h"
#include "slot.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Room for an owner and what a composition (group.h) keeps beside it. */
#define PCBATCH_PRIV_OWNER_BYTES (10 * PCBATCH_CACHE_LINE)

enum pcbatch_priv_owner_state {
	PCBATCH_PRIV_OWNER_FREE = 0,
	PCBATCH_PRIV_OWNER_ONLINE = 1,
	PCBATCH_PRIV_OWNER_OFFLINE = 2, /* nothing is cached for it any more */
	PCBATCH_PRIV_OWNER_DEAD = 3     /* destroyed; references remain */
};

struct pcbatch_owner {
	/* What a hit reads, a line that is written only by create, offline and the batch setter. */
	uint64_t check_consume;
	uint64_t check_refill;
	uint64_t slot_off; /* of its first probe in a CPU's stock block */
	intptr_t rseq_off;
	char *line;     /* the domain's stock_base */
	uint32_t bound; /* the domain's rseq_bound; 0 once offline */
	uint32_t id;
	struct pcbatch_domain *dom;
	uint64_t obj_check_consume PCBATCH_ALIGNED(8);

	/* Read-mostly. */
	uint64_t obj_check_refill;
	uint64_t obj_slot_off;
	uint64_t state PCBATCH_ALIGNED(8);
	struct pcbatch_owner *parent;
	struct pcbatch_stats_node stats;
	uint64_t reserved;

	/* Written on slow paths. */
	uint64_t refs PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	uint64_t children;
	uint64_t remainder;         /* bytes of started pages that no slot holds */
	struct pcbatch_owner *next; /* on the dead list */
	uint64_t next_free PCBATCH_ALIGNED(8); /* id, on the free list */

	struct pcbatch_page_counter pages;
};

PCBATCH_STATIC_ASSERT(sizeof(void *) != 8 || offsetof(struct pcbatch_owner, obj_check_refill) == 64, "what a hit reads is one line");

/* Ids 1 to 64 stand in slab 0, the next 128 in slab 1, and so on: growing moves nothing. */
PCBATCH_INLINE struct pcbatch_owner *pcbatch_priv_owner_at(const struct pcbatch_domain *dom, uint32_t id)
{
	uint64_t n = (uint64_t)id - 1 + PCBATCH_PRIV_SLAB_FIRST;
	uint32_t slab = 63 - (uint32_t)__builtin_clzll(n / PCBATCH_PRIV_SLAB_FIRST);
	uint64_t at = n - ((uint64_t)PCBATCH_PRIV_SLAB_FIRST << slab);

	return (struct pcbatch_owner *)(void *)((char *)dom->slab[slab] + at * PCBATCH_PRIV_OWNER_BYTES);
}

PCBATCH_INLINE struct pcbatch_owner *pcbatch_priv_owner_parent(const struct pcbatch_owner *owner)
{
	return (struct pcbatch_owner *)pcbatch_priv_load_ptr((void *const *)(const void *)&owner->parent);
}

/* May look at owners that are being freed and made anew; says something then, and reads no freed memory. */
PCBATCH_INLINE bool pcbatch_priv_owner_within(const struct pcbatch_owner *owner, const struct pcbatch_owner *root)
{
	uint64_t steps = pcbatch_priv_load(&root->dom->owner_ids);

	for (; owner != NULL && owner != root && steps > 0; steps--)
		owner = pcbatch_priv_owner_parent(owner);
	return owner == root;
}

PCBATCH_INLINE bool pcbatch_priv_owner_online(const struct pcbatch_owner *owner)
{
	return pcbatch_priv_load_acquire(&owner->state) == PCBATCH_PRIV_OWNER_ONLINE;
}

PCBATCH_INLINE void pcbatch_priv_owner_get(struct pcbatch_owner *owner)
{
	(void)pcbatch_priv_fetch_add(&owner->refs, 1);
}

PCBATCH_INLINE void pcbatch_priv_owner_put(struct pcbatch_owner *owner)
{
	struct pcbatch_domain *dom = owner->dom;
	void *first;

	if (pcbatch_priv_add_return(&owner->refs, UINT64_MAX) != 0)
		return;
	do {
		first = pcbatch_priv_load_ptr(&dom->dead);
		owner->next = (struct pcbatch_owner *)first;
		PCBATCH_INJECT_C(33);
	} while (!pcbatch_priv_cas_ptr(&dom->dead, first, owner));
}

/* Frees what the dead list holds, and parents that only their children held. The domain's lock is held. */
PCBATCH_INLINE void pcbatch_priv_owner_reap_locked(struct pcbatch_domain *dom)
{
	struct pcbatch_owner *owner, *next, *parent;

	while (pcbatch_priv_load_ptr(&dom->dead) != NULL) {
		owner = (struct pcbatch_owner *)pcbatch_priv_exchange_ptr(&dom->dead, NULL);
		for (; owner != NULL; owner = next) {
			next = owner->next;
			parent = owner->parent;
			pcbatch_priv_stats_destroy_locked(&owner->stats);
			pcbatch_priv_store(&owner->state, PCBATCH_PRIV_OWNER_FREE);
			owner->next_free = dom->free_owner;
			dom->free_owner = owner->id;
			dom->owners--;
			if (parent != NULL)
				pcbatch_priv_owner_put(parent);
		}
	}
}

PCBATCH_INLINE struct pcbatch_owner *pcbatch_priv_owner_new_id(struct pcbatch_domain *dom)
{
	uint64_t id = dom->owner_ids + 1, n = id - 1 + PCBATCH_PRIV_SLAB_FIRST;
	uint32_t slab = 63 - (uint32_t)__builtin_clzll(n / PCBATCH_PRIV_SLAB_FIRST);
	struct pcbatch_owner *owner;

	if (slab >= PCBATCH_PRIV_SLABS)
		return NULL;
	if (dom->slab[slab] == NULL) {
		void *memory = pcbatch_priv_zalloc(dom, ((size_t)PCBATCH_PRIV_SLAB_FIRST << slab) * PCBATCH_PRIV_OWNER_BYTES,
						   PCBATCH_CACHE_LINE);

		if (memory == NULL)
			return NULL;
		dom->slab_item_size = PCBATCH_PRIV_OWNER_BYTES;
		pcbatch_priv_store_ptr(&dom->slab[slab], memory);
	}
	owner = pcbatch_priv_owner_at(dom, (uint32_t)id);
	owner->id = (uint32_t)id;
	owner->dom = dom;
	pcbatch_priv_store(&dom->owner_ids, id);
	return owner;
}

/* The constants of the hit path, for the batch and watermarks of now. */
PCBATCH_INLINE void pcbatch_priv_owner_set_checks(struct pcbatch_owner *owner)
{
	struct pcbatch_priv_marks marks = pcbatch_priv_marks_now(owner->dom);

	pcbatch_priv_store(&owner->check_consume, pcbatch_slot_check_consume(owner->id, marks.batch));
	pcbatch_priv_store(&owner->check_refill, pcbatch_slot_check_refill(owner->id, marks.batch, marks.high));
}

PCBATCH_INLINE void pcbatch_priv_owner_set_up(struct pcbatch_owner *owner, struct pcbatch_owner *parent)
{
	struct pcbatch_domain *dom = owner->dom;
	uint64_t home = owner->id % PCBATCH_STOCK_SLOTS;

	pcbatch_priv_owner_set_checks(owner);
	owner->slot_off = offsetof(struct pcbatch_priv_stock_block, page.slot) + sizeof(uint64_t) * home;
	owner->obj_slot_off = offsetof(struct pcbatch_priv_stock_block, obj.slot) + sizeof(uint64_t) * home;
	owner->obj_check_consume = pcbatch_slot_obj_check_consume(owner->id);
	owner->obj_check_refill = pcbatch_slot_obj_check_refill(owner->id, dom->attr.obj_high);
	owner->rseq_off = dom->rseq_off;
	owner->line = dom->stock_base;
	owner->bound = dom->rseq_bound;
	owner->remainder = 0;
	owner->children = 0;
	pcbatch_priv_store(&owner->refs, 1);
	pcbatch_priv_store_ptr((void **)(void *)&owner->parent, parent);
	(void)pcbatch_page_counter_init(&owner->pages, parent == NULL ? NULL : &parent->pages);
	pcbatch_priv_store_release(&owner->state, PCBATCH_PRIV_OWNER_ONLINE);
}

/* The domain's lock is held. The memory behind the owner's own fields is for the caller to set. */
PCBATCH_INLINE struct pcbatch_owner *pcbatch_priv_owner_create_locked(struct pcbatch_domain *dom, struct pcbatch_owner *parent)
{
	struct pcbatch_owner *owner;
	bool again = dom->free_owner != 0;

	owner = again ? pcbatch_priv_owner_at(dom, (uint32_t)dom->free_owner) : pcbatch_priv_owner_new_id(dom);
	if (owner == NULL)
		return NULL;
	if (pcbatch_priv_stats_init_locked(&owner->stats, dom, parent == NULL ? NULL : &parent->stats) != 0) {
		/* A new id stays on the free list, so that nothing is half made. */
		if (!again) {
			owner->next_free = 0;
			dom->free_owner = owner->id;
		}
		return NULL;
	}
	if (again)
		dom->free_owner = owner->next_free;
	if (parent != NULL) {
		pcbatch_priv_owner_get(parent);
		(void)pcbatch_priv_fetch_add(&parent->children, 1);
	}
	pcbatch_priv_owner_set_up(owner, parent);
	dom->owners++;
	return owner;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_OWNER_H */
