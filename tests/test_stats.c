/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the hierarchical statistics: a flush brings a leaf's updates to every ancestor,
 * visits only what changed, and is asked for at exactly batch x CPUs updates; an owner's
 * last update outlives it.
 */
#include "util.h"

#define BATCH 16

static struct box *box;
static struct pcbatch_group *root, *a, *b, *a1; /* root -> a -> a1, root -> b */

static int make_tree(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = 3;
	attr.stock_item = 2;
	attr.stat_batch = BATCH;
	box = box_open(attr);
	root = group_new(box, NULL);
	a = group_new(box, root);
	b = group_new(box, root);
	a1 = group_new(box, a);
	return 0;
}

static int drop_tree(void **state)
{
	struct pcbatch_group *all[] = { a1, a, b, root };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(all); i++)
		if (all[i] != NULL)
			assert_int_equal(pcbatch_group_destroy(all[i]), 0);
	box_close(box);
	return 0;
}

static void mod(struct pcbatch_group *g, uint32_t item, int64_t delta)
{
	assert_int_equal(pcbatch_stats_mod(&g->owner.stats, item, delta), 0);
}

static int64_t all_of(const struct pcbatch_group *g, uint32_t item)
{
	return pcbatch_stats_read_signed(&g->owner.stats, item);
}

static int64_t own_of(const struct pcbatch_group *g, uint32_t item)
{
	return pcbatch_stats_read_local(&g->owner.stats, item);
}

static bool due(const struct pcbatch_group *g)
{
	return pcbatch_stats_needs_flush(&g->owner.stats);
}

static uint64_t visits_of_flush(struct pcbatch_group *g)
{
	uint64_t before = pcbatch_stats_flush_visits(&box->dom);

	assert_int_equal(pcbatch_stats_flush(&box->dom, g == NULL ? NULL : &g->owner.stats), 0);
	return pcbatch_stats_flush_visits(&box->dom) - before;
}

static void local_and_hierarchical_values(void **state)
{
	(void)state;
	mod(a1, 0, 5);
	mod(a, 0, 10);
	mod(b, 0, -3);
	mod(a1, 1, 100);
	assert_int_equal(all_of(root, 0), 0);
	assert_int_equal(own_of(a1, 0), 0);
	assert_int_equal(visits_of_flush(NULL), 3);
	assert_int_equal(own_of(a1, 0), 5);
	assert_int_equal(own_of(a, 0), 10);
	assert_int_equal(own_of(b, 0), -3);
	assert_int_equal(own_of(root, 0), 0);
	assert_int_equal(all_of(a1, 0), 5);
	assert_int_equal(all_of(a, 0), 15);
	assert_int_equal(all_of(b, 0), -3);
	assert_int_equal(all_of(root, 0), 12);
	assert_int_equal(all_of(root, 1), 100);
	assert_int_equal(own_of(a, 1), 0);
	assert_int_equal(all_of(root, 2), 0);
	/* Nothing is taken twice. */
	assert_int_equal(visits_of_flush(NULL), 0);
	assert_int_equal(all_of(root, 0), 12);
	mod(a1, 0, -5);
	assert_int_equal(visits_of_flush(NULL), 1);
	assert_int_equal(all_of(root, 0), 7);
}

static void clamped_or_signed(void **state)
{
	(void)state;
	mod(b, 0, -5);
	assert_int_equal(pcbatch_stats_flush(&box->dom, NULL), 0);
	assert_int_equal(pcbatch_stats_read(&b->owner.stats, 0), 0);
	assert_int_equal(pcbatch_group_stat_read(root, 0), 0);
	assert_int_equal(pcbatch_stats_read_signed(&b->owner.stats, 0), -5);
	assert_int_equal(pcbatch_group_stat_read_signed(root, 0), -5);
	assert_int_equal(pcbatch_group_stat_read_local(b, 0), -5);
	mod(b, 0, 9);
	assert_int_equal(pcbatch_group_stat_flush(b), 0);
	assert_int_equal(pcbatch_group_stat_read(b, 0), 4);
	assert_int_equal(pcbatch_group_stat_read(root, 0), 4);
}

