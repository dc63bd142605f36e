/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three tenants below one limit, each with an arena of jemalloc's and a limit of its own. Loads
 * them from several threads, compares what is charged with what jemalloc says it has mapped, and
 * goes through refusals, purging and the end of a tenant. Exit status 1 when anything is not as it must be.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenant.h"

#define MIB (INT64_C(1) << 20)
#define TENANTS 3
#define WORKERS 2 /* a tenant */
#define BLOCKS 4096

static const int64_t limit_of[TENANTS] = { 16 * MIB, 32 * MIB, INT64_MAX };
static const char *const name_of[TENANTS] = { "small", "middle", "open" };
#define LIMIT_OF_ALL (64 * MIB)

struct worker {
	struct tenant *tenant;
	_Atomic(void *) *mailbox; /* one for all: blocks that one thread gives another to free */
	void *block[BLOCKS];
	uint64_t operations, seed, refused;
};

static struct worker worker[TENANTS][WORKERS];
static _Atomic(void *) mailbox;
static int failures;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	failures++;
	(void)fprintf(stderr, "jemalloc-group: %s\n", what);
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* Mostly small; one in 32 larger than jemalloc's size classes for small blocks. */
static size_t block_size(uint64_t *seed)
{
	uint32_t random = next_random(seed);

	return random % 32 == 0 ? 16384 + random / 32 % 200000 : 1 + random / 32 % 6000;
}

static void *work(void *arg)
{
	struct worker *w = (struct worker *)arg;
	uint64_t i;

	for (i = 0; i < w->operations; i++) {
		void **block = &w->block[next_random(&w->seed) % BLOCKS], *p;
		size_t size = block_size(&w->seed);

		if (*block != NULL && next_random(&w->seed) % 4 == 0) {
			/* Any tenant's block, any tenant's thread. */
			tenant_free(atomic_exchange(w->mailbox, *block));
			*block = NULL;
			continue;
		}
		p = tenant_realloc(w->tenant, *block, size);
		if (p == NULL) {
			w->refused++;
			tenant_free(*block);
			*block = NULL;
			continue;
		}
		memset(p, 1, size);
		*block = p;
	}
	return NULL;
}

static void load(struct tenant *t[TENANTS], uint64_t operations)
{
	pthread_t thread[TENANTS][WORKERS];
	int i, k;

	for (i = 0; i < TENANTS; i++)
		for (k = 0; k < WORKERS; k++) {
			worker[i][k].tenant = t[i];
			worker[i][k].mailbox = &mailbox;
			worker[i][k].operations = operations;
			worker[i][k].seed = (uint64_t)(i * WORKERS + k + 1);
			if (pthread_create(&thread[i][k], NULL, work, &worker[i][k]) != 0) {
				(void)fprintf(stderr, "jemalloc-group: can't start a thread\n");
				exit(1);
			}
		}
	for (i = 0; i < TENANTS; i++)
		for (k = 0; k < WORKERS; k++)
			(void)pthread_join(thread[i][k], NULL);
	tenant_free(atomic_exchange(&mailbox, NULL));
}

static void unload(int tenant)
{
	int k, b;

	for (k = 0; k < WORKERS; k++)
		for (b = 0; b < BLOCKS; b++) {
			tenant_free(worker[tenant][k].block[b]);
			worker[tenant][k].block[b] = NULL;
		}
}

/* With no thread at work: the groups and jemalloc agree to the byte, and the tenants add up to their parent. */
static void audit(struct tenants *all, struct tenant *t[TENANTS], const char *when, bool json)
{
	static bool first = true;
	int64_t sum = 0;
	int i;

	for (i = 0; i < TENANTS; i++) {
		struct tenant_usage u = tenant_usage(t[i]);
		uint64_t refused = worker[i][0].refused + worker[i][1].refused;

		check(u.charged == (int64_t)u.mapped, "what is charged is not what is mapped");
		check(u.peak <= limit_of[i], "a tenant passed its limit");
		sum += u.charged;
		if (json)
			(void)printf("%s\n{\"when\":\"%s\",\"tenant\":\"%s\",\"charged\":%lld,\"mapped\":%zu,\"active\":%zu,\"dirty\":%zu,"
				     "\"retained\":%zu,\"peak\":%lld,\"failed\":%llu}",
				     first ? "" : ",", when, name_of[i], (long long)u.charged, u.mapped, u.active, u.dirty, u.retained,
				     (long long)u.peak, (unsigned long long)refused);
		else
			(void)printf("%-10s %-8s %10lld %10zu %10zu %10zu %10zu %10lld %8llu\n", when, name_of[i],
				     (long long)u.charged / 1024, u.mapped / 1024, u.active / 1024, u.dirty / 1024, u.retained / 1024,
				     (long long)u.peak / 1024, (unsigned long long)refused);
		first = false;
	}
	check(sum == tenants_charged(all), "the tenants don't add up to their parent");
	check(tenants_peak(all) <= LIMIT_OF_ALL, "the tenants passed their common limit");
}

