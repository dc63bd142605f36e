/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what a batched counter shows in the middle of its own work, by looking from
 * inside it: a sum while a part is being folded holds it once, two folders take nothing
 * twice, and limited adds that race never pass the limit.
 */
static void (*inject)(int point);
#define PCBATCH_INJECT_C(n)       \
	do {                      \
		if (inject)       \
			inject(n); \
	} while (0)
#include "util.h"

static struct box *box_with(uint32_t batch)
{
	struct pcbatch_domain_attr attr;

	assert_int_equal(pcbatch_domain_attr_init(&attr), 0);
	attr.counter_batch = batch;
	return box_open(attr);
}

static struct pcbatch_counter victim;
static int64_t seen_sum[4], seen_read[4], granted;
static int depth, reached[4];

static void look(int point)
{
	if (point > 3)
		return;
	reached[point]++;
	seen_sum[point] = pcbatch_counter_sum(&victim);
	seen_read[point] = pcbatch_counter_read(&victim);
}

/* Contract 2: what a fold has taken and not yet handed on is in the sum, once. */
static void sum_is_exact_inside_a_fold(void **state)
{
	struct box *box = box_with(64);

	(void)state;
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 7), 0);
	memset(reached, 0, sizeof(reached));
	pcbatch_counter_add(&victim, 20);
	inject = look;
	pcbatch_counter_add(&victim, 1000);
	inject = NULL;
	assert_int_equal(reached[1], 1);
	assert_int_equal(seen_sum[1], 1027);
	assert_int_equal(seen_read[1], 7);
	assert_int_equal(reached[2], 1);
	assert_int_equal(seen_sum[2], 1027);
	assert_int_equal(seen_read[2], 7);
	assert_int_equal(pcbatch_counter_read(&victim), 1027);
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	box_close(box);
}

/* A flush, and an add, in the middle of another's flush. */
static void flush_inside(int point)
{
	if (point != 1 || reached[1]++ != 0)
		return;
	pcbatch_counter_flush(&victim);
	pcbatch_counter_add(&victim, 3);
}

static void two_folders_take_nothing_twice(void **state)
{
	struct box *box = box_with(64);

	(void)state;
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 0), 0);
	pcbatch_counter_add(&victim, 20);
	memset(reached, 0, sizeof(reached));
	inject = flush_inside;
	pcbatch_counter_flush(&victim);
	inject = NULL;
	/* The outer fold, the inner one, and the outer one again for what was added meanwhile. */
	assert_int_equal(reached[1], 3);
	assert_int_equal(pcbatch_counter_sum(&victim), 23);
	assert_int_equal(pcbatch_counter_read(&victim), 23);
	pcbatch_counter_flush(&victim);
	assert_int_equal(pcbatch_counter_read(&victim), 23);
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	box_close(box);
}

static void race_for_the_last_units(int point)
{
	if (point != 3 || depth != 0)
		return;
	depth++;
	seen_sum[3] = pcbatch_counter_sum(&victim);
	granted = pcbatch_counter_limited_add(&victim, 10, 6);
	depth--;
}

static void limited_adds_that_race_never_pass_the_limit(void **state)
{
	struct box *box = box_with(64);

	(void)state;
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 0), 0);
	inject = race_for_the_last_units;
	assert_true(pcbatch_counter_limited_add(&victim, 10, 6));
	inject = NULL;
	assert_int_equal(seen_sum[3], 6);
	assert_false(granted);
	assert_int_equal(pcbatch_counter_sum(&victim), 6);
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum_is_exact_inside_a_fold),
		cmocka_unit_test(two_folders_take_nothing_twice),
		cmocka_unit_test(limited_adds_that_race_never_pass_the_limit),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
