/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a signal handler may charge, uncharge, drain, add and update at every
 * instruction of every call (contract points 1, 4 and 5): once with the trap flag,
 * which restarts a section at each of its instructions and so walks the slow paths,
 * and once with a breakpoint at each marked point inside the sections, which reaches
 * it undisturbed. On x86-64; elsewhere the tests skip themselves.
 */
#if defined(__x86_64__)
/* Breaks at the point that test_point names; clobbers flags only. */
extern volatile unsigned int test_point;
#define PCBATCH_INJECT_ASM(n) "cmpl $" #n ", test_point(%%rip)\n\tjne 77f\n\tint3\n77:\n\t"
#endif
#include "stress.h"

volatile unsigned int test_point __attribute__((used));

#if defined(__x86_64__)

#include <ucontext.h>

#define TRAP_FLAG 0x100

enum op { OP_CHARGE, OP_UNCHARGE, OP_CHARGE_BIG, OP_UNCHARGE_BIG, OP_BYTES, OP_UNBYTES, OP_ADD, OP_MOD, OP_DRAIN_CPU, OP_DRAIN,
	  OP_SUBTREE, OP_REFUSED, OP_FLUSH_COUNTER, OPS };

static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine, handlers;
static volatile uint64_t step_now, step_at, step_stride, points; /* act at step_at and, with a stride, again and again */
static void (*volatile step_action)(void);
static const int act = 2; /* the group that everything happens to, a child of group 0 */

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;
	bool breakpoint = test_point != 0 && ((uint64_t)uc->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG) == 0;

	(void)sig;
	(void)info;
	if (!breakpoint && (++step_now < step_at || (step_stride != 0 && (step_now - step_at) % step_stride != 0)))
		return;
	test_point = 0;
	if (step_stride == 0)
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	points++;
	step_action();
}

static void catch_traps(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	(void)sigaction(SIGTRAP, &action, NULL);
	stress_pin(0);
}

static void step_on(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

static void step_off(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)TRAP_FLAG);
}

/* Everything a handler may do, and it keeps some of it. A charge that is about to be refused may refuse the handler's. */
static void handler_mix(void)
{
	int err;

	stress_charge(&tree, &handlers, act, 3, 2, true);
	stress_charge(&tree, &handlers, 0, 1, 0, true);
	if (handlers.pages[act] >= 2)
		stress_uncharge(&tree, &handlers, act, 2, 1);
	err = pcbatch_group_try_charge_bytes(tree.group[act], 100);
	STRESS_CHECK(err == 0 || err == -ENOMEM, err, 0);
	if (err == 0)
		handlers.bytes[act] += 100;
	pcbatch_counter_add(&tree.counter, 70);
	handlers.count += 70;
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[act], 0, 99), 0);
	handlers.other[act] += 99;
}

static void handler_mix_drain(void)
{
	handler_mix();
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
}

static void handler_drain_cpu(void)
{
	int err = pcbatch_stock_drain_cpu(&tree.dom);

	/* -EAGAIN: in the middle of a drain that has this CPU's gate closed. */
	STRESS_CHECK(err == 0 || err == -EAGAIN, err, 0);
	handler_mix();
}

/* More owners than slots: what the interrupted call had found is evicted. */
static void handler_evict(void)
{
	int g;

	for (g = 0; g < tree.groups; g++)
		stress_charge(&tree, &handlers, g, 1, 1, true);
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
		pcbatch_counter_add(&tree.counter, 700);
		mine.count += 700;
		break;
	case OP_MOD:
		STRESS_EQUAL(pcbatch_group_stat_mod(g, 0, 100), 0);
		mine.other[act] += 100;
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
	case OP_REFUSED:
		STRESS_EQUAL(pcbatch_group_charge(g, 1000000), -ENOMEM);
		break;
	case OP_FLUSH_COUNTER:
		pcbatch_counter_flush(&tree.counter);
		break;
	default:
		break;
	}
}

