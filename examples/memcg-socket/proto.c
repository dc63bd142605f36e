/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <unistd.h>

#include "proto.h"

void proto_default_mem(int64_t mem[3])
{
	int64_t limit = (int64_t)sysconf(_SC_PHYS_PAGES) / 16;

	if (limit < 128)
		limit = 128;
	mem[0] = limit / 4 * 3;
	mem[1] = limit;
	mem[2] = mem[0] * 2;
}

int proto_init(struct proto *prot, struct memcg_tree *tree, const int64_t mem[3], unsigned int changes)
{
	int ret;

	*prot = (struct proto){ .changes = changes, .reclaim_threshold = RECLAIM_THRESHOLD_DEFAULT,
				.rmem_min = 4096, .wmem_min = 4096 };
	for (int i = 0; i < 3; i++)
		prot->mem[i] = mem[i];
	ret = pcbatch_counter_init(&prot->memory_allocated, &tree->domain, 0);
	if (ret)
		return ret;
	ret = pcbatch_counter_init(&prot->sockets_allocated, &tree->domain, 0);
	if (ret)
		pcbatch_counter_destroy(&prot->memory_allocated);
	return ret;
}

void proto_destroy(struct proto *prot)
{
	pcbatch_counter_destroy(&prot->memory_allocated);
	pcbatch_counter_destroy(&prot->sockets_allocated);
}

int proto_set_reclaim_threshold(struct proto *prot, int64_t bytes)
{
	if (bytes < RECLAIM_THRESHOLD_MIN || bytes > RECLAIM_THRESHOLD_MAX)
		return -EINVAL;
	WRITE_ONCE(prot->reclaim_threshold, (uint32_t)bytes);
	return 0;
}

int64_t proto_memory_allocated(struct proto *prot)
{
	return pcbatch_counter_sum(&prot->memory_allocated);
}

void proto_pressure(struct proto *prot, bool enter)
{
	if (READ_ONCE(prot->memory_pressure) == enter)
		return;
	if (__atomic_exchange_n(&prot->memory_pressure, enter, __ATOMIC_RELAXED) != enter && enter)
		__atomic_fetch_add(&prot->pressure_entered, 1, __ATOMIC_RELAXED);
}
