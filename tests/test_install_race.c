/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an owner never gets two slots in a line, when a thread looks at the line
 * from another CPU between the two stores of somebody's install: it has been moved away
 * just before the look, and is back for its own install. Of sections only: a generic
 * store looks for a second slot afterwards.
 */
/* backend: none */
static void test_hook(int n);
#define PCBATCH_INJECT_C(n) test_hook(n)
#if defined(__x86_64__)
/* Between the count and the slot's store the one thread with test_waits set waits, for up to about 0.1 s. */
extern __thread unsigned int test_waits;
extern volatile unsigned int test_counted, test_hold;
#define PCBATCH_INJECT_ASM(n)                                 \
	".if " #n " == 20\n\t"                                \
	"cmpl $0, %%fs:test_waits@tpoff\n\t"                  \
	"je 78f\n\t"                                          \
	"movl $1, test_counted(%%rip)\n"                      \
	"77:\n\t"                                             \
	"decl %%fs:test_waits@tpoff\n\t"                      \
	"jz 78f\n\t"                                          \
	"pause\n\t"                                           \
	"cmpl $0, test_hold(%%rip)\n\t"                       \
	"jne 77b\n"                                           \
	"78:\n\t"                                             \
	".endif\n\t"
#endif
#include "util.h"

#include <pthread.h>
#include <sched.h>

#if defined(__x86_64__)

__thread unsigned int test_waits __attribute__((used));
volatile unsigned int test_counted __attribute__((used)), test_hold __attribute__((used));

enum { POINT_LOOK = 9, POINT_INSTALL = 7 };

static __thread void (*at_look)(void), (*at_install)(void);
static uint32_t placed, go, done;
static struct pcbatch_group *group[8];

static void test_hook(int n)
{
	void (**at)(void) = n == POINT_LOOK ? &at_look : n == POINT_INSTALL ? &at_install : NULL;
	void (*fn)(void) = at == NULL ? NULL : *at;

	if (fn == NULL)
		return;
	*at = NULL;
	fn();
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

/* The installer: has chosen its slot and waits, then stands in the middle of its section. */
static void wait_before_install(void)
{
	raise_flag(&placed);
	wait_for(&go);
	test_waits = 2000000;
}

static void *installer(void *arg)
{
	(void)arg;
	pin(nth_cpu(0));
	at_install = wait_before_install;
	assert_int_equal(pcbatch_group_charge(group[7], 1), 0);
	test_waits = 0;
	raise_flag(&done);
	return NULL;
}

/* The other one: leaves the CPU before it looks, and lets the installer begin. */
static void leave(void)
{
	pin(nth_cpu(1));
	raise_flag(&go);
	while (test_counted == 0 && !__atomic_load_n(&done, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static void come_back(void)
{
	test_hold = 0;
	wait_for(&done);
	pin(nth_cpu(0));
}

static void one_slot_an_owner(void **state)
{
	struct pcbatch_domain dom;
	pthread_t thread;
	int round, i;

	(void)state;
	if (nth_cpu(1) < 0 || pcbatch_domain_init(&dom, NULL) != 0)
		skip();
	if (pcbatch_domain_backend(&dom) != PCBATCH_BACKEND_RSEQ) {
		assert_int_equal(pcbatch_domain_destroy(&dom), 0);
		skip();
	}
	/* The first and the last have the same home. */
	for (i = 0; i < 8; i++)
		assert_int_equal(pcbatch_group_create(&dom, NULL, NULL, &group[i]), 0);
	for (round = 0; round < 20; round++) {
		placed = go = done = 0;
		test_counted = 0;
		test_hold = 1;
		assert_int_equal(pcbatch_group_charge(group[0], 1), 0);
		assert_int_equal(pthread_create(&thread, NULL, installer, NULL), 0);
		wait_for(&placed);
		/* Empties the home: the next one chooses that, the installer had to go past it. */
		assert_int_equal(pcbatch_stock_drain_all(&dom), 0);
		at_look = leave;
		at_install = come_back;
		assert_int_equal(pcbatch_group_charge(group[7], 1), 0);
		at_look = at_install = NULL;
		test_hold = 0;
		raise_flag(&go);
		(void)pthread_join(thread, NULL);
		for (i = 0; i < (int)dom.lines; i++) {
			const struct pcbatch_priv_line *line = &pcbatch_priv_stock(&dom, (uint32_t)i)->page;
			int k, slots = 0;

			for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
				slots += pcbatch_slot_owner(line->slot[k]) == group[7]->owner.id;
			assert_true(slots <= 1);
		}
		pin(nth_cpu(0));
		assert_int_equal(pcbatch_group_uncharge(group[7], 2), 0);
		assert_int_equal(pcbatch_group_uncharge(group[0], 1), 0);
		assert_int_equal(pcbatch_stock_drain_all(&dom), 0);
	}
	for (i = 0; i < 8; i++)
		assert_int_equal(pcbatch_group_destroy(group[i]), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
}

#else

static void test_hook(int n)
{
	(void)n;
}

static void one_slot_an_owner(void **state)
{
	(void)state;
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_slot_an_owner),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
