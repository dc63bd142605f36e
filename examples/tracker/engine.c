/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The operators of engine.h. Whoever meets a refusal stops the query; each operator then frees what it holds. */
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 512
#define QUEUE_BLOCKS 8

struct row {
	uint64_t key; /* 0: an empty place of the hash table */
	uint64_t value;
};

struct block {
	uint64_t rows;
	struct row row[BLOCK_ROWS];
};

/* Between two operators; closed by the writer at its end and by anybody who stops the query. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct block *block[QUEUE_BLOCKS];
	unsigned int first, count;
	bool closed;
};

struct run {
	struct query *q;
	struct tracker *query, *scan, *aggregate, *sort;
	struct queue scanned, grouped;
	_Atomic(struct tracker *) refused;
	atomic_ullong allocations, freed_elsewhere;
	atomic_bool stopped;
	uint64_t expected; /* sum of all values, written by the scan */
	uint64_t result_rows, result_sum;
	bool in_order;
};

/* -------------------------------------------------------------------- queues */

static void queue_close(struct queue *queue)
{
	(void)pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	(void)pthread_cond_broadcast(&queue->moved);
	(void)pthread_mutex_unlock(&queue->lock);
}

/* Takes the block over; false when the query was stopped, and then it is still the caller's. */
static bool queue_push(struct run *run, struct queue *queue, struct block *block)
{
	bool taken;

	(void)pthread_mutex_lock(&queue->lock);
	while (queue->count == QUEUE_BLOCKS && !queue->closed && !atomic_load(&run->stopped))
		(void)pthread_cond_wait(&queue->moved, &queue->lock);
	taken = queue->count < QUEUE_BLOCKS && !queue->closed && !atomic_load(&run->stopped);
	if (taken)
		queue->block[(queue->first + queue->count++) % QUEUE_BLOCKS] = block;
	(void)pthread_cond_broadcast(&queue->moved);
	(void)pthread_mutex_unlock(&queue->lock);
	return taken;
}

/* NULL at the end. */
static struct block *queue_pop(struct queue *queue)
{
	struct block *block = NULL;

	(void)pthread_mutex_lock(&queue->lock);
	while (queue->count == 0 && !queue->closed)
		(void)pthread_cond_wait(&queue->moved, &queue->lock);
	if (queue->count != 0) {
		block = queue->block[queue->first];
		queue->first = (queue->first + 1) % QUEUE_BLOCKS;
		queue->count--;
	}
	(void)pthread_cond_broadcast(&queue->moved);
	(void)pthread_mutex_unlock(&queue->lock);
	return block;
}

/* ----------------------------------------------------------------- operators */

/* The first refusal ends the query and names the level. */
static void stop(struct run *run, struct tracker *refused)
{
	struct tracker *none = NULL;

	(void)atomic_compare_exchange_strong(&run->refused, &none, refused);
	atomic_store(&run->stopped, true);
	queue_close(&run->scanned);
	queue_close(&run->grouped);
}

static void *take(struct run *run, struct tracker *t, void *old, size_t size)
{
	struct tracker *refused = NULL;
	void *ptr = tracker_realloc(t, old, size, &refused);

	(void)atomic_fetch_add_explicit(&run->allocations, 1, memory_order_relaxed);
	if (ptr == NULL)
		stop(run, refused == NULL ? t : refused);
	return ptr;
}

static void *scan(void *arg)
{
	struct run *run = (struct run *)arg;
	uint64_t left = run->q->rows, seed = run->q->seed;
	struct block *block;
	uint64_t i;

	while (left > 0 && (block = (struct block *)take(run, run->scan, NULL, sizeof(*block))) != NULL) {
		block->rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
		left -= block->rows;
		for (i = 0; i < block->rows; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			block->row[i].key = 1 + (seed >> 33) % run->q->keys;
			block->row[i].value = seed >> 44;
			run->expected += block->row[i].value;
		}
		if (!queue_push(run, &run->scanned, block)) {
			tracker_free(block);
			break;
		}
	}
	queue_close(&run->scanned);
	return NULL;
}

struct table {
	struct row *row;
	uint64_t size, used; /* size: a power of two */
};

static void table_add(struct table *table, uint64_t key, uint64_t value)
{
	uint64_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	for (;; i++) {
		struct row *row = &table->row[i & (table->size - 1)];

		if (row->key != 0 && row->key != key)
			continue;
		table->used += row->key == 0;
		row->key = key;
		row->value += value;
		return;
	}
}

/* Twice the size; false when that was refused, and the table is as it was. */
static bool table_grow(struct run *run, struct table *table)
{
	struct table bigger = { NULL, table->size == 0 ? 1024 : 2 * table->size, 0 };
	uint64_t i;

	bigger.row = (struct row *)take(run, run->aggregate, NULL, bigger.size * sizeof(struct row));
	if (bigger.row == NULL)
		return false;
	memset(bigger.row, 0, bigger.size * sizeof(struct row));
	for (i = 0; i < table->size; i++)
		if (table->row[i].key != 0)
			table_add(&bigger, table->row[i].key, table->row[i].value);
	tracker_free(table->row);
	*table = bigger;
	return true;
}

static bool aggregate_block(struct run *run, struct table *table, const struct block *block)
{
	uint64_t i;

	for (i = 0; i < block->rows; i++) {
		if (2 * table->used >= table->size && !table_grow(run, table))
			return false;
		table_add(table, block->row[i].key, block->row[i].value);
	}
	return true;
}

