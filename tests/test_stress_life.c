/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves contract point 7 under storm: groups are created, cached on every CPU,
 * taken offline and destroyed while other threads evict, drain and flush them, and
 * their ids are used again at once. No page, no unit of a statistic and no
 * reference is lost, and the domain can end.
 */
#include "stress.h"

#define PARENTS 3
#define LIFERS 6

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_group *parents[PARENTS];
static int64_t parent_stat[PARENTS]; /* atomics: what destroyed children left */
static uint32_t stop;
static uint64_t operations, busy;

static void *lifer(void *arg)
{
	uint64_t rng = 1000 + (uint64_t)(uintptr_t)arg, rounds = stress_scaled(4000), r, ops = 0;
	uint64_t soak = stress_env("PCBATCH_SOAK_SECONDS", 0), deadline = stress_now_ns() + soak * 1000000000u;

	while (soak == 0 ? rounds-- > 0 : stress_now_ns() < deadline) {
		struct pcbatch_group *g = NULL, *child = NULL;
		int64_t live = 0, stat = 0, under = 0;
		int p, i, err;

		r = stress_random(&rng);
		p = (int)(r % PARENTS);
		STRESS_EQUAL(pcbatch_group_create(&dom, parents[p], NULL, &g), 0);
		if (g == NULL)
			break;
		STRESS_EQUAL(pcbatch_group_current(g), 0);
		STRESS_EQUAL(pcbatch_group_stat_read_signed(g, STRESS_ITEM), 0);
		if ((r >> 8 & 3) == 0)
			STRESS_EQUAL(pcbatch_group_create(&dom, g, NULL, &child), 0);
		/* Leave something on every CPU. */
		for (i = 0; i < 6; i++) {
			int64_t pages = 1 + (int64_t)(stress_random(&rng) % 40), n = (int64_t)(stress_random(&rng) % 21) - 10;

			stress_pin(i);
			STRESS_EQUAL(pcbatch_group_charge_stat(g, (uint64_t)pages, n), 0);
			live += pages;
			stat += n;
			STRESS_EQUAL(pcbatch_group_stat_mod(g, STRESS_ITEM, 3), 0);
			stat += 3;
			STRESS_EQUAL(pcbatch_group_charge_bytes(g, 100), 0);
			if (child != NULL) {
				STRESS_EQUAL(pcbatch_group_charge_stat(child, 2, 5), 0);
				under += 5;
			}
			ops += 4;
		}
		if ((r >> 10 & 3) == 0)
			STRESS_EQUAL(pcbatch_group_offline(g), 0);
		if ((r >> 12 & 1) == 0) {
			err = pcbatch_group_destroy(g);
			STRESS_EQUAL(err, -EBUSY);
		}
		for (i = 0; i < 6; i++) {
			stress_pin(i + 1);
			STRESS_EQUAL(pcbatch_group_uncharge_bytes(g, 100), 0);
			if (child != NULL)
				STRESS_EQUAL(pcbatch_group_uncharge_stat(child, 2, 1), 0);
			under -= child != NULL;
		}
		while (live > 0) {
			int64_t pages = 1 + (int64_t)(stress_random(&rng) % 40);

			pages = pages < live ? pages : live;
			STRESS_EQUAL(pcbatch_group_uncharge_stat(g, (uint64_t)pages, 1), 0);
			live -= pages;
			stat--;
			ops++;
		}
		/* Once more: a call in flight of another group may hold what it has just evicted. */
		while (child != NULL && (err = pcbatch_group_destroy(child)) == -EBUSY)
			(void)__atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
		while ((err = pcbatch_group_destroy(g)) == -EBUSY)
			(void)__atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
		STRESS_EQUAL(err, 0);
		(void)__atomic_add_fetch(&parent_stat[p], stat + under, __ATOMIC_SEQ_CST);
	}
	(void)__atomic_add_fetch(&operations, ops, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *evictor(void *arg)
{
	struct pcbatch_group *own[9];
	uint64_t rng = 5 + (uint64_t)(uintptr_t)arg;
	int i;

	for (i = 0; i < 9; i++)
		STRESS_EQUAL(pcbatch_group_create(&dom, NULL, NULL, &own[i]), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		i = (int)(stress_random(&rng) % 9);
		stress_pin((int)(stress_random(&rng) & 7));
		STRESS_EQUAL(pcbatch_group_charge_stat(own[i], 1, 1), 0);
		STRESS_EQUAL(pcbatch_group_charge_bytes(own[i], 9), 0);
		STRESS_EQUAL(pcbatch_group_uncharge_stat(own[i], 1, 1), 0);
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(own[i], 9), 0);
		if ((stress_random(&rng) & 15) == 0)
			STRESS_EQUAL(pcbatch_group_drain_subtree(parents[i % PARENTS]), 0);
		if ((stress_random(&rng) & 15) == 0)
			STRESS_EQUAL(pcbatch_stats_flush(&dom, (stress_random(&rng) & 1) != 0 ? NULL : &parents[i % PARENTS]->owner.stats), 0);
		if ((stress_random(&rng) & 63) == 0)
			STRESS_EQUAL(pcbatch_group_reap(&dom), 0);
	}
	for (i = 0; i < 9; i++)
		while (pcbatch_group_destroy(own[i]) == -EBUSY)
			;
	return NULL;
}

static void lives(void **state)
{
	struct pcbatch_domain_attr attr;
	pthread_t thread[LIFERS + 2];
	uint64_t start = stress_now_ns();
	uintptr_t i;

	(void)state;
	stress_find_cpus();
	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = STRESS_ITEMS;
	attr.stock_item = STRESS_ITEM;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	for (i = 0; i < PARENTS; i++)
		assert_int_equal(pcbatch_group_create(&dom, i == 0 ? NULL : parents[0], NULL, &parents[i]), 0);
	for (i = 0; i < LIFERS + 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, i < LIFERS ? lifer : evictor, (void *)i), 0);
	for (i = 0; i < LIFERS + 2; i++) {
		if (i == LIFERS)
			__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
		(void)pthread_join(thread[i], NULL);
	}
	stress_print("lives", operations, busy, start);
	assert_int_equal(pcbatch_stock_drain_all(&dom), 0);
	assert_int_equal(pcbatch_group_reap(&dom), 0);
	assert_int_equal(pcbatch_stats_flush(&dom, NULL), 0);
	assert_int_equal(dom.owners, PARENTS);
	/* Ids were used again: no more than were ever alive at a time, and some that slots pinned. */
	assert_true(dom.owner_ids <= PARENTS + 2 * 9 + 2 * LIFERS + 64);
	parent_stat[0] += parent_stat[1] + parent_stat[2];
	for (i = PARENTS; i-- > 0;) {
		STRESS_EQUAL(pcbatch_group_stat_read_signed(parents[i], STRESS_ITEM), parent_stat[i]);
		STRESS_EQUAL(pcbatch_group_current(parents[i]), 0);
		STRESS_EQUAL(parents[i]->owner.refs, 1);
		STRESS_EQUAL(pcbatch_group_underflow(parents[i]), 0);
		STRESS_EQUAL(pcbatch_group_destroy(parents[i]), 0);
	}
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

/* Groups go offline while others charge them; from then on no slot is theirs. */
static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

static void *offliner(void *arg)
{
	int g, i;

	(void)arg;
	for (i = 0; i < 5; i++) {
		(void)usleep(3000);
		for (g = storm.groups - 1; g >= 0; g -= 3)
			STRESS_EQUAL(pcbatch_group_offline(storm.group[g]), 0);
	}
	return NULL;
}

static void offline_under_fire(void **state)
{
	int round;

	(void)state;
	for (round = 0; round < 20; round++) {
		struct stress_worker w[4];
		struct stress_account all;
		int64_t pages, stat, bytes;
		pthread_t thread;
		int g, i;

		stress_init(&storm, 9, NULL);
		storm.bytes = true;
		memset(w, 0, sizeof(w));
		memset(&all, 0, sizeof(all));
		for (i = 0; i < 4; i++) {
			w[i].s = &storm;
			w[i].main.rng = (uint64_t)(round * 4 + i + 1) * 77777;
			w[i].budget = stress_scaled(50000);
			assert_int_equal(pthread_create(&w[i].thread, NULL, stress_work, &w[i]), 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, offliner, NULL), 0);
		for (i = 0; i < 4; i++) {
			(void)pthread_join(w[i].thread, NULL);
			stress_add(&all, &w[i].main);
		}
		(void)pthread_join(thread, NULL);
		/* Before any drain. */
		for (g = storm.groups - 1; g >= 0; g -= 3) {
			stress_cached(&storm, g, &pages, &stat, &bytes);
			STRESS_EQUAL(pages, 0);
			STRESS_EQUAL(stat, 0);
			STRESS_EQUAL(bytes, 0);
		}
		stress_settle(&storm, &all);
	}
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(lives),
		stress_test(offline_under_fire),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
