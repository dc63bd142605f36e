/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "audit.h"

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static void audit_node(struct audit *audit, struct memcg *memcg)
{
	audit->wrong[AUDIT_COUNTERS] += magnitude(pcbatch_group_current(memcg->group));
	audit->wrong[AUDIT_COUNTERS] += pcbatch_group_underflow(memcg->group);
	audit->counters += 1 + MEMCG_ITEMS;
	for (int item = 0; item < MEMCG_ITEMS; item++)
		audit->wrong[AUDIT_STATS] += magnitude(memcg_stat_read(memcg, (enum memcg_item)item));
}

static void audit_events(struct audit *audit, struct memcg_tree *tree, uint64_t events)
{
	int64_t sum = 0;

	for (unsigned int i = 0; i < tree->nr_nodes; i++)
		for (int e = 0; e < MEMCG_EVENTS && !tree->nodes[i].parent; e++)
			sum += memcg_event_read(&tree->nodes[i], (enum memcg_event)e);
	audit->events += events;
	audit->wrong[AUDIT_EVENTS] += magnitude(sum - (int64_t)events);
}

void audit_tree(struct audit *audit, struct memcg_tree *tree, struct proto *prot, const struct acct *acct,
		uint64_t events)
{
	audit->trees++;
	audit->pages += acct->pages_charged;
	audit->wrong[AUDIT_PAGES] += magnitude((int64_t)(acct->pages_charged - acct->pages_uncharged));
	audit->wrong[AUDIT_STOCKS] += pcbatch_stock_drain_all(&tree->domain) != 0;
	for (unsigned int i = 0; i < tree->nr_nodes; i++)
		audit_node(audit, &tree->nodes[i]);
	audit_events(audit, tree, events);
	audit->wrong[AUDIT_PROTOCOL] += magnitude(proto_memory_allocated(prot)) +
					magnitude(pcbatch_counter_sum(&prot->sockets_allocated));
	proto_destroy(prot);
	while (tree->tasks)
		memcg_task_exit(tree->tasks);
	audit->wrong[AUDIT_DESTROY] += (uint64_t)memcg_tree_destroy(tree);
}

void audit_merge(struct audit *to, const struct audit *from)
{
	to->trees += from->trees;
	to->pages += from->pages;
	to->events += from->events;
	to->connections += from->connections;
	to->counters += from->counters;
	for (int i = 0; i < AUDIT_CHECKS; i++)
		to->wrong[i] += from->wrong[i];
}

bool audit_passed(const struct audit *audit)
{
	for (int i = 0; i < AUDIT_CHECKS; i++)
		if (audit->wrong[i])
			return false;
	return true;
}

const char *audit_title(enum audit_check check)
{
	static const char *const titles[AUDIT_CHECKS] = {
		"pages charged but not uncharged", "stocks not drained",      "pages left in a level's counter",
		"units left in a statistic",	   "events missing",	      "pages or sockets left in the protocol",
		"connections lost or failed",	   "levels not destroyed",
	};

	return titles[check];
}

void audit_print(FILE *out, const char *name, const struct audit *audit)
{
	fprintf(out, "audit %-8s %s: %u tree%s, %" PRIu64 " pages charged and uncharged, stocks drained, %" PRIu64
		" counters at zero, %" PRIu64 " events, %" PRIu64 " connections\n", name,
		audit_passed(audit) ? "passed" : "FAILED", audit->trees, audit->trees == 1 ? "" : "s", audit->pages,
		audit->counters, audit->events, audit->connections);
	for (int i = 0; i < AUDIT_CHECKS; i++)
		if (audit->wrong[i])
			fprintf(out, "audit %-8s   %s: %" PRIu64 "\n", name, audit_title((enum audit_check)i),
				audit->wrong[i]);
}
