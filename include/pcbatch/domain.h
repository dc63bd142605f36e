/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/domain.h - the caller-owned object that everything hangs from: backend,
 * per-CPU memory, allocator callbacks, owner table, tunables.
 *
 * No mutable state belongs to a header, since each unit or shared object would get
 * its own copy. A domain is used by any number of units that agree on
 * PCBATCH_REGION_SHIFT and PCBATCH_CACHE_LINE.
 */
#ifndef PCBATCH_DOMAIN_H
#define PCBATCH_DOMAIN_H

#include <sched.h>
#include <string.h>

#include "percpu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_STOCK_SLOTS 7       /* owners a CPU caches: seven words and the gate fill a line */
#define PCBATCH_STOCK_BATCH_MAX 4096 /* pages */
#define PCBATCH_STOCK_HIGH_MAX 16383 /* pages; a slot's field has 15 bits, and a refill comes on top before it is tested */
#define PCBATCH_STAT_ITEMS_MAX 4000
#define PCBATCH_PRIV_SLABS 26
#define PCBATCH_PRIV_SLAB_FIRST 64

enum pcbatch_backend {
	PCBATCH_BACKEND_AUTO = 0,
	PCBATCH_BACKEND_RSEQ = 1,
	PCBATCH_BACKEND_GENERIC = 2
};

/* What a domain is made from; zero means the default for every field. */
struct pcbatch_domain_attr {
	enum pcbatch_backend backend;  /* AUTO: $PCBATCH_BACKEND (rseq, generic), else what works */
	uint32_t cpus;                 /* CPUs with slots, 1 to PCBATCH_CPUS_MAX; 0: every possible one */
	int (*current_cpu)(void *ctx); /* the caller's own CPU number (a DPDK lcore); forces generic */
	void *cpu_ctx;
	/* Memory, zeroed, aligned to a power of two; both or neither. 0: the C library's. */
	void *(*zalloc)(void *ctx, size_t size, size_t align);
	void (*free)(void *ctx, void *ptr, size_t size, size_t align);
	void *alloc_ctx;
	uint32_t stock_batch;   /* pages a miss buys, 1 to 4096; 0: 64 */
	uint32_t stock_high;    /* pages a slot may hold, batch to 16383; 0: 2 x batch */
	uint32_t stock_low;     /* pages a slot is trimmed to, 0 to high; 0: batch */
	uint32_t counter_batch; /* units a CPU may owe a counter, 1 to 2^30; 0: max(1024, 4 x CPUs) */
	uint32_t page_size;     /* bytes in a page for byte charges, power of two, 512 to 2^21; 0: 4096 */
	uint32_t obj_high;      /* bytes a byte slot may hold, page_size to 2^29; 0: 16 pages */
	uint32_t obj_low;       /* bytes it is trimmed to, at most high - page_size; 0: 8 pages */
	uint32_t stat_items;    /* statistics items, 1 to 4000; 0: 1 */
	uint32_t stock_item;    /* the item batched in the slots, 0 to stat_items - 1 */
	uint32_t stat_batch;    /* updates a CPU may owe needs_flush, 1 to 2^20; 0: stock_batch */
	void *thread_area;      /* this thread's registered pcbatch_rseq_area; NULL: libc's */
};

enum pcbatch_priv_count {
	PCBATCH_PRIV_COUNT_SLOW_HIT, /* hits not on the owner's first probe, and generic ones */
	PCBATCH_PRIV_COUNT_MISS,
	PCBATCH_PRIV_COUNT_EVICTION,
	PCBATCH_PRIV_COUNT_DIRECT,
	PCBATCH_PRIV_COUNT_TRIM,
	PCBATCH_PRIV_COUNT_ABORT,
	PCBATCH_PRIV_COUNT_DRAIN,
	PCBATCH_PRIV_COUNT_DRAINED_PAGES,
	PCBATCH_PRIV_COUNTS
};

struct pcbatch_priv_line {
	uint64_t gate; /* drainers at work; 0 is open */
	uint64_t slot[PCBATCH_STOCK_SLOTS];
};

