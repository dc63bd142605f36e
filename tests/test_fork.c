/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves contract point 6: a child's domain is usable at once, whatever the other
 * threads of the parent were doing (gates closed, slots held, locks taken), and
 * exact but for the calls they had in flight; three levels of ten children; forks
 * in signal handlers, at each instruction of a drain, and in the middle of a flush.
 */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#include "stress.h"

#if defined(__x86_64__)
#include <ucontext.h>
#endif

static __thread int hook_at;              /* the point at which this thread stops, once */
static __thread void (*hook_do)(void);    /* what it does there */
static uint32_t parked, go;

static void test_hook(int n)
{
	if (n != hook_at)
		return;
	hook_at = 0;
	hook_do();
}

static void park(void)
{
	__atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		(void)usleep(100);
}

static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine;

/* Gates, holds and locks are as they should be when nobody is inside. */
static void at_rest(void)
{
	uint32_t c;

	for (c = 0; c < tree.dom.lines; c++)
		STRESS_EQUAL(pcbatch_priv_stock(&tree.dom, c)->page.gate, 0);
	STRESS_EQUAL(tree.dom.install_gate & 0xffff, 0);
}

/* Everything works, slots included, and the numbers are to the unit. */
static void use(bool exact)
{
	struct pcbatch_stock_info before, after;
	struct pcbatch_group *g = NULL;
	int i;

	for (i = 0; i < tree.groups; i++) {
		stress_charge(&tree, &mine, i, 2, 1, false);
		stress_charge(&tree, &mine, i, 1, 1, false);
		stress_uncharge(&tree, &mine, i, 2, 1);
	}
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	at_rest();
	/* Slots are used again. */
	STRESS_EQUAL(pcbatch_stock_info_read(&tree.dom, &before), 0);
	for (i = 0; i < 50; i++) {
		stress_charge(&tree, &mine, 0, 1, 0, false);
		stress_uncharge(&tree, &mine, 0, 1, 0);
	}
	STRESS_EQUAL(pcbatch_stock_info_read(&tree.dom, &after), 0);
	STRESS_CHECK(after.hits >= before.hits + 60, after.hits, before.hits);
	STRESS_EQUAL(pcbatch_group_charge(tree.group[3], 100000), -ENOMEM);
	at_rest();
	pcbatch_counter_add(&tree.counter, 9);
	mine.count += 9;
	STRESS_EQUAL(pcbatch_group_create(&tree.dom, tree.group[0], NULL, &g), 0);
	STRESS_EQUAL(pcbatch_group_charge(g, 3), 0);
	STRESS_EQUAL(pcbatch_group_uncharge(g, 3), 0);
	STRESS_EQUAL(pcbatch_group_destroy(g), 0);
	STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, 64, 0, 0), 0);
	if (exact)
		stress_compare(&tree, &mine);
}

static void begin(void)
{
	memset(&mine, 0, sizeof(mine));
	stress_init(&tree, 9, NULL);
	stress_limit(&tree, 3, 5000);
	parked = go = 0;
}

static void end(void)
{
	at_rest();
	stress_settle(&tree, &mine);
	assert_int_equal(stress_failures, 0);
}

/* --------------------------------------------------------------- three levels */

static void generation(int level, bool exact)
{
	int i;

	for (i = 0; i < 10 && level < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			use(exact);
			generation(level + 1, exact);
			use(exact);
			_exit(stress_status());
		}
		STRESS_CHECK(pid > 0, pid, errno);
		if (i % 2 != 0)
			use(exact);
		if (pid > 0)
			STRESS_EQUAL(stress_wait(pid), 0);
	}
}

static void three_levels_of_ten(void **state)
{
	(void)state;
	begin();
	use(true);
	generation(0, true);
	end();
}

/* ----------------------------------------- another thread stopped in mid-call */

enum stopped { IN_DRAIN, IN_REFUSAL, IN_SET_MAX, IN_DESTROY, IN_OFFLINE, IN_ARM, IN_FOLD, IN_REFILL, STOPPED };

static enum stopped where;

