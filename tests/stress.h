/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stress.h - what the multi-threaded tests share: a tree of groups, workers that
 * charge and uncharge it while hopping CPUs under timer signals, threads that
 * disturb them, and an audit that knows to the page and to the byte what must be
 * left. Include it first. Verdicts never depend on time; PCBATCH_SOAK_SECONDS
 * makes the storms last that long, PCBATCH_STRESS_DIVISOR makes them shorter.
 */
#ifndef STRESS_H
#define STRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include <pcbatch.h>

#define STRESS_INLINE static inline __attribute__((unused))
#define STRESS_FUNC static __attribute__((unused))

/* ------------------------------------------------------------------ verdicts */

/* cmocka's asserts are for the main thread only; these are for any thread and handler. */
static uint64_t stress_failures;

STRESS_FUNC void stress_fail(const char *file, int line, const char *text, int64_t a, int64_t b)
{
	char out[256];
	int n;

	if (__atomic_add_fetch(&stress_failures, 1, __ATOMIC_SEQ_CST) > 10)
		return;
	n = snprintf(out, sizeof(out), "%s:%d: %s (%" PRId64 ", %" PRId64 ")\n", file, line, text, a, b);
	if (write(2, out, (size_t)n) < 0)
		abort();
}

#define STRESS_CHECK(cond, a, b)                                                             \
	do {                                                                                 \
		if (!(cond))                                                                 \
			stress_fail(__FILE__, __LINE__, #cond, (int64_t)(a), (int64_t)(b)); \
	} while (0)
#define STRESS_EQUAL(a, b) STRESS_CHECK((a) == (b), a, b)

/* The exit status of a child that made its own checks. */
STRESS_FUNC int stress_status(void)
{
	return __atomic_load_n(&stress_failures, __ATOMIC_SEQ_CST) == 0 ? 0 : 1;
}

/* Each test has its own verdict. */
STRESS_FUNC int stress_fresh(void **state)
{
	(void)state;
	stress_failures = 0;
	return 0;
}

#define stress_test(f) cmocka_unit_test_setup(f, stress_fresh)

/* Waits for a child; 0 when it exited with 0. */
STRESS_FUNC int stress_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		fprintf(stderr, "child died of signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Runs a case in a child, so that a crash is a failure and no end of all tests. */
STRESS_FUNC int stress_in_child(void (*run)(void *), void *arg)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		run(arg);
		_exit(stress_status());
	}
	return pid < 0 ? 1 : stress_wait(pid);
}

/* ---------------------------------------------------------- time, chance, CPUs */

STRESS_INLINE uint64_t stress_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

STRESS_INLINE uint64_t stress_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d) >> 20;
}

STRESS_FUNC uint64_t stress_env(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);

	return text == NULL || *text == '\0' ? fallback : strtoull(text, NULL, 10);
}

STRESS_FUNC uint64_t stress_scaled(uint64_t n)
{
	uint64_t divisor = stress_env("PCBATCH_STRESS_DIVISOR", 1);

	n /= divisor == 0 ? 1 : divisor;
	return n == 0 ? 1 : n;
}

#define STRESS_CPUS 256
static int stress_cpu[STRESS_CPUS];
static int stress_cpus;

/* The CPUs that this process may use. */
STRESS_FUNC void stress_find_cpus(void)
{
	cpu_set_t set;
	int c;

	CPU_ZERO(&set);
	stress_cpus = 0;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (c = 0; c < CPU_SETSIZE && stress_cpus < STRESS_CPUS; c++)
		if (CPU_ISSET((size_t)c, &set))
			stress_cpu[stress_cpus++] = c;
}