/* A known state: slots warm, with something to give back, and nothing of the last time. */
static void warm(void)
{
	int i, g;

	for (g = 0; g < tree.groups; g++) {
		stress_uncharge(&tree, &handlers, g, handlers.pages[g], 0);
		stress_uncharge(&tree, &mine, g, mine.pages[g], 0);
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(tree.group[g], (uint64_t)(handlers.bytes[g] + mine.bytes[g])), 0);
		handlers.bytes[g] = mine.bytes[g] = 0;
	}
	stress_charge(&tree, &mine, act, 500, 0, false);
	for (i = 0; i < 3; i++) {
		stress_charge(&tree, &mine, act, 2, 1, false);
		stress_uncharge(&tree, &mine, act, 2, 1);
	}
	STRESS_EQUAL(pcbatch_group_charge_bytes(tree.group[act], 8000), 0);
	mine.bytes[act] += 8000;
}

static void account(const char *what, int op)
{
	struct stress_account all;
	uint64_t before = stress_failures;

	memset(&all, 0, sizeof(all));
	stress_add(&all, &mine);
	stress_add(&all, &handlers);
	stress_compare(&tree, &all);
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	stress_empty(&tree);
	stress_compare(&tree, &all);
	if (stress_failures != before && before < 10)
		fprintf(stderr, "%s: operation %d, instruction %" PRIu64 "\n", what, op, step_at);
}

static void begin(void)
{
	memset(&mine, 0, sizeof(mine));
	memset(&handlers, 0, sizeof(handlers));
	stress_init(&tree, 10, NULL);
	stress_limit(&tree, 0, 900000);
	points = 0;
	step_stride = 0;
	catch_traps();
}

static void end(const char *name)
{
	struct stress_account all;

	memset(&all, 0, sizeof(all));
	stress_add(&all, &mine);
	stress_add(&all, &handlers);
	stress_settle(&tree, &all);
	printf("%s: %" PRIu64 " points\n", name, points);
	assert_int_equal(stress_failures, 0);
}

static void (*const actions[])(void) = { handler_mix, handler_mix_drain, handler_drain_cpu, handler_evict };
#define ACTIONS ((int)(sizeof(actions) / sizeof(actions[0])))

/* Each call is run several times, interrupted at every 64th instruction from a different one on. */
static void every_instruction(void **state)
{
	uint64_t apart = stress_env("PCBATCH_SOAK_SECONDS", 0) != 0 ? 4 : 64;
	int op, action;

	(void)state;
	begin();
	step_stride = 64;
	for (op = 0; op < OPS && stress_failures == 0; op++)
		for (action = 0; action < ACTIONS && stress_failures == 0; action++) {
			step_action = actions[action];
			for (step_at = 1 + ((uint64_t)action * 19 + (uint64_t)op * 5) % apart; step_at <= step_stride; step_at += apart) {
				warm();
				step_now = 0;
				step_on();
				do_op((enum op)op);
				step_off();
				account("trap flag", op);
			}
		}
	step_stride = 0;
	assert_true(points > 300);
	end("every_instruction");
}

#define SECTION_POINTS 20

static void every_section_point(void **state)
{
	unsigned int point;
	uint64_t before;
	int op, action, reached = 0;

	(void)state;
	begin();
	for (point = 1; point <= SECTION_POINTS && stress_failures == 0; point++) {
		before = points;
		for (op = 0; op < 2 * OPS; op++)
			for (action = 0; action < ACTIONS; action++) {
				warm();
				if (op >= OPS) /* nothing cached: the call installs a slot */
					STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
				step_action = actions[action];
				step_at = point;
				test_point = point;
				do_op((enum op)(op % OPS));
				test_point = 0;
				account("breakpoint", op);
			}
		reached += points != before;
	}
	if (pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ)
		assert_int_equal(reached, SECTION_POINTS);
	end("every_section_point");
}

/*
 * A thread that is moved at any point inside a section writes nothing on the CPU that
 * it came from any more.
 */
static char left_behind[8 * PCBATCH_PRIV_REGION]; /* what that CPU had when the thread left it */
static uint32_t left_cpu;
static int from; /* its index */

