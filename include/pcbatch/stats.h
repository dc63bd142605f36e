/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/stats.h - hierarchical statistics: update a leaf on this CPU, every
 * ancestor learns of it at the next flush, and knows by then whether one is worth it.
 *
 * Per CPU and node there is a block: a header line (pending updates, the parent's
 * block on the same CPU, the node's folded updates), then the items. Walking up
 * costs one load a level, because the parent's block is found through the cached
 * pointer and not through the parent (seed 001: 3N loads become N + 1). A block that
 * changed is on its CPU's list, so that a flush visits just those.
 *
 * An item's total on a CPU is never reset; the flusher remembers what it took.
 * Updates: any thread, async-signal-safe, lock-free. Flushes and init take locks:
 * not from signal handlers; one flusher at a time.
 */
#ifndef PCBATCH_STATS_H
#define PCBATCH_STATS_H

#include "domain_init.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_FLUSH_PERIOD_NS UINT64_C(2000000000) /* of pcbatch_stats_flush_periodic */
#define PCBATCH_FLUSH_LIMIT_NS UINT64_C(4000000000)  /* of pcbatch_stats_flush_ratelimited */

/* Only pointers, written by init; what changes stands in the domain's per-CPU memory. */
struct pcbatch_stats_node {
	char *blocks; /* CPU 0's block */
	struct pcbatch_domain *dom;
	struct pcbatch_stats_node *parent;
};

/* An item in the part that all CPUs share. */
struct pcbatch_priv_stats_item {
	uint64_t hierarchical; /* of this node and all below it */
	uint64_t local;
};

PCBATCH_INLINE size_t pcbatch_priv_stats_size(const struct pcbatch_domain *dom)
{
	return sizeof(struct pcbatch_priv_stats_block) + sizeof(struct pcbatch_priv_cell) * dom->attr.stat_items;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_stats_block *pcbatch_priv_stats_at(const struct pcbatch_stats_node *node,
									      uint32_t cpu)
{
	return (struct pcbatch_priv_stats_block *)(void *)pcbatch_priv_part(node->blocks, cpu);
}

/* The first word of the shared part: updates folded since the last flush. */
PCBATCH_ALWAYS_INLINE uint64_t *pcbatch_priv_stats_updates(const struct pcbatch_stats_node *node)
{
	return (uint64_t *)(void *)pcbatch_priv_shared(node->blocks);
}

PCBATCH_INLINE struct pcbatch_priv_stats_item *pcbatch_priv_stats_items(const struct pcbatch_stats_node *node)
{
	return (struct pcbatch_priv_stats_item *)(void *)(pcbatch_priv_shared(node->blocks) +
							  sizeof(struct pcbatch_priv_stats_block));
}

/* The domain's lock is held. Returns 0 or -ENOMEM. */
PCBATCH_INLINE int pcbatch_priv_stats_init_locked(struct pcbatch_stats_node *node, struct pcbatch_domain *dom,
						  struct pcbatch_stats_node *parent)
{
	node->blocks = pcbatch_priv_percpu_alloc(dom, pcbatch_priv_stats_size(dom), 64, &dom->free_blocks);
	if (node->blocks == NULL)
		return -ENOMEM;
	node->dom = dom;
	node->parent = parent;
	return 0;
}

/* ------------------------------------------------------------------- updates */

PCBATCH_INLINE void pcbatch_priv_stats_push(struct pcbatch_domain *dom, struct pcbatch_priv_stats_block *block)
{
	void **head = (void **)(void *)&pcbatch_priv_stock(dom, pcbatch_priv_load32(&block->cpu))->changed;
	void *first;

	do {
		first = pcbatch_priv_load_ptr(head);
		pcbatch_priv_store_ptr((void **)(void *)&block->next, first);
		PCBATCH_INJECT_C(30);
	} while (!pcbatch_priv_cas_ptr(head, first, block));
}

PCBATCH_INLINE bool pcbatch_priv_stats_is_set_up(const struct pcbatch_stats_node *node, uint32_t cpu)
{
	return pcbatch_priv_load_ptr((void *const *)(void *)&pcbatch_priv_stats_at(node, cpu)->node) != NULL;
}

/* Whose block it is. A second thread may be writing the header that it has already; it writes the same. */
PCBATCH_INLINE struct pcbatch_stats_node *pcbatch_priv_stats_node_of(const struct pcbatch_priv_stats_block *block)
{
	return (struct pcbatch_stats_node *)pcbatch_priv_load_ptr((void *const *)(const void *)&block->node);
}

/*
 * Writes the header of the block and of its ancestors' on that CPU; every writer would
 * write the same. From the top down: whoever finds a block set up walks on from it.
 */
PCBATCH_INLINE void pcbatch_priv_stats_set_up(struct pcbatch_stats_node *node, uint32_t cpu)
{
	struct pcbatch_priv_stats_block *block;
	struct pcbatch_stats_node *top;

	while (!pcbatch_priv_stats_is_set_up(node, cpu)) {
		for (top = node; top->parent != NULL && !pcbatch_priv_stats_is_set_up(top->parent, cpu); top = top->parent)
			;
		block = pcbatch_priv_stats_at(top, cpu);
		pcbatch_priv_store32(&block->cpu, cpu);
		pcbatch_priv_store_ptr((void **)(void *)&block->parent,
				       top->parent == NULL ? NULL : pcbatch_priv_stats_at(top->parent, cpu));
		pcbatch_priv_store_ptr((void **)(void *)&block->updates_global, pcbatch_priv_stats_updates(top));
		pcbatch_priv_store_ptr((void **)(void *)&block->node, top);
	}
}

/*
 * The mark of this thread while it queues a block. Of the process, so that what an
 * interrupted parent left in a forked child is not taken for it; of the thread, so
 * that one that was stopped in the middle can't finish what another began since.
 */
PCBATCH_INLINE uint32_t pcbatch_priv_stats_queueing(void)
{
	uint64_t thread = (uint64_t)pcbatch_priv_thread_pointer() * UINT64_C(0x9e3779b97f4a7c15);

	return pcbatch_priv_stats_mark((uint64_t)getpid()) | (uint32_t)(thread >> 48);
}

/*
 * Puts the block on its CPU's list of changed ones. True when it was or is now there:
 * whatever was added before is then in the next flush, or in one since. False while
 * another thread is putting it there.
 */
PCBATCH_INLINE bool pcbatch_priv_stats_arm(struct pcbatch_stats_node *node, uint32_t cpu)
{
	struct pcbatch_priv_stats_block *block = pcbatch_priv_stats_at(node, cpu);
	uint32_t state = pcbatch_priv_load32(&block->armed), queueing;

	if (state == PCBATCH_PRIV_STATS_ARMED)
		return true;
	pcbatch_priv_stats_set_up(node, cpu);
	queueing = pcbatch_priv_stats_queueing();
	/* Left by a thread that fork did not copy: it may be on the list. */
	if ((state & PCBATCH_PRIV_STATS_QUEUEING) != 0)
		(void)pcbatch_priv_fork_check(node->dom);
	do {
		state = pcbatch_priv_load32(&block->armed);
		if (state == PCBATCH_PRIV_STATS_ARMED)
			return true;
		/*
		 * The marks of one process differ below bit 16 only, and those of one thread above it: this one may have
		 * been forked in a signal handler that interrupted it here, and will go on with it.
		 */
		if (state >> 16 == queueing >> 16 || (state & 0x8000ffffu) == (queueing & 0x8000ffffu))
			return false;
	} while (!pcbatch_priv_cas32(&block->armed, state, queueing));
	PCBATCH_INJECT_C(5);
	pcbatch_priv_stats_push(node->dom, block);
	PCBATCH_INJECT_C(39);
	/* Fails when a flusher took it off again meanwhile. */
	(void)pcbatch_priv_cas32(&block->armed, queueing, PCBATCH_PRIV_STATS_ARMED);
	return true;
}

/* Past the CPUs: what a flush would do, at once. */
PCBATCH_INLINE void pcbatch_priv_stats_direct(struct pcbatch_stats_node *node, uint32_t item, uint64_t delta)
{
	(void)pcbatch_priv_fetch_add(&pcbatch_priv_stats_items(node)[item].local, delta);
	for (; node != NULL; node = node->parent) {
		PCBATCH_INJECT_C(29);
		(void)pcbatch_priv_fetch_add(&pcbatch_priv_stats_items(node)[item].hierarchical, delta);
	}
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_stats_flushable(const struct pcbatch_domain *dom, const uint64_t *updates)
{
	return pcbatch_priv_load(updates) > dom->stat_threshold * dom->lines;
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_stats_fold_updates(const struct pcbatch_domain *dom, uint64_t *global, uint64_t n)
{
	/* No atomic, and no shared line taken from others, where a flush is due anyway. */
	if (!pcbatch_priv_stats_flushable(dom, global))
		(void)pcbatch_priv_fetch_add(global, n);
}

/* The level of percpu.h with an atomic; the reset may drop what others add meanwhile, as a heuristic may. */
PCBATCH_INLINE uint64_t pcbatch_priv_stats_level_generic(struct pcbatch_priv_stats_block *block, uint64_t amount,
							 uint64_t threshold)
{
	uint64_t updates = pcbatch_priv_add_return(&block->updates, amount);

	if (updates < threshold)
		return updates;
	return pcbatch_priv_exchange(&block->updates, 0);
}

/* Continues the walk at `node` on whatever CPU this thread is on by now. */
PCBATCH_SLOW void pcbatch_priv_stats_walk_slow(struct pcbatch_stats_node *node, uint64_t amount)
{
	struct pcbatch_domain *dom = node->dom;
	struct pcbatch_priv_stats_block *block;
	uint64_t updates;
	uint32_t cpu;
	int tries = 0;

	while (node != NULL) {
		cpu = pcbatch_priv_cpu(dom);
		if (cpu >= dom->lines || tries++ == PCBATCH_RETRIES) {
			pcbatch_priv_stats_fold_updates(dom, pcbatch_priv_stats_updates(node), amount);
			node = node->parent;
			tries = 0;
			continue;
		}
		pcbatch_priv_stats_set_up(node, cpu);
		block = pcbatch_priv_stats_at(node, cpu);
		PCBATCH_INJECT_C(35);
		if (!pcbatch_priv_is_rseq(dom))
			updates = pcbatch_priv_stats_level_generic(block, amount, dom->stat_threshold);
		else if (!pcbatch_priv_section_level(dom->rseq_off, block, amount, dom->stat_threshold, &updates))
			continue;
		if (updates >= dom->stat_threshold)
			pcbatch_priv_stats_fold_updates(dom, block->updates_global, updates);
		node = node->parent;
		tries = 0;
	}
}

/* Tells this level and every one above that `amount` changed on the block's CPU (seed 001). */
PCBATCH_ALWAYS_INLINE void pcbatch_priv_stats_walk(struct pcbatch_domain *dom, struct pcbatch_priv_stats_block *block,
						   uint64_t amount)
{
	uint64_t threshold = dom->stat_threshold, updates;
	intptr_t off = dom->rseq_off;

	do {
		if (PCBATCH_UNLIKELY(!pcbatch_priv_section_level(off, block, amount, threshold, &updates))) {
			pcbatch_priv_stats_walk_slow(pcbatch_priv_stats_node_of(block), amount);
			return;
		}
		if (PCBATCH_UNLIKELY(updates >= threshold))
			pcbatch_priv_stats_fold_updates(dom, block->updates_global, updates);
		block = block->parent;
	} while (block != NULL);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_magnitude(int64_t delta)
{
	uint64_t magnitude = delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;

	return magnitude < (UINT64_C(1) << 40) ? magnitude : UINT64_C(1) << 40;
}

/*
 * The leaf of percpu.h with atomics: first the value (a full barrier), then a look
 * whether the block is on its list; a flusher disarms first and then reads the value.
 * False, and nothing added, while another thread is in the middle of listing it.
 */
PCBATCH_INLINE bool pcbatch_priv_stats_add_generic(struct pcbatch_stats_node *node, uint32_t cpu, uint64_t item_off, uint64_t delta)
{
	struct pcbatch_priv_stats_block *block = pcbatch_priv_stats_at(node, cpu);
	uint64_t *total = (uint64_t *)(void *)((char *)block + item_off);

	if (pcbatch_priv_load32(&block->armed) != PCBATCH_PRIV_STATS_ARMED)
		return false;
	(void)pcbatch_priv_fetch_add(total, delta);
	if (pcbatch_priv_stats_arm(node, cpu))
		return true;
	(void)pcbatch_priv_fetch_add(total, 0 - delta);
	return false;
}

PCBATCH_SLOW void pcbatch_priv_stats_mod_slow(struct pcbatch_stats_node *node, uint32_t item, int64_t delta)
{
	const uint64_t item_off = sizeof(struct pcbatch_priv_stats_block) + sizeof(struct pcbatch_priv_cell) * (uint64_t)item;
	struct pcbatch_domain *dom = node->dom;
	struct pcbatch_priv_stats_block *block;
	uint32_t cpu;
	int i;

	for (i = 0; i < PCBATCH_RETRIES; i++) {
		cpu = pcbatch_priv_cpu(dom);
		if (cpu >= dom->lines)
			break;
		(void)pcbatch_priv_stats_arm(node, cpu);
		if (pcbatch_priv_is_rseq(dom)) {
			block = pcbatch_priv_section_leaf(dom->rseq_off, &dom->rseq_bound, &node->blocks, item_off, delta);
			if (block == NULL)
				continue;
			pcbatch_priv_stats_walk(dom, block, pcbatch_priv_magnitude(delta));
			return;
		}
		if (!pcbatch_priv_stats_add_generic(node, cpu, item_off, (uint64_t)delta))
			break;
		pcbatch_priv_stats_walk_slow(node, pcbatch_priv_magnitude(delta));
		return;
	}
	pcbatch_priv_stats_direct(node, item, (uint64_t)delta);
	pcbatch_priv_stats_walk_slow(node, pcbatch_priv_magnitude(delta));
}

/*
 * Adds to an item of a node; every ancestor's hierarchical value has it after the
 * next flush.
 *
 * item: 0 to stat_items - 1. delta: units, any.
 * Returns: 0; -EINVAL item is out of range.
 * Threading: any thread, async-signal-safe. Progress: lock-free.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_stats_mod(struct pcbatch_stats_node *node, uint32_t item, int64_t delta)
{
	struct pcbatch_domain *dom = node->dom;
	intptr_t off = pcbatch_priv_hit_off(dom->rseq_off);
	struct pcbatch_priv_stats_block *block = NULL;

	if (PCBATCH_UNLIKELY(item >= dom->attr.stat_items))
		return -EINVAL;
	if (delta == 0)
		return 0;
	PCBATCH_PRIV_CHECK_PROCESS(dom);
	if (pcbatch_priv_try_section(off))
		block = pcbatch_priv_section_leaf(off, &dom->rseq_bound, &node->blocks,
						  sizeof(struct pcbatch_priv_stats_block) +
							  sizeof(struct pcbatch_priv_cell) * (uint64_t)item,
						  delta);
	if (PCBATCH_LIKELY(block != NULL))
		pcbatch_priv_stats_walk(dom, block, pcbatch_priv_magnitude(delta));
	else
		pcbatch_priv_stats_mod_slow(node, item, delta);
	return 0;
}

/* Whether the updates below this node since the last flush are more than batch x CPUs: worth one. One load. */
PCBATCH_INLINE bool pcbatch_stats_needs_flush(const struct pcbatch_stats_node *node)
{
	return pcbatch_priv_stats_flushable(node->dom, pcbatch_priv_stats_updates(node));
}

/* This node's and all its descendants' value as of the last flush; may be below 0. One load. */
PCBATCH_INLINE int64_t pcbatch_stats_read_signed(const struct pcbatch_stats_node *node, uint32_t item)
{
	if (item >= node->dom->attr.stat_items)
		return 0;
	return (int64_t)pcbatch_priv_load(&pcbatch_priv_stats_items(node)[item].hierarchical);
}

/* As pcbatch_stats_read_signed, never below 0: an uncharge may have been flushed before its charge. */
PCBATCH_INLINE int64_t pcbatch_stats_read(const struct pcbatch_stats_node *node, uint32_t item)
{
	int64_t value = pcbatch_stats_read_signed(node, item);

	return value > 0 ? value : 0;
}

/* This node's own value, without its descendants', as of the last flush; may be below 0. One load. */
PCBATCH_INLINE int64_t pcbatch_stats_read_local(const struct pcbatch_stats_node *node, uint32_t item)
{
	if (item >= node->dom->attr.stat_items)
		return 0;
	return (int64_t)pcbatch_priv_load(&pcbatch_priv_stats_items(node)[item].local);
}

#ifdef __cplusplus
}
#endif

#include "stats_flush.h"

#endif /* PCBATCH_STATS_H */