/* One CPU's slots. A slot's hit count stands 64 bytes behind it. */
struct pcbatch_priv_stock_block {
	struct pcbatch_priv_line page;
	uint64_t page_hits[8];
	struct pcbatch_priv_line obj;
	uint64_t obj_hits[8];
	uint64_t counts[16];
	struct pcbatch_priv_stats_block *changed; /* stats blocks of this CPU that changed since the last flush */
	uint64_t reserved[7];
};

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_priv_line) == 64, "seven slots and the gate fill a line");
PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_priv_stock_block, page_hits) == 64, "slot of percpu.h counts hits at +64");
PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_priv_stock_block, obj_hits) ==
			      offsetof(struct pcbatch_priv_stock_block, obj) + 64,
		      "slot of percpu.h counts hits at +64");

/* A piece of per-CPU memory: `lines` regions and one that all CPUs share. */
struct pcbatch_priv_chunk {
	struct pcbatch_priv_chunk *next;
	char *base;  /* CPU 0's region; the shared one lies before it */
	size_t used; /* bytes of each region */
};

struct pcbatch_domain {
	/* Read on hits, written by init (and the batch setters) only. */
	intptr_t rseq_off;
	uint32_t rseq_bound; /* lines << PCBATCH_REGION_SHIFT; 0: no section may commit */
	uint32_t lines;      /* CPUs, or lines of the generic backend */
	uint64_t counter_batch;
	uint64_t counter_mask; /* pcbatch_priv_counter_mask of it */
	char *stock_base;      /* CPU 0's pcbatch_priv_stock_block */
	uint64_t stat_threshold;
	uint32_t backend;
	uint32_t magic;
	uint64_t reserved;

	/* Read on slow paths. */
	struct pcbatch_domain_attr attr; /* with the defaults filled in */
	uint64_t stock_batch;            /* these three move at run time */
	uint64_t stock_high;
	uint64_t stock_low;

	/* Written on slow paths. */
	uint64_t lock PCBATCH_ALIGNED(PCBATCH_CACHE_LINE); /* creation and destruction: the holder's pid */
	uint64_t flush_lock;                               /* one flusher */
	uint64_t pid;                                      /* of the process whose gates these are */
	uint64_t fork_claim;
	uint64_t install_gate; /* low 16 bits: who wants no new slots; above: an epoch */
	struct pcbatch_priv_chunk *chunks;
	uint64_t free_cells;  /* address of a cell's shared part; its first word links on */
	uint64_t free_blocks;
	uint64_t counters;      /* alive */
	uint64_t owners;        /* alive */
	uint64_t owner_ids;     /* ids ever given out */
	uint64_t free_owner;    /* id of a free owner; its refs field links on */
	void *dead;             /* owners whose last reference is gone */
	uint64_t last_flush_ns; /* of the rate-limited flushes */
	uint64_t flush_visits;  /* blocks that flushes looked at */
	void *slab[PCBATCH_PRIV_SLABS];
	size_t slab_item_size;
} PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

PCBATCH_STATIC_ASSERT(sizeof(void *) != 8 || offsetof(struct pcbatch_domain, attr) == 64, "what a hit reads is one line");

#define PCBATCH_PRIV_DOMAIN_MAGIC 0x70636264u

/* The largest power of two that is at most half the batch (but 1): how far a total goes between two looks at what it owes. */
PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_counter_step(uint64_t batch)
{
	return batch < 4 ? 1 : UINT64_C(1) << (62 - __builtin_clzll(batch));
}

/* The bits of a total that change only when it leaves its step. */
PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_counter_mask(uint64_t batch)
{
	return ~(pcbatch_priv_counter_step(batch) - 1);
}

/* ------------------------------------------------------------------ memory */

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

/* CPU c's part of per-CPU memory at `base` (CPU 0's). */
PCBATCH_ALWAYS_INLINE char *pcbatch_priv_part(const char *base, uint32_t c)
{
	return (char *)(uintptr_t)base + ((size_t)c << PCBATCH_REGION_SHIFT);
}

/* The part that all CPUs share; before the others, so that finding it takes no look at the domain. */
PCBATCH_ALWAYS_INLINE char *pcbatch_priv_shared(const char *base)
{
	return (char *)(uintptr_t)base - ((size_t)1 << PCBATCH_REGION_SHIFT);
}

PCBATCH_INLINE struct pcbatch_priv_cell *pcbatch_priv_cell_at(const char *base, uint32_t c)
{
	return (struct pcbatch_priv_cell *)(void *)pcbatch_priv_part(base, c);
}

