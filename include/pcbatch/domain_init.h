/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch/domain_init.h - making a domain: attributes, choice of the backend, and what can be asked of it. */
#ifndef PCBATCH_DOMAIN_INIT_H
#define PCBATCH_DOMAIN_INIT_H

#include <stdlib.h>
#include <string.h>

#include "lock.h"
#include "process.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sets every field to "the default".
 *
 * Returns: 0; -EINVAL attr is NULL.
 */
PCBATCH_INLINE int pcbatch_domain_attr_init(struct pcbatch_domain_attr *attr)
{
	if (attr == NULL)
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	return 0;
}

PCBATCH_INLINE uint32_t pcbatch_priv_default(uint32_t value, uint32_t fallback)
{
	return value != 0 ? value : fallback;
}

PCBATCH_INLINE void pcbatch_priv_attr_defaults(struct pcbatch_domain_attr *a, uint32_t cpus)
{
	if (a->zalloc == NULL) {
		a->zalloc = pcbatch_priv_libc_zalloc;
		a->free = pcbatch_priv_libc_free;
	}
	a->cpus = pcbatch_priv_default(a->cpus, cpus);
	a->stock_batch = pcbatch_priv_default(a->stock_batch, 64);
	if (a->stock_high == 0)
		a->stock_high = 2 * a->stock_batch;
	if (a->stock_low == 0)
		a->stock_low = a->stock_batch < a->stock_high ? a->stock_batch : a->stock_high;
	a->counter_batch = pcbatch_priv_default(a->counter_batch, a->cpus > 256 ? 4 * a->cpus : 1024);
	a->page_size = pcbatch_priv_default(a->page_size, 4096);
	if (a->obj_low == 0)
		a->obj_low = a->obj_high == 0 ? 8 * a->page_size : (a->obj_high - a->page_size) / 2;
	a->obj_high = pcbatch_priv_default(a->obj_high, 16 * a->page_size);
	a->stat_items = pcbatch_priv_default(a->stat_items, 1);
	a->stat_batch = pcbatch_priv_default(a->stat_batch, a->stock_batch);
}

PCBATCH_INLINE bool pcbatch_priv_stock_batch_valid(uint32_t batch, uint32_t high, uint32_t low)
{
	return batch >= 1 && batch <= PCBATCH_STOCK_BATCH_MAX && high >= batch && high <= PCBATCH_STOCK_HIGH_MAX && low <= high;
}

PCBATCH_INLINE bool pcbatch_priv_attr_valid(const struct pcbatch_domain_attr *a)
{
	if (a->cpus < 1 || a->cpus > PCBATCH_CPUS_MAX || a->backend > PCBATCH_BACKEND_GENERIC)
		return false;
	if (!pcbatch_priv_stock_batch_valid(a->stock_batch, a->stock_high, a->stock_low))
		return false;
	if (a->counter_batch > (1u << 30))
		return false;
	if (a->page_size < 512 || a->page_size > (1u << 21) || (a->page_size & (a->page_size - 1)) != 0)
		return false;
	if (a->obj_high < a->page_size || a->obj_high > (1u << 29) || a->obj_low > a->obj_high - a->page_size)
		return false;
	if (a->stat_items > PCBATCH_STAT_ITEMS_MAX || a->stock_item >= a->stat_items || a->stat_batch > (1u << 20))
		return false;
	return 128 + sizeof(struct pcbatch_priv_cell) * a->stat_items <= PCBATCH_PRIV_REGION;
}

/* What the attribute or the environment asks for; -EINVAL: neither rseq nor generic. */
PCBATCH_INLINE int pcbatch_priv_backend_wanted(const struct pcbatch_domain_attr *a, enum pcbatch_backend *wanted)
{
	const char *env = a->backend == PCBATCH_BACKEND_AUTO ? getenv("PCBATCH_BACKEND") : NULL;

	*wanted = a->backend;
	if (env == NULL || env[0] == '\0')
		return 0;
	if (strcmp(env, "rseq") == 0)
		*wanted = PCBATCH_BACKEND_RSEQ;
	else if (strcmp(env, "generic") == 0)
		*wanted = PCBATCH_BACKEND_GENERIC;
	else
		return -EINVAL;
	return 0;
}

