/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/arch/generic.h - the commit contract with atomics, correct everywhere.
 *
 * The same words, on a line chosen by hashing the thread pointer: no system call
 * and no vDSO call. A failed swap means that another thread is on the line, so
 * this call goes on with the next one. Bounds count lines instead of CPUs.
 */
#ifndef PCBATCH_ARCH_GENERIC_H
#define PCBATCH_ARCH_GENERIC_H

#ifndef PCBATCH_PRIV_ARCH_INSIDE
#error "include <pcbatch/percpu.h> instead"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* lines is a power of two. Fibonacci hashing: thread stacks lie a power of two apart. */
PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_generic_line(uint32_t lines)
{
	uint64_t h = (uint64_t)pcbatch_priv_thread_pointer() * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) & (lines - 1);
}

/* add of percpu.h; `line` is where to begin. The last try does not depend on anybody. */
PCBATCH_INLINE struct pcbatch_priv_cell *pcbatch_priv_generic_add(char *base, uint32_t line, uint32_t lines, int64_t delta,
								   uint64_t *crossed)
{
	struct pcbatch_priv_cell *cell = (struct pcbatch_priv_cell *)(base + ((size_t)line << PCBATCH_REGION_SHIFT));
	uint64_t old;
	int i;

	for (i = 0; i < PCBATCH_RETRIES; i++) {
		old = pcbatch_priv_load(&cell->total);
		*crossed = old ^ (old + (uint64_t)delta);
		if (pcbatch_priv_cas(&cell->total, old, old + (uint64_t)delta))
			return cell;
		line = line + 1 == lines ? 0 : line + 1;
		cell = (struct pcbatch_priv_cell *)(base + ((size_t)line << PCBATCH_REGION_SHIFT));
	}
	old = pcbatch_priv_fetch_add(&cell->total, (uint64_t)delta);
	*crossed = old ^ (old + (uint64_t)delta);
	return cell;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_ARCH_GENERIC_H */
