/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations an input is made of; see world.h. */
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

/* ----------------------------------------------------------------- operations */

/* Whether an error is that of the allocation that was to fail; then everything must be as before. */
static bool no_memory(struct fuzz_world *w, int err)
{
	bool failed = w->failed_allocation;

	w->failed_allocation = false;
	if (failed)
		FUZZ_EQUAL(err, -ENOMEM);
	return failed;
}

static int pick(struct fuzz_world *w)
{
	int i = (int)(fuzz_take(&w->in, 1) % FUZZ_GROUPS);

	return w->group[i].g == NULL ? -1 : i;
}

/* After charges that were granted. */
static void raise_peaks(struct fuzz_world *w, int i)
{
	for (; i >= 0; i = w->group[i].parent) {
		uint64_t live = fuzz_live(w, i);

		if (live > w->group[i].peak_min)
			w->group[i].peak_min = live;
	}
}

static void forced_over(struct fuzz_world *w, int i)
{
	for (; i >= 0; i = w->group[i].parent)
		w->group[i].forced = true;
}

/*
 * Once a forced charge has passed a limit, pages that come back may be cached above it, and be given out again
 * from there without another look at the limit: so both answers are right until a limit is set anew.
 */
static bool forced_above(const struct fuzz_world *w, int i)
{
	while (i >= 0 && !w->group[i].forced)
		i = w->group[i].parent;
	return i >= 0;
}

static uint64_t at_once(uint64_t n)
{
	return n < (uint64_t)PCBATCH_PAGES_MAX ? n : (uint64_t)PCBATCH_PAGES_MAX;
}

/* The sum of a path must stay far from wrapping, which forced charges could bring about. */
static bool sensible(const struct fuzz_world *w, int i, uint64_t pages)
{
	while (w->group[i].parent >= 0)
		i = w->group[i].parent;
	return pages <= (uint64_t)PCBATCH_PAGES_MAX && fuzz_live(w, i) <= (uint64_t)PCBATCH_PAGES_MAX;
}

static void op_create(struct fuzz_world *w)
{
	int i = (int)(fuzz_take(&w->in, 1) % FUZZ_GROUPS), parent = pick(w), err;
	struct fuzz_group *f = &w->group[i];
	struct pcbatch_group_attr attr;
	uint64_t max = fuzz_take(&w->in, 1) % 4 == 0 ? fuzz_number(&w->in) : (uint64_t)PCBATCH_PAGES_MAX;
	struct pcbatch_group *g = NULL;

	if (f->g != NULL)
		return;
	(void)pcbatch_group_attr_init(&attr);
	attr.max = (int64_t)max;
	attr.high = (int64_t)(fuzz_take(&w->in, 1) % 2 == 0 ? max : (uint64_t)PCBATCH_PAGES_MAX);
	err = pcbatch_group_create(&w->dom, parent < 0 ? NULL : w->group[parent].g, &attr, &g);
	if (no_memory(w, err) || max > (uint64_t)PCBATCH_PAGES_MAX) {
		FUZZ_TRUE(g == NULL && (err == -ENOMEM || err == -EINVAL), err, max);
		return;
	}
	if (err == -ENODEV) {
		FUZZ_TRUE(parent >= 0 && pcbatch_priv_load(&w->group[parent].g->owner.state) == PCBATCH_PRIV_OWNER_OFFLINE, err, parent);
		return;
	}
	FUZZ_EQUAL(err, 0);
	memset(f, 0, sizeof(*f));
	memset(w->gone[i], 0, sizeof(w->gone[i]));
	f->g = g;
	f->parent = parent;
	f->max = max;
}

static void op_destroy(struct fuzz_world *w)
{
	int i = pick(w), k, err;
	bool children = false;
	struct fuzz_group *f;

	if (i < 0)
		return;
	f = &w->group[i];
	for (k = 0; k < FUZZ_GROUPS; k++)
		children = children || (w->group[k].g != NULL && w->group[k].parent == i);
	err = pcbatch_group_destroy(f->g);
	if (children || f->pages != 0 || f->bytes != 0) {
		FUZZ_EQUAL(err, -EBUSY);
		return;
	}
	FUZZ_EQUAL(err, 0);
	for (k = 0; k < FUZZ_ITEMS && f->parent >= 0; k++)
		w->gone[f->parent][k] += f->stat[k] + w->gone[i][k];
	f->g = NULL;
}

/* The refusals of a path's limits and those of one of them, and the charges that group i was forced to. */
struct counted {
	uint64_t fails, fails_there, forced;
};

static struct counted counted(const struct fuzz_world *w, int i, int limiting)
{
	struct counted c = { 0, 0, pcbatch_group_event_local(w->group[i].g, PCBATCH_EVENT_FORCED) };

