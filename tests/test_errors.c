/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that meet on their way: what several owners, lines or CPUs did wrong comes out of a drain once, as the first
 * of them, and everything that was drained is handled. And arguments at the edges that nothing else comes to.
 */
#include "util.h"

static struct box *two_cpus(void)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 2;
	attr.current_cpu = box_cpu;
	return box_open(attr);
}

/* More was given back than taken, pages and bytes, by two groups on two CPUs. */
static void over_uncharge(struct box *box, struct pcbatch_group *g[2])
{
	int i;

	for (i = 0; i < 2; i++)
		for (box->cpu = 0; box->cpu < 2; box->cpu++) {
			assert_int_equal(pcbatch_group_uncharge(g[i], 3), 0);
			assert_int_equal(pcbatch_group_uncharge_bytes(g[i], 2 * 4096), 0);
		}
	box->cpu = 0;
}

static void end(struct box *box, struct pcbatch_group *g[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		assert_true(pcbatch_group_underflow(g[i]) > 0);
		assert_int_equal(pcbatch_group_current(g[i]), 0);
		assert_int_equal(pcbatch_group_destroy(g[i]), -ERANGE);
	}
	box_close(box);
}

static void a_drain_reports_the_first_of_many(void **state)
{
	struct pcbatch_group *g[2];
	struct box *box = two_cpus();
	int64_t bytes = -7;

	(void)state;
	g[0] = group_new(box, NULL);
	g[1] = group_new(box, g[0]);
	over_uncharge(box, g);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), -ERANGE);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	over_uncharge(box, g);
	assert_int_equal(pcbatch_group_bytes(g[0], &bytes), -ERANGE);
	assert_int_equal(bytes, -7);
	assert_int_equal(pcbatch_group_bytes(g[0], &bytes), 0);
	assert_int_equal(bytes, 0);
	over_uncharge(box, g);
	assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), -ERANGE);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), -ERANGE);
	/* Children first. */
	assert_int_equal(pcbatch_group_destroy(g[1]), -ERANGE);
	assert_int_equal(pcbatch_group_destroy(g[0]), -ERANGE);
	box_close(box);
}

static void large_uncharges_report_at_once(void **state)
{
	struct pcbatch_group *g[2];
	struct box *box = two_cpus();

	(void)state;
	g[0] = group_new(box, NULL);
	g[1] = group_new(box, NULL);
	assert_int_equal(pcbatch_group_uncharge(g[0], 100000), -ERANGE);
	assert_int_equal(pcbatch_group_uncharge_bytes(g[0], UINT64_C(100000) * 4096 + 1), -ERANGE);
	assert_int_equal(pcbatch_group_uncharge_bytes(g[1], UINT64_C(100000) * 4096), -ERANGE);
	assert_int_equal(pcbatch_group_offline(g[0]), 0);
	assert_int_equal(pcbatch_group_offline(g[1]), 0);
	/* Offline: pages and bytes both go past the slots, and both are too many. */
	assert_int_equal(pcbatch_group_uncharge_bytes(g[0], UINT64_C(30) * 4096 + 4095), -ERANGE);
	assert_int_equal(pcbatch_group_uncharge_bytes(g[0], 4095), 0);
	assert_true(pcbatch_group_underflow(g[0]) >= 200000);
	end(box, g);
}

static void memory_of_the_c_library(void **state)
{
	volatile size_t huge = SIZE_MAX - 8;
	char *p;

	(void)state;
	assert_null(pcbatch_priv_libc_zalloc(NULL, huge, 64));
	assert_null(pcbatch_priv_libc_zalloc(NULL, huge / 2, 4096));
	p = (char *)pcbatch_priv_libc_zalloc(NULL, 3, 1);
	assert_non_null(p);
	assert_int_equal(p[0] | p[1] | p[2], 0);
	pcbatch_priv_libc_free(NULL, p, 3, 1);
}

static void a_flush_at_time_zero(void **state)
{
	struct box *box = two_cpus();
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_stat_mod(g, 0, 5), 0);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, 0), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0), 5);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drain_reports_the_first_of_many),
		cmocka_unit_test(large_uncharges_report_at_once),
		cmocka_unit_test(memory_of_the_c_library),
		cmocka_unit_test(a_flush_at_time_zero),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