static void items_out_of_range(void **state)
{
	(void)state;
	assert_int_equal(pcbatch_stats_mod(&a->owner.stats, 3, 1), -EINVAL);
	assert_int_equal(pcbatch_stats_mod(&a->owner.stats, UINT32_MAX, 1), -EINVAL);
	assert_int_equal(pcbatch_group_stat_mod(a, 3, 1), -EINVAL);
	assert_int_equal(visits_of_flush(NULL), 0);
	assert_int_equal(pcbatch_stats_read(&a->owner.stats, 3), 0);
	assert_int_equal(pcbatch_stats_read_signed(&a->owner.stats, 3), 0);
	assert_int_equal(pcbatch_stats_read_local(&a->owner.stats, UINT32_MAX), 0);
	assert_int_equal(pcbatch_group_stat_flush(NULL), -EINVAL);
}

/* A flush costs what changed: pairs of node and CPU, not the size of the tree. */
static void flush_visits_only_what_changed(void **state)
{
	(void)state;
	mod(a1, 0, 1);
	mod(a1, 1, 1);
	mod(a1, 0, 1);
	assert_int_equal(visits_of_flush(NULL), 1);
	assert_int_equal(visits_of_flush(NULL), 0);
	/* Nothing is no change. */
	mod(a1, 0, 0);
	assert_int_equal(visits_of_flush(NULL), 0);
	mod(a, 0, 1);
	mod(b, 0, 1);
	assert_int_equal(visits_of_flush(NULL), 2);
	mod(b, 0, 1);
	assert_int_equal(visits_of_flush(NULL), 1);
	assert_int_equal(all_of(root, 0), 5);
}

static void subtree_flush_leaves_others_pending(void **state)
{
	(void)state;
	mod(a1, 0, 1);
	mod(b, 0, 10);
	mod(root, 0, 100);
	assert_int_equal(visits_of_flush(a), 1);
	assert_int_equal(all_of(a, 0), 1);
	assert_int_equal(all_of(root, 0), 1);
	assert_int_equal(all_of(b, 0), 0);
	assert_int_equal(visits_of_flush(a), 0);
	/* What was put back is still listed, and new updates of it are not listed twice. */
	mod(b, 0, 10);
	assert_int_equal(visits_of_flush(b), 1);
	assert_int_equal(all_of(root, 0), 21);
	assert_int_equal(visits_of_flush(root), 1);
	assert_int_equal(all_of(root, 0), 121);
	assert_int_equal(own_of(root, 0), 100);
}

/* rule 10: exactly batch x CPUs updates are not more than that, one batch beyond is; both signs, whatever the step. */
static void rule_10_needs_flush_at_batch_times_cpus(void **state)
{
	const int64_t enough = BATCH * ((int64_t)pcbatch_domain_cpus(&box->dom) + 1);
	int64_t i, sign;

	(void)state;
	for (sign = -1; sign <= 1; sign += 2) {
		for (i = 1; i < enough; i++) {
			mod(a1, 0, i % 2 == 0 ? 1 : sign);
			if (due(a1) || due(a) || due(root) || due(b))
				fail_msg("due after %d of %d", (int)i, (int)enough);
		}
		mod(a1, 0, 1);
		assert_true(due(a1) && due(a) && due(root) && !due(b));
		assert_true(pcbatch_group_stat_needs_flush(a1));
		assert_int_equal(visits_of_flush(NULL), 1);
		assert_false(due(a1) || due(a) || due(root));
	}
	/* By one update. */
	mod(a1, 0, enough - BATCH);
	assert_false(due(a1) || due(root));
	assert_int_equal(visits_of_flush(NULL), 1);
	mod(a1, 0, -(enough - BATCH + 1));
	assert_true(due(a1) && due(a) && due(root));
	assert_int_equal(visits_of_flush(NULL), 1);
}

/* An ancestor adds up what its descendants owe: none of them is due, it is. */
static void ancestors_hear_of_all_below(void **state)
{
	const int64_t enough = BATCH * ((int64_t)pcbatch_domain_cpus(&box->dom) + 1);
	int64_t i;

	(void)state;
	for (i = 0; i < enough / 2; i++) {
		assert_false(due(root));
		mod(a1, 0, 1);
		mod(b, 0, 1);
	}
	assert_true(due(root));
	assert_false(due(a1) || due(a) || due(b));
	assert_int_equal(visits_of_flush(NULL), 2);
	assert_false(due(root));
}

