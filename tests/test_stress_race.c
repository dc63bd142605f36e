/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the handshakes one by one: two threads are brought to the one place where
 * their order matters, by stopping them at marked points or instructions or by
 * keeping them long in the middle of a section.
 */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#if defined(__x86_64__)
/*
 * Before the store of an install (20), of a statistics update (15) and, where
 * slow_commits asks for it, of a change of a slot (12): says that a section is there,
 * and stays in it until it may leave (or for a while, so that nothing hangs).
 */
extern volatile unsigned int section_inside, section_held;
extern __thread unsigned int section_spins, slow_commits;
#define PCBATCH_INJECT_ASM(n)                                        \
	".if " #n " == 20 || " #n " == 15 || " #n " == 12\n\t"       \
	".if " #n " == 12\n\t"                                       \
	"cmpl $0, %%fs:slow_commits@tpoff\n\t"                       \
	"je 78f\n\t"                                                 \
	".endif\n\t"                                                 \
	"movl $1, section_inside(%%rip)\n\t"                         \
	"movl $10000000, %%fs:section_spins@tpoff\n"                 \
	"77:\n\t"                                                    \
	"cmpl $0, section_held(%%rip)\n\t"                           \
	"je 78f\n\t"                                                 \
	"decl %%fs:section_spins@tpoff\n\t"                          \
	"jnz 77b\n"                                                  \
	"78:\n\t"                                                    \
	".endif\n\t"
#endif
#include "stress.h"

#if defined(__x86_64__)
#include <ucontext.h>
#endif

volatile unsigned int section_inside __attribute__((used)), section_held __attribute__((used));
__thread unsigned int section_spins __attribute__((used)), slow_commits __attribute__((used));

static __thread int hook_at; /* the point at which this thread stops, once */
static __thread void (*hook_do)(void);
static uint32_t parked, go, parked_too, go_too;

static uint32_t levels_charged; /* by page counters, refused or not */

static void test_hook(int n)
{
	levels_charged += n == 4;
	if (n != hook_at)
		return;
	hook_at = 0;
	hook_do();
}

