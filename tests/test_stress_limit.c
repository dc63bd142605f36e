/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves contract point 3: what is granted never exceeds max at any level and at
 * any instant, also while limits move; and a refusal is right, however the pages
 * that fill the limit are spread over the CPUs' slots.
 */
#include "stress.h"

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

/* Limits so tight that slots alone could fill them. Each grant is checked against them. */
static void tight(void **state)
{
	(void)state;
	stress_init(&storm, 11, NULL);
	storm.track = true;
	storm.timer_us = 200;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH | STRESS_CHURN;
	stress_limit(&storm, 0, 300);
	stress_limit(&storm, 2, 70);
	stress_limit(&storm, 3, 9);
	stress_limit(&storm, 8, 1);
	stress_run(&storm, "tight", 8, 100000);
	assert_int_equal(stress_failures, 0);
}

static void moving(void **state)
{
	(void)state;
	stress_init(&storm, 11, NULL);
	storm.track = true;
	storm.timer_us = 200;
	storm.bytes = true;
	storm.disturbers = STRESS_ALL;
	stress_limit(&storm, 0, 2000);
	stress_limit(&storm, 2, 400);
	stress_limit(&storm, 3, 100);
	stress_run(&storm, "moving", 8, 100000);
	assert_int_equal(stress_failures, 0);
}

/* Owners 1 to 7 have a slot of their own on every CPU, so nobody ever holds another's pages. */
#define EXACT 6

struct exact {
	struct pcbatch_domain *dom;
	struct pcbatch_group *parent, *left, *right;
	uint64_t rng, rounds;
	pthread_t thread;
};

/* Caches pages of two children on changing CPUs, then asks for all that the parent's limit leaves. */
static void *exact_work(void *arg)
{
	struct exact *e = (struct exact *)arg;
	uint64_t i, j;

	for (i = 0; i < e->rounds; i++) {
		int64_t max = 1 + (int64_t)(stress_random(&e->rng) % 500), live = 0, left = 0, pages;

		/* Nobody else charges the parent, and what is alive is zero. */
		STRESS_EQUAL(pcbatch_group_set_max(e->parent, max), 0);
		for (j = stress_random(&e->rng) % 6; j > 0; j--) {
			stress_pin((int)(stress_random(&e->rng) & 0xff));
			pages = 1 + (int64_t)(stress_random(&e->rng) % 90);
			if (live + pages > max)
				continue;
			if ((j & 1) != 0) {
				STRESS_EQUAL(pcbatch_group_charge(e->left, (uint64_t)pages), 0);
				left += pages;
			} else {
				STRESS_EQUAL(pcbatch_group_charge(e->right, (uint64_t)pages), 0);
			}
			live += pages;
		}
		pages = left / 2;
		STRESS_EQUAL(pcbatch_group_uncharge(e->left, (uint64_t)pages), 0);
		live -= pages;
		left -= pages;
		stress_pin((int)(stress_random(&e->rng) & 0xff));
		STRESS_EQUAL(pcbatch_group_charge(e->right, (uint64_t)(max - live)), 0);
		STRESS_EQUAL(pcbatch_group_charge(e->left, 1), -ENOMEM);
		STRESS_EQUAL(pcbatch_group_charge(e->right, 1), -ENOMEM);
		STRESS_EQUAL(pcbatch_group_uncharge(e->right, (uint64_t)(max - left)), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(e->left, (uint64_t)left), 0);
	}
	return NULL;
}

