/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* design_limit.h - limits as servers keep them. Written here after the design, not copied. */
#ifndef PEERS_DESIGN_LIMIT_H
#define PEERS_DESIGN_LIMIT_H

#include <semaphore.h>

#include "peers.h"

/* ---- a POSIX semaphore that holds what is left (not a design: the C library's) ---- */

static sem_t posix_sem;

static inline int posix_sem_charge(void)
{
	return sem_trywait(&posix_sem) == 0;
}

static inline void posix_sem_uncharge(void)
{
	(void)sem_post(&posix_sem);
}

static int64_t posix_sem_total(void)
{
	int left = 0;

	(void)sem_getvalue(&posix_sem, &left);
	return PEER_LIMIT - left;
}

PEER_LIMITER(posix_sem, "POSIX semaphore, sem_trywait + sem_post", 1)

/* ---- compare-and-swap only if it still fits: exact, and never above the limit ---- */

static struct peer_line cas_usage;

static inline int cas_limit_charge(void)
{
	int64_t v = __atomic_load_n(&cas_usage.v, __ATOMIC_RELAXED);

	do {
		if (v + 1 > PEER_LIMIT)
			return 0;
	} while (!__atomic_compare_exchange_n(&cas_usage.v, &v, v + 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return 1;
}

static inline void cas_limit_uncharge(void)
{
	(void)__atomic_fetch_sub(&cas_usage.v, 1, __ATOMIC_RELEASE);
}

static int64_t cas_limit_total(void)
{
	return __atomic_load_n(&cas_usage.v, __ATOMIC_RELAXED);
}

PEER_LIMITER(cas_limit, "compare-and-swap loop (design)", 1)

/* ---- a tracker at every level: add, look at the limit, take back (page_counter, Impala, ClickHouse) ---- */

struct tracker {
	struct peer_line usage;
	int64_t max;
	struct tracker *parent;
} __attribute__((aligned(64)));

static struct tracker tracker_single = { { 0, "" }, PEER_LIMIT, NULL };
static struct tracker tracker_chain[3] = { { { 0, "" }, PEER_LIMIT, NULL },
					   { { 0, "" }, PEER_LIMIT, &tracker_chain[0] },
					   { { 0, "" }, PEER_LIMIT, &tracker_chain[1] } };

static inline int tracker_charge(struct tracker *leaf)
{
	struct tracker *t, *undo;

	for (t = leaf; t != NULL; t = t->parent)
		if (__atomic_add_fetch(&t->usage.v, 1, __ATOMIC_ACQUIRE) > t->max)
			break;
	if (t == NULL)
		return 1;
	(void)__atomic_fetch_sub(&t->usage.v, 1, __ATOMIC_RELAXED);
	for (undo = leaf; undo != t; undo = undo->parent)
		(void)__atomic_fetch_sub(&undo->usage.v, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline void tracker_uncharge(struct tracker *t)
{
	for (; t != NULL; t = t->parent)
		(void)__atomic_fetch_sub(&t->usage.v, 1, __ATOMIC_RELEASE);
}

#define TRACKER(x, leaf, title, depth)                                          \
	static inline int x##_charge(void)                                      \
	{                                                                       \
		return tracker_charge(leaf);                                    \
	}                                                                       \
	static inline void x##_uncharge(void)                                   \
	{                                                                       \
		tracker_uncharge(leaf);                                         \
	}                                                                       \
	static int64_t x##_total(void)                                          \
	{                                                                       \
		return __atomic_load_n(&(leaf)->usage.v, __ATOMIC_RELAXED);     \
	}                                                                       \
	PEER_LIMITER(x, title, depth)

TRACKER(tracker1, &tracker_single, "page-counter atomics (design)", 1)
TRACKER(tracker3, &tracker_chain[2], "page-counter atomics, 3 levels, Impala (design)", 3)

/*
 * ---- thread cache with a limit (perfbook's count_lim_app, McKenney) ----
 * A thread may go from 0 to max on its own; the sum of all max is reserved.
 */

struct lim_thread {
	int64_t count, max;
	struct lim_thread *next;
};

static __thread struct lim_thread lim_mine __attribute__((aligned(64)));
static pthread_mutex_t lim_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t lim_key;
static struct lim_thread *lim_first;
static int64_t lim_count, lim_reserved; /* outside of the threads; what the threads may reach */

/* Takes back what this thread holds. */
static void lim_globalize(struct lim_thread *t)
{
	lim_count += t->count;
	lim_reserved -= t->max;
	t->count = t->max = 0;
}

/* Lets this thread go some way up and down again on its own. */
static void lim_balance(struct lim_thread *t)
{
	int64_t room = PEER_LIMIT - lim_count - lim_reserved;

	t->max = room < PEER_BATCH ? room : PEER_BATCH;
	lim_reserved += t->max;
	t->count = t->max / 2 < lim_count ? t->max / 2 : lim_count;
	lim_count -= t->count;
}

static void lim_leave(void *arg)
{
	struct lim_thread **p = &lim_first;

	pthread_mutex_lock(&lim_lock);
	lim_globalize((struct lim_thread *)arg);
	while (*p != arg)
		p = &(*p)->next;
	*p = (*p)->next;
	pthread_mutex_unlock(&lim_lock);
}

static __attribute__((noinline)) int lim_slow(int64_t delta)
{
	int fits;

	pthread_mutex_lock(&lim_lock);
	if (pthread_getspecific(lim_key) == NULL) {
		pthread_setspecific(lim_key, &lim_mine);
		lim_mine.next = lim_first;
		lim_first = &lim_mine;
	}
	lim_globalize(&lim_mine);
	fits = lim_count + lim_reserved + delta <= PEER_LIMIT;
	if (fits) {
		lim_count += delta;
		lim_balance(&lim_mine);
	}
	pthread_mutex_unlock(&lim_lock);
	return fits;
}

static inline int tls_limit_charge(void)
{
	if (__builtin_expect(lim_mine.count < lim_mine.max, 1)) {
		__atomic_store_n(&lim_mine.count, lim_mine.count + 1, __ATOMIC_RELAXED);
		return 1;
	}
	return lim_slow(1);
}

static inline void tls_limit_uncharge(void)
{
	if (__builtin_expect(lim_mine.count > 0, 1))
		__atomic_store_n(&lim_mine.count, lim_mine.count - 1, __ATOMIC_RELAXED);
	else
		(void)lim_slow(-1);
}

static int64_t tls_limit_total(void)
{
	struct lim_thread *t;
	int64_t sum;

	pthread_mutex_lock(&lim_lock);
	sum = lim_count;
	for (t = lim_first; t != NULL; t = t->next)
		sum += __atomic_load_n(&t->count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lim_lock);
	return sum;
}

PEER_LIMITER(tls_limit, "thread cache, batch 64, perfbook count_lim (design)", 1)

static void design_limit_rows(void)
{
	if (sem_init(&posix_sem, 0, PEER_LIMIT) != 0 || pthread_key_create(&lim_key, lim_leave) != 0)
		abort();
	peers_add(&posix_sem_peer);
	peers_add(&cas_limit_peer);
	peers_add(&tracker1_peer);
	peers_add(&tls_limit_peer);
	peers_add(&tracker3_peer);
}

#endif /* PEERS_DESIGN_LIMIT_H */
