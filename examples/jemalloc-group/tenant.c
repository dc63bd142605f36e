/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* tenant.h: the extent hooks, and what is around them. */
#include "tenant.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <jemalloc/jemalloc.h>
#include <pcbatch.h>

#define PAGE 4096u

struct tenants {
	struct pcbatch_domain domain;
	struct pcbatch_group *group;
	pthread_mutex_t lock; /* of the list */
	struct tenant *first;
};

struct tenant {
	extent_hooks_t hooks; /* first: a hook is given its address */
	struct pcbatch_group *group;
	struct tenants *all;
	struct tenant *next;
	unsigned int arena;
	bool ending; /* written before the arena is destroyed; no hook runs meanwhile */
};

/* --------------------------------------------------------------------- hooks */

/*
 * jemalloc holds locks of the arena while it calls these: so they never call jemalloc and never ask for
 * reclaim. try_charge is lock-free and allocates nothing.
 */
static struct tenant *of(extent_hooks_t *hooks)
{
	return (struct tenant *)(void *)hooks;
}

/* A limit has refused something since this thread's call of jemalloc began. */
static _Thread_local bool refused;

static bool charge(struct tenant *t, size_t bytes)
{
	if (pcbatch_group_try_charge(t->group, bytes / PAGE, 0) == 0)
		return true;
	refused = true;
	return false;
}

static void uncharge(struct tenant *t, size_t bytes)
{
	(void)pcbatch_group_uncharge(t->group, bytes / PAGE);
}

/* mmap, cut to the alignment. NULL: no memory. */
static void *map(void *at, size_t size, size_t alignment)
{
	size_t room = alignment > PAGE ? size + alignment - PAGE : size, before;
	char *p = (char *)mmap(at, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == (char *)MAP_FAILED)
		return NULL;
	/* Just there or not at all. */
	if (at != NULL && p != (char *)at) {
		(void)munmap(p, room);
		return NULL;
	}
	before = (alignment - (size_t)((uintptr_t)p & (alignment - 1))) & (alignment - 1);
	if (before != 0)
		(void)munmap(p, before);
	if (room - before > size)
		(void)munmap(p + before + size, room - before - size);
	return p + before;
}

/* jemalloc takes room in advance without committing it; that is charged when it is committed. */
static void *hook_alloc(extent_hooks_t *hooks, void *new_addr, size_t size, size_t alignment, bool *zero, bool *commit,
			unsigned arena)
{
	struct tenant *t = of(hooks);
	void *p;

	(void)arena;
	/*
	 * When the limit refuses an extent, jemalloc maps another and tries to commit that; it keeps the
	 * mapping, so refusals would use up the address space.
	 */
	if (refused || (*commit && !charge(t, size)))
		return NULL;
	p = map(new_addr, size, alignment);
	if (p == NULL && *commit)
		uncharge(t, size);
	*zero = p != NULL;
	return p;
}

/* Refusing makes jemalloc decommit the extent and retain it, which saves the next mmap. */
static bool hook_dalloc(extent_hooks_t *hooks, void *addr, size_t size, bool committed, unsigned arena)
{
	struct tenant *t = of(hooks);

	(void)arena;
	if (!t->ending || munmap(addr, size) != 0)
		return true;
	if (committed)
		uncharge(t, size);
	return false;
}

static void hook_destroy(extent_hooks_t *hooks, void *addr, size_t size, bool committed, unsigned arena)
{
	(void)arena;
	if (munmap(addr, size) == 0 && committed)
		uncharge(of(hooks), size);
}

static bool hook_commit(extent_hooks_t *hooks, void *addr, size_t size, size_t offset, size_t length, unsigned arena)
{
	(void)addr;
	(void)size;
	(void)offset;
	(void)arena;
	return !charge(of(hooks), length);
}

static bool hook_decommit(extent_hooks_t *hooks, void *addr, size_t size, size_t offset, size_t length, unsigned arena)
{
	(void)size;
	(void)arena;
	if (madvise((char *)addr + offset, length, MADV_DONTNEED) != 0)
		return true;
	uncharge(of(hooks), length);
	return false;
}