static void wait_for(const uint32_t *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void raise_flag(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
}

static void park(void)
{
	raise_flag(&parked);
	wait_for(&go);
}

static void park_too(void)
{
	raise_flag(&parked_too);
	wait_for(&go_too);
}

static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine;

static void begin(const struct pcbatch_domain_attr *attr)
{
	stress_init(&tree, 9, attr);
	memset(&mine, 0, sizeof(mine));
	parked = go = parked_too = go_too = 0;
}

static void end(void)
{
	stress_settle(&tree, &mine);
	assert_int_equal(stress_failures, 0);
}

static int64_t slots_of(int g)
{
	uint32_t c, id = tree.group[g]->owner.id;
	int64_t n = 0;
	int k;

	for (c = 0; c < tree.dom.lines; c++)
		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
			n += pcbatch_slot_owner(pcbatch_priv_stock(&tree.dom, c)->page.slot[k]) == id ||
			     pcbatch_slot_owner(pcbatch_priv_stock(&tree.dom, c)->obj.slot[k]) == id;
	return n;
}

/* ------------------------------------------- an install that was prepared earlier */

static void *installing(void *arg)
{
	(void)arg;
	stress_pin(1);
	hook_do = park;
	hook_at = 7;
	STRESS_EQUAL(pcbatch_group_charge(tree.group[5], 3), 0);
	return NULL;
}

/* The group goes offline between the look at its state and the commit. */
static void offline_before_commit(void **state)
{
	pthread_t thread;

	(void)state;
	begin(NULL);
	assert_int_equal(pthread_create(&thread, NULL, installing, NULL), 0);
	wait_for(&parked);
	STRESS_EQUAL(pcbatch_group_offline(tree.group[5]), 0);
	raise_flag(&go);
	(void)pthread_join(thread, NULL);
	mine.pages[5] = 3;
	STRESS_EQUAL(slots_of(5), 0);
	STRESS_EQUAL(pcbatch_group_current(tree.group[5]), 3);
	end();
}

static int cpu_zero_always(void *ctx)
{
	(void)ctx;
	return 0;
}

static void *installing_too(void *arg)
{
	(void)arg;
	stress_pin(1);
	hook_do = park;
	hook_at = 7;
	STRESS_EQUAL(pcbatch_group_charge(tree.group[1], 3), 0);
	return NULL;
}

/*
 * A thread that found the group's first probe empty stops before its commit. Meanwhile
 * the slot is taken by another group, the group of the test gets the next one, and the
 * first probe becomes empty again: the commit must not give the group a second slot.
 */
static void one_slot_each(void **state)
{
	struct pcbatch_domain_attr attr;
	pthread_t thread;
	int line;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	for (line = 0; line < 2; line++) {
		attr.current_cpu = cpu_zero_always;
		begin(line == 0 ? NULL : &attr);
		assert_int_equal(tree.group[1]->owner.id % PCBATCH_STOCK_SLOTS, tree.group[8]->owner.id % PCBATCH_STOCK_SLOTS);
		assert_int_equal(pthread_create(&thread, NULL, installing_too, NULL), 0);
		wait_for(&parked);
		stress_pin(1);
		stress_charge(&tree, &mine, 8, 1, 0, false);
		stress_charge(&tree, &mine, 1, 3, 0, false);
		STRESS_EQUAL(pcbatch_group_drain(tree.group[8]), 0);
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		mine.pages[1] += 3;
		if (line != 0 || pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ)
			STRESS_CHECK(slots_of(1) <= 1, slots_of(1), line);
		end();
	}
}

static void *draining(void *arg)
{
	(void)arg;
	hook_do = park_too;
	hook_at = 8;
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	raise_flag(&parked_too);
	return NULL;
}

/* A drainer has the CPU's gate closed when the commit comes. */
static void gate_before_commit(void **state)
{
	pthread_t thread, drainer;

	(void)state;
	begin(NULL);
	stress_pin(1);
	stress_charge(&tree, &mine, 2, 1, 0, false);
	assert_int_equal(pthread_create(&thread, NULL, installing, NULL), 0);
	wait_for(&parked);
	assert_int_equal(pthread_create(&drainer, NULL, draining, NULL), 0);
	wait_for(&parked_too);
	raise_flag(&go);
	(void)pthread_join(thread, NULL);
	if (pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ)
		STRESS_EQUAL(slots_of(5), 0);
	raise_flag(&go_too);
	(void)pthread_join(drainer, NULL);
	mine.pages[5] = 3;
	end();
}

/*
 * The points 59 (behind a commit, where its reference should have been taken already)
 * and 60 (between the looks at the state and at the epoch, which have the other order),
 * and 62 to 65 below, are passed by mutants only; see tests/mutants.
 */
static int stop_at;

static void *installing_up_to(void *arg)
{
	(void)arg;
	stress_pin(1);
	hook_do = park;
	hook_at = stop_at;
	STRESS_EQUAL(pcbatch_group_charge(tree.group[5], 3), 0);
	raise_flag(&parked);
	return NULL;
}

/* A slot's reference is there as soon as the slot can be drained. */
static void drained_right_after_commit(void **state)
{
	struct pcbatch_group *again = NULL;
	pthread_t thread;

	(void)state;
	begin(NULL);
	stop_at = 59;
	assert_int_equal(pthread_create(&thread, NULL, installing_up_to, NULL), 0);
	wait_for(&parked);
	STRESS_EQUAL(pcbatch_group_drain(tree.group[5]), 0);
	STRESS_CHECK(tree.group[5]->owner.refs >= 1, tree.group[5]->owner.refs, 1);
	STRESS_EQUAL(pcbatch_group_create(&tree.dom, NULL, NULL, &again), 0);
	STRESS_EQUAL(pcbatch_group_destroy(again), 0);
	raise_flag(&go);
	(void)pthread_join(thread, NULL);
	assert_int_equal(stress_failures, 0);
	mine.pages[5] = 3;
	end();
}

/* Whoever saw the group online before it went offline sees that the epoch has moved. */
static void offline_before_epoch(void **state)
{
	pthread_t thread;

	(void)state;
	begin(NULL);
	stop_at = 60;
	assert_int_equal(pthread_create(&thread, NULL, installing_up_to, NULL), 0);
	wait_for(&parked);
	STRESS_EQUAL(pcbatch_group_offline(tree.group[5]), 0);
	raise_flag(&go);
	(void)pthread_join(thread, NULL);
	STRESS_EQUAL(slots_of(5), 0);
	mine.pages[5] = 3;
	end();
}

/* ------------------------------------------------------------ two at a time */

/* The first of two drainers of a CPU leaves its gate closed for the other. */
static void two_drainers(void **state)
{
	pthread_t drainer;
	uint64_t *gate;

	(void)state;
	begin(NULL);
	stress_pin(1);
	stress_charge(&tree, &mine, 2, 1, 0, false);
	assert_int_equal(pthread_create(&drainer, NULL, draining, NULL), 0);
	wait_for(&parked_too);
	if (pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ) {
		gate = &pcbatch_priv_stock(&tree.dom, pcbatch_priv_cpu(&tree.dom))->page.gate;
		STRESS_EQUAL(*gate, 1);
		STRESS_EQUAL(pcbatch_group_drain(tree.group[2]), 0);
		STRESS_EQUAL(*gate, 1);
	}
	raise_flag(&go_too);
	(void)pthread_join(drainer, NULL);
	end();
}

static int looks;

/* At the fifth look of a charge that two levels see: the batch and the pages alone were refused, and what is cached is drained. */
static void park_at_the_fifth(void)
{
	if (++looks < 5)
		hook_at = 4;
	else
		park_too();
}

static void *refused(void *arg)
{
	(void)arg;
	looks = 0;
	hook_do = park_at_the_fifth;
	hook_at = 4;
	STRESS_EQUAL(pcbatch_group_charge(tree.group[2], 60), -ENOMEM);
	raise_flag(&parked_too);
	return NULL;
}

/* 50 of 100 pages are charged, nothing is cached, and another thread's charge of 60 is being decided. */
static void begin_refusal(pthread_t *thread)
{
	begin(NULL);
	stress_limit(&tree, 0, 100);
	stress_pin(1);
	stress_charge(&tree, &mine, 2, 50, 0, false);
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	assert_int_equal(pthread_create(thread, NULL, refused, NULL), 0);
	wait_for(&parked_too);
	STRESS_EQUAL(tree.dom.install_gate & 0xffff, 1);
}

static void end_refusal(pthread_t thread)
{
	raise_flag(&go_too);
	(void)pthread_join(thread, NULL);
	end();
}

/* The first of two that hold leaves the other's hold in place. */
static void two_holders(void **state)
{
	pthread_t thread;

	(void)state;
	begin_refusal(&thread);
	STRESS_EQUAL(pcbatch_group_charge(tree.group[2], 2000), -ENOMEM);
	STRESS_EQUAL(tree.dom.install_gate & 0xffff, 1);
	end_refusal(thread);
}

/* What is given back meanwhile, pages (too few of them) and bytes, is not cached. */
static void nothing_cached_while_held(void **state)
{
	pthread_t thread;

	(void)state;
	begin_refusal(&thread);
	stress_uncharge(&tree, &mine, 2, 5, 0);
	STRESS_EQUAL(slots_of(2), 0);
	STRESS_EQUAL(pcbatch_group_charge_bytes(tree.group[1], 5000), 0);
	STRESS_EQUAL(slots_of(1), 0);
	STRESS_EQUAL(pcbatch_group_uncharge_bytes(tree.group[1], 4000), 0);
	STRESS_EQUAL(slots_of(1), 0);
	mine.bytes[1] = 1000;
	end_refusal(thread);
}

static void *giving_back(void *arg)
{
	(void)arg;
	stress_pin(1);
	hook_do = park;
	hook_at = 7;
	stress_uncharge(&tree, &mine, 2, 5, 0);
	return NULL;
}

/* What was about to be cached before the hold is not cached during it. */
static void prepared_before_a_hold(void **state)
{
	pthread_t thread, giver;

	(void)state;
	begin(NULL);
	stress_limit(&tree, 0, 100);
	stress_charge(&tree, &mine, 2, 50, 0, false);
	STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
	assert_int_equal(pthread_create(&giver, NULL, giving_back, NULL), 0);
	wait_for(&parked);
	assert_int_equal(pthread_create(&thread, NULL, refused, NULL), 0);
	wait_for(&parked_too);
	raise_flag(&go);
	(void)pthread_join(giver, NULL);
	STRESS_EQUAL(slots_of(2), 0);
	end_refusal(thread);
}

static void update_another(void)
{
	stress_pin(1);
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[3], 0, 5), 0);
	mine.other[3] += 5;
}

