/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server with two users who run queries side by side. Some queries fit, some meet their own
 * limit, some their user's, some the server's; those end there and nobody else notices. Checks that
 * no level ever was above its limit, that a refusal changed nothing, and that nothing is left.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

#define MIB (INT64_C(1) << 20)
#define USERS 2

struct options {
	unsigned long queries; /* a user */
	unsigned long rows;
	bool json;
};

struct user {
	struct tracker *tracker;
	const struct options *o;
	unsigned int index;
	uint64_t right, by_query, by_user, by_server, wrong;
	uint64_t allocations, freed_elsewhere;
	int64_t query_peak;
};

static int failures;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	failures++;
	(void)fprintf(stderr, "tracker: %s\n", what);
}

/* ------------------------------------------------------------------ roll-back */

/*
 * One level after the other has no room, for an allocation at the leaf: it must be refused there, and
 * every level must be to the byte what it was.
 */
static void refuse_at_each_level(void)
{
	static const char *const name[4] = { "server", "user", "query", "operator" };
	struct tracker *t[4], *refused;
	int64_t before[4];
	void *kept;
	int i, level;

	for (i = 0; i < 4; i++) {
		t[i] = tracker_create(i == 0 ? NULL : t[i - 1], name[i], TRACKER_NO_LIMIT);
		if (t[i] == NULL) {
			perror("tracker: create");
			exit(1);
		}
	}
	kept = tracker_alloc(t[3], 100000, NULL);
	check(kept != NULL, "an allocation without limits was refused");
	for (level = 0; level < 4; level++) {
		check(tracker_set_limit(t[level], 50000) == -EBUSY, "a limit below what is in use was accepted");
		check(tracker_set_limit(t[level], MIB) == 0, "a limit above what is in use was not accepted");
		for (i = 0; i < 4; i++)
			before[i] = tracker_used_exact(t[i]);
		errno = 0;
		check(tracker_alloc(t[3], (size_t)MIB, &refused) == NULL && errno == ENOMEM, "an allocation above a limit was granted");
		check(refused == t[level] && tracker_refusals(t[level]) == 1, "the wrong level is blamed");
		for (i = 0; i < 4; i++)
			check(tracker_used_exact(t[i]) == before[i], "a refused allocation has changed a level");
		check(tracker_realloc(t[3], kept, (size_t)MIB, &refused) == NULL, "a realloc above a limit was granted");
		check(tracker_set_limit(t[level], TRACKER_NO_LIMIT) == 0, "a limit was not lifted");
	}
	check(tracker_destroy(t[3]) == -EBUSY && tracker_destroy(t[0]) == -EBUSY, "a tracker with blocks was destroyed");
	tracker_free(kept);
	for (i = 4; i-- > 0;)
		check(tracker_used_exact(t[i]) == 0 && tracker_destroy(t[i]) == 0, "something is left");
}

/* -------------------------------------------------------------------- queries */

/* Every third query has a limit that it can't meet; every other asks for more than its user has beside others. */
static void *run_queries(void *arg)
{
	struct user *u = (struct user *)arg;
	unsigned long i;

	for (i = 0; i < u->o->queries; i++) {
		struct query q;

		memset(&q, 0, sizeof(q));
		q.user = u->tracker;
		q.limit = i % 3 == 2 ? MIB : 64 * MIB;
		q.rows = u->o->rows;
		q.keys = 1000 + 20000 * (i % 4);
		q.seed = 1000 * u->index + i;
		if (query_run(&q) != 0) {
			u->wrong++;
			continue;
		}
		u->right += q.right;
		u->by_query += strcmp(q.refused_by, "query") == 0;
		u->by_user += strncmp(q.refused_by, "user", 4) == 0;
		u->by_server += strcmp(q.refused_by, "server") == 0;
		u->wrong += (!q.right && q.refused_by[0] == '\0') || q.leaked != 0 || q.peak > q.limit;
		u->allocations += q.allocations;
		u->freed_elsewhere += q.freed_elsewhere;
		if (q.peak > u->query_peak)
			u->query_peak = q.peak;
	}
	return NULL;
}

static void print_level(const struct options *o, const struct tracker *t, bool first)
{
	const char *format = o->json ? "%s{\"level\":\"%s\",\"limit\":%lld,\"peak\":%lld,\"slack\":%lld,\"refusals\":%llu}"
				     : "%s%-10s %12lld %12lld %12lld %10llu\n";

	(void)printf(format, o->json && !first ? "," : "", tracker_name(t), (long long)tracker_limit(t), (long long)tracker_peak(t),
		     (long long)tracker_slack(t), (unsigned long long)tracker_refusals(t));
}

