/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/arch/none.h - the commit contract where this unit has no sections:
 * every operation fails, so that an rseq domain of another unit is used through
 * its global counters (a compare-and-swap would lose updates against its plain stores).
 */
#ifndef PCBATCH_ARCH_NONE_H
#define PCBATCH_ARCH_NONE_H

#ifndef PCBATCH_PRIV_ARCH_INSIDE
#error "include <pcbatch/percpu.h> instead"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_PRIV_HAVE_SECTIONS 0

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_cell *pcbatch_priv_section_add(intptr_t off, const uint32_t *bound,
									   char *const *base, int64_t delta, uint64_t *crossed)
{
	(void)off, (void)bound, (void)base, (void)delta;
	*crossed = UINT64_MAX;
	return NULL;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_section_slot(intptr_t off, const uint32_t *bound, char *const *line,
						     const uint64_t *slot_off, uint64_t check, uint64_t delta)
{
	(void)off, (void)bound, (void)line, (void)slot_off, (void)check, (void)delta;
	return false;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_section_obj(intptr_t off, const uint32_t *bound, char *const *line,
						    const uint64_t *slot_off, uint64_t check, uint64_t delta)
{
	(void)off, (void)bound, (void)line, (void)slot_off, (void)check, (void)delta;
	return false;
}

PCBATCH_INLINE bool pcbatch_priv_section_cmp_store(intptr_t off, uint32_t cpu, const uint64_t *gate, const uint64_t *chk,
						   uint64_t chkval, uint64_t *word, uint64_t old, uint64_t desired)
{
	(void)off, (void)cpu, (void)gate, (void)chk, (void)chkval, (void)word, (void)old, (void)desired;
	return false;
}

PCBATCH_INLINE bool pcbatch_priv_section_install(intptr_t off, uint32_t cpu, uint64_t *gate, uint64_t installs,
						 const uint64_t *chk, uint64_t chkval, uint64_t *word, uint64_t old,
						 uint64_t desired)
{
	(void)off, (void)cpu, (void)gate, (void)installs, (void)chk, (void)chkval, (void)word, (void)old, (void)desired;
	return false;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_stats_block *pcbatch_priv_section_leaf(intptr_t off, const uint32_t *bound,
										  char *const *base, uint64_t item_off,
										  int64_t delta)
{
	(void)off, (void)bound, (void)base, (void)item_off, (void)delta;
	return NULL;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_section_level(intptr_t off, struct pcbatch_priv_stats_block *block,
						      uint64_t amount, uint64_t threshold, uint64_t *updates)
{
	(void)off, (void)block, (void)amount, (void)threshold;
	*updates = UINT64_MAX;
	return false;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_ARCH_NONE_H */
