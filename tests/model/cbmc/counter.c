/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * include/pcbatch/counter.h and domain.h, for every total, folded part, delta (INT64_MIN and INT64_MAX too) and batch
 * (1 to 2^30): a cell never owes the batch or more, a fold moves what is owed and nothing else, and half a word is
 * enough to see that a total left its step.
 *
 * check: bound
 * check: fold
 * check: half_word
 * check: limited
 * mutant: bound     counter.h s/owes + room > 2 \* room/owes + room > 2 * batch/
 * mutant: bound     counter.h s/uint64_t room = batch - pcbatch_priv_counter_step(batch);/uint64_t room = batch;/
 * mutant: bound     domain.h s/(62 - __builtin_clzll(batch))/(64 - __builtin_clzll(batch))/
 * mutant: fold      counter.h s/->value, total - folded)/->value, total)/
 * mutant: half_word counter.h s/return ((uint32_t)crossed/return ((uint16_t)crossed/
 * mutant: limited   counter.h s/value <= limit \&\& value > before/value <= limit/
 */
#include <assert.h>
/* So that a pointer is told from a constant: the shortened test is what is proved here. */
#define __builtin_constant_p(x) half
static _Bool half;
#include <pcbatch/memory.h>
/* A checker's pointers can't be masked to find what they are in. */
static struct pcbatch_domain dom;
static struct pcbatch_priv_chunk chunk;
#define pcbatch_priv_chunk_of(base) (&chunk)
#include <pcbatch/counter.h>

uint64_t nondet_u64(void);
int64_t nondet_i64(void);

/* CPU 0's cell of a counter, and what all CPUs share a region before it. */
static struct {
	struct pcbatch_priv_counter_global shared;
	char rest[PCBATCH_PRIV_REGION - sizeof(struct pcbatch_priv_counter_global)];
	struct pcbatch_priv_cell cell;
} memory;
static struct pcbatch_counter counter;

static uint64_t any_batch(void)
{
	uint64_t batch = nondet_u64();

	__CPROVER_assume(batch >= 1 && batch <= PCBATCH_COUNTER_BATCH_MAX);
	counter.cells = (char *)&memory.cell;
	return batch;
}

static int64_t owes(void)
{
	return (int64_t)(memory.cell.total - memory.cell.folded);
}

/*
 * Invariant: in the step where the total is, it had at some time been looked at (looked), and owed at most room then. It
 * holds at first (all 0), every add keeps it, and it implies the bound.
 */
void bound(void)
{
	uint64_t batch = any_batch(), looked = nondet_u64(), delta = nondet_u64(), crossed;
	int64_t room = (int64_t)(batch - pcbatch_priv_counter_step(batch));
	int64_t mask = pcbatch_priv_counter_mask(batch), owed;

	assert(pcbatch_priv_counter_step(batch) >= 1 && (pcbatch_priv_counter_step(batch) <= batch / 2 || batch == 1));
	assert(mask == (int32_t)mask);
	memory.cell.total = nondet_u64();
	memory.cell.folded = nondet_u64();
	owed = (int64_t)(looked - memory.cell.folded);
	__CPROVER_assume(((looked ^ memory.cell.total) & (uint64_t)mask) == 0 && owed <= room && owed >= -room);
	assert(owes() < (int64_t)batch && owes() > -(int64_t)batch);

	crossed = memory.cell.total ^ (memory.cell.total + delta);
	memory.cell.total += delta;
	if (pcbatch_priv_counter_left((int64_t)delta, crossed, (int32_t)mask)) {
		pcbatch_priv_counter_check(&counter, &memory.cell, batch);
		looked = memory.cell.total;
	}
	owed = (int64_t)(looked - memory.cell.folded);
	assert(((looked ^ memory.cell.total) & (uint64_t)mask) == 0 && owed <= room && owed >= -room);
	assert(owes() < (int64_t)batch && owes() > -(int64_t)batch);
}

void fold(void)
{
	uint64_t value = nondet_u64(), total = nondet_u64(), folded = nondet_u64();

	(void)any_batch();
	memory.shared.value = value;
	memory.cell.total = total;
	memory.cell.folded = folded;
	pcbatch_priv_counter_fold(&counter, &memory.cell);
	assert(memory.cell.total == total && memory.cell.folded == total && memory.shared.value == value + (total - folded));
	assert(memory.shared.direct == 0);
}

/* What the inlined add tests when delta is a small constant is what it would test with the whole word. */
void half_word(void)
{
	uint64_t batch = any_batch(), total = nondet_u64(), crossed;
	int64_t delta = nondet_i64(), mask = pcbatch_priv_counter_mask(batch);

	__CPROVER_assume(delta > INT32_MIN && delta < INT32_MAX);
	crossed = total ^ (total + (uint64_t)delta);
	half = 1;
	assert(pcbatch_priv_counter_left(delta, crossed, (int32_t)mask) == ((crossed & (uint64_t)mask) != 0));
}

/* One limited add, alone: never past the limit in its direction, a wrap included, and all or nothing. */
void limited(void)
{
	int64_t value = nondet_i64(), limit = nondet_i64(), amount = nondet_i64();
	int64_t wanted = (int64_t)((uint64_t)value + (uint64_t)amount);
	uint64_t before;
	bool granted, right;

	(void)any_batch();
	chunk.dom = &dom;
	dom.lines = 1;
	memory.shared.direct = (uint64_t)value;
	before = memory.shared.direct;
	granted = pcbatch_counter_limited_add(&counter, limit, amount);
	/* A sum that wrapped is beyond any limit. */
	right = amount == 0 || (amount > 0 ? wanted > value && wanted <= limit : wanted < value && wanted >= limit);
	assert(granted == right);
	assert(memory.shared.direct == before + (granted ? (uint64_t)amount : 0));
	assert(memory.shared.value == memory.shared.direct - before);
}
