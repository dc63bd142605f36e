/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_ratios.c - what an add and a charge cost, as ratios against what they are
 * built on and what they replace, all in one run.
 *
 *	bare	the least a per-CPU add can be: arm the section, find the CPU's cell, add;
 *		no bound check, no batch, nothing ever folded
 *	atomics	what code does without this: one shared atomic for the pages and one for
 *		the statistic at every level, with a limit check
 */
#include "bench.h"

#include <pcbatch.h>

struct padded {
	uint64_t v;
	char pad[56];
} __attribute__((aligned(64)));

struct level {
	struct padded usage, stat;
	uint64_t max;
	struct level *parent;
} __attribute__((aligned(64)));

#if defined(__x86_64__) && PCBATCH_USE_ASM && PCBATCH_PRIV_LIBC_RSEQ
#define HAVE_BARE 1
static inline __attribute__((always_inline)) void bare_add(struct pcbatch_counter *c)
{
	intptr_t off = pcbatch_priv_hit_off(0);
	uint64_t t;

	__asm__ __volatile__(".pushsection __rseq_cs, \"aw?\"\n\t"
			     ".balign 32\n3:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
			     "leaq 3b(%%rip), %[t]\n\tmovq %[t], %%fs:8(%[off])\n"
			     "1:\n\tmovl %%fs:4(%[off]), %k[t]\n\tshlq $16, %[t]\n\taddq %[cells], %[t]\n\t"
			     "addq $1, (%[t])\n2:\n\t"
			     ".pushsection __rseq_failure, \"ax?\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\n"
			     "4:\n\tjmp 6f\n\t.popsection\n"
			     "6:\n\t" /* an interrupted add is dropped: it is only timed */
			     : [t] "=&r"(t)
			     : [off] "r"(off), [cells] "m"(c->cells)
			     : "memory", "cc");
}
#else
#define HAVE_BARE 0
static inline void bare_add(struct pcbatch_counter *c)
{
	(void)c;
}
#endif

static inline int atomics_charge(struct level *leaf, uint64_t n)
{
	struct level *l, *undo;

	for (l = leaf; l != NULL; l = l->parent) {
		if (__atomic_add_fetch(&l->usage.v, n, __ATOMIC_SEQ_CST) > l->max)
			goto refused;
		(void)__atomic_fetch_add(&l->stat.v, n, __ATOMIC_RELAXED);
	}
	return 1;
refused:
	(void)__atomic_fetch_sub(&l->usage.v, n, __ATOMIC_SEQ_CST);
	for (undo = leaf; undo != l; undo = undo->parent) {
		(void)__atomic_fetch_sub(&undo->usage.v, n, __ATOMIC_SEQ_CST);
		(void)__atomic_fetch_sub(&undo->stat.v, n, __ATOMIC_RELAXED);
	}
	return 0;
}

static inline void atomics_uncharge(struct level *leaf, uint64_t n)
{
	for (; leaf != NULL; leaf = leaf->parent) {
		(void)__atomic_fetch_sub(&leaf->stat.v, n, __ATOMIC_RELAXED);
		(void)__atomic_fetch_sub(&leaf->usage.v, n, __ATOMIC_SEQ_CST);
	}
}

#define PASTE(name, place) name##_##place
#define PASTE2(name, place) PASTE(name, place)
#define K(name) PASTE2(name, PLACE)
#define PLACE 0
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 1
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 2
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 3
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 4
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 5
#include "ratio_kernels.h"
#undef PLACE
#define PLACE 6
#include "ratio_kernels.h"
#undef PLACE

#define PLACES(name) { name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 }

static struct pcbatch_domain dom;
static struct pcbatch_counter counters[64], bare_counters[64];
static struct pcbatch_group *leaf1, *leaf3, *leaf8, *many[64];
static struct level levels[3];
static struct padded *lines;

enum { BARE, ADD, ADD_B64, GETCPU, ADD_2T, SHARED_2T, PAIR, PAIR3, PAIR8, PAIR7, ATOM1, ATOM3, PAIR_2T, ATOM_2T, PAIR64, WORKS };

