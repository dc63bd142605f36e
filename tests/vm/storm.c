/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: storm SECONDS THREADS [TABLE [USED]]
 * Threads hop between CPUs and use counters, charges with a statistic, byte charges and statistics on more owners than a
 * CPU has slots; timer signals do the same in the middle of it; one more thread drains (one owner, a subtree, all),
 * flushes, and makes and ends groups. Then everything is audited to the last unit.
 * TABLE: CPUs that the domain has slots for; numbers beyond it go past them. USED: so many CPUs must have had hits.
 * Exit status: 0 exact; 1 something was lost; 2 it could not run (or not on the backend that PCBATCH_BACKEND names).
 *
 * STORM_DELAY=n: each section is slowed down by n loops before its commit, so that more of it is interrupted.
 * Signals and drains come at a rate of what the threads get done, not of time: an overloaded machine must not do nothing
 * else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#if defined(STORM_DELAY)
#define STORM_STR1(x) #x
#define STORM_STR(x) STORM_STR1(x)
#if defined(__aarch64__)
/* x16 and x17 are every section's to clobber. */
#define STORM_LOOP "mov x16, #" STORM_STR(STORM_DELAY) "\n76: sub x16, x16, #1\n\tcbnz x16, 76b\n\t"
#else
/* Flags are. */
extern __thread unsigned int storm_delay;
#define STORM_LOOP                                                                                                       \
	"movl $" STORM_STR(STORM_DELAY) ", %%fs:storm_delay@tpoff\n76: decl %%fs:storm_delay@tpoff\n\tjnz 76b\n\t"
#endif
#define STORM_AT_1
#define STORM_AT_2
#define STORM_AT_3 STORM_LOOP
#define STORM_AT_4
#define STORM_AT_5
#define STORM_AT_6 STORM_LOOP
#define STORM_AT_7
#define STORM_AT_8 STORM_LOOP
#define STORM_AT_9
#define STORM_AT_10
#define STORM_AT_11
#define STORM_AT_12 STORM_LOOP
#define STORM_AT_13
#define STORM_AT_14
#define STORM_AT_15 STORM_LOOP
#define STORM_AT_16
#define STORM_AT_17 STORM_LOOP
#define STORM_AT_18
#define STORM_AT_19
#define STORM_AT_20 STORM_LOOP
#define PCBATCH_INJECT_ASM(n) STORM_AT_##n
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <pcbatch.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LEAVES = 24, MIDS = 2, COUNTERS = 6, ITEMS = 4, HELD = 48, THREADS_MAX = 64, PAGE = 4096 };

/* What should come out. */
struct tally {
	int64_t counter[COUNTERS];
	int64_t pages[LEAVES];
	int64_t bytes[LEAVES];
	int64_t item[LEAVES][ITEMS];
	uint64_t ops;
	uint64_t errors;
};

struct held {
	uint32_t leaf;
	uint32_t amount; /* pages or bytes; 0: nothing */
};

struct worker {
	pthread_t thread;
	uint64_t seed;
	uint64_t signal_seed;
	struct tally own;
	struct tally in_signals; /* written by the handler only */
	struct held pages[HELD];
	struct held bytes[HELD];
};

static struct pcbatch_domain dom;
static struct pcbatch_counter counters[COUNTERS];
static struct pcbatch_group *root, *mid[MIDS], *leaf[LEAVES];
static struct worker workers[THREADS_MAX];
#if defined(STORM_DELAY) && !defined(__aarch64__)
__thread unsigned int storm_delay __attribute__((used));
#endif
static uint32_t cpus;
static int stop;
static uint64_t progress; /* of all threads */
static uint64_t drain_rounds, groups_made, drain_errors;
static __thread struct worker *self;

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 11;
}

/* A few owners are hot, so that there are hits as well as evictions. */
static uint32_t pick(uint64_t r)
{
	return (uint32_t)(r >> 2) % (r % 4 != 0 ? 5 : LEAVES);
}

static int64_t stat_of(uint32_t pages)
{
	return (int64_t)pages * 3;
}

static void check(struct tally *t, int err)
{
	t->ops++;
	if (err != 0)
		t->errors++;
}

static void charge(struct tally *t, struct held *h, uint32_t to, uint32_t pages)
{
	check(t, pcbatch_group_try_charge(leaf[to], pages, stat_of(pages)));
	t->pages[to] += pages;
	t->item[to][0] += stat_of(pages);
	h->leaf = to;
	h->amount = pages;
}

static void uncharge(struct tally *t, struct held *h)
{
	if (h->amount == 0)
		return;
	check(t, pcbatch_group_uncharge_stat(leaf[h->leaf], h->amount, stat_of(h->amount)));
	t->pages[h->leaf] -= h->amount;
	t->item[h->leaf][0] -= stat_of(h->amount);
	h->amount = 0;
}

