/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the promise of a flush: every update that returned before it is in what
 * can be read after it, at every level, whatever other threads are in the middle of
 * (queueing the same block, flushing, being created and destroyed); and nothing is
 * counted twice.
 */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#include "stress.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* no stepping through them */
#include <ucontext.h>
#endif

static __thread int hook_at; /* the point at which this thread parks, once */
static uint32_t parked, go;

static void park(void)
{
	__atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		(void)usleep(100);
}

static void test_hook(int n)
{
	if (n != hook_at)
		return;
	hook_at = 0;
	park();
}

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_group *top, *leaf;

static int cpu_zero(void *ctx)
{
	(void)ctx;
	return 0;
}

static void *queueing(void *arg)
{
	(void)arg;
	stress_pin(0);
	hook_at = 5;
	STRESS_EQUAL(pcbatch_group_stat_mod(leaf, 0, 1), 0);
	return NULL;
}

/* One thread stops while it puts the block on the list; another updates, returns, and flushes. */
static void flush_while_queueing(const struct pcbatch_domain_attr *attr)
{
	pthread_t thread;

	parked = go = 0;
	assert_int_equal(pcbatch_domain_init(&dom, attr), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &top), 0);
	assert_int_equal(pcbatch_group_create(&dom, top, NULL, &leaf), 0);
	assert_int_equal(pthread_create(&thread, NULL, queueing, NULL), 0);
	while (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST))
		(void)usleep(100);
	stress_pin(0);
	STRESS_EQUAL(pcbatch_group_stat_mod(leaf, 0, 10), 0);
	STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
	STRESS_CHECK(pcbatch_group_stat_read(leaf, 0) >= 10, pcbatch_group_stat_read(leaf, 0), 10);
	STRESS_CHECK(pcbatch_group_stat_read(top, 0) >= 10, pcbatch_group_stat_read(top, 0), 10);
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(thread, NULL);
	STRESS_EQUAL(pcbatch_group_stat_flush(top), 0);
	STRESS_EQUAL(pcbatch_group_stat_read(leaf, 0), 11);
	STRESS_EQUAL(pcbatch_group_stat_read(top, 0), 11);
	assert_int_equal(pcbatch_group_destroy(leaf), 0);
	assert_int_equal(pcbatch_group_destroy(top), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	stress_unpin();
	assert_int_equal(stress_failures, 0);
}

static void queueing_on_this_cpu(void **state)
{
	(void)state;
	flush_while_queueing(NULL);
}

/* The same line for both threads, also on the generic backend. */
static void queueing_on_one_line(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.current_cpu = cpu_zero;
	flush_while_queueing(&attr);
}

