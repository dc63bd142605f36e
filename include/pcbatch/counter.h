/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/counter.h - the batched counter: add without a shared cache line, read
 * cheaply and approximately, sum exactly.
 *
 * A CPU's total is never reset. Beside it stands how much of it the global value
 * has (folded); the two never differ by the batch or more. Adds that find no CPU
 * cell go to `direct` and to the global value at once. So
 *	sum  = totals of all CPUs + direct, whatever is being folded meanwhile;
 *	read = the global value, off by less than batch x CPUs.
 * To know when to fold costs an add two instructions: a total is looked at when it
 * leaves its step, a power of two of at most half the batch, and folded when it
 * then owes more than batch - step. A counter that only grows folds once a batch.
 * All arithmetic is 64-bit and wraps. The idea, and the batch, are percpu_counter's;
 * the batch of seed 004 (32 against 256) is the bench's subject.
 *
 * Any two calls may run at once on one counter, but init and destroy. Unless a
 * function says otherwise: any thread, async-signal-safe, lock-free.
 */
#ifndef PCBATCH_COUNTER_H
#define PCBATCH_COUNTER_H

#include "domain_init.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_COUNTER_BATCH_MAX (1 << 30)

/* Written by init only: what changes stands in the domain's per-CPU memory. */
struct pcbatch_counter {
	char *cells;    /* CPU 0's pcbatch_priv_cell */
	uint32_t bound; /* the domain's rseq_bound; 0 also before init, when all is zero */
	int32_t mask;   /* the domain's counter_mask */
};

/* The part of a counter's per-CPU memory that all CPUs share. */
struct pcbatch_priv_counter_global {
	uint64_t value;  /* what read returns */
	uint64_t direct; /* adds that went past the cells */
};

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_priv_counter_global) == sizeof(struct pcbatch_priv_cell),
		      "a counter's shared part lies at the place of a cell");

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_counter_global *pcbatch_priv_counter_shared(const struct pcbatch_counter *c)
{
	return (struct pcbatch_priv_counter_global *)(void *)pcbatch_priv_shared(c->cells);
}

/* Not on the hit path, which has all it needs in the counter: a load through the domain would come before each section. */
PCBATCH_INLINE struct pcbatch_domain *pcbatch_priv_counter_domain(const struct pcbatch_counter *c)
{
	return pcbatch_priv_chunk_of(c->cells)->dom;
}

/*
 * Makes a counter.
 *
 * c: storage of the caller's. dom: its domain, which must outlive it.
 * value: the first value, any.
 * Returns: 0; -EINVAL c is NULL or dom is not a domain; -ENOMEM.
 * Threading: any thread, not a signal handler. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_counter_init(struct pcbatch_counter *c, struct pcbatch_domain *dom, int64_t value)
{
	if (c == NULL || !pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	c->cells = pcbatch_priv_percpu_alloc(dom, sizeof(struct pcbatch_priv_cell), sizeof(struct pcbatch_priv_cell),
					     &dom->free_cells);
	if (c->cells != NULL)
		dom->counters++;
	pcbatch_priv_unlock(&dom->lock);
	if (c->cells == NULL)
		return -ENOMEM;
	c->bound = dom->rseq_bound;
	c->mask = (int32_t)dom->counter_mask;
	if (value != 0) {
		pcbatch_priv_store(&pcbatch_priv_counter_shared(c)->value, (uint64_t)value);
		pcbatch_priv_store(&pcbatch_priv_counter_shared(c)->direct, (uint64_t)value);
	}
	return 0;
}

/*
 * Gives the counter's memory back to the domain.
 *
 * Returns: 0; -EINVAL c is NULL, or not initialised, or destroyed already.
 * Threading: no other call on c may run or follow. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_counter_destroy(struct pcbatch_counter *c)
{
	struct pcbatch_domain *dom;

	PCBATCH_PRIV_ASSERT(c != NULL && c->cells != NULL, "counter is NULL, not initialised or destroyed");
	if (c == NULL || c->cells == NULL)
		return -EINVAL;
	dom = pcbatch_priv_counter_domain(c);
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	pcbatch_priv_percpu_free(dom, c->cells, sizeof(struct pcbatch_priv_cell), &dom->free_cells);
	dom->counters--;
	pcbatch_priv_unlock(&dom->lock);
	memset(c, 0, sizeof(*c));
	return 0;
}

/* Takes what the cell owes into the global value. Two folders can't take the same part: one swap fails. */
PCBATCH_INLINE void pcbatch_priv_counter_fold(const struct pcbatch_counter *c, struct pcbatch_priv_cell *cell)
{
	uint64_t folded, total;

	do {
		/* The order does not matter for the sum of both; a later fold takes what this one missed. */
		folded = pcbatch_priv_load_acquire(&cell->folded);
		total = pcbatch_priv_load(&cell->total);
		if (total == folded)
			return;
		PCBATCH_INJECT_C(1);
	} while (!pcbatch_priv_cas(&cell->folded, folded, total));
	PCBATCH_INJECT_C(2);
	(void)pcbatch_priv_fetch_add(&pcbatch_priv_counter_shared(c)->value, total - folded);
}