/* The last one may have all that is left, once the others' idle pages are purged, and not a page more. */
static void common_limit(struct tenants *all, struct tenant *t[TENANTS])
{
	size_t idle = tenant_usage(t[1]).dirty, room;
	void *p;

	check(idle > 0, "nothing is dirty after a tenant has freed all");
	tenant_purge(t[2]);
	room = (size_t)(LIMIT_OF_ALL - tenants_charged(all));
	p = tenant_alloc(t[2], room + idle / 2);
	check(p != NULL, "what another tenant keeps ready was not purged at the common limit");
	check(tenant_usage(t[1]).dirty == 0, "there was room without purging");
	errno = 0;
	check(tenant_alloc(t[2], room + idle) == NULL && errno == ENOMEM, "the common limit was passed");
	tenant_free(p);
	p = tenant_alloc(t[2], 1000);
	check(p != NULL, "nothing can be allocated after a refusal");
	tenant_free(p);
}

static void own_limit(struct tenant *t)
{
	void *p = tenant_alloc(t, (size_t)MIB);

	check(p != NULL, "a small allocation failed");
	check(tenant_set_max(t, MIB) == -EBUSY, "a limit below what is in use was accepted");
	tenant_free(p);
	check(tenant_set_max(t, 3 * MIB) == 0, "a limit that purging makes possible was refused");
	check(tenant_alloc(t, (size_t)(2 * MIB)) == NULL, "a tenant passed its new limit");
}

static uint64_t number(const char *text)
{
	char *end = NULL;
	unsigned long value = *text < '0' || *text > '9' ? 0 : strtoul(text, &end, 10);

	if (end != NULL && *end == '\0' && value >= 1 && value <= 1000000000)
		return value;
	(void)fprintf(stderr, "jemalloc-group: --operations wants a number from 1 to 1000000000, not '%s'\n", text);
	return 0;
}

int main(int argc, char **argv)
{
	struct tenant *t[TENANTS];
	struct tenants *all = tenants_create(LIMIT_OF_ALL);
	uint64_t operations = 60000;
	bool json = false;
	int i;

	for (i = 1; i < argc && operations != 0; i++) {
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else
			operations = strcmp(argv[i], "--operations") == 0 && i + 1 < argc ? number(argv[++i]) : 0;
	}
	if (operations == 0) {
		(void)fprintf(stderr, "usage: jemalloc-group [--operations 1..1000000000] [--json]\n");
		return 2;
	}
	for (i = 0; i < TENANTS; i++) {
		t[i] = all == NULL ? NULL : tenant_create(all, limit_of[i]);
		if (t[i] == NULL) {
			perror("jemalloc-group: create");
			return 1;
		}
	}
	if (json)
		(void)printf("{\"rows\":[");
	else
		(void)printf("%-10s %-8s %10s %10s %10s %10s %10s %10s %8s   KiB\n", "when", "tenant", "charged", "mapped", "active",
			     "dirty", "retained", "peak", "failed");
	load(t, operations);
	audit(all, t, "loaded", json);
	unload(1);
	common_limit(all, t);
	audit(all, t, "refused", json);
	unload(0);
	unload(2);
	own_limit(t[0]);
	for (i = 0; i < TENANTS; i++)
		tenant_purge(t[i]);
	audit(all, t, "purged", json);
	/* An arena's end frees what its tenant forgot. */
	check(tenant_alloc(t[1], 100000) != NULL, "an allocation failed");
	for (i = 0; i < TENANTS; i++)
		check(tenant_destroy(t[i]) == 0, "a tenant can't be destroyed");
	check(tenants_charged(all) == 0, "something is charged without a tenant");
	check(tenants_destroy(all) == 0, "the parent can't be destroyed");
	(void)printf(json ? "],\"failures\":%d}\n" : "%d failures\n", failures);
	return failures != 0;
}
