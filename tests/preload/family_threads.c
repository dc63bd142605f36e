/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* family_threads.c - blocks that change hands between threads, groups and calls; signals; late destructors; children. */
#include "family.h"

#define THREADS 4
#define MAILBOXES 512
#define ROUNDS 12000

static void *mailbox[MAILBOXES];
static int thread_group[THREADS];
static int64_t thread_live[THREADS]; /* by the group of the block */
static pthread_key_t late_key;
static int late_done;
static volatile sig_atomic_t ticks;

static int group_index(const void *p)
{
	int g = malloc_group_of(p);

	for (int i = 0; i < THREADS; i++)
		if (thread_group[i] == g)
			return i;
	return 0;
}

static void count(void *p, int64_t sign)
{
	if (p != NULL)
		__atomic_fetch_add(&thread_live[group_index(p)], sign * (int64_t)malloc_usable_size(p), __ATOMIC_RELAXED);
}

/* Whoever takes a block out of a mailbox frees or resizes it, in whatever group. */
static void trade(uint32_t *seed)
{
	void **box = &mailbox[next_random(seed) % MAILBOXES], *p = NULL, *old;
	size_t n = 1 + next_random(seed) % (next_random(seed) % 64 == 0 ? 90000 : 700);

	old = __atomic_exchange_n(box, NULL, __ATOMIC_ACQ_REL);
	if (next_random(seed) % 4 == 0 && old != NULL) {
		count(old, -1);
		p = realloc(old, n);
		old = p == NULL ? old : NULL;
		count(p == NULL ? old : p, 1);
	} else {
		p = call((enum call)(next_random(seed) % CALLS), 32, n);
		count(p, 1);
	}
	if (p != NULL) {
		memset(p, 1, n);
		p = __atomic_exchange_n(box, p, __ATOMIC_ACQ_REL);
	}
	count(old, -1);
	free(old);
	count(p, -1);
	free(p);
}

/* Runs when the thread's own storage is going. */
static void late(void *p)
{
	int round = ++*(int *)p;
	void *q;

	if (round < 3) {
		CHECK(pthread_setspecific(late_key, p) == 0);
		return;
	}
	/* The others may have left nothing. */
	q = malloc(5000);
	free(q);
	free(p);
	__atomic_fetch_add(&late_done, 1, __ATOMIC_RELAXED);
}

static void *trader(void *arg)
{
	int k = *(int *)arg, *times = calloc(1, sizeof(*times));
	uint32_t seed = 100 + (uint32_t)k;

	CHECK(times != NULL && pthread_setspecific(late_key, times) == 0);
	CHECK(malloc_group_current() == 0);
	CHECK(malloc_group_enter(thread_group[k]) == 0);
	for (int i = 0; i < ROUNDS; i++)
		trade(&seed);
	return NULL;
}

static void tick(int number)
{
	struct malloc_group_info info;
	int saved = errno;

	(void)number;
	(void)malloc_group_read(thread_group[0], &info);
	ticks++;
	errno = saved;
}

/* A block is somebody else's before the call that gives it up has returned (handoff.c). */
void handed_on(void)
{
	/* Before the group is entered: what dlsym says when it finds nothing is a block, too. */
	void *f = dlsym(RTLD_DEFAULT, "handoff_arm"), *t = dlsym(RTLD_DEFAULT, "handoff_taken"), *p, *q, *next;
	int g = group_new("handoff", MALLOC_GROUP_ROOT, SIZE_MAX), before = malloc_group_enter(g);
	void *(*get)(void);
	void (*arm)(void);

	memcpy(&arm, &f, sizeof(f));
	memcpy(&get, &t, sizeof(t));
	for (int i = 0; arm != NULL && i < 2; i++) {
		p = malloc(1000);
		next = malloc(1000); /* in the way of growing */
		hide = p;
		arm();
		q = i == 0 ? realloc(p, 5000) : NULL;
		if (i == 1)
			free(p);
		p = get();
		CHECK(p == hide && (!on || malloc_group_of(p) == g));
		exact(g, malloc_usable_size(p) + malloc_usable_size(q) + malloc_usable_size(next));
		free(p);
		free(q);
		free(next);
		exact(g, 0);
	}
	malloc_group_leave(before);
	CHECK(malloc_group_destroy(g) == 0);
	printf("handed on\n");
}

static int (*watch_state)(void);

static void *free_under_walk(void *p)
{
	while (watch_state() == 0)
		usleep(100);
	free(p);
	return NULL;
}

