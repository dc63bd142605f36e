/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the example learns about its own accounting: every call is counted, one in ACCT_EVERY is
 * timed. The period is a prime, for a request makes its calls in a fixed order and a period that
 * divides by their number would time the same one for ever.
 */
#ifndef MEMCG_SOCKET_ACCT_H
#define MEMCG_SOCKET_ACCT_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define ACCT_EVERY	61

/* When its turn falls into another sample: soon, but not in step with it. */
#define ACCT_AGAIN 7

/* A sample longer than this was interrupted by something else; it is counted, not averaged. */
#define ACCT_OUTLIER_NS	50000.0

enum acct_kind {
	ACCT_CHARGE,	/* mem_cgroup_sk_charge */
	ACCT_UNCHARGE,	/* mem_cgroup_sk_uncharge */
	ACCT_STAT,	/* one statistics update by the two above */
	ACCT_EVENT,	/* count_memcg_events */
	ACCT_SOCK,	/* everything a socket does for one skb, the four above included */
	ACCT_NOTHING,	/* a sample of nothing, among the others: what the sampling itself shows */
	ACCT_KINDS
};

/* Off the hot path: changed when a countdown ends. */
struct acct_probe {
	uint64_t calls; /* before the present countdown */
	uint64_t samples;
	uint64_t cycles;
	uint64_t outliers;
	uint32_t period; /* that the present countdown began with */
};

struct acct {
	uint32_t left[ACCT_KINDS]; /* calls until the next sample: all that an untimed call touches */
	bool timing;		   /* a sample is being taken: do not nest another one in it */
	uint64_t pages_charged;
	uint64_t pages_uncharged;
	uint64_t forced;  /* charges that were forced */
	uint64_t refused; /* charges that a memcg refused */
	struct acct_probe probe[ACCT_KINDS];
};

/* cycles that a sample of nothing shows */
extern double acct_overhead;

static inline void acct_init(struct acct *acct)
{
	*acct = (struct acct){ .timing = false };
	for (int i = 0; i < ACCT_KINDS; i++)
		acct->left[i] = acct->probe[i].period = ACCT_EVERY;
}

/* A countdown has ended: the start of a sample, or 0 when this call falls into another one. */
uint64_t acct_begin(struct acct *acct, enum acct_kind kind);

/* returns the start of a sample, 0 when this call is not timed */
static ALWAYS_INLINE uint64_t acct_enter(struct acct *acct, enum acct_kind kind)
{
	return likely(--acct->left[kind]) ? 0 : acct_begin(acct, kind);
}

void acct_sample(struct acct *acct, enum acct_kind kind, uint64_t start);

/* Measures what a sample of nothing takes, which is taken off every sample from then on. */
void acct_calibrate(void);

static ALWAYS_INLINE void acct_exit(struct acct *acct, enum acct_kind kind, uint64_t start)
{
	if (unlikely(start))
		acct_sample(acct, kind, start);
}

static inline uint64_t acct_calls(const struct acct *acct, enum acct_kind kind)
{
	return acct->probe[kind].calls + acct->probe[kind].period - acct->left[kind];
}

static ALWAYS_INLINE void acct_nothing(struct acct *acct)
{
	uint64_t start = acct_enter(acct, ACCT_NOTHING);

	__asm__ __volatile__("" : : : "memory");
	acct_exit(acct, ACCT_NOTHING, start);
}

void acct_merge(struct acct *to, const struct acct *from);

/*
 * The sampling's own cost is best measured where it happens: between system calls its code and the
 * branch to it are cold. Without such samples what acct_calibrate found has to do.
 */
static inline double acct_own_cycles(const struct acct *acct)
{
	const struct acct_probe *probe = &acct->probe[ACCT_NOTHING];

	return probe->samples >= 100 ? (double)probe->cycles / (double)probe->samples : acct_overhead;
}

/* mean ns of one call, 0 without a sample */
static inline double acct_ns(const struct acct *acct, enum acct_kind kind)
{
	const struct acct_probe *probe = &acct->probe[kind];
	double cycles = ratio((double)probe->cycles, (double)probe->samples) - acct_own_cycles(acct);

	return probe->samples && cycles > 0.0 ? cycles_to_ns(cycles) : 0.0;
}

#endif