static void *stop_inside(void *arg)
{
	struct pcbatch_group *g = (struct pcbatch_group *)arg;

	static const int point[STOPPED] = { 8, 8, 8, 8, 8, 5, 1, 7 };

	hook_do = park;
	hook_at = point[where];
	switch (where) {
	case IN_DRAIN:
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		break;
	case IN_REFUSAL:
		STRESS_EQUAL(pcbatch_group_charge(tree.group[3], 100000), -ENOMEM);
		break;
	case IN_SET_MAX:
		STRESS_EQUAL(pcbatch_group_set_max(tree.group[3], 0), -EBUSY);
		break;
	case IN_DESTROY:
		STRESS_EQUAL(pcbatch_group_destroy(g), 0);
		break;
	case IN_OFFLINE:
		STRESS_EQUAL(pcbatch_group_offline(g), 0);
		break;
	case IN_ARM:
		STRESS_EQUAL(pcbatch_group_stat_mod(g, 0, 0), 0);
		STRESS_EQUAL(pcbatch_group_stat_mod(g, 2, 5), 0);
		break;
	case IN_FOLD:
		pcbatch_counter_flush(&tree.counter);
		break;
	default:
		STRESS_EQUAL(pcbatch_group_charge(g, 5), 0);
		break;
	}
	/* The generic backend passes no point 8. */
	hook_at = 0;
	__atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void while_inside(void **state)
{
	(void)state;
	for (where = IN_DRAIN; where < STOPPED; where++) {
		struct pcbatch_group *g = NULL;
		pthread_t thread;
		int i;

		begin();
		use(true);
		assert_int_equal(pcbatch_group_create(&tree.dom, tree.group[1], NULL, &g), 0);
		/* Something to close a gate for, on a CPU that the child uses: what was cached has been drained. */
		for (i = 0; i < 2; i++) {
			stress_pin(i);
			stress_charge(&tree, &mine, 3, 2, 1, false);
			stress_charge(&tree, &mine, 0, 2, 1, false);
		}
		stress_unpin();
		assert_int_equal(pthread_create(&thread, NULL, stop_inside, g), 0);
		while (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST))
			(void)usleep(100);
		for (i = 0; i < 3; i++) {
			pid_t pid = fork();

			if (pid == 0) {
				/* None of these calls has given or taken anything yet, but the batch of the refill. */
				use(where != IN_REFILL);
				generation(2, where != IN_REFILL);
				_exit(stress_status());
			}
			STRESS_CHECK(pid > 0, pid, errno);
			/* The parent's own gates are still closed, and its calls go on. */
			if (where != IN_DESTROY && where != IN_SET_MAX) {
				stress_charge(&tree, &mine, 0, 2, 0, false);
				stress_uncharge(&tree, &mine, 0, 2, 0);
			}
			STRESS_EQUAL(stress_wait(pid), 0);
		}
		__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
		(void)pthread_join(thread, NULL);
		if (where == IN_REFILL)
			STRESS_EQUAL(pcbatch_group_uncharge(g, 5), 0);
		if (where != IN_DESTROY)
			STRESS_EQUAL(pcbatch_group_destroy(g), 0);
		use(where != IN_ARM); /* the destroyed group's update of item 2 is its parent's */
		end();
	}
}

/* --------------------------------------------------- forks in signal handlers */

static int forks;
static bool in_child;

/* Both processes go on from here; the child uses the domain at once, and what it interrupted continues. */
static void fork_and_use(void)
{
	pid_t pid = fork();
	int i;

	if (pid == 0) {
		in_child = true;
		for (i = 0; i < tree.groups; i++) {
			stress_charge(&tree, &mine, i, 2, 1, true);
			stress_uncharge(&tree, &mine, i, 2, 1);
		}
		STRESS_EQUAL(pcbatch_group_drain(tree.group[1]), 0);
		return;
	}
	forks++;
	STRESS_CHECK(pid > 0, pid, errno);
	if (pid > 0)
		STRESS_EQUAL(stress_wait(pid), 0);
}

static void fork_and_return(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		in_child = true;
		return;
	}
	forks++;
	STRESS_CHECK(pid > 0, pid, errno);
	if (pid > 0)
		STRESS_EQUAL(stress_wait(pid), 0);
}

static void leave_child(void)
{
	if (!in_child)
		return;
	use(true);
	_exit(stress_status());
}

static void inside_own_drain(void **state)
{
	int i, op;

	(void)state;
	begin();
	use(true);
	for (i = 0; i < 2; i++)
		for (op = 0; op < 3; op++) {
			/* Something is cached on one CPU, and what the child's handler caches may be on another. */
			STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			stress_pin(0);
			stress_charge(&tree, &mine, 3, 2, 1, false);
			stress_pin(1);
			hook_do = i == 0 ? fork_and_use : fork_and_return;
			hook_at = 8;
			if (op == 0)
				STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			else if (op == 1)
				STRESS_EQUAL(pcbatch_group_charge(tree.group[3], 100000), -ENOMEM);
			else
				STRESS_EQUAL(pcbatch_group_set_max(tree.group[3], 0), -EBUSY);
			hook_at = 0;
			leave_child();
			use(true);
		}
	stress_unpin();
	end();
}

