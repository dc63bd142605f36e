/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The child of step.h: its operations, its signal handler, its other thread, and the audit after each operation. */
#include "step.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <pcbatch.h>

#define GROUPS 10 /* more than a line has slots; 0 is the parent of the others */
#define ACT 2

const char *const step_op_name[STEP_OPS] = { "charge", "uncharge", "charge_big", "uncharge_big", "charge_bytes", "uncharge_bytes",
					     "add", "stat_mod", "drain_cpu", "drain_all", "refused", "install", "evict", "flush" };

static struct pcbatch_domain dom;
static struct pcbatch_group *group[GROUPS];
static struct pcbatch_counter counter;

/* What is alive, counted after each call by whoever made it; the two never run at once but nested. */
struct tally {
	int64_t pages[GROUPS], bytes[GROUPS], stat, item, count;
};

static struct tally mine, handlers;

static void expect(bool right, const char *what, int64_t a, int64_t b)
{
	if (right)
		return;
	printf("FAILED %s in %s: %" PRId64 ", %" PRId64 "\n", what, step_op_name[step_shared->op % STEP_OPS], a, b);
	step_shared->failures++;
}

static void charge(struct tally *t, int g, int64_t pages, int64_t stat)
{
	int err = pcbatch_group_try_charge(group[g], (uint64_t)pages, stat);

	expect(err == 0 || err == -ENOMEM, "charge", err, pages);
	t->pages[g] += err == 0 ? pages : 0;
	t->stat += err == 0 ? stat : 0;
}

static void uncharge(struct tally *t, int g, int64_t pages, int64_t stat)
{
	int err = pcbatch_group_uncharge_stat(group[g], (uint64_t)pages, stat);

	expect(err == 0, "uncharge", err, pages);
	t->pages[g] -= pages;
	t->stat -= stat;
}

static void bytes(struct tally *t, int64_t n)
{
	int err = n >= 0 ? pcbatch_group_try_charge_bytes(group[ACT], (uint64_t)n)
			 : pcbatch_group_uncharge_bytes(group[ACT], (uint64_t)-n);

	expect(err == 0 || (err == -ENOMEM && n > 0), "bytes", err, n);
	t->bytes[ACT] += err == 0 ? n : 0;
}

static void mod(struct tally *t, int64_t n)
{
	expect(pcbatch_group_stat_mod(group[ACT], 0, n) == 0, "stat_mod", n, 0);
	t->item += n;
}

static void add(struct tally *t, int64_t n)
{
	pcbatch_counter_add(&counter, n);
	t->count += n;
}

static void drain_cpu(void)
{
	int err = pcbatch_stock_drain_cpu(&dom);

	expect(err == 0 || err == -EAGAIN, "drain_cpu", err, 0);
}

