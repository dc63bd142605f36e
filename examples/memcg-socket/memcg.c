/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "memcg_sk.h"

#define FANOUT 4u
/* as long as the kernel's vmpressure keeps sockets under pressure */
#define PRESSURE_NS 1000000000ull
#define PRESSURE_AGAIN_NS (PRESSURE_NS / 100)

__thread struct task *current_task;

/* ---- the tree ---------------------------------------------------------------------------------- */

/* nodes per level, leaves last; one root unless the leaves are the only level */
static unsigned int level_widths(const struct memcg_tree_attr *attr, unsigned int *width)
{
	unsigned int total = 0;

	width[attr->depth - 1] = attr->memcgs;
	for (unsigned int level = attr->depth - 1; level-- > 0;)
		width[level] = level ? (width[level + 1] + FANOUT - 1) / FANOUT : 1;
	for (unsigned int level = 0; level < attr->depth; level++)
		total += width[level];
	return total;
}

/* Called back by the library when a charge found no room: the thread's own sockets may have some. */
static uint64_t memcg_reclaim(struct pcbatch_group *limiting, uint64_t pages, void *ctx)
{
	struct task *task = current_task;

	(void)ctx;
	if (!task || !task->shrink)
		return 0;
	return task->shrink(task, pcbatch_group_user(limiting), pages);
}

static int memcg_init(struct memcg *memcg, const struct memcg_tree_attr *attr)
{
	struct memcg *parent = memcg->parent;
	bool leaf = memcg->level == attr->depth - 1;
	struct pcbatch_group_attr group;
	int ret;

	snprintf(memcg->path, sizeof(memcg->path), "%.64s/%s%u", parent ? parent->path : "", leaf ? "svc" :
		 parent ? "tenant" : "app", memcg->position);
	ret = pcbatch_group_attr_init(&group);
	if (ret)
		return ret;
	if (leaf) {
		group.max = attr->max;
		group.high = attr->high;
	}
	if (!parent && attr->root_max < group.max)
		group.max = attr->root_max;
	group.reclaim = memcg_reclaim;
	group.reclaim_retries = 2;
	group.user = memcg;
	ret = pcbatch_group_create(&memcg->tree->domain, parent ? parent->group : NULL, &group, &memcg->group);
	if (ret)
		return ret;
	return attr->changes & (CHANGE_001 | CHANGE_OFF) ? 0 : memcg_walk_create(memcg);
}

static int populate(struct memcg_tree *tree, const struct memcg_tree_attr *attr, const unsigned int *width)
{
	unsigned int first = 0, above = 0;

	for (unsigned int level = 0; level < attr->depth; level++) {
		for (unsigned int i = 0; i < width[level]; i++) {
			struct memcg *memcg = &tree->nodes[first + i];
			int ret;

			memcg->tree = tree;
			memcg->totals = &tree->totals[first + i];
			memcg->index = first + i;
			memcg->level = level;
			memcg->position = i;
			if (level)
				memcg->parent = &tree->nodes[above + i * width[level - 1] / width[level]];
			ret = memcg_init(memcg, attr);
			if (ret)
				return ret;
			if (level == attr->depth - 1)
				tree->leaves[i] = memcg;
		}
		above = first;
		first += width[level];
	}
	return 0;
}

static int domain_create(struct memcg_tree *tree, const struct memcg_tree_attr *attr)
{
	struct pcbatch_domain_attr domain;
	int ret = pcbatch_domain_attr_init(&domain);

	if (ret)
		return ret;
	domain.stock_batch = attr->batch;
	domain.stat_items = MEMCG_ITEMS;
	domain.stock_item = MEMCG_SOCK;
	return pcbatch_domain_init(&tree->domain, &domain);
}

static void tree_free(struct memcg_tree *tree)
{
	free(tree->nodes);
	free(tree->leaves);
	free(tree->totals);
	free(tree);
}

int memcg_tree_create(const struct memcg_tree_attr *attr, struct memcg_tree **out)
{
	struct memcg_tree *tree = zalloc_line(sizeof(*tree));
	unsigned int width[MEMCG_DEPTH_MAX];
	int ret = -ENOMEM;

	if (!tree)
		return ret;
	tree->changes = attr->changes;
	tree->nr_nodes = level_widths(attr, width);
	tree->nr_leaves = attr->memcgs;
	tree->nodes = zalloc_line(tree->nr_nodes * sizeof(*tree->nodes));
	tree->leaves = calloc(tree->nr_leaves, sizeof(struct memcg *));
	tree->totals = zalloc_line(tree->nr_nodes * sizeof(*tree->totals));
	if (tree->nodes && tree->leaves && tree->totals)
		ret = domain_create(tree, attr);
	if (ret) {
		tree_free(tree);
		return ret;
	}
	ret = populate(tree, attr, width);
	if (ret) {
		memcg_tree_destroy(tree);
		return ret;
	}
	*out = tree;
	return 0;
}

int memcg_tree_destroy(struct memcg_tree *tree)
{
	int left = 0;

	for (unsigned int i = tree->nr_nodes; i-- > 0;) {
		struct memcg *memcg = &tree->nodes[i];

		memcg_walk_destroy(memcg);
		if (!memcg->group)
			continue;
		pcbatch_group_offline(memcg->group);
		if (pcbatch_group_destroy(memcg->group) != 0)
			left++;
	}
	if (pcbatch_domain_destroy(&tree->domain) != 0)
		left++;
	tree_free(tree);
	return left;
}

bool memcg_is_below(const struct memcg *memcg, const struct memcg *root)
{
	while (memcg && memcg != root)
		memcg = memcg->parent;
	return memcg == root;
}