PCBATCH_INLINE void pcbatch_priv_counter_direct(const struct pcbatch_counter *c, int64_t delta)
{
	struct pcbatch_priv_counter_global *global = pcbatch_priv_counter_shared(c);

	(void)pcbatch_priv_fetch_add(&global->direct, (uint64_t)delta);
	PCBATCH_INJECT_C(34);
	(void)pcbatch_priv_fetch_add(&global->value, (uint64_t)delta);
}

/* A total has left its step. It may go on for less than a step before the next look, so it must owe less than this. */
PCBATCH_INLINE void pcbatch_priv_counter_check(const struct pcbatch_counter *c, struct pcbatch_priv_cell *cell, uint64_t batch)
{
	uint64_t owes = pcbatch_priv_load(&cell->total) - pcbatch_priv_load(&cell->folded);
	uint64_t room = batch - pcbatch_priv_counter_step(batch);

	if (owes + room > 2 * room)
		pcbatch_priv_counter_fold(c, cell);
}

/*
 * Where an add goes that the inlined section did not finish. cell: where it
 * committed; NULL when it did not commit. batch: 0 means the domain's.
 */
PCBATCH_SLOW void pcbatch_priv_counter_add_slow(struct pcbatch_counter *c, int64_t delta, struct pcbatch_priv_cell *cell,
						uint64_t batch)
{
	struct pcbatch_domain *dom = pcbatch_priv_counter_domain(c);
	uint64_t crossed;
	uint32_t line;
	int i;

	if (batch == 0)
		batch = dom->counter_batch;
	if (PCBATCH_LIKELY(cell != NULL)) {
		pcbatch_priv_counter_check(c, cell, batch);
		return;
	}
	if (!pcbatch_priv_is_rseq(dom)) {
		line = pcbatch_priv_cpu(dom);
		if (line < dom->lines)
			cell = pcbatch_priv_generic_add(c->cells, line, dom->lines, delta, &crossed);
	}
	for (i = 0; cell == NULL && i < PCBATCH_RETRIES && pcbatch_priv_is_rseq(dom); i++)
		cell = pcbatch_priv_section_add(dom->rseq_off, &dom->rseq_bound, &c->cells, delta, &crossed);
	if (cell == NULL)
		pcbatch_priv_counter_direct(c, delta);
	else if ((crossed & (uint64_t)pcbatch_priv_counter_mask(batch)) != 0)
		pcbatch_priv_counter_check(c, cell, batch);
}