static struct bench_work work[WORKS] = {
	[BARE] = { .name = "bare rseq add, 64 in turn", .place = PLACES(bare), .arg = bare_counters, .threads = 1, .n = 200000 },
	[ADD] = { .name = "counter add, 64 in turn, batch 1024", .place = PLACES(add64), .arg = counters, .threads = 1, .n = 200000 },
	[ADD_B64] = { .name = "counter add, 64 in turn, batch 64", .place = PLACES(add64_b64), .arg = counters, .threads = 1,
		      .n = 200000 },
	[GETCPU] = { .name = "atomic add, line[sched_getcpu()]", .place = PLACES(getcpu64), .threads = 1, .n = 50000 },
	[ADD_2T] = { .name = "counter add, 2 threads", .place = PLACES(add64), .arg = counters, .threads = 2, .n = 200000 },
	[SHARED_2T] = { .name = "shared atomic add, 2 threads", .place = PLACES(shared64), .threads = 2, .n = 20000 },
	[PAIR] = { .name = "charge + uncharge, depth 1", .place = PLACES(pair), .arg = &leaf1, .threads = 1, .n = 100000 },
	[PAIR3] = { .name = "charge + uncharge, depth 3", .place = PLACES(pair), .arg = &leaf3, .threads = 1, .n = 100000 },
	[PAIR8] = { .name = "charge + uncharge, depth 8", .place = PLACES(pair), .arg = &leaf8, .threads = 1, .n = 100000 },
	[PAIR7] = { .name = "charge + uncharge, 7 owners", .place = PLACES(pair7), .arg = many, .threads = 1, .n = 100000 },
	[ATOM1] = { .name = "atomics, depth 1", .place = PLACES(atomics), .arg = &levels[0], .threads = 1, .n = 20000 },
	[ATOM3] = { .name = "atomics, depth 3", .place = PLACES(atomics), .arg = &levels[2], .threads = 1, .n = 10000 },
	[PAIR_2T] = { .name = "charge + uncharge, 2 threads", .place = PLACES(pair), .arg = &leaf1, .threads = 2, .n = 100000 },
	[ATOM_2T] = { .name = "atomics, depth 1, 2 threads", .place = PLACES(atomics), .arg = &levels[0], .threads = 2, .n = 20000 },
	[PAIR64] = { .name = "charge + uncharge, 64 owners, 2 threads", .place = PLACES(pair64), .arg = many, .threads = 2, .n = 10000 },
};

/* name, how many times w's time fits into over's (or the other way), and what it should be. */
static const struct ratio {
	const char *name;
	int over, under;
	double limit;
	int at_least; /* 1: the ratio must be at least limit, 0: at most */
	int contended;
} ratios[] = {
	{ "add64_vs_bare_b1024", ADD, BARE, 1.5, 0, 0 },
	{ "add64_vs_bare_b64", ADD_B64, BARE, 2.0, 0, 0 },
	{ "add64_vs_sched_getcpu_line", GETCPU, ADD, 7, 1, 0 },
	{ "add64_2t_vs_shared_atomic", SHARED_2T, ADD_2T, 30, 1, 1 },
	{ "pair_vs_bare", PAIR, BARE, 5.5, 0, 0 },
	{ "pair_vs_atomics_1t", ATOM1, PAIR, 6, 1, 0 },
	{ "pair_depth3_vs_atomics_1t", ATOM3, PAIR3, 12, 1, 0 },
	{ "pair_vs_atomics_2t", ATOM_2T, PAIR_2T, 25, 1, 1 },
	{ "pair7_vs_pair1", PAIR7, PAIR, 1.4, 0, 0 },
	{ "pair_depth8_vs_depth1", PAIR8, PAIR, 1.05, 0, 0 },
	{ "pair64_vs_atomics_2t", ATOM_2T, PAIR64, 0.8, 1, 1 },
};

#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))

static void *checked(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "bench_ratios: out of memory\n");
		exit(1);
	}
	return p;
}

static struct pcbatch_group *chain(unsigned int depth)
{
	struct pcbatch_group *g = NULL;

	while (depth-- > 0)
		if (pcbatch_group_create(&dom, g, NULL, &g) != 0)
			return checked(NULL);
	return g;
}

static void set_up(void)
{
	struct pcbatch_domain_attr attr;
	unsigned int i;
	int err;

	(void)pcbatch_domain_attr_init(&attr);
	attr.counter_batch = 1024;
	err = pcbatch_domain_init(&dom, &attr);
	if (err != 0) {
		fprintf(stderr, "bench_ratios: pcbatch_domain_init: %s\n", strerror(-err));
		exit(1);
	}
	leaf1 = chain(1);
	leaf3 = chain(3);
	leaf8 = chain(8);
	for (i = 0; i < 64; i++) {
		many[i] = chain(1);
		if (pcbatch_counter_init(&counters[i], &dom, 0) != 0 || pcbatch_counter_init(&bare_counters[i], &dom, 0) != 0)
			checked(NULL);
	}
	for (i = 0; i < 3; i++) {
		levels[i].max = UINT64_MAX / 2;
		levels[i].parent = i == 0 ? NULL : &levels[i - 1];
	}
	lines = checked(aligned_alloc(64, sizeof(*lines) * 64 * ((size_t)sysconf(_SC_NPROCESSORS_CONF) + 1)));
	memset(lines, 0, sizeof(*lines) * 64 * ((size_t)sysconf(_SC_NPROCESSORS_CONF) + 1));
	work[GETCPU].arg = lines;
	work[SHARED_2T].arg = lines + 64 * (size_t)sysconf(_SC_NPROCESSORS_CONF);
}