	if (limiting >= 0)
		c.fails_there = pcbatch_group_event_local(w->group[limiting].g, PCBATCH_EVENT_FAIL);
	for (; i >= 0; i = w->group[i].parent)
		c.fails += pcbatch_group_event_local(w->group[i].g, PCBATCH_EVENT_FAIL);
	return c;
}

static void check_counted(const struct fuzz_world *w, int i, int limiting, struct counted before, uint64_t fails, uint64_t forced)
{
	struct counted now = counted(w, i, limiting);

	FUZZ_EQUAL(now.fails - before.fails, fails);
	FUZZ_EQUAL(now.fails_there - before.fails_there, limiting < 0 ? 0 : fails);
	FUZZ_EQUAL(now.forced - before.forced, forced);
}

static void op_charge(struct fuzz_world *w, bool force)
{
	int i = pick(w), err;
	uint64_t pages = fuzz_number(&w->in);
	int64_t stat = (int64_t)fuzz_number(&w->in);
	struct counted before;
	struct fuzz_group *f;
	int limiting;

	/* A statistic of any size, but not so large that ours would overflow. */
	stat = stat % (INT64_C(1) << 40);
	if (i < 0 || (force && !sensible(w, i, pages)))
		return;
	f = &w->group[i];
	limiting = pages == 0 ? -1 : fuzz_limiting(w, i, pages);
	before = counted(w, i, limiting);
	err = force ? pcbatch_group_charge_force(f->g, pages, stat) : pcbatch_group_charge_stat(f->g, pages, stat);
	if (pages > (uint64_t)PCBATCH_PAGES_MAX) {
		FUZZ_EQUAL(err, -EINVAL);
		return;
	}
	if (limiting >= 0 && !force && !(err == 0 && forced_above(w, i))) {
		FUZZ_EQUAL(err, -ENOMEM);
		check_counted(w, i, limiting, before, 1, 0);
		return;
	}
	FUZZ_EQUAL(err, 0);
	if (!forced_above(w, i))
		check_counted(w, i, limiting, before, 0, limiting >= 0);
	if (limiting >= 0)
		forced_over(w, i);
	f->pages += pages;
	f->stat[FUZZ_ITEM] += stat;
	raise_peaks(w, i);
}

static void op_uncharge(struct fuzz_world *w)
{
	int i = pick(w);
	uint64_t pages = fuzz_number(&w->in);
	int64_t stat = (int64_t)fuzz_number(&w->in) % (INT64_C(1) << 40);
	struct fuzz_group *f;

	if (i < 0)
		return;
	f = &w->group[i];
	if (pages > (uint64_t)PCBATCH_PAGES_MAX) {
		FUZZ_EQUAL(pcbatch_group_uncharge_stat(f->g, pages, stat), -EINVAL);
		return;
	}
	if (f->pages == 0 && pages != 0)
		return;
	pages = pages > f->pages ? pages % f->pages : pages;
	FUZZ_EQUAL(pcbatch_group_uncharge_stat(f->g, pages, stat), 0);
	f->pages -= pages;
	f->stat[FUZZ_ITEM] -= stat;
}

static void op_direct(struct fuzz_world *w)
{
	int i = pick(w), err;
	uint64_t pages = fuzz_number(&w->in);
	struct fuzz_group *f;

	if (i < 0 || pages > (uint64_t)PCBATCH_PAGES_MAX)
		return;
	f = &w->group[i];
	if (pages <= f->pages && fuzz_take(&w->in, 1) % 2 == 0) {
		FUZZ_EQUAL(pcbatch_group_uncharge_direct(f->g, pages), 0);
		f->pages -= pages;
		return;
	}
	err = pcbatch_group_charge_direct(f->g, pages);
	if (fuzz_limiting(w, i, pages) >= 0 && pages != 0) {
		FUZZ_EQUAL(err, -ENOMEM);
		return;
	}
	/* Nothing on top of an exceeded limit is nothing, or a refusal. */
	if (pages == 0)
		return;
	FUZZ_EQUAL(err, 0);
	f->pages += pages;
	raise_peaks(w, i);
}

