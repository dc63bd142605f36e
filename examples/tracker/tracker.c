/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* tracker.h: a group for each tracker, charged by the byte. */
#include "tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcbatch.h>

#define NAME_MAX_BYTES 32

struct tracker {
	struct pcbatch_group *group;
	struct pcbatch_domain *domain; /* of the whole tree; the root's own */
	struct tracker *parent;
	char name[NAME_MAX_BYTES];
};

/* Before each block. Two words, so that the block keeps malloc's alignment. */
struct header {
	_Alignas(max_align_t) struct tracker *tracker;
	size_t charged; /* bytes, this header included */
};

static int64_t page_size(const struct tracker *t)
{
	return (int64_t)t->domain->attr.page_size;
}

static int64_t pages_of(const struct tracker *t, int64_t limit)
{
	return limit == TRACKER_NO_LIMIT ? PCBATCH_PAGES_MAX : limit / page_size(t);
}

static int64_t bytes_of(const struct tracker *t, int64_t pages)
{
	return pages > INT64_MAX / page_size(t) ? INT64_MAX : pages * page_size(t);
}

/* ------------------------------------------------------------------ lifetime */

static struct pcbatch_domain *domain_create(void)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_domain *domain = NULL;

	(void)pcbatch_domain_attr_init(&attr);
	/*
	 * Slack against speed: a CPU may hold high pages and obj_high bytes for each tracker, here 128 KiB in
	 * all. Engines that batch by thread hold more than that for every thread.
	 */
	attr.stock_batch = 8;
	if (posix_memalign((void **)&domain, PCBATCH_CACHE_LINE, sizeof(*domain)) != 0)
		return NULL;
	if (pcbatch_domain_init(domain, &attr) != 0) {
		free(domain);
		return NULL;
	}
	return domain;
}

static void domain_drop(struct pcbatch_domain *domain)
{
	if (pcbatch_domain_destroy(domain) == 0)
		free(domain);
}

struct tracker *tracker_create(struct tracker *parent, const char *name, int64_t limit)
{
	struct pcbatch_group_attr attr;
	struct tracker *t;

	if (name == NULL || strlen(name) >= NAME_MAX_BYTES || limit < 0) {
		errno = EINVAL;
		return NULL;
	}
	t = (struct tracker *)calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	memcpy(t->name, name, strlen(name));
	t->parent = parent;
	t->domain = parent != NULL ? parent->domain : domain_create();
	if (t->domain != NULL) {
		(void)pcbatch_group_attr_init(&attr);
		attr.max = pages_of(t, limit);
		attr.user = t;
		if (pcbatch_group_create(t->domain, parent == NULL ? NULL : parent->group, &attr, &t->group) == 0)
			return t;
		if (parent == NULL)
			domain_drop(t->domain);
	}
	free(t);
	errno = ENOMEM;
	return NULL;
}

int tracker_destroy(struct tracker *t)
{
	int err = pcbatch_group_destroy(t->group);

	if (err != 0)
		return err;
	if (t->parent == NULL)
		domain_drop(t->domain);
	free(t);
	return 0;
}

/* -------------------------------------------------------------------- blocks */

/* Whose limit it was: asked right after the refusal, when no CPU holds pages under it. */
static void refusal(struct tracker *t, size_t bytes, struct tracker **refused)
{
	struct pcbatch_group *limiting = pcbatch_group_limiting(t->group, (bytes + (size_t)page_size(t) - 1) / (size_t)page_size(t));

	if (refused != NULL)
		*refused = limiting == NULL ? t : (struct tracker *)pcbatch_group_user(limiting);
	errno = ENOMEM;
}

/* Charges and says who refused. bytes: any, also more than there can be. */
static int charge(struct tracker *t, size_t bytes, struct tracker **refused)
{
	int err = bytes > PTRDIFF_MAX ? -ENOMEM : pcbatch_group_charge_bytes(t->group, bytes);

	if (refused != NULL)
		*refused = NULL;
	if (err == 0)
		return 0;
	refusal(t, bytes, refused);
	return -1;
}

void *tracker_alloc(struct tracker *t, size_t size, struct tracker **refused)
{
	size_t bytes = size > SIZE_MAX - sizeof(struct header) ? SIZE_MAX : size + sizeof(struct header);
	struct header *h;

	if (charge(t, bytes, refused) != 0)
		return NULL;
	h = (struct header *)malloc(bytes);
	if (h == NULL) {
		(void)pcbatch_group_uncharge_bytes(t->group, bytes);
		errno = ENOMEM;
		return NULL;
	}
	h->tracker = t;
	h->charged = bytes;
	return h + 1;
}

void tracker_free(void *ptr)
{
	struct header *h;
	struct tracker *t;
	size_t bytes;

	if (ptr == NULL)
		return;
	h = (struct header *)ptr - 1;
	t = h->tracker;
	bytes = h->charged;
	/* Memory first: in between, more counts as used than is, never less. */
	free(h);
	(void)pcbatch_group_uncharge_bytes(t->group, bytes);
}

void *tracker_realloc(struct tracker *t, void *ptr, size_t size, struct tracker **refused)
{
	size_t bytes = size > SIZE_MAX - sizeof(struct header) ? SIZE_MAX : size + sizeof(struct header);
	struct header *h, *moved;
	size_t before;

	if (ptr == NULL)
		return tracker_alloc(t, size, refused);
	h = (struct header *)ptr - 1;
	t = h->tracker;
	before = h->charged;
	if (bytes > before && charge(t, bytes - before, refused) != 0)
		return NULL;
	moved = (struct header *)realloc(h, bytes);
	if (moved == NULL) {
		if (bytes > before)
			(void)pcbatch_group_uncharge_bytes(t->group, bytes - before);
		errno = ENOMEM;
		return NULL;
	}
	moved->charged = bytes;
	if (bytes < before)
		(void)pcbatch_group_uncharge_bytes(t->group, before - bytes);
	return moved + 1;
}

/* ------------------------------------------------------------------ readings */

const char *tracker_name(const struct tracker *t)
{
	return t->name;
}

int64_t tracker_limit(const struct tracker *t)
{
	int64_t pages = pcbatch_group_max(t->group);

	return pages == PCBATCH_PAGES_MAX ? TRACKER_NO_LIMIT : bytes_of(t, pages);
}

int tracker_set_limit(struct tracker *t, int64_t limit)
{
	return limit < 0 ? -EINVAL : pcbatch_group_set_max(t->group, pages_of(t, limit));
}

int64_t tracker_used(const struct tracker *t)
{
	return bytes_of(t, pcbatch_group_current(t->group));
}

int64_t tracker_slack(const struct tracker *t)
{
	return bytes_of(t, pcbatch_group_error_bound(t->group));
}

int64_t tracker_used_exact(struct tracker *t)
{
	int64_t bytes;

	return pcbatch_group_bytes(t->group, &bytes) == 0 ? bytes : tracker_used(t);
}

int64_t tracker_peak(const struct tracker *t)
{
	return bytes_of(t, pcbatch_group_peak(t->group));
}

uint64_t tracker_refusals(const struct tracker *t)
{
	return pcbatch_group_event_local(t->group, PCBATCH_EVENT_FAIL);
}
