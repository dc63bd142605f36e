/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a replay and the loops that they run; replay.c says with what and how often. */
#ifndef MEMCG_SOCKET_REPLAY_WORKER_H
#define MEMCG_SOCKET_REPLAY_WORKER_H

#include <pthread.h>

#include "memcg.h"
#include "replay.h"
#include "sock.h"

/* A line or two of its own each, as if every socket had been allocated. */
struct replay_sock {
	struct sock sk;
} __attribute__((aligned(64)));

struct page_op {
	uint32_t socket;
	uint16_t pages;
	uint16_t charge;
};

struct worker {
	pthread_t thread;
	unsigned int id;
	struct replay_work *work;
	const struct trace_record *records;
	size_t nr_records;
	struct page_op *pages;
	size_t nr_pages;
	unsigned int reps[PASSES];
	uint64_t ns, units; /* of the last pass */
};

struct replay_work {
	struct replay *replay;
	struct worker *workers;
	unsigned int nr_workers;
	pthread_barrier_t barrier;
	struct replay_config *config; /* NULL: end */
	enum replay_pass pass;
	bool sampled;
};

/* the part of the stream that belongs to thread w->id */
int worker_init(struct worker *w, const struct trace_file *file);
int replay_work_start(struct replay_work *work, struct replay *replay);
void replay_work_stop(struct replay_work *work);

/* Runs a pass on all threads; ns for each unit: a record of pages, a record of the stream, or an event. */
double replay_pass(struct replay_work *work, struct replay_config *config, enum replay_pass pass, bool sampled);

#endif