STRESS_FUNC void stress_pin(int index)
{
	cpu_set_t set;

	if (stress_cpus == 0)
		stress_find_cpus();
	CPU_ZERO(&set);
	CPU_SET((size_t)stress_cpu[index % stress_cpus], &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

STRESS_FUNC void stress_unpin(void)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < stress_cpus; i++)
		CPU_SET((size_t)stress_cpu[i], &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

/* ------------------------------------------------------------------- the tree */

#define STRESS_GROUPS 24
#define STRESS_ITEMS 3
#define STRESS_ITEM 1 /* the item batched in the slots */
#define STRESS_PAGE 4096

enum stress_disturber {
	STRESS_DRAIN = 1,
	STRESS_FLUSH = 2,
	STRESS_MAX = 4,
	STRESS_BATCH = 8,
	STRESS_CHURN = 16, /* threads that live for a few hundred operations */
	STRESS_ALL = 31
};

/* What the disturbers did, for whoever wants to tell. */
enum stress_fault {
	STRESS_DID_DRAIN,
	STRESS_DID_FLUSH,
	STRESS_DID_LIMIT,
	STRESS_DID_BATCH,
	STRESS_DID_THREAD,
	STRESS_DID_SIGNAL,
	STRESS_DID_HOP,
	STRESS_DID_GROUP, /* created, used and destroyed */
	STRESS_DID_FORK,
	STRESS_FAULTS
};

/* What one thread (or its signal handler) holds. */
struct stress_account {
	int64_t pages[STRESS_GROUPS];
	int64_t bytes[STRESS_GROUPS];
	int64_t stat[STRESS_GROUPS]; /* of STRESS_ITEM */
	int64_t other[STRESS_GROUPS]; /* of item 0 */
	int64_t count;               /* of the counter */
	uint64_t ops PCBATCH_ALIGNED(8); /* read by other threads */
	uint64_t refused;
	uint64_t rng;
};

struct stress {
	struct pcbatch_domain dom;
	struct pcbatch_group *group[STRESS_GROUPS];
	int parent[STRESS_GROUPS]; /* index; -1: none */
	int64_t max[STRESS_GROUPS]; /* 0: none */
	uint64_t granted[STRESS_GROUPS] PCBATCH_ALIGNED(8); /* never more than what is granted: counted after, taken off before */
	struct pcbatch_counter counter;
	int groups;
	bool track;        /* keep granted[] */
	bool bytes;
	int64_t cap;       /* pages a thread holds of one group */
	uint64_t ops;      /* of one worker */
	uint64_t deadline; /* ns; 0: by operations */
	unsigned int hop_every;
	unsigned int timer_us;
	unsigned int disturbers;
	uint32_t stop;
	uint64_t total_ops;
	uint64_t faults[STRESS_FAULTS] PCBATCH_ALIGNED(8);
	struct stress_account done; /* of threads that are gone */
	pthread_t *joined;          /* disturbers of the test's own, or NULL */
	unsigned int joined_count;  /* 0 and a thread: one */
	pthread_mutex_t lock;
};

struct stress_worker {
	struct stress *s;
	struct stress_account main;
	struct stress_account handler;
	uint64_t budget;
	pthread_t thread;
};

static __thread struct stress_worker *stress_self;

/* A tree three levels deep with more owners than a CPU has slots. */
STRESS_FUNC void stress_init(struct stress *s, int groups, const struct pcbatch_domain_attr *attr)
{
	struct pcbatch_domain_attr a;
	int i;

	memset(s, 0, sizeof(*s));
	assert_true(groups <= STRESS_GROUPS);
	(void)pcbatch_domain_attr_init(&a);
	if (attr != NULL)
		a = *attr;
	a.stat_items = STRESS_ITEMS;
	a.stock_item = STRESS_ITEM;
	assert_int_equal(pcbatch_domain_init(&s->dom, &a), 0);
	for (i = 0; i < groups; i++) {
		s->parent[i] = i < 2 ? -1 : (i - 2) / 3;
		assert_int_equal(pcbatch_group_create(&s->dom, s->parent[i] < 0 ? NULL : s->group[s->parent[i]], NULL, &s->group[i]), 0);
	}
	s->groups = groups;
	assert_int_equal(pcbatch_counter_init(&s->counter, &s->dom, 0), 0);
	s->cap = 200;
	s->hop_every = 64;
	(void)pthread_mutex_init(&s->lock, NULL);
	stress_find_cpus();
}

STRESS_FUNC void stress_limit(struct stress *s, int g, int64_t max)
{
	s->max[g] = max;
	assert_int_equal(pcbatch_group_set_max(s->group[g], max), 0);
}

STRESS_FUNC bool stress_limited(const struct stress *s, int g)
{
	for (; g >= 0; g = s->parent[g])
		if (s->max[g] != 0)
			return true;
	return false;
}

STRESS_FUNC void stress_grant(struct stress *s, int g, int64_t pages)
{
	for (; s->track && g >= 0; g = s->parent[g]) {
		int64_t now = (int64_t)__atomic_add_fetch(&s->granted[g], (uint64_t)pages, __ATOMIC_SEQ_CST);

		/* Limits that move are checked by who moves them. */
		if (pages > 0 && s->max[g] != 0 && (s->disturbers & STRESS_MAX) == 0)
			STRESS_CHECK(now <= s->max[g], now, s->max[g]);
	}
}

STRESS_INLINE void stress_did(struct stress *s, enum stress_fault fault)
{
	(void)__atomic_fetch_add(&s->faults[fault], 1, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------- operations */

STRESS_FUNC void stress_charge(struct stress *s, struct stress_account *a, int g, int64_t pages, int64_t stat, bool handler)
{
	int err = handler ? pcbatch_group_try_charge(s->group[g], (uint64_t)pages, stat)
			  : pcbatch_group_charge_stat(s->group[g], (uint64_t)pages, stat);

	a->ops++;
	if (err != 0) {
		STRESS_CHECK(err == -ENOMEM && stress_limited(s, g), err, g);
		a->refused++;
		return;
	}
	stress_grant(s, g, pages);
	a->pages[g] += pages;
	a->stat[g] += stat;
}

STRESS_FUNC void stress_uncharge(struct stress *s, struct stress_account *a, int g, int64_t pages, int64_t stat)
{
	int err;

	stress_grant(s, g, -pages);
	err = pcbatch_group_uncharge_stat(s->group[g], (uint64_t)pages, stat);
	STRESS_EQUAL(err, 0);
	a->ops++;
	a->pages[g] -= pages;
	a->stat[g] -= stat;
}

STRESS_FUNC void stress_bytes(struct stress *s, struct stress_account *a, int g, uint64_t r)
{
	int64_t bytes = (int64_t)(r % 64 == 0 ? r >> 8 & 0x3ffff : 1 + (r >> 8 & 0x3ff));

	a->ops++;
	if ((r & 128) == 0 && a->bytes[g] < s->cap * 1024) {
		int err = pcbatch_group_try_charge_bytes(s->group[g], (uint64_t)bytes);

		if (err == 0)
			a->bytes[g] += bytes;
		else
			STRESS_CHECK(err == -ENOMEM && stress_limited(s, g), err, g);
		return;
	}
	bytes = bytes < a->bytes[g] ? bytes : a->bytes[g];
	STRESS_EQUAL(pcbatch_group_uncharge_bytes(s->group[g], (uint64_t)bytes), 0);
	a->bytes[g] -= bytes;
}

/* One step of a worker: mostly hits, and each slow path now and then. */
STRESS_FUNC void stress_step(struct stress *s, struct stress_account *a)
{
	uint64_t r = stress_random(&a->rng);
	int g = (int)(r % (uint64_t)s->groups), i;
	int64_t pages = 1 + (int64_t)(r >> 8 & 3), stat = (int64_t)(r >> 10 & 3) == 0 ? (int64_t)(r >> 12 & 31) - 16 : pages;

	switch (r >> 20 & 15) {
	case 0:
		pages = 1 + (int64_t)(r >> 24 & 127);
		break;
	case 1:
		if ((r >> 24 & 31) == 0)
			pages = 1 + (int64_t)(r >> 30 & 0x3fff);
		break;
	case 2:
		pcbatch_counter_add(&s->counter, (int64_t)(r >> 24 & 255) - 100);
		a->count += (int64_t)(r >> 24 & 255) - 100;
		a->ops++;
		return;
	case 3:
		STRESS_EQUAL(pcbatch_group_stat_mod(s->group[g], 0, stat), 0);
		a->other[g] += stat;
		a->ops++;
		return;
	case 4:
	case 5:
		if (s->bytes) {
			stress_bytes(s, a, g, r >> 24);
			return;
		}
		break;
	case 6:
	case 7:
	case 8:
		/* A run of hits. */
		for (i = 0; i < 16; i++) {
			uint64_t before = a->refused;

			stress_charge(s, a, g, pages, stat, false);
			if (a->refused == before)
				stress_uncharge(s, a, g, pages, stat);
		}
		return;
	default:
		break;
	}
	if (a->pages[g] > s->cap || (a->pages[g] > 0 && (r >> 40 & 1) != 0)) {
		pages = pages < a->pages[g] ? pages : a->pages[g];
		stress_uncharge(s, a, g, pages, stat);
	} else {
		stress_charge(s, a, g, pages, stat, false);
	}
}

/* What the timer signal does in the middle of a worker's call. */
STRESS_FUNC void stress_handler(int sig)
{
	struct stress_worker *w = stress_self;
	int saved = errno;
	struct stress_account *a;
	struct stress *s;
	uint64_t r;
	int g;

	(void)sig;
	if (w == NULL)
		return;
	s = w->s;
	a = &w->handler;
	stress_did(s, STRESS_DID_SIGNAL);
	r = stress_random(&a->rng);
	g = (int)(r % (uint64_t)s->groups);
	if (a->pages[g] > 0 && (r >> 8 & 1) != 0)
		stress_uncharge(s, a, g, 1 + (int64_t)(r >> 16) % a->pages[g], 3);
	else if (a->pages[g] <= s->cap)
		stress_charge(s, a, g, 1 + (int64_t)(r >> 9 & 7), 2, true);
	pcbatch_counter_add(&s->counter, 5);
	a->count += 5;
	STRESS_EQUAL(pcbatch_group_stat_mod(s->group[g], 0, -7), 0);
	a->other[g] -= 7;
	if ((r >> 30 & 15) == 0)
		STRESS_EQUAL(pcbatch_group_drain(s->group[g]), 0);
	else if ((r >> 30 & 15) == 1)
		(void)pcbatch_stock_drain_cpu(&s->dom);
	else if ((r >> 30 & 15) == 2)
		STRESS_EQUAL(pcbatch_group_drain_subtree(s->group[g]), 0);
	if (s->bytes)
		stress_bytes(s, a, g, r >> 24);
	a->ops += 2;
	errno = saved;
}

STRESS_FUNC bool stress_timer(unsigned int us, timer_t *timer)
{
	struct sigevent event;
	struct itimerspec spec;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMIN;
#ifdef sigev_notify_thread_id
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
	if (timer_create(CLOCK_MONOTONIC, &event, timer) != 0)
		return false;
	memset(&spec, 0, sizeof(spec));
	spec.it_interval.tv_nsec = spec.it_value.tv_nsec = (long)us * 1000;
	(void)timer_settime(*timer, 0, &spec, NULL);
	return true;
}

STRESS_FUNC void stress_catch(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = stress_handler;
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGRTMIN, &action, NULL);
}

STRESS_FUNC void *stress_work(void *arg)
{
	struct stress_worker *w = (struct stress_worker *)arg;
	struct stress *s = w->s;
	unsigned int since_hop = 0;
	uint64_t end = w->main.ops + w->budget;
	timer_t timer;
	bool timed;

	__atomic_store_n(&stress_self, w, __ATOMIC_RELAXED);
	timed = s->timer_us != 0 && stress_timer(s->timer_us, &timer);
	while (w->main.ops < end && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		stress_step(s, &w->main);
		if (s->hop_every != 0 && ++since_hop >= s->hop_every) {
			since_hop = 0;
			stress_pin((int)(stress_random(&w->main.rng) & 0xff));
			stress_did(s, STRESS_DID_HOP);
		}
		if (s->deadline != 0 && (w->main.ops & 0xfff) < 16 && stress_now_ns() > s->deadline)
			break;
	}
	if (timed)
		(void)timer_delete(timer);
	__atomic_store_n(&stress_self, NULL, __ATOMIC_SEQ_CST);
	return NULL;
}

/* -------------------------------------------------------------- disturbances */

STRESS_FUNC void *stress_drainer(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t rng = 77, r;
	int err;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		struct pcbatch_group *g;

		r = stress_random(&rng);
		g = s->group[r % (uint64_t)s->groups];
		stress_did(s, STRESS_DID_DRAIN);
		switch (r >> 8 & 7) {
		case 0:
			STRESS_EQUAL(pcbatch_stock_drain_all(&s->dom), 0);
			break;
		case 1:
			err = pcbatch_stock_drain_cpu(&s->dom);
			STRESS_CHECK(err == 0 || err == -EAGAIN, err, 0);
			break;
		case 2:
		case 3:
			STRESS_EQUAL(pcbatch_group_drain_subtree(g), 0);
			break;
		default:
			STRESS_EQUAL(pcbatch_group_drain(g), 0);
		}
		if ((r >> 16 & 3) == 0)
			(void)usleep((useconds_t)(r >> 18 & 127));
	}
	return NULL;
}

STRESS_FUNC void *stress_flusher(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t rng = 99, r;
	int err;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		struct pcbatch_group *g;

		r = stress_random(&rng);
		g = s->group[r % (uint64_t)s->groups];
		stress_did(s, STRESS_DID_FLUSH);
		switch (r >> 8 & 7) {
		case 0:
			STRESS_EQUAL(pcbatch_stats_flush(&s->dom, NULL), 0);
			break;
		case 1:
			err = pcbatch_stats_try_flush(&s->dom, NULL);
			STRESS_CHECK(err == 0 || err == -EBUSY, err, 0);
			break;
		case 2:
			err = pcbatch_stats_flush_ratelimited(&g->owner.stats, stress_now_ns());
			STRESS_CHECK(err == 0 || err == -EBUSY || err == -EAGAIN, err, 0);
			break;
		default:
			STRESS_EQUAL(pcbatch_group_stat_flush(g), 0);
			(void)pcbatch_group_stat_needs_flush(g);
		}
		pcbatch_counter_flush(&s->counter);
		if ((r >> 16 & 1) == 0)
			(void)usleep((useconds_t)(r >> 18 & 255));
	}
	return NULL;
}

/* Moves the limits; while one stands, what is granted must stay within it. */
STRESS_FUNC void *stress_mover(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t rng = 55, r;
	int g, i, err;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		r = stress_random(&rng);
		g = (int)(r % (uint64_t)s->groups);
		if (s->max[g] != 0) {
			int64_t max = 1 + (int64_t)(r >> 8) % (2 * s->max[g]);

			stress_did(s, STRESS_DID_LIMIT);
			err = pcbatch_group_set_max(s->group[g], max);
			STRESS_CHECK(err == 0 || err == -EBUSY, err, g);
			for (i = 0; err == 0 && s->track && i < 20; i++) {
				int64_t granted = (int64_t)__atomic_load_n(&s->granted[g], __ATOMIC_SEQ_CST);

				STRESS_CHECK(granted <= max, granted, max);
			}
			(void)usleep(50);
			STRESS_EQUAL(pcbatch_group_set_max(s->group[g], PCBATCH_PAGES_MAX), 0);
		}
		(void)usleep(50);
	}
	return NULL;
}

