/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: musl_own THREADS
 * A libc without an rseq area: the automatic backend is generic, forcing rseq is
 * refused, and a program that registers an area for each of its threads gets rseq,
 * with threads that don't among them. Every thread unregisters before it ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <pcbatch.h>

#define AT_ONCE 8

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_group *group[9];
static struct pcbatch_counter counter;
static __thread struct pcbatch_rseq_area area = PCBATCH_RSEQ_AREA_INIT;
static uint32_t failures;

#define CHECK(cond)                                                                      \
	do {                                                                             \
		if (!(cond)) {                                                           \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);       \
			(void)__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);        \
		}                                                                        \
	} while (0)

static void *work(void *arg)
{
	uintptr_t n = (uintptr_t)arg;
	int i;

	if (n % 5 != 0)
		CHECK(pcbatch_rseq_register(&area) == 0);
	for (i = 0; i < 40; i++) {
		CHECK(pcbatch_group_charge_stat(group[n % 9], 3, 2) == 0);
		CHECK(pcbatch_group_uncharge_stat(group[n % 9], 2, 1) == 0);
		CHECK(pcbatch_group_uncharge_stat(group[n % 9], 1, 1) == 0);
		pcbatch_counter_add(&counter, 1);
		if (i % 16 == 0)
			(void)sched_yield();
	}
	if (n % 17 == 0)
		CHECK(pcbatch_stock_drain_all(&dom) == 0);
	if (n % 5 != 0)
		CHECK(pcbatch_rseq_unregister(&area) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_stock_info info;
	pthread_t thread[AT_ONCE];
	uintptr_t i, threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

	CHECK(pcbatch_domain_init(&dom, NULL) == 0);
	CHECK(pcbatch_domain_backend(&dom) == PCBATCH_BACKEND_GENERIC);
	CHECK(pcbatch_domain_destroy(&dom) == 0);
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	CHECK(pcbatch_domain_init(&dom, &attr) == -ENOTSUP);
	if (pcbatch_rseq_register(&area) != 0) {
		printf("the kernel refuses rseq\n");
		return 77;
	}
	attr.thread_area = &area;
	if (pcbatch_domain_init(&dom, &attr) != 0) {
		printf("the kernel refuses the fence of rseq\n");
		return 77;
	}
	for (i = 0; i < 9; i++)
		CHECK(pcbatch_group_create(&dom, i == 0 ? NULL : group[(i - 1) / 2], NULL, &group[i]) == 0);
	CHECK(pcbatch_counter_init(&counter, &dom, 0) == 0);
	for (i = 0; i < threads; i++) {
		if (i >= AT_ONCE)
			(void)pthread_join(thread[i % AT_ONCE], NULL);
		CHECK(pthread_create(&thread[i % AT_ONCE], NULL, work, (void *)i) == 0);
	}
	for (i = 0; i < AT_ONCE && i < threads; i++)
		(void)pthread_join(thread[i], NULL);
	CHECK(pcbatch_stock_info_read(&dom, &info) == 0 && info.hits > threads * 40);
	CHECK(pcbatch_stock_drain_all(&dom) == 0);
	CHECK(pcbatch_stats_flush(&dom, NULL) == 0);
	CHECK(pcbatch_group_current(group[0]) == 0);
	CHECK(pcbatch_group_stat_read_signed(group[0], 0) == 0);
	CHECK(pcbatch_counter_sum(&counter) == (int64_t)threads * 40);
	for (i = 9; i-- > 0;)
		CHECK(pcbatch_group_destroy(group[i]) == 0);
	CHECK(pcbatch_counter_destroy(&counter) == 0);
	CHECK(pcbatch_domain_destroy(&dom) == 0);
	CHECK(pcbatch_rseq_unregister(&area) == 0);
	printf("%lu threads, %lu hits\n", (unsigned long)threads, (unsigned long)info.hits);
	return failures != 0;
}