static bool hook_split(extent_hooks_t *hooks, void *addr, size_t size, size_t size_a, size_t size_b, bool committed,
		       unsigned arena)
{
	(void)hooks, (void)addr, (void)size, (void)size_a, (void)size_b, (void)committed, (void)arena;
	return false;
}

static bool hook_merge(extent_hooks_t *hooks, void *addr_a, size_t size_a, void *addr_b, size_t size_b, bool committed,
		       unsigned arena)
{
	(void)hooks, (void)addr_a, (void)size_a, (void)addr_b, (void)size_b, (void)committed, (void)arena;
	return false;
}

/*
 * No purge hooks: a purged extent would be used again without any hook being asked. Without them what
 * decays is decommitted, and asks again.
 */
static const extent_hooks_t hooks_of_a_tenant = {
	.alloc = hook_alloc,
	.dalloc = hook_dalloc,
	.destroy = hook_destroy,
	.commit = hook_commit,
	.decommit = hook_decommit,
	.split = hook_split,
	.merge = hook_merge,
};

/* ------------------------------------------------------------------ lifetime */

static int64_t pages_of(int64_t bytes)
{
	return bytes / PAGE > PCBATCH_PAGES_MAX ? PCBATCH_PAGES_MAX : bytes / PAGE;
}

struct tenants *tenants_create(int64_t max)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_group_attr limits;
	struct tenants *all = (struct tenants *)aligned_alloc(PCBATCH_CACHE_LINE, sizeof(*all));

	if (all == NULL)
		return NULL;
	(void)pcbatch_domain_attr_init(&attr);
	attr.page_size = PAGE;
	(void)pcbatch_group_attr_init(&limits);
	limits.max = pages_of(max);
	all->first = NULL;
	(void)pthread_mutex_init(&all->lock, NULL);
	if (pcbatch_domain_init(&all->domain, &attr) == 0) {
		if (pcbatch_group_create(&all->domain, NULL, &limits, &all->group) == 0)
			return all;
		(void)pcbatch_domain_destroy(&all->domain);
	}
	free(all);
	errno = ENOMEM;
	return NULL;
}

int tenants_destroy(struct tenants *all)
{
	int err = pcbatch_group_destroy(all->group);

	if (err == 0)
		err = pcbatch_domain_destroy(&all->domain);
	if (err == 0)
		free(all);
	return err;
}

/* The name of a control of one arena, as "arena.12.purge". */
static void control_name(char *name, size_t size, const char *before, unsigned int arena, const char *after)
{
	(void)snprintf(name, size, "%s.%u.%s", before, arena, after);
}

static int control(const struct tenant *t, const char *what)
{
	char name[64];

	refused = false;
	control_name(name, sizeof(name), "arena", t->arena, what);
	return mallctl(name, NULL, NULL, NULL, 0);
}

struct tenant *tenant_create(struct tenants *all, int64_t max)
{
	struct pcbatch_group_attr limits;
	struct tenant *t = (struct tenant *)calloc(1, sizeof(*t));
	extent_hooks_t *hooks = &t->hooks;
	size_t size = sizeof(t->arena);

	if (t == NULL)
		return NULL;
	t->hooks = hooks_of_a_tenant;
	t->all = all;
	(void)pcbatch_group_attr_init(&limits);
	limits.max = pages_of(max);
	if (pcbatch_group_create(&all->domain, all->group, &limits, &t->group) == 0) {
		if (mallctl("arenas.create", &t->arena, &size, &hooks, sizeof(hooks)) == 0) {
			(void)pthread_mutex_lock(&all->lock);
			t->next = all->first;
			all->first = t;
			(void)pthread_mutex_unlock(&all->lock);
			return t;
		}
		(void)pcbatch_group_destroy(t->group);
	}
	free(t);
	errno = ENOMEM;
	return NULL;
}

