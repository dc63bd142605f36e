/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * include/pcbatch/slot.h for every word, request, batch (1 to 4096) and watermark (up to 16383): what a hit does by one
 * addition and one test is what the slow path does field by field, neither loses a page or a unit, and no guard bit is
 * ever stored. Overflow of signed numbers and shifts are checked throughout; unsigned ones wrap on purpose.
 *
 * check: hit_consume
 * check: hit_refill
 * check: step_consume
 * check: step_refill
 * check: obj_hit
 * mutant: hit_consume  slot.h s/0x3fffu - (batch - 1)/0x3fffu - batch/
 * mutant: hit_consume  slot.h s/PCBATCH_SLOT_MASK UINT64_C(0xffffffff80008000)/PCBATCH_SLOT_MASK UINT64_C(0xffffffff80000000)/
 * mutant: hit_refill   slot.h s/return (0x7fffu - high)/return (0x8000u - high)/
 * mutant: hit_refill   slot.h s/PCBATCH_SLOT_STAT_ZERO - (batch - 1)/PCBATCH_SLOT_STAT_ZERO - batch/
 * mutant: step_consume slot.h s/if (have < pages)/if (have + 1 < pages)/
 * mutant: step_consume slot.h s/value > -batch \&\& value < batch/value >= -batch \&\& value < batch/
 * mutant: step_refill  slot.h s/step->pages = have - low/step->pages = have - high/
 * mutant: step_refill  slot.h s/have = low;/have = high;/
 * mutant: obj_hit      slot.h s/return (0x7fffffffu - high)/return (0x80000000u - high)/
 */
#include <assert.h>
#include <pcbatch/slot.h>

uint64_t nondet_u64(void);
uint32_t nondet_u32(void);
int64_t nondet_i64(void);

static uint32_t owner, other, have, batch, high, low;
static int32_t stat;
static uint64_t word;

/* A word that may stand in a slot; the batch and marks may have been others when it was stored. */
static void any_slot(void)
{
	uint32_t batch_then = nondet_u32();

	owner = nondet_u32();
	other = nondet_u32();
	have = nondet_u32();
	stat = (int32_t)nondet_u32();
	batch = nondet_u32();
	high = nondet_u32();
	low = nondet_u32();
	__CPROVER_assume(owner != 0 && other != 0);
	__CPROVER_assume(batch >= 1 && batch <= 4096 && batch_then >= 1 && batch_then <= 4096);
	__CPROVER_assume(high >= batch && high <= 16383 && low <= high);
	__CPROVER_assume(have <= 16383 && stat < (int32_t)batch_then && stat > -(int32_t)batch_then);
	word = pcbatch_slot_pack(owner, have, stat);
	assert(pcbatch_slot_owner(word) == owner && pcbatch_slot_pages(word) == have && pcbatch_slot_stat(word) == stat);
	assert((word & (PCBATCH_SLOT_MASK & 0xffffffffu)) == 0);
}

static void sound(uint64_t now)
{
	assert((now & 0x80008000u) == 0);
	assert(pcbatch_slot_pages(now) <= 16383);
}

void hit_consume(void)
{
	uint64_t pages = nondet_u64(), delta;
	int64_t more = nondet_i64(), sum;
	struct pcbatch_slot_step step;
	bool fits;

	any_slot();
	__CPROVER_assume((pages | (uint64_t)more) <= PCBATCH_SLOT_STEP_MAX);
	delta = pcbatch_slot_delta((int64_t)(0 - pages), more);
	fits = pcbatch_slot_fits(word, delta, pcbatch_slot_check_consume(other, batch));
	sum = stat + more;
	assert(fits == (other == owner && have >= pages && sum < (int64_t)batch));
	if (!fits)
		return;
	sound(word + delta);
	assert(word + delta == pcbatch_slot_pack(owner, have - (uint32_t)pages, (int32_t)sum));
	/* Below -batch (a smaller batch by now) the slow path flushes it, the hit leaves it: both are right. */
	if (sum > -(int64_t)batch) {
		assert(pcbatch_slot_consume(word, pages, more, batch, &step));
		assert(step.word == word + delta && step.pages == 0 && step.stat == 0);
	}
}

