/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch_group_bytes and error_bound: what a group and those below it are charged with, to the byte and at most. */
#include "util.h"

#define SIZES 9

static const uint64_t sizes[SIZES] = { 1, 15, 100, 4095, 4096, 4097, 30000, 65536, 1000003 };

static int the_cpu_is;

static int the_cpu(void *ctx)
{
	(void)ctx;
	return the_cpu_is;
}

static void test_bytes(struct pcbatch_group *g, int64_t expected)
{
	int64_t bytes = -1;

	assert_int_equal(pcbatch_group_bytes(g, &bytes), 0);
	assert_int_equal(bytes, expected);
}

static void to_the_byte_on_every_cpu(void **state)
{
	struct pcbatch_domain dom;
	struct pcbatch_group *g = NULL;
	int64_t expected = 0;
	int round, i;

	(void)state;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	test_bytes(g, 0);
	for (round = 0; round < 40; round++) {
		pin(nth_cpu(round % 2));
		for (i = 0; i < SIZES; i++) {
			bool charge = round < 20;

			assert_int_equal(charge ? pcbatch_group_charge_bytes(g, sizes[i])
						: pcbatch_group_uncharge_bytes(g, sizes[(i + 4) % SIZES]), 0);
			expected += charge ? (int64_t)sizes[i] : -(int64_t)sizes[(i + 4) % SIZES];
			/* Every other round keeps the slots warm. */
			if (round % 2 != 0)
				test_bytes(g, expected);
		}
	}
	test_bytes(g, 0);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

static void a_tree_adds_up_and_siblings_do_not_count(void **state)
{
	struct pcbatch_domain dom;
	struct pcbatch_group *top = NULL, *mid = NULL, *leaf = NULL, *other = NULL;

	(void)state;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &top), 0);
	assert_int_equal(pcbatch_group_create(&dom, top, NULL, &mid), 0);
	assert_int_equal(pcbatch_group_create(&dom, mid, NULL, &leaf), 0);
	assert_int_equal(pcbatch_group_create(&dom, top, NULL, &other), 0);
	assert_int_equal(pcbatch_group_charge_bytes(top, 1), 0);
	assert_int_equal(pcbatch_group_charge_bytes(mid, 10), 0);
	assert_int_equal(pcbatch_group_charge_bytes(leaf, 5000), 0);
	assert_int_equal(pcbatch_group_charge_bytes(other, 777), 0);
	assert_int_equal(pcbatch_group_charge(leaf, 2), 0);
	test_bytes(leaf, 5000 + 2 * 4096);
	test_bytes(mid, 5010 + 2 * 4096);
	test_bytes(other, 777);
	test_bytes(top, 5788 + 2 * 4096);
	/* top 6 pages, mid 5, leaf 4: the lowest that has no room is named. */
	assert_int_equal(pcbatch_group_set_max(top, 10), 0);
	assert_ptr_equal(pcbatch_group_limiting(leaf, 5), top);
	assert_int_equal(pcbatch_group_set_max(mid, 9), 0);
	assert_ptr_equal(pcbatch_group_limiting(leaf, 5), mid);
	assert_ptr_equal(pcbatch_group_limiting(leaf, 3), NULL);
	assert_ptr_equal(pcbatch_group_limiting(leaf, UINT64_MAX), leaf);
	assert_ptr_equal(pcbatch_group_limiting(NULL, 1), NULL);
	/* Reading has changed nothing. */
	test_bytes(top, 5788 + 2 * 4096);
	assert_int_equal(pcbatch_group_uncharge_bytes(other, 777), 0);
	assert_int_equal(pcbatch_group_destroy(other), 0);
	test_bytes(top, 5011 + 2 * 4096);
	assert_int_equal(pcbatch_group_uncharge(leaf, 2), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(leaf, 5000), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(mid, 10), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(top, 1), 0);
	test_bytes(top, 0);
	assert_int_equal(pcbatch_group_destroy(leaf), 0);
	assert_int_equal(pcbatch_group_destroy(mid), 0);
	assert_int_equal(pcbatch_group_destroy(top), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

/* Fills every slot that a subtree can have to its mark: current must come near the bound, never above it. */
static void the_bound_holds_and_is_no_wild_guess(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_domain dom;
	struct pcbatch_group *top = NULL, *g[9] = { NULL };
	int64_t one, bound;
	int i, cpu, part;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_GENERIC;
	attr.cpus = 2;
	attr.current_cpu = the_cpu;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &top), 0);
	one = pcbatch_group_error_bound(top);
	assert_int_equal(one, 2 * (128 + 16) + 1);
	for (i = 0; i < 9; i++)
		assert_int_equal(pcbatch_group_create(&dom, top, NULL, &g[i]), 0);
	bound = pcbatch_group_error_bound(top);
	assert_int_equal(bound, 2 * 7 * (128 + 16) + 10);
	assert_int_equal(pcbatch_group_error_bound(g[0]), one);
	assert_int_equal(pcbatch_group_charge(g[0], 4000), 0);
	for (i = 0; i < 9; i++) {
		assert_int_equal(pcbatch_group_charge_bytes(g[i], 20 * 4096), 0);
		assert_int_equal(pcbatch_group_charge(g[i], 256), 0);
	}
	for (cpu = 0; cpu < 2; cpu++)
		for (i = 0; i < 9; i++) {
			the_cpu_is = cpu;
			for (part = 0; part < 128; part++)
				assert_int_equal(pcbatch_group_uncharge(g[i], 1), 0);
			for (part = 0; part < 160; part++)
				assert_int_equal(pcbatch_group_uncharge_bytes(g[i], 256), 0);
			assert_true(pcbatch_group_current(top) - 4000 <= bound + (9 - i) * 300);
		}
	assert_true(pcbatch_group_current(top) - 4000 <= bound);
	assert_true(pcbatch_group_current(top) - 4000 > bound * 9 / 10);
	assert_int_equal(pcbatch_group_uncharge(g[0], 4000), 0);
	test_bytes(top, 0);
	for (i = 0; i < 9; i++)
		assert_int_equal(pcbatch_group_destroy(g[i]), 0);
	assert_int_equal(pcbatch_group_destroy(top), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

/*
 * The page is there, but its rest lies in another CPU's slot: no charge of a few bytes needs to go over
 * the limit, nor counts as refused, by force or not. (It did both.)
 */
static void bytes_that_fit_are_neither_forced_nor_refused(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_domain dom;
	struct pcbatch_group *g = NULL;
	int cpu;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_GENERIC;
	attr.cpus = 2;
	attr.current_cpu = the_cpu;
	the_cpu_is = 0;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	assert_int_equal(pcbatch_group_set_max(g, 1), 0);
	for (cpu = 0; cpu < 6; cpu++) {
		the_cpu_is = cpu % 2;
		assert_int_equal(cpu < 3 ? pcbatch_group_charge_bytes(g, 17) : pcbatch_group_charge_bytes_force(g, 17), 0);
		assert_int_equal(pcbatch_group_current(g), 1);
		assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 0);
		assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FORCED), 0);
	}
	/* One that really does not fit. */
	assert_int_equal(pcbatch_group_charge_bytes(g, 4096), -ENOMEM);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 1);
	assert_int_equal(pcbatch_group_charge_bytes_force(g, 4096), 0);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 1);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FORCED), 1);
	assert_int_equal(pcbatch_group_current(g), 2);
	test_bytes(g, 6 * 17 + 4096);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 6 * 17 + 4096), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