/* 0 when sections can be used: the area is registered, and the fence that drains need is there. */
PCBATCH_INLINE int pcbatch_priv_rseq_usable(const struct pcbatch_domain_attr *a, intptr_t *off)
{
	if (!PCBATCH_PRIV_HAVE_SECTIONS)
		return -ENOTSUP;
	if (a->thread_area != NULL)
		*off = (intptr_t)((uintptr_t)a->thread_area - pcbatch_priv_thread_pointer());
	else if (!pcbatch_priv_rseq_libc(off))
		return -ENOTSUP;
	if (pcbatch_priv_rseq_cpu(*off) < 0 || pcbatch_priv_fence_register() != 0)
		return -ENOTSUP;
	return 0;
}

PCBATCH_INLINE int pcbatch_priv_backend_choose(struct pcbatch_domain *dom)
{
	struct pcbatch_domain_attr *a = &dom->attr;
	enum pcbatch_backend wanted;
	intptr_t off = 0;
	int err = pcbatch_priv_backend_wanted(a, &wanted);

	if (err != 0)
		return err;
	if (a->current_cpu != NULL) {
		if (a->backend == PCBATCH_BACKEND_RSEQ)
			return -EINVAL;
		wanted = PCBATCH_BACKEND_GENERIC;
	}
	if (wanted != PCBATCH_BACKEND_GENERIC)
		err = pcbatch_priv_rseq_usable(a, &off);
	if (wanted == PCBATCH_BACKEND_RSEQ && err != 0)
		return err;
	dom->backend = wanted == PCBATCH_BACKEND_GENERIC || err != 0 ? PCBATCH_BACKEND_GENERIC : PCBATCH_BACKEND_RSEQ;
	/*
	 * glibc's area is part of every thread's control block, registered or not, so a
	 * section that can't pass its bound may be tried there; elsewhere rseq_off == 0
	 * tells the hit path not to.
	 */
	(void)pcbatch_priv_rseq_libc(&dom->rseq_off);
	if (dom->backend == PCBATCH_BACKEND_RSEQ)
		dom->rseq_off = off;
	return 0;
}

/* At least four lines a CPU, a power of two, so that threads seldom meet. A caller's CPU numbers are taken as they are. */
PCBATCH_INLINE void pcbatch_priv_size_lines(struct pcbatch_domain *dom)
{
	uint32_t lines = 1;

	dom->lines = dom->attr.cpus;
	if (dom->backend == PCBATCH_BACKEND_RSEQ) {
		dom->rseq_bound = dom->lines << PCBATCH_REGION_SHIFT;
		return;
	}
	dom->rseq_bound = 0;
	if (dom->attr.current_cpu != NULL)
		return;
	while (lines < 4 * dom->attr.cpus)
		lines *= 2;
	dom->lines = lines;
}

/*
 * Makes a domain ready for use.
 *
 * dom: storage of the caller's, aligned as the type says; contents don't matter.
 * attr: see struct pcbatch_domain_attr for units and ranges; NULL: all defaults.
 * Returns: 0; -EINVAL dom is NULL or misaligned, or a value of attr or of
 *	$PCBATCH_BACKEND is out of its range; -ENOTSUP the rseq backend was forced
 *	and does not work here; -ENOMEM. On error nothing is held.
 * Threading: before the domain is shared. Progress: reads sysfs, allocates.
 */
PCBATCH_INLINE int pcbatch_domain_init(struct pcbatch_domain *dom, const struct pcbatch_domain_attr *attr)
{
	struct pcbatch_domain_attr a;
	int err;

	if (dom == NULL || ((uintptr_t)dom & (PCBATCH_CACHE_LINE - 1)) != 0)
		return -EINVAL;
	(void)pcbatch_domain_attr_init(&a);
	if (attr != NULL)
		a = *attr;
	if ((a.zalloc == NULL) != (a.free == NULL))
		return -EINVAL;
	pcbatch_priv_attr_defaults(&a, pcbatch_cpu_possible());
	if (!pcbatch_priv_attr_valid(&a))
		return -EINVAL;
	memset(dom, 0, sizeof(*dom));
	dom->attr = a;
	err = pcbatch_priv_backend_choose(dom);
	if (err != 0)
		return err;
	pcbatch_priv_size_lines(dom);
	dom->counter_batch = a.counter_batch;
	dom->counter_mask = pcbatch_priv_counter_mask(a.counter_batch);
	dom->stat_threshold = a.stat_batch;
	dom->stock_marks = pcbatch_priv_marks_pack(a.stock_batch, a.stock_high, a.stock_low);
	dom->pid = (uint64_t)getpid();
	dom->stock_base = pcbatch_priv_percpu_alloc(dom, sizeof(struct pcbatch_priv_stock_block), 64, NULL);
	if (dom->stock_base == NULL)
		return -ENOMEM;
	dom->magic = PCBATCH_PRIV_DOMAIN_MAGIC;
	pcbatch_priv_process_mark(dom);
	return 0;
}

