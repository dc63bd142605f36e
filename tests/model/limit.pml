/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * set_max against try_charge: include/pcbatch/page_counter.h (pcbatch_page_counter_try_charge, _uncharge, _set_max), a
 * leaf (0) and its parent (1), each with a setter. Each atomic operation is a step; all of them are full barriers, so
 * memory is sequentially consistent here. Left out: peak, failcnt, underflow, values near the ends (the CBMC programs).
 *
 * `granted` is what try_charge has returned 0 for: it may never exceed a limit whose setter has returned, at either
 * level, and usage is never below it. At the end usage is what was granted, to the page.
 *
 * run: leaf_limit      -DCHARGERS=2 -DLEAF=1 -DPARENT=0
 * run: both_limits     -DCHARGERS=2 -DLEAF=1 -DPARENT=1
 * full: leaf_limit_3   -DCHARGERS=3 -DLEAF=1 -DPARENT=0
 * full: parent_limit   -DCHARGERS=3 -DLEAF=0 -DPARENT=1
 * mutant: not_read_again    -DCHARGERS=2 -DLEAF=1 -DPARENT=0 -DMUT_NO_RECHECK
 * mutant: written_last      -DCHARGERS=2 -DLEAF=1 -DPARENT=0 -DMUT_WRITE_LAST
 * mutant: looked_before     -DCHARGERS=3 -DLEAF=0 -DPARENT=0 -DMUT_LOOK_FIRST
 * mutant: no_rollback       -DCHARGERS=2 -DLEAF=0 -DPARENT=1 -DMUT_NO_UNDO
 * mutant: refuser_kept      -DCHARGERS=2 -DLEAF=0 -DPARENT=1 -DMUT_KEEP_LEVEL
 * mutant: add_not_atomic    -DCHARGERS=2 -DLEAF=0 -DPARENT=0 -DMUT_TORN_ADD
 */
#define LEVELS 2

short usage[LEVELS];
byte max[LEVELS];
short granted[LEVELS]; /* by calls that have returned; both levels at once */
byte limit[LEVELS];    /* what a setter that has returned promised; at first, and while it is raised, 4 */
byte done;

#define WITHIN (granted[0] <= limit[0] && granted[1] <= limit[1])

inline try_charge(pages) {
	level = 0;
	ok = true;
	do
	:: level == LEVELS -> break
	:: else ->
#ifdef MUT_LOOK_FIRST
		seen = usage[level] + pages;
		if
		:: seen <= max[level] -> usage[level] = usage[level] + pages
		:: else
		fi;
#else
#ifdef MUT_TORN_ADD
		seen = usage[level] + pages;
		usage[level] = seen;
#else
		atomic { usage[level] = usage[level] + pages; seen = usage[level] }
#endif
#endif
		if
#ifdef MUT_LOOK_FIRST
		:: seen <= 4 -> level++ /* the look was before */
#else
		:: seen <= max[level] -> level++
#endif
		:: else ->
#if !defined(MUT_KEEP_LEVEL) && !defined(MUT_LOOK_FIRST)
			usage[level] = usage[level] - pages;
#endif
			do
#ifndef MUT_NO_UNDO
			:: level > 0 -> level--; usage[level] = usage[level] - pages
			:: level == 0 -> break
#else
			:: break
#endif
			od;
			ok = false;
			break
		fi
	od;
	atomic { level = 0; seen = 0 }
}

proctype charger(byte pages) {
	byte level, times = 2;
	short seen;
	bool ok;

	do
	:: times == 0 -> break
	:: else ->
		times--;
		try_charge(pages);
		if
		:: ok ->
			atomic {
				granted[0] = granted[0] + pages;
				granted[1] = granted[1] + pages;
				assert(WITHIN);
				assert(granted[0] <= usage[0] && granted[1] <= usage[1])
			}
			if
			:: true ->
				atomic {
					granted[0] = granted[0] - pages;
					granted[1] = granted[1] - pages
				}
				usage[0] = usage[0] - pages;
				usage[1] = usage[1] - pages
			:: skip
			fi
		:: else
		fi
	od;
	done++
}

/* Lowers, then raises again a little. */
proctype setter(byte level) {
	byte old, want;

	want = 2;
again:
	if
	:: usage[level] > want /* -EBUSY */
	:: else ->
#ifdef MUT_WRITE_LAST
		if
		:: usage[level] > want -> goto again
		:: else -> max[level] = want
		fi;
		goto set;
#endif
		atomic { old = max[level]; max[level] = want }
#ifndef MUT_NO_RECHECK
		if
		:: want >= old || usage[level] <= want
		:: else ->
			max[level] = old;
			/* Again, but not before something has changed: that would be the same. */
			goto again
		fi;
#endif
set:
		atomic { limit[level] = want; assert(WITHIN) }
	fi;
	if
	:: want == 2 && limit[level] == 2 -> atomic { want = 3; limit[level] = 4 } goto again
	:: else
	fi;
	done++
}

init {
	atomic {
		limit[0] = 4; limit[1] = 4;
		max[0] = 4; max[1] = 4;
		run charger(1);
		run charger(2);
#if CHARGERS > 2
		run charger(1);
#endif
#if LEAF
		run setter(0);
#endif
#if PARENT
		run setter(1);
#endif
	}
	done == CHARGERS + LEAF + PARENT;
	assert(usage[0] == granted[0] && usage[1] == granted[1])
}
