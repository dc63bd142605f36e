/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_seeds.c - the five changes of the kernel that the library is made from: what
 * each was published to bring, and what it brings here, from synthetic traffic and from
 * a replay of traffic recorded on sockets (examples/memcg-socket).
 */
#include "before.h"
#include "json.h"

#include <errno.h>
#include <sys/wait.h>

#define THRESHOLDS 10
#define STREAMS 64 /* sockets of a thread */

static struct pcbatch_domain dom;
static struct pcbatch_group *leaf, *walked;
static struct pcbatch_counter counters[2];

/* ---- 000, 002: a pair with the statistic apart and batched; uncharges past the stock and through it ---- */

static inline int charge_apart(struct pcbatch_group *g)
{
	return pcbatch_group_charge(g, 1) + pcbatch_group_stat_mod(g, 0, 1);
}

static inline int uncharge_apart(struct pcbatch_group *g)
{
	return pcbatch_group_uncharge(g, 1) + pcbatch_group_stat_mod(g, 0, -1);
}

static inline int charge_batched(struct pcbatch_group *g)
{
	return pcbatch_group_charge_stat(g, 1, 1);
}

static inline int uncharge_batched(struct pcbatch_group *g)
{
	return pcbatch_group_uncharge_stat(g, 1, 1);
}

static inline int charge_plain(struct pcbatch_group *g)
{
	return pcbatch_group_charge(g, 1);
}

static inline int uncharge_plain(struct pcbatch_group *g)
{
	return pcbatch_group_uncharge(g, 1);
}

static inline int uncharge_direct(struct pcbatch_group *g)
{
	return pcbatch_group_uncharge_direct(g, 1);
}

static inline int nothing(struct pcbatch_group *g)
{
	BENCH_KEEP(g);
	return 0;
}

#define RUN 24 /* calls of one kind in a row: fewer than a batch, so that they stay with the CPU */

/* Charges and uncharges in runs, so that each can be timed alone; n counts pairs. */
#define SPLIT_KERNEL(name, charge, uncharge)                             \
	static void name(void *arg, long n)                              \
	{                                                                \
		struct split *s = arg;                                   \
		double t0, t1, t2;                                       \
		long i, k;                                               \
                                                                         \
		for (i = 0; i < n; i += RUN) {                           \
			t0 = bench_ns(CLOCK_MONOTONIC);                  \
			for (k = 0; k < RUN; k++)                        \
				if (charge(leaf) != 0)                   \
					abort();                         \
			t1 = bench_ns(CLOCK_MONOTONIC);                  \
			for (k = 0; k < RUN; k++)                        \
				if (uncharge(leaf) != 0)                 \
					abort();                         \
			t2 = bench_ns(CLOCK_MONOTONIC);                  \
			if (s->n < SPLITS && bench_self == 0) {          \
				s->first[s->n] = t1 - t0;                \
				s->second[s->n++] = t2 - t1;             \
			}                                                \
		}                                                        \
	}

#define SPLITS 4000
struct split {
	double first[SPLITS], second[SPLITS];
	unsigned int n;
};

static struct split splits[3];
SPLIT_KERNEL(split_apart, charge_apart, uncharge_apart)
SPLIT_KERNEL(split_batched, charge_batched, uncharge_batched)
SPLIT_KERNEL(split_clock, nothing, nothing)

BENCH_KERNEL(apart, (void)arg, if (charge_apart(leaf) + uncharge_apart(leaf) != 0) abort())
BENCH_KERNEL(batched, (void)arg, if (charge_batched(leaf) + uncharge_batched(leaf) != 0) abort())
BENCH_KERNEL(direct, (void)arg, if (charge_plain(leaf) + uncharge_direct(leaf) != 0) abort())
BENCH_KERNEL(stocked, (void)arg, if (charge_plain(leaf) + uncharge_plain(leaf) != 0) abort())

/* ---- 001 ---- */

BENCH_KERNEL(walk_owners, struct pcbatch_stats_node *node = &walked->owner.stats, before_walk(node))
BENCH_KERNEL(cached_parents, struct pcbatch_stats_node *node = &walked->owner.stats, (void)pcbatch_stats_mod(node, 0, 1))

/* ---- 003: a socket's reserve ---- */

struct sockets {
	int64_t threshold; /* bytes that a socket may keep beyond what it uses; 0: less than a page */
	int64_t forward[BENCH_THREADS_MAX][STREAMS];
	uint64_t calls[BENCH_THREADS_MAX][8]; /* [0]; a line each */
	uint64_t seed[BENCH_THREADS_MAX][8];
	char name[48];
};

