/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/stats_flush.h - the flusher of stats.h: takes the blocks that changed off
 * their lists, fences once, and adds what they gained to the nodes and all ancestors.
 *
 * The order is: disarm, fence, read. An update that saw the block armed has either
 * committed before the fence, and is read, or is restarted by it, finds the block
 * not armed, and puts it back on the list.
 */
#ifndef PCBATCH_STATS_FLUSH_H
#define PCBATCH_STATS_FLUSH_H

#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

PCBATCH_INLINE bool pcbatch_priv_stats_within(const struct pcbatch_stats_node *node, const struct pcbatch_stats_node *root)
{
	for (; node != NULL && node != root; node = node->parent)
		;
	return node == root || root == NULL;
}

/* Takes what one CPU gained since it was last read; the flush lock is held. */
PCBATCH_INLINE void pcbatch_priv_stats_fold(struct pcbatch_stats_node *node, struct pcbatch_priv_stats_block *block)
{
	struct pcbatch_priv_cell *cell = (struct pcbatch_priv_cell *)(void *)(block + 1);
	uint32_t i, items = node->dom->attr.stat_items;

	for (i = 0; i < items; i++) {
		uint64_t total = pcbatch_priv_load(&cell[i].total), gained = total - cell[i].folded;

		if (gained == 0)
			continue;
		cell[i].folded = total;
		PCBATCH_INJECT_C(37);
		pcbatch_priv_stats_direct(node, i, gained);
	}
}

/* Takes a CPU's list. It stands in the domain before it leaves the CPU, so that a child forked right now has it too. */
PCBATCH_INLINE void pcbatch_priv_stats_take(struct pcbatch_domain *dom, uint32_t cpu)
{
	void **head = (void **)(void *)&pcbatch_priv_stock(dom, cpu)->changed;

	do {
		dom->flush_taken = (struct pcbatch_priv_stats_block *)pcbatch_priv_load_ptr(head);
	} while (dom->flush_taken != NULL && !pcbatch_priv_cas_ptr(head, dom->flush_taken, NULL));
}

/*
 * Takes the blocks of nodes within root off the lists, disarmed, into flush_work; the
 * others go back as they were. The flush lock is held.
 */
PCBATCH_INLINE void pcbatch_priv_stats_collect(struct pcbatch_domain *dom, const struct pcbatch_stats_node *root, bool exactly)
{
	struct pcbatch_priv_stats_block *block;
	uint32_t cpu;

	for (cpu = 0; cpu < dom->lines; cpu++) {
		pcbatch_priv_stats_take(dom, cpu);
		while ((block = dom->flush_taken) != NULL) {
			dom->flush_hand = block;
			dom->flush_taken = block->next;
			if (exactly ? pcbatch_priv_stats_node_of(block) != root : !pcbatch_priv_stats_within(pcbatch_priv_stats_node_of(block), root)) {
				pcbatch_priv_stats_push(dom, block);
				continue;
			}
			(void)pcbatch_priv_exchange32(&block->armed, PCBATCH_PRIV_STATS_IDLE);
			PCBATCH_INJECT_C(36);
			block->work = dom->flush_work;
			dom->flush_work = block;
		}
	}
}

PCBATCH_INLINE bool pcbatch_priv_stats_listed(struct pcbatch_domain *dom, const struct pcbatch_priv_stats_block *block)
{
	const struct pcbatch_priv_stats_block *b = pcbatch_priv_stock(dom, pcbatch_priv_load32(&block->cpu))->changed;

	for (; b != NULL && b != block; b = b->next)
		;
	return b != NULL;
}

/*
 * Of a block that a lost flusher had in its hands. One that is still armed, but on no list, goes back there: nobody
 * else would put it there. What another was disarmed for is read at once, for a thread of this process may have
 * marked it for listing and be stopped since; all that it held at the fork was committed.
 */
