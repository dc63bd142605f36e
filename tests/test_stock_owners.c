/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the stock of many owners: who is evicted, what each drain takes and leaves, and
 * that usage = live + cached and statistic = flushed + cached after every single call,
 * whatever the slots do.
 */
#include "util.h"

#define ITEM 2

static struct box *box_with(uint32_t batch, uint32_t high, uint32_t low)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.stock_batch = batch;
	attr.stock_high = high;
	attr.stock_low = low;
	attr.stat_items = 3;
	attr.stock_item = ITEM;
	return box_open(attr);
}

/* Ends a group that has `live` pages charged. */
static void drop(struct pcbatch_group *g, int64_t live)
{
	assert_live(g, live);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_current(g), live);
	assert_int_equal(pcbatch_group_uncharge_direct(g, (uint64_t)live), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
}

static int64_t statistic(struct box *box, const struct pcbatch_group *g)
{
	assert_int_equal(pcbatch_stats_flush(&box->dom, NULL), 0);
	assert_int_equal(pcbatch_group_stat_read_signed(g, 0), 0);
	assert_int_equal(pcbatch_group_stat_read_signed(g, 1), 0);
	return pcbatch_group_stat_read_signed(g, ITEM);
}

static void fill(struct pcbatch_group **g, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(pcbatch_group_charge_stat(g[i], 1, 3), 0);
}

/* Seven owners have a slot each; the eighth takes that of its first probe, and the victim loses nothing. */
static void rule_25_eighth_owner_evicts_its_first_probe(void **state)
{
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g[8];
	size_t i, victim;

	(void)state;
	for (i = 0; i < 8; i++)
		g[i] = group_new(box, NULL);
	fill(g, 7);
	for (i = 0; i < 7; i++)
		assert_int_equal(cached_of(g[i]).pages, 63);
	assert_int_equal(info_of(box).evictions, 0);
	fill(g + 7, 1);
	assert_int_equal(info_of(box).evictions, 1);
	victim = (g[7]->owner.id - g[0]->owner.id) % 7;
	for (i = 0; i < 8; i++) {
		assert_int_equal(cached_of(g[i]).slots, i != victim);
		assert_int_equal(pcbatch_group_current(g[i]), i != victim ? 64 : 1);
		assert_live(g[i], 1);
		assert_int_equal(statistic(box, g[i]) + cached_of(g[i]).stat, 3);
	}
	assert_int_equal(statistic(box, g[victim]), 3);
	for (i = 0; i < 8; i++)
		drop(g[i], 1);
	box_close(box);
}

/* The last place that a search looks at, before the first probe, is one that is taken and found. */
static void the_last_place_is_taken_and_found(void **state)
{
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g[8];
	struct pcbatch_stock_info before, after;
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		g[i] = group_new(box, NULL);
	/* All but the seventh, whose place is that in front of the eighth's first probe. */
	assert_int_equal(g[7]->owner.id % 7, (g[6]->owner.id + 1) % 7);
	fill(g, 6);
	fill(g + 7, 1);
	assert_int_equal(info_of(box).evictions, 0);
	assert_int_equal(cached_of(g[7]).slots, 1);
	before = info_of(box);
	assert_int_equal(pcbatch_group_charge(g[7], 2), 0);
	assert_int_equal(pcbatch_group_uncharge(g[7], 1), 0);
	after = info_of(box);
	assert_int_equal(after.hits, before.hits + 2);
	assert_int_equal(after.evictions, 0);
	assert_live(g[7], 2);
	for (i = 0; i < 8; i++)
		if (i != 6)
			drop(g[i], i == 7 ? 2 : 1);
	assert_int_equal(pcbatch_group_destroy(g[6]), 0);
	box_close(box);
}

static void miss_there(void *arg)
{
	(void)pcbatch_group_charge((struct pcbatch_group *)arg, 1);
}

