/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "replay.h"
#include "replay_worker.h"
#include "report.h"

/* ---- configurations ---------------------------------------------------------------------------- */

static int config_init(struct replay *replay, struct replay_config *c, unsigned int changes)
{
	const struct trace_header *h = &replay->file->header;
	const struct options *opt = replay->opt;
	struct memcg_tree_attr attr = {
		.depth = replay->depth, .memcgs = h->memcgs, .batch = opt->batch, .max = PCBATCH_PAGES_MAX,
		.high = PCBATCH_PAGES_MAX, .root_max = PCBATCH_PAGES_MAX, .changes = changes,
	};
	int64_t mem[3];
	int ret;

	c->changes = changes;
	acct_init(&c->total);
	ret = memcg_tree_create(&attr, &c->tree);
	if (ret)
		return ret;
	proto_default_mem(mem);
	ret = proto_init(&c->prot, c->tree, mem, changes);
	if (ret)
		return ret;
	proto_set_reclaim_threshold(&c->prot, opt->reclaim_threshold);
	c->tasks = zalloc_line(h->threads * sizeof(*c->tasks));
	c->socks = zalloc_line(h->sockets * sizeof(*c->socks));
	if (!c->tasks || !c->socks)
		return -ENOMEM;
	for (unsigned int i = 0; i < h->threads && !ret; i++)
		ret = memcg_task_init(c->tree, &c->tasks[i]);
	for (uint64_t i = 0; i < h->records && !ret; i++) {
		const struct trace_record *r = &replay->file->records[i];
		struct sock *sk = &c->socks[r->socket].sk;

		if (!sk->sk_memcg)
			sock_init(sk, &c->prot, c->tree->leaves[r->memcg], &c->tasks[r->thread], r->socket);
	}
	for (int pass = 0; pass < PASSES && !ret; pass++) {
		c->ns[pass] = calloc(opt->rounds, sizeof(double));
		if (!c->ns[pass])
			ret = -ENOMEM;
	}
	return ret;
}

static void config_sum(struct replay *replay, struct replay_config *c, struct acct *acct)
{
	acct_init(acct);
	for (unsigned int i = 0; i < replay->file->header.threads; i++)
		acct_merge(acct, &c->tasks[i].acct);
}

/* what the threads have counted since the last time */
static void config_take(struct replay *replay, struct replay_config *c, struct acct *acct)
{
	config_sum(replay, c, acct);
	acct_merge(&c->total, acct);
	for (unsigned int i = 0; i < replay->file->header.threads; i++)
		acct_init(&c->tasks[i].acct);
}

static void config_audit(struct replay *replay, struct replay_config *c)
{
	struct acct acct;

	for (uint32_t i = 0; i < replay->file->header.sockets; i++)
		if (c->socks[i].sk.sk_memcg)
			sock_release(&c->socks[i].sk);
	config_take(replay, c, &acct);
	audit_tree(&replay->audit, c->tree, &c->prot, &c->total, c->events + acct_calls(&c->total, ACCT_EVENT));
}

static void config_free(struct replay_config *c)
{
	for (int pass = 0; pass < PASSES; pass++)
		free(c->ns[pass]);
	free(c->socks);
	free(c->tasks);
}

/* ---- rounds ------------------------------------------------------------------------------------ */

/* The first run of each pass is not timed: it warms up, and tells what can be counted. */
static void config_count(struct replay_work *work, struct replay_config *c)
{
	struct replay *replay = work->replay;
	struct pcbatch_stock_info before, after;
	struct acct acct;

	config_take(replay, c, &acct);
	replay_pass(work, c, PASS_SOCKETS, false);
	config_take(replay, c, &acct);
	c->result.calls = ratio((double)(acct_calls(&acct, ACCT_CHARGE) + acct_calls(&acct, ACCT_UNCHARGE)),
				(double)acct_calls(&acct, ACCT_EVENT)) * replay->events;
	replay_pass(work, c, PASS_PAGES, false);
	pcbatch_stock_info_read(&c->tree->domain, &before);
	replay_pass(work, c, PASS_PAGES, true);
	pcbatch_stock_info_read(&c->tree->domain, &after);
	config_take(replay, c, &acct);
	c->result.charge_ns = acct_ns(&acct, ACCT_CHARGE);
	c->result.uncharge_ns = acct_ns(&acct, ACCT_UNCHARGE);
	c->result.updates = ratio((double)acct_calls(&acct, ACCT_STAT), (double)acct_calls(&acct, ACCT_CHARGE)) *
			    replay->pairs;
	c->result.hit_rate = hit_rate(&before, &after);
	replay_pass(work, c, PASS_EVENTS, false);
}

