/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two groups in one program: a cache that may have 8 MiB, and requests that may have
 * what is left. Run it with and without the shared object:
 *	LD_PRELOAD=build/examples/libpcbatch-malloc.so build/examples/malloc-group-demo
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "malloc_group.h"

#define ENTRIES 4096
#define ENTRY 4000

static void *entry[ENTRIES];

/* Another thread, in no group of its own: what it frees is given back to the group that had it. */
static void *drop_half(void *arg)
{
	for (int i = 0; i < ENTRIES; i += 2) {
		free(entry[i]);
		entry[i] = NULL;
	}
	return arg;
}

static void show(const char *what, int group)
{
	struct malloc_group_info info;

	malloc_group_sum(group, &info);
	printf("%-24s %8zu bytes, peak %8zu\n", what, info.bytes, info.peak);
}

int main(void)
{
	int cache = malloc_group_create("cache", MALLOC_GROUP_ROOT, (size_t)8 << 20);
	int requests = malloc_group_create("requests", MALLOC_GROUP_ROOT, MALLOC_GROUP_NO_LIMIT);
	int previous, kept = 0;
	pthread_t thread;
	char *reply;

	printf("accounting: %s\n", malloc_group_active() ? "on" : "off");
	previous = malloc_group_enter(cache);
	while (kept < ENTRIES && (entry[kept] = malloc(ENTRY)) != NULL)
		memset(entry[kept++], 1, ENTRY);
	malloc_group_leave(previous);
	printf("the cache could keep %s entries of %d\n", kept < ENTRIES ? "some" : "all", ENTRIES);
	show("cache, filled", cache);

	previous = malloc_group_enter(requests);
	reply = malloc(100000);
	malloc_group_leave(previous);
	show("requests, one under way", requests);

	if (reply == NULL || pthread_create(&thread, NULL, drop_half, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	show("cache, half", cache);
	for (int i = 1; i < ENTRIES; i += 2)
		free(entry[i]);
	free(reply);
	show("cache, empty", cache);
	show("requests, none", requests);
	return malloc_group_destroy(cache) != 0 || malloc_group_destroy(requests) != 0;
}