static void charge_bytes(struct tally *t, struct held *h, uint32_t to, uint32_t bytes)
{
	check(t, pcbatch_group_try_charge_bytes(leaf[to], bytes));
	t->bytes[to] += bytes;
	h->leaf = to;
	h->amount = bytes;
}

static void uncharge_bytes(struct tally *t, struct held *h)
{
	if (h->amount == 0)
		return;
	check(t, pcbatch_group_uncharge_bytes(leaf[h->leaf], h->amount));
	t->bytes[h->leaf] -= h->amount;
	h->amount = 0;
}

static void add(struct tally *t, uint64_t r)
{
	int64_t delta = (int64_t)(r % 41) - 15;
	uint32_t which = (uint32_t)(r >> 8) % COUNTERS;

	pcbatch_counter_add(&counters[which], delta);
	t->counter[which] += delta;
	t->ops++;
}

static void mod(struct tally *t, uint64_t r)
{
	uint32_t to = pick(r >> 8), item = 1 + (uint32_t)(r >> 20) % (ITEMS - 1);
	int64_t delta = (int64_t)(r % 17) - 7;

	check(t, pcbatch_group_stat_mod(leaf[to], item, delta));
	t->item[to][item] += delta;
}

/* Interrupts whatever its thread does, sections included; ends with what it began, but for counters and statistics. */
static void on_timer(int signal_number)
{
	struct worker *w = self;
	struct held h = {0, 0};
	uint64_t r;
	int saved = errno;

	(void)signal_number;
	if (w == NULL)
		return;
	r = next(&w->signal_seed);
	add(&w->in_signals, r);
	mod(&w->in_signals, r >> 3);
	charge(&w->in_signals, &h, pick(r >> 5), 1 + (uint32_t)(r >> 13) % 6);
	uncharge(&w->in_signals, &h);
	charge_bytes(&w->in_signals, &h, pick(r >> 7), 1 + (uint32_t)(r >> 15) % 6000);
	uncharge_bytes(&w->in_signals, &h);
	errno = saved;
}

static void hop(uint64_t r)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(r % cpus, &set);
	/* EINVAL: that CPU is off just now. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static timer_t make_timer(void)
{
	struct sigevent event;
	timer_t timer;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMIN;
	event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
		perror("timer_create");
		exit(2);
	}
	return timer;
}

static void start_timer(timer_t timer, uint64_t r)
{
	struct itimerspec when;

	memset(&when, 0, sizeof(when));
	when.it_value.tv_nsec = 5000 + (long)(r % 300000);
	(void)timer_settime(timer, 0, &when, NULL);
}

static void *work(void *arg)
{
	struct worker *w = (struct worker *)arg;
	struct held *h;
	timer_t timer;
	uint64_t r, i;

	self = w;
	timer = make_timer();
	for (i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		r = next(&w->seed);
		if (i % 256 == 0)
			hop(r);
		if (i % 128 == 32)
			start_timer(timer, r);
		if (i % 64 == 0)
			(void)__atomic_fetch_add(&progress, 1, __ATOMIC_RELAXED);
		add(&w->own, r);
		h = &w->pages[(r >> 4) % HELD];
		if (h->amount != 0)
			uncharge(&w->own, h);
		else
			charge(&w->own, h, pick(r >> 12), 1 + (uint32_t)(r >> 18) % 9);
		h = &w->bytes[(r >> 6) % HELD];
		if (h->amount != 0)
			uncharge_bytes(&w->own, h);
		else
			charge_bytes(&w->own, h, pick(r >> 14), 1 + (uint32_t)(r >> 20) % 7000);
		mod(&w->own, r >> 9);
	}
	(void)timer_delete(timer);
	return NULL;
}

static void expect_0(int err)
{
	if (err != 0)
		__atomic_fetch_add(&drain_errors, 1, __ATOMIC_RELAXED);
}

/* A group that lives for three calls: its end drains with `final`. */
static void short_life(void)
{
	struct pcbatch_group *g;

	if (pcbatch_group_create(&dom, mid[0], NULL, &g) != 0) {
		expect_0(-1);
		return;
	}
	expect_0(pcbatch_group_charge(g, 5));
	expect_0(pcbatch_group_uncharge(g, 5));
	expect_0(pcbatch_group_destroy(g));
	groups_made++;
}

