/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An arena of jemalloc's for each tenant, with a group that its extents are charged to: memory that
 * the arena maps and commits, in pages. A tenant's limit and that of all tenants together surface as
 * allocations that fail. What jemalloc keeps mapped but decommitted (retained) is not charged; what it
 * keeps ready (dirty) is, until it decays or a refusal has it purged.
 */
#ifndef TENANT_H
#define TENANT_H

#include <stddef.h>
#include <stdint.h>

struct tenants; /* what all tenants share: a domain and the parent group */
struct tenant;

/* What jemalloc says of an arena, and the group of the same moment. All in bytes. */
struct tenant_usage {
	int64_t charged, peak, limit; /* the group */
	size_t mapped;                /* base, active, dirty and muzzy */
	size_t active, dirty, retained;
	uint64_t refused; /* extents that a limit refused */
};

/* max: bytes for all tenants together, INT64_MAX for none. NULL with errno ENOMEM. */
struct tenants *tenants_create(int64_t max);

/* 0; -EBUSY a tenant remains. */
int tenants_destroy(struct tenants *all);
int64_t tenants_charged(struct tenants *all);
int64_t tenants_peak(const struct tenants *all);

/* max: bytes, INT64_MAX for none. NULL with errno ENOMEM. An arena takes about 2 MiB for itself. */
struct tenant *tenant_create(struct tenants *all, int64_t max);

/* Frees what the tenant still has allocated, gives all its memory back and ends it: 0, or -EBUSY when charges remain. */
int tenant_destroy(struct tenant *t);

/*
 * As malloc and free. When a limit is in the way, what the tenant keeps ready is purged, then what the
 * others do, before NULL (errno ENOMEM) is returned. Freed from any thread.
 */
void *tenant_alloc(struct tenant *t, size_t size);
void *tenant_realloc(struct tenant *t, void *ptr, size_t size);
void tenant_free(void *ptr);

/* 0; -EBUSY more is charged, also after purging. max: bytes. */
int tenant_set_max(struct tenant *t, int64_t max);

/* Gives back what the arena keeps ready. */
void tenant_purge(struct tenant *t);

struct tenant_usage tenant_usage(struct tenant *t);

#endif /* TENANT_H */
