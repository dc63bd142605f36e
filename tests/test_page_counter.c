/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* backend: none */
/*
 * Proves the hierarchical limit counter: all levels or none, the refusing level named
 * and counted, peaks only of what was granted, limits that hold against a charge in
 * between, and uncharges that can't go below zero or harm the levels above.
 */
static void (*inject)(int point);
#define PCBATCH_INJECT_C(n)       \
	do {                      \
		if (inject)       \
			inject(n); \
	} while (0)
#include "util.h"

#define DEPTH 64

/* level[0] is the root, level[depth - 1] the leaf. */
static struct pcbatch_page_counter level[DEPTH + 1];

static void chain(int depth)
{
	int i;

	for (i = 0; i < depth; i++)
		assert_int_equal(pcbatch_page_counter_init(&level[i], i == 0 ? NULL : &level[i - 1]), 0);
}

static void starts_empty_and_unlimited(void **state)
{
	struct pcbatch_page_counter c;

	(void)state;
	memset(&c, 0xff, sizeof(c));
	assert_int_equal(pcbatch_page_counter_init(&c, NULL), 0);
	assert_int_equal(pcbatch_page_counter_read(&c), 0);
	assert_int_equal(pcbatch_page_counter_peak(&c), 0);
	assert_int_equal(pcbatch_page_counter_max(&c), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_page_counter_high(&c), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_page_counter_failcnt(&c), 0);
	assert_int_equal(pcbatch_page_counter_underflow(&c), 0);
	assert_int_equal(pcbatch_page_counter_margin(&c), PCBATCH_PAGES_MAX);
}

static void cycles_are_refused(void **state)
{
	(void)state;
	chain(3);
	assert_int_equal(pcbatch_page_counter_charge(&level[2], 7), 0);
	assert_int_equal(pcbatch_page_counter_init(&level[2], &level[2]), -ELOOP);
	assert_int_equal(pcbatch_page_counter_init(&level[1], &level[2]), -ELOOP);
	assert_int_equal(pcbatch_page_counter_init(&level[0], &level[2]), -ELOOP);
	assert_int_equal(pcbatch_page_counter_init(NULL, &level[2]), -EINVAL);
	assert_ptr_equal(level[2].parent, &level[1]);
	assert_ptr_equal(level[0].parent, NULL);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 7);
	/* A sibling is no cycle. */
	assert_int_equal(pcbatch_page_counter_init(&level[3], &level[1]), 0);
}

/* Each depth up to 64, each level as the one that refuses: reported, counted there only, all else as before. */
static void rule_31_rollback_at_every_level(void **state)
{
	struct pcbatch_page_counter *failed = NULL;
	int depth, limit, i;

	(void)state;
	for (depth = 1; depth <= DEPTH; depth++) {
		for (limit = 0; limit < depth; limit++) {
			chain(depth);
			assert_int_equal(pcbatch_page_counter_set_max(&level[limit], 10), 0);
			assert_int_equal(pcbatch_page_counter_try_charge(&level[depth - 1], 9, &failed), 0);
			assert_null(failed);
			assert_int_equal(pcbatch_page_counter_try_charge(&level[depth - 1], 2, &failed), -ENOMEM);
			assert_ptr_equal(failed, &level[limit]);
			for (i = 0; i < depth; i++) {
				assert_int_equal(pcbatch_page_counter_read(&level[i]), 9);
				assert_int_equal(pcbatch_page_counter_peak(&level[i]), 9);
				assert_int_equal(pcbatch_page_counter_failcnt(&level[i]), i == limit);
			}
			assert_int_equal(pcbatch_page_counter_try_charge(&level[depth - 1], 1, NULL), 0);
			assert_int_equal(pcbatch_page_counter_peak(&level[0]), 10);
			assert_int_equal(pcbatch_page_counter_uncharge(&level[depth - 1], 10), 0);
			for (i = 0; i < depth; i++)
				assert_int_equal(pcbatch_page_counter_read(&level[i]), 0);
		}
	}
}

/* The leaf could have taken it: its peak must not say that it did. */
static void peak_moves_only_after_every_level_accepted(void **state)
{
	(void)state;
	chain(3);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 5), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[2], 6, NULL), -ENOMEM);
	assert_int_equal(pcbatch_page_counter_peak(&level[2]), 0);
	assert_int_equal(pcbatch_page_counter_peak(&level[1]), 0);
	assert_int_equal(pcbatch_page_counter_peak(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[2], 5, NULL), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[2], 3), 0);
	assert_int_equal(pcbatch_page_counter_peak(&level[2]), 5);
	pcbatch_page_counter_peak_reset(&level[2]);
	assert_int_equal(pcbatch_page_counter_peak(&level[2]), 2);
	assert_int_equal(pcbatch_page_counter_peak(&level[0]), 5);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[2], 1, NULL), 0);
	assert_int_equal(pcbatch_page_counter_peak(&level[2]), 3);
	assert_int_equal(pcbatch_page_counter_peak(&level[0]), 5);
}

