/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* family_calls.c - each function of the family, at all sizes and alignments; realloc; blocks from inside the C library. */
#include "family.h"

static const char *const call_names[] = { "malloc",	    "calloc",	     "realloc", "reallocarray", "memalign",
					  "posix_memalign", "aligned_alloc", "valloc",	"pvalloc" };

static bool takes_align(enum call c)
{
	return c == MEMALIGN || c == POSIX_MEMALIGN || c == ALIGNED_ALLOC;
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

void every_call(void)
{
	for (int c = 0; c < CALLS; c++) {
		size_t n = takes_align((enum call)c) ? COUNT(aligns) : 1;

		for (size_t a = 0; a < n; a++)
			one_call((enum call)c, aligns[a]);
		printf("%s: %zu alignments, %zu sizes\n", call_names[c], n, COUNT(sizes));
	}
}

void refusals_of_nonsense(void)
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

void reallocs(void)
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
void from_libc(void)
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
