/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_hierarchy.c - a statistic of a leaf and what it costs per level above it, hot
 * and with thousands of owners whose lines are in no cache: parents cached per CPU
 * against walking the owners against an atomic at each level (before.h).
 */
#include "before.h"

#define DEPTH 16
#define CHAINS 2048
#define DEPTHS 5
#define WAYS 4

static const unsigned int depths[DEPTHS] = { 1, 2, 4, 8, 16 };
static const char *const way_name[WAYS] = { "cached parents", "walking the owners", "walking, owners as large as a memcg", "atomics" };

/* What a workload of one depth goes through. */
struct walk {
	unsigned int depth;
	struct pcbatch_stats_node *hot;
	struct memcg *hot_memcg;
	struct stat_level *hot_level;
	struct pcbatch_stats_node *node[CHAINS];
	struct memcg *memcg[CHAINS];
	struct stat_level *level[CHAINS];
	char name[WAYS][2][80];
};

static struct pcbatch_domain dom;
static struct pcbatch_counter bare_counters[64];
static struct pcbatch_group *groups[CHAINS][DEPTH]; /* [.][0] has no parent */
static struct memcg *memcgs[CHAINS][DEPTH];
static struct stat_level *stat_levels[CHAINS][DEPTH];
static struct walk walks[DEPTHS];

BENCH_KERNEL(bare, struct pcbatch_counter *c = arg, bare_add(&c[i & 63]))
BENCH_KERNEL(hot_cached, struct walk *w = arg; struct pcbatch_stats_node *node = w->hot, (void)pcbatch_stats_mod(node, 0, 1))
BENCH_KERNEL(hot_walk, struct walk *w = arg; struct pcbatch_stats_node *node = w->hot, before_walk(node))
BENCH_KERNEL(hot_kernel, struct walk *w = arg; struct memcg *memcg = w->hot_memcg, before_kernel(&dom, memcg))
BENCH_KERNEL(hot_atomics, struct walk *w = arg; struct stat_level *level = w->hot_level, before_atomics(level))
BENCH_KERNEL(cold_cached, struct walk *w = arg, (void)pcbatch_stats_mod(w->node[i], 0, 1))
BENCH_KERNEL(cold_walk, struct walk *w = arg, before_walk(w->node[i]))
BENCH_KERNEL(cold_kernel, struct walk *w = arg, before_kernel(&dom, w->memcg[i]))
BENCH_KERNEL(cold_atomics, struct walk *w = arg, before_atomics(w->level[i]))

enum { HOT = 1, COLD = HOT + WAYS * DEPTHS, HOT_2T = COLD + WAYS * DEPTHS, WORKS = HOT_2T + 2 * WAYS };

static struct bench_work work[WORKS] = {
	[0] = BENCH_WORK("bare rseq add, 64 in turn", bare, bare_counters, 1, 400000),
};
static const struct bench_work patterns[2][WAYS] = {
	{ BENCH_WORK("", hot_cached, NULL, 1, 40000), BENCH_WORK("", hot_walk, NULL, 1, 40000),
	  BENCH_WORK("", hot_kernel, NULL, 1, 40000), BENCH_WORK("", hot_atomics, NULL, 1, 10000) },
	{ BENCH_WORK("", cold_cached, NULL, 1, CHAINS), BENCH_WORK("", cold_walk, NULL, 1, CHAINS),
	  BENCH_WORK("", cold_kernel, NULL, 1, CHAINS), BENCH_WORK("", cold_atomics, NULL, 1, CHAINS) },
};