/* Two blocks of a CPU are put on its list at once: both are there. */
static void two_listed_at_once(void **state)
{
	struct pcbatch_domain_attr attr;
	int line;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	for (line = 0; line < 2; line++) {
		attr.current_cpu = cpu_zero_always;
		begin(line == 0 ? NULL : &attr);
		stress_pin(1);
		hook_do = update_another;
		hook_at = 64;
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[4], 0, 7), 0);
		mine.other[4] += 7;
		hook_at = 0;
		end();
	}
}

static void flush_now(void)
{
	STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
}

/* A flush comes in the middle of an update, where a mutant has looked at the list already but not added yet. */
static void flushed_before_the_add(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	attr.current_cpu = cpu_zero_always;
	begin(&attr);
	hook_do = flush_now;
	hook_at = 65;
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[4], 0, 7), 0);
	mine.other[4] += 7;
	hook_at = 0;
	end();
}

/* A block is listed in the middle of a flush, where a mutant has looked at the list already but not emptied it yet. */
static void listed_before_the_take(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	attr.current_cpu = cpu_zero_always;
	begin(&attr);
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[4], 0, 7), 0);
	mine.other[4] += 7;
	hook_do = update_another;
	hook_at = 66;
	STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
	hook_at = 0;
	end();
}

