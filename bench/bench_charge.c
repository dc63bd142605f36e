/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_charge.c - what a charge and its uncharge cost, with a statistic along: by
 * depth, by how many owners share a CPU's seven slots, alone, contended and at the
 * limit, on each backend; how often the slots hit; and that the generic backend makes
 * neither system nor vDSO calls.
 */
#include "base.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct pcbatch_domain dom, generic;
static struct pcbatch_counter bare_counters[64];
static struct pcbatch_group *leaf1, *leaf3, *leaf8, *many[64], *limited, *own[2];
static struct pcbatch_group *gleaf1, *gleaf8, *gmany[64];
static struct level levels[3];
static unsigned long long refused;

#define PAIR(g)                                                \
	do {                                                   \
		if (pcbatch_group_charge_stat(g, 1, 1) != 0)   \
			abort();                               \
		(void)pcbatch_group_uncharge_stat(g, 1, 1);    \
	} while (0)

BENCH_KERNEL(bare, struct pcbatch_counter *c = arg, bare_add(&c[i & 63]))
BENCH_KERNEL(pair, struct pcbatch_group *g = *(struct pcbatch_group **)arg, PAIR(g))
BENCH_KERNEL(pair_own, struct pcbatch_group *g = ((struct pcbatch_group **)arg)[bench_self & 1], PAIR(g))
BENCH_KERNEL(pair7, struct pcbatch_group **groups = arg; long k = 0, {
	struct pcbatch_group *g = groups[k];

	k = k == 6 ? 0 : k + 1;
	PAIR(g);
})
BENCH_KERNEL(pair8, struct pcbatch_group **groups = arg, PAIR(groups[i & 7]))
BENCH_KERNEL(pair64, struct pcbatch_group **groups = arg, PAIR(groups[i & 63]))
BENCH_KERNEL(atomics, struct level *leaf = arg, {
	if (!atomics_charge(leaf, 1))
		abort();
	atomics_uncharge(leaf, 1);
})
/* Eight pages, one by one, and back; two threads of these don't fit at once. */
static inline void eight(struct pcbatch_group *g)
{
	unsigned int got = 0, k;

	for (k = 0; k < 8; k++)
		got += pcbatch_group_charge_stat(g, 1, 1) == 0;
	for (k = 0; k < got; k++)
		(void)pcbatch_group_uncharge_stat(g, 1, 1);
	if (got < 8)
		(void)__atomic_fetch_add(&refused, 8 - got, __ATOMIC_RELAXED);
}
BENCH_KERNEL(tight, struct pcbatch_group *g = *(struct pcbatch_group **)arg, eight(g))

enum {
	BARE, PAIR1, PAIR3, PAIR8, OWN7, OWN8, OWN64, PAIR1_2T, OWN_2T, PAIR1_8T, OWN7_2T, PAIR64_2T, TIGHT, TIGHT_2T,
	ATOM1, ATOM3, ATOM1_2T, ATOM3_2T, ATOM1_8T, GPAIR1, GPAIR8, GOWN7, GOWN64, GPAIR_2T, GPAIR_8T, WORKS
};

