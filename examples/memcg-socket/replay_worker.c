/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>

#include "memcg_sk.h"
#include "replay_worker.h"

/* records that a thread handles in one pass, at least; the slowest, events with signals blocked, are fewest */
#define PAGES_TARGET 300000u
#define SOCKETS_TARGET 60000u
#define EVENTS_TARGET 40000u

/* ---- the loops --------------------------------------------------------------------------------- */

/* changes is a constant in every copy of this, acct too */
static ALWAYS_INLINE void loop_pages(struct replay_sock *socks, const struct page_op *op, const struct page_op *end,
				     unsigned int changes, struct acct *acct)
{
	for (; op < end; op++) {
		struct memcg *memcg = socks[op->socket].sk.sk_memcg;
		uint64_t start = 0;

		if (op->charge) {
			if (acct)
				start = acct_enter(acct, ACCT_CHARGE);
			memcg_sk_charge(memcg, op->pages, changes, acct);
			if (acct)
				acct_exit(acct, ACCT_CHARGE, start);
		} else {
			if (acct)
				start = acct_enter(acct, ACCT_UNCHARGE);
			memcg_sk_uncharge(memcg, op->pages, changes, acct);
			if (acct)
				acct_exit(acct, ACCT_UNCHARGE, start);
		}
	}
}

#define PAGES_LOOP(bits)                                                                                    \
	static NOINLINE void loop_pages_##bits(struct replay_sock *socks, const struct page_op *op,         \
					       const struct page_op *end)                                   \
	{                                                                                                   \
		loop_pages(socks, op, end, bits, NULL);                                                     \
	}

PAGES_LOOP(0)
PAGES_LOOP(1)
PAGES_LOOP(2)
PAGES_LOOP(3)
PAGES_LOOP(4)
PAGES_LOOP(5)
PAGES_LOOP(6)
PAGES_LOOP(7)

/* 000, 001 and 002 are the lowest bits, and all that matters here */
static void (*const pages_loops[])(struct replay_sock *, const struct page_op *, const struct page_op *) = {
	loop_pages_0, loop_pages_1, loop_pages_2, loop_pages_3, loop_pages_4, loop_pages_5, loop_pages_6, loop_pages_7,
};

static NOINLINE void loop_empty(struct replay_sock *socks, const struct page_op *op, const struct page_op *end)
{
	for (; op < end; op++) {
		struct memcg *memcg = socks[op->socket].sk.sk_memcg;
		uint32_t pages = op->pages;

		/* the same loads and the same branch, and nothing behind them */
		if (op->charge)
			__asm__ __volatile__("" : : "r"(memcg), "r"(pages));
		else
			__asm__ __volatile__("" : : "r"(pages), "r"(memcg));
	}
}

static NOINLINE void loop_stats(struct replay_sock *socks, const struct page_op *op, const struct page_op *end,
				unsigned int changes)
{
	for (; op < end; op++) {
		struct memcg *memcg = socks[op->socket].sk.sk_memcg;
		int64_t delta = op->charge ? op->pages : -(int64_t)op->pages;

		if (changes & CHANGE_001)
			memcg_stat_update(memcg, delta, CHANGE_001, NULL);
		else
			memcg_stat_update(memcg, delta, CHANGE_NONE, NULL);
	}
}

static NOINLINE void loop_sockets(struct replay_sock *socks, const struct trace_record *r,
				  const struct trace_record *end)
{
	for (; r < end; r++) {
		struct sock *sk = &socks[r->socket].sk;

		switch (r->kind) {
		case TRACE_RMEM_CHARGE:
			sock_rmem_charge(sk, r->size - SKB_HEAD_TRUESIZE);
			break;
		case TRACE_RMEM_UNCHARGE:
			sock_rmem_free(sk, r->size);
			break;
		case TRACE_WMEM_CHARGE:
			sock_wmem_charge(sk, r->size - SKB_HEAD_TRUESIZE);
			break;
		case TRACE_WMEM_UNCHARGE:
			sock_wmem_free(sk, r->size);
			break;
		default:
			sk_mem_reclaim_all(sk);
			break;
		}
	}
}

static NOINLINE void loop_events(struct replay_sock *socks, const struct trace_record *r,
				 const struct trace_record *end, unsigned int changes)
{
	for (; r < end; r++) {
		struct sock *sk = &socks[r->socket].sk;

		if (r->kind == TRACE_RMEM_CHARGE)
			count_memcg_events(sk->sk_task, sk->sk_memcg, MEMCG_SOCK_RX, 1, changes);
		else if (r->kind == TRACE_WMEM_CHARGE)
			count_memcg_events(sk->sk_task, sk->sk_memcg, MEMCG_SOCK_TX, 1, changes);
	}
}