STRESS_FUNC void *stress_batcher(void *arg)
{
	static const uint32_t batches[] = { 1, 2, 7, 64, 256, 4096 };
	struct stress *s = (struct stress *)arg;
	uint64_t rng = 33, r;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint32_t batch;

		r = stress_random(&rng);
		batch = batches[r % 6];
		stress_did(s, STRESS_DID_BATCH);
		if ((r >> 8 & 1) != 0)
			STRESS_EQUAL(pcbatch_stock_set_batch(&s->dom, batch, 0, 0), 0);
		else
			STRESS_EQUAL(pcbatch_stock_set_batch(&s->dom, batch, batch * 3, (uint32_t)(r >> 10) % (batch * 3 + 1)), 0);
		(void)usleep(200);
	}
	return NULL;
}

STRESS_FUNC void stress_add(struct stress_account *to, const struct stress_account *from)
{
	int g;

	for (g = 0; g < STRESS_GROUPS; g++) {
		to->pages[g] += from->pages[g];
		to->bytes[g] += from->bytes[g];
		to->stat[g] += from->stat[g];
		to->other[g] += from->other[g];
	}
	to->count += from->count;
	to->ops += from->ops;
	to->refused += from->refused;
}

/* Threads that come and go; what one charged, another uncharges. */
STRESS_FUNC void *stress_churner(void *arg)
{
	struct stress *s = (struct stress *)arg;
	struct stress_worker w;

	memset(&w, 0, sizeof(w));
	w.s = s;
	w.main.rng = 0x1234567;
	w.handler.rng = 0x7654321;
	w.budget = 500;
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		if (pthread_create(&w.thread, NULL, stress_work, &w) != 0)
			continue;
		(void)pthread_join(w.thread, NULL);
		stress_did(s, STRESS_DID_THREAD);
	}
	(void)pthread_mutex_lock(&s->lock);
	stress_add(&s->done, &w.main);
	stress_add(&s->done, &w.handler);
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --------------------------------------------------------------------- audit */

