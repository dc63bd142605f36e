/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/lock.h - the locks of the slow operations, and what a forked child has to
 * set right. Nothing on a charge, uncharge or add takes a lock.
 */
#ifndef PCBATCH_LOCK_H
#define PCBATCH_LOCK_H

#include <poll.h>
#include <sched.h>

#include "domain.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Between two looks at what another thread holds. Yielding alone would keep a real-time
 * thread going for ever, while the holder of lower priority waits for its CPU.
 */
PCBATCH_INLINE void pcbatch_priv_wait(uint32_t tries)
{
	if (tries < 100)
		(void)sched_yield();
	else
		(void)poll(NULL, 0, 1);
}

/* Takes one off a count (the bits of mask) that a child forked right now may have found and reset to 0. */
PCBATCH_INLINE void pcbatch_priv_lower(uint64_t *word, uint64_t mask)
{
	uint64_t old;

	do {
		old = pcbatch_priv_load(word);
	} while ((old & mask) != 0 && !pcbatch_priv_cas(word, old, old - 1));
}

/* Nobody holds any more, and the epoch moves on. */
PCBATCH_INLINE void pcbatch_priv_install_gate_reset(struct pcbatch_domain *dom)
{
	pcbatch_priv_store(&dom->install_gate, (pcbatch_priv_load(&dom->install_gate) | 0xffff) + 1);
}

PCBATCH_INLINE void pcbatch_priv_reopen_gates(struct pcbatch_domain *dom)
{
	uint32_t c;

	for (c = 0; c < dom->lines; c++) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, c);

		if (pcbatch_priv_load(&stock->page.gate) != 0)
			pcbatch_priv_store(&stock->page.gate, 0);
	}
	pcbatch_priv_install_gate_reset(dom);
}

/* The mark of a process while its threads queue blocks of statistics: the bits of PCBATCH_PRIV_STATS_QUEUEING's second half. */
PCBATCH_INLINE uint32_t pcbatch_priv_stats_mark(uint64_t pid)
{
	return PCBATCH_PRIV_STATS_QUEUEING | ((uint32_t)pid & 0x7fff) << 16;
}

/* Is a block queued by a thread of another process, that is, of the one that forked this one? */
PCBATCH_INLINE bool pcbatch_priv_stats_foreign(uint32_t state, uint64_t pid)
{
	return (state & PCBATCH_PRIV_STATS_QUEUEING) != 0 && (state & 0xffff0000u) != pcbatch_priv_stats_mark(pid);
}

PCBATCH_INLINE void pcbatch_priv_stats_settle_list(struct pcbatch_priv_stats_block *block, uint64_t pid)
{
	for (; block != NULL; block = block->next) {
		uint32_t state = pcbatch_priv_load32(&block->armed);

		if (pcbatch_priv_stats_foreign(state, pid))
			(void)pcbatch_priv_cas32(&block->armed, state, PCBATCH_PRIV_STATS_ARMED);
	}
}

/*
 * A thread that fork did not copy may have put a block on a list and not said so yet. Such a block is armed, lest it
 * is put there twice; one that it had not put there keeps its mark. No flusher takes a list before this is done.
 */
PCBATCH_INLINE void pcbatch_priv_stats_settle(struct pcbatch_domain *dom, uint64_t pid)
{
	uint32_t c;

	for (c = 0; c < dom->lines; c++)
		pcbatch_priv_stats_settle_list((struct pcbatch_priv_stats_block *)pcbatch_priv_load_ptr(
						       (void *const *)(void *)&pcbatch_priv_stock(dom, c)->changed),
					       pid);
	pcbatch_priv_stats_settle_list(dom->flush_taken, pid);
}

/*
 * A child forked while a drainer had gates closed inherits them closed, and nobody
 * would reopen them. Called by whoever finds a gate closed or is about to close
 * one, or finds a block of statistics half listed. One thread reopens; a signal handler that interrupts that very thread does
 * it in its stead (nothing else can have closed a gate before pid is set).
 *
 * Returns the process id. Whoever closes a gate keeps it and compares before
 * reopening: in a child forked by a signal handler in between, the rest is reopened
 * outright. (So such a child must not start threads that use the domain before the
 * handler has returned.)
 */
PCBATCH_COLD uint64_t pcbatch_priv_fork_check(struct pcbatch_domain *dom)
{
	uint64_t pid = (uint64_t)getpid();
	uint64_t self = pid << 32 | (uint32_t)(pcbatch_priv_thread_pointer() >> 4);
	uint64_t claim;
	uint32_t tries = 0;

	while (pcbatch_priv_load_acquire(&dom->pid) != pid) {
		claim = pcbatch_priv_load(&dom->fork_claim);
		if (claim >> 32 == pid && claim != self) {
			pcbatch_priv_wait(tries++);
			continue;
		}
		if (claim != self && !pcbatch_priv_cas(&dom->fork_claim, claim, self))
			continue;
		pcbatch_priv_reopen_gates(dom);
		pcbatch_priv_stats_settle(dom, pid);
		pcbatch_priv_fence();
		pcbatch_priv_store_release(&dom->pid, pid);
	}
	return pid;
}

/* A lock left by a thread that fork did not copy is taken over. Not for signal handlers. */
PCBATCH_INLINE bool pcbatch_priv_trylock(uint64_t *lock)
{
	uint64_t pid = (uint64_t)getpid(), holder = pcbatch_priv_load(lock);

	return holder != pid && pcbatch_priv_cas(lock, holder, pid);
}

PCBATCH_INLINE void pcbatch_priv_lock(uint64_t *lock)
{
	uint32_t tries = 0;

	while (!pcbatch_priv_trylock(lock))
		pcbatch_priv_wait(tries++);
}

PCBATCH_INLINE void pcbatch_priv_unlock(uint64_t *lock)
{
	pcbatch_priv_store_release(lock, 0);
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_LOCK_H */
