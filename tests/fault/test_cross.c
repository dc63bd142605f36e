/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows 1 to 6 of the fault matrix as a product: every operation, stopped at every point it comes to, while
 * every event happens to it; then everything is audited to the page, byte and unit (contract points 1, 3, 4, 5:
 * C, L, N, D of the matrix). A point that an operation used to come to and no longer does is a failure too.
 */
#include "cross.h"

enum op {
	OP_CHARGE, OP_UNCHARGE, OP_CHARGE_BIG, OP_UNCHARGE_BIG, OP_BYTES, OP_UNBYTES, OP_ADD, OP_ADD_FOLD, OP_MOD, OP_MOD_FOLD,
	OP_DRAIN_CPU, OP_DRAIN, OP_SUBTREE, OP_DRAIN_ALL, OP_REFUSED, OP_FORCED, OP_FOLD, OP_LIMITED_ADD, OP_FLUSH, OP_SET_MAX,
	OP_SET_BATCH, OP_LIFE, OPS
};

enum event {
	EV_DRAIN_ALL, EV_DRAIN_OWNER, EV_DRAIN_SUBTREE, EV_TWO_DRAINS, EV_MIGRATE, EV_MIGRATE_DRAIN, EV_PREEMPT, EV_EVICT,
	EV_SIGNAL, EV_SIGNAL_DRAIN, EV_SIGNAL_DRAIN_CPU, EV_SIGNAL_EVICT, EV_FOLD, EV_FORK, EV_FLUSH, EV_SET_MAX, EV_SET_BATCH,
	EV_LIFE, EVENTS
};

static const char *const op_name[OPS] = {
	"charge", "uncharge", "charge_big", "uncharge_big", "charge_bytes", "uncharge_bytes", "add", "add_fold", "stat_mod",
	"stat_mod_fold", "drain_cpu", "drain", "drain_subtree", "drain_all", "refused", "forced", "counter_flush", "limited_add",
	"stats_flush", "set_max", "set_batch", "create_destroy"
};

static const char *const event_name[EVENTS] = {
	"drain all", "drain owner", "drain subtree", "two drains", "migration", "migration and drain", "preemption", "eviction",
	"signal", "signal drains", "signal drains CPU", "signal evicts", "fold and sum", "fork", "stats flush", "set_max", "set_batch",
	"group's life"
};

/* What is in the victim's line before: its owner's slot, nothing, seven others'. */
enum before { WARM, EMPTY, FULL, BEFORES };

static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine, handlers, others;
static const int act = 2; /* what everything happens to, a child of group 0 */
static pthread_t victim;
static pid_t victim_tid;
static uint64_t checks, reach[OPS][CROSS_POINTS + 1];
static uint32_t event_wanted, event_done; /* event + 1; 0: none */
static volatile sig_atomic_t signal_kind;

/* ---------------------------------------------------------------- operations */

static void one_life(struct stress_account *a, int kept)
{
	struct pcbatch_group *g = NULL;
	int err;

	(void)a;
	STRESS_EQUAL(pcbatch_group_create(&tree.dom, tree.group[0], NULL, &g), 0);
	STRESS_EQUAL(pcbatch_group_charge(g, (uint64_t)kept), 0);
	STRESS_EQUAL(pcbatch_group_uncharge(g, (uint64_t)kept), 0);
	do
		err = pcbatch_group_destroy(g);
	while (err == -EBUSY);
	STRESS_EQUAL(err, 0);
}

