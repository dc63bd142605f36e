/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - what the library is compared with in every bench.
 *
 *	bare	the least a per-CPU add can be: arm the section, find the CPU's cell, add;
 *		no bound check, no batch, nothing ever folded
 *	atomics	what code does without this: one shared atomic for the pages and one for
 *		the statistic at every level, with a limit check
 */
#ifndef PCBATCH_BENCH_BASE_H
#define PCBATCH_BENCH_BASE_H

#include "out.h"

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
#ifdef PCBATCH_PRIV_STRIDE
#define BARE_STRIDE PCBATCH_PRIV_STRIDE
#else
#define BARE_STRIDE (1 << PCBATCH_REGION_SHIFT)
#endif
static inline __attribute__((always_inline)) void bare_add(struct pcbatch_counter *c)
{
	intptr_t off = pcbatch_priv_hit_off(0);
	uint64_t t;

	__asm__ __volatile__(".pushsection __rseq_cs, \"aw?\"\n\t"
			     ".balign 32\n3:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
			     "leaq 3b(%%rip), %[t]\n\tmovq %[t], %%fs:8(%[off])\n"
			     "1:\n\tmovl %%fs:4(%[off]), %k[t]\n\timulq %[stride], %[t], %[t]\n\taddq %[cells], %[t]\n\t"
			     "addq $1, (%[t])\n2:\n\t"
			     ".pushsection __rseq_failure, \"ax?\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\n"
			     "4:\n\tjmp 6f\n\t.popsection\n"
			     "6:\n\t" /* an interrupted add is dropped: it is only timed */
			     : [t] "=&r"(t)
			     : [off] "r"(off), [cells] "m"(c->cells), [stride] "i"(BARE_STRIDE)
			     : "memory", "cc");
}
#else
#define HAVE_BARE 0
static inline void bare_add(struct pcbatch_counter *c)
{
	(void)c;
}
#endif

/* Whether there is a bare add here, and where: none on the generic backend. */
static inline int bare_works(const struct pcbatch_domain *dom)
{
	return HAVE_BARE && pcbatch_domain_backend(dom) == PCBATCH_BACKEND_RSEQ;
}

BENCH_UNUSED static inline int atomics_charge(struct level *leaf, uint64_t n)
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

BENCH_UNUSED static inline void atomics_uncharge(struct level *leaf, uint64_t n)
{
	for (; leaf != NULL; leaf = leaf->parent) {
		(void)__atomic_fetch_sub(&leaf->stat.v, n, __ATOMIC_RELAXED);
		(void)__atomic_fetch_sub(&leaf->usage.v, n, __ATOMIC_SEQ_CST);
	}
}

/* A domain, or the program ends. */
static inline void base_domain(struct pcbatch_domain *dom, const struct pcbatch_domain_attr *attr)
{
	int err = pcbatch_domain_init(dom, attr);

	if (err != 0)
		bench_die(strerror(-err));
}

/* A chain of groups under `parent`; returns the lowest. */
static inline struct pcbatch_group *base_chain(struct pcbatch_domain *dom, struct pcbatch_group *parent, unsigned int depth)
{
	while (depth-- > 0)
		if (pcbatch_group_create(dom, parent, NULL, &parent) != 0)
			bench_die("out of memory");
	return parent;
}

static inline void base_counters(struct pcbatch_domain *dom, struct pcbatch_counter *c, unsigned int n)
{
	while (n-- > 0)
		if (pcbatch_counter_init(c++, dom, 0) != 0)
			bench_die("out of memory");
}

static inline long long base_sum(const struct pcbatch_counter *c, unsigned int n)
{
	long long sum = 0;

	while (n-- > 0)
		sum += pcbatch_counter_sum(c++);
	return sum;
}

static inline void base_describe(struct bench_out *out, const struct pcbatch_domain *dom, double transfer)
{
	out->backend = pcbatch_backend_name(pcbatch_domain_backend(dom));
	printf("%s: backend %s, %u CPUs, %u rounds, line transfer %.0f ns one way\n", out->section, out->backend,
	       pcbatch_domain_cpus(dom), out->rounds, transfer);
	if (transfer > 0)
		bench_out_ratio(out, "line_transfer_ns", transfer);
}

#endif /* PCBATCH_BENCH_BASE_H */