static void refusals_and_misuse(void **state)
{
	struct pcbatch_domain dom;
	struct pcbatch_group *g = NULL;
	int64_t bytes = -7;

	(void)state;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	assert_int_equal(pcbatch_group_set_max(g, 2), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 5000), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 3193), -ENOMEM);
	test_bytes(g, 5000);
	assert_int_equal(pcbatch_group_charge_bytes(g, 3192), 0);
	test_bytes(g, 8192);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 8192), 0);
#if !PCBATCH_DEBUG
	assert_int_equal(pcbatch_group_bytes(NULL, &bytes), -EINVAL);
#endif
	assert_int_equal(pcbatch_group_bytes(g, NULL), -EINVAL);
	assert_int_equal(bytes, -7);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_ptr_equal(pcbatch_group_limiting(g, 2), NULL);
	assert_ptr_equal(pcbatch_group_limiting(g, 3), g);
	/* More than an int64_t of bytes. */
	assert_int_equal(pcbatch_group_set_max(g, PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_group_charge(g, (uint64_t)PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_group_bytes(g, &bytes), 0);
	assert_int_equal(bytes, PCBATCH_PAGES_MAX * 4096);
	assert_int_equal(pcbatch_group_charge_force(g, 1, 0), 0);
	assert_int_equal(pcbatch_group_bytes(g, &bytes), 0);
	assert_int_equal(bytes, INT64_MAX);
	assert_int_equal(pcbatch_group_uncharge(g, (uint64_t)PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_the_byte_on_every_cpu),
		cmocka_unit_test(a_tree_adds_up_and_siblings_do_not_count),
		cmocka_unit_test(the_bound_holds_and_is_no_wild_guess),
		cmocka_unit_test(bytes_that_fit_are_neither_forced_nor_refused),
		cmocka_unit_test(refusals_and_misuse),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