static void exact_run(unsigned int threads, uint64_t rounds, const struct pcbatch_domain_attr *attr)
{
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	struct exact e[EXACT / 3];
	unsigned int i;

	stress_find_cpus();
	memset(e, 0, sizeof(e));
	assert_int_equal(pcbatch_domain_init(&dom, attr), 0);
	for (i = 0; i < threads; i++) {
		e[i].dom = &dom;
		e[i].rng = 17 + i;
		e[i].rounds = stress_scaled(rounds);
		assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &e[i].parent), 0);
		assert_int_equal(pcbatch_group_create(&dom, e[i].parent, NULL, &e[i].left), 0);
		assert_int_equal(pcbatch_group_create(&dom, e[i].parent, NULL, &e[i].right), 0);
	}
	for (i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&e[i].thread, NULL, exact_work, &e[i]), 0);
	for (i = 0; i < threads; i++)
		(void)pthread_join(e[i].thread, NULL);
	assert_int_equal(pcbatch_stock_drain_all(&dom), 0);
	for (i = 0; i < threads; i++) {
		assert_int_equal(pcbatch_group_current(e[i].parent), 0);
		assert_int_equal(pcbatch_group_destroy(e[i].left), 0);
		assert_int_equal(pcbatch_group_destroy(e[i].right), 0);
		assert_int_equal(pcbatch_group_destroy(e[i].parent), 0);
	}
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

static void refusals_are_right(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	exact_run(1, 2500, &attr);
	attr.stock_batch = 1000;
	exact_run(1, 2500, &attr);
	attr.stock_batch = 1;
	exact_run(1, 2500, &attr);
}

/* Two threads at a time, each with a subtree of its own: neither may cost the other a page. */
static void refusals_are_right_together(void **state)
{
	(void)state;
	exact_run(EXACT / 3, 5000, NULL);
}

/* A limit on two levels, each filled by what is cached under it elsewhere. */
static void two_levels(void **state)
{
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	struct pcbatch_group *top = NULL, *middle = NULL, *leaf = NULL, *aunt = NULL;
	int round;

	(void)state;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &top), 0);
	assert_int_equal(pcbatch_group_create(&dom, top, NULL, &middle), 0);
	assert_int_equal(pcbatch_group_create(&dom, top, NULL, &aunt), 0);
	assert_int_equal(pcbatch_group_create(&dom, middle, NULL, &leaf), 0);
	assert_int_equal(pcbatch_group_set_max(top, 200), 0);
	assert_int_equal(pcbatch_group_set_max(middle, 120), 0);
	for (round = 0; round < 200; round++) {
		stress_pin(round);
		assert_int_equal(pcbatch_group_charge(leaf, 1), 0);
		stress_pin(round + 1);
		assert_int_equal(pcbatch_group_charge(aunt, 80), 0);
		assert_int_equal(pcbatch_group_uncharge(aunt, 40), 0);
		assert_int_equal(pcbatch_group_uncharge(aunt, 40), 0);
		stress_pin(round + round / 2);
		assert_int_equal(pcbatch_group_charge(leaf, 119), 0);
		assert_int_equal(pcbatch_group_charge(aunt, 80), 0);
		assert_int_equal(pcbatch_group_charge(aunt, 1), -ENOMEM);
		assert_int_equal(pcbatch_group_uncharge(aunt, 80), 0);
		assert_int_equal(pcbatch_group_uncharge(leaf, 120), 0);
	}
	stress_unpin();
	assert_int_equal(pcbatch_group_destroy(leaf), 0);
	assert_int_equal(pcbatch_group_destroy(middle), 0);
	assert_int_equal(pcbatch_group_destroy(aunt), 0);
	assert_int_equal(pcbatch_group_destroy(top), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

/* The rest of a started page belongs to whoever asks next, on whatever CPU. */
static void bytes_of_a_started_page(void **state)
{
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	struct pcbatch_group *g = NULL;

	(void)state;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	assert_int_equal(pcbatch_group_set_max(g, 1), 0);
	stress_pin(0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 10), 0);
	stress_pin(1);
	STRESS_EQUAL(pcbatch_group_charge_bytes(g, 10), 0);
	STRESS_EQUAL(pcbatch_group_drain(g), 0);
	STRESS_EQUAL(pcbatch_group_charge_bytes(g, 4076), 0);
	STRESS_EQUAL(pcbatch_group_charge_bytes(g, 1), -ENOMEM);
	stress_unpin();
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(tight),
		stress_test(moving),
		stress_test(refusals_are_right),
		stress_test(refusals_are_right_together),
		stress_test(two_levels),
		stress_test(bytes_of_a_started_page),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
