/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child forked while another thread is putting a block of statistics on its list, just before or just after it is
 * there, goes on with all blocks, none of them listed twice (found by tests/model/stats.pml).
 */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#include "stress.h"

static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine;
static int hook_at, forks;
static bool going_on, in_child;

static void update_all(int times)
{
	int g;

	for (; times > 0; times--)
		for (g = 0; g < tree.groups; g++) {
			STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[g], 0, 1), 0);
			mine.other[g]++;
		}
}

/* All but the update under way at the fork, which lists the block before it adds. */
static void check_all(void)
{
	int g, m;

	for (g = 0; g < tree.groups; g++) {
		int64_t all = 0, read = pcbatch_group_stat_read(tree.group[g], 0);

		for (m = g; m < tree.groups; m++)
			all += stress_below(&tree, m, g) ? mine.other[m] : 0;
		STRESS_EQUAL(read, all);
	}
}

static void *lost_in_child(void *arg)
{
	(void)arg;
	stress_pin(0);
	update_all(2);
	STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
	check_all();
	update_all(1);
	STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
	check_all();
	_exit(stress_status());
}

/*
 * The child never comes back to what this thread is at, as if another one had forked; or it does (going_on), as if a
 * signal handler had.
 */
static void test_hook(int n)
{
	pthread_t thread;
	pid_t pid;

	if (n != hook_at)
		return;
	hook_at = 0;
	forks++;
	pid = fork();
	if (pid > 0) {
		STRESS_EQUAL(stress_wait(pid), 0);
		return;
	}
	(void)alarm(20);
	in_child = going_on;
	if (in_child) {
		update_all(1);
		return;
	}
	/* On a thread whose mark is not the lost one's. */
	if (pthread_create(&thread, NULL, lost_in_child, NULL) == 0)
		(void)pthread_join(thread, NULL);
	_exit(1);
}

static void fork_at_both_points(void)
{
	static const int points[] = { 5, 39 };
	size_t i;

	forks = 0;
	stress_init(&tree, 5, NULL);
	memset(&mine, 0, sizeof(mine));
	stress_pin(0);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		update_all(1);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		/* Some are listed, then one more is. */
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[1], 0, 1), 0);
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[2], 0, 1), 0);
		mine.other[1]++;
		mine.other[2]++;
		hook_at = points[i];
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[3], 0, 1), 0);
		mine.other[3]++;
		if (in_child)
			update_all(1);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		check_all();
		if (in_child)
			_exit(stress_status());
	}
	STRESS_EQUAL(forks, 2);
	stress_unpin();
	stress_settle(&tree, &mine);
	assert_int_equal(stress_failures, 0);
}

static void in_the_middle_of_listing(void **state)
{
	(void)state;
	going_on = false;
	fork_at_both_points();
}

static void in_a_handler_that_returns(void **state)
{
	(void)state;
	going_on = true;
	fork_at_both_points();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(in_the_middle_of_listing),
		stress_test(in_a_handler_that_returns),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
