/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_read.c - what is not a hit: reading, summing, comparing, limited adds, flushes
 * and drains with 1 to 512 CPUs' slots (virtual ones: the bench says which CPU it is
 * on), drains on the real ones, lifetimes, and memory.
 */
#include "read_real.h"

#define SIZES 6

static const unsigned int sizes[SIZES] = { 1, 2, 8, 64, 256, 512 };

/* One size of machine. */
struct virtual {
	struct pcbatch_domain dom;
	struct pcbatch_counter c;
	struct pcbatch_group *root, *leaf, *other;
	uint64_t *dense;
	struct padded *lines;
	uint64_t *table; /* what a plain loop over the library's own cells reads */
	size_t stride;
	unsigned int cpus;
	int64_t sum;
};

static struct virtual machines[SIZES];
static __thread int virtual_cpu;

static int current(void *ctx)
{
	(void)ctx;
	return virtual_cpu;
}

BENCH_KERNEL(k_read, struct virtual *v = arg, { int64_t x = pcbatch_counter_read(&v->c); BENCH_KEEP(x); })
BENCH_KERNEL(k_sum, struct virtual *v = arg, { int64_t x = pcbatch_counter_sum(&v->c); BENCH_KEEP(x); })
BENCH_KERNEL(k_far, struct virtual *v = arg, { int x = pcbatch_counter_compare(&v->c, INT64_MAX); BENCH_KEEP(x); })
BENCH_KERNEL(k_near, struct virtual *v = arg, { int x = pcbatch_counter_compare(&v->c, v->sum); BENCH_KEEP(x); })
BENCH_KERNEL(k_limited, struct virtual *v = arg, if (pcbatch_counter_limited_add(&v->c, v->sum, 1)) abort())
BENCH_KERNEL(k_flush, struct virtual *v = arg, pcbatch_counter_flush(&v->c))

/* The same cells, the same number of loads, nothing else. */
static inline uint64_t plain_sum(const char *at, size_t stride, unsigned int n)
{
	uint64_t sum = 0;

	for (; n > 0; n--, at += stride)
		sum += *(const volatile uint64_t *)(const void *)at;
	return sum;
}
BENCH_KERNEL(k_plain, struct virtual *v = arg, { uint64_t x = plain_sum((const char *)v->table, v->stride, v->cpus); BENCH_KEEP(x); })
BENCH_KERNEL(k_dense, struct virtual *v = arg, { uint64_t x = plain_sum((const char *)v->dense, 8, v->cpus); BENCH_KEEP(x); })
BENCH_KERNEL(k_lines, struct virtual *v = arg, { uint64_t x = plain_sum((const char *)v->lines, 64, v->cpus); BENCH_KEEP(x); })

enum { READ, SUM, PLAIN, LINES, DENSE, NEAR, FAR, LIMITED, FLUSH, WAYS };

static const struct bench_work pattern[WAYS] = {
	[READ] = BENCH_WORK("read", k_read, NULL, 1, 20000),
	[SUM] = BENCH_WORK("sum", k_sum, NULL, 1, 0),
	[PLAIN] = BENCH_WORK("plain loop over the same cells", k_plain, NULL, 1, 0),
	[LINES] = BENCH_WORK("plain loop over an array of lines", k_lines, NULL, 1, 0),
	[DENSE] = BENCH_WORK("plain loop over an array of words", k_dense, NULL, 1, 0),
	[NEAR] = BENCH_WORK("compare with a near value", k_near, NULL, 1, 0),
	[FAR] = BENCH_WORK("compare with a far value", k_far, NULL, 1, 20000),
	[LIMITED] = BENCH_WORK("limited_add, refused", k_limited, NULL, 1, 0),
	[FLUSH] = BENCH_WORK("flush, nothing to do", k_flush, NULL, 1, 0),
};

static struct bench_work work[WAYS * SIZES];
static char names[WAYS * SIZES][64];

static struct bench_work *work_of(unsigned int way, unsigned int size)
{
	return &work[way * SIZES + size];
}

static void set_up(struct virtual *v, unsigned int cpus)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = v->cpus = cpus;
	attr.current_cpu = current;
	base_domain(&v->dom, &attr);
	base_counters(&v->dom, &v->c, 1);
	v->root = base_chain(&v->dom, NULL, 1);
	v->leaf = base_chain(&v->dom, v->root, 1);
	v->other = base_chain(&v->dom, NULL, 1);
	v->dense = bench_alloc(sizeof(*v->dense) * cpus);
	v->lines = bench_alloc(sizeof(*v->lines) * cpus);
	v->table = &pcbatch_priv_cell_at(v->c.cells, 0)->total;
	v->stride = cpus > 1 ? (size_t)(pcbatch_priv_part(v->c.cells, 1) - pcbatch_priv_part(v->c.cells, 0)) : 0;
	for (virtual_cpu = 0; virtual_cpu < (int)cpus; virtual_cpu++)
		pcbatch_counter_add(&v->c, virtual_cpu + 1);
	virtual_cpu = 0;
	v->sum = (int64_t)cpus * (cpus + 1) / 2;
}

