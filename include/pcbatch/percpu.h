/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/percpu.h - the commit contract: the few restartable operations on
 * per-CPU words, written once as pseudo-code, which arch/ implements.
 *
 * Everything a CPU caches is an aligned 64-bit word, and everything done to it is
 * "compute the new word from the one I read and, if I am still undisturbed on
 * that CPU, store it". An operation below either makes its one store whole and
 * reports so, or has changed nothing. Preemption, migration and signals end it
 * in the second way; so does a CPU number of `bound` or more, which includes
 * the values of a thread without a registered area.
 *
 *	off	of the rseq area from the thread pointer (domain.rseq_off)
 *	bound	CPUs << PCBATCH_REGION_SHIFT; 0 lets nothing through
 *	base	address of CPU 0's word; CPU c's is (c << PCBATCH_REGION_SHIFT) further
 *
 * add(off, bound, &base, delta) -> cell, crossed
 *	begin; c = cpu; if (c >= bound) fail; cell = base + c
 *	old = cell->total; new = old + delta
 *	commit cell->total = new
 *	end; crossed = old ^ new.  fail: cell = NULL, crossed = UINT64_MAX
 *
 * slot(off, bound, &line, &slot_off, check, delta, mask) -> done
 *	begin; c = cpu; if (c >= bound) fail; l = line + c
 *	if (*l (the gate) != 0) fail; s = l + slot_off; w = *s
 *	if ((w + check) & mask) fail; *(s + 64) += 1 (counts the hit)
 *	commit *s = w + delta
 *	end; done.  An abort between the two stores leaves one hit too many.
 *
 * cmp_store(off, cpu, gate, chk, chkval, word, old, new) -> bool
 *	begin; if (cpu != this cpu || *gate != 0 || *chk != chkval || *word != old) fail
 *	commit *word = new
 *	end; true
 *
 * install(off, cpu, gate, installs, chk, chkval, word, old, new) -> bool
 *	begin; if (cpu != this cpu || *gate != 0 || *(gate + 64) != installs || *chk != chkval || *word != old) fail
 *	*(gate + 64) += 1
 *	commit *word = new
 *	end; true.  An abort between the two stores only makes others look again.
 *
 * leaf(off, bound, &base, item_off, delta) -> block
 *	begin; c = cpu; if (c >= bound) fail; b = base + c
 *	if (b->armed != PCBATCH_PRIV_STATS_ARMED) fail
 *	commit *(b + item_off) += delta
 *	end; block = b.  fail: block = NULL
 *
 * level(off, block, amount, threshold) -> bool, updates
 *	begin; if (block->cpu != this cpu) fail
 *	updates = block->updates + amount
 *	commit block->updates = updates >= threshold ? 0 : updates
 *	end; true
 *
 * Every load of a gate, chk or armed word is ordered before the loads after it.
 * A drainer that changed such a word and then fenced (pcbatch_priv_fence_rseq)
 * knows that no operation that read the old value can still commit.
 *
 * The generic backend has no sections: callers find bound == 0, come to the
 * slow path, and use the operations of arch/generic.h on a line chosen by thread.
 */
#ifndef PCBATCH_PERCPU_H
#define PCBATCH_PERCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A counter's cell on one CPU. total is never reset; folded is what the global has of it. */
struct pcbatch_priv_cell {
	uint64_t total;  /* written by commits on this CPU only */
	uint64_t folded; /* written by compare-and-swap only, by any thread */
};

#define PCBATCH_PRIV_STATS_IDLE 0    /* not in the list of changed blocks (or not set up) */
#define PCBATCH_PRIV_STATS_QUEUEING 0x80000000u /* the process and thread of the other bits are putting it there */
#define PCBATCH_PRIV_STATS_ARMED 2   /* there: updates need not care */

/* An owner's statistics on one CPU: the header line; the items' cells follow it. */
struct pcbatch_priv_stats_block {
	uint64_t updates;                        /* 0: pending magnitude, reset when folded */
	struct pcbatch_priv_stats_block *parent; /* 8: the parent's block on the same CPU */
	uint64_t *updates_global;                /* 16: the owner's folded updates */
	uint32_t cpu;                            /* 24: whose block this is */
	uint32_t armed;                          /* 28: PCBATCH_PRIV_STATS_* */
	struct pcbatch_priv_stats_block *next;   /* 32: in its CPU's list of changed blocks */
	struct pcbatch_priv_stats_block *work;   /* 40: in the flusher's list */
	struct pcbatch_stats_node *node;         /* 48: whose block this is, once it is set up */
	uint64_t reserved;
};

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_priv_stats_block) == 64 || sizeof(void *) != 8, "one line");

#ifdef __cplusplus
}
#endif

#define PCBATCH_PRIV_ARCH_INSIDE 1
#if PCBATCH_USE_ASM && defined(__x86_64__)
#include "arch/x86_64.h"
#elif PCBATCH_USE_ASM && defined(__aarch64__)
#include "arch/aarch64.h"
#else
#include "arch/none.h"
#endif
#include "arch/generic.h"
#undef PCBATCH_PRIV_ARCH_INSIDE

#endif /* PCBATCH_PERCPU_H */
