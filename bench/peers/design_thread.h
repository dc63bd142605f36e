/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * design_thread.h - counters split by thread, as servers do it. Written here after the
 * design, not copied. Where cells end with their thread, a list under a lock knows
 * them: a reader walks it, and an ending thread leaves its counts behind.
 */
#ifndef PEERS_DESIGN_THREAD_H
#define PEERS_DESIGN_THREAD_H

#include "peers.h"

/* What one thread has of each counter. Written by that thread, read by whoever sums. */
struct thread_cells {
	int64_t v[PEER_COUNTERS];
	uint32_t updates[PEER_COUNTERS];
	pthread_mutex_t lock;
	struct thread_cells *next;
	struct thread_list *list;
} __attribute__((aligned(64)));

struct thread_list {
	pthread_mutex_t lock;
	pthread_key_t key; /* only to hear of a thread's end */
	struct thread_cells *first;
	int64_t ended[PEER_COUNTERS];
};

static void thread_cells_leave(void *arg)
{
	struct thread_cells *cells = (struct thread_cells *)arg, **p = &cells->list->first;
	int k;

	pthread_mutex_lock(&cells->list->lock);
	for (k = 0; k < PEER_COUNTERS; k++)
		cells->list->ended[k] += cells->v[k];
	while (*p != cells)
		p = &(*p)->next;
	*p = cells->next;
	pthread_mutex_unlock(&cells->list->lock);
	pthread_mutex_destroy(&cells->lock);
	free(cells);
}

static __attribute__((noinline)) struct thread_cells *thread_cells_join(struct thread_list *list)
{
	struct thread_cells *cells = (struct thread_cells *)peers_zalloc(sizeof(*cells));

	pthread_mutex_init(&cells->lock, NULL);
	cells->list = list;
	pthread_setspecific(list->key, cells);
	pthread_mutex_lock(&list->lock);
	cells->next = list->first;
	list->first = cells;
	pthread_mutex_unlock(&list->lock);
	return cells;
}

static int64_t thread_list_sum(struct thread_list *list)
{
	struct thread_cells *cells;
	int64_t sum = 0;
	int k;

	pthread_mutex_lock(&list->lock);
	for (k = 0; k < PEER_COUNTERS; k++)
		sum += list->ended[k];
	for (cells = list->first; cells != NULL; cells = cells->next)
		for (k = 0; k < PEER_COUNTERS; k++)
			sum += __atomic_load_n(&cells->v[k], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&list->lock);
	return sum;
}

static void thread_list_set_up(struct thread_list *list)
{
	pthread_mutex_init(&list->lock, NULL);
	if (pthread_key_create(&list->key, thread_cells_leave) != 0)
		abort();
}

/* An add that only this thread makes, in a word that others may read. */
static inline int64_t thread_own_add(int64_t *v, int64_t delta)
{
	int64_t sum = __atomic_load_n(v, __ATOMIC_RELAXED) + delta;

	__atomic_store_n(v, sum, __ATOMIC_RELAXED);
	return sum;
}

/* ---- a cell of the thread's own, plain adds (WiredTiger class, without its lost updates) ---- */

static struct thread_list tls_cell_list;
static __thread struct thread_cells *tls_cell_mine;

static inline void tls_cell_add(unsigned int k)
{
	if (__builtin_expect(tls_cell_mine == NULL, 0))
		tls_cell_mine = thread_cells_join(&tls_cell_list);
	(void)thread_own_add(&tls_cell_mine->v[k], 1);
}

static int64_t tls_cell_total(void)
{
	return thread_list_sum(&tls_cell_list);
}

PEER_COUNTER(tls_cell, "per-thread cell, lock at exit, WiredTiger (design)")

/* ---- the same under the thread's own lock (memcached's statistics) ---- */

static struct thread_list tls_mutex_list;
static __thread struct thread_cells *tls_mutex_mine;

static inline void tls_mutex_add(unsigned int k)
{
	if (__builtin_expect(tls_mutex_mine == NULL, 0))
		tls_mutex_mine = thread_cells_join(&tls_mutex_list);
	pthread_mutex_lock(&tls_mutex_mine->lock);
	(void)thread_own_add(&tls_mutex_mine->v[k], 1);
	pthread_mutex_unlock(&tls_mutex_mine->lock);
}