static struct pcbatch_group *dying[2];

static void drop_the_other(void)
{
	pcbatch_priv_owner_put(&dying[1]->owner);
	dying[1] = NULL;
}

/* Two last references are dropped at once: both groups are freed. */
static void two_die_at_once(void **state)
{
	uint64_t owners;
	int i;

	(void)state;
	begin(NULL);
	owners = tree.dom.owners;
	for (i = 0; i < 2; i++) {
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, NULL, NULL, &dying[i]), 0);
		pcbatch_priv_store(&dying[i]->owner.state, PCBATCH_PRIV_OWNER_DEAD);
	}
	hook_do = drop_the_other;
	hook_at = 63;
	pcbatch_priv_owner_put(&dying[0]->owner);
	hook_at = 0;
	if (dying[1] != NULL)
		drop_the_other();
	STRESS_EQUAL(pcbatch_group_reap(&tree.dom), 0);
	STRESS_EQUAL(tree.dom.owners, owners);
	assert_int_equal(stress_failures, 0);
	end();
}

static void charge_the_victim(void)
{
	stress_charge(&tree, &mine, 1, 5, 2, true);
}

/* The slot that an install is about to replace is charged by a handler: its new content is what must come back. */
static void victim_changed_before_commit(void **state)
{
	static const int order[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct pcbatch_domain_attr attr;
	int line, i;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	for (line = 0; line < 2; line++) {
		attr.current_cpu = cpu_zero_always;
		begin(line == 0 ? NULL : &attr);
		stress_pin(1);
		/* The first seven fill the line, the last one's first probe is the first one's. */
		for (i = 0; i < 8; i++) {
			hook_do = charge_the_victim;
			hook_at = i == 7 ? 7 : 0;
			stress_charge(&tree, &mine, order[i], 1, 1, false);
		}
		STRESS_EQUAL(mine.pages[1], 6);
		end();
	}
}

static void move_away(void)
{
	stress_pin(0);
}

/* The thread is moved between reading its CPU's number and the commit, which must not land on the old CPU. */
static void moved_before_commit(void **state)
{
	uint64_t *slot;
	int round, k;

	(void)state;
	begin(NULL);
	if (pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ && stress_cpus > 1) {
		for (round = 0; round < 3; round++) {
			STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
			stress_pin(1);
			if (round == 1) /* a slot it has */
				stress_charge(&tree, &mine, 5, 10, 0, false);
			hook_do = move_away;
			hook_at = round == 2 ? 6 : 7;
			if (round == 0)
				stress_charge(&tree, &mine, 5, 3, 0, false);
			else if (round == 1)
				stress_uncharge(&tree, &mine, 5, 2, -1);
			else
				stress_charge(&tree, &mine, 5, 3, -1, false);
			if (round == 0)
				for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
					slot = &pcbatch_priv_stock(&tree.dom, (uint32_t)stress_cpu[1])->page.slot[k];
					STRESS_EQUAL(*slot, 0);
				}
			if (round == 1)
				for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
					slot = &pcbatch_priv_stock(&tree.dom, (uint32_t)stress_cpu[1])->page.slot[k];
					if (*slot != 0)
						STRESS_EQUAL(pcbatch_slot_pages(*slot), 54);
				}
			hook_at = 0;
		}
	}
	end();
}

/* ------------------------------------------------------ sections of a long while */

