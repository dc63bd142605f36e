/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: rt
 * Real-time threads against ordinary ones on one CPU, where neither may keep the other from getting on: a
 * charger of high priority while a drainer of low priority has the gates closed, a lock that a thread of low
 * priority holds, and a drainer of high priority that interrupts a charger all the time. Wants
 * kernel.sched_rt_runtime_us = -1, else the kernel itself lets the ordinary threads on for a moment in each second.
 * Exit status: 0 exact; 1 not; 77 real-time priorities are not permitted. Never ending is what a failure may look like.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void at_point(int n);
#define PCBATCH_INJECT_C(n) at_point(n)
#include <pcbatch.h>

#define CHARGES 10000

static struct pcbatch_domain dom;
static struct pcbatch_group *group;
static __thread bool slow_drain;
static uint32_t closed, charged, holding, stop;
static uint64_t direct_charges, drains, charges;
static int wrong;

static uint32_t flag(const uint32_t *f)
{
	return __atomic_load_n(f, __ATOMIC_SEQ_CST);
}

static void raise_flag(uint32_t *f)
{
	__atomic_store_n(f, 1, __ATOMIC_SEQ_CST);
}

static void check(const char *what, int64_t is, int64_t should)
{
	if (is == should)
		return;
	printf("FAILED %s: %" PRId64 ", not %" PRId64 "\n", what, is, should);
	wrong++;
}

/* The gates are closed: now the thread of high priority comes and charges. */
static void at_point(int n)
{
	if (n != 8 || !slow_drain)
		return;
	slow_drain = false;
	raise_flag(&closed);
	while (!flag(&charged))
		(void)sched_yield();
}

static bool start(pthread_t *thread, void *(*fn)(void *), int priority)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	(void)pthread_attr_setschedpolicy(&attr, priority > 0 ? SCHED_FIFO : SCHED_OTHER);
	(void)pthread_attr_setschedparam(&attr, &param);
	(void)pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	err = pthread_create(thread, &attr, fn, NULL);
	(void)pthread_attr_destroy(&attr);
	return err == 0;
}

/* -------------------------------------------------- a closed gate stops nobody */

static void *low_drainer(void *arg)
{
	slow_drain = true;
	check("drain", pcbatch_stock_drain_all(&dom), 0);
	return arg;
}

static void *high_charger(void *arg)
{
	uint64_t i;

	while (!flag(&closed))
		(void)usleep(1000);
	for (i = 0; i < CHARGES; i++)
		check("charge", pcbatch_group_charge_stat(group, 1, 1), 0);
	for (i = 0; i < CHARGES; i++)
		check("uncharge", pcbatch_group_uncharge_stat(group, 1, 1), 0);
	raise_flag(&charged);
	return arg;
}

/* ------------------------------------------------------- a lock, held from below */

static void *slow_zalloc(void *ctx, size_t size, size_t align)
{
	volatile uint64_t i;
	void *ptr = NULL;

	(void)ctx;
	/* The first allocation of a second group is made under the domain's lock. */
	if (flag(&closed) == 2) {
		raise_flag(&holding);
		for (i = 0; i < 100000000; i++)
			;
	}
	if (posix_memalign(&ptr, align, size) != 0)
		return NULL;
	__builtin_memset(ptr, 0, size);
	return ptr;
}

static void ordinary_free(void *ctx, void *ptr, size_t size, size_t align)
{
	(void)ctx;
	(void)size;
	(void)align;
	free(ptr);
}

static void *low_holder(void *arg)
{
	struct pcbatch_counter *c = (struct pcbatch_counter *)calloc(5000, sizeof(*c));
	int i;

	/* So many that memory has to be asked for. */
	for (i = 0; c != NULL && i < 5000; i++)
		check("counter", pcbatch_counter_init(&c[i], &dom, 0), 0);
	for (i = 0; c != NULL && i < 5000; i++)
		check("counter", pcbatch_counter_destroy(&c[i]), 0);
	free(c);
	return arg;
}

static void *high_waiter(void *arg)
{
	struct pcbatch_group *g = NULL;

	while (!flag(&holding))
		(void)usleep(1000);
	check("create", pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	check("destroy", pcbatch_group_destroy(g), 0);
	return arg;
}

/* --------------------------------------------------- a drainer that always comes first */

static void *high_drainer(void *arg)
{
	while (!flag(&stop)) {
		check("drain", pcbatch_stock_drain_all(&dom), 0);
		check("flush", pcbatch_stats_flush(&dom, NULL), 0);
		drains++;
		(void)usleep(200);
	}
	return arg;
}

static void *low_charger(void *arg)
{
	while (!flag(&stop)) {
		check("charge", pcbatch_group_charge_stat(group, 2, 1), 0);
		check("uncharge", pcbatch_group_uncharge_stat(group, 2, 1), 0);
		charges++;
	}
	return arg;
}

static void pair(void *(*low)(void *), void *(*high)(void *), unsigned int seconds)
{
	pthread_t thread[2];

	if (!start(&thread[0], high, 50) || !start(&thread[1], low, 0)) {
		printf("real-time priorities are not permitted here\n");
		exit(77);
	}
	if (seconds != 0) {
		(void)sleep(seconds);
		raise_flag(&stop);
	}
	(void)pthread_join(thread[0], NULL);
	(void)pthread_join(thread[1], NULL);
}

int main(void)
{
	struct pcbatch_stock_info info;
	struct pcbatch_domain_attr attr;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)pcbatch_domain_attr_init(&attr);
	attr.zalloc = slow_zalloc;
	attr.free = ordinary_free;
	if (pcbatch_domain_init(&dom, &attr) != 0 || pcbatch_group_create(&dom, NULL, NULL, &group) != 0)
		return 1;
	printf("backend=%s cpus=%" PRIu32 "\n", pcbatch_backend_name(pcbatch_domain_backend(&dom)), pcbatch_domain_cpus(&dom));
	/* So that there is something to drain, and gates to close. */
	check("charge", pcbatch_group_charge(group, 1), 0);
	check("uncharge", pcbatch_group_uncharge(group, 1), 0);
	if (pcbatch_domain_backend(&dom) == PCBATCH_BACKEND_RSEQ) {
		pair(low_drainer, high_charger, 0);
		(void)pcbatch_stock_info_read(&dom, &info);
		direct_charges = info.direct;
	}
	__atomic_store_n(&closed, 2, __ATOMIC_SEQ_CST);
	pair(low_holder, high_waiter, 0);
	__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
	pair(low_charger, high_drainer, 3);
	check("drain", pcbatch_stock_drain_all(&dom), 0);
	check("flush", pcbatch_stats_flush(&dom, NULL), 0);
	check("usage", pcbatch_group_current(group), 0);
	check("statistic", pcbatch_group_stat_read_signed(group, 0), 0);
	check("progress of the charger", charges > 1000, true);
	check("progress of the drainer", drains > 100, true);
	printf("ops=%" PRIu64 " direct behind a closed gate=%" PRIu64 " drains=%" PRIu64 "\n", charges, direct_charges, drains);
	check("destroy", pcbatch_group_destroy(group), 0);
	check("destroy", pcbatch_domain_destroy(&dom), 0);
	printf("%s\n", wrong == 0 ? "EXACT" : "LOST");
	return wrong != 0;
}