/* What info shows is the sum over all CPUs and lines. */
static void info_counts_on_every_cpu(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_group *g;
	struct box *box;
	int i;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 4;
	attr.current_cpu = box_cpu;
	box = box_open(attr);
	g = group_new(box, NULL);
	for (i = 0; i < 4; i++) {
		box->cpu = i;
		assert_int_equal(pcbatch_group_charge(g, 1), 0);
		assert_int_equal(info_of(box).misses, (uint64_t)i + 1);
	}
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(info_of(box).drains, 4);
	drop(g, 4);
	box_close(box);
	/* The same on real CPUs. */
	box = box_with(64, 0, 0);
	g = group_new(box, NULL);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	errand(box, miss_there, g);
	assert_int_equal(info_of(box).misses, 2);
	drop(g, 2);
	box_close(box);
}

static void run_owners(int shut)
{
	enum { OWNERS = 20 };
	struct box *box = box_with(16, 20, 8);
	struct pcbatch_group *g[OWNERS], *parent = group_new(box, NULL);
	int64_t live[OWNERS] = { 0 }, stat[OWNERS] = { 0 }, total;
	uint64_t seed = 0x9e3779b97f4a7c15u;
	uint32_t c;
	int i, n;

	for (i = 0; i < OWNERS; i++)
		g[i] = group_new(box, parent);
	for (n = 0; n < 20000; n++) {
		int who = (int)(next_random(&seed) % OWNERS);
		int64_t pages = (int64_t)(next_random(&seed) % (n % 10 < 2 ? 60 : 12)), s = (int64_t)(next_random(&seed) % 41) - 20;
		int how = shut == 0 ? 0 : (int)(next_random(&seed) % 3);
		uint64_t pid = how == 2 ? pcbatch_priv_stock_hold(&box->dom) : 0;

		for (c = 0; c < box->dom.lines; c++)
			pcbatch_priv_stock(&box->dom, c)->page.gate = how == 1;
		if (n % 2 == 0) {
			assert_int_equal(pcbatch_group_charge_stat(g[who], (uint64_t)pages, s), 0);
			live[who] += pages;
			stat[who] += s;
		} else {
			pages = pages > live[who] ? live[who] : pages;
			assert_int_equal(pcbatch_group_uncharge_stat(g[who], (uint64_t)pages, s), 0);
			live[who] -= pages;
			stat[who] -= s;
		}
		if (how == 2)
			pcbatch_priv_stock_let(&box->dom, pid);
		assert_live(g[who], live[who]);
		if (n % 500 == 0) {
			for (i = 0, total = 0; i < OWNERS; i++) {
				assert_live(g[i], live[i]);
				assert_int_equal(statistic(box, g[i]) + cached_of(g[i]).stat, stat[i]);
				total += pcbatch_group_current(g[i]);
			}
			assert_int_equal(pcbatch_group_current(parent), total);
		}
	}
	for (c = 0; c < box->dom.lines; c++)
		pcbatch_priv_stock(&box->dom, c)->page.gate = 0;
	assert_true(info_of(box).evictions > 1000 && info_of(box).trims > 100 && info_of(box).hits > 500);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	for (i = 0; i < OWNERS; i++) {
		assert_int_equal(statistic(box, g[i]), stat[i]);
		drop(g[i], live[i]);
	}
	drop(parent, 0);
	box_close(box);
}

static void more_owners_than_slots_stay_exact(void **state)
{
	(void)state;
	run_owners(0);
}

/* rule 20: the same property when slots refuse at random: what goes past them is posted identically. */
static void rule_20_the_same_with_closed_gates(void **state)
{
	(void)state;
	run_owners(1);
}