static void do_op(enum op op)
{
	struct pcbatch_group *g = tree.group[act];
	int err;

	switch (op) {
	case OP_CHARGE:
		stress_charge(&tree, &mine, act, 2, 1, false);
		break;
	case OP_UNCHARGE:
		stress_uncharge(&tree, &mine, act, 2, 1);
		break;
	case OP_CHARGE_BIG:
		stress_charge(&tree, &mine, act, 100, 100, false);
		break;
	case OP_UNCHARGE_BIG:
		stress_uncharge(&tree, &mine, act, 64, 64);
		break;
	case OP_BYTES:
		STRESS_EQUAL(pcbatch_group_charge_bytes(g, 5000), 0);
		mine.bytes[act] += 5000;
		break;
	case OP_UNBYTES:
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(g, 3000), 0);
		mine.bytes[act] -= 3000;
		break;
	case OP_ADD:
	case OP_ADD_FOLD:
		pcbatch_counter_add(&tree.counter, op == OP_ADD ? 1 : 5000);
		mine.count += op == OP_ADD ? 1 : 5000;
		break;
	case OP_MOD:
	case OP_MOD_FOLD:
		STRESS_EQUAL(pcbatch_group_stat_mod(g, 0, op == OP_MOD ? 1 : 1000), 0);
		mine.other[act] += op == OP_MOD ? 1 : 1000;
		break;
	case OP_DRAIN_CPU:
		err = pcbatch_stock_drain_cpu(&tree.dom);
		STRESS_CHECK(err == 0 || err == -EAGAIN, err, 0);
		break;
	case OP_DRAIN:
		STRESS_EQUAL(pcbatch_group_drain(g), 0);
		break;
	case OP_SUBTREE:
		STRESS_EQUAL(pcbatch_group_drain_subtree(tree.group[0]), 0);
		break;
	case OP_DRAIN_ALL:
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		break;
	case OP_REFUSED:
		STRESS_EQUAL(pcbatch_group_charge(g, 1000000), -ENOMEM);
		break;
	case OP_FORCED:
		STRESS_EQUAL(pcbatch_group_charge_force(g, 200, 3), 0);
		mine.pages[act] += 200;
		mine.stat[act] += 3;
		break;
	case OP_FOLD:
		pcbatch_counter_flush(&tree.counter);
		break;
	case OP_LIMITED_ADD:
		if (pcbatch_counter_limited_add(&tree.counter, INT64_MAX, 77))
			mine.count += 77;
		break;
	case OP_FLUSH:
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		break;
	case OP_SET_MAX:
		/* Below what is cached: it has to be drained. Above what is live. */
		err = pcbatch_group_set_max(g, mine.pages[act] + handlers.pages[act] + others.pages[act] + 20);
		STRESS_CHECK(err == 0 || err == -EBUSY, err, 0);
		STRESS_EQUAL(pcbatch_group_set_max(g, PCBATCH_PAGES_MAX), 0);
		break;
	case OP_SET_BATCH:
		STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, 7, 0, 0), 0);
		STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, 64, 0, 0), 0);
		break;
	case OP_LIFE:
		one_life(&mine, 3);
		break;
	default:
		break;
	}
}

/* Calls that may hold the domain's or the flusher's lock; two of them would wait for each other here. */
static bool locks(enum op op)
{
	return op == OP_FLUSH || op == OP_SET_MAX || op == OP_SET_BATCH || op == OP_LIFE;
}

/* -------------------------------------------------------------------- events */

static void mix(struct stress_account *a)
{
	int err;

	stress_charge(&tree, a, act, 3, 2, true);
	stress_charge(&tree, a, 0, 1, 0, true);
	if (a->pages[act] >= 2)
		stress_uncharge(&tree, a, act, 2, 1);
	err = pcbatch_group_try_charge_bytes(tree.group[act], 100);
	STRESS_CHECK(err == 0 || err == -ENOMEM, err, 0);
	a->bytes[act] += err == 0 ? 100 : 0;
	pcbatch_counter_add(&tree.counter, 70);
	a->count += 70;
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[act], 0, 99), 0);
	a->other[act] += 99;
}

static void evict(struct stress_account *a)
{
	int g;

	for (g = 0; g < tree.groups; g++)
		stress_charge(&tree, a, g, 1, 1, true);
}

static void on_signal(int sig)
{
	int err;

	(void)sig;
	mix(&handlers);
	if (signal_kind == EV_SIGNAL_DRAIN)
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	else if (signal_kind == EV_SIGNAL_EVICT)
		evict(&handlers);
	else if (signal_kind == EV_SIGNAL_DRAIN_CPU) {
		err = pcbatch_stock_drain_cpu(&tree.dom);
		STRESS_CHECK(err == 0 || err == -EAGAIN, err, 0);
	}
	signal_kind = -1;
}

static void move_victim(int index)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)stress_cpu[index % stress_cpus], &set);
	(void)sched_setaffinity(victim_tid, sizeof(set), &set);
}

/* Runs on the victim's CPU for a moment, which stops the victim there. */
static void preempt(bool evicting)
{
	stress_pin(0);
	if (evicting)
		evict(&others);
	else
		mix(&others);
	stress_pin(1);
}

static void send_signal(enum event event)
{
	int i;

	signal_kind = event;
	(void)pthread_kill(victim, SIGUSR1);
	for (i = 0; i < 100000000 && signal_kind != -1; i++)
		cross_relax();
}