static void reads(struct bench_out *out)
{
	static const unsigned int plotted[] = { SUM, PLAIN, LINES, DENSE, READ, LIMITED };
	unsigned int w, s;

	for (s = 0; s < SIZES; s++) {
		set_up(&machines[s], sizes[s]);
		for (w = 0; w < WAYS; w++) {
			struct bench_work *b = work_of(w, s);

			*b = pattern[w];
			b->arg = &machines[s];
			b->n = b->n != 0 ? b->n : 40000 / (long)(sizes[s] + 8);
			(void)snprintf(names[w * SIZES + s], sizeof(names[0]), "%s, %u CPUs", pattern[w].name, sizes[s]);
			b->name = names[w * SIZES + s];
		}
	}
	bench_run(work, WAYS * SIZES, out->rounds);
	bench_out_head("read and sum, ns a call");
	for (w = 0; w < WAYS * SIZES; w++)
		bench_out_work(out, &work[w]);
	bench_plot(out, "read_cpus", "reading a counter against CPUs", "CPUs", "ns a call", "xy");
	for (w = 0; w < sizeof(plotted) / sizeof(plotted[0]); w++) {
		bench_plot_series(out, pattern[plotted[w]].name);
		for (s = 0; s < SIZES; s++)
			bench_plot_point(out, sizes[s], work_of(plotted[w], s)->ns);
	}
	for (s = 0; s < SIZES; s++)
		bench_out_check(out, "sum", pcbatch_counter_sum(&machines[s].c), machines[s].sum);
	bench_out_quiet(out, work, WAYS * SIZES);
	bench_out_ratio(out, "sum_512_vs_plain_loop", work_of(SUM, SIZES - 1)->ns / work_of(PLAIN, SIZES - 1)->ns);
	bench_out_ratio(out, "sum_512_vs_array_of_lines", work_of(SUM, SIZES - 1)->ns / work_of(LINES, SIZES - 1)->ns);
}

/* ---- drains, virtual CPUs ---- */

static void fill(struct virtual *v)
{
	for (virtual_cpu = 0; virtual_cpu < (int)v->cpus; virtual_cpu++) {
		(void)pcbatch_group_charge(v->leaf, 1);
		(void)pcbatch_group_uncharge(v->leaf, 1);
		(void)pcbatch_group_charge(v->other, 1);
		(void)pcbatch_group_uncharge(v->other, 1);
	}
	virtual_cpu = 0;
}

static int drain(struct virtual *v, unsigned int way)
{
	return way == 0 ? pcbatch_group_drain(v->leaf) : way == 1 ? pcbatch_group_drain_subtree(v->root) : pcbatch_stock_drain_all(&v->dom);
}

static void drains(struct bench_out *out)
{
	static const char *const what[3] = { "drain of one owner", "drain of a subtree", "drain of all" };
	double ns[101];
	unsigned int s, way, i, rounds = out->quick ? 21 : 101;
	char name[64];

	bench_out_head("drains, every CPU holding two owners, us a call");
	bench_plot(out, "drain_cpus", "a drain against CPUs that hold something", "CPUs", "us a call", "xy");
	for (way = 0; way < 3; way++) {
		bench_plot_series(out, what[way]);
		for (s = 0; s < SIZES; s++) {
			struct virtual *v = &machines[s];

			for (i = 0; i < rounds; i++) {
				fill(v);
				ns[i] = bench_ns(CLOCK_MONOTONIC);
				if (drain(v, way) != 0)
					abort();
				ns[i] = (bench_ns(CLOCK_MONOTONIC) - ns[i]) / 1000;
			}
			bench_out_check(out, "pages of the drained after a drain", pcbatch_group_current(v->root), 0);
			bench_out_check(out, "pages of the other", pcbatch_group_current(v->other), way == 2 ? 0 : 64 * (int64_t)v->cpus);
			(void)snprintf(name, sizeof(name), "%s, %u CPUs", what[way], sizes[s]);
			bench_plot_point(out, sizes[s], bench_out_values(out, name, 1, "us", ns, rounds));
		}
	}
}


int main(int argc, char **argv)
{
	struct bench_out out;

	bench_out_begin(&out, "read", argc, argv, 7, 2);
	bench_pin(bench_cpus() - 1);
	reads(&out);
	drains(&out);
	real(&out);
	lifetimes(&out);
	memory(&out);
	return bench_out_end(&out);
}
