/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations an input is made of; see world.h. */
#include "world.h"

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
	if (fuzz_no_memory(w, err) || max > (uint64_t)PCBATCH_PAGES_MAX) {
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
	bytes = fuzz_at_once(bytes);
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

void fuzz_step(struct fuzz_world *w)
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