#if defined(__x86_64__)
#define TRAP_FLAG 0x100

static uint64_t step_now, step_at;
static void (*step_action)(void);

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;

	(void)sig;
	(void)info;
	if (++step_now < step_at)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (step_now == step_at)
		step_action();
}

static void step_on(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

static void step_off(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)TRAP_FLAG);
}

/* A handler forks in the middle of a drain and of a refused charge. */
static void at_each_instruction(void **state)
{
	struct sigaction action;
	uint64_t stride;
	int op;

	(void)state;
	begin();
	use(true);
	stress_pin(0);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	(void)sigaction(SIGTRAP, &action, NULL);
	step_action = fork_and_use;
	forks = 0;
	stride = pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ ? 13 : 97;
	stride = stress_env("PCBATCH_SOAK_SECONDS", 0) != 0 ? 1 : stride;
	for (op = 0; op < 2; op++)
		for (step_at = 1 + (uint64_t)op; stress_failures == 0; step_at += op == 0 ? stride : 4 * stride) {
			uint64_t before = stress_failures;

			stress_charge(&tree, &mine, 3, 2, 1, false);
			step_now = 0;
			step_on();
			if (op == 0)
				STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			else
				STRESS_EQUAL(pcbatch_group_charge(tree.group[3], 100000), -ENOMEM);
			step_off();
			if (in_child)
				leave_child();
			stress_uncharge(&tree, &mine, 3, 2, 1);
			if (stress_failures != before)
				fprintf(stderr, "operation %d, instruction %" PRIu64 "\n", op, step_at);
			if (step_now < step_at)
				break;
		}
	printf("at_each_instruction: %d forks\n", forks);
	stress_unpin();
	end();
}
#endif

/* ------------------------------------------------------------- random moments */

/* Threads charge, drain and add on all groups but the last, which is the forking thread's. */
static void at_random_moments(void **state)
{
	enum { WORKERS = 5 };
	/* A call in flight holds a batch, a word that it evicted or drained, and its own pages. */
	const int64_t flight = (WORKERS + 2) * 2 * (128 + 64 + 2000);
	struct stress_worker w[WORKERS];
	pthread_t drainer;
	int i, n, last;

	(void)state;
	begin();
	stress_catch();
	last = --tree.groups; /* group 8, a child of 2, of 0 */
	tree.timer_us = 500;
	memset(w, 0, sizeof(w));
	for (i = 0; i < WORKERS; i++) {
		w[i].s = &tree;
		w[i].main.rng = (uint64_t)(i + 1) * 31337;
		w[i].handler.rng = (uint64_t)(i + 1) * 7331;
		w[i].budget = UINT64_MAX / 2;
		assert_int_equal(pthread_create(&w[i].thread, NULL, stress_work, &w[i]), 0);
	}
	assert_int_equal(pthread_create(&drainer, NULL, stress_drainer, &tree), 0);
	for (n = 0; n < (int)stress_scaled(150); n++) {
		pid_t pid;

		stress_charge(&tree, &mine, last, 3, 2, false);
		pcbatch_counter_add(&tree.counter, 1);
		mine.count++;
		pid = fork();
		if (pid == 0) {
			int64_t live = mine.pages[last], usage, stat;

			for (i = 0; i < 20; i++) {
				stress_charge(&tree, &mine, i % (last + 1), 1, 1, false);
				stress_uncharge(&tree, &mine, i % (last + 1), 1, 1);
			}
			STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
			at_rest();
			/* Nobody else charges this one; a drainer may have held what its slot had. */
			usage = pcbatch_group_current(tree.group[last]);
			STRESS_CHECK(usage >= live && usage <= live + flight, usage, live);
			stat = pcbatch_group_stat_read_signed(tree.group[last], STRESS_ITEM);
			STRESS_CHECK(llabs(stat - mine.stat[last]) < flight, stat, mine.stat[last]);
			for (i = 0; i < last; i++) {
				int64_t all = 0;
				int g, k;

				for (g = i; g <= last; g++)
					for (k = 0; stress_below(&tree, g, i) && k < WORKERS; k++)
						all += w[k].main.pages[g] + w[k].handler.pages[g];
				if (stress_below(&tree, last, i))
					all += mine.pages[last];
				usage = pcbatch_group_current(tree.group[i]);
				STRESS_CHECK(llabs(usage - all) <= flight, usage, all);
			}
			_exit(stress_status());
		}
		STRESS_CHECK(pid > 0, pid, errno);
		if (pid > 0)
			STRESS_EQUAL(stress_wait(pid), 0);
		if (stress_failures != 0)
			break;
	}
	__atomic_store_n(&tree.stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < WORKERS; i++)
		(void)pthread_join(w[i].thread, NULL);
	(void)pthread_join(drainer, NULL);
	tree.groups++;
	for (i = 0; i < WORKERS; i++) {
		stress_add(&mine, &w[i].main);
		stress_add(&mine, &w[i].handler);
	}
	end();
}