PCBATCH_INLINE void pcbatch_priv_stats_relist(struct pcbatch_domain *dom, struct pcbatch_priv_stats_block *block)
{
	if (block == NULL)
		return;
	if (pcbatch_priv_load32(&block->armed) == PCBATCH_PRIV_STATS_ARMED && !pcbatch_priv_stats_listed(dom, block))
		pcbatch_priv_stats_push(dom, block);
	pcbatch_priv_stats_fold(pcbatch_priv_stats_node_of(block), block);
}

/*
 * In a child forked while another thread flushed: puts what that had in its hands back
 * on the lists, so that at most what it was just adding up is missing. The lock is held.
 */
PCBATCH_INLINE void pcbatch_priv_stats_recover(struct pcbatch_domain *dom)
{
	struct pcbatch_priv_stats_block *block;

	/* Not yet off its CPU? Then the whole list is there. */
	if (dom->flush_taken != NULL && pcbatch_priv_stats_listed(dom, dom->flush_taken))
		dom->flush_taken = NULL;
	while ((block = dom->flush_taken) != NULL) {
		dom->flush_taken = block->next;
		pcbatch_priv_stats_relist(dom, block);
	}
	while ((block = dom->flush_work) != NULL) {
		dom->flush_work = block->work;
		pcbatch_priv_stats_relist(dom, block);
	}
	pcbatch_priv_stats_relist(dom, dom->flush_hand);
	dom->flush_hand = NULL;
}

/* The fence between disarming and reading. Without it the blocks are read all the same, and stay listed. */
PCBATCH_INLINE int pcbatch_priv_stats_fence(struct pcbatch_domain *dom)
{
	struct pcbatch_priv_stats_block *block;
	int err = 0;

	pcbatch_priv_fence();
	if (dom->flush_work != NULL && pcbatch_priv_is_rseq(dom))
		err = pcbatch_priv_fence_rseq();
	for (block = dom->flush_work; err != 0 && block != NULL; block = block->work)
		(void)pcbatch_priv_stats_arm(pcbatch_priv_stats_node_of(block), pcbatch_priv_load32(&block->cpu));
	return err;
}

PCBATCH_INLINE int pcbatch_priv_stats_flush_locked(struct pcbatch_domain *dom, struct pcbatch_stats_node *root)
{
	struct pcbatch_priv_stats_block *block;
	struct pcbatch_stats_node *node;
	int err;

	pcbatch_priv_stats_recover(dom);
	pcbatch_priv_stats_collect(dom, root, false);
	err = pcbatch_priv_stats_fence(dom);
	PCBATCH_INJECT_C(38);
	while ((block = dom->flush_work) != NULL) {
		dom->flush_hand = block;
		dom->flush_work = block->work;
		dom->flush_visits++;
		pcbatch_priv_stats_fold(pcbatch_priv_stats_node_of(block), block);
		for (node = pcbatch_priv_stats_node_of(block); node != NULL; node = node->parent) {
			if (pcbatch_priv_load(pcbatch_priv_stats_updates(node)) != 0)
				pcbatch_priv_store(pcbatch_priv_stats_updates(node), 0);
			if (node == root)
				break;
		}
	}
	dom->flush_hand = NULL;
	return err;
}

/*
 * Brings a node, its descendants and what they add to its ancestors up to date:
 * every update that returned before this call is in what can be read after it.
 *
 * Visits only (node, CPU) pairs that changed since the last flush. Waits for
 * another flusher.
 * root: the subtree; NULL: all of the domain.
 * Returns: 0; -EINVAL dom is not a domain; another negative errno: the kernel
 *	refused the fence, so an update just made may be missing until the next flush.
 * Threading: any thread, not a signal handler. Progress: may block; one system call.
 */
PCBATCH_INLINE int pcbatch_stats_flush(struct pcbatch_domain *dom, struct pcbatch_stats_node *root)
{
	int err;

	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->flush_lock);
	err = pcbatch_priv_stats_flush_locked(dom, root);
	pcbatch_priv_unlock(&dom->flush_lock);
	return err;
}