PCBATCH_INLINE struct pcbatch_priv_stock_block *pcbatch_priv_stock(const struct pcbatch_domain *dom, uint32_t c)
{
	return (struct pcbatch_priv_stock_block *)(void *)pcbatch_priv_part(dom->stock_base, c);
}

PCBATCH_INLINE struct pcbatch_priv_chunk *pcbatch_priv_chunk_new(struct pcbatch_domain *dom)
{
	struct pcbatch_priv_chunk *chunk =
		(struct pcbatch_priv_chunk *)pcbatch_priv_zalloc(dom, sizeof(*chunk), sizeof(void *));

	if (chunk == NULL)
		return NULL;
	chunk->base = (char *)pcbatch_priv_zalloc(dom, pcbatch_priv_chunk_bytes(dom), 4096);
	if (chunk->base == NULL) {
		pcbatch_priv_free(dom, chunk, sizeof(*chunk), sizeof(void *));
		return NULL;
	}
	chunk->base += (size_t)1 << PCBATCH_REGION_SHIFT;
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
		return (char *)shared + ((size_t)1 << PCBATCH_REGION_SHIFT);
	}
	at = chunk == NULL ? 0 : (chunk->used + align - 1) & ~(align - 1);
	if (chunk == NULL || at + size > ((size_t)1 << PCBATCH_REGION_SHIFT)) {
		chunk = pcbatch_priv_chunk_new(dom);
		if (chunk == NULL)
			return NULL;
		at = 0;
	}
	chunk->used = at + size;
	return chunk->base + at;
}

/* The lock is held. Only words that are not zero are written, so that an untouched page stays so. */
PCBATCH_INLINE void pcbatch_priv_percpu_free(struct pcbatch_domain *dom, char *base, size_t size, uint64_t *free_list)
{
	uint64_t *shared = (uint64_t *)(void *)pcbatch_priv_shared(base);
	uint64_t *word = shared;
	uint32_t c;
	size_t i;

	for (c = 0; c <= dom->lines; c++, word += ((size_t)1 << PCBATCH_REGION_SHIFT) / sizeof(*word))
		for (i = 0; i < size / sizeof(*word); i++)
			if (word[i] != 0)
				word[i] = 0;
	*shared = *free_list;
	*free_list = (uint64_t)(uintptr_t)shared;
}

/* ------------------------------------------------------------- fork, locks */

PCBATCH_INLINE void pcbatch_priv_reopen_gates(struct pcbatch_domain *dom)
{
	uint32_t c;

	for (c = 0; c < dom->lines; c++) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, c);

		if (pcbatch_priv_load(&stock->page.gate) != 0)
			pcbatch_priv_store(&stock->page.gate, 0);
		if (pcbatch_priv_load(&stock->obj.gate) != 0)
			pcbatch_priv_store(&stock->obj.gate, 0);
	}
	pcbatch_priv_store(&dom->install_gate, (pcbatch_priv_load(&dom->install_gate) | 0xffff) + 1);
}

/*
 * A child forked while a drainer had gates closed inherits them closed, and nobody
 * would reopen them. Called by whoever finds a gate closed or is about to close
 * one. One thread reopens; a signal handler that interrupts that very thread does
 * it in its stead (nothing else can have closed a gate before pid is set).
 */
PCBATCH_COLD void pcbatch_priv_fork_check(struct pcbatch_domain *dom)
{
	uint64_t pid = (uint64_t)getpid();
	uint64_t self = pid << 32 | (uint32_t)(pcbatch_priv_thread_pointer() >> 4);
	uint64_t claim;

	while (pcbatch_priv_load_acquire(&dom->pid) != pid) {
		claim = pcbatch_priv_load(&dom->fork_claim);
		if (claim >> 32 == pid && claim != self) {
			(void)sched_yield();
			continue;
		}
		if (claim != self && !pcbatch_priv_cas(&dom->fork_claim, claim, self))
			continue;
		pcbatch_priv_reopen_gates(dom);
		pcbatch_priv_fence();
		pcbatch_priv_store_release(&dom->pid, pid);
	}
}

/* A lock left by a thread that fork did not copy is taken over. Not for signal handlers. */
PCBATCH_INLINE bool pcbatch_priv_trylock(uint64_t *lock)
{
	uint64_t pid = (uint64_t)getpid(), holder = pcbatch_priv_load(lock);

	return holder != pid && pcbatch_priv_cas(lock, holder, pid);
}