/* On a busy machine the kernel ends most of the sections that are held, before what they wait for happens. */
#define ROUNDS 100

static void hold_sections(void)
{
	section_inside = 0;
	section_held = 1;
}

/* Until the other thread is in the middle of a section, or has done without. */
static void wait_for_section(const uint32_t *done)
{
	while (section_inside == 0 && !__atomic_load_n(done, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void *one_install(void *arg)
{
	(void)arg;
	stress_pin(1);
	STRESS_EQUAL(pcbatch_group_charge(tree.group[5], 3), 0);
	raise_flag(&parked);
	return NULL;
}

static void let_it_land(void)
{
	section_held = 0;
	wait_for(&parked);
}

/* Offline finds nothing cached, and must still wait out a section that is about to cache something. */
static void offline_during_commit(void **state)
{
	pthread_t thread;
	int round;

	(void)state;
	for (round = 0; round < ROUNDS && stress_failures == 0; round++) {
		begin(NULL);
		stress_pin(0);
		hold_sections();
		assert_int_equal(pthread_create(&thread, NULL, one_install, NULL), 0);
		wait_for_section(&parked);
		hook_do = let_it_land;
		hook_at = 62;
		STRESS_EQUAL(pcbatch_group_offline(tree.group[5]), 0);
		hook_at = 0;
		section_held = 0;
		(void)pthread_join(thread, NULL);
		STRESS_EQUAL(slots_of(5), 0);
		mine.pages[5] = 3;
		stress_settle(&tree, &mine);
	}
	assert_int_equal(stress_failures, 0);
}

static void *changing(void *arg)
{
	(void)arg;
	stress_pin(1);
	slow_commits = 1;
	hook_do = park;
	hook_at = 7;
	stress_uncharge(&tree, &mine, 1, 1, 0);
	raise_flag(&parked);
	raise_flag(&parked_too);
	return NULL;
}

static void let_it_begin(void)
{
	raise_flag(&go);
	wait_for_section(&parked_too);
}

/* A thread stops between its look at the gate and its section, which begins when a drainer is past its fence. */
static void drain_during_commit(void **state)
{
	pthread_t thread;
	int round;

	(void)state;
	for (round = 0; round < ROUNDS && stress_failures == 0; round++) {
		begin(NULL);
		stress_pin(1);
		/* Its first probe is taken, so that it is changed on the slow path. */
		stress_charge(&tree, &mine, 8, 1, 0, false);
		stress_charge(&tree, &mine, 1, 3, 0, false);
		hold_sections();
		assert_int_equal(pthread_create(&thread, NULL, changing, NULL), 0);
		stress_pin(0);
		wait_for(&parked);
		hook_do = let_it_begin;
		hook_at = 8;
		STRESS_EQUAL(pcbatch_group_drain(tree.group[1]), 0);
		hook_at = 0;
		section_held = 0;
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		stress_settle(&tree, &mine);
	}
	assert_int_equal(stress_failures, 0);
}

static void *one_update(void *arg)
{
	(void)arg;
	stress_pin(1);
	STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[5], 0, 1), 0);
	raise_flag(&parked);
	return NULL;
}

/* A flush takes the block while an update that saw it listed has not stored yet. */
static void flush_during_update(void **state)
{
	pthread_t thread;
	int round;

	(void)state;
	begin(NULL);
	stress_find_cpus();
	for (round = 0; round < ROUNDS && stress_failures == 0; round++) {
		parked = 0;
		stress_pin(1);
		STRESS_EQUAL(pcbatch_group_stat_mod(tree.group[5], 0, 1), 0);
		stress_pin(0);
		hold_sections();
		assert_int_equal(pthread_create(&thread, NULL, one_update, NULL), 0);
		wait_for_section(&parked);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		section_held = 0;
		(void)pthread_join(thread, NULL);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		mine.other[5] += 2;
		STRESS_EQUAL(pcbatch_group_stat_read(tree.group[5], 0), mine.other[5]);
	}
	end();
}

/* --------------------------------------------------- instruction by instruction */

#if defined(__x86_64__)
#define TRAP_FLAG 0x100

static uint64_t step_now, step_at;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;

	(void)sig;
	(void)info;
	if (++step_now < step_at)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (step_now == step_at)
		park();
}

static void catch_traps(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	(void)sigaction(SIGTRAP, &action, NULL);
}