/* ---- charging ---------------------------------------------------------------------------------- */

bool memcg_charge_refused(struct memcg *memcg, uint32_t pages, struct acct *acct)
{
	memcg_mark_pressure(memcg, pages);
	if (acct)
		acct->refused++;
	return false;
}

int memcg_charge_object(struct memcg *memcg)
{
	int ret = pcbatch_group_charge_bytes_force(memcg->group, SOCK_OBJECT_BYTES);

	if (!ret)
		pcbatch_group_stat_mod(memcg->group, MEMCG_SLAB, 1);
	return ret;
}

void memcg_uncharge_object(struct memcg *memcg)
{
	pcbatch_group_stat_mod(memcg->group, MEMCG_SLAB, -1);
	pcbatch_group_uncharge_bytes(memcg->group, SOCK_OBJECT_BYTES);
}

int memcg_charge_anon(struct memcg *memcg, uint32_t pages)
{
	int ret = pcbatch_group_charge_force(memcg->group, pages, 0);

	if (!ret)
		pcbatch_group_stat_mod(memcg->group, MEMCG_ANON, pages);
	return ret;
}

void memcg_uncharge_anon(struct memcg *memcg, uint32_t pages)
{
	pcbatch_group_stat_mod(memcg->group, MEMCG_ANON, -(int64_t)pages);
	pcbatch_group_uncharge(memcg->group, pages);
}

/* ---- pressure ---------------------------------------------------------------------------------- */

/*
 * Every level below gets the deadline too, so that an skb looks at its own memcg only. That takes a
 * walk over the tree; while the last one is recent there is nothing to do.
 */
static void mark(struct memcg *memcg)
{
	struct memcg_tree *tree = memcg->tree;
	uint64_t until = now_ns() + PRESSURE_NS;

	if (READ_ONCE(memcg->pressure_until) + PRESSURE_AGAIN_NS > until)
		return;
	for (unsigned int i = memcg->index; i < tree->nr_nodes; i++)
		if (memcg_is_below(&tree->nodes[i], memcg))
			WRITE_ONCE(tree->nodes[i].pressure_until, until);
}

void memcg_mark_pressure(struct memcg *memcg, int64_t pages)
{
	for (; memcg; memcg = memcg->parent)
		if (pcbatch_group_current(memcg->group) + pages > pcbatch_group_max(memcg->group))
			mark(memcg);
}

void memcg_check_high(struct memcg *memcg)
{
	if (pcbatch_group_current(memcg->group) > pcbatch_group_high(memcg->group))
		mark(memcg);
}

bool memcg_under_pressure_slow(struct memcg *memcg)
{
	uint64_t until = READ_ONCE(memcg->pressure_until);

	if (now_ns() < until)
		return true;
	/* Whoever sees the deadline pass puts the fast path back; a mark that comes in between wins. */
	__atomic_compare_exchange_n(&memcg->pressure_until, &until, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return false;
}

/* ---- events ------------------------------------------------------------------------------------ */

/* Not inlined: once in 256. Signals are blocked here only, and the cell gives what was taken from it. */
NOINLINE void count_events_flush(struct memcg *memcg, enum memcg_event event, int64_t *cell, int64_t x, int64_t count)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	__atomic_fetch_add(&memcg->totals->events[event], x, __ATOMIC_RELAXED);
	/* Not zero: a handler may have counted after x was read. */
	event_cell_add(cell, count - x);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int64_t memcg_event_read(struct memcg *memcg, enum memcg_event event)
{
	struct memcg_tree *tree = memcg->tree;
	int64_t sum = 0;

	for (unsigned int i = memcg->index; i < tree->nr_nodes; i++) {
		if (!memcg_is_below(&tree->nodes[i], memcg))
			continue;
		sum += READ_ONCE(tree->totals[i].events[event]);
		for (struct task *task = tree->tasks; task; task = task->next)
			sum += READ_ONCE(task->events[i * MEMCG_EVENTS + event]);
	}
	return sum;
}

uint64_t memcg_throttled_read(struct memcg *memcg)
{
	struct memcg_tree *tree = memcg->tree;
	uint64_t sum = 0;

	for (unsigned int i = memcg->index; i < tree->nr_nodes; i++)
		if (memcg_is_below(&tree->nodes[i], memcg))
			sum += READ_ONCE(tree->totals[i].sock_throttled);
	return sum;
}

int64_t memcg_stat_read(struct memcg *memcg, enum memcg_item item)
{
	pcbatch_group_stat_flush(memcg->group);
	return pcbatch_group_stat_read_signed(memcg->group, item) + memcg_walk_read(memcg, item);
}

/* ---- threads ----------------------------------------------------------------------------------- */

int memcg_task_init(struct memcg_tree *tree, struct task *task)
{
	acct_init(&task->acct);
	task->tree = tree;
	task->events = zalloc_line(tree->nr_nodes * MEMCG_EVENTS * sizeof(int64_t));
	if (!task->events)
		return -ENOMEM;
	task->next = tree->tasks;
	tree->tasks = task;
	return 0;
}

void memcg_task_exit(struct task *task)
{
	struct memcg_tree *tree = task->tree;
	struct task **link = &tree->tasks;

	while (*link && *link != task)
		link = &(*link)->next;
	if (*link)
		*link = task->next;
	for (unsigned int i = 0; task->events && i < tree->nr_nodes; i++)
		for (unsigned int e = 0; e < MEMCG_EVENTS; e++)
			tree->totals[i].events[e] += task->events[i * MEMCG_EVENTS + e];
	free(task->events);
	task->events = NULL;
}
