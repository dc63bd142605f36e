/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group without a limit: bytes come from and go to this CPU's slot, and about one allocation in
 * hundreds touches a shared line. Forced charges, since here an allocation is counted, not asked for;
 * what is done about too much is eviction's business.
 */
#ifndef USED_PCBATCH_H
#define USED_PCBATCH_H

#include <pthread.h>

#include <pcbatch.h>

static struct pcbatch_domain used_domain;
static struct pcbatch_group *used_group; /* NULL until the first allocation */
static pthread_once_t used_once = PTHREAD_ONCE_INIT;

static void used_init(void)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_group *group;

	(void)pcbatch_domain_attr_init(&attr);
	/* The slack is (high + obj_high) a CPU: 32 pages and 64 KiB here, little beside a maxmemory. */
	attr.stock_batch = 16;
	if (pcbatch_domain_init(&used_domain, &attr) != 0 || pcbatch_group_create(&used_domain, NULL, NULL, &group) != 0)
		abort();
	__atomic_store_n(&used_group, group, __ATOMIC_RELEASE);
}

/* The first allocation of a process, maybe before main. */
static __attribute__((noinline, cold)) struct pcbatch_group *used_first(void)
{
	(void)pthread_once(&used_once, used_init);
	return used_group;
}

static inline struct pcbatch_group *used_now(void)
{
	struct pcbatch_group *group = __atomic_load_n(&used_group, __ATOMIC_ACQUIRE);

	return __builtin_expect(group != NULL, 1) ? group : used_first();
}

static inline void used_add(size_t bytes)
{
	(void)pcbatch_group_charge_bytes_force(used_now(), bytes);
}

static inline void used_sub(size_t bytes)
{
	(void)pcbatch_group_uncharge_bytes(used_now(), bytes);
}

static inline size_t used_read(void)
{
	struct pcbatch_group *group = used_now();

	return (size_t)pcbatch_group_current(group) * used_domain.attr.page_size;
}

static inline size_t used_sum(void)
{
	int64_t bytes;

	return pcbatch_group_bytes(used_now(), &bytes) == 0 ? (size_t)bytes : used_read();
}

static inline size_t used_slack(void)
{
	return (size_t)pcbatch_group_error_bound(used_now()) * used_domain.attr.page_size;
}

static inline const char *used_name(void)
{
	(void)used_now();
	return pcbatch_domain_backend(&used_domain) == PCBATCH_BACKEND_RSEQ ? "pcbatch rseq" : "pcbatch generic";
}

#endif /* USED_PCBATCH_H */
