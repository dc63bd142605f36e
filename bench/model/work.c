/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.c - the variants. All of them run on the generic backend with the CPU number
 * supplied by the caller. One group, no parent, no limit in the way.
 *
 * The three kernel_* variants keep the kernel's layout (kernel_layout.h); page counter
 * and statistics behind it are the library's.
 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#include <pcbatch.h>

#define NOINLINE __attribute__((noinline))
#define BATCH 64

struct padded {
	uint64_t v;
	char pad[56];
} __attribute__((aligned(64)));

/* One shared word for the pages, one for the statistic, and a limit that is only read. */
static struct {
	struct padded usage, stat, max;
} shared;

static struct padded percpu[WORK_CPUS_MAX];

static struct pcbatch_page_counter kpages;
static struct pcbatch_domain dom;
static struct pcbatch_group *group;
static struct pcbatch_counter counter;

#include "kernel_layout.h"

__thread uint32_t work_cpu;

static int current_cpu(void *ctx)
{
	(void)ctx;
	return (int)work_cpu;
}

/* ------------------------------------------------------------------- atomics */

static NOINLINE int shared_charge(uint64_t n)
{
	if (__atomic_add_fetch(&shared.usage.v, n, __ATOMIC_SEQ_CST) > __atomic_load_n(&shared.max.v, __ATOMIC_RELAXED)) {
		(void)__atomic_fetch_sub(&shared.usage.v, n, __ATOMIC_SEQ_CST);
		return -1;
	}
	(void)__atomic_fetch_add(&shared.stat.v, n, __ATOMIC_RELAXED);
	return 0;
}

static NOINLINE void shared_uncharge(uint64_t n)
{
	(void)__atomic_fetch_sub(&shared.stat.v, n, __ATOMIC_RELAXED);
	(void)__atomic_fetch_sub(&shared.usage.v, n, __ATOMIC_SEQ_CST);
}

static void run_shared(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)cpu, (void)first;
	while (n-- > 0) {
		if (shared_charge(1) != 0)
			abort();
		shared_uncharge(1);
	}
}

static NOINLINE void percpu_add(uint32_t cpu, uint64_t n)
{
	(void)__atomic_fetch_add(&percpu[cpu].v, n, __ATOMIC_RELAXED);
}

static void run_percpu(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)first;
	while (n-- > 0)
		percpu_add(cpu, 1);
}

/* ----------------------------------------------------------- kernel's layout */

static NOINLINE void try_charge(uint32_t cpu, unsigned int pages)
{
	if (pcbatch_page_counter_try_charge(&kpages, BATCH, NULL) != 0)
		abort();
	refill(cpu, BATCH - pages, 0);
}

/* Before seeds 002 and 000. */
static NOINLINE void before_charge(uint32_t cpu)
{
	if (!consume(cpu, 1, 0))
		try_charge(cpu, 1);
	kstat(1);
}

static NOINLINE void before_uncharge(void)
{
	kstat(-1);
	(void)pcbatch_page_counter_uncharge(&kpages, 1);
}

static void run_before(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)first;
	while (n-- > 0) {
		before_charge(cpu);
		before_uncharge();
	}
}

/* After seed 002, before seed 000. */
static NOINLINE void stocked_uncharge(uint32_t cpu)
{
	kstat(-1);
	refill(cpu, 1, 0);
}

static void run_stocked(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)first;
	while (n-- > 0) {
		before_charge(cpu);
		stocked_uncharge(cpu);
	}
}

/* After both. */
static NOINLINE void after_charge(uint32_t cpu)
{
	if (consume(cpu, 1, 1))
		return;
	try_charge(cpu, 1);
	kstat(1);
}

static NOINLINE void after_uncharge(uint32_t cpu)
{
	refill(cpu, 1, 1);
}

static void run_after(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)first;
	while (n-- > 0) {
		after_charge(cpu);
		after_uncharge(cpu);
	}
}

/* ------------------------------------------------------------------- pcbatch */

static NOINLINE void lib_add(void)
{
	pcbatch_counter_add(&counter, 1);
}

static void run_add(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)cpu, (void)first;
	while (n-- > 0)
		lib_add();
}

static NOINLINE void lib_charge(void)
{
	if (pcbatch_group_charge_stat(group, 1, 1) != 0)
		abort();
}

static NOINLINE void lib_uncharge(void)
{
	(void)pcbatch_group_uncharge_stat(group, 1, 1);
}

static void run_pair(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)cpu, (void)first;
	while (n-- > 0) {
		lib_charge();
		lib_uncharge();
	}
}

/* 256 charges, then 256 uncharges, so that the stock runs dry and over: what batching costs when it is used. */
#define BURST 256
static void run_burst(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)cpu;
	for (; n > 0; n--, first++) {
		if (first % BURST < BURST / 2) {
			lib_charge();
			lib_charge();
		} else {
			lib_uncharge();
			lib_uncharge();
		}
	}
}

/* -------------------------------------------------------------------- totals */

static int64_t total_shared(void)
{
	return (int64_t)(shared.usage.v | shared.stat.v);
}

static int64_t total_percpu(void)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < WORK_CPUS_MAX; i++)
		sum += percpu[i].v;
	return (int64_t)sum;
}

/* Live charges: what is charged less what the lines hold. */
static int64_t total_kernel(void)
{
	int64_t held = 0;
	int i;

	for (i = 0; i < WORK_CPUS_MAX; i++)
		held += kstocks[i].pages[0];
	return pcbatch_page_counter_read(&kpages) - held;
}

static int64_t total_add(void)
{
	return pcbatch_counter_sum(&counter);
}

static int64_t total_group(void)
{
	(void)pcbatch_stock_drain_all(&dom);
	return pcbatch_group_current(group);
}

