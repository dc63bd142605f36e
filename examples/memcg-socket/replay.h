/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recorded stream at full speed, without sockets: the same accounting with each set of changes.
 *
 * A stream is replayed in two ways. The pages pass makes every recorded charge and uncharge of
 * pages, as a socket that keeps nothing makes them: what a call costs. The sockets pass goes
 * through the socket layer, which makes the calls that it finds necessary: how many there are, and
 * what a request costs in all. The events pass counts the events alone.
 */
#ifndef MEMCG_SOCKET_REPLAY_H
#define MEMCG_SOCKET_REPLAY_H

#include "audit.h"
#include "change.h"
#include "options.h"
#include "trace.h"

enum replay_pass { PASS_LOOP, PASS_PAGES, PASS_STATS, PASS_SOCKETS, PASS_EVENTS, PASSES };

#define REPLAY_CONFIGS (2 + 2 * CHANGE_NR)

/* Medians over the rounds. "A pair" is a charge and the uncharge that belongs to it. */
struct replay_result {
	double pair_ns;	   /* charge + uncharge, the loop's own cost taken off */
	double charge_ns;  /* sampled singly, fenced: a latency, longer than its share of a pair */
	double uncharge_ns;
	double updates;	   /* statistics updates a request, counted */
	double update_ns;
	double event_ns;
	double calls;	   /* charges + uncharges a request that the socket layer makes */
	double request_ns; /* everything, a request */
	double hit_rate;
};

struct replay_config {
	unsigned int changes;
	struct memcg_tree *tree;
	struct proto prot;
	struct replay_sock *socks;
	struct task *tasks;
	double *ns[PASSES]; /* [round], per unit of the pass */
	uint64_t events;    /* counted by the events pass */
	struct acct total;  /* by the sockets pass */
	struct replay_result result;
};

struct replay {
	const struct options *opt;
	const struct trace_file *file;
	unsigned int depth;
	double loop_ns;	 /* a record of the pages pass with no work in it */
	double pairs;	 /* of charge and uncharge a request, when nothing is kept */
	double events;	 /* a request */
	double records;	 /* a request */
	double spread;	 /* between the quartiles of the pages pass, percent of the median, mean over configurations */
	const char *backend;
	struct replay_config configs[REPLAY_CONFIGS];
	struct audit audit;
};

/* before, after, then each change: off with the others on, on alone */
static inline unsigned int replay_changes(unsigned int config)
{
	if (config < 2)
		return config ? CHANGE_ALL : CHANGE_NONE;
	config -= 2;
	return config < CHANGE_NR ? CHANGE_ALL & ~(1u << config) : 1u << (config - CHANGE_NR);
}

static inline struct replay_result *replay_without(struct replay *replay, unsigned int change)
{
	return &replay->configs[2 + change].result;
}

static inline struct replay_result *replay_alone(struct replay *replay, unsigned int change)
{
	return &replay->configs[2 + CHANGE_NR + change].result;
}

/* 0, or -1 with a message */
int replay_run(struct replay *replay, const struct options *opt, const struct trace_file *file);

#endif