STRESS_FUNC bool stress_below(const struct stress *s, int g, int root)
{
	while (g >= 0 && g != root)
		g = s->parent[g];
	return g == root;
}

/* What the slots of all CPUs hold for a group. */
STRESS_FUNC void stress_cached(struct stress *s, int g, int64_t *pages, int64_t *stat, int64_t *bytes)
{
	uint32_t c, id = s->group[g]->owner.id;
	int k;

	*pages = *stat = *bytes = 0;
	for (c = 0; c < s->dom.lines; c++) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(&s->dom, c);

		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
			if (pcbatch_slot_owner(stock->page.slot[k]) == id) {
				*pages += pcbatch_slot_pages(stock->page.slot[k]);
				*stat += pcbatch_slot_stat(stock->page.slot[k]);
			}
			if (pcbatch_slot_owner(stock->obj.slot[k]) == id)
				*bytes += pcbatch_slot_obj_bytes(stock->obj.slot[k]);
		}
	}
}

/* With no call in flight: contract point 1, to the page, the byte and the unit. `a`: all that is alive. */
STRESS_FUNC void stress_compare(struct stress *s, const struct stress_account *a)
{
	int root, g;

	STRESS_EQUAL(pcbatch_stats_flush(&s->dom, NULL), 0);
	for (root = 0; root < s->groups; root++) {
		int64_t bytes = 0, stat = 0, other = 0, slot_stat = 0, slot_pages, slot_bytes, one;

		for (g = root; g < s->groups; g++) {
			if (!stress_below(s, g, root))
				continue;
			stress_cached(s, g, &slot_pages, &one, &slot_bytes);
			slot_stat += one;
			bytes += (a->pages[g] + slot_pages) * STRESS_PAGE + a->bytes[g] + slot_bytes +
				 (int64_t)s->group[g]->owner.remainder;
			stat += a->stat[g];
			other += a->other[g];
		}
		STRESS_EQUAL((int64_t)s->group[root]->owner.pages.usage * STRESS_PAGE, bytes);
		STRESS_EQUAL(pcbatch_group_stat_read_signed(s->group[root], STRESS_ITEM) + slot_stat, stat);
		STRESS_EQUAL(pcbatch_group_stat_read_signed(s->group[root], 0), other);
		STRESS_EQUAL(pcbatch_group_underflow(s->group[root]), 0);
	}
	STRESS_EQUAL(pcbatch_counter_sum(&s->counter), a->count);
}

