/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * include/pcbatch/page_counter.h, three levels (uncharge: two), for every usage, limit, peak and request: all levels or none, the right
 * one refuses and is the only one to count it, peaks stay within limits, what was never charged is clamped and counted.
 *
 * check: try_charge
 * check: forced
 * check: uncharge -DLEVELS=2
 * check: set_max
 * check: margin
 * mutant: try_charge page_counter.h s/for (undo = c; undo != level;/for (undo = c->parent; undo != level;/
 * mutant: try_charge page_counter.h s/(void)pcbatch_priv_fetch_add(\&level->usage, 0 - pages);/;/
 * mutant: try_charge page_counter.h s/PCBATCH_LIKELY(usage <= (int64_t)/PCBATCH_LIKELY(usage - 1 <= (int64_t)/
 * mutant: try_charge page_counter.h s/\*failed = level;/failed[0] = c;/
 * mutant: forced     page_counter.h s/if (!forced \&\& usage > max)/if (usage > max)/
 * mutant: uncharge -DLEVELS=2 page_counter.h s/(void)pcbatch_priv_fetch_add(\&c->usage, excess);/;/
 * mutant: uncharge -DLEVELS=2 page_counter.h s/pages = had;/;/
 * mutant: set_max    page_counter.h s/if (usage > pages)/if (usage > pages + 1)/
 * mutant: margin     page_counter.h s/margin > 0 ? margin : 0/margin/
 */
#include <assert.h>
#include <pcbatch/page_counter.h>

uint64_t nondet_u64(void);

#ifndef LEVELS
#define LEVELS 3
#endif
static struct pcbatch_page_counter level[LEVELS];
static uint64_t usage[LEVELS], peak[LEVELS];

/* Forced charges may have gone over the limit, by up to as much again as the largest request. */
static void any_tree(void)
{
	int i;

	for (i = 0; i < LEVELS; i++) {
		assert(pcbatch_page_counter_init(&level[i], i + 1 < LEVELS ? &level[i + 1] : NULL) == 0 || i + 1 < LEVELS);
		level[i].parent = i + 1 < LEVELS ? &level[i + 1] : NULL;
		level[i].usage = usage[i] = nondet_u64();
		level[i].peak = peak[i] = nondet_u64();
		level[i].max = nondet_u64();
		__CPROVER_assume(usage[i] <= 2 * (uint64_t)PCBATCH_PAGES_MAX && level[i].max <= (uint64_t)PCBATCH_PAGES_MAX);
		__CPROVER_assume(peak[i] <= 2 * (uint64_t)PCBATCH_PAGES_MAX);
	}
}

void try_charge(void)
{
	uint64_t pages = nondet_u64();
	struct pcbatch_page_counter *failed = &level[0];
	int i, err, refuser = LEVELS;

	any_tree();
	err = pcbatch_page_counter_try_charge(&level[0], pages, &failed);
	for (i = LEVELS - 1; i >= 0; i--)
		if (usage[i] + pages > level[i].max)
			refuser = i;
	if (pages > (uint64_t)PCBATCH_PAGES_MAX)
		assert(err == -EINVAL);
	else
		assert(err == (refuser < LEVELS ? -ENOMEM : 0));
	for (i = 0; i < LEVELS; i++) {
		assert(level[i].usage == usage[i] + (err == 0 ? pages : 0));
		assert(level[i].failcnt == (err == -ENOMEM && i == refuser));
		assert(level[i].peak == peak[i] || (err == 0 && level[i].peak > peak[i] && level[i].peak == level[i].usage));
		assert(err != 0 || (level[i].usage <= level[i].max && level[i].peak >= level[i].usage));
		assert(level[i].underflow == 0);
	}
	assert(failed == (err == -ENOMEM ? &level[refuser] : NULL));
}

void forced(void)
{
	uint64_t pages = nondet_u64();
	int i, err;

	any_tree();
	err = pcbatch_page_counter_charge(&level[0], pages);
	assert(err == (pages > (uint64_t)PCBATCH_PAGES_MAX ? -EINVAL : 0));
	for (i = 0; i < LEVELS; i++) {
		assert(level[i].usage == usage[i] + (err == 0 ? pages : 0) && level[i].failcnt == 0);
		assert(err != 0 || level[i].peak == (peak[i] > level[i].usage ? peak[i] : level[i].usage));
	}
}

void uncharge(void)
{
	uint64_t pages = nondet_u64(), taken;
	int i, err;
	bool under = false;

	any_tree();
	err = pcbatch_page_counter_uncharge(&level[0], pages);
	if (pages > (uint64_t)PCBATCH_PAGES_MAX) {
		assert(err == -EINVAL);
		pages = 0;
	}
	for (i = 0; i < LEVELS; i++) {
		taken = pages < usage[i] ? pages : usage[i];
		assert(level[i].usage == usage[i] - taken && level[i].underflow == pages - taken);
		under = under || taken != pages;
		pages = taken;
	}
	assert(err == -EINVAL || err == (under ? -ERANGE : 0));
}

void set_max(void)
{
	int64_t pages = (int64_t)nondet_u64();
	uint64_t old;
	int err;

	any_tree();
	old = level[0].max;
	err = pcbatch_page_counter_set_max(&level[0], pages);
	if (pages < 0 || pages > PCBATCH_PAGES_MAX)
		assert(err == -EINVAL && level[0].max == old);
	else
		assert(usage[0] > (uint64_t)pages ? err == -EBUSY && level[0].max == old :
						    err == 0 && level[0].max == (uint64_t)pages);
	assert(level[0].usage == usage[0]);
}

void margin(void)
{
	int64_t room;
	int i;

	any_tree();
	room = pcbatch_page_counter_margin(&level[0]);
	assert(room >= 0);
	for (i = 0; i < LEVELS; i++)
		assert(room == 0 || usage[i] + (uint64_t)room <= level[i].max);
	assert(pcbatch_page_counter_try_charge(&level[0], (uint64_t)room, NULL) == 0 || room == 0);
}