/* rule 25: the same calls leave the same slots: nothing but the line itself decides. */
static void rule_25_eviction_is_deterministic(void **state)
{
	struct pcbatch_priv_line line[2];
	int round, i;

	(void)state;
	for (round = 0; round < 2; round++) {
		struct box *box = box_with(64, 0, 0);
		struct pcbatch_group *g[11];
		uint64_t seed = 12345;

		for (i = 0; i < 11; i++)
			g[i] = group_new(box, NULL);
		for (i = 0; i < 500; i++)
			assert_int_equal(pcbatch_group_charge(g[next_random(&seed) % 11], 1), 0);
		line[round] = pcbatch_priv_stock(&box->dom, pcbatch_priv_cpu(&box->dom))->page;
		assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
		for (i = 0; i < 11; i++)
			drop(g[i], pcbatch_group_current(g[i]));
		box_close(box);
	}
	assert_memory_equal(&line[0], &line[1], sizeof(line[0]));
}

/* --------------------------------------------------------------------- drains */

static void charge_there(void *arg)
{
	struct pcbatch_group **g = (struct pcbatch_group **)arg;

	for (; *g != NULL; g++)
		(void)pcbatch_group_charge_stat(*g, 1, 3);
}

/* root -> a -> a1, root -> b; each drain takes what it names, on every CPU or on this one, and leaves the rest warm. */
static void drains_take_what_they_name(void **state)
{
	static const char takes[][4] = { { 1, 0, 0, 0 }, { 0, 1, 1, 0 }, { 1, 1, 1, 1 }, { 0, 1, 0, 0 } };
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g[5] = { NULL };
	int64_t live = 0;
	size_t i, round;

	(void)state;
	g[0] = group_new(box, NULL);
	g[1] = group_new(box, g[0]);
	g[2] = group_new(box, g[1]);
	g[3] = group_new(box, g[0]);
	for (round = 0; round < COUNT_OF(takes); round++) {
		struct pcbatch_stock_info before;
		struct cached was[4];
		uint64_t slots = 0, pages = 0;

		fill(g, 4);
		errand(box, charge_there, g);
		live += 2;
		before = info_of(box);
		for (i = 0; i < 4; i++) {
			was[i] = cached_of(g[i]);
			assert_int_equal(was[i].slots, 2);
			slots += takes[round][i] ? was[i].slots : 0;
			pages += takes[round][i] ? (uint64_t)was[i].pages : 0;
		}
		assert_int_equal(round == 0   ? pcbatch_group_drain(g[0])
				 : round == 1 ? pcbatch_group_drain_subtree(g[1])
				 : round == 2 ? pcbatch_stock_drain_all(&box->dom)
					      : pcbatch_group_drain(g[1]), 0);
		assert_int_equal(info_of(box).drains - before.drains, slots);
		assert_int_equal(info_of(box).drained_pages - before.drained_pages, pages);
		for (i = 0; i < 4; i++) {
			struct cached now = cached_of(g[i]);

			assert_int_equal(now.slots, takes[round][i] ? 0 : 2);
			assert_int_equal(now.pages, takes[round][i] ? 0 : was[i].pages);
			assert_int_equal(now.stat, takes[round][i] ? 0 : was[i].stat);
		}
		assert_live(g[2], live);
		assert_live(g[3], live);
	}
	assert_int_equal(pcbatch_group_drain(NULL), -EINVAL);
	assert_int_equal(pcbatch_group_drain_subtree(NULL), -EINVAL);
	/* This CPU's only. */
	assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(cached_of(g[i]).slots, i == 1 ? 0 : 1);
	assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_current(g[0]), 4 * live);
	assert_int_equal(statistic(box, g[0]), 3 * 4 * live);
	for (i = 4; i-- > 0;) {
		assert_int_equal(pcbatch_group_uncharge_direct(g[i], (uint64_t)live), 0);
		assert_int_equal(pcbatch_group_destroy(g[i]), 0);
	}
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_25_eighth_owner_evicts_its_first_probe),
		cmocka_unit_test(the_last_place_is_taken_and_found),
		cmocka_unit_test(info_counts_on_every_cpu),
		cmocka_unit_test(more_owners_than_slots_stay_exact),
		cmocka_unit_test(rule_20_the_same_with_closed_gates),
		cmocka_unit_test(rule_25_eviction_is_deterministic),
		cmocka_unit_test(drains_take_what_they_name),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