static void forced_charge_goes_over_and_moves_peaks(void **state)
{
	(void)state;
	chain(2);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 5), 0);
	assert_int_equal(pcbatch_page_counter_charge(&level[1], 8), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 8);
	assert_int_equal(pcbatch_page_counter_peak(&level[0]), 8);
	assert_int_equal(pcbatch_page_counter_peak(&level[1]), 8);
	assert_int_equal(pcbatch_page_counter_failcnt(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_margin(&level[1]), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[1], 1, NULL), -ENOMEM);
	assert_int_equal(pcbatch_page_counter_failcnt(&level[0]), 1);
}

static void rule_10_boundary_of_max(void **state)
{
	static const int64_t limits[] = { 0, 1, 63, 64, 65, 1 << 20, PCBATCH_PAGES_MAX - 1, PCBATCH_PAGES_MAX };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(limits); i++) {
		chain(1);
		assert_int_equal(pcbatch_page_counter_set_max(&level[0], limits[i]), 0);
		assert_int_equal(pcbatch_page_counter_margin(&level[0]), limits[i]);
		assert_int_equal(pcbatch_page_counter_try_charge(&level[0], (uint64_t)limits[i], NULL), 0);
		assert_int_equal(pcbatch_page_counter_margin(&level[0]), 0);
		assert_int_equal(pcbatch_page_counter_try_charge(&level[0], 1, NULL), -ENOMEM);
		assert_int_equal(pcbatch_page_counter_read(&level[0]), limits[i]);
		assert_int_equal(pcbatch_page_counter_peak(&level[0]), limits[i]);
		assert_int_equal(pcbatch_page_counter_uncharge(&level[0], (uint64_t)limits[i]), 0);
		assert_int_equal(pcbatch_page_counter_read(&level[0]), 0);
	}
}

/* While an uncharge of too much is being put right, usage itself is below zero. */
static void read_is_never_below_zero(void **state)
{
	struct pcbatch_page_counter c;

	(void)state;
	assert_int_equal(pcbatch_page_counter_init(&c, NULL), 0);
	pcbatch_priv_store(&c.usage, (uint64_t)INT64_C(-7));
	assert_int_equal(pcbatch_page_counter_read(&c), 0);
	pcbatch_page_counter_peak_reset(&c);
	assert_int_equal(pcbatch_page_counter_peak(&c), 0);
}

static void arguments_out_of_range_change_nothing(void **state)
{
	const uint64_t over = (uint64_t)PCBATCH_PAGES_MAX + 1;
	struct pcbatch_page_counter *failed = &level[0];

	(void)state;
	chain(1);
	assert_int_equal(pcbatch_page_counter_charge(&level[0], 4), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], over, &failed), -EINVAL);
	assert_null(failed);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], UINT64_MAX, NULL), -EINVAL);
	assert_int_equal(pcbatch_page_counter_charge(&level[0], over), -EINVAL);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[0], over), -EINVAL);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[0], UINT64_MAX), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], -1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], PCBATCH_PAGES_MAX + 1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], INT64_MIN), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_high(&level[0], -1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_high(&level[0], PCBATCH_PAGES_MAX + 1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 4);
	assert_int_equal(pcbatch_page_counter_max(&level[0]), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_page_counter_high(&level[0]), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_page_counter_failcnt(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_underflow(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(NULL, 1, NULL), -EINVAL);
	assert_int_equal(pcbatch_page_counter_charge(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_uncharge(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_max(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_page_counter_set_high(NULL, 1), -EINVAL);
	/* The ends of the ranges are in them. */
	assert_int_equal(pcbatch_page_counter_set_high(&level[0], 0), 0);
	assert_int_equal(pcbatch_page_counter_high(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_set_high(&level[0], PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], 0, NULL), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[0], 0), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 4);
}

static void set_max_leaves_the_old_limit_when_busy(void **state)
{
	(void)state;
	chain(2);
	assert_int_equal(pcbatch_page_counter_set_max(&level[1], 100), 0);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[1], 50, NULL), 0);
	assert_int_equal(pcbatch_page_counter_set_max(&level[1], 49), -EBUSY);
	assert_int_equal(pcbatch_page_counter_max(&level[1]), 100);
	assert_int_equal(pcbatch_page_counter_set_max(&level[1], 50), 0);
	assert_int_equal(pcbatch_page_counter_max(&level[1]), 50);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[1], 1, NULL), -ENOMEM);
	assert_int_equal(pcbatch_page_counter_margin(&level[1]), 0);
	assert_int_equal(pcbatch_page_counter_margin(&level[0]), PCBATCH_PAGES_MAX - 50);
}