/* rules 8 and 9: magnitudes of 64-bit deltas, INT64_MIN included; values wrap like the totals. */
static void rule_08_and_09_64_bit_deltas(void **state)
{
	static const int64_t deltas[] = { INT64_MIN, INT64_MIN + 1, -(INT64_C(1) << 33), INT32_MIN, INT32_MAX,
					  UINT32_MAX, INT64_C(1) << 40, INT64_MAX };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(deltas); i++) {
		mod(a1, 1, deltas[i]);
		assert_true(due(a1) && due(root));
		assert_int_equal(visits_of_flush(NULL), 1);
		assert_int_equal(all_of(root, 1), deltas[i]);
		assert_int_equal(own_of(a1, 1), deltas[i]);
		mod(a1, 1, (int64_t)(0 - (uint64_t)deltas[i]));
		assert_int_equal(visits_of_flush(NULL), 1);
		assert_int_equal(all_of(root, 1), 0);
	}
}

static void rate_limited_flush(void **state)
{
	const int64_t enough = BATCH * ((int64_t)pcbatch_domain_cpus(&box->dom) + 1);
	volatile uint64_t now = 1000000;

	(void)state;
	mod(a1, 0, 1);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now), -EAGAIN);
	mod(a1, 0, enough - 1);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&b->owner.stats, now), -EAGAIN);
	assert_int_equal(all_of(root, 0), 0);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now), 0);
	assert_int_equal(all_of(root, 0), enough);
	mod(a1, 0, enough);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now), -EAGAIN);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now + PCBATCH_FLUSH_LIMIT_NS - 1), -EAGAIN);
	assert_int_equal(all_of(root, 0), enough);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now + PCBATCH_FLUSH_LIMIT_NS), 0);
	assert_int_equal(all_of(root, 0), 2 * enough);
}

/* The periodic one asks for no threshold, and its time is that of the rate-limited one. */
static void periodic_flush(void **state)
{
	const int64_t enough = BATCH * ((int64_t)pcbatch_domain_cpus(&box->dom) + 1);
	volatile uint64_t now = 5;

	(void)state;
	mod(a1, 0, 1);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, now), 0);
	assert_int_equal(all_of(root, 0), 1);
	mod(a1, 0, 1);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, now + PCBATCH_FLUSH_PERIOD_NS - 1), -EAGAIN);
	assert_int_equal(all_of(root, 0), 1);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, now + PCBATCH_FLUSH_PERIOD_NS), 0);
	assert_int_equal(all_of(root, 0), 2);
	now += PCBATCH_FLUSH_PERIOD_NS;
	mod(a1, 0, enough);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now + PCBATCH_FLUSH_LIMIT_NS - 1), -EAGAIN);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, now + PCBATCH_FLUSH_LIMIT_NS), 0);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, now + PCBATCH_FLUSH_LIMIT_NS + 1), -EAGAIN);
}

/* rule 26: while somebody flushes, others don't wait in line, and their turn does not count as taken. */
static void rule_26_one_flusher(void **state)
{
	const int64_t enough = BATCH * ((int64_t)pcbatch_domain_cpus(&box->dom) + 1);

	(void)state;
	mod(a1, 0, enough);
	pcbatch_priv_lock(&box->dom.flush_lock);
	assert_int_equal(pcbatch_stats_try_flush(&box->dom, NULL), -EBUSY);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, 77), -EBUSY);
	assert_int_equal(pcbatch_stats_flush_ratelimited(&a1->owner.stats, 77), -EBUSY);
	pcbatch_priv_unlock(&box->dom.flush_lock);
	assert_int_equal(all_of(root, 0), 0);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, 78), 0);
	assert_int_equal(all_of(root, 0), enough);
	mod(a1, 0, 1);
	assert_int_equal(pcbatch_stats_try_flush(&box->dom, &a1->owner.stats), 0);
	assert_int_equal(all_of(root, 0), enough + 1);
}