static void run_loop(struct worker *w, struct replay_config *c, enum replay_pass pass, bool sampled)
{
	const struct page_op *op = w->pages, *op_end = w->pages + w->nr_pages;
	const struct trace_record *r = w->records, *r_end = w->records + w->nr_records;

	if (sampled)
		loop_pages(c->socks, op, op_end, c->changes, &c->tasks[w->id].acct);
	else if (pass == PASS_LOOP)
		loop_empty(c->socks, op, op_end);
	else if (pass == PASS_PAGES)
		pages_loops[c->changes & 7](c->socks, op, op_end);
	else if (pass == PASS_STATS)
		loop_stats(c->socks, op, op_end, c->changes);
	else if (pass == PASS_SOCKETS)
		loop_sockets(c->socks, r, r_end);
	else
		loop_events(c->socks, r, r_end, c->changes);
}

/* ---- workers ----------------------------------------------------------------------------------- */

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct replay_work *work = w->work;

	if (work->replay->file->header.pinned)
		pin_thread(w->id);
	for (;;) {
		struct replay_config *config;
		uint64_t start;

		pthread_barrier_wait(&work->barrier);
		config = work->config;
		if (!config)
			return NULL;
		current_task = &config->tasks[w->id];
		/* the thread's own time: another program on this CPU is not part of the cost */
		start = now_ns_clock(CLOCK_THREAD_CPUTIME_ID);
		for (unsigned int i = 0; i < w->reps[work->pass]; i++)
			run_loop(w, config, work->pass, work->sampled);
		w->ns = now_ns_clock(CLOCK_THREAD_CPUTIME_ID) - start;
		pthread_barrier_wait(&work->barrier);
	}
}

/* ns for each unit: a page record, an event or a request */
double replay_pass(struct replay_work *work, struct replay_config *config, enum replay_pass pass, bool sampled)
{
	uint64_t ns = 0, units = 0;

	work->config = config;
	work->pass = pass;
	work->sampled = sampled;
	pthread_barrier_wait(&work->barrier);
	pthread_barrier_wait(&work->barrier);
	for (unsigned int i = 0; i < work->nr_workers; i++) {
		struct worker *w = &work->workers[i];

		ns += w->ns;
		if (pass == PASS_EVENTS)
			config->events += w->units * w->reps[pass];
		units += (pass == PASS_SOCKETS ? w->nr_records : pass == PASS_EVENTS ? w->units : w->nr_pages) *
			 w->reps[pass];
	}
	return ratio((double)ns, (double)units);
}

static unsigned int reps_for(size_t records, size_t target)
{
	return records ? (unsigned int)((target + records - 1) / records) : 1;
}

int worker_init(struct worker *w, const struct trace_file *file)
{
	const struct trace_record *r = file->records, *end = r + file->header.records;

	while (r < end && r->thread < w->id)
		r++;
	w->records = r;
	while (r < end && r->thread == w->id)
		r++;
	w->nr_records = (size_t)(r - w->records);
	w->pages = malloc((w->nr_records + 1) * sizeof(*w->pages));
	if (!w->pages)
		return -ENOMEM;
	for (r = w->records; r < w->records + w->nr_records; r++) {
		bool charge = r->kind == TRACE_RMEM_CHARGE || r->kind == TRACE_WMEM_CHARGE;

		w->units += charge;
		if (r->pages)
			w->pages[w->nr_pages++] = (struct page_op){ r->socket, r->pages, charge };
	}
	w->reps[PASS_LOOP] = w->reps[PASS_PAGES] = w->reps[PASS_STATS] = reps_for(w->nr_pages, PAGES_TARGET);
	w->reps[PASS_SOCKETS] = reps_for(w->nr_records, SOCKETS_TARGET);
	w->reps[PASS_EVENTS] = reps_for(w->units, EVENTS_TARGET);
	return 0;
}

int replay_work_start(struct replay_work *work, struct replay *replay)
{
	unsigned int threads = replay->file->header.threads;
	int ret = 0;

	work->replay = replay;
	work->workers = zalloc_line(threads * sizeof(*work->workers));
	if (!work->workers || pthread_barrier_init(&work->barrier, NULL, threads + 1) != 0)
		return -ENOMEM;
	for (unsigned int i = 0; i < threads && !ret; i++) {
		work->workers[i].id = i;
		work->workers[i].work = work;
		ret = worker_init(&work->workers[i], replay->file);
	}
	/* a thread that could not be started would leave the others at the barrier: the program ends */
	for (unsigned int i = 0; i < threads && !ret; i++, work->nr_workers++)
		ret = -pthread_create(&work->workers[i].thread, NULL, worker_main, &work->workers[i]);
	return ret;
}

void replay_work_stop(struct replay_work *work)
{
	work->config = NULL;
	pthread_barrier_wait(&work->barrier);
	for (unsigned int i = 0; i < work->nr_workers; i++) {
		pthread_join(work->workers[i].thread, NULL);
		free(work->workers[i].pages);
	}
	pthread_barrier_destroy(&work->barrier);
	free(work->workers);
}
