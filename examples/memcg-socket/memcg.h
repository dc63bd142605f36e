/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tree of memory cgroups on pcbatch_group, with the interface files of cgroup v2.
 *
 *        app                 level 1: the root of the tree, limits every tenant
 *       /   \
 *   tenant0  tenant1         levels in between: one node for up to four below it
 *    / | \     | \
 *  svc0 ...   svc4 ...       level `depth`: sockets belong to these, and only to these
 *
 * A charge is felt at every level. A pcbatch group carries the page counters, the stock and the
 * statistics; what stands here is what a kernel keeps beside them: names, socket pressure, event
 * counts, and the walking statistics that change 001 did away with.
 */
#ifndef MEMCG_SOCKET_MEMCG_H
#define MEMCG_SOCKET_MEMCG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <pcbatch.h>

#include "acct.h"
#include "change.h"
#include "util.h"

/* Units: anon and sock in pages, slab in socket objects. One unit an item, so that a threshold on
 * the number of updates means the same for each. */
enum memcg_item { MEMCG_ANON, MEMCG_SLAB, MEMCG_SOCK, MEMCG_ITEMS };

/* What count_memcg_events counts: skbs received and sent, and timer interrupts. */
enum memcg_event { MEMCG_SOCK_RX, MEMCG_SOCK_TX, MEMCG_TICK, MEMCG_EVENTS };

/* What a TCP socket, its file and its dentry take from the slab. */
#define SOCK_OBJECT_BYTES 3072u

#define MEMCG_DEPTH_MAX 16u
#define MEMCGS_MAX 4096u

struct memcg_tree;

/* Written by many threads: lines of their own, away from what a charge reads. */
struct memcg_totals {
	int64_t events[MEMCG_EVENTS];
	uint64_t sock_throttled;
	uint64_t pad[4];
};

/* What every skb needs comes first and is hardly ever written. */
struct memcg {
	struct pcbatch_group *group;
	uint64_t pressure_until; /* ns; until then sockets give back what they don't use; 0 = no pressure */
	unsigned int index;	 /* in tree->nodes, parents first */
	unsigned int position;	 /* in its level */
	unsigned int level;
	struct memcg *parent;
	struct memcg_walk *walk; /* before.h; NULL unless change 001 can be off */
	struct memcg_totals *totals;
	struct memcg_tree *tree;
	char path[96];
} __attribute__((aligned(64)));

/* One thread that charges: the kernel's current. */
struct task {
	int64_t *events; /* [memcg][event], this thread's part that is not in the totals yet */
	struct trace *trace; /* records when there is one */
	struct memcg_tree *tree;
	/* gives back up to so many unused pages that sockets of this thread hold below a memcg */
	uint64_t (*shrink)(struct task *task, struct memcg *below, uint64_t pages);
	uint64_t interrupts; /* changed by the signal handler */
	unsigned int id;
	struct acct acct;
	struct task *next;
};

extern __thread struct task *current_task;

struct memcg_tree_attr {
	unsigned int depth;
	unsigned int memcgs;	/* at the lowest level */
	unsigned int batch;	/* pages that a CPU's stock buys at once */
	int64_t max;		/* pages, each memcg of the lowest level */
	int64_t high;
	int64_t root_max;
	unsigned int changes;
};

struct memcg_tree {
	struct pcbatch_domain domain;
	struct memcg *nodes;
	struct memcg **leaves;
	struct memcg_totals *totals;
	struct task *tasks;
	unsigned int nr_nodes;
	unsigned int nr_leaves;
	unsigned int changes;
};

/* 0 or a negative errno; *out has a tree of attr->memcgs leaves */
int memcg_tree_create(const struct memcg_tree_attr *attr, struct memcg_tree **out);
/* offlines and destroys every level; returns how many would not go */
int memcg_tree_destroy(struct memcg_tree *tree);

int memcg_task_init(struct memcg_tree *tree, struct task *task);
/* folds what the thread still holds into the totals; the thread has ended */
void memcg_task_exit(struct task *task);

bool memcg_is_below(const struct memcg *memcg, const struct memcg *root);

/* Marks each level that leaves no room for pages more, with all that is below it. */
void memcg_mark_pressure(struct memcg *memcg, int64_t pages);
/* Marks a memcg that is above its memory.high; called from the timer, off the hot path. */
void memcg_check_high(struct memcg *memcg);
bool memcg_under_pressure_slow(struct memcg *memcg);

static ALWAYS_INLINE bool memcg_under_pressure(struct memcg *memcg)
{
	return unlikely(READ_ONCE(memcg->pressure_until)) && memcg_under_pressure_slow(memcg);
}

/* memory of the socket object itself, and of the user's buffers: never refused, as at accept */
int memcg_charge_object(struct memcg *memcg);
void memcg_uncharge_object(struct memcg *memcg);
int memcg_charge_anon(struct memcg *memcg, uint32_t pages);
void memcg_uncharge_anon(struct memcg *memcg, uint32_t pages);

/* exact but for what threads are doing at this moment */
int64_t memcg_event_read(struct memcg *memcg, enum memcg_event event);
int64_t memcg_stat_read(struct memcg *memcg, enum memcg_item item);
uint64_t memcg_throttled_read(struct memcg *memcg);

/* memcg_file.c: each writes what reading the file in a cgroup v2 directory gives */
void memcg_show_current(FILE *out, struct memcg *memcg);
void memcg_show_peak(FILE *out, struct memcg *memcg);
void memcg_show_max(FILE *out, struct memcg *memcg);
void memcg_show_high(FILE *out, struct memcg *memcg);
void memcg_show_stat(FILE *out, struct memcg *memcg);
void memcg_show_events(FILE *out, struct memcg *memcg);
void memcg_show_events_local(FILE *out, struct memcg *memcg);
/* each under its name: all of the above, or stat and events only */
void memcg_show_files(FILE *out, struct memcg *memcg, bool all);
/* one line a memcg, parents first, no more than so many */
void memcg_show_tree(FILE *out, struct memcg_tree *tree, unsigned int lines);

#endif
