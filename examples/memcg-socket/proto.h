/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the whole protocol: how many pages all its sockets have bought, and the three levels of
 * tcp_mem that they are judged by. A CPU adds up to 1 MiB to its own reserve before it tells.
 */
#ifndef MEMCG_SOCKET_PROTO_H
#define MEMCG_SOCKET_PROTO_H

#include "memcg.h"

/* pages that a CPU may hold back before it tells the protocol: 1 MiB, net.core.mem_pcpu_rsv */
#define PCPU_RESERVE ((1 << 20) >> PAGE_SHIFT)
#define SOCKETS_BATCH 16

#define RECLAIM_THRESHOLD_DEFAULT 65536
#define RECLAIM_THRESHOLD_MIN PAGE_BYTES
#define RECLAIM_THRESHOLD_MAX 2097152

/* tcp_mem[]: below the first no pressure, above the second pressure, above the third refusal */
struct proto {
	unsigned int changes;
	uint32_t reclaim_threshold;
	uint32_t memory_pressure;
	int64_t mem[3];
	int64_t rmem_min, wmem_min; /* bytes a socket is granted under pressure */
	uint64_t pressure_entered;
	/* pages; written whenever a CPU's reserve of 1 MiB is told: not on the line above */
	struct pcbatch_counter memory_allocated __attribute__((aligned(64)));
	struct pcbatch_counter sockets_allocated;
};

int proto_init(struct proto *prot, struct memcg_tree *tree, const int64_t mem[3], unsigned int changes);
void proto_destroy(struct proto *prot);
int64_t proto_memory_allocated(struct proto *prot); /* exact */
/* tcp_mem as the kernel sets it at boot: 3/4, 1 and 3/2 of a sixteenth of memory */
void proto_default_mem(int64_t mem[3]);
/* 0, or -EINVAL outside [page size, 2 MiB], as the sysctl answers; may be called at any time */
int proto_set_reclaim_threshold(struct proto *prot, int64_t bytes);
/* notes that pressure begins or ends; counts the beginnings */
void proto_pressure(struct proto *prot, bool enter);

static inline void proto_memory_add(struct proto *prot, int64_t pages)
{
	pcbatch_counter_add_batch(&prot->memory_allocated, pages, PCPU_RESERVE);
}

/* read is clamped: a CPU's reserve may still hold what makes it positive */
static inline int64_t proto_memory_read(struct proto *prot)
{
	return pcbatch_counter_read_positive(&prot->memory_allocated);
}

#endif
