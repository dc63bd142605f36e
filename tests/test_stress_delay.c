/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that the drainers' and flushers' fences do what they are for: with a delay
 * at each point inside the sections a thread is nearly always in the middle of one
 * when its CPU's gate closes, its block is disarmed or its owner goes offline. A
 * drain that does not fence fails this within a fraction of a second.
 */
#if defined(__x86_64__)
/* A counted loop in memory of the thread's own: clobbers flags only. */
extern __thread unsigned int stress_delay;
#define PCBATCH_INJECT_ASM(n)                                        \
	"movl $60, %%fs:stress_delay@tpoff\n"                        \
	"77:\n\t"                                                    \
	"decl %%fs:stress_delay@tpoff\n\t"                           \
	"jnz 77b\n\t"
#endif
#include "stress.h"

__thread unsigned int stress_delay __attribute__((used));

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

static void *drain_without_pause(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		STRESS_EQUAL(pcbatch_stock_drain_all(&s->dom), 0);
		STRESS_EQUAL(pcbatch_group_drain(s->group[n++ % (uint64_t)s->groups]), 0);
		STRESS_EQUAL(pcbatch_stats_flush(&s->dom, NULL), 0);
		(void)usleep(10);
	}
	return NULL;
}

static void delayed(void **state)
{
	pthread_t drainer;
	int round;

	(void)state;
	for (round = 0; round < 4; round++) {
		stress_init(&storm, round % 2 != 0 ? 12 : 3, NULL);
		storm.hop_every = 32;
		storm.bytes = true;
		storm.timer_us = round < 2 ? 0 : 200;
		storm.disturbers = round < 2 ? 0 : STRESS_ALL & ~(unsigned int)STRESS_MAX;
		if (round < 2)
			assert_int_equal(pthread_create(&drainer, NULL, drain_without_pause, &storm), 0);
		storm.joined = round < 2 ? &drainer : NULL;
		stress_run(&storm, "delayed", 8, 50000);
	}
	assert_int_equal(stress_failures, 0);
}

/* The same for a group that goes offline: afterwards no slot may be its, drained or not. */
static void *stop_soon(void *arg)
{
	(void)arg;
	(void)usleep(1500);
	STRESS_EQUAL(pcbatch_group_offline(storm.group[2]), 0);
	STRESS_EQUAL(pcbatch_group_offline(storm.group[0]), 0);
	return NULL;
}

static void offline_delayed(void **state)
{
	static const int off[] = { 0, 2 };
	int round, i;

	(void)state;
	for (round = 0; round < 60; round++) {
		struct stress_worker w[4];
		struct stress_account all;
		int64_t pages, stat, bytes;
		pthread_t thread;

		stress_init(&storm, 3, NULL);
		storm.bytes = true;
		memset(w, 0, sizeof(w));
		memset(&all, 0, sizeof(all));
		for (i = 0; i < 4; i++) {
			w[i].s = &storm;
			w[i].main.rng = (uint64_t)(round * 4 + i + 1) * 99991;
			w[i].budget = stress_scaled(4000);
			assert_int_equal(pthread_create(&w[i].thread, NULL, stress_work, &w[i]), 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
		for (i = 0; i < 4; i++) {
			(void)pthread_join(w[i].thread, NULL);
			stress_add(&all, &w[i].main);
		}
		(void)pthread_join(thread, NULL);
		for (i = 0; i < 2; i++) {
			stress_cached(&storm, off[i], &pages, &stat, &bytes);
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
		stress_test(delayed),
		stress_test(offline_delayed),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
