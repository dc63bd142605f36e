/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * family.c - every function of the malloc family, in one program that prints the same with
 * and without libpcbatch-malloc.so in front of an allocator (run_family.sh compares). With
 * it, what is charged is compared to the sum of malloc_usable_size of the live blocks
 * at every step; exits 1 at the first difference.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/malloc-group/malloc_group.h"

extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

#define CHECK(cond)                                                              \
	do {                                                                     \
		if (!(cond)) {                                                   \
			fprintf(stderr, "family: line %d: %s\n", __LINE__, #cond); \
			_exit(1);                                                \
		}                                                                \
	} while (0)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool on;
/* The compiler must not know what is allocated, or it leaves the pair out. */
static void *volatile hide;

static size_t bytes_of(int group)
{
	struct malloc_group_info info;

	CHECK(malloc_group_sum(group, &info) == 0);
	return info.bytes;
}

static void exact(int group, size_t want)
{
	size_t have = bytes_of(group);

	if (on && have != want) {
		fprintf(stderr, "family: charged %zu, live %zu\n", have, want);
		_exit(1);
	}
}

static void audited(int group, uint64_t blocks, size_t bytes)
{
	struct malloc_group_found a;

	CHECK(malloc_group_audit(group, &a) == 0);
	CHECK(!on || (a.blocks == blocks && a.bytes == bytes && a.difference == 0));
}

static int group_new(const char *name, int parent, size_t max)
{
	int g = malloc_group_create(name, parent, max);

	CHECK(g >= 0 && (on ? g >= 2 : g == 0));
	return g;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* ----------------------------------------------------------------- each call */

enum call { MALLOC, CALLOC, REALLOC, REALLOCARRAY, MEMALIGN, POSIX_MEMALIGN, ALIGNED_ALLOC, VALLOC, PVALLOC, CALLS };
static const char *const call_names[] = { "malloc",	    "calloc",	     "realloc", "reallocarray", "memalign",
					  "posix_memalign", "aligned_alloc", "valloc",	"pvalloc" };

/* jemalloc has none, and the C library's would be of another heap. */
static bool pvalloc_is_foreign(void)
{
	Dl_info a, b;

	return dladdr(dlsym(RTLD_DEFAULT, "pvalloc"), &a) != 0 && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &b) != 0 &&
	       a.dli_fbase != b.dli_fbase;
}

static void *call(enum call c, size_t align, size_t n)
{
	void *p = NULL;

	switch (c) {
	case MALLOC: return malloc(n);
	case CALLOC: return calloc(n, 1);
	case REALLOC: return realloc(NULL, n);
	case REALLOCARRAY: return reallocarray(NULL, n, 1);
	case MEMALIGN: return memalign(align, n);
	case POSIX_MEMALIGN:
		errno = posix_memalign(&p, align, n);
		return errno == 0 ? p : NULL;
	case ALIGNED_ALLOC: return aligned_alloc(align, n);
	case VALLOC: return valloc(n);
	default: return pvalloc_is_foreign() ? valloc(n) : pvalloc(n);
	}
}

static bool takes_align(enum call c)
{
	return c == MEMALIGN || c == POSIX_MEMALIGN || c == ALIGNED_ALLOC;
}

static bool all_are(const unsigned char *p, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void release(void *p, size_t align, size_t n, unsigned int how)
{
	if (how % 3 == 1 && free_sized != NULL)
		free_sized(p, n);
	else if (how % 3 == 2 && free_aligned_sized != NULL && align != 0)
		free_aligned_sized(p, align, n);
	else
		free(p);
}

static const size_t sizes[] = { 0, 1, 8, 15, 16, 17, 24, 25, 40, 100, 1000, 4096, 65535, 65536, 65537, 300000, 5u << 20 };
static const size_t aligns[] = { 8, 16, 32, 64, 4096, 65536, 1u << 21 };

/* All sizes of one function and alignment at once, each full to its usable size: none may touch another. */
static void one_call(enum call c, size_t align)
{
	int g = group_new("one-call", MALLOC_GROUP_ROOT, MALLOC_GROUP_NO_LIMIT), before = malloc_group_enter(g);
	unsigned char *p[COUNT(sizes)];
	size_t live = 0, usable[COUNT(sizes)], i;

	for (i = 0; i < COUNT(sizes); i++) {
		p[i] = call(c, align, sizes[i]);
		CHECK(p[i] != NULL);
		/* jemalloc alone does not align what has no bytes. */
		CHECK((!on && sizes[i] == 0) || (uintptr_t)p[i] % (takes_align(c) ? align : c >= VALLOC ? 4096u : 8u) == 0);
		usable[i] = malloc_usable_size(p[i]);
		CHECK(usable[i] >= sizes[i]);
		if (c == CALLOC)
			CHECK(all_are(p[i], sizes[i], 0));
		live += usable[i];
		memset(p[i], (int)i + 1, usable[i]);
		CHECK(!on || malloc_group_of(p[i]) == g);
		if (i % 4 == 0)
			exact(g, live);
	}
	exact(g, live);
	audited(g, COUNT(sizes), live);
	malloc_group_leave(before);
	for (i = 0; i < COUNT(sizes); i++) {
		CHECK(malloc_usable_size(p[i]) == usable[i] && all_are(p[i], usable[i], (unsigned char)(i + 1)));
		live -= usable[i];
		release(p[i], takes_align(c) ? align : 0, sizes[i], (unsigned int)i);
		if (i % 4 == 0)
			exact(g, live);
	}
	exact(g, 0);
	CHECK(malloc_group_destroy(g) == 0);
}

static void every_call(void)
{
	for (int c = 0; c < CALLS; c++) {
		size_t n = takes_align((enum call)c) ? COUNT(aligns) : 1;

		for (size_t a = 0; a < n; a++)
			one_call((enum call)c, aligns[a]);
		printf("%s: %zu alignments, %zu sizes\n", call_names[c], n, COUNT(sizes));
	}
}

/* jemalloc and mimalloc alone forget errno in places. */
static bool out_of_memory(const void *p)
{
	return p == NULL && (errno == ENOMEM || !on);
}

static void refusals_of_nonsense(void)
{
	volatile size_t huge = PTRDIFF_MAX, half = SIZE_MAX / 2 + 2;
	void *p = &p, *volatile q = malloc(100);
	int err;

	strcpy(q, "still here");
	errno = 0;
	CHECK(out_of_memory(malloc(huge)));
	errno = 0;
	CHECK(out_of_memory(calloc(half, 2)));
	errno = 0;
	CHECK(out_of_memory(reallocarray(q, half, 2)));
	errno = 0;
	CHECK(out_of_memory(realloc(q, huge)));
	CHECK(strcmp(q, "still here") == 0);
	errno = 99;
	err = posix_memalign(&p, 24, 100);
	CHECK(err == EINVAL && (errno == 99 || !on) && p == &p);
	err = posix_memalign(&p, 64, huge);
	CHECK(err == ENOMEM && (errno == 99 || !on) && p == &p);
	free(q);
	errno = 98;
	free(NULL);
	free(malloc(10));
	CHECK(errno == 98 && malloc_usable_size(NULL) == 0);
	printf("nonsense refused, errno as it should be\n");
}

/* -------------------------------------------------------------------- realloc */

static void reallocs(void)
{
	int a = group_new("a", MALLOC_GROUP_ROOT, MALLOC_GROUP_NO_LIMIT), b = group_new("b", MALLOC_GROUP_ROOT, SIZE_MAX);
	int before = malloc_group_enter(a);
	uint32_t seed = 7;
	unsigned char *p = malloc(10);
	size_t n = 10, checksum = 0;

	CHECK(malloc_group_enter(b) == a);
	memset(p, 1, n);
	for (int i = 0; i < 400; i++) {
		size_t want = i % 50 == 49 ? 3u << 20 : 1 + next_random(&seed) % (i % 7 == 0 ? 200000 : 2000), keep;
		unsigned char *q = realloc(p, want);

		CHECK(q != NULL);
		keep = want < n ? want : n;
		CHECK(all_are(q, keep, (unsigned char)(i + 1)));
		p = q;
		n = want;
		checksum += n;
		memset(p, i + 2, malloc_usable_size(p));
		/* A block stays with its group. */
		CHECK(!on || malloc_group_of(p) == a);
		if (i % 8 == 0)
			exact(a, malloc_usable_size(p));
		exact(b, 0);
	}
	hide = realloc(p, 0);
	exact(a, hide == NULL ? 0 : malloc_usable_size(hide));
	free(hide);
	exact(a, 0);
	malloc_group_leave(before);
	CHECK(malloc_group_destroy(a) == 0 && malloc_group_destroy(b) == 0);
	printf("realloc: %zu bytes in all\n", checksum);
}

/* What the C library allocates for its caller. */
static void from_libc(void)
{
	int g = group_new("libc", MALLOC_GROUP_ROOT, MALLOC_GROUP_NO_LIMIT), before = malloc_group_enter(g);
	char *copy = strdup("a string"), *made = NULL, *line = NULL;
	size_t size = 0;
	FILE *f;

	CHECK(copy != NULL && asprintf(&made, "%s twice", copy) == 14);
	f = fmemopen(made, strlen(made), "r");
	CHECK(f != NULL && getline(&line, &size, f) == 14 && fclose(f) == 0);
	CHECK(!on || (malloc_group_of(copy) == g && malloc_group_of(made) == g && malloc_group_of(line) == g));
	exact(g, malloc_usable_size(copy) + malloc_usable_size(made) + malloc_usable_size(line));
	malloc_group_leave(before);
	printf("libc: %s, %s\n", copy, line);
	free(copy);
	free(made);
	free(line);
	exact(g, 0);
	CHECK(malloc_group_destroy(g) == 0);
}

/* --------------------------------------------------------------------- limits */

#define FILL 4096

static struct {
	void *p[FILL];
	int n;
	size_t live;
} fill;

static void fill_up(int g, size_t max, uint32_t seed)
{
	struct malloc_group_info info;
	size_t want = 0;
	void *p = NULL;

	for (fill.n = 0, fill.live = 0; fill.n < FILL; fill.n++) {
		want = 1 + next_random(&seed) % (fill.n % 16 == 0 ? 100000 : 3000);
		errno = 0;
		p = call((enum call)(fill.n % CALLS), 64, want);
		if (p == NULL)
			break;
		fill.p[fill.n] = p;
		memset(p, 7, want);
		fill.live += malloc_usable_size(p);
	}
	CHECK(p == NULL && errno == ENOMEM && fill.n > 10);
	exact(g, fill.live);
	CHECK(malloc_group_sum(g, &info) == 0);
	CHECK(info.peak <= max && info.bytes <= max && info.refused > 0 && info.max == max);
	/* Refused rightly: it would not have fitted, but for the page that was started (and size classes, a quarter). */
	CHECK(info.bytes + want + want / 4 + 3 * 4096 > max);
	/* The rest in small pieces. */
	while (fill.n < FILL && (p = malloc(1000)) != NULL) {
		fill.p[fill.n++] = p;
		fill.live += malloc_usable_size(p);
	}
	CHECK(p == NULL && max - fill.live < 8192);
}

/* At the limit, each call fails as the real one does when there is no memory, and changes nothing. */
static void refused(int g)
{
	size_t before = bytes_of(g), n = 200000;
	void *out = &out, *q;

	for (int c = 0; c < CALLS; c++) {
		errno = 0;
		CHECK(call((enum call)c, 64, n) == NULL && errno == ENOMEM);
	}
	errno = 97;
	CHECK(posix_memalign(&out, 64, n) == ENOMEM && errno == 97 && out == &out);
	CHECK(posix_memalign(&out, 64, n / 4) == ENOMEM && errno == 97 && out == &out);
	for (int i = 0; i < fill.n; i += 97) {
		memset(fill.p[i], i, malloc_usable_size(fill.p[i]));
		errno = 0;
		q = realloc(fill.p[i], n + (1u << 20));
		CHECK(q == NULL && errno == ENOMEM);
		CHECK(all_are(fill.p[i], malloc_usable_size(fill.p[i]), (unsigned char)i));
		CHECK(malloc_group_of(fill.p[i]) == g);
	}
	exact(g, before);
}

static void limits(void)
{
	size_t max = (size_t)1 << 20;
	int parent = group_new("parent", MALLOC_GROUP_ROOT, max), child = group_new("child", parent, MALLOC_GROUP_NO_LIMIT);
	int before = malloc_group_enter(child), grown = 0;

	for (uint32_t seed = 1; on && seed <= 6; seed++) {
		struct malloc_group_info info;
		void *p;

		malloc_group_enter(seed % 2 == 0 ? parent : child);
		fill_up(parent, max, seed);
		refused(malloc_group_current());
		CHECK(malloc_group_set_max(parent, 4096) == -EBUSY);
		/* Small steps at the limit: the last bytes are given out, and not one more. */
		for (int i = 0; i < 200; i++) {
			void **at = &fill.p[i % fill.n];
			size_t had = malloc_usable_size(*at);

			memset(*at, i, had);
			p = realloc(*at, had + 1 + (size_t)i % 50);
			*at = p != NULL ? p : *at;
			grown += p != NULL;
			CHECK(all_are(*at, had, (unsigned char)i));
		}
		fill.live = 0;
		for (int i = 0; i < fill.n; i++)
			fill.live += malloc_usable_size(fill.p[i]);
		exact(parent, fill.live);
		CHECK(malloc_group_sum(parent, &info) == 0 && info.peak <= max);
		free(fill.p[--fill.n]);
		p = malloc(1);
		CHECK(p != NULL);
		free(p);
		while (fill.n > 0)
			free(fill.p[--fill.n]);
		exact(parent, 0);
		exact(child, 0);
		p = malloc(max / 2);
		CHECK(p != NULL);
		exact(parent, malloc_usable_size(p));
		free(p);
	}
	malloc_group_leave(before);
	CHECK(!on || (grown > 0 && grown < 1200));
	CHECK(malloc_group_destroy(parent) == (on ? -EBUSY : 0));
	CHECK(malloc_group_destroy(child) == 0 && malloc_group_destroy(parent) == 0);
	printf("limits kept\n");
}

/* The allocator itself has no memory: what was charged before it was asked is given back. */
static void no_address_space(void)
{
	size_t much = (size_t)800 << 20;
	int g = group_new("nospace", MALLOC_GROUP_ROOT, much + 4096), status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit limit;
		size_t live;
		char *p;

		(void)malloc_group_enter(g);
		p = malloc(3000);
		live = malloc_usable_size(p);
		strcpy(p, "kept");
		CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
		limit.rlim_cur = (rlim_t)256 << 20;
		CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
		errno = 0;
		CHECK(out_of_memory(realloc(p, much / 2)));
		CHECK(strcmp(p, "kept") == 0 && (!on || malloc_group_of(p) == g));
		exact(g, live);
		for (int c = 0; c < CALLS; c++) {
			errno = 0;
			CHECK(out_of_memory(call((enum call)c, 64, much)));
			exact(g, live);
		}
		free(p);
		exact(g, 0);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(malloc_group_destroy(g) == 0);
	printf("no address space: nothing charged\n");
}

/* --------------------------------------------------------------------- groups */

static void groups(void)
{
	int a, b, g[300];
	char name[32];
	void *p;

	if (on) {
		a = group_new("x.1", MALLOC_GROUP_ROOT, SIZE_MAX);
		CHECK(malloc_group_create("x.1", MALLOC_GROUP_ROOT, SIZE_MAX) == -EEXIST);
		CHECK(malloc_group_create("", 0, SIZE_MAX) == -EINVAL && malloc_group_create("a b", 0, SIZE_MAX) == -EINVAL);
		CHECK(malloc_group_create("y", 60000, SIZE_MAX) == -EINVAL && malloc_group_create(NULL, 0, 1) == -EINVAL);
		CHECK(malloc_group_find("x.1") == a && malloc_group_find("none") == -ENOENT);
		CHECK(malloc_group_enter(-1) == -EINVAL && malloc_group_enter(64000) == -EINVAL);
		CHECK(malloc_group_destroy(MALLOC_GROUP_ROOT) == -EINVAL && malloc_group_destroy(0) == -EINVAL);
		b = malloc_group_enter(a);
		p = malloc(1);
		hide = p;
		malloc_group_leave(b);
		CHECK(malloc_group_destroy(a) == -EBUSY && malloc_group_of(p) == a && malloc_group_of(&p) == -ENOENT);
		free(p);
		CHECK(malloc_group_destroy(a) == 0 && malloc_group_destroy(a) == -EINVAL && malloc_group_enter(a) == -EINVAL);
		for (int i = 0; i < 300; i++) {
			snprintf(name, sizeof(name), "many-%d", i);
			g[i] = group_new(name, i % 2 == 0 ? MALLOC_GROUP_ROOT : g[i - 1], SIZE_MAX);
		}
		for (int i = 299; i >= 0; i--) {
			b = malloc_group_enter(g[i]);
			free(malloc(100 + (size_t)i));
			malloc_group_leave(b);
			CHECK(malloc_group_destroy(g[i]) == 0);
		}
	}
	printf("groups made and ended\n");
}

/* -------------------------------------------------------------------- threads */

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
static void handed_on(void)
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
static void walked(void)
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

static void movers(void)
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

static void threads(void)
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

/* ----------------------------------------------------------------------- fork */

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

static void forks(void)
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

/* ------------------------------------------------------- before main, plugins */

static void *from_constructor;

static __attribute__((constructor(101))) void early(void)
{
	from_constructor = strdup("from a constructor");
}

/* A plugin bound to its own libraries first gets the C library's malloc, past anything preloaded. */
static void plugin(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	void *(*get)(size_t), *p;
	void (*put)(void *);
	void *f, *g;

	CHECK(lib != NULL);
	f = dlsym(lib, "plugin_get");
	g = dlsym(lib, "plugin_put");
	CHECK(f != NULL && g != NULL);
	memcpy(&get, &f, sizeof(f));
	memcpy(&put, &g, sizeof(g));
	for (size_t i = 1; i < 300; i++) {
		size_t before = bytes_of(0);

		p = get(i * 7);
		CHECK(p != NULL && malloc_usable_size(p) >= i * 7);
		p = realloc(p, i * 20);
		free(p);
		CHECK(bytes_of(0) == before);
	}
	CHECK(dlclose(lib) == 0);
	printf("plugin: its blocks were freed here\n");
}

int main(int argc, char **argv)
{
	on = malloc_group_active();
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	printf("%s\n", (char *)from_constructor);
	CHECK(!on || malloc_group_of(from_constructor) >= 0);
	free(from_constructor);
	every_call();
	refusals_of_nonsense();
	reallocs();
	from_libc();
	limits();
	no_address_space();
	groups();
	handed_on();
	walked();
	movers();
	threads();
	forks();
	if (argc > 1)
		plugin(argv[1]);
	if (on) {
		struct malloc_group_found a;

		CHECK(malloc_group_audit(0, &a) == 0 && a.difference == 0);
		exact(0, a.bytes);
	}
	return 0;
}