/* While the walk looks at a block, nobody can free it. */
void walked(void)
{
	void *f = dlsym(RTLD_DEFAULT, "handoff_watch"), *s = dlsym(RTLD_DEFAULT, "handoff_state"), *p;
	struct malloc_group_found a;
	void (*watch)(void *);
	pthread_t thread;

	memcpy(&watch, &f, sizeof(f));
	memcpy(&watch_state, &s, sizeof(s));
	if (watch != NULL && on) {
		p = malloc(1000);
		hide = p;
		CHECK(pthread_create(&thread, NULL, free_under_walk, p) == 0);
		watch(p);
		CHECK(malloc_group_audit(0, &a) == 0 && watch_state() == 2);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	printf("walked\n");
}

/* Blocks that others get the moment a realloc or free has given them up: one heap, and too large for a thread's cache. */
static void *mover(void *arg)
{
	unsigned char *p = NULL, *q;

	(void)malloc_group_enter(*(int *)arg);
	for (int i = 0; i < 20000; i++) {
		q = realloc(p, i % 2 == 0 ? 2000 : 4000);
		CHECK(q != NULL);
		p = q;
		q = malloc(3000);
		CHECK(q != NULL && (!on || malloc_group_of(q) == malloc_group_current()));
		free(q);
		CHECK(!on || malloc_group_of(p) == malloc_group_current());
	}
	free(p);
	return NULL;
}

void movers(void)
{
	int g = group_new("movers", MALLOC_GROUP_ROOT, SIZE_MAX);
	pthread_t thread[THREADS];

	(void)mallopt(M_ARENA_MAX, 1);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, mover, &g) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	exact(g, 0);
	audited(g, 0, 0);
	CHECK(malloc_group_destroy(g) == 0);
	printf("movers: each had its own\n");
}

void threads(void)
{
	struct itimerval timer = { { 0, 300 }, { 0, 300 } }, none = { { 0, 0 }, { 0, 0 } };
	static const char *const names[THREADS] = { "t0", "t1", "t2", "t3" };
	pthread_t thread[THREADS];
	int number[THREADS], top = group_new("threads", MALLOC_GROUP_ROOT, (size_t)1 << 20);
	struct malloc_group_info info;
	struct sigaction action;
	int64_t sum = 0;

	memset(&action, 0, sizeof(action));
	action.sa_handler = tick;
	action.sa_flags = SA_RESTART;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && pthread_key_create(&late_key, late) == 0);
	for (int i = 0; i < THREADS; i++)
		thread_group[i] = group_new(names[i], i == 3 ? MALLOC_GROUP_ROOT : top, SIZE_MAX);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		CHECK(pthread_create(&thread[i], NULL, trader, &number[i]) == 0);
	}
	/* The heap is walked under them. What they have in flight is small. */
	for (int i = 0; on && i < 10; i++) {
		struct malloc_group_found a;

		CHECK(malloc_group_audit(thread_group[i % THREADS], &a) == 0);
		CHECK(a.difference < 4 << 20 && a.difference > -(4 << 20));
		CHECK(malloc_group_sum(top, &info) == 0 && info.peak <= (size_t)1 << 20);
		usleep(4000);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	for (int i = 0; on && i < THREADS; i++)
		exact(thread_group[i], (size_t)thread_live[i]);
	for (int i = 0; i < 3; i++)
		sum += thread_live[i];
	if (on)
		exact(top, (size_t)sum);
	CHECK(malloc_group_sum(top, &info) == 0 && info.peak <= (size_t)1 << 20);
	for (int i = 0; i < MAILBOXES; i++)
		free(mailbox[i]);
	for (int i = 0; i < THREADS; i++) {
		exact(thread_group[i], 0);
		audited(thread_group[i], 0, 0);
		CHECK(malloc_group_destroy(thread_group[i]) == 0);
	}
	CHECK(malloc_group_destroy(top) == 0);
	printf("threads: %d late destructors\n", late_done);
}

static volatile int churning;
static int churn_group;

static void *churn(void *arg)
{
	uint32_t seed = 5;

	(void)arg;
	(void)malloc_group_enter(churn_group);
	while (churning)
		free(hide = malloc(1 + next_random(&seed) % 5000));
	return NULL;
}

static void in_child(int g, void *inherited)
{
	size_t before = malloc_usable_size(inherited);
	int mine;
	void *p;

	exact(g, before);
	p = malloc(12345);
	CHECK(p != NULL);
	exact(g, before + malloc_usable_size(p));
	free(inherited);
	free(p);
	exact(g, 0);
	mine = group_new("born", g, (size_t)1 << 16);
	malloc_group_enter(mine);
	p = malloc((size_t)1 << 17);
	CHECK(on ? p == NULL : p != NULL);
	_exit(0);
}

void forks(void)
{
	int g = group_new("forks", MALLOC_GROUP_ROOT, (size_t)8 << 20), status, before;
	pthread_t thread;
	void *p;

	churn_group = group_new("churn", MALLOC_GROUP_ROOT, SIZE_MAX);
	churning = 1;
	CHECK(pthread_create(&thread, NULL, churn, NULL) == 0);
	before = malloc_group_enter(g);
	p = malloc(70000);
	for (int i = 0; i < 12; i++) {
		pid_t pid = fork();

		if (pid == 0)
			in_child(g, p);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
		exact(g, malloc_usable_size(p));
	}
	churning = 0;
	CHECK(pthread_join(thread, NULL) == 0);
	free(p);
	malloc_group_leave(before);
	exact(churn_group, 0);
	CHECK(malloc_group_destroy(g) == 0 && malloc_group_destroy(churn_group) == 0);
	printf("forks: 12\n");
}