static struct bench_work work[WORKS] = {
	[BARE] = BENCH_WORK("bare rseq add, 64 in turn", bare, bare_counters, 1, 400000),
	[PAIR1] = BENCH_WORK("charge + uncharge, depth 1", pair, &leaf1, 1, 100000),
	[PAIR3] = BENCH_WORK("charge + uncharge, depth 3", pair, &leaf3, 1, 100000),
	[PAIR8] = BENCH_WORK("charge + uncharge, depth 8", pair, &leaf8, 1, 100000),
	[OWN7] = BENCH_WORK("charge + uncharge, 7 owners in turn", pair7, many, 1, 100000),
	[OWN8] = BENCH_WORK("charge + uncharge, 8 owners in turn", pair8, many, 1, 40000),
	[OWN64] = BENCH_WORK("charge + uncharge, 64 owners in turn", pair64, many, 1, 10000),
	[PAIR1_2T] = BENCH_WORK("charge + uncharge, one owner", pair, &leaf1, 2, 100000),
	[OWN_2T] = BENCH_WORK("charge + uncharge, an owner each", pair_own, own, 2, 100000),
	[PAIR1_8T] = BENCH_WORK("charge + uncharge, one owner", pair, &leaf1, 8, 50000),
	[OWN7_2T] = BENCH_WORK("charge + uncharge, 7 owners in turn", pair7, many, 2, 100000),
	[PAIR64_2T] = BENCH_WORK("charge + uncharge, 64 owners in turn", pair64, many, 2, 10000),
	[TIGHT] = BENCH_WORK("8 charges + uncharges, room for 12, per 8", tight, &limited, 1, 10000),
	[TIGHT_2T] = BENCH_WORK("8 charges + uncharges, room for 12, per 8", tight, &limited, 2, 400),
	[ATOM1] = BENCH_WORK("atomics, depth 1", atomics, &levels[0], 1, 20000),
	[ATOM3] = BENCH_WORK("atomics, depth 3", atomics, &levels[2], 1, 10000),
	[ATOM1_2T] = BENCH_WORK("atomics, depth 1", atomics, &levels[0], 2, 20000),
	[ATOM3_2T] = BENCH_WORK("atomics, depth 3", atomics, &levels[2], 2, 5000),
	[ATOM1_8T] = BENCH_WORK("atomics, depth 1", atomics, &levels[0], 8, 5000),
	[GPAIR1] = BENCH_WORK("generic: charge + uncharge, depth 1", pair, &gleaf1, 1, 20000),
	[GPAIR8] = BENCH_WORK("generic: charge + uncharge, depth 8", pair, &gleaf8, 1, 20000),
	[GOWN7] = BENCH_WORK("generic: charge + uncharge, 7 owners in turn", pair7, gmany, 1, 20000),
	[GOWN64] = BENCH_WORK("generic: charge + uncharge, 64 owners in turn", pair64, gmany, 1, 10000),
	[GPAIR_2T] = BENCH_WORK("generic: charge + uncharge, one owner", pair, &gleaf1, 2, 20000),
	[GPAIR_8T] = BENCH_WORK("generic: charge + uncharge, one owner", pair, &gleaf1, 8, 5000),
};

static void set_up(void)
{
	struct pcbatch_domain_attr attr;
	unsigned int i;

	base_domain(&dom, NULL);
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_GENERIC;
	base_domain(&generic, &attr);
	base_counters(&dom, bare_counters, 64);
	leaf1 = base_chain(&dom, NULL, 1);
	leaf3 = base_chain(&dom, NULL, 3);
	leaf8 = base_chain(&dom, NULL, 8);
	own[0] = base_chain(&dom, NULL, 1);
	own[1] = base_chain(&dom, NULL, 1);
	gleaf1 = base_chain(&generic, NULL, 1);
	gleaf8 = base_chain(&generic, NULL, 8);
	limited = base_chain(&dom, NULL, 1);
	if (pcbatch_group_set_max(limited, 12) != 0)
		bench_die("can't set a limit");
	for (i = 0; i < 64; i++) {
		many[i] = base_chain(&dom, NULL, 1);
		gmany[i] = base_chain(&generic, NULL, 1);
	}
	for (i = 0; i < 3; i++) {
		levels[i].max = UINT64_MAX / 2;
		levels[i].parent = i == 0 ? NULL : &levels[i - 1];
	}
	if (!bare_works(&dom))
		work[BARE].place[0] = NULL;
}

/* Every charge was taken back, and every statistic with it. */
static void audit(struct bench_out *out)
{
	struct pcbatch_group *all[8 + 128] = { leaf1, leaf3, leaf8, own[0], own[1], limited, gleaf1, gleaf8 };
	unsigned int i;

	memcpy(&all[8], many, sizeof(many));
	memcpy(&all[72], gmany, sizeof(gmany));
	(void)pcbatch_stock_drain_all(&dom);
	(void)pcbatch_stock_drain_all(&generic);
	(void)pcbatch_stats_flush(&dom, NULL);
	(void)pcbatch_stats_flush(&generic, NULL);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bench_out_check(out, "pages left", pcbatch_group_current(all[i]), 0);
		bench_out_check(out, "statistic left", pcbatch_group_stat_read_signed(all[i], 0), 0);
	}
	bench_out_check(out, "peak above the limit", pcbatch_group_peak(limited) > 12, 0);
	bench_out_check(out, "atomics left", (long long)(levels[0].usage.v + levels[2].stat.v), 0);
}

/* Of a workload's charges and uncharges, how many touched the CPU's own line only, %. */
static void hits(struct bench_out *out, struct bench_work *w)
{
	struct pcbatch_domain *d = w >= &work[GPAIR1] ? &generic : &dom;
	struct pcbatch_stock_info a, b;
	unsigned long long before = w->done;
	double rate;

	(void)bench_sample(w, 0);
	(void)pcbatch_stock_info_read(d, &a);
	before = w->done;
	(void)bench_sample(w, 0);
	(void)pcbatch_stock_info_read(d, &b);
	rate = 100 * (double)(b.hits - a.hits) / (2.0 * (double)(w->done - before) * (w->arg == &limited ? 8 : 1));
	bench_out_value(out, w->name, w->threads, "% hits", rate, rate, 1);
}