static void op_bytes(struct fuzz_world *w, bool force)
{
	int i = pick(w), err, limiting;
	uint64_t bytes = fuzz_number(&w->in), more;
	struct counted before;
	struct fuzz_group *f;

	if (i < 0 || (force && !sensible(w, i, bytes / 4096)))
		return;
	f = &w->group[i];
	if (bytes > (uint64_t)PCBATCH_PAGES_MAX) {
		FUZZ_EQUAL(pcbatch_group_charge_bytes(f->g, bytes), -EINVAL);
		return;
	}
	more = fuzz_byte_pages(f->bytes + bytes) - fuzz_byte_pages(f->bytes);
	limiting = more == 0 ? -1 : fuzz_limiting(w, i, more);
	before = counted(w, i, limiting);
	err = force ? pcbatch_group_charge_bytes_force(f->g, bytes) : pcbatch_group_charge_bytes(f->g, bytes);
	if (limiting >= 0 && !force && !(err == 0 && forced_above(w, i))) {
		FUZZ_EQUAL(err, -ENOMEM);
		check_counted(w, i, limiting, before, 1, 0);
		return;
	}
	FUZZ_EQUAL(err, 0);
	if (!forced_above(w, i))
		check_counted(w, i, limiting, before, 0, limiting >= 0);
	if (limiting >= 0)
		forced_over(w, i);
	f->bytes += bytes;
	raise_peaks(w, i);
}

static void op_unbytes(struct fuzz_world *w)
{
	int i = pick(w);
	uint64_t bytes = fuzz_number(&w->in);
	struct fuzz_group *f;

	if (i < 0)
		return;
	f = &w->group[i];
	if (bytes > f->bytes)
		bytes = f->bytes == 0 ? 0 : bytes % (f->bytes + 1);
	bytes = at_once(bytes);
	FUZZ_EQUAL(pcbatch_group_uncharge_bytes(f->g, bytes), 0);
	f->bytes -= bytes;
}

static void op_stat(struct fuzz_world *w)
{
	int i = pick(w);
	uint32_t item = (uint32_t)fuzz_take(&w->in, 1) % (FUZZ_ITEMS + 1);
	int64_t delta = (int64_t)fuzz_number(&w->in) % (INT64_C(1) << 40);

	if (i < 0)
		return;
	FUZZ_EQUAL(pcbatch_group_stat_mod(w->group[i].g, item, delta), item < FUZZ_ITEMS ? 0 : -EINVAL);
	if (item < FUZZ_ITEMS)
		w->group[i].stat[item] += delta;
}

static void op_limit(struct fuzz_world *w)
{
	int i = pick(w), err;
	uint64_t max = fuzz_number(&w->in);

	if (i < 0)
		return;
	err = pcbatch_group_set_max(w->group[i].g, (int64_t)max);
	if (max > (uint64_t)PCBATCH_PAGES_MAX) {
		FUZZ_EQUAL(err, -EINVAL);
	} else if (fuzz_live(w, i) > max) {
		FUZZ_EQUAL(err, -EBUSY);
	} else {
		FUZZ_EQUAL(err, 0);
		/* An earlier peak may stand above the new limit. */
		FUZZ_EQUAL(pcbatch_group_peak_reset(w->group[i].g), 0);
		w->group[i].max = max;
		w->group[i].peak_min = fuzz_live(w, i);
		w->group[i].forced = false;
	}
	FUZZ_EQUAL(pcbatch_group_max(w->group[i].g), w->group[i].max);
}

static void op_drain(struct fuzz_world *w)
{
	uint64_t kind = fuzz_take(&w->in, 1) % 5;
	int i = pick(w);

	if (kind == 0)
		FUZZ_EQUAL(pcbatch_stock_drain_all(&w->dom), 0);
	else if (kind == 1)
		FUZZ_EQUAL(pcbatch_stock_drain_cpu(&w->dom), 0);
	else if (i >= 0 && kind == 2)
		FUZZ_EQUAL(pcbatch_group_drain(w->group[i].g), 0);
	else if (i >= 0 && kind == 3)
		FUZZ_EQUAL(pcbatch_group_drain_subtree(w->group[i].g), 0);
	else if (i >= 0)
		FUZZ_EQUAL(pcbatch_group_offline(w->group[i].g), 0);
}

static void op_batch(struct fuzz_world *w)
{
	uint32_t batch = (uint32_t)fuzz_number(&w->in), high = (uint32_t)fuzz_number(&w->in), low = (uint32_t)fuzz_number(&w->in);
	bool valid = high == 0 ? batch >= 1 && batch <= PCBATCH_STOCK_BATCH_MAX
			       : pcbatch_priv_stock_batch_valid(batch, high, low);

	FUZZ_EQUAL(pcbatch_stock_set_batch(&w->dom, batch, high, low), valid ? 0 : -EINVAL);
}

static void op_flush(struct fuzz_world *w)
{
	int i = pick(w);

	if (fuzz_take(&w->in, 1) % 2 == 0)
		FUZZ_EQUAL(pcbatch_stats_flush(&w->dom, NULL), 0);
	else if (i >= 0)
		FUZZ_EQUAL(pcbatch_group_stat_flush(w->group[i].g), 0);
}

