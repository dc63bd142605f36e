/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what a domain does with memory: what objects cost, that it can't go while
 * anything lives in it, and that allocation failure at any point leaves nothing behind.
 */
#include "util.h"

static struct pcbatch_domain_attr defaults(void)
{
	struct pcbatch_domain_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(pcbatch_domain_attr_init(&attr), 0);
	return attr;
}

static void destroy_is_busy_while_anything_lives(void **state)
{
	struct box *box = box_open(defaults());
	struct pcbatch_counter c;
	struct pcbatch_group *g;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EBUSY);
	pcbatch_counter_add(&c, 3);
	assert_int_equal(pcbatch_counter_sum(&c), 3);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	g = group_new(box, NULL);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EBUSY);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EBUSY);
	assert_live(g, 1);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), 0);
	assert_int_equal(box->memory.live, 0);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EINVAL);
	free(box);
}

/* rule 29: what things cost is measured. A counter: 16 bytes of the caller's, 16 a CPU, 16 shared. */
static void rule_29_sizes(void **state)
{
	enum { COUNTERS = 3 * 4096 };
	struct pcbatch_counter *c = (struct pcbatch_counter *)calloc(COUNTERS, sizeof(*c));
	struct pcbatch_domain_attr attr = defaults();
	size_t per_cpu, regions, i;
	struct pcbatch_group *g;
	struct box *box;

	(void)state;
	attr.cpus = 2;
	attr.current_cpu = box_cpu;
	box = box_open(attr);
	regions = box->memory.bytes;
	assert_non_null(c);
	for (i = 0; i < COUNTERS; i++)
		assert_int_equal(pcbatch_counter_init(&c[i], &box->dom, 0), 0);
	for (i = 1; i < 1000; i++)
		assert_int_equal(c[i].cells - c[i - 1].cells, 16);
	/* With what a region's head and the stock take, three regions' worth of counters needs a fourth piece at most. */
	assert_in_range(box->memory.bytes, 3 * regions, 4 * regions);
	per_cpu = (size_t)(c[1].cells - c[0].cells);
	for (i = 0; i < COUNTERS; i++)
		assert_int_equal(pcbatch_counter_destroy(&c[i]), 0);
	g = group_new(box, NULL);
	printf("counter: %zu bytes + %zu a CPU + %zu shared; group: %d + %zu a CPU and as many shared (%u items); domain: %zu\n",
	       sizeof(*c), per_cpu, sizeof(struct pcbatch_priv_counter_global), PCBATCH_PRIV_OWNER_BYTES,
	       pcbatch_priv_stats_size(&box->dom), box->dom.attr.stat_items, sizeof(struct pcbatch_domain));
	if (sizeof(void *) == 8) {
		assert_int_equal(sizeof(struct pcbatch_counter), 16);
		assert_int_equal(sizeof(struct pcbatch_group), 576);
		assert_int_equal(sizeof(struct pcbatch_domain), 576);
	}
	assert_int_equal(sizeof(struct pcbatch_priv_cell), 16);
	assert_int_equal(sizeof(struct pcbatch_priv_counter_global), 16);
	assert_int_equal(PCBATCH_PRIV_OWNER_BYTES, 640);
	assert_int_equal(pcbatch_priv_stats_size(&box->dom), sizeof(struct pcbatch_priv_stats_block) + 16);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
	free(c);
}

/* Each allocation in turn fails: -ENOMEM, nothing kept, and the same call works afterwards. */
static void failing_allocations(void **state)
{
	struct pcbatch_domain_attr attr = defaults();
	struct pcbatch_counter *c = (struct pcbatch_counter *)calloc(5000, sizeof(*c));
	struct box *box;
	size_t k, n, made;
	int err;

	(void)state;
	assert_non_null(c);
	box = box_new(&attr);
	for (k = 1;; k++) {
		box->memory.calls = 0;
		box->memory.fail_at = k;
		err = pcbatch_domain_init(&box->dom, &attr);
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(box->memory.live, 0);
		assert_int_equal(pcbatch_domain_destroy(&box->dom), -EINVAL);
	}
	assert_true(k > 1);
	assert_int_equal(box->memory.calls, k - 1);
	/* Counters, until a new piece of per-CPU memory is needed, by each call that this takes. */
	for (n = 0, made = 0; made < 4; n++) {
		size_t live = box->memory.live, counters = (size_t)box->dom.counters;

		assert_true(n < 5000);
		box->memory.calls = 0;
		box->memory.fail_at = made + 1;
		memset(&c[n], 0, sizeof(c[n]));
		err = pcbatch_counter_init(&c[n], &box->dom, 9);
		if (err != 0) {
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(box->memory.live, live);
			assert_int_equal(box->dom.counters, counters);
			assert_int_equal(pcbatch_counter_destroy(&c[n]), -EINVAL);
			made++;
			n--;
		} else if (box->memory.calls != 0) {
			made = 4;
		}
	}
	assert_int_equal(pcbatch_counter_sum(&c[n - 1]), 9);
	assert_int_equal(pcbatch_counter_sum(&c[0]), 9);
	while (n-- > 0)
		assert_int_equal(pcbatch_counter_destroy(&c[n]), 0);
	box_close(box);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destroy_is_busy_while_anything_lives),
		cmocka_unit_test(rule_29_sizes),
		cmocka_unit_test(failing_allocations),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