static void step_on(void)
{
	step_now = 0;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

static void step_off(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long long)TRAP_FLAG);
}

static int result;

static void *charging(void *arg)
{
	(void)arg;
	stress_pin(0);
	step_on();
	result = pcbatch_group_charge(tree.group[2], 60);
	step_off();
	raise_flag(&parked);
	return NULL;
}

/*
 * A charge for which there is no room yet stops at one instruction after the other, and
 * another thread gives back what is missing. Up to the last look at the limit the
 * charge must be granted, wherever it stopped.
 */
static void room_at_each_instruction(void **state)
{
	uint64_t granted = 0, stride = 19;
	pthread_t thread;
	bool must;

	(void)state;
	catch_traps();
	for (step_at = 1; stress_failures == 0; step_at += stride) {
		begin(NULL);
		/* Many lines make a drain long. */
		stride = pcbatch_domain_backend(&tree.dom) == PCBATCH_BACKEND_RSEQ ? 19 : 61;
		stress_limit(&tree, 0, 100);
		stress_pin(1);
		stress_charge(&tree, &mine, 2, 50, 0, false);
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		result = 1;
		levels_charged = 0;
		assert_int_equal(pthread_create(&thread, NULL, charging, NULL), 0);
		wait_for(&parked);
		/* Refused as a batch and as it is, on two levels each, and the last attempt has not begun: 50 are charged. */
		must = levels_charged <= 4 && pcbatch_group_current(tree.group[0]) == 50 && pcbatch_group_current(tree.group[2]) == 50;
		stress_uncharge(&tree, &mine, 2, 50, 0);
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		STRESS_CHECK(result == 0 || (result == -ENOMEM && !must), result, step_at);
		if (result == 0)
			mine.pages[2] += 60;
		granted += must;
		stress_settle(&tree, &mine);
		if (step_now < step_at)
			break;
	}
	printf("room_at_each_instruction: %" PRIu64 " points, up to instruction %" PRIu64 "\n", granted, step_at);
	assert_true(granted > 10);
	assert_int_equal(stress_failures, 0);
}

static void *limiting(void *arg)
{
	(void)arg;
	step_on();
	result = pcbatch_group_set_max(tree.group[2], 10);
	step_off();
	raise_flag(&parked);
	return NULL;
}

/* A limit comes down while somebody charges: either it is refused, or the charge is. */
static void charge_at_each_instruction(void **state)
{
	pthread_t thread;
	int err;

	(void)state;
	catch_traps();
	for (step_at = 1; stress_failures == 0; step_at++) {
		begin(NULL);
		stress_limit(&tree, 2, 500);
		result = 1;
		assert_int_equal(pthread_create(&thread, NULL, limiting, NULL), 0);
		wait_for(&parked);
		err = pcbatch_group_charge(tree.group[2], 80);
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		STRESS_CHECK(result == 0 || result == -EBUSY, result, step_at);
		STRESS_CHECK(err != 0 || result != 0 || step_now < step_at, err, step_at);
		STRESS_CHECK((err == 0 ? 80 : 0) <= pcbatch_group_max(tree.group[2]), pcbatch_group_max(tree.group[2]), step_at);
		mine.pages[2] = err == 0 ? 80 : 0;
		STRESS_EQUAL(pcbatch_group_set_max(tree.group[2], 500), 0);
		stress_settle(&tree, &mine);
		if (step_now < step_at)
			break;
	}
	printf("charge_at_each_instruction: %" PRIu64 " points\n", step_at);
	assert_int_equal(stress_failures, 0);
}
#endif

/* ------------------------------------------------------- who evicts holds alone */

static __thread int cpu_calls, park_at_call;

static int cpu_zero(void *ctx)
{
	(void)ctx;
	if (park_at_call != 0 && ++cpu_calls == park_at_call)
		park();
	return 0;
}

static int evict_step;

static void *evicting(void *arg)
{
	static const int order[] = { 6, 7, 8, 0, 1, 3, 4, 2 };
	int i;

	(void)arg;
	/* They fill the only line, and the last one's first probe is where the group of the test is. */
	for (i = 0; i < 8; i++) {
		cpu_calls = 0;
		park_at_call = i == 7 ? evict_step : 0;
		STRESS_EQUAL(pcbatch_group_charge(tree.group[order[i]], 1), 0);
	}
	park_at_call = 0;
	raise_flag(&parked);
	return NULL;
}