/* Each level keeps what is its own, whoever underflows below it. */
static void underflow_is_clamped_reported_and_not_taken_from_the_parent(void **state)
{
	(void)state;
	chain(3);
	assert_int_equal(pcbatch_page_counter_charge(&level[0], 100), 0);
	assert_int_equal(pcbatch_page_counter_charge(&level[2], 5), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[2], 8), -ERANGE);
	assert_int_equal(pcbatch_page_counter_read(&level[2]), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[1]), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 100);
	assert_int_equal(pcbatch_page_counter_underflow(&level[2]), 3);
	assert_int_equal(pcbatch_page_counter_underflow(&level[1]), 0);
	assert_int_equal(pcbatch_page_counter_underflow(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[2], PCBATCH_PAGES_MAX), -ERANGE);
	assert_int_equal(pcbatch_page_counter_underflow(&level[2]), 3 + (uint64_t)PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 100);
	/* In the middle: the leaf has them, its parent does not. */
	assert_int_equal(pcbatch_page_counter_charge(&level[2], 10), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[1], 4), 0);
	assert_int_equal(pcbatch_page_counter_uncharge(&level[2], 10), -ERANGE);
	assert_int_equal(pcbatch_page_counter_read(&level[2]), 0);
	assert_int_equal(pcbatch_page_counter_underflow(&level[1]), 4);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 100);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[2], 1, NULL), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[2]), 1);
}

/* ------------------------------------------------------- somebody in between */

static int64_t seen;
static int result, points;

/* While a charge has been added and not yet decided. */
static void charge_in_between(int point)
{
	if (point != 4 || points++ != 0)
		return;
	seen = pcbatch_page_counter_read(&level[0]);
	result = pcbatch_page_counter_try_charge(&level[0], 5, NULL);
}

static void speculative_charge_may_show_and_never_raises_the_peak(void **state)
{
	(void)state;
	chain(1);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 10), 0);
	points = 0;
	inject = charge_in_between;
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], 20, NULL), -ENOMEM);
	inject = NULL;
	assert_int_equal(seen, 20);
	assert_int_equal(result, -ENOMEM);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_peak(&level[0]), 0);
	assert_int_equal(pcbatch_page_counter_failcnt(&level[0]), 2);
}

/* Another's charge, which will be refused, is in usage while this one is granted. */
static void speculate_in_between(int point)
{
	if (point == 4 && points++ == 0)
		(void)pcbatch_priv_fetch_add(&level[0].usage, 20);
}

static void granted_beside_a_speculation_peaks_within_the_limit(void **state)
{
	(void)state;
	chain(1);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 10), 0);
	points = 0;
	inject = speculate_in_between;
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], 3, NULL), 0);
	inject = NULL;
	assert_int_equal(pcbatch_page_counter_uncharge(&level[0], 20), 0);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 3);
	assert_in_range(pcbatch_page_counter_peak(&level[0]), 3, 10);
}

/* Between set_max's store and its second look: one that got in under the old limit. */
static void force_in_between(int point)
{
	if (point == 4 && points++ == 0)
		(void)pcbatch_page_counter_charge(&level[0], 5);
}

static void set_max_sees_a_charge_that_did_not_see_it(void **state)
{
	(void)state;
	chain(1);
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 100), 0);
	assert_int_equal(pcbatch_page_counter_charge(&level[0], 8), 0);
	points = 0;
	inject = force_in_between;
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 10), -EBUSY);
	inject = NULL;
	assert_int_equal(points, 1);
	assert_int_equal(pcbatch_page_counter_max(&level[0]), 100);
	assert_int_equal(pcbatch_page_counter_read(&level[0]), 13);
}

static void release_in_between(int point)
{
	if (point == 4 && points++ == 0)
		(void)pcbatch_page_counter_charge(&level[0], 5);
	else if (point == 4)
		(void)pcbatch_page_counter_uncharge(&level[0], 1);
}

/* Goes round again rather than fail: by the second look there is room. */
static void set_max_goes_round_again(void **state)
{
	(void)state;
	chain(1);
	assert_int_equal(pcbatch_page_counter_charge(&level[0], 4), 0);
	points = 0;
	inject = release_in_between;
	assert_int_equal(pcbatch_page_counter_set_max(&level[0], 9), 0);
	inject = NULL;
	assert_int_equal(points, 1);
	assert_int_equal(pcbatch_page_counter_max(&level[0]), 9);
	assert_int_equal(pcbatch_page_counter_try_charge(&level[0], 1, NULL), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty_and_unlimited),
		cmocka_unit_test(cycles_are_refused),
		cmocka_unit_test(rule_31_rollback_at_every_level),
		cmocka_unit_test(peak_moves_only_after_every_level_accepted),
		cmocka_unit_test(forced_charge_goes_over_and_moves_peaks),
		cmocka_unit_test(rule_10_boundary_of_max),
		cmocka_unit_test(read_is_never_below_zero),
		cmocka_unit_test(arguments_out_of_range_change_nothing),
		cmocka_unit_test(set_max_leaves_the_old_limit_when_busy),
		cmocka_unit_test(underflow_is_clamped_reported_and_not_taken_from_the_parent),
		cmocka_unit_test(speculative_charge_may_show_and_never_raises_the_peak),
		cmocka_unit_test(granted_beside_a_speculation_peaks_within_the_limit),
		cmocka_unit_test(set_max_sees_a_charge_that_did_not_see_it),
		cmocka_unit_test(set_max_goes_round_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
