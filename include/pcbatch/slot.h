/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/slot.h - the arithmetic of a stock slot: one 64-bit word that holds an
 * owner, its cached pages and its cached statistic. No atomics, no memory.
 *
 *	63            32 31 30        16 15 14         0
 *	[    owner id   ][g][ statistic ][g][   pages   ]
 *
 * The statistic is stored with PCBATCH_SLOT_STAT_ZERO added, so that it is never
 * negative. The guard bits g are 0 in every stored word. One addition applies a
 * change of both fields; a second addition, of a constant made for the owner and
 * the operation (the check), leaves bits under PCBATCH_SLOT_MASK if and only if the
 * owner is another one, the pages went below 0 or above `high`, or the statistic
 * left (-batch, batch). An empty slot is 0; no owner has id 0.
 *
 * The byte slot is the same with one field: bytes in bits 30 to 0, guard bit 31.
 */
#ifndef PCBATCH_SLOT_H
#define PCBATCH_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_SLOT_MASK UINT64_C(0xffffffff80008000)
#define PCBATCH_SLOT_OBJ_MASK UINT64_C(0xffffffff80000000)
#define PCBATCH_SLOT_STAT_ZERO 0x4000u
/* The most pages, and statistic, that one change may carry (either has 15 bits, and a guard must catch it). */
#define PCBATCH_SLOT_STEP_MAX 0x3fffu
#define PCBATCH_SLOT_OBJ_STEP_MAX (1u << 29) /* bytes */

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_slot_owner(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_slot_pages(uint64_t word)
{
	return (uint32_t)(word & 0x7fffu);
}

PCBATCH_ALWAYS_INLINE int32_t pcbatch_slot_stat(uint64_t word)
{
	return (int32_t)((word >> 16) & 0x7fffu) - (int32_t)PCBATCH_SLOT_STAT_ZERO;
}

/* pages: 0 to 0x7fff. stat: -0x4000 to 0x3fff. */
PCBATCH_ALWAYS_INLINE uint64_t pcbatch_slot_pack(uint32_t owner, uint32_t pages, int32_t stat)
{
	return (uint64_t)owner << 32 | (uint64_t)(uint32_t)(stat + (int32_t)PCBATCH_SLOT_STAT_ZERO) << 16 | pages;
}

/* What to add to a word to change both fields. */
PCBATCH_ALWAYS_INLINE uint64_t pcbatch_slot_delta(int64_t pages, int64_t stat)
{
	return ((uint64_t)stat << 16) + (uint64_t)pages;
}

/* The check for taking pages and adding a statistic of 0 or more: pages >= 0, stat < batch. */
PCBATCH_INLINE uint64_t pcbatch_slot_check_consume(uint32_t owner, uint32_t batch)
{
	return ((uint64_t)(0x3fffu - (batch - 1)) << 16) - ((uint64_t)owner << 32);
}

/* The check for putting pages and subtracting a statistic of 0 or more: pages <= high, stat > -batch. */
PCBATCH_INLINE uint64_t pcbatch_slot_check_refill(uint32_t owner, uint32_t batch, uint32_t high)
{
	return (0x7fffu - high) - ((uint64_t)(PCBATCH_SLOT_STAT_ZERO - (batch - 1)) << 16) - ((uint64_t)owner << 32);
}

/* Does the change keep the word what the check asks for? */
PCBATCH_ALWAYS_INLINE bool pcbatch_slot_fits(uint64_t word, uint64_t delta, uint64_t check)
{
	return ((word + delta + check) & PCBATCH_SLOT_MASK) == 0;
}

/* What becomes of a slot, and what has to go on to the owner's page counter and statistics. */
struct pcbatch_slot_step {
	uint64_t word;
	uint64_t pages; /* to uncharge */
	int64_t stat;   /* to add to the statistic */
};

PCBATCH_INLINE int32_t pcbatch_priv_slot_stat(struct pcbatch_slot_step *step, int64_t value, int64_t batch)
{
	/* At the batch, all of it goes: what stays would only come closer to the next flush. */
	if (value > -batch && value < batch)
		return (int32_t)value;
	step->stat = value;
	return 0;
}

/*
 * Takes pages from the slot and adds to its statistic.
 *
 * word: an occupied slot. pages: any. stat: any that does not overflow with what the slot has.
 * Returns: false when it holds less than pages, and step is not set.
 */
PCBATCH_INLINE bool pcbatch_slot_consume(uint64_t word, uint64_t pages, int64_t stat, uint32_t batch,
					 struct pcbatch_slot_step *step)
{
	uint32_t have = pcbatch_slot_pages(word);

	if (have < pages)
		return false;
	step->pages = 0;
	step->stat = 0;
	stat = pcbatch_priv_slot_stat(step, (int64_t)((uint64_t)stat + (uint64_t)(int64_t)pcbatch_slot_stat(word)), batch);
	step->word = pcbatch_slot_pack(pcbatch_slot_owner(word), have - (uint32_t)pages, (int32_t)stat);
	return true;
}

/*
 * Puts pages into the slot and adds to its statistic. Above high pages it keeps
 * low and stays occupied, so that an owner at the mark does not fold at every call.
 *
 * word: an occupied slot, or pcbatch_slot_pack(owner, 0, 0) for a new one.
 */
PCBATCH_INLINE void pcbatch_slot_refill(uint64_t word, uint64_t pages, int64_t stat, uint32_t batch, uint32_t high,
					uint32_t low, struct pcbatch_slot_step *step)
{
	uint64_t have = pcbatch_slot_pages(word) + pages;

	step->pages = 0;
	step->stat = 0;
	if (have > high) {
		step->pages = have - low;
		have = low;
	}
	stat = pcbatch_priv_slot_stat(step, (int64_t)((uint64_t)stat + (uint64_t)(int64_t)pcbatch_slot_stat(word)), batch);
	step->word = pcbatch_slot_pack(pcbatch_slot_owner(word), (uint32_t)have, (int32_t)stat);
}

/* ---------------------------------------------------------------- byte slots */

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_slot_obj_bytes(uint64_t word)
{
	return (uint32_t)(word & 0x7fffffffu);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_slot_obj_pack(uint32_t owner, uint32_t bytes)
{
	return (uint64_t)owner << 32 | bytes;
}

PCBATCH_INLINE uint64_t pcbatch_slot_obj_check_consume(uint32_t owner)
{
	return 0 - ((uint64_t)owner << 32);
}

PCBATCH_INLINE uint64_t pcbatch_slot_obj_check_refill(uint32_t owner, uint32_t high)
{
	return (0x7fffffffu - high) - ((uint64_t)owner << 32);
}

PCBATCH_ALWAYS_INLINE bool pcbatch_slot_obj_fits(uint64_t word, uint64_t delta, uint64_t check)
{
	return ((word + delta + check) & PCBATCH_SLOT_OBJ_MASK) == 0;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_SLOT_H */
