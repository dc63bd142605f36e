/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* A run: the domain, the operations of ops.c, and the end, when nothing may be left. */
#include "world.h"

void fuzz_die(const char *file, int line, const char *text, long long a, long long b)
{
	(void)fprintf(stderr, "%s:%d: %s (%lld, %lld)\n", file, line, text, a, b);
	abort();
}

/* ------------------------------------------------------------------ callbacks */

static void *world_zalloc(void *ctx, size_t size, size_t align)
{
	struct fuzz_world *w = (struct fuzz_world *)ctx;
	void *ptr;

	if (w->fail_in != 0 && --w->fail_in == 0) {
		w->failed_allocation = true;
		return NULL;
	}
	ptr = aligned_alloc(align, (size + align - 1) / align * align);
	if (ptr == NULL)
		return NULL;
	memset(ptr, 0, size);
	w->allocated += size;
	return ptr;
}

static void world_free(void *ctx, void *ptr, size_t size, size_t align)
{
	struct fuzz_world *w = (struct fuzz_world *)ctx;

	(void)align;
	w->freed += size;
	free(ptr);
}

static int world_cpu(void *ctx)
{
	return ((struct fuzz_world *)ctx)->cpu;
}

/* ---------------------------------------------------------------------- a run */

static bool begin(struct fuzz_world *w)
{
	struct pcbatch_domain_attr attr;
	uint64_t kind = fuzz_take(&w->in, 1), counter_batch = fuzz_take(&w->in, 1);
	int i, err;

	(void)pcbatch_domain_attr_init(&attr);
	attr.zalloc = world_zalloc;
	attr.free = world_free;
	attr.alloc_ctx = w;
	attr.stat_items = FUZZ_ITEMS;
	attr.stock_item = FUZZ_ITEM;
	attr.counter_batch = 1 + (uint32_t)counter_batch * 5;
	attr.cpus = FUZZ_CPUS;
	attr.stock_batch = kind >> 2 & 1 ? 1 + (uint32_t)fuzz_take(&w->in, 1) : 0;
	attr.stat_batch = kind >> 3 & 1 ? 1 + (uint32_t)fuzz_take(&w->in, 1) % 8 : 0;
	attr.obj_high = kind >> 4 & 1 ? 4096 + (uint32_t)fuzz_take(&w->in, 2) : 0;
	if ((kind & 1) != 0) {
		attr.current_cpu = world_cpu;
		attr.cpu_ctx = w;
	}
	w->fail_in = kind >> 5 & 1;
	err = pcbatch_domain_init(&w->dom, &attr);
	w->fail_in = 0;
	if (fuzz_no_memory(w, err))
		err = pcbatch_domain_init(&w->dom, &attr);
	FUZZ_EQUAL(err, 0);
	w->sections = pcbatch_domain_backend(&w->dom) == PCBATCH_BACKEND_RSEQ;
	for (i = 0; i < FUZZ_COUNTERS; i++) {
		w->value[i] = i == 0 ? 0 : fuzz_number(&w->in);
		FUZZ_EQUAL(pcbatch_counter_init(&w->counter[i], &w->dom, (int64_t)w->value[i]), 0);
	}
	return true;
}

static void give_back(struct fuzz_group *f)
{
	for (; f->pages != 0; f->pages -= fuzz_at_once(f->pages))
		FUZZ_EQUAL(pcbatch_group_uncharge(f->g, fuzz_at_once(f->pages)), 0);
	for (; f->bytes != 0; f->bytes -= fuzz_at_once(f->bytes))
		FUZZ_EQUAL(pcbatch_group_uncharge_bytes(f->g, fuzz_at_once(f->bytes)), 0);
}

/* Everything back: then nothing may be left anywhere. */
static void end(struct fuzz_world *w)
{
	int i, left = FUZZ_GROUPS;

	fuzz_audit(w, false);
	FUZZ_EQUAL(pcbatch_stock_drain_all(&w->dom), 0);
	fuzz_audit(w, true);
	for (i = 0; i < FUZZ_GROUPS; i++)
		if (w->group[i].g != NULL)
			give_back(&w->group[i]);
	FUZZ_EQUAL(pcbatch_stock_drain_all(&w->dom), 0);
	fuzz_audit(w, true);
	/* Children first, whatever their order. */
	while (left-- > 0)
		for (i = 0; i < FUZZ_GROUPS; i++)
			if (w->group[i].g != NULL && pcbatch_group_destroy(w->group[i].g) == 0)
				w->group[i].g = NULL;
	for (i = 0; i < FUZZ_GROUPS; i++)
		FUZZ_TRUE(w->group[i].g == NULL, i, 0);
	for (i = 0; i < FUZZ_COUNTERS; i++)
		FUZZ_EQUAL(pcbatch_counter_destroy(&w->counter[i]), 0);
	FUZZ_EQUAL(pcbatch_domain_destroy(&w->dom), 0);
	FUZZ_EQUAL(w->allocated, w->freed);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static struct fuzz_world world;

	memset(&world, 0, sizeof(world));
	world.in.at = data;
	world.in.end = data + size;
	if (!begin(&world))
		return;
	while (world.in.at < world.in.end)
		fuzz_step(&world);
	end(&world);
}