static struct sockets sockets[THRESHOLDS];

/* A message comes, is charged, read, and its memory is given back: what sk_mem_charge and sk_mem_uncharge do. */
static inline void message(struct sockets *s)
{
	uint64_t *seed = &s->seed[bench_self][0];
	int64_t *forward, size, pages;

	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	forward = &s->forward[bench_self][(*seed >> 33) % STREAMS];
	size = 768 << ((*seed >> 40) % 7); /* truesize: 768 bytes to 48 KiB */
	if (*forward < size) {
		pages = (size - *forward + 4095) / 4096;
		if (pcbatch_group_charge_stat(leaf, (uint64_t)pages, pages) != 0)
			abort();
		*forward += pages * 4096;
		s->calls[bench_self][0]++;
	}
	if (*forward > s->threshold && *forward >= 4096) {
		pages = s->threshold == 0 ? *forward / 4096 : (*forward - s->threshold + 4095) / 4096;
		(void)pcbatch_group_uncharge_stat(leaf, (uint64_t)pages, pages);
		*forward -= pages * 4096;
		s->calls[bench_self][0]++;
	}
}

BENCH_KERNEL(messages, struct sockets *s = arg, message(s))

/* ---- 004 ---- */

BENCH_KERNEL(batch32, (void)arg, (void)pcbatch_counter_add_batch(&counters[0], 1, 32))
BENCH_KERNEL(batch256, (void)arg, (void)pcbatch_counter_add_batch(&counters[1], 1, 256))

enum { APART, BATCHED, DIRECT, STOCKED, WALK, CACHED, B32, B256, SINGLE, SOCKETS = 2 * SINGLE, WORKS = SOCKETS + THRESHOLDS };

static struct bench_work work[WORKS] = {
	[APART] = BENCH_WORK("pair, statistic apart, depth 3", apart, NULL, 1, 20000),
	[BATCHED] = BENCH_WORK("pair, statistic batched, depth 3", batched, NULL, 1, 40000),
	[DIRECT] = BENCH_WORK("pair, uncharge past the stock, depth 3", direct, NULL, 1, 10000),
	[STOCKED] = BENCH_WORK("pair, uncharge through the stock, depth 3", stocked, NULL, 1, 40000),
	[WALK] = BENCH_WORK("update, walking the owners, depth 8", walk_owners, NULL, 1, 20000),
	[CACHED] = BENCH_WORK("update, parents cached, depth 8", cached_parents, NULL, 1, 20000),
	[B32] = BENCH_WORK("add to one counter, batch 32", batch32, NULL, 1, 200000),
	[B256] = BENCH_WORK("add to one counter, batch 256", batch256, NULL, 1, 200000),
};
static const struct bench_work socket_work = BENCH_WORK("", messages, NULL, 2, 20000);

static void set_up(void)
{
	unsigned int i;

	base_domain(&dom, NULL);
	base_counters(&dom, counters, 2);
	leaf = base_chain(&dom, NULL, 3);
	walked = base_chain(&dom, NULL, 8);
	for (i = 0; i < SINGLE; i++) {
		work[SINGLE + i] = work[i];
		work[SINGLE + i].threads = 2;
	}
	for (i = 0; i < THRESHOLDS; i++) {
		sockets[i].threshold = i == 0 ? 0 : (int64_t)2048 << i; /* 4 KiB to 1 MiB; the last one below */
		if (i == THRESHOLDS - 1)
			sockets[i].threshold = 2 << 20;
		(void)snprintf(sockets[i].name, sizeof(sockets[i].name), i == 0 ? "message, a socket keeps less than a page" :
			       "message, a socket keeps %lld KiB", (long long)sockets[i].threshold / 1024);
		work[SOCKETS + i] = socket_work;
		work[SOCKETS + i].name = sockets[i].name;
		work[SOCKETS + i].arg = &sockets[i];
	}
}

#include "seeds_table.h"

int main(int argc, char **argv)
{
	struct bench_out out;
	double transfer;

	bench_out_begin(&out, "seeds", argc, argv, 9, 3);
	set_up();
	transfer = bench_line_transfer();
	bench_run(work, WORKS, out.rounds);
	base_describe(&out, &dom, transfer);
	synthetic(&out);
	replayed(&out);
	audit(&out);
	bench_out_quiet(&out, work, WORKS);
	return bench_out_end(&out);
}