/*
 * A group is destroyed while another thread, stopped at every point where it asks for
 * its CPU, may have the group's evicted word in hand; its statistic arrives all the
 * same, and the group is freed exactly once.
 */
static void destroy_while_evicted(void **state)
{
	struct pcbatch_domain_attr attr;
	pthread_t thread;
	int i, err, pinned = 0;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.current_cpu = cpu_zero;
	attr.cpus = 1;
	for (evict_step = 1; evict_step < 20 && stress_failures == 0; evict_step++) {
		struct pcbatch_group *g = NULL, *again = NULL;
		uint64_t owners;

		begin(&attr);
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, tree.group[0], NULL, &g), 0);
		owners = tree.dom.owners;
		/* A slot without pages, but with a statistic. */
		STRESS_EQUAL(pcbatch_group_charge_stat(g, 1, 7), 0);
		STRESS_EQUAL(pcbatch_group_charge_stat(g, 63, 0), 0);
		STRESS_EQUAL(pcbatch_group_uncharge_direct(g, 64), 0);
		mine.stat[0] += 7;
		assert_int_equal(pthread_create(&thread, NULL, evicting, NULL), 0);
		wait_for(&parked);
		err = pcbatch_group_destroy(g);
		STRESS_EQUAL(err, 0);
		pinned += tree.dom.owners == owners;
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		STRESS_EQUAL(pcbatch_group_reap(&tree.dom), 0);
		STRESS_EQUAL(tree.dom.owners, owners - 1);
		STRESS_EQUAL(pcbatch_group_create(&tree.dom, NULL, NULL, &again), 0);
		STRESS_EQUAL(pcbatch_group_current(again), 0);
		STRESS_EQUAL(pcbatch_group_destroy(again), 0);
		for (i = 0; i < 9; i++)
			mine.pages[i] += i != 5;
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		STRESS_EQUAL(pcbatch_stats_flush(&tree.dom, NULL), 0);
		/* Group 0's own part of it came from a group that is gone. */
		STRESS_EQUAL(pcbatch_group_stat_read_signed(tree.group[0], STRESS_ITEM), 7);
		STRESS_EQUAL(pcbatch_group_stat_read_local(tree.group[0], STRESS_ITEM), 0);
		stress_settle(&tree, &mine);
	}
	printf("destroy_while_evicted: pinned by a thread %d times\n", pinned);
	assert_true(pinned > 0);
	assert_int_equal(stress_failures, 0);
}

/* The first level that refuses is drained, then another refuses, which has to be drained as well. */
static void two_levels_in_turn(void **state)
{
	struct pcbatch_group *cousin = NULL;
	int i;

	(void)state;
	begin(NULL);
	/* 8 is below 2, which is below 0; 3 is below 0. */
	stress_limit(&tree, 0, 200);
	stress_limit(&tree, 2, 120);
	STRESS_EQUAL(pcbatch_group_create(&tree.dom, tree.group[2], NULL, &cousin), 0);
	for (i = 0; i < 50; i++) {
		stress_pin(i);
		STRESS_EQUAL(pcbatch_group_charge(cousin, 30), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(cousin, 30), 0);
		stress_pin(i + 1);
		STRESS_EQUAL(pcbatch_group_charge(tree.group[3], 120), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(tree.group[3], 60), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(tree.group[3], 60), 0);
		STRESS_EQUAL(pcbatch_group_charge(tree.group[8], 120), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(tree.group[8], 120), 0);
	}
	STRESS_EQUAL(pcbatch_group_destroy(cousin), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(offline_before_commit),
		stress_test(one_slot_each),
		stress_test(gate_before_commit),
		stress_test(drained_right_after_commit),
		stress_test(offline_before_epoch),
		stress_test(two_drainers),
		stress_test(two_holders),
		stress_test(nothing_cached_while_held),
		stress_test(prepared_before_a_hold),
		stress_test(two_listed_at_once),
		stress_test(flushed_before_the_add),
		stress_test(listed_before_the_take),
		stress_test(two_die_at_once),
		stress_test(victim_changed_before_commit),
		stress_test(moved_before_commit),
		stress_test(offline_during_commit),
		stress_test(drain_during_commit),
		stress_test(flush_during_update),
#if defined(__x86_64__)
		stress_test(room_at_each_instruction),
		stress_test(charge_at_each_instruction),
#endif
		stress_test(destroy_while_evicted),
		stress_test(two_levels_in_turn),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
