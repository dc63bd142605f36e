/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/memory.h - where a domain's memory comes from, and per-CPU memory: pieces
 * that lie at the same place of every CPU's region, packed, so that a CPU's counters
 * share its lines and nobody else's.
 */
#ifndef PCBATCH_MEMORY_H
#define PCBATCH_MEMORY_H

#include <string.h>

#include "domain.h"

#ifdef __cplusplus
extern "C" {
#endif

PCBATCH_INLINE void *pcbatch_priv_libc_zalloc(void *ctx, size_t size, size_t align)
{
	char *raw, *ptr;

	(void)ctx;
	if (align < sizeof(void *))
		align = sizeof(void *);
	if (size > SIZE_MAX - align - sizeof(void *))
		return NULL;
	/* calloc, since it hands out large pieces untouched: a CPU's region is placed by its first user. */
	raw = (char *)calloc(1, size + align + sizeof(void *));
	if (raw == NULL)
		return NULL;
	ptr = raw + sizeof(void *);
	ptr += (align - ((uintptr_t)ptr & (align - 1))) & (align - 1);
	memcpy(ptr - sizeof(void *), &raw, sizeof(raw));
	return ptr;
}

PCBATCH_INLINE void pcbatch_priv_libc_free(void *ctx, void *ptr, size_t size, size_t align)
{
	char *raw;

	(void)ctx, (void)size, (void)align;
	memcpy(&raw, (char *)ptr - sizeof(void *), sizeof(raw));
	free(raw);
}

PCBATCH_INLINE void *pcbatch_priv_zalloc(struct pcbatch_domain *dom, size_t size, size_t align)
{
	return dom->attr.zalloc(dom->attr.alloc_ctx, size, align);
}

PCBATCH_INLINE void pcbatch_priv_free(struct pcbatch_domain *dom, void *ptr, size_t size, size_t align)
{
	if (ptr != NULL)
		dom->attr.free(dom->attr.alloc_ctx, ptr, size, align);
}

PCBATCH_INLINE size_t pcbatch_priv_chunk_bytes(const struct pcbatch_domain *dom)
{
	return ((size_t)dom->lines + 1) << PCBATCH_REGION_SHIFT;
}

PCBATCH_INLINE struct pcbatch_priv_chunk *pcbatch_priv_chunk_of(const char *base)
{
	uintptr_t shared = (uintptr_t)pcbatch_priv_shared(base);

	return (struct pcbatch_priv_chunk *)(shared & ~(uintptr_t)(PCBATCH_PRIV_REGION - 1));
}

PCBATCH_INLINE struct pcbatch_priv_chunk *pcbatch_priv_chunk_new(struct pcbatch_domain *dom)
{
	struct pcbatch_priv_chunk *chunk = NULL;
	size_t bytes = pcbatch_priv_chunk_bytes(dom);

	/* The regions of very many CPUs are more than 32 bits can count. */
	if (bytes >> PCBATCH_REGION_SHIFT == (size_t)dom->lines + 1)
		chunk = (struct pcbatch_priv_chunk *)pcbatch_priv_zalloc(dom, bytes, PCBATCH_PRIV_REGION);
	if (chunk == NULL)
		return NULL;
	chunk->dom = dom;
	chunk->used = 64;
	chunk->next = dom->chunks;
	dom->chunks = chunk;
	return chunk;
}

/*
 * `size` zeroed bytes for each CPU and for the shared part; returns CPU 0's. The
 * lock is held. free_list is that of things of this very size, or NULL.
 */
PCBATCH_INLINE char *pcbatch_priv_percpu_alloc(struct pcbatch_domain *dom, size_t size, size_t align, uint64_t *free_list)
{
	struct pcbatch_priv_chunk *chunk = dom->chunks;
	size_t at;

	if (free_list != NULL && *free_list != 0) {
		uint64_t *shared = (uint64_t *)(uintptr_t)*free_list;

		*free_list = *shared;
		*shared = 0;
		return (char *)shared + PCBATCH_PRIV_REGION;
	}
	at = chunk == NULL ? 0 : (chunk->used + align - 1) & ~(align - 1);
	if (chunk == NULL || at + size > PCBATCH_PRIV_REGION) {
		chunk = pcbatch_priv_chunk_new(dom);
		if (chunk == NULL)
			return NULL;
		at = chunk->used;
	}
	chunk->used = at + size;
	return (char *)chunk + PCBATCH_PRIV_REGION + at;
}

/* The lock is held. Only words that are not zero are written, so that an untouched page stays so. */
PCBATCH_INLINE void pcbatch_priv_percpu_free(struct pcbatch_domain *dom, char *base, size_t size, uint64_t *free_list)
{
	uint64_t *shared = (uint64_t *)(void *)pcbatch_priv_shared(base);
	uint64_t *word = shared;
	uint32_t c;
	size_t i;

	for (c = 0; c <= dom->lines; c++, word += PCBATCH_PRIV_REGION / sizeof(*word))
		for (i = 0; i < size / sizeof(*word); i++)
			if (word[i] != 0)
				word[i] = 0;
	*shared = *free_list;
	*free_list = (uint64_t)(uintptr_t)shared;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_MEMORY_H */