static int child(void)
{
	struct pcbatch_group *g = NULL;
	int64_t bytes = -1;

	if (pcbatch_group_create(&tree.dom, NULL, NULL, &g) != 0 || pcbatch_group_charge_stat(g, 100, 7) != 0 ||
	    pcbatch_group_charge_bytes(g, 5000) != 0 || pcbatch_stock_drain_all(&tree.dom) != 0)
		return 3;
	if (pcbatch_group_bytes(g, &bytes) != 0 || bytes != 100 * STRESS_PAGE + 5000)
		return 4;
	if (pcbatch_group_uncharge_bytes(g, 5000) != 0 || pcbatch_group_uncharge_stat(g, 100, 7) != 0 || pcbatch_group_destroy(g) != 0)
		return 5;
	return pcbatch_stats_flush(&tree.dom, NULL) == 0 ? 0 : 6;
}

static void fork_here(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(child());
	STRESS_EQUAL(pid < 0 ? -1 : stress_wait(pid), 0);
}

static void do_event(enum event event)
{
	int err;

	switch (event) {
	case EV_DRAIN_ALL:
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		break;
	case EV_DRAIN_OWNER:
		STRESS_EQUAL(pcbatch_group_drain(tree.group[act]), 0);
		break;
	case EV_TWO_DRAINS:
		STRESS_EQUAL(pcbatch_group_drain(tree.group[act]), 0);
		mix(&others);
		STRESS_EQUAL(pcbatch_group_drain_subtree(tree.group[0]), 0);
		break;
	case EV_DRAIN_SUBTREE:
		STRESS_EQUAL(pcbatch_group_drain_subtree(tree.group[0]), 0);
		break;
	case EV_MIGRATE:
	case EV_MIGRATE_DRAIN:
		move_victim(1);
		if (event == EV_MIGRATE_DRAIN)
			STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		break;
	case EV_PREEMPT:
	case EV_EVICT:
		preempt(event == EV_EVICT);
		break;
	case EV_SIGNAL:
	case EV_SIGNAL_DRAIN:
	case EV_SIGNAL_DRAIN_CPU:
	case EV_SIGNAL_EVICT:
		send_signal(event);
		break;
	case EV_FOLD:
		pcbatch_counter_flush(&tree.counter);
		(void)pcbatch_counter_sum(&tree.counter);
		mix(&others);
		break;
	case EV_FORK:
		fork_here();
		break;
	case EV_FLUSH:
		mix(&others);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		break;
	case EV_SET_MAX:
		err = pcbatch_group_set_max(tree.group[act], 2000);
		STRESS_CHECK(err == 0 || err == -EBUSY, err, 0);
		STRESS_EQUAL(pcbatch_group_set_max(tree.group[act], PCBATCH_PAGES_MAX), 0);
		break;
	case EV_SET_BATCH:
		STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, 1, 0, 0), 0);
		STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, 64, 0, 0), 0);
		break;
	case EV_LIFE:
		one_life(&others, 100);
		break;
	default:
		break;
	}
}

/* The other thread: waits for the victim to stop, or for it to have passed by. */
static void *other(void *arg)
{
	(void)arg;
	stress_pin(1);
	for (;;) {
		uint32_t wanted = __atomic_load_n(&event_wanted, __ATOMIC_SEQ_CST);

		if (wanted > EVENTS)
			return NULL;
		if (wanted != 0 && __atomic_load_n(&cross_reached, __ATOMIC_SEQ_CST)) {
			do_event((enum event)(wanted - 1));
			__atomic_store_n(&event_wanted, 0, __ATOMIC_SEQ_CST);
			__atomic_store_n(&event_done, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&cross_go, 1, __ATOMIC_SEQ_CST);
		}
		cross_relax();
	}
}

/* --------------------------------------------------------------------- checks */

static void give_back(struct stress_account *a)
{
	int g;

	for (g = 0; g < tree.groups; g++) {
		stress_uncharge(&tree, a, g, a->pages[g], a->stat[g]);
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(tree.group[g], (uint64_t)a->bytes[g]), 0);
		a->bytes[g] = 0;
	}
}

static void prepare(enum before before)
{
	int i, g;

	give_back(&mine);
	give_back(&handlers);
	give_back(&others);
	stress_charge(&tree, &mine, act, 500, 0, false);
	for (i = 0; i < 3; i++) {
		stress_charge(&tree, &mine, act, 2, 1, false);
		stress_uncharge(&tree, &mine, act, 2, 1);
	}
	STRESS_EQUAL(pcbatch_group_charge_bytes(tree.group[act], 8000), 0);
	mine.bytes[act] += 8000;
	/* Something to fold. */
	pcbatch_counter_add(&tree.counter, 1);
	mine.count++;
	if (before == WARM)
		return;
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	for (g = 0; before == FULL && g < tree.groups; g++)
		if (g != act) {
			stress_charge(&tree, &mine, g, 1, 1, false);
			STRESS_EQUAL(pcbatch_group_charge_bytes(tree.group[g], 10), 0);
			mine.bytes[g] += 10;
		}
}

