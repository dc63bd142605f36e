/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits in a tree. A page charged to a leaf counts at every ancestor, and any of them may refuse
 * it; then nothing has changed anywhere.
 *
 *	machine   max 1000
 *	`- tenant   max 300
 *	   |- web     no limit
 *	   `- db      no limit
 */
#include <stdbool.h>
#include <stdio.h>

#include <pcbatch.h>

enum { MACHINE, TENANT, WEB, DB, GROUPS };

static const struct {
	const char *name;
	int parent; /* -1: none */
	int64_t max;
} tree[GROUPS] = {
	{ "machine", -1, 1000 },
	{ "tenant", MACHINE, 300 },
	{ "web", TENANT, PCBATCH_PAGES_MAX },
	{ "db", TENANT, PCBATCH_PAGES_MAX },
};

static struct pcbatch_domain domain;
static struct pcbatch_group *groups[GROUPS];
static bool all_right = true;

/* Charges or (pages < 0) uncharges, says what came of it, and notes when that was not as expected. */
static void step(int who, int64_t pages, bool expect)
{
	int err = pages < 0 ? pcbatch_group_uncharge(groups[who], (uint64_t)-pages)
			    : pcbatch_group_charge(groups[who], (uint64_t)pages);

	printf("%-7s %+5lld pages: %s\n", tree[who].name, (long long)pages, err == 0 ? "ok" : "refused");
	if ((err == 0) != expect)
		all_right = false;
}

/* Prints the tree and compares current usage with what must be charged. */
static void show(const int64_t expect[GROUPS])
{
	int i;

	/* CPUs cache pages of the owners they have seen; without this, current would count those too. */
	pcbatch_group_drain_subtree(groups[MACHINE]);
	printf("        %8s %8s %8s\n", "current", "peak", "refusals");
	for (i = 0; i < GROUPS; i++) {
		struct pcbatch_group *g = groups[i];

		printf("%-7s %8lld %8lld %8llu\n", tree[i].name, (long long)pcbatch_group_current(g),
		       (long long)pcbatch_group_peak(g),
		       (unsigned long long)pcbatch_group_event_local(g, PCBATCH_EVENT_MAX));
		if (pcbatch_group_current(g) != expect[i] || pcbatch_group_peak(g) < expect[i] ||
		    pcbatch_group_peak(g) > tree[i].max)
			all_right = false;
	}
	printf("\n");
}

int main(void)
{
	static const int64_t web_only[GROUPS] = { 200, 200, 200, 0 };
	static const int64_t both[GROUPS] = { 250, 250, 100, 150 };
	static const int64_t nothing[GROUPS] = { 0, 0, 0, 0 };
	struct pcbatch_group_attr attr;
	int i;

	if (pcbatch_domain_init(&domain, NULL) != 0)
		return 1;
	pcbatch_group_attr_init(&attr);
	for (i = 0; i < GROUPS; i++) {
		attr.max = tree[i].max;
		if (pcbatch_group_create(&domain, tree[i].parent < 0 ? NULL : groups[tree[i].parent], &attr,
					 &groups[i]) != 0)
			return 1;
	}

	step(WEB, 200, true);
	/* db has no limit of its own and the machine has room: the tenant is in the way. */
	step(DB, 150, false);
	show(web_only);
	if (pcbatch_group_event_local(groups[TENANT], PCBATCH_EVENT_MAX) == 0 ||
	    pcbatch_group_event_local(groups[MACHINE], PCBATCH_EVENT_MAX) != 0)
		all_right = false;

	step(WEB, -100, true);
	step(DB, 150, true);
	show(both);

	step(WEB, -100, true);
	step(DB, -150, true);
	show(nothing);

	/* Children first; a group with children or charges is busy. */
	if (pcbatch_group_destroy(groups[TENANT]) == 0)
		all_right = false;
	for (i = GROUPS; i-- > 0;)
		if (pcbatch_group_destroy(groups[i]) != 0)
			all_right = false;
	if (pcbatch_domain_destroy(&domain) != 0)
		all_right = false;

	printf("%s\n", all_right ? "as expected" : "NOT as expected");
	return all_right ? 0 : 1;
}
