/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* zmalloc.h on the C library's malloc; what is counted is what malloc_usable_size says. */
#include "zmalloc.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* used_add, used_sub, used_read, used_sum, used_slack, used_name, all static inline. */
#ifndef ZMALLOC_USED
#define ZMALLOC_USED "used_pcbatch.h"
#endif
#include ZMALLOC_USED

static void default_oom(size_t size)
{
	(void)fprintf(stderr, "zmalloc: out of memory for %zu bytes\n", size);
	abort();
}

static void (*oom_handler)(size_t) = default_oom;

void ZMALLOC_NAME(zmalloc_set_oom_handler)(void (*handler)(size_t size))
{
	oom_handler = handler == NULL ? default_oom : handler;
}

static inline void *counted(void *ptr)
{
	if (ptr != NULL)
		used_add(malloc_usable_size(ptr));
	return ptr;
}

static inline void *or_oom(void *ptr, size_t size)
{
	if (__builtin_expect(ptr == NULL, 0))
		oom_handler(size);
	return ptr;
}

void *ZMALLOC_NAME(ztrymalloc)(size_t size)
{
	/* malloc(0) may be NULL, which would look like a failure. */
	return counted(malloc(size == 0 ? 1 : size));
}

void *ZMALLOC_NAME(zmalloc)(size_t size)
{
	return or_oom(counted(malloc(size == 0 ? 1 : size)), size);
}

void *ZMALLOC_NAME(zcalloc)(size_t n, size_t size)
{
	bool empty = n == 0 || size == 0;

	return or_oom(counted(calloc(empty ? 1 : n, empty ? 1 : size)), n > SIZE_MAX / (empty ? 1 : size) ? SIZE_MAX : n * size);
}

void *ZMALLOC_NAME(ztryrealloc)(void *ptr, size_t size)
{
	size_t before = ptr == NULL ? 0 : malloc_usable_size(ptr), after;
	void *moved = realloc(ptr, size == 0 ? 1 : size);

	if (moved == NULL)
		return NULL;
	after = malloc_usable_size(moved);
	if (after > before)
		used_add(after - before);
	else if (after < before)
		used_sub(before - after);
	return moved;
}

void *ZMALLOC_NAME(zrealloc)(void *ptr, size_t size)
{
	return or_oom(ZMALLOC_NAME(ztryrealloc)(ptr, size), size);
}

void ZMALLOC_NAME(zfree)(void *ptr)
{
	if (ptr == NULL)
		return;
	used_sub(malloc_usable_size(ptr));
	free(ptr);
}

char *ZMALLOC_NAME(zstrdup)(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = (char *)ZMALLOC_NAME(zmalloc)(size);

	return copy == NULL ? NULL : (char *)memcpy(copy, text, size);
}

size_t ZMALLOC_NAME(zmalloc_used_memory)(void)
{
	return used_read();
}

size_t ZMALLOC_NAME(zmalloc_used_memory_exact)(void)
{
	return used_sum();
}

size_t ZMALLOC_NAME(zmalloc_used_slack)(void)
{
	return used_slack();
}

const char *ZMALLOC_NAME(zmalloc_counter)(void)
{
	return used_name();
}

struct zmalloc_state ZMALLOC_NAME(zmalloc_state)(size_t max)
{
	struct zmalloc_state state = { used_read(), 0 };

	if (state.used > max)
		state.excess = state.used - max;
	return state;
}