static void audit(enum op op, int point, enum event event, enum before before)
{
	struct stress_account all;
	uint64_t failures = stress_failures;

	memset(&all, 0, sizeof(all));
	stress_add(&all, &mine);
	stress_add(&all, &handlers);
	stress_add(&all, &others);
	stress_compare(&tree, &all);
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	stress_empty(&tree);
	stress_compare(&tree, &all);
	if (stress_failures != failures && failures < 10)
		fprintf(stderr, "in %s at point %s%d, %s, line %d\n", op_name[op], point <= CROSS_ASM ? "S" : "C",
			point <= CROSS_ASM ? point : point - CROSS_ASM, event_name[event], (int)before);
}

/* Whether the operation came to the point. */
static bool one_check(enum op op, int point, enum event event, enum before before)
{
	bool reached;

	prepare(before);
	__atomic_store_n(&event_done, 0, __ATOMIC_SEQ_CST);
	cross_arm(point);
	__atomic_store_n(&event_wanted, (uint32_t)event + 1, __ATOMIC_SEQ_CST);
	do_op(op);
	cross_disarm();
	reached = __atomic_load_n(&cross_reached, __ATOMIC_SEQ_CST) != 0;
	/* An event that was asked for is finished before anything is looked at. */
	while (reached && !__atomic_load_n(&event_done, __ATOMIC_SEQ_CST))
		cross_relax();
	__atomic_store_n(&event_wanted, 0, __ATOMIC_SEQ_CST);
	move_victim(0);
	if (!reached)
		return false;
	audit(op, point, event, before);
	checks++;
	reach[op][point]++;
	return true;
}

static void all_events(enum op op, int point, enum before before)
{
	int event;

	for (event = 0; event < EVENTS && stress_failures == 0; event++) {
		if (locks(op) && event >= EV_FLUSH)
			continue;
		/* Where the first event does not meet it, no other will. */
		if (!one_check(op, point, (enum event)event, before))
			return;
	}
}

static void show(void)
{
	int op, point;

	for (op = 0; op < OPS; op++) {
		printf("%-14s", op_name[op]);
		for (point = 1; point <= CROSS_POINTS; point++)
			if (reach[op][point] != 0)
				printf(" %s%d:%" PRIu64, point <= CROSS_ASM ? "S" : "C", point <= CROSS_ASM ? point : point - CROSS_ASM,
				       reach[op][point]);
		printf("\n");
	}
	printf("%" PRIu64 " checks, %d operations, %d events\n", checks, OPS, EVENTS);
}

static uint64_t points_reached(int from, int to)
{
	uint64_t n = 0;
	int op, point;

	for (point = from; point <= to; point++)
		for (op = 0; op < OPS; op++)
			if (reach[op][point] != 0) {
				n++;
				break;
			}
	return n;
}

static void cross_product(void **state)
{
	struct sigaction action;
	struct stress_account all;
	int op, point, before;
	bool sections;
	pthread_t thread;

	(void)state;
	stress_init(&tree, 12, NULL);
	stress_limit(&tree, 0, 900000);
	if (stress_cpus < 2)
		skip();
	sections = pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	(void)sigaction(SIGUSR1, &action, NULL);
	victim = pthread_self();
	victim_tid = (pid_t)syscall(SYS_gettid);
	stress_pin(0);
	assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
	for (op = 0; op < OPS; op++)
		for (point = sections ? 1 : CROSS_ASM + 1; point <= CROSS_POINTS; point++)
			for (before = 0; before < BEFORES && stress_failures == 0; before++)
				all_events((enum op)op, point, (enum before)before);
	__atomic_store_n(&event_wanted, EVENTS + 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(thread, NULL);
	show();
	memset(&all, 0, sizeof(all));
	stress_add(&all, &mine);
	stress_add(&all, &handlers);
	stress_add(&all, &others);
	stress_settle(&tree, &all);
	assert_int_equal(stress_failures, 0);
	/* What is reached today: a point that nothing comes to any more is no longer tested. */
	if (sections)
		assert_int_equal(points_reached(1, CROSS_ASM), CROSS_ASM);
	assert_true(points_reached(CROSS_ASM + 1, CROSS_POINTS) >= (sections ? 32 : 23));
	assert_true(checks >= (sections ? 10000 : 2500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(cross_product),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
