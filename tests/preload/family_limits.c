/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* family_limits.c - at a limit each call fails like the real thing and changes nothing; groups and what they refuse. */
#include "family.h"

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

void limits(void)
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
void no_address_space(void)
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

void groups(void)
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
