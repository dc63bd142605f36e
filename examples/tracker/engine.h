/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small query engine: SELECT key, sum(value) FROM rows GROUP BY key ORDER BY sum, as three
 * operators in three threads. Blocks that the scan allocates are freed by the aggregation.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>

#include "tracker.h"

struct query {
	/* wanted */
	struct tracker *user;
	int64_t limit;       /* bytes, of the query */
	uint64_t rows, keys; /* to scan; different keys among them */
	uint64_t seed;
	/* what came of it */
	bool right;                  /* ran to its end, with the right result */
	char refused_by[32];         /* the level that ended it; "" when it ran to its end */
	uint64_t allocations, freed_elsewhere;
	int64_t peak;     /* bytes */
	uint64_t leaked;  /* bytes that an operator still had after it was told to free all: a bug */
};

/* Returns 0, or -1 with errno when the query could not even be set up. */
int query_run(struct query *q);

#endif /* ENGINE_H */