static void print(const struct options *o, struct tracker *server, const struct user user[USERS])
{
	unsigned long long sum[6] = { 0 };
	int i;

	if (!o->json)
		(void)printf("%-10s %12s %12s %12s %10s\n", "level", "limit", "peak", "slack", "refusals");
	else
		(void)printf("{\"levels\":[");
	print_level(o, server, true);
	for (i = 0; i < USERS; i++) {
		print_level(o, user[i].tracker, false);
		sum[0] += user[i].right;
		sum[1] += user[i].by_query;
		sum[2] += user[i].by_user;
		sum[3] += user[i].by_server;
		sum[4] += user[i].allocations;
		sum[5] += user[i].freed_elsewhere;
	}
	(void)printf(o->json ? "],\"right\":%llu,\"by_query\":%llu,\"by_user\":%llu,\"by_server\":%llu,\"allocations\":%llu,"
			       "\"freed_by_another_thread\":%llu,\"failures\":%d}\n"
			     : "\nqueries: %llu right; refused by their own limit %llu, their user's %llu, the server's %llu\n"
			       "%llu allocations, %llu blocks freed by another thread than theirs; %d failures\n",
		     sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], failures);
}

static void run_users(const struct options *o)
{
	struct tracker *server = tracker_create(NULL, "server", 6 * MIB);
	pthread_t thread[2 * USERS];
	struct user user[2 * USERS];
	int i;

	memset(user, 0, sizeof(user));
	for (i = 0; i < USERS; i++)
		user[i].tracker = server == NULL ? NULL : tracker_create(server, i == 0 ? "user-a" : "user-b", (3 + i) * MIB);
	if (server == NULL || user[0].tracker == NULL || user[1].tracker == NULL) {
		perror("tracker: create");
		exit(1);
	}
	/* Two sessions a user. */
	for (i = 0; i < 2 * USERS; i++) {
		user[i].tracker = user[i % USERS].tracker;
		user[i].o = o;
		user[i].index = (unsigned int)i;
		if (pthread_create(&thread[i], NULL, run_queries, &user[i]) != 0) {
			(void)fprintf(stderr, "tracker: can't start a thread\n");
			exit(1);
		}
	}
	for (i = 0; i < 2 * USERS; i++) {
		(void)pthread_join(thread[i], NULL);
		check(user[i].wrong == 0, "a query had a wrong result, left memory behind or passed its limit");
		if (i < USERS)
			continue;
		user[i - USERS].right += user[i].right;
		user[i - USERS].by_query += user[i].by_query;
		user[i - USERS].by_user += user[i].by_user;
		user[i - USERS].by_server += user[i].by_server;
		user[i - USERS].allocations += user[i].allocations;
		user[i - USERS].freed_elsewhere += user[i].freed_elsewhere;
	}
	check(tracker_peak(server) <= tracker_limit(server), "the server passed its limit");
	check(tracker_used_exact(server) == 0, "something is left at the end");
	for (i = 0; i < USERS; i++)
		check(tracker_peak(user[i].tracker) <= tracker_limit(user[i].tracker), "a user passed the limit");
	print(o, server, user);
	for (i = 0; i < USERS; i++)
		check(tracker_destroy(user[i].tracker) == 0, "a user's tracker can't be destroyed");
	check(tracker_destroy(server) == 0, "the server's tracker can't be destroyed");
}

/* -------------------------------------------------------------------- options */

static bool number(const char *name, const char *text, unsigned long max, unsigned long *out)
{
	char *end = NULL;
	unsigned long value = text == NULL || *text < '0' || *text > '9' ? 0 : strtoul(text, &end, 10);

	if (end != NULL && *end == '\0' && value >= 1 && value <= max) {
		*out = value;
		return true;
	}
	(void)fprintf(stderr, "tracker: %s wants a number from 1 to %lu, not '%s'\n", name, max, text == NULL ? "" : text);
	return false;
}

int main(int argc, char **argv)
{
	struct options o = { 12, 200000, false };
	bool right = true;
	int i;

	for (i = 1; i < argc && right; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--json") == 0)
			o.json = true;
		else if (strcmp(argv[i], "--queries") == 0)
			right = number(argv[i++], value, 100000, &o.queries);
		else if (strcmp(argv[i], "--rows") == 0)
			right = number(argv[i++], value, 100000000, &o.rows);
		else
			right = false;
	}
	if (!right) {
		(void)fprintf(stderr, "usage: tracker [--queries 1..100000] [--rows 1..100000000] [--json]\n"
				      "Two users, two sessions each, run queries (a session, default 12) over rows (a query, default\n"
				      "200000) below limits of the query, the user and the server.\n");
		return 2;
	}
	refuse_at_each_level();
	run_users(&o);
	return failures != 0;
}