/* Nothing is cached, no gate is closed, no reference is left but creators' and children's. */
STRESS_FUNC void stress_empty(struct stress *s)
{
	uint64_t children[STRESS_GROUPS] = { 0 };
	uint32_t c;
	int g, k;

	for (c = 0; c < s->dom.lines; c++) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(&s->dom, c);

		STRESS_EQUAL(stock->page.gate, 0);
		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
			STRESS_EQUAL(stock->page.slot[k], 0);
			STRESS_EQUAL(stock->obj.slot[k], 0);
		}
	}
	STRESS_EQUAL(s->dom.install_gate & 0xffff, 0);
	for (g = 0; g < s->groups; g++)
		if (s->parent[g] >= 0)
			children[s->parent[g]]++;
	for (g = 0; g < s->groups; g++)
		STRESS_EQUAL(s->group[g]->owner.refs, 1 + children[g]);
}

/* Uncharges what `a` says is alive; then everything must be zero, and the domain ends. */
STRESS_FUNC void stress_settle(struct stress *s, struct stress_account *a)
{
	int g;

	stress_unpin();
	stress_compare(s, a);
	STRESS_EQUAL(pcbatch_stock_drain_all(&s->dom), 0);
	stress_empty(s);
	stress_compare(s, a);
	for (g = 0; g < s->groups; g++) {
		STRESS_CHECK(a->pages[g] >= 0 && a->bytes[g] >= 0, a->pages[g], a->bytes[g]);
		while (a->pages[g] > 0) {
			int64_t pages = a->pages[g] < 50 ? a->pages[g] : 50;

			STRESS_EQUAL(pcbatch_group_uncharge(s->group[g], (uint64_t)pages), 0);
			a->pages[g] -= pages;
		}
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(s->group[g], (uint64_t)a->bytes[g]), 0);
		a->bytes[g] = 0;
	}
	STRESS_EQUAL(pcbatch_stock_drain_all(&s->dom), 0);
	stress_compare(s, a);
	for (g = s->groups - 1; g >= 0; g--) {
		STRESS_EQUAL(pcbatch_group_current(s->group[g]), 0);
		STRESS_EQUAL(s->group[g]->owner.remainder, 0);
		STRESS_EQUAL(pcbatch_group_destroy(s->group[g]), 0);
	}
	STRESS_EQUAL(pcbatch_counter_destroy(&s->counter), 0);
	STRESS_EQUAL(pcbatch_domain_destroy(&s->dom), 0);
}

