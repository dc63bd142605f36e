/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory tracker of a query engine: a tree (server, user, query, operator) with a limit at
 * every level. A block is charged to an operator and all above it before it is allocated, and
 * remembers its tracker, so that any thread may free it. A refused allocation has changed nothing
 * at any level. Any number of threads; nothing is a thread's, so nothing is lost when one ends.
 */
#ifndef TRACKER_H
#define TRACKER_H

#include <stddef.h>
#include <stdint.h>

struct tracker;

#define TRACKER_NO_LIMIT INT64_MAX

/*
 * Makes a tracker below parent; a NULL parent makes the root of a new tree. limit: bytes, 0 to
 * TRACKER_NO_LIMIT, rounded down to pages. name is copied.
 *
 * Returns: the tracker; NULL with errno EINVAL (limit, name) or ENOMEM.
 */
struct tracker *tracker_create(struct tracker *parent, const char *name, int64_t limit);

/* Returns 0; -EBUSY blocks or trackers below it remain. Not while another call uses t. */
int tracker_destroy(struct tracker *t);

/*
 * As malloc. NULL with errno ENOMEM when a level refuses or there is no memory.
 * *refused (may be NULL) gets the level whose limit was in the way, NULL when it was none.
 */
void *tracker_alloc(struct tracker *t, size_t size, struct tracker **refused);

/* As realloc, the block staying its tracker's; on failure the old block stays as it was. */
void *tracker_realloc(struct tracker *t, void *ptr, size_t size, struct tracker **refused);

/* From any thread; NULL does nothing. */
void tracker_free(void *ptr);

const char *tracker_name(const struct tracker *t);
int64_t tracker_limit(const struct tracker *t);

/* 0; -EBUSY more than that is in use. limit: as for create. */
int tracker_set_limit(struct tracker *t, int64_t limit);

/* Bytes in use by the level and all below: cheap, never too low, at most slack too high. */
int64_t tracker_used(const struct tracker *t);
int64_t tracker_slack(const struct tracker *t);

/* To the byte; walks the CPUs. */
int64_t tracker_used_exact(struct tracker *t);

/* The highest tracker_used that was granted. */
int64_t tracker_peak(const struct tracker *t);

/* How often this level's limit refused an allocation. */
uint64_t tracker_refusals(const struct tracker *t);

#endif /* TRACKER_H */
