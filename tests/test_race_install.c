/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An owner has one slot in a line, also when a thread looked at the line from another CPU while an install there had
 * been counted and not stored yet (found by tests/model/install.pml).
 */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#if defined(__x86_64__)
/* A while between the count of an install and its store (20). */
extern __thread unsigned int install_delay;
#define PCBATCH_INJECT_ASM(n)                                        \
	".if " #n " == 20\n\t"                                       \
	"movl $200000, %%fs:install_delay@tpoff\n"                   \
	"77:\n\t"                                                    \
	"decl %%fs:install_delay@tpoff\n\t"                          \
	"jnz 77b\n\t"                                                \
	".endif\n\t"
#endif
#include "stress.h"

__thread unsigned int install_delay __attribute__((used));

static __thread void (*hook_do)(void); /* at point 7, once: a refill is prepared, and about to commit */
static struct stress tree PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct stress_account mine;
static uint32_t parked, go;

static void test_hook(int n)
{
	void (*todo)(void) = hook_do;

	if (n != 7 || todo == NULL)
		return;
	hook_do = NULL;
	todo();
}

static void park(void)
{
	__atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void move_there(void)
{
	stress_pin(1);
}

/* Finds its first probe taken, and goes to the slot behind it. */
static void *installing(void *arg)
{
	(void)arg;
	stress_pin(1);
	hook_do = park;
	STRESS_EQUAL(pcbatch_group_charge(tree.group[8], 3), 0);
	return NULL;
}

static int slots_there(const struct pcbatch_priv_line *line)
{
	uint32_t id = tree.group[8]->owner.id;
	int k, n = 0;

	for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
		n += pcbatch_slot_owner(pcbatch_priv_load(&line->slot[k])) == id;
	return n;
}

/* By now the first probe is free. Looks at CPU 1's line from CPU 0, is moved there, and commits. */
static void refill_from_afar(struct pcbatch_priv_stock_block *stock, uint64_t installs)
{
	struct pcbatch_owner *owner = &tree.group[8]->owner;
	uint64_t gate = pcbatch_priv_load_acquire(&tree.dom.install_gate);
	struct pcbatch_priv_filled filled;
	uint64_t until = stress_now_ns() + 1000000000;

	while (pcbatch_priv_load_acquire(&stock->installs) == installs && stress_now_ns() < until)
		;
	STRESS_EQUAL(pcbatch_page_counter_try_charge(&owner->pages, 5, NULL), 0);
	hook_do = move_there;
	if (pcbatch_priv_stock_try_refill(owner, (uint32_t)stress_cpu[1], 5, 0, gate, &filled) == PCBATCH_PRIV_TRY_DONE)
		STRESS_EQUAL(pcbatch_priv_stock_refilled(owner, (uint32_t)stress_cpu[1], gate, &filled), 0);
	else
		STRESS_EQUAL(pcbatch_page_counter_uncharge(&owner->pages, 5), 0);
	hook_do = NULL;
}

static void counted_and_not_stored(void **state)
{
	struct pcbatch_priv_stock_block *stock;
	pthread_t thread;
	int round, home;

	(void)state;
	stress_find_cpus();
	for (round = 0; round < 100 && stress_cpus > 1 && stress_failures == 0; round++) {
		stress_init(&tree, 9, NULL);
		if (pcbatch_domain_backend(&tree.dom) != PCBATCH_BACKEND_RSEQ) {
			stress_settle(&tree, &mine);
			break;
		}
		memset(&mine, 0, sizeof(mine));
		parked = go = 0;
		stock = pcbatch_priv_stock(&tree.dom, (uint32_t)stress_cpu[1]);
		home = (int)(tree.group[8]->owner.id % PCBATCH_STOCK_SLOTS);
		assert_int_equal(tree.group[1]->owner.id % PCBATCH_STOCK_SLOTS, home);
		stress_pin(1);
		stress_charge(&tree, &mine, 1, 1, 0, false);
		assert_int_equal(pthread_create(&thread, NULL, installing, NULL), 0);
		while (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST))
			(void)sched_yield();
		stress_pin(0);
		STRESS_EQUAL(pcbatch_stock_drain_all(&tree.dom), 0);
		STRESS_EQUAL(stock->page.slot[home], 0);
		__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
		refill_from_afar(stock, stock->installs);
		(void)pthread_join(thread, NULL);
		mine.pages[8] = 3;
		STRESS_CHECK(slots_there(&stock->page) <= 1, slots_there(&stock->page), 1);
		stress_settle(&tree, &mine);
	}
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(counted_and_not_stored),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