static void op_move(struct fuzz_world *w)
{
	cpu_set_t set;

	w->cpu = (int)(fuzz_take(&w->in, 1) % FUZZ_CPUS);
	if (!w->sections)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)w->cpu, &set);
	/* A number that this machine has not leaves the thread where it is. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void op_counter(struct fuzz_world *w)
{
	uint64_t which = fuzz_take(&w->in, 1) % FUZZ_COUNTERS, kind = fuzz_take(&w->in, 1) % 8;
	struct pcbatch_counter *c = &w->counter[which];
	uint64_t n = fuzz_number(&w->in), batch;
	int err;

	switch (kind) {
	case 0:
		pcbatch_counter_flush(c);
		FUZZ_EQUAL(pcbatch_counter_read(c), w->value[which]);
		return;
	case 1:
		pcbatch_counter_set(c, (int64_t)n);
		w->value[which] = n;
		return;
	case 2:
		batch = fuzz_number(&w->in);
		err = pcbatch_counter_add_batch(c, (int64_t)n, (int64_t)batch);
		FUZZ_EQUAL(err, batch >= 1 && batch <= PCBATCH_COUNTER_BATCH_MAX ? 0 : -EINVAL);
		w->value[which] += err == 0 ? n : 0;
		/* Its own batch may be wider than the bound that is audited. */
		pcbatch_counter_flush(c);
		return;
	case 3:
		n = (uint64_t)((int64_t)n % (INT64_C(1) << 50));
		batch = fuzz_number(&w->in);
		if ((int64_t)w->value[which] > INT64_MAX / 2 || (int64_t)w->value[which] < INT64_MIN / 2)
			return;
		if (pcbatch_counter_limited_add(c, (int64_t)batch, (int64_t)n)) {
			w->value[which] += n;
			FUZZ_TRUE((int64_t)n <= 0 || (int64_t)w->value[which] <= (int64_t)batch, n, batch);
			FUZZ_TRUE((int64_t)n >= 0 || (int64_t)w->value[which] >= (int64_t)batch, n, batch);
		} else {
			int64_t after = (int64_t)(w->value[which] + n);

			FUZZ_TRUE((int64_t)n > 0 ? after > (int64_t)batch : after < (int64_t)batch, n, batch);
		}
		return;
	case 4:
		pcbatch_counter_sub(c, (int64_t)n);
		w->value[which] -= n;
		return;
	default:
		pcbatch_counter_add(c, (int64_t)n);
		w->value[which] += n;
	}
}

static void op_fail_allocation(struct fuzz_world *w)
{
	w->fail_in = 1 + fuzz_take(&w->in, 1) % 3;
	op_create(w);
	w->fail_in = 0;
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
	if (no_memory(w, err))
		err = pcbatch_domain_init(&w->dom, &attr);
	FUZZ_EQUAL(err, 0);
	w->sections = pcbatch_domain_backend(&w->dom) == PCBATCH_BACKEND_RSEQ;
	for (i = 0; i < FUZZ_COUNTERS; i++) {
		w->value[i] = i == 0 ? 0 : fuzz_number(&w->in);
		FUZZ_EQUAL(pcbatch_counter_init(&w->counter[i], &w->dom, (int64_t)w->value[i]), 0);
	}
	return true;
}

static void step(struct fuzz_world *w)
{
	uint64_t op = fuzz_take(&w->in, 1);

	switch (op % 20) {
	case 0:
		op_create(w);
		break;
	case 1:
		op_destroy(w);
		break;
	case 2:
	case 3:
	case 4:
		op_charge(w, false);
		break;
	case 5:
	case 6:
	case 7:
		op_uncharge(w);
		break;
	case 8:
		op_charge(w, true);
		break;
	case 9:
	case 10:
		op_bytes(w, false);
		break;
	case 11:
		op_unbytes(w);
		break;
	case 12:
		op_stat(w);
		break;
	case 13:
		op_limit(w);
		break;
	case 14:
		op_drain(w);
		break;
	case 15:
		if (op < 60)
			op_batch(w);
		else if (op < 160)
			op_direct(w);
		else
			op_bytes(w, true);
		break;
	case 16:
		op_flush(w);
		break;
	case 17:
		op_move(w);
		break;
	case 18:
		op_counter(w);
		break;
	default:
		if (op < 100)
			op_fail_allocation(w);
		else
			fuzz_audit(w, false);
	}
}

static void give_back(struct fuzz_group *f)
{
	for (; f->pages != 0; f->pages -= at_once(f->pages))
		FUZZ_EQUAL(pcbatch_group_uncharge(f->g, at_once(f->pages)), 0);
	for (; f->bytes != 0; f->bytes -= at_once(f->bytes))
		FUZZ_EQUAL(pcbatch_group_uncharge_bytes(f->g, at_once(f->bytes)), 0);
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
		step(&world);
	end(&world);
}