/*
 * A flush in flight moves what others have updated: the child's own flush must find
 * all of it, but for the one block that was in the flusher's hands.
 */
static uint64_t flushes;

static void *flush_forever(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&tree.stop, __ATOMIC_RELAXED)) {
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		(void)__atomic_add_fetch(&flushes, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void while_flushing(void **state)
{
	pthread_t thread;
	int n, g, m;

	(void)state;
	begin();
	assert_int_equal(pthread_create(&thread, NULL, flush_forever, NULL), 0);
	for (n = 0; n < (int)stress_scaled(400) && stress_failures == 0; n++) {
		uint64_t seen = __atomic_load_n(&flushes, __ATOMIC_SEQ_CST);
		pid_t pid;

		/* So that no block has more than one update to fold. */
		while (__atomic_load_n(&flushes, __ATOMIC_SEQ_CST) < seen + 2)
			(void)sched_yield();
		for (g = 0; g < tree.groups; g++) {
			STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[g], 0, 1), 0);
			mine.other[g]++;
		}
		pid = fork();
		if (pid == 0) {
			STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
			for (g = 0; g < tree.groups; g++) {
				int64_t all = 0, read = pcbatch_group_stat_read(tree.group[g], 0);

				for (m = g; m < tree.groups; m++)
					all += stress_below(&tree, m, g) ? mine.other[m] : 0;
				STRESS_CHECK(read == all || read == all - 1, read, all);
			}
			_exit(stress_status());
		}
		if (pid > 0)
			STRESS_EQUAL(stress_wait(pid), 0);
	}
	printf("while_flushing: %d forks\n", n);
	__atomic_store_n(&tree.stop, 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(thread, NULL);
	end();
}

#if defined(__x86_64__)
/* As if another thread had forked: the child has the flush half done, and never comes back to it. */
static void fork_in_flush(void)
{
	pid_t pid = fork();
	int round, g, m;

	forks++;
	if (pid > 0) {
		STRESS_EQUAL(stress_wait(pid), 0);
		return;
	}
	for (round = 0; round < 3; round++) {
		/* First what is there already: no update brings a block back that the flush had in its hands. */
		for (g = 0; round > 0 && g < tree.groups; g++) {
			STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[g], 0, 1), 0);
			mine.other[g]++;
		}
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		/* The one block in hand may have lost what it had, but takes part again. */
		for (g = 0; g < tree.groups; g++) {
			int64_t all = 0, read = pcbatch_group_stat_read(tree.group[g], 0);

			for (m = g; m < tree.groups; m++)
				all += stress_below(&tree, m, g) ? mine.other[m] : 0;
			STRESS_CHECK(read == all || read == all - 1, read, all);
		}
	}
	_exit(stress_status());
}

static void at_each_instruction_of_a_flush(void **state)
{
	struct sigaction action;
	uint64_t stride = stress_env("PCBATCH_SOAK_SECONDS", 0) != 0 ? 1 : 3;
	int subtree, g;

	(void)state;
	begin();
	tree.groups = 4;
	stress_pin(0);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	(void)sigaction(SIGTRAP, &action, NULL);
	step_action = fork_in_flush;
	forks = 0;
	for (subtree = 0; subtree < 2; subtree++)
		for (step_at = 1 + (uint64_t)subtree; stress_failures == 0; step_at += stride) {
			for (g = 0; g < tree.groups; g++) {
				STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[g], 0, 1), 0);
				mine.other[g]++;
			}
			step_now = 0;
			step_on();
			STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, subtree ? &tree.group[2]->owner.stats : NULL), 0);
			step_off();
			STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
			if (stress_failures != 0)
				fprintf(stderr, "subtree %d, instruction %" PRIu64 "\n", subtree, step_at);
			if (step_now < step_at)
				break;
		}
	printf("at_each_instruction_of_a_flush: %d forks\n", forks);
	tree.groups = 9;
	stress_unpin();
	end();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(three_levels_of_ten),
		stress_test(while_inside),
		stress_test(inside_own_drain),
#if defined(__x86_64__)
		stress_test(at_each_instruction),
#endif
		stress_test(at_random_moments),
		stress_test(while_flushing),
#if defined(__x86_64__)
		stress_test(at_each_instruction_of_a_flush),
#endif
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
