/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_add.c - what an add costs: one counter and 64 in turn; 1, 2 and 8 threads;
 * batches from 1 to 65536, and how far read is off with each.
 */
#include "base.h"

#define BATCHES 11

static const int64_t batches[BATCHES] = { 1, 4, 16, 32, 64, 256, 1024, 4096, 16384, 32768, 65536 };

static struct pcbatch_domain dom;
static struct pcbatch_counter counters[64], bare_counters[64], batch_counters[BATCHES][64];
static struct padded *lines, *shared;
static __thread volatile uint64_t tls[64];

struct batched {
	struct pcbatch_counter *c;
	int64_t batch;
	char name[48];
};

static struct batched batched[BATCHES];

BENCH_KERNEL(bare, struct pcbatch_counter *c = arg, bare_add(&c[i & 63]))
BENCH_KERNEL(tls64, , tls[i & 63]++)
BENCH_KERNEL(add1, struct pcbatch_counter *c = arg, pcbatch_counter_add(c, 1))
BENCH_KERNEL(add64, struct pcbatch_counter *c = arg, pcbatch_counter_add(&c[i & 63], 1))
BENCH_KERNEL(add64_b64, struct pcbatch_counter *c = arg, (void)pcbatch_counter_add_batch(&c[i & 63], 1, 64))
BENCH_KERNEL(add64_any, struct batched *b = arg; struct pcbatch_counter *c = b->c; int64_t batch = b->batch,
	     (void)pcbatch_counter_add_batch(&c[i & 63], 1, batch))
BENCH_KERNEL(getcpu1, struct padded *l = arg, (void)__atomic_fetch_add(&l[(unsigned int)sched_getcpu() * 64].v, 1, __ATOMIC_RELAXED))
BENCH_KERNEL(getcpu64, struct padded *l = arg,
	     (void)__atomic_fetch_add(&l[(unsigned int)sched_getcpu() * 64 + (i & 63)].v, 1, __ATOMIC_RELAXED))
BENCH_KERNEL(shared1, struct padded *l = arg, (void)__atomic_fetch_add(&l->v, 1, __ATOMIC_RELAXED))
BENCH_KERNEL(shared64, struct padded *l = arg, (void)__atomic_fetch_add(&l[i & 63].v, 1, __ATOMIC_RELAXED))

enum {
	BARE, TLS, ADD, ADD_2T, ADD_8T, ADD_B64, ONE, ONE_2T, ONE_8T, GETCPU, GETCPU_2T, GETCPU1, SHARED, SHARED_2T, SHARED_8T,
	SHARED1, SHARED1_2T, SHARED1_8T, SWEEP, SWEEP_2T = SWEEP + BATCHES, WORKS = SWEEP_2T + BATCHES
};

static struct bench_work work[WORKS] = {
	[BARE] = BENCH_WORK("bare rseq add, 64 in turn", bare, bare_counters, 1, 400000),
	[TLS] = BENCH_WORK("plain thread-local add, 64 in turn", tls64, NULL, 1, 400000),
	[ADD] = BENCH_WORK("counter add, 64 in turn, batch 1024", add64, counters, 1, 400000),
	[ADD_2T] = BENCH_WORK("counter add, 64 in turn, batch 1024", add64, counters, 2, 400000),
	[ADD_8T] = BENCH_WORK("counter add, 64 in turn, batch 1024", add64, counters, 8, 100000),
	[ADD_B64] = BENCH_WORK("counter add, 64 in turn, batch 64", add64_b64, counters, 1, 400000),
	[ONE] = BENCH_WORK("counter add, one, batch 1024", add1, counters, 1, 200000),
	[ONE_2T] = BENCH_WORK("counter add, one, batch 1024", add1, counters, 2, 200000),
	[ONE_8T] = BENCH_WORK("counter add, one, batch 1024", add1, counters, 8, 50000),
	[GETCPU] = BENCH_WORK("atomic add, line[sched_getcpu()], 64 in turn", getcpu64, NULL, 1, 50000),
	[GETCPU_2T] = BENCH_WORK("atomic add, line[sched_getcpu()], 64 in turn", getcpu64, NULL, 2, 50000),
	[GETCPU1] = BENCH_WORK("atomic add, line[sched_getcpu()], one", getcpu1, NULL, 1, 50000),
	[SHARED] = BENCH_WORK("shared atomic add, 64 in turn", shared64, NULL, 1, 50000),
	[SHARED_2T] = BENCH_WORK("shared atomic add, 64 in turn", shared64, NULL, 2, 20000),
	[SHARED_8T] = BENCH_WORK("shared atomic add, 64 in turn", shared64, NULL, 8, 10000),
	[SHARED1] = BENCH_WORK("shared atomic add, one", shared1, NULL, 1, 50000),
	[SHARED1_2T] = BENCH_WORK("shared atomic add, one", shared1, NULL, 2, 40000),
	[SHARED1_8T] = BENCH_WORK("shared atomic add, one", shared1, NULL, 8, 20000),
};

static const struct bench_work sweep_work = BENCH_WORK("", add64_any, NULL, 1, 200000);