static void *drain(void *arg)
{
	uint64_t seed = 88172645463325252u, r, seen;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		r = next(&seed);
		if (r % 8 == 0)
			hop(r >> 8);
		expect_0(pcbatch_group_drain(leaf[(r >> 4) % LEAVES]));
		expect_0(pcbatch_group_drain_subtree(mid[(r >> 10) % MIDS]));
		if (r % 4 == 0)
			expect_0(pcbatch_stock_drain_all(&dom));
		if (r % 16 == 1)
			expect_0(pcbatch_group_stat_flush(root));
		if (r % 16 == 2)
			short_life();
		drain_rounds++;
		seen = __atomic_load_n(&progress, __ATOMIC_RELAXED);
		while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && __atomic_load_n(&progress, __ATOMIC_RELAXED) - seen < 2)
			(void)usleep(20);
	}
	return NULL;
}

/* ---------------------------------------------------------------- the audit */

static int lost;

static void expect(const char *what, uint32_t which, int64_t is, int64_t should)
{
	if (is == should)
		return;
	if (lost++ < 12)
		printf("LOST %s %" PRIu32 ": %" PRId64 ", should be %" PRId64 "\n", what, which, is, should);
}

static void sum_up(struct tally *all, const struct tally *t)
{
	uint32_t i, k;

	for (i = 0; i < COUNTERS; i++)
		all->counter[i] += t->counter[i];
	for (i = 0; i < LEAVES; i++) {
		all->pages[i] += t->pages[i];
		all->bytes[i] += t->bytes[i];
		for (k = 0; k < ITEMS; k++)
			all->item[i][k] += t->item[i][k];
	}
	all->ops += t->ops;
	all->errors += t->errors;
}

/* Live pages, and bytes rounded up to pages together with the remainder that waits for its other half. */
static void audit_pages(const struct tally *all)
{
	int64_t total = 0, is, over;
	uint32_t i;

	for (i = 0; i < LEAVES; i++) {
		is = pcbatch_group_current(leaf[i]);
		over = (is - all->pages[i]) * PAGE - all->bytes[i];
		if (over < 0 || over >= PAGE)
			expect("pages (in bytes) of leaf", i, is * PAGE, all->pages[i] * PAGE + all->bytes[i]);
		expect("underflow of leaf", i, (int64_t)pcbatch_group_underflow(leaf[i]), 0);
		total += is;
	}
	expect("pages of the root", 0, pcbatch_group_current(root), total);
}

static void audit_counters(const struct tally *all)
{
	uint32_t i;

	for (i = 0; i < COUNTERS; i++) {
		int64_t off = pcbatch_counter_read(&counters[i]) - all->counter[i];

		expect("sum of counter", i, pcbatch_counter_sum(&counters[i]), all->counter[i]);
		if (off <= -pcbatch_counter_error_bound(&counters[i]) || off >= pcbatch_counter_error_bound(&counters[i]))
			expect("error of read of counter", i, off, 0);
	}
}

static void audit_items(const struct tally *all)
{
	uint32_t i, k;

	for (k = 0; k < ITEMS; k++) {
		int64_t total = 0;

		for (i = 0; i < LEAVES; i++) {
			expect("item of leaf", k * 100 + i, pcbatch_group_stat_read_local(leaf[i], k), all->item[i][k]);
			total += all->item[i][k];
		}
		expect("item of the root", k, pcbatch_group_stat_read_signed(root, k), total);
	}
}

static void give_back(uint32_t threads, struct tally *all)
{
	uint32_t i, k;

	for (i = 0; i < threads; i++)
		for (k = 0; k < HELD; k++) {
			uncharge(all, &workers[i].pages[k]);
			uncharge_bytes(all, &workers[i].bytes[k]);
		}
}

static void audit(uint32_t threads, struct tally *all)
{
	audit_counters(all);
	expect("drain_all", 0, pcbatch_stock_drain_all(&dom), 0);
	expect("flush", 0, pcbatch_group_stat_flush(root), 0);
	audit_pages(all);
	audit_items(all);
	give_back(threads, all);
	expect("drain_all", 1, pcbatch_stock_drain_all(&dom), 0);
	expect("flush", 1, pcbatch_group_stat_flush(root), 0);
	audit_pages(all);
	audit_items(all);
	expect("pages at the end of the root", 0, pcbatch_group_current(root), 0);
	expect("errors of calls", 0, (int64_t)all->errors, 0);
	expect("errors of the drainer", 0, (int64_t)drain_errors, 0);
}

static void take_down(void)
{
	uint32_t i;

	for (i = 0; i < LEAVES; i++)
		expect("destroy of leaf", i, pcbatch_group_destroy(leaf[i]), 0);
	for (i = 0; i < MIDS; i++)
		expect("destroy of middle", i, pcbatch_group_destroy(mid[i]), 0);
	expect("destroy of the root", 0, pcbatch_group_destroy(root), 0);
	for (i = 0; i < COUNTERS; i++)
		expect("destroy of counter", i, pcbatch_counter_destroy(&counters[i]), 0);
	expect("destroy of the domain", 0, pcbatch_domain_destroy(&dom), 0);
}

