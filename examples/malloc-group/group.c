/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* group.c - what malloc_group.h asks for, and the walk of the heap. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "tag.h"

/* The holder's pid, so that a child can take over what a thread held that it has no copy of. */
static uint64_t group_lock;

void shim_lock(void)
{
	uint64_t self = (uint64_t)getpid(), holder;

	for (;;) {
		holder = __atomic_load_n(&group_lock, __ATOMIC_RELAXED);
		if (holder != self &&
		    __atomic_compare_exchange_n(&group_lock, &holder, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		(void)sched_yield();
	}
}

void shim_unlock(void)
{
	__atomic_store_n(&group_lock, 0, __ATOMIC_RELEASE);
}

/* Bytes of pages charged, less those of started pages that belong to no block: live bytes once slots are drained. */
uint64_t shim_bytes(struct pcbatch_group *g)
{
	uint64_t pages = (uint64_t)pcbatch_group_current(g) * SHIM_PAGE;
	uint64_t rest = __atomic_load_n(&g->owner.remainder, __ATOMIC_RELAXED);

	return pages > rest ? pages - rest : 0;
}

static struct pcbatch_group *group_at(int id)
{
	if (!shim_ready() || id < 0 || (uint32_t)id >= __atomic_load_n(&shim_groups, __ATOMIC_ACQUIRE))
		return NULL;
	return __atomic_load_n(&shim_group[id], __ATOMIC_ACQUIRE);
}

static int64_t to_pages(uint64_t bytes)
{
	return bytes / SHIM_PAGE > (uint64_t)PCBATCH_PAGES_MAX ? PCBATCH_PAGES_MAX : (int64_t)(bytes / SHIM_PAGE);
}

static size_t to_bytes(int64_t pages)
{
	return pages >= PCBATCH_PAGES_MAX ? MALLOC_GROUP_NO_LIMIT : (size_t)pages * SHIM_PAGE;
}

static int find_name(const char *name)
{
	uint32_t i;

	for (i = 0; i < shim_groups; i++)
		if (shim_group[i] != NULL && strcmp(shim_names[i].text, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* The group's number; the lock is held. */
static int add(const char *name, int parent, uint64_t max)
{
	struct pcbatch_group_attr attr;
	struct pcbatch_group *g = NULL;
	uint32_t id;
	int err;

	(void)pcbatch_group_attr_init(&attr);
	attr.max = to_pages(max);
	for (id = 2; id < shim_groups && shim_group[id] != NULL; id++)
		;
	if (id >= SHIM_GROUPS)
		return -ENOSPC;
	err = pcbatch_group_create(&shim_domain, shim_group[parent], &attr, &g);
	if (err != 0)
		return err;
	memcpy(shim_names[id].text, name, strlen(name) + 1);
	shim_parent[id] = parent;
	__atomic_store_n(&shim_group[id], g, __ATOMIC_RELEASE);
	if (id == shim_groups)
		__atomic_store_n(&shim_groups, id + 1, __ATOMIC_RELEASE);
	return (int)id;
}

int shim_root_add(void)
{
	struct pcbatch_group_attr attr;
	struct pcbatch_group *root = NULL, *own = NULL;
	int err;

	(void)pcbatch_group_attr_init(&attr);
	attr.max = to_pages(shim_config.max);
	attr.high = to_pages(shim_config.high);
	err = pcbatch_group_create(&shim_domain, NULL, &attr, &root);
	own = root;
	if (err == 0 && shim_config.group[0] != '\0')
		err = pcbatch_group_create(&shim_domain, root, NULL, &own);
	if (err != 0)
		return err;
	memcpy(shim_names[1].text, "/", 2);
	memcpy(shim_names[0].text, own == root ? "/" : shim_config.group, own == root ? 2 : SHIM_NAME);
	shim_parent[1] = -1;
	shim_parent[0] = own == root ? -1 : 1;
	shim_groups = 2;
	__atomic_store_n(&shim_group[1], root, __ATOMIC_RELEASE);
	/* Last of all: see shim.h. */
	__atomic_store_n(&shim_group[0], own, __ATOMIC_RELEASE);
	return 0;
}

/* ------------------------------------------------------------------------ API */

static int api_create(const char *name, int parent, size_t max)
{
	int id;

	if (name == NULL || !shim_name_valid(name) || group_at(parent) == NULL)
		return -EINVAL;
	shim_lock();
	id = find_name(name) >= 0 ? -EEXIST : add(name, parent, max);
	shim_unlock();
	return id;
}

static int api_destroy(int id)
{
	struct pcbatch_group *g;
	int err;

	if (id < 2 || group_at(id) == NULL)
		return -EINVAL;
	shim_lock();
	g = shim_group[id];
	err = g == NULL ? -EINVAL : pcbatch_group_destroy(g);
	if (err == 0 || err == -ERANGE) {
		__atomic_store_n(&shim_group[id], NULL, __ATOMIC_RELEASE);
		shim_names[id].text[0] = '\0';
		err = 0;
	}
	shim_unlock();
	return err;
}

static int api_enter(int id)
{
	int before = (int)shim_here;

	if (group_at(id) == NULL)
		return -EINVAL;
	shim_here = (uint32_t)id;
	return before;
}

static int api_current(void)
{
	return (int)shim_here;
}

static int api_find(const char *name)
{
	int id;

	if (name == NULL || !shim_ready())
		return -ENOENT;
	shim_lock();
	id = find_name(name);
	shim_unlock();
	return id;
}

static int api_of(const void *block)
{
	const uint16_t *tag = block == NULL ? NULL : tag_of(block);

	return tag == NULL || tag_load(tag) == 0 ? -ENOENT : tag_load(tag) - 1;
}

static int api_set_max(int id, size_t max)
{
	struct pcbatch_group *g = group_at(id);

	return g == NULL ? -EINVAL : pcbatch_group_set_max(g, to_pages(max));
}

static int api_set_high(int id, size_t high)
{
	struct pcbatch_group *g = group_at(id);

	return g == NULL ? -EINVAL : pcbatch_group_set_high(g, to_pages(high));
}

int shim_group_info(int id, struct malloc_group_info *out)
{
	struct pcbatch_group *g = group_at(id);

	if (g == NULL || out == NULL)
		return -EINVAL;
	memcpy(out->name, shim_names[id].text, SHIM_NAME);
	out->parent = shim_parent[id];
	out->bytes = shim_bytes(g);
	out->peak = (size_t)pcbatch_group_peak(g) * SHIM_PAGE;
	out->max = to_bytes(pcbatch_group_max(g));
	out->high = to_bytes(pcbatch_group_high(g));
	out->refused = pcbatch_group_event(g, PCBATCH_EVENT_FAIL);
	out->events_high = pcbatch_group_event(g, PCBATCH_EVENT_HIGH);
	out->events_max = pcbatch_group_event(g, PCBATCH_EVENT_MAX);
	out->failcnt = pcbatch_group_failcnt(g);
	return 0;
}

/* One pass over all groups: what of each group's pages is in a remainder below it, or in pages of its children. */
void shim_tally(struct shim_tally *tally)
{
	uint32_t i, n = __atomic_load_n(&shim_groups, __ATOMIC_ACQUIRE);
	int32_t up;

	memset(tally, 0, sizeof(*tally) * n);
	for (i = 0; i < n; i++) {
		struct pcbatch_group *g = shim_group[i];
		uint64_t rest;

		/* The root may have two numbers; the other one is a copy. */
		if (g == NULL || (i == 0 && g == shim_group[1]) || shim_parent[i] < 0)
			continue;
		rest = __atomic_load_n(&g->owner.remainder, __ATOMIC_RELAXED);
		tally[shim_parent[i]].children += (uint64_t)pcbatch_group_current(g) * SHIM_PAGE;
		for (up = shim_parent[i]; up >= 0; up = shim_parent[up])
			tally[up].rest += rest;
	}
	if (n > 1 && shim_group[0] == shim_group[1]) {
		tally[1].rest = tally[0].rest += tally[1].rest;
		tally[1].children = tally[0].children += tally[1].children;
	}
}

static struct shim_tally tally[SHIM_GROUPS];

static int api_sum(int id, struct malloc_group_info *out)
{
	struct pcbatch_group *g = group_at(id);
	uint64_t below;
	int err;

	if (g == NULL || out == NULL)
		return -EINVAL;
	shim_lock();
	err = pcbatch_group_drain_subtree(g);
	(void)shim_group_info(id, out);
	shim_tally(tally);
	below = tally[id].rest;
	out->bytes = out->bytes > below ? out->bytes - below : 0;
	shim_unlock();
	return err == -ERANGE ? 0 : err;
}

size_t shim_bound(void)
{
	const struct pcbatch_domain_attr *a = &shim_domain.attr;

	return !shim_ready() ? 0 : ((size_t)a->stock_high * SHIM_PAGE + a->obj_high) * pcbatch_domain_cpus(&shim_domain);
}

/* ------------------------------------------------------------------- the walk */

static struct malloc_group_found found[SHIM_GROUPS];

static void walk_leaf(uintptr_t number)
{
	uintptr_t first = number << TAG_LEAF_SHIFT;
	const uint16_t *tags = (const uint16_t *)(tag_top[number] + first / SHIM_GRANULE * sizeof(uint16_t));
	size_t i, k;

	for (i = 0; i < TAG_LEAF_BYTES / sizeof(uint16_t); i += 4) {
		uint64_t four;

		memcpy(&four, tags + i, sizeof(four));
		if (four == 0)
			continue;
		for (k = i; k < i + 4; k++) {
			uint32_t id = tag_load(&tags[k]);

			if (id == 0)
				continue;
			found[id - 1].blocks++;
			found[id - 1].bytes += shim_real.usable((void *)(first + k * SHIM_GRANULE));
		}
	}
}

/* Charged to the group and to none below it. */
static uint64_t bytes_alone(uint32_t id)
{
	return shim_bytes(shim_group[id]) - tally[id].children;
}

/*
 * Calls each for every group, with the walk's sums. Others wait in the real functions
 * meanwhile; what one of them has charged and not tagged yet is in the difference.
 */
int shim_audit_all(bool (*each)(uint32_t id, const struct malloc_group_found *a, void *ctx), void *ctx)
{
	uintptr_t leaf;
	uint32_t i;
	int err;

	shim_lock();
	memset(found, 0, sizeof(found[0]) * shim_groups);
	err = shim_freeze();
	if (err != 0) {
		shim_unlock();
		return err;
	}
	for (leaf = 0; leaf < TAG_LEAVES; leaf++)
		if (tag_top[leaf] != 0)
			walk_leaf(leaf);
	(void)pcbatch_stock_drain_all(&shim_domain);
	shim_tally(tally);
	for (i = 0; i < shim_groups; i++)
		if (shim_group[i] != NULL)
			found[i].difference = (int64_t)(bytes_alone(i) - found[i].bytes);
	if (shim_group[1] == shim_group[0]) {
		/* One group of two numbers. */
		found[0].blocks += found[1].blocks;
		found[0].bytes += found[1].bytes;
		found[0].difference = (int64_t)(bytes_alone(0) - found[0].bytes);
		found[1] = found[0];
	}
	shim_thaw();
	for (i = 0; i < shim_groups; i++)
		if (shim_group[i] != NULL && !each(i, &found[i], ctx))
			break;
	shim_unlock();
	return 0;
}

struct pick {
	uint32_t id;
	struct malloc_group_found *out;
};

static bool pick(uint32_t id, const struct malloc_group_found *a, void *ctx)
{
	struct pick *p = (struct pick *)ctx;

	if (id == p->id)
		*p->out = *a;
	return id != p->id;
}

static int api_audit(int id, struct malloc_group_found *out)
{
	struct pick p = { (uint32_t)id, out };

	return group_at(id) == NULL || out == NULL ? -EINVAL : shim_audit_all(pick, &p);
}

extern const struct malloc_group_calls pcbatch_malloc_group_api;
SHIM_EXPORT const struct malloc_group_calls pcbatch_malloc_group_api = {
	1,	    api_create,	  api_destroy, api_enter, api_current, api_find, api_of,
	api_set_max, api_set_high, shim_group_info,	 api_sum,   api_audit,	 shim_bound,
};