static void on_signal(int sig)
{
	(void)sig;
	step_shared->handling = 1;
	charge(&handlers, ACT, 3, 2);
	charge(&handlers, 0, 1, 0);
	uncharge(&handlers, ACT, 2, 1);
	bytes(&handlers, 100);
	add(&handlers, 700);
	mod(&handlers, 99);
	if (step_shared->signals % 3 == 1)
		expect(pcbatch_stock_drain_all(&dom) == 0, "drain in a handler", 0, 0);
	else if (step_shared->signals % 3 == 2)
		drain_cpu();
	step_shared->signals++;
	/* Tells the debugger, which lets a handler run at full speed, that it is over. */
#if defined(__x86_64__)
	__asm__ __volatile__("int3" : : : "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("brk #0" : : : "memory");
#endif
	step_shared->handling = 0;
}

/* Not stopped by the debugger. */
static void *helper(void *arg)
{
	cpu_set_t set;
	uint32_t c;

	/* Everywhere but where the other begins. */
	CPU_ZERO(&set);
	for (c = 1; c < step_shared->cpus; c++)
		CPU_SET(c, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	step_shared->ready = 1;
	for (;;) {
		if (step_shared->helper != 0) {
			expect(pcbatch_stock_drain_all(&dom) == 0, "remote drain", 0, 0);
			__atomic_store_n(&step_shared->helper, 0, __ATOMIC_SEQ_CST);
		}
		(void)usleep(20);
	}
	return arg;
}

/* ----------------------------------------------------------------- operations */

static void forget(struct tally *t)
{
	int g;

	for (g = 0; g < GROUPS; g++) {
		uncharge(t, g, t->pages[g], 0);
		expect(pcbatch_group_uncharge_bytes(group[g], (uint64_t)t->bytes[g]) == 0, "uncharge", g, 0);
		t->bytes[g] = 0;
	}
}

static void prepare(uint32_t op)
{
	int i;

	forget(&handlers);
	forget(&mine);
	charge(&mine, ACT, 500, 0);
	for (i = 0; i < 3; i++) {
		charge(&mine, ACT, 2, 1);
		uncharge(&mine, ACT, 2, 1);
	}
	bytes(&mine, 8000);
	if (op == STEP_INSTALL || op == STEP_EVICT)
		expect(pcbatch_stock_drain_all(&dom) == 0, "drain", 0, 0);
	for (i = 0; op == STEP_EVICT && i < GROUPS; i++)
		if (i != ACT)
			charge(&mine, i, 1, 1);
}

static void run(uint32_t op)
{
	switch (op) {
	case STEP_CHARGE:
	case STEP_INSTALL:
	case STEP_EVICT:
		charge(&mine, ACT, 2, 1);
		break;
	case STEP_UNCHARGE:
		uncharge(&mine, ACT, 2, 1);
		break;
	case STEP_CHARGE_BIG:
		charge(&mine, ACT, 100, 100);
		break;
	case STEP_UNCHARGE_BIG:
		uncharge(&mine, ACT, 64, 64);
		break;
	case STEP_BYTES:
		bytes(&mine, 5000);
		break;
	case STEP_UNBYTES:
		bytes(&mine, -3000);
		break;
	case STEP_ADD:
		add(&mine, 700);
		break;
	case STEP_MOD:
		mod(&mine, 100);
		break;
	case STEP_DRAIN_CPU:
		drain_cpu();
		break;
	case STEP_DRAIN:
		expect(pcbatch_stock_drain_all(&dom) == 0, "drain", 0, 0);
		break;
	case STEP_REFUSED:
		expect(pcbatch_group_charge(group[ACT], 1000000) == -ENOMEM, "refusal", 0, 0);
		break;
	default:
		pcbatch_counter_flush(&counter);
		expect(pcbatch_stats_flush(&dom, NULL) == 0, "flush", 0, 0);
	}
}

/* After a drain, with nothing in flight: to the page, byte and unit. */
static void audit(void)
{
	int64_t all = 0, is = -1;
	int g;

	while (step_shared->helper != 0)
		(void)sched_yield();
	expect(pcbatch_stock_drain_all(&dom) == 0, "drain", 0, 0);
	expect(pcbatch_stats_flush(&dom, NULL) == 0, "flush", 0, 0);
	for (g = GROUPS; g-- > 0;) {
		int64_t want = (mine.pages[g] + handlers.pages[g]) * 4096 + mine.bytes[g] + handlers.bytes[g];

		all += want;
		expect(pcbatch_group_bytes(group[g], &is) == 0 && is == (g == 0 ? all : want), "bytes", is, g == 0 ? all : want);
		expect(group[g]->owner.refs == 1 + group[g]->owner.children, "references", (int64_t)group[g]->owner.refs, g);
	}
	is = pcbatch_group_stat_read_signed(group[0], 1);
	expect(is == mine.stat + handlers.stat, "statistic", is, mine.stat + handlers.stat);
	is = pcbatch_group_stat_read_signed(group[0], 0);
	expect(is == mine.item + handlers.item, "item", is, mine.item + handlers.item);
	is = pcbatch_counter_sum(&counter);
	expect(is == mine.count + handlers.count, "counter", is, mine.count + handlers.count);
	step_shared->audits++;
}

static void set_up(void)
{
	struct pcbatch_domain_attr attr;
	struct sigaction action;
	pthread_t thread;
	int g;

	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = 2;
	attr.stock_item = 1;
	if (pcbatch_domain_init(&dom, &attr) != 0 || pcbatch_counter_init(&counter, &dom, 0) != 0)
		_exit(3);
	for (g = 0; g < GROUPS; g++)
		if (pcbatch_group_create(&dom, g == 0 ? NULL : group[0], NULL, &group[g]) != 0)
			_exit(3);
	if (pcbatch_group_set_max(group[0], 900000) != 0)
		_exit(3);
	if (pcbatch_domain_backend(&dom) == PCBATCH_BACKEND_RSEQ)
		step_shared->rseq = (uint64_t)(pcbatch_priv_thread_pointer() + (uintptr_t)dom.rseq_off);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	(void)sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, helper, NULL) != 0)
		_exit(3);
	while (step_shared->ready == 0)
		(void)usleep(100);
}

void step_child(void)
{
	struct pcbatch_stock_info info;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	set_up();
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	for (;;) {
		(void)raise(SIGSTOP); /* 1: what next? */
		if (step_shared->op >= STEP_OPS)
			break;
		prepare(step_shared->op);
		(void)raise(SIGSTOP); /* 2: the operation begins */
		step_shared->running = 1;
		run(step_shared->op);
		step_shared->running = 0;
		(void)raise(SIGSTOP); /* 3: it is over */
		audit();
		(void)pcbatch_stock_info_read(&dom, &info);
		step_shared->aborts = info.aborts;
	}
	_exit(step_shared->failures != 0);
}