/* A child of a process that is queueing a block lists it by itself: who was at it is not there. */
static void forked_while_queueing(void **state)
{
	struct pcbatch_domain_attr attr;
	const struct pcbatch_priv_stats_block *block;
	pthread_t thread;
	pid_t pid;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.current_cpu = cpu_zero;
	parked = go = 0;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &leaf), 0);
	assert_int_equal(pthread_create(&thread, NULL, queueing, NULL), 0);
	while (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST))
		(void)usleep(100);
	block = pcbatch_priv_stats_at(&leaf->owner.stats, 0);
	pid = fork();
	if (pid == 0) {
		STRESS_EQUAL(pcbatch_group_stat_mod(leaf, 0, 10), 0);
		STRESS_EQUAL(block->armed, PCBATCH_PRIV_STATS_ARMED);
		STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
		STRESS_EQUAL(pcbatch_group_stat_read(leaf, 0), 10);
		STRESS_EQUAL(pcbatch_group_stat_mod(leaf, 0, 10), 0);
		STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
		STRESS_EQUAL(pcbatch_group_stat_read(leaf, 0), 20);
		_exit(stress_status());
	}
	STRESS_CHECK(pid > 0, pid, errno);
	if (pid > 0)
		STRESS_EQUAL(stress_wait(pid), 0);
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(thread, NULL);
	assert_int_equal(pcbatch_group_destroy(leaf), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* no stepping through them */
#define TRAP_FLAG 0x100

/*
 * The same with two of them: the first stops at each instruction of its update in
 * turn, a flush takes its block, the second starts to queue it again and stops there,
 * and the first goes on. What a third thread then updates must not be left out.
 */
static __thread uint64_t step_now;
static uint64_t step_at;
static uint32_t stopped, go_on, finished;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;

	(void)sig;
	(void)info;
	if (++step_now < step_at)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	__atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go_on, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void *stepping(void *arg)
{
	(void)arg;
	stress_pin(0);
	step_now = 0;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
	(void)pcbatch_group_stat_mod(leaf, 0, 1);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)TRAP_FLAG);
	__atomic_store_n(&finished, step_now < step_at ? 2 : 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *queueing_too(void *arg)
{
	(void)queueing(arg);
	__atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void wait_for(const uint32_t *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void two_queueing(void **state)
{
	struct pcbatch_domain_attr attr;
	struct sigaction action;
	pthread_t first, second;
	int64_t before;
	int line;

	(void)state;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	(void)sigaction(SIGTRAP, &action, NULL);
	for (line = 0; line < 2; line++) {
		(void)pcbatch_domain_attr_init(&attr);
		attr.current_cpu = line != 0 ? cpu_zero : NULL;
		assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
		assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &top), 0);
		assert_int_equal(pcbatch_group_create(&dom, top, NULL, &leaf), 0);
		stress_pin(0);
		for (step_at = 1; stress_failures == 0; step_at++) {
			parked = go = stopped = go_on = finished = 0;
			assert_int_equal(pthread_create(&first, NULL, stepping, NULL), 0);
			wait_for(&stopped);
			STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
			assert_int_equal(pthread_create(&second, NULL, queueing_too, NULL), 0);
			wait_for(&parked);
			__atomic_store_n(&go_on, 1, __ATOMIC_SEQ_CST);
			wait_for(&finished);
			before = pcbatch_group_stat_read(top, 0);
			STRESS_EQUAL(pcbatch_group_stat_mod(leaf, 0, 10), 0);
			STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
			STRESS_CHECK(pcbatch_group_stat_read(top, 0) >= before + 10, pcbatch_group_stat_read(top, 0), step_at);
			__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
			(void)pthread_join(first, NULL);
			(void)pthread_join(second, NULL);
			STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
			STRESS_EQUAL(pcbatch_group_stat_read(top, 0), 12 * (int64_t)step_at);
			if (finished == 2)
				break;
		}
		printf("two_queueing: %" PRIu64 " points\n", step_at);
		assert_int_equal(pcbatch_group_destroy(leaf), 0);
		assert_int_equal(pcbatch_group_destroy(top), 0);
		assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	}
	stress_unpin();
	assert_int_equal(stress_failures, 0);
}
#endif

/* -------------------------------------------------------------------- storm */

#define WRITERS 6
#define NODES 12

static struct pcbatch_group *node[NODES];
static uint64_t published[WRITERS][NODES]; /* what has returned, per writer and node */
static uint32_t stop;
static uint64_t operations;

static void *writer(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t rng = 3 + (uint64_t)me, n = stress_scaled(600000), i, r;
	uint64_t soak = stress_env("PCBATCH_SOAK_SECONDS", 0), deadline = stress_now_ns() + soak * 1000000000u;
	uint64_t mine[NODES] = { 0 };

	for (i = 0; soak == 0 ? i < n : (i & 0xfff) != 0 || stress_now_ns() < deadline; i++) {
		r = stress_random(&rng);
		STRESS_EQUAL(pcbatch_group_stat_mod(node[r % NODES], 1, 1 + (int64_t)(r >> 8 & 7)), 0);
		mine[r % NODES] += 1 + (r >> 8 & 7);
		__atomic_store_n(&published[me][r % NODES], mine[r % NODES], __ATOMIC_RELEASE);
		if ((r >> 20 & 127) == 0)
			stress_pin((int)(r >> 28 & 0xff));
	}
	(void)__atomic_add_fetch(&operations, i, __ATOMIC_SEQ_CST);
	return NULL;
}

static int64_t known(int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < WRITERS; i++)
		sum += __atomic_load_n(&published[i][n], __ATOMIC_ACQUIRE);
	return (int64_t)sum;
}