static void run_empty(uint32_t cpu, uint64_t first, uint64_t n)
{
	(void)cpu, (void)first;
	while (n-- > 0)
		__asm__ __volatile__("" ::: "memory");
}

static int64_t total_empty(void)
{
	return 0;
}

const struct work work_empty = { "empty", "nothing", run_empty, 1, total_empty, 1 };

#define PAIR "charge + uncharge"
const struct work works[WORKS] = {
	{ "shared_atomic", PAIR, run_shared, 1, total_shared, 1 },
	{ "percpu_atomic", "add", run_percpu, 1, total_percpu, 0 },
	{ "kernel_before", PAIR, run_before, BATCH, total_kernel, 1 },
	{ "kernel_stocked", PAIR, run_stocked, BATCH, total_kernel, 1 },
	{ "kernel_after", PAIR, run_after, 1, total_kernel, 1 },
	{ "pcbatch_add", "add", run_add, 0, total_add, 0 },
	{ "pcbatch_pair", PAIR, run_pair, 1, total_group, 1 },
	{ "pcbatch_burst", PAIR, run_burst, BURST, total_group, 1 },
};

/* -------------------------------------------------------------------- set up */

uint32_t work_period(const struct work *w)
{
	return w->period != 0 ? w->period : (uint32_t)dom.counter_batch;
}

void work_set_up(uint32_t cpus)
{
	static const struct kstock no_kstock;
	static const struct padded no_padded;
	struct pcbatch_domain_attr attr;
	uint32_t c;

	/* Not by memset, whose every byte valgrind may show. */
	for (c = 0; c < cpus; c++) {
		kstocks[c] = no_kstock;
		percpu[c] = no_padded;
	}
	shared.usage = shared.stat = no_padded;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = WORK_DOMAIN_CPUS;
	attr.current_cpu = current_cpu;
	attr.counter_batch = cpus > 256 ? 4 * cpus : 1024; /* the default for so many */
	if (pcbatch_domain_init(&dom, &attr) != 0 || pcbatch_group_create(&dom, NULL, NULL, &group) != 0 ||
	    pcbatch_counter_init(&counter, &dom, 0) != 0 || pcbatch_page_counter_init(&kpages, NULL) != 0) {
		fprintf(stderr, "model: can't set up a domain of %d CPUs\n", WORK_DOMAIN_CPUS);
		exit(1);
	}
	shared.max.v = (uint64_t)1 << 40;
}

void work_clone(uint32_t cpu)
{
	const struct pcbatch_priv_stock_block *from = pcbatch_priv_stock(&dom, 0);
	struct pcbatch_priv_stock_block *to = pcbatch_priv_stock(&dom, cpu);

	/* What the copied lines hold was not charged: so that nothing underflows. */
	(void)pcbatch_page_counter_charge(&kpages, 4 * BATCH);
	(void)pcbatch_page_counter_charge(&group->owner.pages, 4 * BATCH);
	kstocks[cpu] = kstocks[0];
	memcpy(to->page.slot, from->page.slot, sizeof(to->page.slot));
	*pcbatch_priv_cell_at(counter.cells, cpu) = *pcbatch_priv_cell_at(counter.cells, 0);
	pcbatch_priv_stats_at(&group->owner.stats, cpu)->updates = pcbatch_priv_stats_at(&group->owner.stats, 0)->updates;
}

void work_flush(void)
{
	(void)pcbatch_group_stat_flush(group);
}

static void print_line(FILE *out, const char *name, const void *base, size_t stride, uint32_t count, size_t bytes)
{
	fprintf(out, "line %s %lx %zx %u %zu\n", name, (unsigned long)(uintptr_t)base, stride, count, bytes);
}

void work_print_lines(FILE *out, uint32_t cpus)
{
	const struct pcbatch_owner *o = &group->owner;
	const size_t region = PCBATCH_PRIV_REGION;

	print_line(out, "usage", &shared.usage, 0, 1, 64);
	print_line(out, "statistic", &shared.stat, 0, 1, 64);
	print_line(out, "limit", &shared.max, 0, 1, 64);
	print_line(out, "cpu_atomic", percpu, sizeof(percpu[0]), WORK_CPUS_MAX, 64);
	print_line(out, "cpu_stock", kstocks, sizeof(kstocks[0]), WORK_CPUS_MAX, 64);
	print_line(out, "usage", &kpages.usage, 0, 1, 64);
	print_line(out, "peak", &kpages.peak, 0, 1, 64);
	print_line(out, "limit", &kpages.max, 0, 1, 64);
	print_line(out, "cpu_stock", dom.stock_base, region, cpus, 64);
	print_line(out, "cpu_counts", dom.stock_base + 64, region, cpus, sizeof(struct pcbatch_priv_stock_block) - 64);
	print_line(out, "cpu_statistic", o->stats.blocks, region, cpus, pcbatch_priv_stats_size(&dom));
	print_line(out, "updates", pcbatch_priv_stats_updates(&o->stats), 0, 1, 64);
	print_line(out, "cpu_cell", counter.cells, region, cpus, sizeof(struct pcbatch_priv_cell));
	print_line(out, "global", pcbatch_priv_counter_shared(&counter), 0, 1, sizeof(struct pcbatch_priv_counter_global));
	print_line(out, "usage", &o->pages.usage, 0, 1, 64);
	print_line(out, "peak", &o->pages.peak, 0, 1, 64);
	print_line(out, "limit", &o->pages.max, 0, 1, 64);
	print_line(out, "owner", o, 0, 1, offsetof(struct pcbatch_owner, refs));
	print_line(out, "owner_refs", &o->refs, 0, 1, 64);
	print_line(out, "domain", &dom, 0, 1, sizeof(dom));
}