static void must(const char *what, int err)
{
	if (err == 0)
		return;
	printf("CANNOT %s: %s\n", what, strerror(-err));
	exit(2);
}

/* CPUs that have had a hit. */
static uint32_t cpus_used(void)
{
	uint32_t c, k, used = 0;

	for (c = 0; c < dom.lines; c++) {
		const struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(&dom, c);

		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
			if (stock->page_hits[k] != 0)
				break;
		used += k < PCBATCH_STOCK_SLOTS;
	}
	return used;
}

static void set_up(uint32_t table)
{
	const char *wanted = getenv("PCBATCH_BACKEND");
	struct pcbatch_domain_attr attr;
	struct sigaction action;
	uint32_t i;

	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = ITEMS;
	attr.page_size = PAGE;
	attr.counter_batch = 64;
	attr.cpus = table;
	must("make the domain", pcbatch_domain_init(&dom, &attr));
	printf("backend=%s cpus=%" PRIu32 "\n", pcbatch_backend_name(pcbatch_domain_backend(&dom)), pcbatch_domain_cpus(&dom));
	if (wanted != NULL && strcmp(wanted, pcbatch_backend_name(pcbatch_domain_backend(&dom))) != 0)
		must("have the backend", -ENOTSUP);
	for (i = 0; i < COUNTERS; i++)
		must("make a counter", pcbatch_counter_init(&counters[i], &dom, 0));
	must("make the root", pcbatch_group_create(&dom, NULL, NULL, &root));
	for (i = 0; i < MIDS; i++)
		must("make a group", pcbatch_group_create(&dom, root, NULL, &mid[i]));
	for (i = 0; i < LEAVES; i++)
		must("make a group", pcbatch_group_create(&dom, mid[i % MIDS], NULL, &leaf[i]));
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	if (sigaction(SIGRTMIN, &action, NULL) != 0)
		must("catch the signal", -errno);
}

static void report(const struct tally *all, uint64_t in_signals, uint32_t used)
{
	struct pcbatch_stock_info info;

	memset(&info, 0, sizeof(info));
	expect("read of the counts", 0, pcbatch_stock_info_read(&dom, &info), 0);
	printf("ops=%" PRIu64 " in_signals=%" PRIu64 " hits=%" PRIu64 " misses=%" PRIu64 " evictions=%" PRIu64 " direct=%" PRIu64
	       " trims=%" PRIu64 " aborts=%" PRIu64 " drains=%" PRIu64 " drained_pages=%" PRIu64 " drain_rounds=%" PRIu64
	       " groups=%" PRIu64 " cpus_used=%" PRIu32 "\n",
	       all->ops, in_signals, info.hits, info.misses, info.evictions, info.direct, info.trims, info.aborts, info.drains,
	       info.drained_pages, drain_rounds, groups_made, cpus_used());
	if (cpus_used() < used)
		expect("CPUs with hits", 0, cpus_used(), used);
	/* A storm that never came to the point proves nothing. */
	expect("evictions happened", 0, info.evictions > 0, 1);
	expect("drains happened", 0, info.drains > 0, 1);
	expect("signals arrived", 0, in_signals > 0, 1);
}

int main(int argc, char **argv)
{
	uint32_t seconds = argc > 1 ? (uint32_t)atoi(argv[1]) : 5, threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 8, i;
	uint32_t table = argc > 3 ? (uint32_t)atoi(argv[3]) : 0, used = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
	static struct tally all;
	uint64_t in_signals = 0;
	pthread_t drainer;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	cpus = pcbatch_cpu_possible();
	set_up(table);
	for (i = 0; i < threads; i++) {
		workers[i].seed = 0x9e3779b97f4a7c15u * (i + 1);
		workers[i].signal_seed = 0xbf58476d1ce4e5b9u * (i + 1);
		must("start a thread", -pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	must("start a thread", -pthread_create(&drainer, NULL, drain, NULL));
	(void)sleep(seconds);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < threads; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		sum_up(&all, &workers[i].own);
		sum_up(&all, &workers[i].in_signals);
		in_signals += workers[i].in_signals.ops;
	}
	(void)pthread_join(drainer, NULL);
	audit(threads, &all);
	report(&all, in_signals, used);
	take_down();
	printf("%s\n", lost == 0 ? "EXACT" : "LOST");
	return lost != 0;
}
