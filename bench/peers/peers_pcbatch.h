/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* peers_pcbatch.h - pcbatch's own rows, for both programs: each backend a domain with the default attributes. */
#ifndef PEERS_PCBATCH_H
#define PEERS_PCBATCH_H

#include "peers.h"

#include <string.h>

#include <pcbatch.h>

/* A domain, 64 counters, a limit of one level and one of three. */
#define PCBATCH_ROWS(b, which, title)                                                                                 \
	static struct pcbatch_domain pcbatch_##b##_dom;                                                               \
	static struct pcbatch_counter pcbatch_##b##_counter[PEER_COUNTERS];                                           \
	static struct pcbatch_group *pcbatch_##b##_leaf1, *pcbatch_##b##_leaf3;                                       \
	static inline void pcbatch_##b##_add(unsigned int k)                                                          \
	{                                                                                                             \
		pcbatch_counter_add(&pcbatch_##b##_counter[k], 1);                                                    \
	}                                                                                                             \
	static int64_t pcbatch_##b##_total(void)                                                                      \
	{                                                                                                             \
		return pcbatch_rows_sum(pcbatch_##b##_counter);                                                       \
	}                                                                                                             \
	PEER_COUNTER(pcbatch_##b, "pcbatch counter, " title)                                                          \
	PCBATCH_LIMITER(pcbatch_##b##_pair, pcbatch_##b##_dom, pcbatch_##b##_leaf1, "pcbatch group, " title, 1)       \
	PCBATCH_LIMITER(pcbatch_##b##_pair_depth3, pcbatch_##b##_dom, pcbatch_##b##_leaf3,                            \
			"pcbatch group, 3 levels, " title, 3)                                                         \
	static void pcbatch_##b##_rows(void)                                                                          \
	{                                                                                                             \
		if (!pcbatch_rows_set_up(&pcbatch_##b##_dom, which, pcbatch_##b##_counter, &pcbatch_##b##_leaf1,      \
					 &pcbatch_##b##_leaf3))                                                       \
			return;                                                                                       \
		peers_add(&pcbatch_##b##_peer);                                                                       \
		peers_add(&pcbatch_##b##_pair_peer);                                                                  \
		peers_add(&pcbatch_##b##_pair_depth3_peer);                                                           \
	}

#define PCBATCH_LIMITER(x, dom, leaf, title, depth)                                                                   \
	static inline int x##_charge(void)                                                                            \
	{                                                                                                             \
		return pcbatch_group_charge(leaf, 1) == 0;                                                            \
	}                                                                                                             \
	static inline void x##_uncharge(void)                                                                         \
	{                                                                                                             \
		(void)pcbatch_group_uncharge(leaf, 1);                                                                \
	}                                                                                                             \
	static int64_t x##_total(void)                                                                                \
	{                                                                                                             \
		(void)pcbatch_stock_drain_all(&dom);                                                                  \
		return pcbatch_group_current(leaf);                                                                   \
	}                                                                                                             \
	PEER_LIMITER(x, title, depth)

static inline int64_t pcbatch_rows_sum(const struct pcbatch_counter *counter)
{
	int64_t sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += pcbatch_counter_sum(&counter[k]);
	return sum;
}

/* A chain of groups, each with the limit. */
static inline int pcbatch_rows_chain(struct pcbatch_domain *dom, int depth, struct pcbatch_group **leaf)
{
	struct pcbatch_group_attr attr;
	int err = pcbatch_group_attr_init(&attr);

	attr.max = PEER_LIMIT;
	*leaf = NULL;
	while (err == 0 && depth-- > 0)
		err = pcbatch_group_create(dom, *leaf, &attr, leaf);
	return err;
}

static inline int pcbatch_rows_set_up(struct pcbatch_domain *dom, enum pcbatch_backend which, struct pcbatch_counter *counter,
				      struct pcbatch_group **leaf1, struct pcbatch_group **leaf3)
{
	struct pcbatch_domain_attr attr;
	int k, err = pcbatch_domain_attr_init(&attr);

	attr.backend = which;
	if (err == 0)
		err = pcbatch_domain_init(dom, &attr);
	for (k = 0; err == 0 && k < PEER_COUNTERS; k++)
		err = pcbatch_counter_init(&counter[k], dom, 0);
	if (err == 0)
		err = pcbatch_rows_chain(dom, 1, leaf1);
	if (err == 0)
		err = pcbatch_rows_chain(dom, 3, leaf3);
	if (err != 0)
		peers_skip(which == PCBATCH_BACKEND_RSEQ ? "pcbatch on rseq" : "pcbatch, generic", strerror(-err));
	return err == 0;
}

PCBATCH_ROWS(rseq, PCBATCH_BACKEND_RSEQ, "rseq")
PCBATCH_ROWS(generic, PCBATCH_BACKEND_GENERIC, "generic")

#endif /* PEERS_PCBATCH_H */