/* As pcbatch_stats_flush, but -EBUSY at once while another thread flushes. */
PCBATCH_INLINE int pcbatch_stats_try_flush(struct pcbatch_domain *dom, struct pcbatch_stats_node *root)
{
	int err;

	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	(void)pcbatch_priv_fork_check(dom);
	if (!pcbatch_priv_trylock(&dom->flush_lock))
		return -EBUSY;
	err = pcbatch_priv_stats_flush_locked(dom, root);
	pcbatch_priv_unlock(&dom->flush_lock);
	return err;
}

PCBATCH_INLINE int pcbatch_priv_stats_flush_due(struct pcbatch_domain *dom, struct pcbatch_stats_node *root, uint64_t now_ns,
						uint64_t period_ns)
{
	uint64_t last;
	int err;

	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	last = pcbatch_priv_load(&dom->last_flush_ns);
	if (last != 0 && now_ns - last < period_ns)
		return -EAGAIN;
	err = pcbatch_stats_try_flush(dom, root);
	if (err == 0)
		pcbatch_priv_store(&dom->last_flush_ns, now_ns != 0 ? now_ns : 1);
	return err;
}

/*
 * For a timer or an idle loop: flushes the whole domain when the last flush made by
 * this call or by the rate-limited one is PCBATCH_FLUSH_PERIOD_NS old, whatever
 * needs_flush says, so that a reader seldom has to.
 *
 * now_ns: a monotonic time, ns.
 * Returns: 0 flushed; -EAGAIN not due; -EBUSY another thread is flushing; else as pcbatch_stats_flush.
 * Threading: any thread, not a signal handler. Progress: never waits.
 */
PCBATCH_INLINE int pcbatch_stats_flush_periodic(struct pcbatch_domain *dom, uint64_t now_ns)
{
	return pcbatch_priv_stats_flush_due(dom, NULL, now_ns, PCBATCH_FLUSH_PERIOD_NS);
}

/*
 * For a hot reader: flushes only when enough changed below the node and the last
 * such flush is PCBATCH_FLUSH_LIMIT_NS old, so that any number of readers cost little.
 *
 * now_ns: a monotonic time, ns.
 * Returns: 0 flushed; -EAGAIN not due or not worth it; -EBUSY another thread is flushing; else as pcbatch_stats_flush.
 * Threading: any thread, not a signal handler. Progress: never waits.
 */
PCBATCH_INLINE int pcbatch_stats_flush_ratelimited(struct pcbatch_stats_node *node, uint64_t now_ns)
{
	if (!pcbatch_stats_needs_flush(node))
		return -EAGAIN;
	return pcbatch_priv_stats_flush_due(node->dom, NULL, now_ns, PCBATCH_FLUSH_LIMIT_NS);
}

/* How many (node, CPU) pairs flushes have visited in all: what a flush costs. */
PCBATCH_INLINE uint64_t pcbatch_stats_flush_visits(const struct pcbatch_domain *dom)
{
	return pcbatch_priv_domain_valid(dom) ? pcbatch_priv_load(&dom->flush_visits) : 0;
}

/*
 * Folds the last updates whatever the lists say, and gives the memory back. The
 * domain's lock is held; no update of this node may run or follow.
 */
PCBATCH_INLINE void pcbatch_priv_stats_destroy_locked(struct pcbatch_stats_node *node)
{
	struct pcbatch_domain *dom = node->dom;
	struct pcbatch_priv_stats_block *block;
	uint32_t cpu;

	pcbatch_priv_lock(&dom->flush_lock);
	pcbatch_priv_stats_recover(dom);
	pcbatch_priv_stats_collect(dom, node, true);
	dom->flush_work = NULL; /* all of them are read below */
	dom->flush_hand = NULL;
	for (cpu = 0; cpu < dom->lines; cpu++) {
		block = pcbatch_priv_stats_at(node, cpu);
		if (pcbatch_priv_stats_node_of(block) != NULL)
			pcbatch_priv_stats_fold(node, block);
	}
	pcbatch_priv_unlock(&dom->flush_lock);
	pcbatch_priv_percpu_free(dom, node->blocks, pcbatch_priv_stats_size(dom), &dom->free_blocks);
	node->blocks = NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_STATS_FLUSH_H */