/* rule 12: the last update, never flushed by anybody, is in every ancestor. rule 22: all views move, and only up. */
static void rule_12_and_22_destroy_folds_the_last_update(void **state)
{
	(void)state;
	mod(a, 0, 1);
	mod(a1, 0, 40);
	assert_int_equal(visits_of_flush(NULL), 2);
	mod(a1, 0, 2);
	mod(a1, 1, -7);
	assert_int_equal(pcbatch_group_destroy(a1), 0);
	a1 = NULL;
	assert_int_equal(all_of(a, 0), 43);
	assert_int_equal(all_of(root, 0), 43);
	assert_int_equal(all_of(root, 1), -7);
	assert_int_equal(own_of(a, 0), 1);
	assert_int_equal(own_of(root, 0), 0);
	/* Its block is on no list any more. */
	assert_int_equal(visits_of_flush(NULL), 0);
	assert_int_equal(all_of(root, 0), 43);
}

/* rule 4: the next owner of the memory begins at zero, and its parent is its own. */
static void rule_04_reused_blocks_are_zero(void **state)
{
	struct pcbatch_group *again;
	uint32_t id = a1->owner.id;

	(void)state;
	mod(a1, 0, 5);
	assert_int_equal(pcbatch_group_destroy(a1), 0);
	a1 = NULL;
	again = group_new(box, b);
	assert_int_equal(again->owner.id, id);
	assert_int_equal(all_of(again, 0), 0);
	assert_false(due(again));
	assert_int_equal(visits_of_flush(NULL), 0);
	mod(again, 0, 3);
	assert_int_equal(visits_of_flush(NULL), 1);
	assert_int_equal(all_of(again, 0), 3);
	assert_int_equal(all_of(b, 0), 3);
	assert_int_equal(all_of(a, 0), 5);
	assert_int_equal(all_of(root, 0), 8);
	a1 = again;
}

static void mod_there(void *arg)
{
	(void)pcbatch_stats_mod((struct pcbatch_stats_node *)arg, 0, 5);
}

static void other_cpus_are_pairs_of_their_own(void **state)
{
	(void)state;
	mod(a1, 0, 1);
	errand(box, mod_there, &a1->owner.stats);
	assert_int_equal(visits_of_flush(NULL), 2);
	assert_int_equal(all_of(root, 0), 6);
	errand(box, mod_there, &a1->owner.stats);
	assert_int_equal(pcbatch_group_destroy(a1), 0);
	a1 = NULL;
	assert_int_equal(all_of(root, 0), 11);
}

/* rule 21: updates past the CPUs reach all views at once, and count for needs_flush. */
static void rule_21_side_channel_folds_everywhere(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_group *top, *leaf;
	struct box *other;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 2;
	attr.stat_batch = BATCH;
	attr.current_cpu = box_cpu;
	other = box_open(attr);
	top = group_new(other, NULL);
	leaf = group_new(other, top);
	other->cpu = 1;
	mod(leaf, 0, 1);
	other->cpu = -1;
	mod(leaf, 0, 2 * BATCH);
	assert_int_equal(own_of(leaf, 0), 2 * BATCH);
	assert_int_equal(all_of(leaf, 0), 2 * BATCH);
	assert_int_equal(all_of(top, 0), 2 * BATCH);
	assert_int_equal(own_of(top, 0), 0);
	assert_false(due(leaf) || due(top));
	mod(leaf, 0, -1);
	assert_true(due(leaf) && due(top));
	assert_int_equal(pcbatch_stats_flush(&other->dom, NULL), 0);
	assert_int_equal(all_of(top, 0), 2 * BATCH);
	assert_false(due(leaf) || due(top));
	assert_int_equal(pcbatch_group_destroy(leaf), 0);
	assert_int_equal(pcbatch_group_destroy(top), 0);
	box_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, drop_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(local_and_hierarchical_values),
		TEST(clamped_or_signed),
		TEST(items_out_of_range),
		TEST(flush_visits_only_what_changed),
		TEST(subtree_flush_leaves_others_pending),
		TEST(rule_10_needs_flush_at_batch_times_cpus),
		TEST(ancestors_hear_of_all_below),
		TEST(rule_08_and_09_64_bit_deltas),
		TEST(rate_limited_flush),
		TEST(periodic_flush),
		TEST(rule_26_one_flusher),
		TEST(rule_12_and_22_destroy_folds_the_last_update),
		TEST(rule_04_reused_blocks_are_zero),
		TEST(other_cpus_are_pairs_of_their_own),
		TEST(rule_21_side_channel_folds_everywhere),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