PCBATCH_INLINE bool pcbatch_priv_domain_valid(const struct pcbatch_domain *dom)
{
	bool valid = dom != NULL && dom->magic == PCBATCH_PRIV_DOMAIN_MAGIC;

	PCBATCH_PRIV_ASSERT(valid, "domain is NULL, not initialised or destroyed");
	return valid;
}

/* Frees all memory; whoever calls it has seen that nothing is alive any more. */
PCBATCH_INLINE void pcbatch_priv_domain_release(struct pcbatch_domain *dom)
{
	uint32_t i;

	pcbatch_priv_process_forget(dom);
	for (i = 0; i < PCBATCH_PRIV_SLABS; i++)
		pcbatch_priv_free(dom, dom->slab[i], ((size_t)PCBATCH_PRIV_SLAB_FIRST << i) * dom->slab_item_size,
				  PCBATCH_CACHE_LINE);
	while (dom->chunks != NULL) {
		struct pcbatch_priv_chunk *chunk = dom->chunks;

		dom->chunks = chunk->next;
		pcbatch_priv_free(dom, chunk, pcbatch_priv_chunk_bytes(dom), PCBATCH_PRIV_REGION);
	}
	dom->magic = 0;
}

/* The backend in use: PCBATCH_BACKEND_RSEQ or _GENERIC; AUTO when dom is not a domain. */
PCBATCH_INLINE enum pcbatch_backend pcbatch_domain_backend(const struct pcbatch_domain *dom)
{
	return pcbatch_priv_domain_valid(dom) ? (enum pcbatch_backend)dom->backend : PCBATCH_BACKEND_AUTO;
}

/* "rseq", "generic" or "auto". */
PCBATCH_INLINE const char *pcbatch_backend_name(enum pcbatch_backend backend)
{
	return backend == PCBATCH_BACKEND_RSEQ ? "rseq" : backend == PCBATCH_BACKEND_GENERIC ? "generic" : "auto";
}

/* What every bound counts: CPUs (rseq, or the caller's numbers) or lines (generic). 0 when dom is not a domain. */
PCBATCH_INLINE uint32_t pcbatch_domain_cpus(const struct pcbatch_domain *dom)
{
	return pcbatch_priv_domain_valid(dom) ? dom->lines : 0;
}

/*
 * Makes this thread's rseq area forget the section it was last in.
 *
 * The kernel looks at that section's descriptor at the next preemption or signal
 * after it, so code that holds sections must not be unmapped before. Every thread
 * that used the domain from a shared object calls this before the object is
 * closed (linking it with -z nodelete is the other way).
 *
 * Returns: 0; -EINVAL dom is not a domain.
 * Threading: the calling thread; async-signal-safe. Progress: wait-free.
 */
PCBATCH_INLINE int pcbatch_thread_quiesce(struct pcbatch_domain *dom)
{
	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	if (dom->rseq_off != 0 && PCBATCH_PRIV_HAVE_SECTIONS)
		*(volatile uint64_t *)&pcbatch_priv_rseq_area(dom->rseq_off)->rseq_cs = 0;
	if (pcbatch_priv_hit_off(0) != 0 && PCBATCH_PRIV_HAVE_SECTIONS)
		*(volatile uint64_t *)&pcbatch_priv_rseq_area(pcbatch_priv_hit_off(0))->rseq_cs = 0;
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_DOMAIN_INIT_H */