static void config_round(struct replay_work *work, struct replay_config *c, unsigned int round)
{
	c->ns[PASS_LOOP][round] = replay_pass(work, c, PASS_LOOP, false);
	c->ns[PASS_PAGES][round] = replay_pass(work, c, PASS_PAGES, false);
	if (!(c->changes & CHANGE_000))
		c->ns[PASS_STATS][round] = replay_pass(work, c, PASS_STATS, false);
	c->ns[PASS_SOCKETS][round] = replay_pass(work, c, PASS_SOCKETS, false);
	c->ns[PASS_EVENTS][round] = replay_pass(work, c, PASS_EVENTS, false);
	/* as the periodic flush would, every two seconds */
	for (unsigned int i = 0; i < c->tree->nr_nodes && !c->tree->nodes[i].parent; i++)
		pcbatch_group_stat_flush(c->tree->nodes[i].group);
}

static void config_result(struct replay *replay, struct replay_config *c)
{
	unsigned int rounds = replay->opt->rounds;
	double *pages = c->ns[PASS_PAGES], loop = median(c->ns[PASS_LOOP], rounds);

	c->result.pair_ns = 2.0 * (median(pages, rounds) - loop);
	c->result.update_ns = c->changes & CHANGE_000 ? 0.0 : median(c->ns[PASS_STATS], rounds) - loop;
	c->result.request_ns = median(c->ns[PASS_SOCKETS], rounds) * replay->records;
	c->result.event_ns = median(c->ns[PASS_EVENTS], rounds);
	replay->loop_ns += loop / REPLAY_CONFIGS;
	/* sorted by median() */
	replay->spread += 100.0 * ratio(pages[rounds - 1 - rounds / 4] - pages[rounds / 4], pages[rounds / 2]) /
			  REPLAY_CONFIGS;
}

static void replay_shape(struct replay *replay)
{
	const struct trace_header *h = &replay->file->header;
	uint64_t pages = 0, events = 0;

	for (uint64_t i = 0; i < h->records; i++) {
		const struct trace_record *r = &replay->file->records[i];

		pages += r->pages != 0;
		events += r->kind == TRACE_RMEM_CHARGE || r->kind == TRACE_WMEM_CHARGE;
	}
	replay->pairs = (double)pages / 2.0 / (double)h->requests;
	replay->events = (double)events / (double)h->requests;
	replay->records = (double)h->records / (double)h->requests;
}

static void replay_rounds(struct replay_work *work)
{
	struct replay *replay = work->replay;
	unsigned int rounds = replay->opt->rounds;

	for (unsigned int i = 0; i < REPLAY_CONFIGS; i++)
		config_count(work, &replay->configs[i]);
	for (unsigned int round = 0; round < rounds; round++) {
		progress("replay: round %u of %u", round + 1, rounds);
		/* another first one in every round, so that none has the same place in it always */
		for (unsigned int i = 0; i < REPLAY_CONFIGS; i++)
			config_round(work, &replay->configs[(i + round * 5) % REPLAY_CONFIGS], round);
	}
	progress_end();
}

int replay_run(struct replay *replay, const struct options *opt, const struct trace_file *file)
{
	struct replay_work work = { 0 };
	int ret = 0;

	*replay = (struct replay){ .opt = opt, .file = file };
	replay->depth = opt->depth_given ? opt->depth : file->header.depth;
	replay_shape(replay);
	for (unsigned int i = 0; i < REPLAY_CONFIGS && !ret; i++)
		ret = config_init(replay, &replay->configs[i], replay_changes(i));
	if (!ret)
		ret = replay_work_start(&work, replay);
	if (ret) {
		fprintf(stderr, "memcg-socket: cannot start the replay: %s\n", strerror(-ret));
		return -1;
	}
	replay->backend = pcbatch_backend_name(pcbatch_domain_backend(&replay->configs[0].tree->domain));
	replay_rounds(&work);
	replay_work_stop(&work);
	for (unsigned int i = 0; i < REPLAY_CONFIGS; i++) {
		config_result(replay, &replay->configs[i]);
		config_audit(replay, &replay->configs[i]);
		config_free(&replay->configs[i]);
	}
	return 0;
}
