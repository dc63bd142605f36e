/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tag.h - which group a block belongs to: two bytes for each 16 bytes of heap, number
 * of the group plus one, in a table of two levels. 0: not a block of ours.
 *
 * Why not in the block: a header breaks alignment, a word at its end breaks size classes
 * (a page would become five quarters of one), costs the last page of large blocks, and
 * neither can tell a block that another allocator, or this one before we were there,
 * handed out. The table costs an eighth of the heap at most, where blocks are of 16
 * bytes, and one page for each 32 KiB that hold a block's beginning otherwise.
 *
 * A leaf is 8 MiB of address space for 64 MiB of heap, touched where used, and stays.
 * A tag is written by whoever has the block, before it can have anybody else.
 */
#ifndef MALLOC_GROUP_TAG_H
#define MALLOC_GROUP_TAG_H

#include "shim.h"

#if defined(__aarch64__)
#define TAG_ADDRESS_BITS 48
#else
#define TAG_ADDRESS_BITS 47
#endif
#define TAG_LEAF_SHIFT 26
#define TAG_LEAVES ((size_t)1 << (TAG_ADDRESS_BITS - TAG_LEAF_SHIFT))
#define TAG_LEAF_BYTES (((size_t)1 << TAG_LEAF_SHIFT) / SHIM_GRANULE * sizeof(uint16_t))

/* The leaf's address less where its first tag would be in one table for all memory: so no mask is needed. 0: none. */
extern uintptr_t tag_top[TAG_LEAVES];

/* Maps the leaf; NULL: no memory, or an address above what the table covers. */
uint16_t *tag_new(const void *p);

/* Where the tag of p is, or NULL: nothing there was ever tagged. */
static inline __attribute__((always_inline)) uint16_t *tag_of(const void *p)
{
	uintptr_t address = (uintptr_t)p, leaf;
	uint16_t *tag;

	if (PCBATCH_UNLIKELY(address >> TAG_ADDRESS_BITS != 0))
		return NULL;
	leaf = __atomic_load_n(&tag_top[address >> TAG_LEAF_SHIFT], __ATOMIC_RELAXED);
	if (PCBATCH_UNLIKELY(leaf == 0))
		return NULL;
	tag = (uint16_t *)(leaf + address / SHIM_GRANULE * sizeof(uint16_t));
	if (tag == NULL)
		__builtin_unreachable(); /* so that the caller's test is the one above */
	return tag;
}

static inline __attribute__((always_inline)) uint16_t tag_load(const uint16_t *tag)
{
	return __atomic_load_n(tag, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) void tag_store(uint16_t *tag, uint32_t value)
{
	__atomic_store_n(tag, (uint16_t)value, __ATOMIC_RELAXED);
}

#endif /* MALLOC_GROUP_TAG_H */
