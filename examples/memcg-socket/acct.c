/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include "acct.h"
#include "stats.h"

double acct_overhead;

NOINLINE uint64_t acct_begin(struct acct *acct, enum acct_kind kind)
{
	struct acct_probe *probe = &acct->probe[kind];

	probe->calls += probe->period;
	probe->period = acct->left[kind] = acct->timing ? ACCT_AGAIN : ACCT_EVERY;
	if (acct->timing)
		return 0;
	acct->timing = true;
	return cycles_fenced();
}

/* Out of line: once in ACCT_EVERY, and no part of what is timed. */
NOINLINE void acct_sample(struct acct *acct, enum acct_kind kind, uint64_t start)
{
	uint64_t cycles = cycles_fenced() - start;
	struct acct_probe *probe = &acct->probe[kind];

	acct->timing = false;
	if (cycles_to_ns((double)cycles) > ACCT_OUTLIER_NS) {
		probe->outliers++;
		return;
	}
	probe->samples++;
	probe->cycles += cycles;
}

void acct_merge(struct acct *to, const struct acct *from)
{
	for (int i = 0; i < ACCT_KINDS; i++) {
		to->probe[i].calls += acct_calls(from, (enum acct_kind)i);
		to->probe[i].samples += from->probe[i].samples;
		to->probe[i].cycles += from->probe[i].cycles;
		to->probe[i].outliers += from->probe[i].outliers;
	}
	to->pages_charged += from->pages_charged;
	to->pages_uncharged += from->pages_uncharged;
	to->forced += from->forced;
	to->refused += from->refused;
}

/*
 * The same path as every other sample takes, around nothing: the fences, the counter, the call. The
 * median of many, for the mean would have the interrupts in it.
 */
void acct_calibrate(void)
{
	enum { SAMPLES = 2001 };
	static double seen[SAMPLES];
	struct acct acct;

	acct_init(&acct);
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t before = acct.probe[ACCT_NOTHING].cycles;

		for (int call = 0; call < ACCT_EVERY; call++)
			acct_nothing(&acct);
		seen[i] = (double)(acct.probe[ACCT_NOTHING].cycles - before);
	}
	acct_overhead = median(seen, SAMPLES);
}