/* ----------------------------------------------------------------------- run */

STRESS_FUNC void stress_print(const char *name, uint64_t ops, uint64_t refused, uint64_t start_ns)
{
	printf("%s: %" PRIu64 " operations, %" PRIu64 " refused, %.2f s\n", name, ops, refused,
	       (double)(stress_now_ns() - start_ns) / 1e9);
	(void)fflush(stdout);
}

/* Runs `workers` threads and the disturbers, joins them, and settles the accounts. */
STRESS_FUNC void stress_run(struct stress *s, const char *name, unsigned int workers, uint64_t ops_each)
{
	static void *(*const disturber[])(void *) = { stress_drainer, stress_flusher, stress_mover, stress_batcher, stress_churner };
	struct stress_worker *w = (struct stress_worker *)calloc(workers, sizeof(*w));
	uint64_t start = stress_now_ns(), soak = stress_env("PCBATCH_SOAK_SECONDS", 0);
	pthread_t other[8];
	unsigned int i, others = 0;

	assert_non_null(w);
	stress_catch();
	/* A deadline of the test's own stands. */
	s->deadline = s->deadline != 0 || soak == 0 ? s->deadline : start + soak * 1000000000u;
	for (i = 0; i < workers; i++) {
		w[i].s = s;
		w[i].main.rng = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
		w[i].handler.rng = UINT64_C(0xbf58476d1ce4e5b9) * (i + 1);
		w[i].budget = s->deadline == 0 ? stress_scaled(ops_each) : UINT64_MAX / 2;
		assert_int_equal(pthread_create(&w[i].thread, NULL, stress_work, &w[i]), 0);
	}
	for (i = 0; i < sizeof(disturber) / sizeof(disturber[0]); i++)
		if ((s->disturbers >> i & 1) != 0)
			assert_int_equal(pthread_create(&other[others++], NULL, disturber[i], s), 0);
	for (i = 0; i < workers; i++)
		(void)pthread_join(w[i].thread, NULL);
	__atomic_store_n(&s->stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < others; i++)
		(void)pthread_join(other[i], NULL);
	for (i = 0; s->joined != NULL && i < (s->joined_count == 0 ? 1 : s->joined_count); i++)
		(void)pthread_join(s->joined[i], NULL);
	for (i = 0; i < workers; i++) {
		stress_add(&s->done, &w[i].main);
		stress_add(&s->done, &w[i].handler);
	}
	free(w);
	if (name != NULL)
		stress_print(name, s->done.ops, s->done.refused, start);
	s->total_ops = s->done.ops;
	stress_settle(s, &s->done);
}

#endif /* STRESS_H */