/* Hands the groups on, in blocks of the aggregation's own. */
static void aggregate_emit(struct run *run, const struct table *table)
{
	struct block *block = NULL;
	uint64_t i;

	for (i = 0; i < table->size; i++) {
		if (table->row[i].key == 0)
			continue;
		if (block == NULL) {
			block = (struct block *)take(run, run->aggregate, NULL, sizeof(*block));
			if (block == NULL)
				return;
			block->rows = 0;
		}
		block->row[block->rows++] = table->row[i];
		if (block->rows < BLOCK_ROWS)
			continue;
		if (!queue_push(run, &run->grouped, block)) {
			tracker_free(block);
			return;
		}
		block = NULL;
	}
	if (block != NULL && !queue_push(run, &run->grouped, block))
		tracker_free(block);
}

static void *aggregate(void *arg)
{
	struct run *run = (struct run *)arg;
	struct table table = { NULL, 0, 0 };
	struct block *block;
	bool fits = true;

	while ((block = queue_pop(&run->scanned)) != NULL) {
		fits = fits && aggregate_block(run, &table, block);
		/* The scan's block: charged by another thread, and freed here. */
		tracker_free(block);
		(void)atomic_fetch_add_explicit(&run->freed_elsewhere, 1, memory_order_relaxed);
	}
	if (fits && !atomic_load(&run->stopped))
		aggregate_emit(run, &table);
	tracker_free(table.row);
	queue_close(&run->grouped);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = ((const struct row *)a)->value, y = ((const struct row *)b)->value;

	return (x > y) - (x < y);
}

static void sort_finish(struct run *run, struct row *rows, uint64_t n)
{
	uint64_t i;

	if (n != 0)
		qsort(rows, n, sizeof(*rows), by_value);
	run->in_order = true;
	for (i = 0; i < n; i++) {
		run->result_sum += rows[i].value;
		if (i > 0 && rows[i - 1].value > rows[i].value)
			run->in_order = false;
	}
	run->result_rows = n;
}

static void *sort(void *arg)
{
	struct run *run = (struct run *)arg;
	uint64_t n = 0, room = 0;
	struct row *rows = NULL, *more;
	struct block *block;
	bool fits = true;

	while ((block = queue_pop(&run->grouped)) != NULL) {
		if (fits && n + block->rows > room) {
			room = 2 * room + BLOCK_ROWS;
			more = (struct row *)take(run, run->sort, rows, room * sizeof(*rows));
			fits = more != NULL;
			rows = fits ? more : rows;
		}
		if (fits) {
			memcpy(&rows[n], block->row, block->rows * sizeof(*rows));
			n += block->rows;
		}
		tracker_free(block);
		(void)atomic_fetch_add_explicit(&run->freed_elsewhere, 1, memory_order_relaxed);
	}
	if (fits && !atomic_load(&run->stopped))
		sort_finish(run, rows, n);
	tracker_free(rows);
	return NULL;
}

/* --------------------------------------------------------------------- query */

static uint64_t drop(struct tracker *t)
{
	uint64_t left = t == NULL ? 0 : (uint64_t)tracker_used_exact(t);

	if (t != NULL && left == 0)
		(void)tracker_destroy(t);
	return left;
}

static bool run_threads(struct run *run)
{
	void *(*const operator_fn[3])(void *) = { scan, aggregate, sort };
	pthread_t thread[3];
	int i, started;

	for (started = 0; started < 3; started++)
		if (pthread_create(&thread[started], NULL, operator_fn[started], run) != 0)
			break;
	if (started < 3)
		stop(run, run->query);
	for (i = 0; i < started; i++)
		(void)pthread_join(thread[i], NULL);
	/* Blocks that a thread which never started would have freed. */
	while (started < 3) {
		struct block *block = queue_pop(started < 2 ? &run->scanned : &run->grouped);

		if (block == NULL)
			break;
		tracker_free(block);
	}
	return started == 3;
}

static void report(struct run *run)
{
	struct query *q = run->q;
	struct tracker *refused = atomic_load(&run->refused);

	q->peak = tracker_peak(run->query);
	q->allocations = atomic_load(&run->allocations);
	q->freed_elsewhere = atomic_load(&run->freed_elsewhere);
	(void)snprintf(q->refused_by, sizeof(q->refused_by), "%s", refused == NULL ? "" : tracker_name(refused));
	q->right = refused == NULL && run->in_order && run->result_sum == run->expected && run->result_rows > 0;
}

int query_run(struct query *q)
{
	struct run run;
	bool ready;

	memset(&run, 0, sizeof(run));
	run.q = q;
	run.scanned = (struct queue){ .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
	run.grouped = run.scanned;
	run.query = tracker_create(q->user, "query", q->limit);
	run.scan = run.query == NULL ? NULL : tracker_create(run.query, "scan", TRACKER_NO_LIMIT);
	run.aggregate = run.query == NULL ? NULL : tracker_create(run.query, "aggregate", TRACKER_NO_LIMIT);
	run.sort = run.query == NULL ? NULL : tracker_create(run.query, "sort", TRACKER_NO_LIMIT);
	ready = run.scan != NULL && run.aggregate != NULL && run.sort != NULL && run_threads(&run);
	if (ready)
		report(&run);
	q->leaked = drop(run.scan) + drop(run.aggregate) + drop(run.sort);
	q->leaked += drop(run.query);
	return ready ? 0 : -1;
}
