/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* read_real.h - bench_read.c's other half: drains on the real CPUs, lifetimes, memory. */
#ifndef PCBATCH_BENCH_READ_REAL_H
#define PCBATCH_BENCH_READ_REAL_H

#include "base.h"

/* ---- drains on the real CPUs, the other CPU in user code ---- */

static struct pcbatch_domain real_dom;
static struct pcbatch_group *mine, *theirs;
static unsigned int errand __attribute__((aligned(64))); /* odd: the other thread shall fill its CPU's slots */

static void fill_here(void)
{
	(void)pcbatch_group_charge(mine, 1);
	(void)pcbatch_group_uncharge(mine, 1);
	(void)pcbatch_group_charge(theirs, 1);
	(void)pcbatch_group_uncharge(theirs, 1);
}

static void *other_cpu(void *arg)
{
	unsigned int e;

	(void)arg;
	bench_pin(0);
	while ((e = __atomic_load_n(&errand, __ATOMIC_ACQUIRE)) != UINT32_MAX)
		if (e % 2 != 0) {
			fill_here();
			__atomic_store_n(&errand, e + 1, __ATOMIC_RELEASE);
		}
	return NULL;
}

/* Fills this CPU's and the other's slots. */
static void fill_real(int two)
{
	unsigned int e = errand + 1;

	fill_here();
	if (!two)
		return;
	__atomic_store_n(&errand, e, __ATOMIC_RELEASE);
	while (__atomic_load_n(&errand, __ATOMIC_ACQUIRE) == e)
		;
}

/* An owner's drain must leave others' slots what they were: their next charges hit. */
static void check_warm(struct bench_out *out)
{
	struct pcbatch_stock_info a, b;
	int64_t current;

	fill_real(0);
	(void)pcbatch_stock_info_read(&real_dom, &a);
	current = pcbatch_group_current(theirs);
	(void)pcbatch_group_drain(mine);
	bench_out_check(out, "pages cached for an owner after another's drain", pcbatch_group_current(theirs), current);
	(void)pcbatch_group_charge(theirs, 1);
	(void)pcbatch_group_uncharge(theirs, 1);
	(void)pcbatch_stock_info_read(&real_dom, &b);
	bench_out_check(out, "misses after another's drain", (long long)(b.misses - a.misses), 0);
	bench_out_check(out, "pages left to the drained", pcbatch_group_current(mine), 0);
}

enum { REAL_CLOCK, REAL_FENCE, REAL_OWNER, REAL_ALL, REAL_NOTHING, REAL_SUM_FENCED, REAL_WAYS };

static void real_call(unsigned int way, struct pcbatch_counter *c)
{
	int64_t sum;

	if (way == REAL_FENCE)
		(void)pcbatch_priv_fence_rseq();
	else if (way == REAL_OWNER || way == REAL_NOTHING)
		(void)pcbatch_group_drain(mine);
	else if (way == REAL_ALL)
		(void)pcbatch_stock_drain_all(&real_dom);
	else if (way == REAL_SUM_FENCED)
		(void)pcbatch_counter_sum_fenced(c, &sum);
}

static void real(struct bench_out *out)
{
	static const char *const what[REAL_WAYS] = { "reading the clock twice", "membarrier", "drain of one owner", "drain of all",
						     "drain of an owner that no CPU holds", "sum_fenced of a counter" };
	int two = bench_cpus() > 1;
	double us[REAL_WAYS][501], median[REAL_WAYS], transfer = bench_line_transfer();
	unsigned int way, i, rounds = out->quick ? 201 : 501;
	struct pcbatch_counter c;
	pthread_t other;

	base_domain(&real_dom, NULL);
	base_counters(&real_dom, &c, 1);
	mine = base_chain(&real_dom, NULL, 1);
	theirs = base_chain(&real_dom, NULL, 1);
	base_describe(out, &real_dom, transfer);
	bench_pin(bench_cpus() - 1);
	if (two && pthread_create(&other, NULL, other_cpu, NULL) != 0)
		bench_die("can't start a thread");
	for (i = 0; i < rounds; i++)
		for (way = 0; way < REAL_WAYS; way++) {
			fill_real(two);
			if (way == REAL_NOTHING)
				(void)pcbatch_group_drain(mine);
			us[way][i] = bench_ns(CLOCK_MONOTONIC);
			real_call(way, &c);
			us[way][i] = (bench_ns(CLOCK_MONOTONIC) - us[way][i]) / 1000;
		}
	bench_out_head("drains, us a call, the other CPU in user code");
	for (way = 0; way < REAL_WAYS; way++)
		median[way] = bench_out_values(out, what[way], two ? 2 : 1, "us", us[way], rounds);
	check_warm(out);
	errand = UINT32_MAX;
	if (two)
		(void)pthread_join(other, NULL);
	bench_out_ratio(out, "drain_owner_us_over_membarrier", median[REAL_OWNER] - median[REAL_FENCE]);
	bench_out_ratio(out, "drain_owner_vs_membarrier",
			(median[REAL_OWNER] - median[REAL_CLOCK]) / (median[REAL_FENCE] - median[REAL_CLOCK]));
	bench_out_note(out, "drain_owner_us_over_membarrier is what a drain takes beyond its fence, in us; it left the other owner's slots as they were");
}

/* ---- lifetimes and memory ---- */

struct tally {
	size_t bytes;
};