/* Throws what an update of this depth can touch out of the caches, on the CPU that will be measured. */
static void defeat(void *arg)
{
	const struct walk *walk = arg;
	unsigned int i, d, cpu = (bench_cpus() - 1) % pcbatch_domain_cpus(&dom);

	for (i = 0; i < CHAINS; i++)
		for (d = 0; d < walk->depth; d++) {
			const struct pcbatch_stats_node *node = &groups[i][d]->owner.stats;
			const struct memcg *memcg = memcgs[i][d];
			const char *block = pcbatch_priv_part(node->blocks, cpu);

			before_evict(block);
			before_evict(block + sizeof(struct pcbatch_priv_stats_block));
			before_evict(&node->dom);
			before_evict(&node->parent);
			before_evict(memcg);
			before_evict(&memcg->blocks);
			before_evict(stat_levels[i][d]);
		}
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t seed = 88172645463325252u;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* v gets 0 to CHAINS - 1 in some order. */
static void shuffle(unsigned int *v)
{
	unsigned int i, at, old;

	for (i = 0; i < CHAINS; i++)
		v[i] = i;
	for (i = CHAINS - 1; i > 0; i--) {
		at = (unsigned int)random_below(i + 1);
		old = v[i];
		v[i] = v[at];
		v[at] = old;
	}
}

/* One after the other in memory, in the order in which they are made. */
static void set_up_member(unsigned int i, unsigned int d)
{
	static struct memcg *next_memcg;
	static struct stat_level *next_level;
	struct memcg *m;

	if (next_memcg == NULL) {
		next_memcg = bench_alloc(sizeof(*m) * CHAINS * DEPTH);
		next_level = bench_alloc(sizeof(*next_level) * CHAINS * DEPTH);
	}
	groups[i][d] = base_chain(&dom, d == 0 ? NULL : groups[i][d - 1], 1);
	memcgs[i][d] = m = next_memcg++;
	m->parent = d == 0 ? NULL : memcgs[i][d - 1];
	m->stats = &groups[i][d]->owner.stats;
	m->blocks = m->stats->blocks;
	stat_levels[i][d] = next_level++;
	stat_levels[i][d]->parent = d == 0 ? NULL : stat_levels[i][d - 1];
}

/* The first chain, the hot one, in one go; the others level by level, so that a chain's members are no neighbours. */
static void set_up_chains(void)
{
	unsigned int order[CHAINS], i, d;

	for (d = 0; d < DEPTH; d++)
		set_up_member(0, d);
	for (d = 0; d < DEPTH; d++) {
		shuffle(order);
		for (i = 0; i < CHAINS; i++)
			if (order[i] != 0)
				set_up_member(order[i], d);
	}
}

static void set_up_walk(unsigned int k)
{
	unsigned int order[CHAINS], i, d = depths[k] - 1;

	shuffle(order);
	walks[k].depth = depths[k];
	walks[k].hot = &groups[0][d]->owner.stats;
	walks[k].hot_memcg = memcgs[0][d];
	walks[k].hot_level = stat_levels[0][d];
	for (i = 0; i < CHAINS; i++) {
		walks[k].node[i] = &groups[order[i]][d]->owner.stats;
		walks[k].memcg[i] = memcgs[order[i]][d];
		walks[k].level[i] = stat_levels[order[i]][d];
	}
}

static void set_up(void)
{
	unsigned int k, way, cold;

	base_domain(&dom, NULL);
	base_counters(&dom, bare_counters, 64);
	set_up_chains();
	for (k = 0; k < DEPTHS; k++) {
		set_up_walk(k);
		for (cold = 0; cold < 2; cold++)
			for (way = 0; way < WAYS; way++) {
				struct bench_work *w = &work[(cold ? COLD : HOT) + way * DEPTHS + k];

				(void)snprintf(walks[k].name[way][cold], sizeof(walks[k].name[way][cold]), "depth %u, %s, %s", depths[k],
					       cold ? "cold" : "hot", way_name[way]);
				*w = patterns[cold][way];
				w->name = walks[k].name[way][cold];
				w->arg = &walks[k];
				w->before = cold ? defeat : NULL;
			}
	}
	for (way = 0; way < 2 * WAYS; way++) {
		work[HOT_2T + way] = work[HOT + (way % WAYS) * DEPTHS + (way < WAYS ? 0 : 3)];
		work[HOT_2T + way].threads = 2;
		work[HOT_2T + way].n /= 4;
	}
	if (!bare_works(&dom))
		work[0].place[0] = NULL;
	/* A cold pass takes long enough not to care where its loop stands. */
	for (way = COLD; way < HOT_2T; way++)
		work[way].place[2] = NULL;
}

/* Every update arrived at every level above its leaf. */
static void audit(struct bench_out *out)
{
	unsigned long long want[DEPTH + 1] = { 0 }, atomics = 0, sum;
	unsigned int w, i, d;

	(void)pcbatch_stats_flush(&dom, NULL);
	for (w = HOT; w < WORKS; w++) {
		unsigned int k = w < HOT_2T ? (w - (w < COLD ? HOT : COLD)) % DEPTHS : w < HOT_2T + WAYS ? 0 : 3;
		unsigned int way = w < HOT_2T ? (w - (w < COLD ? HOT : COLD)) / DEPTHS : (w - HOT_2T) % WAYS;

		for (d = 0; d < depths[k] && way < WAYS - 1; d++)
			want[d] += work[w].done;
		atomics += way < WAYS - 1 ? 0 : work[w].done * depths[k];
	}
	for (d = 0; d < DEPTH; d++) {
		for (sum = 0, i = 0; i < CHAINS; i++)
			sum += (unsigned long long)pcbatch_group_stat_read_signed(groups[i][d], 0);
		bench_out_check(out, "updates of a level", (long long)sum, (long long)want[d]);
	}
	for (sum = 0, i = 0; i < CHAINS * DEPTH; i++)
		sum += stat_levels[i / DEPTH][i % DEPTH]->v;
	bench_out_check(out, "atomics", (long long)sum, (long long)atomics);
}

static void tables(struct bench_out *out)
{
	static const char *const file[2] = { "hierarchy_hot", "hierarchy_cold" };
	unsigned int w, k, way, cold;

	bench_out_head("statistics, ns an update (CPU time)");
	for (w = 0; w < WORKS; w++)
		bench_out_work(out, &work[w]);
	for (cold = 0; cold < 2; cold++) {
		bench_plot(out, file[cold], cold ? "update of a leaf against depth, nothing in the caches" : "update of a leaf against depth, hot",
			   "depth", "ns an update", "xy");
		for (way = 0; way < WAYS; way++) {
			bench_plot_series(out, way_name[way]);
			for (k = 0; k < DEPTHS; k++)
				bench_plot_point(out, depths[k], work[(cold ? COLD : HOT) + way * DEPTHS + k].ns);
		}
	}
	bench_out_note(out, "lines of the hierarchy that an update at depth N reads, its item aside: cached 1+N (the node, then a block a level), "
			    "walking 2N, walking owners as large as a memcg 3N, atomics N");
}

int main(int argc, char **argv)
{
	struct bench_out out;
	double transfer, per_level;

	bench_out_begin(&out, "hierarchy", argc, argv, 7, 2);
	set_up();
	transfer = bench_line_transfer();
	bench_run(work, WORKS, out.rounds);
	base_describe(&out, &dom, transfer);
	audit(&out);
	tables(&out);
	bench_out_quiet(&out, work, WORKS);
	per_level = (work[HOT + 4].ns - work[HOT].ns) / (depths[4] - depths[0]);
	bench_out_value(&out, "a level more, hot, cached parents", 1, "ns", per_level, per_level, 1);
	if (bare_works(&dom)) {
		bench_out_ratio(&out, "stats_per_level_vs_bare_rseq", per_level / work[0].ns);
		/* The seed's 3N loads against 1+N; and 2N, where an owner's two pointers share a line as the library's do. */
		bench_out_ratio(&out, "stats_depth8_cold_cached_vs_walk", work[COLD + 3].ns / work[COLD + 2 * DEPTHS + 3].ns);
		bench_out_ratio(&out, "stats_depth8_cold_cached_vs_walk_2n", work[COLD + 3].ns / work[COLD + DEPTHS + 3].ns);
	}
	return bench_out_end(&out);
}