/*
 * Whether a total left its step. mask: -step. What is smaller than 2^31 can't change
 * the bits above bit 31 and none of those between, so half the word will do.
 */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_counter_left(int64_t delta, uint64_t crossed, int32_t mask)
{
	if (__builtin_constant_p(delta) && delta > INT32_MIN && delta < INT32_MAX)
		return ((uint32_t)crossed & (uint32_t)mask) != 0;
	return (crossed & (uint64_t)(int64_t)mask) != 0;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_cell *pcbatch_priv_counter_hit(struct pcbatch_counter *c, int64_t delta,
									   uint64_t *crossed)
{
	/* Without a libc area the domain's offset is what 0 (none) or the program's own would be; see add_slow. */
	intptr_t off = pcbatch_priv_hit_off(0);

	*crossed = UINT64_MAX;
	PCBATCH_PRIV_CHECK_PROCESS(pcbatch_priv_counter_domain(c));
	if (!pcbatch_priv_try_section(off))
		return NULL;
	return pcbatch_priv_section_add(off, &c->bound, &c->cells, delta, crossed);
}

/*
 * Adds to the counter with the domain's batch.
 *
 * delta: units, any value.
 * Threading: any thread, async-signal-safe. Progress: wait-free on the hit path; lock-free.
 */
PCBATCH_ALWAYS_INLINE void pcbatch_counter_add(struct pcbatch_counter *c, int64_t delta)
{
	struct pcbatch_priv_cell *cell;
	uint64_t crossed;

	PCBATCH_PRIV_ASSERT(c->cells != NULL, "counter is not initialised or destroyed");
	cell = pcbatch_priv_counter_hit(c, delta, &crossed);
	if (PCBATCH_UNLIKELY(pcbatch_priv_counter_left(delta, crossed, c->mask)))
		pcbatch_priv_counter_add_slow(c, delta, cell, 0);
}

/* Subtracts delta units; INT64_MIN is its own negative. Otherwise as pcbatch_counter_add. */
PCBATCH_ALWAYS_INLINE void pcbatch_counter_sub(struct pcbatch_counter *c, int64_t delta)
{
	pcbatch_counter_add(c, (int64_t)(0 - (uint64_t)delta));
}

/*
 * Adds with a batch of this call's own, which decides when this CPU folds, as far as
 * this call sees it.
 *
 * A batch above the domain's widens the error of read to batch x CPUs.
 * batch: units, 1 to PCBATCH_COUNTER_BATCH_MAX.
 * Returns: 0; -EINVAL batch is out of range, and nothing was added.
 * Threading: any thread, async-signal-safe. Progress: lock-free.
 */
PCBATCH_ALWAYS_INLINE int pcbatch_counter_add_batch(struct pcbatch_counter *c, int64_t delta, int64_t batch)
{
	struct pcbatch_priv_cell *cell;
	uint64_t crossed;

	if (batch < 1 || batch > PCBATCH_COUNTER_BATCH_MAX)
		return -EINVAL;
	cell = pcbatch_priv_counter_hit(c, delta, &crossed);
	if (PCBATCH_UNLIKELY(pcbatch_priv_counter_left(delta, crossed, (int32_t)pcbatch_priv_counter_mask((uint64_t)batch))))
		pcbatch_priv_counter_add_slow(c, delta, cell, (uint64_t)batch);
	return 0;
}

/*
 * The approximate value: one load. Off by less than pcbatch_counter_error_bound,
 * plus what adds in flight hold.
 */
PCBATCH_ALWAYS_INLINE int64_t pcbatch_counter_read(const struct pcbatch_counter *c)
{
	return (int64_t)pcbatch_priv_load(&pcbatch_priv_counter_shared(c)->value);
}

/* As pcbatch_counter_read, never below zero: for a count that can't be negative but whose error can. */
PCBATCH_INLINE int64_t pcbatch_counter_read_positive(const struct pcbatch_counter *c)
{
	int64_t value = pcbatch_counter_read(c);

	return value > 0 ? value : 0;
}

/*
 * The exact value: contains once every add that happened before the call, also
 * while others fold. Walks the CPUs. Adds of other threads that have returned but
 * were not ordered before this call by anything may be missed: see sum_fenced.
 */
PCBATCH_INLINE int64_t pcbatch_counter_sum(const struct pcbatch_counter *c)
{
	uint64_t sum = pcbatch_priv_load_acquire(&pcbatch_priv_counter_shared(c)->direct);
	uint32_t i, lines = pcbatch_priv_counter_domain(c)->lines;

	for (i = 0; i < lines; i++)
		sum += pcbatch_priv_load(&pcbatch_priv_cell_at(c->cells, i)->total);
	return (int64_t)sum;
}

/*
 * As pcbatch_counter_sum, with a fence first, so that every add that has returned
 * on any CPU is included without further synchronisation.
 *
 * value: gets the sum.
 * Returns: 0; -EINVAL value is NULL; another negative errno: the kernel refused the
 *	fence (a filter installed after init), and *value is as pcbatch_counter_sum's.
 * Threading: any thread, async-signal-safe. Progress: one system call on the rseq backend.
 */
PCBATCH_INLINE int pcbatch_counter_sum_fenced(const struct pcbatch_counter *c, int64_t *value)
{
	int err = 0;

	if (value == NULL)
		return -EINVAL;
	pcbatch_priv_fence();
	if (pcbatch_priv_is_rseq(pcbatch_priv_counter_domain(c)))
		err = pcbatch_priv_fence_rseq();
	*value = pcbatch_counter_sum(c);
	return err;
}

/* As pcbatch_counter_sum, never below zero. */
PCBATCH_INLINE int64_t pcbatch_counter_sum_positive(const struct pcbatch_counter *c)
{
	int64_t value = pcbatch_counter_sum(c);

	return value > 0 ? value : 0;
}

/* read is off by less than this many units (domain's batch x CPUs), plus what calls in flight hold. */
PCBATCH_INLINE int64_t pcbatch_counter_error_bound(const struct pcbatch_counter *c)
{
	const struct pcbatch_domain *dom = pcbatch_priv_counter_domain(c);

	return (int64_t)dom->counter_batch * dom->lines;
}

/* Folds what every CPU owes, so that read is exact until the next add. Walks the CPUs. */
PCBATCH_INLINE void pcbatch_counter_flush(struct pcbatch_counter *c)
{
	uint32_t i, lines = pcbatch_priv_counter_domain(c)->lines;

	for (i = 0; i < lines; i++)
		pcbatch_priv_counter_fold(c, pcbatch_priv_cell_at(c->cells, i));
}

/*
 * Makes the value what is given, as seen by a sum now; adds that run at the same
 * time come on top or are overwritten, each wholly.
 */
PCBATCH_INLINE void pcbatch_counter_set(struct pcbatch_counter *c, int64_t value)
{
	pcbatch_priv_counter_direct(c, (int64_t)((uint64_t)value - (uint64_t)pcbatch_counter_sum(c)));
}

/*
 * Compares the value with rhs: decides from read when the error can't matter, and
 * sums only when it could.
 *
 * Returns: -1 smaller, 0 equal, 1 greater.
 */
PCBATCH_INLINE int pcbatch_counter_compare(const struct pcbatch_counter *c, int64_t rhs)
{
	int64_t value = pcbatch_counter_read(c);
	uint64_t distance = value > rhs ? (uint64_t)value - (uint64_t)rhs : (uint64_t)rhs - (uint64_t)value;

	if (distance < (uint64_t)pcbatch_counter_error_bound(c))
		value = pcbatch_counter_sum(c);
	return value > rhs ? 1 : value < rhs ? -1 : 0;
}

/*
 * Adds all of amount or nothing: for a positive amount the value must not end
 * above limit, for a negative one not below it.
 *
 * Exact against other limited adds and against every add that happened before; an
 * unlimited add that runs at the same time is not held back by anybody's limit.
 * The amount shows in read and sum while it is being decided, so two calls that
 * race for the last units may both be refused. Walks the CPUs and writes a shared
 * line: for a limit on a hot path use a group, whose CPUs hold a stock.
 *
 * amount: units, either sign; 0 is always granted. limit: units.
 * Returns: true when added.
 */
PCBATCH_INLINE bool pcbatch_counter_limited_add(struct pcbatch_counter *c, int64_t limit, int64_t amount)
{
	int64_t value, before;
	bool granted;

	if (amount == 0)
		return true;
	/* First add, then look: of two that race, the later one sees both. */
	pcbatch_priv_counter_direct(c, amount);
	PCBATCH_INJECT_C(3);
	value = pcbatch_counter_sum(c);
	before = (int64_t)((uint64_t)value - (uint64_t)amount);
	/* A value that wrapped is on the wrong side of where it was. */
	granted = amount > 0 ? value <= limit && value > before : value >= limit && value < before;
	if (!granted)
		pcbatch_priv_counter_direct(c, (int64_t)(0 - (uint64_t)amount));
	return granted;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_COUNTER_H */