int tenant_destroy(struct tenant *t)
{
	struct tenant **at;
	int err;

	(void)pthread_mutex_lock(&t->all->lock);
	for (at = &t->all->first; *at != t;)
		at = &(*at)->next;
	*at = t->next;
	(void)pthread_mutex_unlock(&t->all->lock);
	t->ending = true;
	if (control(t, "destroy") != 0)
		return -EBUSY;
	err = pcbatch_group_destroy(t->group);
	if (err == 0)
		free(t);
	return err;
}

/* -------------------------------------------------------------------- blocks */

/* No thread cache: a block in one would stay charged to a tenant that has freed it. */
static int flags(const struct tenant *t)
{
	return (int)MALLOCX_ARENA(t->arena) | MALLOCX_TCACHE_NONE;
}

void tenant_purge(struct tenant *t)
{
	(void)control(t, "purge");
}

static void purge_all(struct tenants *all)
{
	struct tenant *t;

	(void)pthread_mutex_lock(&all->lock);
	for (t = all->first; t != NULL; t = t->next)
		tenant_purge(t);
	(void)pthread_mutex_unlock(&all->lock);
}

static void *attempt(struct tenant *t, void *ptr, size_t size)
{
	refused = false;
	/* jemalloc wants sizes above 0. */
	size = size == 0 ? 1 : size;
	return ptr == NULL ? mallocx(size, flags(t)) : rallocx(ptr, size, flags(t));
}

void *tenant_realloc(struct tenant *t, void *ptr, size_t size)
{
	void *p = attempt(t, ptr, size);

	if (p != NULL)
		return p;
	tenant_purge(t);
	p = attempt(t, ptr, size);
	/* The others' only when it may be their common limit. */
	if (p == NULL && refused) {
		purge_all(t->all);
		p = attempt(t, ptr, size);
	}
	if (p == NULL)
		errno = ENOMEM;
	return p;
}

void *tenant_alloc(struct tenant *t, size_t size)
{
	return tenant_realloc(t, NULL, size);
}

void tenant_free(void *ptr)
{
	refused = false;
	if (ptr != NULL)
		dallocx(ptr, MALLOCX_TCACHE_NONE);
}

/* ------------------------------------------------------------------ readings */

int tenant_set_max(struct tenant *t, int64_t max)
{
	int err = pcbatch_group_set_max(t->group, pages_of(max));

	if (err != -EBUSY)
		return err;
	tenant_purge(t);
	return pcbatch_group_set_max(t->group, pages_of(max));
}

static size_t stat(const struct tenant *t, const char *what)
{
	size_t value = 0, size = sizeof(value);
	char name[64];

	control_name(name, sizeof(name), "stats.arenas", t->arena, what);
	return mallctl(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

struct tenant_usage tenant_usage(struct tenant *t)
{
	struct tenant_usage u;
	uint64_t epoch = 1;
	size_t size = sizeof(epoch);

	(void)mallctl("epoch", &epoch, &size, &epoch, size);
	if (pcbatch_group_bytes(t->group, &u.charged) != 0)
		u.charged = pcbatch_group_current(t->group) * PAGE;
	u.peak = pcbatch_group_peak(t->group) * PAGE;
	u.limit = pcbatch_group_max(t->group) == PCBATCH_PAGES_MAX ? INT64_MAX : pcbatch_group_max(t->group) * PAGE;
	u.mapped = stat(t, "mapped");
	u.active = stat(t, "pactive") * PAGE;
	u.dirty = stat(t, "pdirty") * PAGE;
	u.retained = stat(t, "retained");
	u.refused = pcbatch_group_event(t->group, PCBATCH_EVENT_FAIL);
	return u;
}

int64_t tenants_charged(struct tenants *all)
{
	int64_t bytes;

	return pcbatch_group_bytes(all->group, &bytes) == 0 ? bytes : pcbatch_group_current(all->group) * PAGE;
}

int64_t tenants_peak(const struct tenants *all)
{
	return pcbatch_group_peak(all->group) * PAGE;
}