static int64_t tls_mutex_total(void)
{
	return thread_list_sum(&tls_mutex_list);
}

PEER_COUNTER(tls_mutex, "per-thread cell under its own mutex, memcached (design)")

/* ---- thread cache: to the shared value after 1000 updates (folly ThreadCachedInt) ---- */

#define TLS_CACHE_UPDATES 1000

static struct thread_list tls_cache_list;
static __thread struct thread_cells *tls_cache_mine;
static struct peer_line tls_cache_shared[PEER_COUNTERS];

static inline void tls_cache_add(unsigned int k)
{
	struct thread_cells *cells = tls_cache_mine;

	if (__builtin_expect(cells == NULL, 0))
		cells = tls_cache_mine = thread_cells_join(&tls_cache_list);
	(void)thread_own_add(&cells->v[k], 1);
	if (__builtin_expect(++cells->updates[k] > TLS_CACHE_UPDATES, 0)) {
		(void)__atomic_fetch_add(&tls_cache_shared[k].v, cells->v[k], __ATOMIC_RELEASE);
		__atomic_store_n(&cells->v[k], 0, __ATOMIC_RELEASE);
		cells->updates[k] = 0;
	}
}

static int64_t tls_cache_total(void)
{
	return thread_list_sum(&tls_cache_list) + peer_line_sum(tls_cache_shared);
}

PEER_COUNTER(tls_cache, "thread cache, batch 1000, folly (design)")

/* ---- striped by thread: 16 slots, locked adds (Redis zmalloc) ---- */

#define STRIPES 16

static struct thread_cells stripe[STRIPES], owned[STRIPES];
static unsigned int stripe_next;
static __thread unsigned int stripe_mine; /* + 1 */

static inline unsigned int stripe_index(void)
{
	if (__builtin_expect(stripe_mine == 0, 0))
		stripe_mine = __atomic_add_fetch(&stripe_next, 1, __ATOMIC_RELAXED);
	return stripe_mine - 1;
}

static int64_t stripe_sum(const struct thread_cells *cells)
{
	int64_t sum = 0;
	int i, k;

	for (i = 0; i < STRIPES; i++)
		for (k = 0; k < PEER_COUNTERS; k++)
			sum += __atomic_load_n(&cells[i].v[k], __ATOMIC_RELAXED);
	return sum;
}

static inline void striped_thread_add(unsigned int k)
{
	(void)__atomic_fetch_add(&stripe[stripe_index() % STRIPES].v[k], 1, __ATOMIC_RELAXED);
}

static int64_t striped_thread_total(void)
{
	return stripe_sum(stripe);
}

PEER_COUNTER(striped_thread, "striped by thread, locked add, Redis zmalloc (design)")

/* ---- the first 16 threads own a slot, the others share an atomic (Valkey zmalloc) ---- */

static struct peer_line owned_rest[PEER_COUNTERS];

static inline void owned_slot_add(unsigned int k)
{
	unsigned int i = stripe_index();

	if (__builtin_expect(i < STRIPES, 1))
		(void)thread_own_add(&owned[i].v[k], 1);
	else
		(void)__atomic_fetch_add(&owned_rest[k].v, 1, __ATOMIC_RELAXED);
}

static int64_t owned_slot_total(void)
{
	return stripe_sum(owned) + peer_line_sum(owned_rest);
}

PEER_COUNTER(owned_slot, "own slot, first 16 threads, Valkey zmalloc (design)")

static void design_thread_rows(void)
{
	thread_list_set_up(&tls_cell_list);
	thread_list_set_up(&tls_mutex_list);
	thread_list_set_up(&tls_cache_list);
	peers_add(&striped_thread_peer);
	peers_add(&owned_slot_peer);
	peers_add(&tls_mutex_peer);
	peers_add(&tls_cell_peer);
	peers_add(&tls_cache_peer);
}

#endif /* PEERS_DESIGN_THREAD_H */