static void set_up(void)
{
	struct pcbatch_domain_attr attr;
	unsigned int b, w, cpus = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);

	(void)pcbatch_domain_attr_init(&attr);
	attr.counter_batch = 1024;
	base_domain(&dom, &attr);
	base_counters(&dom, counters, 64);
	base_counters(&dom, bare_counters, 64);
	lines = bench_alloc(sizeof(*lines) * 64 * cpus);
	shared = bench_alloc(sizeof(*shared) * 64);
	for (w = GETCPU; w <= GETCPU1; w++)
		work[w].arg = lines;
	for (w = SHARED; w <= SHARED1_8T; w++)
		work[w].arg = shared;
	for (b = 0; b < BATCHES; b++) {
		base_counters(&dom, batch_counters[b], 64);
		batched[b].c = batch_counters[b];
		batched[b].batch = batches[b];
		(void)snprintf(batched[b].name, sizeof(batched[b].name), "counter add, 64 in turn, batch %lld", (long long)batches[b]);
		for (w = 0; w < 2; w++) {
			struct bench_work *s = &work[SWEEP + w * BATCHES + b];

			*s = sweep_work;
			s->name = batched[b].name;
			s->arg = &batched[b];
			s->threads = w + 1;
		}
	}
	if (!bare_works(&dom))
		work[BARE].place[0] = NULL;
}

static long long done(unsigned int from, unsigned int to)
{
	long long sum = 0;

	for (; from <= to; from++)
		sum += (long long)work[from].done;
	return sum;
}

static long long line_sum(const struct padded *l, unsigned int n)
{
	long long sum = 0;

	while (n-- > 0)
		sum += (long long)l[n].v;
	return sum;
}

/* A wrong implementation can't win. */
static void audit(struct bench_out *out)
{
	unsigned int b;

	bench_out_check(out, "counters", base_sum(counters, 64), done(ADD, ONE_8T));
	bench_out_check(out, "lines by sched_getcpu", line_sum(lines, 64 * (unsigned int)sysconf(_SC_NPROCESSORS_CONF)),
			done(GETCPU, GETCPU1));
	bench_out_check(out, "shared atomics", line_sum(shared, 64), done(SHARED, SHARED1_8T));
	for (b = 0; b < BATCHES; b++)
		bench_out_check(out, batched[b].name, base_sum(batched[b].c, 64), done(SWEEP + b, SWEEP + b) + done(SWEEP_2T + b, SWEEP_2T + b));
}

/* How far read is from sum, at most, while adds go on. */
static double worst_error(int64_t batch)
{
	struct pcbatch_counter fresh, *c = &fresh;
	int64_t worst = 0, off;
	long i;

	base_counters(&dom, c, 1);
	for (i = 0; i < 5 * batch + 1000; i++) {
		(void)pcbatch_counter_add_batch(c, 1, batch);
		if (i % 7 != 0)
			continue;
		off = pcbatch_counter_sum(c) - pcbatch_counter_read(c);
		worst = off > worst ? off : worst;
	}
	(void)pcbatch_counter_destroy(c);
	return (double)worst;
}

static void tables(struct bench_out *out)
{
	unsigned int w, b;

	bench_out_head("add, ns an operation (CPU time)");
	for (w = 0; w < SWEEP; w++)
		bench_out_work(out, &work[w]);
	bench_out_head("batches");
	for (w = SWEEP; w < WORKS; w++)
		bench_out_work(out, &work[w]);
	bench_plot(out, "add_batch", "add: cost against batch, 64 counters in turn", "batch", "ns an add", "x");
	for (w = 0; w < 2; w++) {
		bench_plot_series(out, w == 0 ? "1 thread" : "2 threads");
		for (b = 0; b < BATCHES; b++)
			bench_plot_point(out, (double)batches[b], work[SWEEP + w * BATCHES + b].ns);
	}
	bench_plot_series(out, "bare rseq add");
	for (b = 0; b < BATCHES; b += BATCHES - 1)
		bench_plot_point(out, (double)batches[b], work[BARE].ns);
	bench_plot(out, "add_threads", "add: cost against threads on this machine, 64 counters in turn", "threads", "ns an add (CPU time)", "y");
	bench_plot_series(out, "counter, batch 1024");
	for (w = ADD; w <= ADD_8T; w++)
		bench_plot_point(out, work[w].threads, work[w].ns);
	bench_plot_series(out, "shared atomic");
	for (w = SHARED; w <= SHARED_8T; w++)
		bench_plot_point(out, work[w].threads, work[w].ns);
	bench_pin(0);
	bench_out_head("how far read is off, one thread (published: batch x CPUs)");
	for (b = 0; b < BATCHES; b++) {
		double worst = worst_error(batches[b]);

		bench_out_value(out, batched[b].name, 1, "units", worst, worst, 1);
		if (worst >= (double)batches[b]) {
			out->failed = 1;
			bench_out_note(out, "WRONG: %s: read is off by the batch or more", batched[b].name);
		}
	}
}

int main(int argc, char **argv)
{
	struct bench_out out;
	double transfer;

	bench_out_begin(&out, "add", argc, argv, 9, 3);
	set_up();
	transfer = bench_line_transfer();
	bench_run(work, WORKS, out.rounds);
	base_describe(&out, &dom, transfer);
	audit(&out);
	tables(&out);
	bench_out_quiet(&out, work, WORKS);
	if (bare_works(&dom)) {
		bench_out_ratio(&out, "add64_vs_bare_b1024", work[ADD].ns / work[BARE].ns);
		bench_out_ratio(&out, "add64_vs_bare_b64", work[ADD_B64].ns / work[BARE].ns);
	}
	bench_out_ratio(&out, "add64_vs_sched_getcpu_line", work[GETCPU].ns / work[ADD].ns);
	if (transfer > 0)
		bench_out_ratio(&out, "add64_2t_vs_shared_atomic", work[SHARED_2T].ns / work[ADD_2T].ns);
	return bench_out_end(&out);
}