static void *tally_zalloc(void *ctx, size_t size, size_t align)
{
	struct tally *t = ctx;

	t->bytes += size;
	return pcbatch_priv_libc_zalloc(NULL, size, align);
}

static void tally_free(void *ctx, void *ptr, size_t size, size_t align)
{
	struct tally *t = ctx;

	t->bytes -= size;
	pcbatch_priv_libc_free(NULL, ptr, size, align);
}

static void lifetimes(struct bench_out *out)
{
	unsigned int i, r, rounds = out->quick ? 5 : 21, n = 2000;
	struct pcbatch_group *g[2000];
	struct pcbatch_counter c[2000];
	double ns[5][21], start;

	for (r = 0; r < rounds; r++) {
		start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < n; i++)
			g[i] = base_chain(&real_dom, mine, 1);
		ns[0][r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
		start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < n; i++)
			if (pcbatch_group_destroy(g[i]) != 0)
				abort();
		ns[1][r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
		for (i = 0; i < n; i++)
			g[i] = base_chain(&real_dom, mine, 1);
		for (i = 0; i < n; i++) {
			(void)pcbatch_group_charge_stat(g[i], 1, 1);
			(void)pcbatch_group_uncharge_stat(g[i], 1, 1);
		}
		start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < n; i++)
			if (pcbatch_group_destroy(g[i]) != 0)
				abort();
		ns[2][r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
		start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		base_counters(&real_dom, c, n);
		ns[3][r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
		start = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < n; i++)
			(void)pcbatch_counter_destroy(&c[i]);
		ns[4][r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - start) / n;
	}
	bench_out_head("lifetimes, ns (CPU time)");
	(void)bench_out_values(out, "group_create", 1, "ns", ns[0], rounds);
	(void)bench_out_values(out, "group_destroy, never charged", 1, "ns", ns[1], rounds);
	(void)bench_out_values(out, "group_destroy, charged before", 1, "ns", ns[2], rounds);
	(void)bench_out_values(out, "counter_init", 1, "ns", ns[3], rounds);
	(void)bench_out_values(out, "counter_destroy", 1, "ns", ns[4], rounds);
}

/* Bytes that a domain takes for each of n counters or groups; 0 of them: for itself. */
static double bytes_each(unsigned int cpus, unsigned int counters, unsigned int groups)
{
	static struct pcbatch_domain dom;
	struct pcbatch_counter *c = bench_alloc(sizeof(*c) * (counters + 1));
	struct pcbatch_domain_attr attr;
	struct tally tally = { 0 };
	double bytes;
	unsigned int i;

	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = cpus;
	attr.zalloc = tally_zalloc;
	attr.free = tally_free;
	attr.alloc_ctx = &tally;
	base_domain(&dom, &attr);
	base_counters(&dom, c, counters);
	for (i = 0; i < groups; i++)
		(void)base_chain(&dom, NULL, 1);
	bytes = (double)tally.bytes;
	if (counters + groups > 0)
		bytes /= counters + groups;
	else
		bytes += sizeof(dom);
	dom.owners = dom.counters = 0;
	pcbatch_priv_domain_release(&dom);
	free(c);
	return bytes;
}

/* A million counters in a domain of their own: CPU time to create them, page faults included. */
static void million(struct bench_out *out)
{
	static struct pcbatch_domain dom;
	struct pcbatch_counter *c = bench_alloc(sizeof(*c) * 1000000);
	unsigned int i, r, rounds = out->quick ? 3 : 5;
	double seconds[5];

	for (r = 0; r < rounds; r++) {
		base_domain(&dom, NULL);
		seconds[r] = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		base_counters(&dom, c, 1000000);
		seconds[r] = (bench_ns(CLOCK_THREAD_CPUTIME_ID) - seconds[r]) / 1e9;
		for (i = 0; i < 1000000; i += 1000)
			pcbatch_counter_add(&c[i], 1);
		bench_out_check(out, "sum of a million counters", base_sum(c, 1000000), 1000);
		dom.counters = 0;
		pcbatch_priv_domain_release(&dom);
	}
	bench_out_ratio(out, "million_counters_seconds",
			bench_out_values(out, "a million counters in one domain created", 1, "s", seconds, rounds));
	free(c);
}

static void memory(struct bench_out *out)
{
	static const unsigned int cpus[3] = { 2, 64, 512 };
	double bytes;
	char name[64];
	unsigned int i;

	bench_out_head("memory, bytes of address space, by the allocator callbacks");
	for (i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "a domain, %u CPUs", cpus[i]);
		bytes = bytes_each(cpus[i], 0, 0);
		bench_out_value(out, name, 1, "bytes", bytes, bytes, 1);
		(void)snprintf(name, sizeof(name), "a counter of 100000, %u CPUs", cpus[i]);
		bytes = bytes_each(cpus[i], 100000, 0);
		bench_out_value(out, name, 1, "bytes", bytes, bytes, 1);
		if (i == 0)
			bench_out_ratio(out, "bytes_per_counter_2cpu", bytes);
		(void)snprintf(name, sizeof(name), "a group of 10000, %u CPUs", cpus[i]);
		bytes = bytes_each(cpus[i], 0, 10000);
		bench_out_value(out, name, 1, "bytes", bytes, bytes, 1);
	}
	bench_out_note(out, "of which what was never written takes no memory; the caller's struct pcbatch_counter comes on top: %zu bytes",
		       sizeof(struct pcbatch_counter));
	million(out);
}

#endif /* PCBATCH_BENCH_READ_REAL_H */