static void *flusher(void *arg)
{
	uint64_t rng = 1 + (uint64_t)(uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int n = (int)(stress_random(&rng) % NODES);
		int64_t before = known(n), read;

		if ((stress_random(&rng) & 1) != 0)
			STRESS_EQUAL(pcbatch_group_stat_flush(node[n]), 0);
		else
			STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
		read = pcbatch_group_stat_read_local(node[n], 1);
		STRESS_CHECK(read >= before, read, before);
		read = pcbatch_group_stat_read(node[n], 1);
		STRESS_CHECK(read >= before, read, before);
		if ((stress_random(&rng) & 3) == 0)
			(void)usleep(30);
	}
	return NULL;
}

/* Nodes that are made and destroyed below the others. */
static void *maker(void *arg)
{
	int64_t *left = (int64_t *)arg;
	uint64_t rng = 9;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct pcbatch_group *g = NULL;
		int n = (int)(stress_random(&rng) % NODES), i;

		STRESS_EQUAL(pcbatch_group_create(&dom, node[n], NULL, &g), 0);
		if (g == NULL)
			break;
		for (i = 0; i < 5; i++) {
			stress_pin(i);
			STRESS_EQUAL(pcbatch_group_stat_mod(g, 2, 100), 0);
		}
		left[n] += 500;
		STRESS_EQUAL(pcbatch_group_destroy(g), 0);
	}
	return NULL;
}

static void storm(void **state)
{
	struct pcbatch_domain_attr attr;
	pthread_t thread[WRITERS], other[3];
	int64_t left[NODES] = { 0 };
	uint64_t start = stress_now_ns();
	intptr_t i;
	int n, m;

	(void)state;
	stress_find_cpus();
	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = STRESS_ITEMS;
	attr.stat_batch = 3;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	for (n = 0; n < NODES; n++)
		assert_int_equal(pcbatch_group_create(&dom, n == 0 ? NULL : node[(n - 1) / 2], NULL, &node[n]), 0);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, writer, (void *)i), 0);
	assert_int_equal(pthread_create(&other[0], NULL, flusher, (void *)0), 0);
	assert_int_equal(pthread_create(&other[1], NULL, flusher, (void *)1), 0);
	assert_int_equal(pthread_create(&other[2], NULL, maker, left), 0);
	for (i = 0; i < WRITERS; i++)
		(void)pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 3; i++)
		(void)pthread_join(other[i], NULL);
	stress_print("stats", operations, 0, start);
	STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), 0);
	for (n = NODES - 1; n >= 0; n--) {
		int64_t expected = 0, made = 0;

		for (m = n; m < NODES; m++) {
			int up = m;

			while (up > n)
				up = (up - 1) / 2;
			if (up == n) {
				expected += known(m);
				made += left[m];
			}
		}
		STRESS_EQUAL(pcbatch_group_stat_read(node[n], 1), expected);
		STRESS_EQUAL(pcbatch_group_stat_read_local(node[n], 1), known(n));
		STRESS_EQUAL(pcbatch_group_stat_read(node[n], 2), made);
	}
	for (n = NODES - 1; n >= 0; n--)
		STRESS_EQUAL(pcbatch_group_destroy(node[n]), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(storm),
		stress_test(queueing_on_this_cpu),
		stress_test(queueing_on_one_line),
		stress_test(forked_while_queueing),
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* no stepping through them */
		stress_test(two_queueing),
#endif
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
