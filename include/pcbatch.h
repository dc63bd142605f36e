/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch.h - per-CPU batched accounting for userspace: the one header to include.
 *
 * WHAT IT IS
 *
 * A server that counts its memory in one atomic spends its time moving that
 * atomic's cache line between CPUs. The Linux kernel solved this for memory
 * cgroups: each CPU holds a few owners' charges in a line of its own and goes to the
 * shared counter once a batch. This library is that machinery. In ten lines:
 *
 *	static struct pcbatch_domain dom;
 *	struct pcbatch_group *server, *session;
 *	struct pcbatch_group_attr attr;
 *
 *	pcbatch_domain_init(&dom, NULL);
 *	pcbatch_group_attr_init(&attr);
 *	attr.max = 1 << 18;                                   // pages: 1 GiB
 *	pcbatch_group_create(&dom, NULL, &attr, &server);
 *	pcbatch_group_create(&dom, server, NULL, &session);
 *	if (pcbatch_group_charge(session, 4) == 0) {          // session and server
 *		...
 *		pcbatch_group_uncharge(session, 4);           // on any thread
 *	}
 *
 * THE PIECES, from the bottom; each header also works alone
 *
 *	version.h config.h compiler.h atomic.h	what everything stands on
 *	cpu.h		CPU numbers, rseq areas, the fence
 *	percpu.h arch/	the commit contract and its implementations
 *	domain.h memory.h lock.h domain_init.h	the object that owns all state
 *	counter.h	batched counter: add, approximate read, exact sum
 *	page_counter.h	hierarchical limit counter
 *	slot.h		the arithmetic of a stock slot
 *	stats.h		hierarchical statistics with cached parents (and stats_flush.h)
 *	owner.h stock.h drain.h	per-CPU stock of charges
 *	obj_stock.h	its byte-granular twin
 *	group.h		limit, stock and statistics in one (and group_charge.h, group_info.h)
 *
 * THREADS AND CONTEXTS
 *
 * Charges, uncharges, counter adds, statistics updates and all reads may run in any
 * thread and in signal handlers, at the same time, on the same object, and never
 * wait for anybody: where a CPU's line can't be used they go to the shared counter.
 * Nothing belongs to a thread, so threads may end at any time, and what one charged
 * another may uncharge. A forked child may go on at once; what other threads had in
 * flight at the fork (a batch each, at most) stays charged in the child. Which calls
 * must not run at once, X, on one object:
 *
 *			charge/add/mod/read  drain/sum  flush  set_*  create/init  destroy
 *	charge/add/mod/read	-		-	-	-	X	X
 *	drain, sum		-		-	-	-	X	X
 *	flush			-		-	-	-	X	X
 *	set_max, set_batch	-		-	-	-	X	X
 *	create, init		X		X	X	X	X	X
 *	destroy			X		X	X	X	X	X
 *
 * (Creating and destroying other groups and counters of the same domain is always
 * allowed; page counters used without a group serialise their set_max.) create,
 * destroy, setters and flushes take a lock of the domain: not from signal handlers.
 * A vfork child, or one made by clone(CLONE_VM), must not use a domain.
 *
 * WHAT IS EXACT AND WHAT IS NOT
 *
 *	pcbatch_counter_sum	exact: every add that happened before it, once
 *	pcbatch_counter_read	off by less than batch x CPUs
 *	pcbatch_group_current	live charges, plus at most `high` pages a CPU and group
 *				that slots hold; what was granted never exceeds max
 *	a refusal		right: cached pages under the group that refused were
 *				drained, and the charge tried again, before it was given
 *	pcbatch_group_stat_read	as of the last flush; the statistic that is batched in
 *				the slots off by less than batch a CPU on top
 *	after a drain of everything and a flush, with no call in flight: all exact
 *
 * "CPUs" is pcbatch_domain_cpus: possible CPUs with restartable sequences, lines (at
 * least four times the CPUs) without. To all of this comes what calls in flight hold.
 *
 * HOW IT WORKS
 *
 * Everything that a CPU caches is an aligned 64-bit word, and everything done to it
 * is: compute the new word from the one read and, if still undisturbed on that CPU,
 * store it. With Linux's restartable sequences that is a plain store; without, a
 * compare-and-swap on a line chosen by thread. A stock slot packs owner, pages and
 * statistic into one such word with guard bits, so that one addition applies a charge
 * and one test tells owner mismatch, underflow, watermark and batch. A drainer raises
 * a gate in the CPU's line, fences with membarrier, and takes the words.
 *
 * Where pcbatch differs from the kernel: there is no preemption to disable, so a
 * disturbed update starts again; drains take one owner's slots and leave the others
 * warm; a refused charge drains first; counters are folded by compare-and-swap.
 */
#ifndef PCBATCH_H
#define PCBATCH_H

#include "pcbatch/version.h"
#include "pcbatch/config.h"

#include "pcbatch/counter.h"
#include "pcbatch/group.h"
#include "pcbatch/page_counter.h"
#include "pcbatch/stats.h"
#include "pcbatch/stock.h"

#endif /* PCBATCH_H */