static char *region_of(const struct pcbatch_priv_chunk *chunk)
{
	return (char *)(uintptr_t)chunk + (left_cpu + 1) * PCBATCH_PRIV_REGION;
}

static void handler_move(void)
{
	const struct pcbatch_priv_chunk *chunk;
	size_t n = 0;

	for (chunk = tree.dom.chunks; chunk != NULL; chunk = chunk->next)
		memcpy(left_behind + n++ * PCBATCH_PRIV_REGION, region_of(chunk), PCBATCH_PRIV_REGION);
	stress_pin(1 - from);
}

static void moved_at_every_section_point(void **state)
{
	static const enum op ops[] = { OP_CHARGE, OP_UNCHARGE, OP_CHARGE_BIG, OP_UNCHARGE_BIG, OP_BYTES, OP_UNBYTES, OP_ADD, OP_MOD };
	const struct pcbatch_priv_chunk *chunk;
	unsigned int point;
	size_t i, n;

	(void)state;
	begin();
	/* A generic thread keeps its line, whose number has nothing to do with CPUs, and writes there: look at another. */
	from = pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_GENERIC && pcbatch_priv_cpu(&tree.dom) == (uint32_t)stress_cpu[0];
	left_cpu = (uint32_t)stress_cpu[from];
	for (chunk = tree.dom.chunks, n = 0; chunk != NULL; chunk = chunk->next)
		n++;
	assert_true(n <= sizeof(left_behind) / PCBATCH_PRIV_REGION);
	for (point = 1; stress_cpus > 1 && point <= SECTION_POINTS; point++)
		for (i = 0; i < 2 * sizeof(ops) / sizeof(ops[0]); i++) {
			uint64_t before = points;

			stress_pin(from);
			warm();
			if (i % 2 != 0)
				STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			step_action = handler_move;
			test_point = point;
			do_op(ops[i / 2]);
			test_point = 0;
			for (chunk = tree.dom.chunks, n = 0; points != before && chunk != NULL; chunk = chunk->next, n++)
				STRESS_CHECK(memcmp(left_behind + n * PCBATCH_PRIV_REGION, region_of(chunk), PCBATCH_PRIV_REGION) == 0,
					     point, ops[i / 2]);
		}
	end("moved_at_every_section_point");
}

static void handler_nothing(void)
{
}

/* An update that is interrupted at a level counts there all the same: what it changed is due for a flush at every level. */
static void interrupted_walks_count(void **state)
{
	int64_t much;
	int round;

	(void)state;
	begin();
	much = (int64_t)tree.dom.stat_threshold * (tree.dom.lines + 1);
	for (round = 0; round < 6 && stress_failures == 0; round++) {
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[act], 0, 1), 0);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		mine.other[act]++;
		step_action = handler_nothing;
		/* Fresh blocks are walked on the slow path. */
		if (round % 2 != 0) {
			STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[act], 0, 1), 0);
			mine.other[act]++;
		}
		test_point = round < 2 ? 16 : round < 4 ? 17 : 0;
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[act], 0, much), 0);
		test_point = 0;
		mine.other[act] += much;
		STRESS_CHECK(pcbatch_group_stat_needs_flush(tree.group[act]), round, 0);
		STRESS_CHECK(pcbatch_group_stat_needs_flush(tree.group[0]), round, 0);
	}
	end("interrupted_walks_count");
}

/*
 * The first update of a group on a CPU writes the header of its block and of its
 * ancestors'. An update in the middle of that, large enough to be folded at once,
 * must find none half written.
 */
static struct pcbatch_group *fresh;

static void handler_mod_fresh(void)
{
	STRESS_EQUAL(pcbatch_group_stat_mod(fresh, 0, 1000), 0);
}