/* A wrong implementation can't win: every add is there, every charge was taken back. */
static int audit(unsigned int rounds)
{
	int64_t expected = (int64_t)rounds * BENCH_PLACES * (work[ADD].n + work[ADD_B64].n + 2 * work[ADD_2T].n), sum = 0;
	unsigned int i;

	for (i = 0; i < 64; i++)
		sum += pcbatch_counter_sum(&counters[i]);
	(void)pcbatch_stock_drain_all(&dom);
	for (i = 0; i < 64; i++)
		sum += pcbatch_group_current(many[i]);
	sum += pcbatch_group_current(leaf1) + pcbatch_group_current(leaf3) + pcbatch_group_current(leaf8);
	if (sum == expected)
		return 0;
	fprintf(stderr, "bench_ratios: totals are off by %lld\n", (long long)(sum - expected));
	return 1;
}

static volatile uint64_t ball __attribute__((aligned(64)));

static void *bat(void *arg)
{
	uint64_t i, odd = (uint64_t)(uintptr_t)arg;

	bench_pin((unsigned int)odd);
	for (i = odd; i < 400000; i += 2) {
		while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != i)
			;
		__atomic_store_n(&ball, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* ns for a line to get from one CPU to the other, one way: two threads write it in turn. */
static double line_transfer(void)
{
	double start = bench_ns(CLOCK_MONOTONIC);
	pthread_t other;

	ball = 0;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || pthread_create(&other, NULL, bat, (void *)1) != 0)
		return 0;
	(void)bat(NULL);
	(void)pthread_join(other, NULL);
	return (bench_ns(CLOCK_MONOTONIC) - start) / 400000;
}

static double value(const struct ratio *r)
{
	return work[r->over].ns / work[r->under].ns;
}

static const char *verdict(const struct ratio *r, double transfer)
{
	if (!HAVE_BARE && (r->over == BARE || r->under == BARE))
		return "no bare add on this machine";
	if (r->contended && transfer < 40)
		return "not counted: line transfer below 40 ns";
	return (r->at_least ? value(r) >= r->limit : value(r) <= r->limit) ? "ok" : "SHORT";
}

static void print_table(double transfer, unsigned int rounds)
{
	unsigned int i;

	printf("backend %s, %u CPUs, %u rounds of %d placements, line transfer %.0f ns one way\n\n",
	       pcbatch_backend_name(pcbatch_domain_backend(&dom)), pcbatch_domain_cpus(&dom), rounds, BENCH_PLACES, transfer);
	printf("%-42s %10s\n", "ns an operation (CPU time)", "median");
	for (i = 0; i < WORKS; i++)
		printf("%-42s %10.2f\n", work[i].name, work[i].ns);
	printf("\n%-42s %10s %12s\n", "ratio", "here", "wanted");
	for (i = 0; i < RATIOS; i++)
		printf("%-42s %10.2f %5s %6.2f  %s\n", ratios[i].name, value(&ratios[i]), ratios[i].at_least ? ">=" : "<=",
		       ratios[i].limit, verdict(&ratios[i], transfer));
}

static void print_json(double transfer, unsigned int rounds)
{
	unsigned int i;

	printf("{\n  \"backend\": \"%s\", \"cpus\": %u, \"rounds\": %u, \"placements\": %d, \"line_transfer_ns\": %.1f,\n",
	       pcbatch_backend_name(pcbatch_domain_backend(&dom)), pcbatch_domain_cpus(&dom), rounds, BENCH_PLACES, transfer);
	printf("  \"ns\": {");
	for (i = 0; i < WORKS; i++)
		printf("%s\n    \"%s\": %.3f", i == 0 ? "" : ",", work[i].name, work[i].ns);
	printf("\n  },\n  \"ratios\": {");
	for (i = 0; i < RATIOS; i++)
		printf("%s\n    \"%s\": %.3f", i == 0 ? "" : ",", ratios[i].name, value(&ratios[i]));
	printf("\n  }\n}\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_ratios [--json] [--rounds 1..%d]\n", BENCH_ROUNDS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	unsigned int rounds = 9;
	int i, json = 0, failed;
	double transfer;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = 1;
		} else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
			rounds = (unsigned int)strtoul(argv[++i], NULL, 10);
			if (rounds < 1 || rounds > BENCH_ROUNDS_MAX)
				return usage();
		} else {
			return usage();
		}
	}
	set_up();
	transfer = line_transfer();
	bench_run(work, WORKS, rounds);
	failed = audit(rounds);
	if (json)
		print_json(transfer, rounds);
	else
		print_table(transfer, rounds);
	return failed;
}