PCBATCH_INLINE void pcbatch_priv_lock(uint64_t *lock)
{
	while (!pcbatch_priv_trylock(lock))
		(void)sched_yield();
}

PCBATCH_INLINE void pcbatch_priv_unlock(uint64_t *lock)
{
	pcbatch_priv_store_release(lock, 0);
}

/* ---------------------------------------------------------------- this CPU */

/*
 * The index of the lines that this thread should use now; `lines` or more: none,
 * go to the global counter.
 */
PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_cpu(const struct pcbatch_domain *dom)
{
	if (dom->backend == PCBATCH_BACKEND_RSEQ)
		return PCBATCH_PRIV_HAVE_SECTIONS ? (uint32_t)pcbatch_priv_rseq_cpu(dom->rseq_off) : UINT32_MAX;
	if (dom->attr.current_cpu != NULL)
		return (uint32_t)dom->attr.current_cpu(dom->attr.cpu_ctx);
	return pcbatch_priv_generic_line(dom->lines);
}

PCBATCH_INLINE bool pcbatch_priv_is_rseq(const struct pcbatch_domain *dom)
{
	return dom->backend == PCBATCH_BACKEND_RSEQ;
}

/* Adds to a count of the slow paths, without a shared line where it can. */
PCBATCH_INLINE void pcbatch_priv_count(struct pcbatch_domain *dom, enum pcbatch_priv_count which, uint64_t n)
{
	char *base = dom->stock_base + offsetof(struct pcbatch_priv_stock_block, counts) + sizeof(uint64_t) * (size_t)which;
	uint64_t crossed;
	uint32_t c;

	if (dom->rseq_bound != 0 &&
	    pcbatch_priv_section_add(dom->rseq_off, &dom->rseq_bound, &base, (int64_t)n, &crossed) != NULL)
		return;
	/* An rseq CPU's words take plain stores, so others use the shared part. */
	c = pcbatch_priv_is_rseq(dom) ? UINT32_MAX : pcbatch_priv_cpu(dom);
	base = c < dom->lines ? pcbatch_priv_part(base, c) : pcbatch_priv_shared(base);
	(void)pcbatch_priv_fetch_add((uint64_t *)(void *)base, n);
}

PCBATCH_INLINE uint64_t pcbatch_priv_count_sum(const struct pcbatch_domain *dom, enum pcbatch_priv_count which)
{
	const struct pcbatch_priv_stock_block *shared =
		(const struct pcbatch_priv_stock_block *)(const void *)pcbatch_priv_shared(dom->stock_base);
	uint64_t sum = pcbatch_priv_load(&shared->counts[which]);
	uint32_t c;

	for (c = 0; c < dom->lines; c++)
		sum += pcbatch_priv_load(&pcbatch_priv_stock(dom, c)->counts[which]);
	return sum;
}

/* -------------------------------------------------------------------- init */

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
	return 64 + sizeof(struct pcbatch_priv_cell) * a->stat_items <= ((size_t)1 << PCBATCH_REGION_SHIFT) &&
	       sizeof(struct pcbatch_priv_stock_block) <= ((size_t)1 << PCBATCH_REGION_SHIFT);
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
	dom->stock_batch = a.stock_batch;
	dom->stock_high = a.stock_high;
	dom->stock_low = a.stock_low;
	dom->pid = (uint64_t)getpid();
	dom->stock_base = pcbatch_priv_percpu_alloc(dom, sizeof(struct pcbatch_priv_stock_block), 64, NULL);
	if (dom->stock_base == NULL)
		return -ENOMEM;
	dom->magic = PCBATCH_PRIV_DOMAIN_MAGIC;
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

	for (i = 0; i < PCBATCH_PRIV_SLABS; i++)
		pcbatch_priv_free(dom, dom->slab[i], ((size_t)PCBATCH_PRIV_SLAB_FIRST << i) * dom->slab_item_size,
				  PCBATCH_CACHE_LINE);
	while (dom->chunks != NULL) {
		struct pcbatch_priv_chunk *chunk = dom->chunks;

		dom->chunks = chunk->next;
		pcbatch_priv_free(dom, pcbatch_priv_shared(chunk->base), pcbatch_priv_chunk_bytes(dom), 4096);
		pcbatch_priv_free(dom, chunk, sizeof(*chunk), sizeof(void *));
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

#endif /* PCBATCH_DOMAIN_H */