/*
 * The proof that a charge makes no call into the kernel: a child gives up its vDSO and
 * all system calls but exit, and charges. Returns 0 when it lives.
 */
static int without_kernel(struct pcbatch_group *g, long n)
{
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
	size_t pages;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		PAIR(g);
		/* It goes as a whole or not at all, and how large it is nobody says. */
		for (pages = 1; vdso != 0 && munmap((void *)vdso, pages * (size_t)sysconf(_SC_PAGESIZE)) != 0; pages++)
			if (pages == 8)
				_exit(2);
		if (prctl(PR_SET_SECCOMP, 1 /* strict */, 0, 0, 0) != 0)
			_exit(2);
		pair_0(&g, n);
		(void)syscall(SYS_exit, 0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : status;
}

static void tables(struct bench_out *out)
{
	static const unsigned int owners[] = { 1, 7, 8, 64 };
	static const unsigned int rows[2][4] = { { PAIR1, OWN7, OWN8, OWN64 }, { PAIR1_2T, OWN7_2T, 0, PAIR64_2T } };
	unsigned int w, k;

	bench_out_head("charge + uncharge with statistic, ns (CPU time)");
	for (w = 0; w < WORKS; w++)
		bench_out_work(out, &work[w]);
	bench_out_head("hit rates");
	for (w = PAIR1; w < WORKS; w++)
		if (w < ATOM1 || w > ATOM1_8T)
			hits(out, &work[w]);
	bench_out_note(out, "at the limit, two threads that want 16 pages of 12: %.1f %% of their charges were refused",
		       100.0 * (double)refused / (8.0 * (double)work[TIGHT_2T].done));
	bench_plot(out, "charge_owners", "charge + uncharge against owners that share a CPU", "owners in turn", "ns a pair (CPU time)", "xy");
	for (k = 0; k < 2; k++) {
		bench_plot_series(out, k == 0 ? "pcbatch, 1 thread" : "pcbatch, 2 threads");
		for (w = 0; w < 4; w++)
			if (rows[k][w] != 0)
				bench_plot_point(out, owners[w], work[rows[k][w]].ns);
		bench_plot_series(out, k == 0 ? "atomics, 1 thread" : "atomics on one owner, 2 threads");
		for (w = 0; w < 4; w += 3)
			bench_plot_point(out, owners[w], work[k == 0 ? ATOM1 : ATOM1_2T].ns);
	}
}

static void ratios(struct bench_out *out, double transfer)
{
	if (bare_works(&dom))
		bench_out_ratio(out, "pair_vs_bare", work[PAIR1].ns / work[BARE].ns);
	bench_out_ratio(out, "pair_vs_atomics_1t", work[ATOM1].ns / work[PAIR1].ns);
	bench_out_ratio(out, "pair_depth3_vs_atomics_1t", work[ATOM3].ns / work[PAIR3].ns);
	bench_out_ratio(out, "pair7_vs_pair1", work[OWN7].ns / work[PAIR1].ns);
	bench_out_ratio(out, "pair_depth8_vs_depth1", work[PAIR8].ns / work[PAIR1].ns);
	if (transfer <= 0)
		return;
	bench_out_ratio(out, "pair_vs_atomics_2t", work[ATOM1_2T].ns / work[PAIR1_2T].ns);
	bench_out_ratio(out, "pair64_vs_atomics_2t", work[ATOM1_2T].ns / work[PAIR64_2T].ns);
	bench_out_ratio(out, "generic_pair_vs_atomics_2t", work[ATOM1_2T].ns / work[GPAIR_2T].ns);
}

int main(int argc, char **argv)
{
	struct bench_out out;
	double transfer;
	long n;
	int alive;

	bench_out_begin(&out, "charge", argc, argv, 9, 3);
	set_up();
	transfer = bench_line_transfer();
	bench_run(work, WORKS, out.rounds);
	base_describe(&out, &dom, transfer);
	tables(&out);
	audit(&out);
	n = out.quick ? 100000 : 1000000;
	alive = without_kernel(gleaf1, n);
	bench_out_check(&out, "status of a child that charges without system calls", alive, 0);
	if (alive == 0)
		bench_out_note(&out, "generic: a child made %ld charges and uncharges with its vDSO unmapped and system calls forbidden (seccomp strict)", n);
	bench_out_quiet(&out, work, WORKS);
	ratios(&out, transfer);
	return bench_out_end(&out);
}
