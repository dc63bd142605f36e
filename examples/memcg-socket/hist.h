/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log-linear histogram in the manner of HDR: values below 64 are exact, above that every
 * power of two is cut into 32 buckets, so that a quantile is right to about 3 %.
 */
#ifndef MEMCG_SOCKET_HIST_H
#define MEMCG_SOCKET_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS	5
#define HIST_SUB	(1u << HIST_SUB_BITS)
#define HIST_EXACT	(2 * HIST_SUB)
#define HIST_BUCKETS	(HIST_EXACT + (63 - HIST_SUB_BITS) * HIST_SUB)

struct hist {
	uint64_t count;
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[HIST_BUCKETS];
};

static inline unsigned int hist_index(uint64_t v)
{
	unsigned int msb;

	if (v < HIST_EXACT)
		return (unsigned int)v;
	msb = 63u - (unsigned int)__builtin_clzll(v);
	return HIST_EXACT + (msb - HIST_SUB_BITS - 1) * HIST_SUB +
	       (unsigned int)((v >> (msb - HIST_SUB_BITS)) & (HIST_SUB - 1));
}

/* middle of a bucket */
static inline uint64_t hist_value(unsigned int index)
{
	unsigned int shift;
	uint64_t base;

	if (index < HIST_EXACT)
		return index;
	shift = (index - HIST_EXACT) / HIST_SUB + 1;
	base = (uint64_t)(HIST_SUB + (index - HIST_EXACT) % HIST_SUB) << shift;
	return base + ((uint64_t)1 << shift) / 2;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
	h->count++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
	h->bucket[hist_index(v)]++;
}

static inline void hist_merge(struct hist *to, const struct hist *from)
{
	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

static inline double hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0.0;
}

static inline uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->count), seen = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want)
			return hist_value(i);
	}
	return h->max;
}

#endif