static void first_updates(void *arg)
{
	struct pcbatch_group *top = NULL, *middle = NULL;

	(void)arg;
	begin();
	step_action = handler_mod_fresh;
	for (step_at = 1; step_at <= 400; step_at++) {
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, NULL, NULL, &top), 0);
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, top, NULL, &middle), 0);
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, middle, NULL, &fresh), 0);
		step_now = 0;
		step_on();
		STRESS_EQUAL(pcbatch_group_stat_mod(fresh, 0, 1), 0);
		step_off();
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		if (step_now >= step_at)
			STRESS_EQUAL(pcbatch_group_stat_read(top, 0), 1001);
		STRESS_EQUAL(pcbatch_group_destroy(fresh), 0);
		STRESS_EQUAL(pcbatch_group_destroy(middle), 0);
		STRESS_EQUAL(pcbatch_group_destroy(top), 0);
		if (step_now < step_at || stress_failures != 0)
			break;
	}
}

static void first_update(void **state)
{
	(void)state;
	assert_int_equal(stress_in_child(first_updates, NULL), 0);
}

/*
 * Batch and watermarks change at every instruction of a refill, by another thread, and
 * a handler refills at every instruction of a change: neither may mix old and new
 * values into pages that nobody charged.
 */
static uint32_t setter_turn; /* 1: the setter's, 2: leave */

static void *setter(void *arg)
{
	uint32_t n = 0;

	(void)arg;
	for (;;) {
		switch (__atomic_load_n(&setter_turn, __ATOMIC_ACQUIRE)) {
		case 0:
			(void)sched_yield();
			break;
		case 1:
			STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, ++n % 2 != 0 ? 1 : 4096, 0, 0), 0);
			__atomic_store_n(&setter_turn, 0, __ATOMIC_RELEASE);
			break;
		default:
			return NULL;
		}
	}
}

static void handler_set_batch(void)
{
	__atomic_store_n(&setter_turn, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&setter_turn, __ATOMIC_ACQUIRE) == 1)
		(void)sched_yield();
}

static void handler_uncharge(void)
{
	/* Below zero: past the hit. */
	stress_uncharge(&tree, &handlers, act, 1, -1);
}

static void batch_changes(void **state)
{
	pthread_t thread;
	int i;

	(void)state;
	begin();
	setter_turn = 0;
	assert_int_equal(pthread_create(&thread, NULL, setter, NULL), 0);
	for (i = 0; i < 4; i++) {
		step_stride = 16;
		step_action = handler_set_batch;
		for (step_at = 1; step_at <= step_stride && stress_failures == 0; step_at++) {
			warm();
			STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, i % 2 != 0 ? 1 : 4096, 0, 0), 0);
			if (i >= 2) /* there is a slot already */
				stress_uncharge(&tree, &mine, act, i % 2 != 0 ? 1 : 90, 0);
			step_now = 0;
			step_on();
			stress_uncharge(&tree, &mine, act, i % 2 != 0 ? 1 : 100, 0);
			step_off();
			account("set_batch in an uncharge", i);
		}
		/* The values change early on; the drain that follows has its turn elsewhere. */
		step_stride = 0;
		step_action = handler_uncharge;
		for (step_at = 1; step_at <= 250 && stress_failures == 0; step_at++) {
			warm();
			stress_charge(&tree, &handlers, act, 5000, 0, true);
			STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, i % 2 != 0 ? 1 : 4096, 0, 0), 0);
			stress_uncharge(&tree, &mine, act, 1, 0);
			stress_uncharge(&tree, &mine, act, i % 2 != 0 ? 1 : 90, 0);
			step_now = 0;
			step_on();
			STRESS_EQUAL(pcbatch_stock_set_batch(&tree.dom, i % 2 != 0 ? 4096 : 1, 0, 0), 0);
			step_off();
			account("uncharge in set_batch", i);
		}
	}
	__atomic_store_n(&setter_turn, 2, __ATOMIC_RELEASE);
	(void)pthread_join(thread, NULL);
	end("batch_changes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(every_instruction),
		stress_test(every_section_point),
		stress_test(moved_at_every_section_point),
		stress_test(interrupted_walks_count),
		stress_test(first_update),
		stress_test(batch_changes),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("single-stepping is written for x86-64\n");
	return 77;
}

#endif