void hit_refill(void)
{
	uint64_t pages = nondet_u64(), delta;
	int64_t less = nondet_i64(), sum;
	struct pcbatch_slot_step step;
	bool fits;

	any_slot();
	__CPROVER_assume((pages | (uint64_t)less) <= PCBATCH_SLOT_STEP_MAX);
	delta = pcbatch_slot_delta((int64_t)pages, (int64_t)(0 - (uint64_t)less));
	fits = pcbatch_slot_fits(word, delta, pcbatch_slot_check_refill(other, batch, high));
	sum = stat - less;
	assert(fits == (other == owner && have + pages <= high && sum > -(int64_t)batch));
	if (!fits)
		return;
	sound(word + delta);
	assert(word + delta == pcbatch_slot_pack(owner, have + (uint32_t)pages, (int32_t)sum));
	if (sum < (int64_t)batch) {
		pcbatch_slot_refill(word, pages, -less, batch, high, low, &step);
		assert(step.word == word + delta && step.pages == 0 && step.stat == 0);
	}
}

/* Within the batch, and nothing of old + more is lost (modulo 2^64, as far as a statistic can be held at all). */
static void stat_kept(const struct pcbatch_slot_step *step, int64_t more)
{
	int32_t now = pcbatch_slot_stat(step->word);

	assert(now < (int32_t)batch && now > -(int32_t)batch);
	assert((uint64_t)now + (uint64_t)step->stat == (uint64_t)stat + (uint64_t)more);
}

void step_consume(void)
{
	uint64_t pages = nondet_u64();
	int64_t more = nondet_i64();
	struct pcbatch_slot_step step;
	bool done;

	any_slot();
	done = pcbatch_slot_consume(word, pages, more, batch, &step);
	assert(done == (pages <= have));
	if (!done)
		return;
	sound(step.word);
	assert(pcbatch_slot_owner(step.word) == owner && pcbatch_slot_pages(step.word) == have - pages && step.pages == 0);
	stat_kept(&step, more);
}

void step_refill(void)
{
	uint64_t pages = nondet_u64();
	int64_t more = nondet_i64();
	struct pcbatch_slot_step step;

	any_slot();
	__CPROVER_assume(pages <= 4096); /* the callers' limit is the batch */
	pcbatch_slot_refill(word, pages, more, batch, high, low, &step);
	sound(step.word);
	assert(pcbatch_slot_owner(step.word) == owner && pcbatch_slot_pages(step.word) <= high);
	assert(pcbatch_slot_pages(step.word) + step.pages == have + pages);
	assert(step.pages == 0 || pcbatch_slot_pages(step.word) == low);
	stat_kept(&step, more);
}

void obj_hit(void)
{
	uint32_t bytes = nondet_u32(), obj_high = nondet_u32();
	uint64_t amount = nondet_u64(), old;
	bool fits;

	owner = nondet_u32();
	other = nondet_u32();
	__CPROVER_assume(owner != 0 && other != 0 && obj_high <= 1u << 29 && bytes <= 1u << 29);
	__CPROVER_assume(amount <= PCBATCH_SLOT_OBJ_STEP_MAX);
	old = pcbatch_slot_obj_pack(owner, bytes);
	assert(pcbatch_slot_owner(old) == owner && pcbatch_slot_obj_bytes(old) == bytes);
	fits = pcbatch_slot_obj_fits(old, 0 - amount, pcbatch_slot_obj_check_consume(other));
	assert(fits == (other == owner && bytes >= amount));
	if (fits)
		assert(old - amount == pcbatch_slot_obj_pack(owner, bytes - (uint32_t)amount));
	fits = pcbatch_slot_obj_fits(old, amount, pcbatch_slot_obj_check_refill(other, obj_high));
	assert(fits == (other == owner && bytes + amount <= obj_high));
	if (fits)
		assert(old + amount == pcbatch_slot_obj_pack(owner, bytes + (uint32_t)amount));
}
