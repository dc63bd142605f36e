/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "before.h"

int memcg_walk_create(struct memcg *memcg)
{
	struct pcbatch_domain *domain = &memcg->tree->domain;
	struct memcg_walk *walk = zalloc_line(sizeof(*walk));
	int ret, item;

	if (!walk)
		return -ENOMEM;
	for (item = 0; item < MEMCG_ITEMS; item++) {
		ret = pcbatch_counter_init(&walk->state[item], domain, 0);
		if (ret)
			goto fail;
	}
	ret = pcbatch_counter_init(&walk->updates, domain, 0);
	if (ret)
		goto fail;
	memcg->walk = walk;
	return 0;
fail:
	while (item-- > 0)
		pcbatch_counter_destroy(&walk->state[item]);
	free(walk);
	return ret;
}

void memcg_walk_destroy(struct memcg *memcg)
{
	if (!memcg->walk)
		return;
	for (int item = 0; item < MEMCG_ITEMS; item++)
		pcbatch_counter_destroy(&memcg->walk->state[item]);
	pcbatch_counter_destroy(&memcg->walk->updates);
	free(memcg->walk);
	memcg->walk = NULL;
}

int64_t memcg_walk_read(struct memcg *memcg, enum memcg_item item)
{
	struct memcg_tree *tree = memcg->tree;
	int64_t sum = 0;

	for (unsigned int i = memcg->index; i < tree->nr_nodes; i++) {
		struct memcg *node = &tree->nodes[i];

		if (node->walk && memcg_is_below(node, memcg))
			sum += pcbatch_counter_sum(&node->walk->state[item]);
	}
	return sum;
}
