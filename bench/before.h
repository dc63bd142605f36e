/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * before.h - hierarchical statistics as they were before seed 001, on the library's own
 * blocks and with its own sections, so that only the way up differs:
 *
 *	cached	the library: node, its block, then from block to parent block; a line a level
 *	walk	owner, through it its per-CPU block, then the parent owner: two lines a level
 *	kernel	the same where an owner is as large as a memcg, so that the pointer to its
 *		per-CPU part and the one to its parent are on lines of their own: three
 *	atomics	an atomic at every level; a line a level that all CPUs share
 */
#ifndef PCBATCH_BENCH_BEFORE_H
#define PCBATCH_BENCH_BEFORE_H

#include "base.h"

/* An owner with the distances of struct mem_cgroup: css.parent at the front, vmstats_percpu far behind. */
struct memcg {
	struct memcg *parent;
	char pad[56 + 64];
	struct pcbatch_stats_node *stats; /* read once when set up */
	char *blocks;
	char pad2[48 + 64];
} __attribute__((aligned(64)));

struct stat_level {
	uint64_t v;
	struct stat_level *parent;
	char pad[48];
} __attribute__((aligned(64)));

#if PCBATCH_PRIV_HAVE_SECTIONS
static inline __attribute__((always_inline)) void before_level(struct pcbatch_domain *dom, struct pcbatch_priv_stats_block *block)
{
	uint64_t updates;

	if (!pcbatch_priv_section_level(pcbatch_priv_hit_off(dom->rseq_off), block, 1, dom->stat_threshold, &updates))
		return; /* moved to another CPU: the pending count of this level is lost, which is only timed */
	if (PCBATCH_UNLIKELY(updates >= dom->stat_threshold))
		pcbatch_priv_stats_fold_updates(dom, block->updates_global, updates);
}

static inline __attribute__((always_inline)) struct pcbatch_priv_stats_block *before_leaf(struct pcbatch_domain *dom, char *const *blocks)
{
	return pcbatch_priv_section_leaf(pcbatch_priv_hit_off(dom->rseq_off), &dom->rseq_bound, blocks,
					 sizeof(struct pcbatch_priv_stats_block), 1);
}

/* Adds 1 to item 0 of the node. */
static inline __attribute__((always_inline)) void before_walk(struct pcbatch_stats_node *node)
{
	struct pcbatch_domain *dom = node->dom;
	struct pcbatch_priv_stats_block *leaf = before_leaf(dom, &node->blocks);
	uint32_t cpu;

	if (PCBATCH_UNLIKELY(leaf == NULL)) {
		(void)pcbatch_stats_mod(node, 0, 1);
		return;
	}
	cpu = (uint32_t)pcbatch_priv_rseq_cpu(dom->rseq_off);
	for (; node != NULL; node = node->parent)
		before_level(dom, pcbatch_priv_stats_at(node, cpu));
}

static inline __attribute__((always_inline)) void before_kernel(struct pcbatch_domain *dom, struct memcg *memcg)
{
	struct pcbatch_priv_stats_block *leaf = before_leaf(dom, &memcg->blocks);
	uint32_t cpu;

	if (PCBATCH_UNLIKELY(leaf == NULL)) {
		(void)pcbatch_stats_mod(memcg->stats, 0, 1);
		return;
	}
	cpu = (uint32_t)pcbatch_priv_rseq_cpu(dom->rseq_off);
	for (; memcg != NULL; memcg = memcg->parent)
		before_level(dom, (struct pcbatch_priv_stats_block *)(void *)pcbatch_priv_part(memcg->blocks, cpu));
}
#else
static inline void before_walk(struct pcbatch_stats_node *node)
{
	(void)pcbatch_stats_mod(node, 0, 1);
}

static inline void before_kernel(struct pcbatch_domain *dom, struct memcg *memcg)
{
	(void)dom;
	(void)pcbatch_stats_mod(memcg->stats, 0, 1);
}
#endif

static inline void before_atomics(struct stat_level *level)
{
	for (; level != NULL; level = level->parent)
		(void)__atomic_fetch_add(&level->v, 1, __ATOMIC_RELAXED);
}

/* Throws a line out of every cache. */
static inline void before_evict(const void *line)
{
#if defined(__x86_64__)
	__builtin_ia32_clflush(line);
#else
	(void)line;
#endif
}

#endif /* PCBATCH_BENCH_BEFORE_H */
