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

/*
 * One CPU's slots. A slot's hit count stands 64 bytes behind it, and behind the gate
 * how often a slot was given to another owner. The byte line is under the same gate
 * and the same count; its own are not used.
 */
struct pcbatch_priv_stock_block {
	struct pcbatch_priv_line page;
	uint64_t installs;
	uint64_t page_hits[PCBATCH_STOCK_SLOTS];
	struct pcbatch_priv_line obj;
	uint64_t obj_reserved;
	uint64_t obj_hits[PCBATCH_STOCK_SLOTS];
	uint64_t counts[16];
	struct pcbatch_priv_stats_block *changed; /* stats blocks of this CPU that changed since the last flush */
	uint64_t reserved[7];
};

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_priv_line) == 64, "seven slots and the gate fill a line");
PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_priv_stock_block, installs) == 64, "the contract counts at +64");
PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_priv_stock_block, obj_reserved) ==
			      offsetof(struct pcbatch_priv_stock_block, obj) + 64,
		      "the contract counts at +64");

/*
 * A piece of per-CPU memory: a region that all CPUs share and one for each line. Its
 * header opens the shared region, which is aligned to the region size, so that the
 * chunk, and the domain, are found from any address in it.
 */
struct pcbatch_priv_chunk {
	struct pcbatch_domain *dom;
	struct pcbatch_priv_chunk *next;
	size_t used; /* bytes of each region, this header's 64 included */
};

#define PCBATCH_PRIV_REGION ((size_t)1 << PCBATCH_REGION_SHIFT)

struct pcbatch_domain {
	/* Read on hits, written by init (and the batch setters) only. */
	intptr_t rseq_off;
	uint32_t rseq_bound; /* lines << PCBATCH_REGION_SHIFT; 0: no section may commit */
	uint32_t lines;      /* CPUs, or lines of the generic backend */
	uint64_t counter_batch PCBATCH_ALIGNED(8);
	int64_t counter_mask; /* pcbatch_priv_counter_mask of it */
	char *stock_base;      /* CPU 0's pcbatch_priv_stock_block */
	uint64_t stat_threshold PCBATCH_ALIGNED(8);
	uint32_t backend;
	uint32_t magic;
	uint64_t reserved;

	/* Read on slow paths. */
	struct pcbatch_domain_attr attr; /* with the defaults filled in */
	uint64_t stock_marks PCBATCH_ALIGNED(8); /* batch and watermarks, which move at run time, in one word */

	/* Written on slow paths. */
	uint64_t lock PCBATCH_ALIGNED(PCBATCH_CACHE_LINE); /* creation and destruction: the holder's pid */
	uint64_t flush_lock;                               /* one flusher */
	struct pcbatch_priv_stats_block *flush_taken;      /* a list it took from a CPU, linked by next: what it has still to look at */
	struct pcbatch_priv_stats_block *flush_hand;       /* the block it is at */
	struct pcbatch_priv_stats_block *flush_work;       /* blocks it disarmed, linked by work: what it has still to read */
	uint64_t pid PCBATCH_ALIGNED(8);                    /* of the process whose gates these are */
	uint64_t fork_claim;
	uint64_t install_gate; /* low 16 bits: who wants no new slots; above: an epoch */
	struct pcbatch_priv_chunk *chunks;
	uint64_t *process; /* debug builds: see process.h */
	uint64_t free_cells PCBATCH_ALIGNED(8); /* address of a cell's shared part; its first word links on */
	uint64_t free_blocks;
	uint64_t counters;      /* alive */
	uint64_t owners;        /* alive */
	uint64_t owner_ids;     /* ids ever given out */
	uint64_t free_owner;    /* id of a free owner; its refs field links on */
	void *dead;             /* owners whose last reference is gone */
	uint64_t last_flush_ns PCBATCH_ALIGNED(8); /* of the rate-limited flushes */
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
PCBATCH_ALWAYS_INLINE int64_t pcbatch_priv_counter_mask(uint64_t batch)
{
	return -(int64_t)pcbatch_priv_counter_step(batch);
}

/* CPU c's part of per-CPU memory at `base` (CPU 0's). */
PCBATCH_ALWAYS_INLINE char *pcbatch_priv_part(const char *base, uint32_t c)
{
	return (char *)(uintptr_t)base + ((size_t)c << PCBATCH_REGION_SHIFT);
}

/* The part that all CPUs share; before the others, so that finding it takes no look at the domain. */
PCBATCH_ALWAYS_INLINE char *pcbatch_priv_shared(const char *base)
{
	return (char *)(uintptr_t)base - PCBATCH_PRIV_REGION;
}

PCBATCH_INLINE struct pcbatch_priv_cell *pcbatch_priv_cell_at(const char *base, uint32_t c)
{
	return (struct pcbatch_priv_cell *)(void *)pcbatch_priv_part(base, c);
}

PCBATCH_INLINE struct pcbatch_priv_stock_block *pcbatch_priv_stock(const struct pcbatch_domain *dom, uint32_t c)
{
	return (struct pcbatch_priv_stock_block *)(void *)pcbatch_priv_part(dom->stock_base, c);
}

/* Batch, high and low mark of one moment: read one by one, a change in between could put low above high. */
struct pcbatch_priv_marks {
	uint32_t batch, high, low;
};

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_marks_pack(uint32_t batch, uint32_t high, uint32_t low)
{
	return (uint64_t)low << 32 | (uint64_t)high << 16 | batch;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_marks pcbatch_priv_marks_now(const struct pcbatch_domain *dom)
{
	uint64_t word = pcbatch_priv_load(&dom->stock_marks);
	struct pcbatch_priv_marks marks;

	marks.batch = (uint32_t)word & 0xffff;
	marks.high = (uint32_t)(word >> 16) & 0xffff;
	marks.low = (uint32_t)(word >> 32);
	return marks;
}

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

/* The pages that bytes need, a started one included. */
PCBATCH_INLINE uint64_t pcbatch_priv_pages_for(const struct pcbatch_domain *dom, uint64_t bytes)
{
	return (bytes + dom->attr.page_size - 1) / dom->attr.page_size;
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

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_DOMAIN_H */
