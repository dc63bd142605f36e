/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Updates, listing and flushing of statistics, and what a child forked in the middle finds: include/pcbatch/stats.h
 * (stats_mod, _mod_slow, _arm, _push, _add_generic), stats_flush.h (_take, _collect, _fence, _fold, _flush_locked,
 * _recover, _relist) and lock.h (fork_check, stats_settle).
 *
 * One CPU with two blocks, each with one item; updaters, a flusher. A fork is the moment from which only the survivor
 * (and threads it makes) runs on: the memory is as the others left it. Kept: every access to list, links, mark, total
 * and folded. Left out: the walk up, needs_flush, subtrees, the inside of the leaf's section but for its look at the
 * mark (drain.pml has the abort rules), locks (one flusher at a time), process ids of 15 bits that are alike.
 *
 * What must hold after a flush: for each block, all updates that returned before the flush began are in the value,
 * and none that has not begun. In a child, what the lost flusher was just adding up may be missing.
 * Not with two updaters of one block on the generic backend, where one that is stopped in the middle of listing can
 * make the other count twice until it goes on (then the value is right again): there only the lower bound is kept.
 * ONE: the updaters have one block only (the second updates it twice).
 *
 * run: rseq            -DUPDATERS=2 -DFLUSHES=1 -DONE
 * run: generic         -DUPDATERS=2 -DFLUSHES=1 -DONE -DGENERIC
 * run: fork            -DUPDATERS=1 -DFLUSHES=1 -DFORK -DNOREDUCE
 * full: rseq_2         -DUPDATERS=2 -DFLUSHES=1
 * full: generic_2      -DUPDATERS=2 -DFLUSHES=1 -DGENERIC
 * full: fork_threads   -DUPDATERS=0 -DFLUSHES=1 -DFORK -DLATE -DNOREDUCE
 * full: fork_generic   -DUPDATERS=1 -DFLUSHES=1 -DFORK -DGENERIC -DNOREDUCE
 * mutant: no_fence          -DUPDATERS=2 -DFLUSHES=1 -DONE -DMUT_NO_FENCE
 * mutant: read_before_fence -DUPDATERS=2 -DFLUSHES=1 -DONE -DMUT_READ_FIRST
 * mutant: armed_before_list -DUPDATERS=2 -DFLUSHES=1 -DONE -DMUT_ARM_FIRST
 * mutant: not_disarmed      -DUPDATERS=2 -DFLUSHES=1 -DONE -DMUT_NO_DISARM
 * mutant: armed_by_store    -DUPDATERS=2 -DFLUSHES=1 -DONE -DMUT_ARM_STORE
 * mutant: not_settled       -DUPDATERS=1 -DFLUSHES=0 -DFORK -DNOREDUCE -DMUT_NO_SETTLE
 * mutant: taken_not_settled -DUPDATERS=1 -DFLUSHES=1 -DFORK -DNOREDUCE -DMUT_NO_TAKEN
 * mutant: relisted_idle -DUPDATERS=0 -DFLUSHES=1 -DFORK -DLATE -DNOREDUCE -DMUT_RELIST_STORE
 * mutant: not_recovered     -DUPDATERS=1 -DFLUSHES=1 -DFORK -DNOREDUCE -DMUT_NO_RECOVER
 */
#define IDLE 0
#define ARMED 1
#define MARK(me) (2 + me) /* queueing; threads 0-3 before the fork, 4-7 in the child */
#define FOREIGN(s) (s >= 2 && s < 6 && child)
#ifdef FORK
#define IN_PARENT provided (!child)
#else
#define IN_PARENT
#endif
#define THREADS 8

/* Blocks are 1 and 2; 0 is the end of a list. */
byte head, next[3], work[3], armed[3], total[3], folded[3];
byte value[3];
byte taken, hand, working; /* the domain's flush_taken, flush_hand and flush_work */
bool locked;

bool child;
byte settled; /* fork_check: 0 the pid is the parent's, 1 somebody is at it, 2 done */

bool inside[THREADS], aborted[THREADS];
byte begun[3], returned[3];
byte adding[3]; /* taken from the total, not yet in the value */
byte finished;

inline push(b) {
	do
	:: first = head;
	   next[b] = first;
	   atomic {
		if
		:: head == first -> head = b; break
		:: else
		fi
	   }
	od;
	first = 0
}

/* Of fork_check: a block that somebody was just putting on the list is there, or is not. */
inline settle() {
#ifdef MUT_NO_SETTLE
	skip
#else
	if
	:: child && settled != 2 ->
		if
		:: atomic { settled == 0 -> settled = 1 }
		   x = head;
		   do
		   :: x == 0 -> break
		   :: else ->
			atomic { if :: FOREIGN(armed[x]) -> armed[x] = ARMED :: else fi }
			x = next[x]
		   od;
#ifndef MUT_NO_TAKEN
		   x = taken;
		   do
		   :: x == 0 -> break
		   :: else ->
			atomic { if :: FOREIGN(armed[x]) -> armed[x] = ARMED :: else fi }
			x = next[x]
		   od;
#endif
		   settled = 2
		:: settled == 2
		fi
	:: else
	fi
#endif
}

/* pcbatch_priv_stats_arm; ok tells */
inline arm(me, b) {
	do
	:: s = armed[b];
	   if
	   :: s == ARMED -> ok = true; break
	   :: s >= 2 && !FOREIGN(s) -> ok = false; break
	   :: else ->
		if
		:: FOREIGN(s) -> settle(); s = armed[b]
		:: else
		fi;
		if
		:: s == ARMED || (s >= 2 && !FOREIGN(s)) -> skip
		:: else ->
			atomic {
				ok = armed[b] == s;
				if
				:: ok -> armed[b] = MARK(me)
				:: else
				fi
			}
			if
			:: ok ->
#ifdef MUT_ARM_FIRST
				armed[b] = ARMED;
				push(b);
#else
				push(b);
#ifdef MUT_ARM_STORE
				armed[b] = ARMED;
#else
				atomic { if :: armed[b] == MARK(me) -> armed[b] = ARMED :: else fi }
#endif
#endif
				break
			:: else
			fi
		fi
	   fi
	od;
	s = 0
}

/* The leaf's section; ok tells. */
inline leaf(me, b) {
	atomic { inside[me] = true; aborted[me] = false }
	if
	:: armed[b] != ARMED -> atomic { inside[me] = false; ok = false }
	:: else ->
		atomic {
			ok = !aborted[me];
			if
			:: ok -> total[b]++
			:: else
			fi;
			inside[me] = false;
			aborted[me] = false
		}
	fi
}

inline leaf_generic(me, b) {
	if
	:: armed[b] != ARMED -> ok = false
	:: else ->
		total[b]++;
		arm(me, b);
		if
		:: ok
		:: else -> total[b]--
		fi
	fi
}

inline mod(me, b) {
	begun[b]++;
#ifdef GENERIC
	arm(me, b);
	leaf_generic(me, b);
#else
	leaf(me, b);
	if
	:: ok
	:: else -> arm(me, b); leaf(me, b)
	fi;
#endif
	if
	:: ok
	:: else -> value[b]++
	fi;
	atomic { returned[b]++; ok = false }
}

inline listed(b) {
	x = head;
	do
	:: x == 0 || x == b -> break
	:: else -> x = next[x]
	od;
	found = x != 0;
	x = 0
}

inline fold(b, seen) {
	t = seen;
	atomic { t = t - folded[b]; folded[b] = folded[b] + t; adding[b] = adding[b] + t }
	atomic { value[b] = value[b] + t; adding[b] = adding[b] - t; t = 0 }
}

/* pcbatch_priv_stats_relist: the flush lock is held, and nobody else lists what is armed. */
inline relist(me, b) {
	if
	:: b == 0
	:: else ->
#ifdef MUT_RELIST_STORE
		listed(b);
		if
		:: found
		:: else -> armed[b] = IDLE; arm(me, b)
		fi
#else
		if
		:: armed[b] == ARMED ->
			listed(b);
			if
			:: found
			:: else -> push(b)
			fi
		:: else
		fi;
		fold(b, total[b])
#endif
	fi
}

inline recover(me) {
#ifndef MUT_NO_RECOVER
	if
	:: taken != 0 ->
		listed(taken);
		if :: found -> taken = 0 :: else fi
	:: else
	fi;
	do
	:: taken == 0 -> break
	:: else -> b = taken; taken = next[b]; relist(me, b)
	od;
	do
	:: working == 0 -> break
	:: else -> b = working; working = work[b]; relist(me, b)
	od;
	relist(me, hand);
	hand = 0
#else
	taken = 0;
	working = 0
#endif
}

inline flush(me) {
	settle();
	atomic { !locked || child -> locked = true }
	atomic { least[1] = returned[1]; least[2] = returned[2] }
	recover(me);
	do
	:: taken = head;
	   atomic {
		if
		:: head == taken -> head = 0; break
		:: else
		fi
	   }
	od;
	visits = 0;
	do
	:: taken == 0 -> break
	:: else ->
		b = taken;
		hand = b;
		taken = next[b];
#ifndef MUT_NO_DISARM
		armed[b] = IDLE;
#endif
		work[b] = working;
		working = b;
		visits++;
		/* More would be a list that bites its tail. */
		assert(visits <= 2)
	od;
#ifdef MUT_READ_FIRST
	early[1] = total[1]; early[2] = total[2];
#endif
#ifndef MUT_NO_FENCE
	atomic {
		b = 0;
		do
		:: b < THREADS -> aborted[b] = inside[b]; b++
		:: else -> break
		od;
		b = 0
	}
#endif
	do
	:: working == 0 -> break
	:: else ->
		b = working;
		hand = b;
		working = work[b];
#ifdef MUT_READ_FIRST
		fold(b, early[b])
#else
		fold(b, total[b])
#endif
	od;
	hand = 0;
	/* What the lost flusher had in hand is missing in a child. */
	assert(value[1] + adding[1] >= least[1] && value[2] + adding[2] >= least[2]);
#ifndef GENERIC
	assert(value[1] <= begun[1] && value[2] <= begun[2]);
#endif
	locked = false;
	atomic { b = 0; least[1] = 0; least[2] = 0; visits = 0 }
}

#define LOCALS byte s, first, x, t, b, visits; byte least[3], early[3]; bool ok, found

proctype updater(byte me) IN_PARENT {
	LOCALS;

	mod(me, 1);
#if defined(ONE)
	if :: me == 1 -> mod(me, 1) :: else fi;
#elif !defined(FORK)
	mod(me, 2);
#endif
	finished++
}

proctype flusher(byte me) IN_PARENT {
	LOCALS;

	flush(me);
	finished++
}

#ifdef FORK
/* A thread of the child's own. */
proctype late(byte me) {
	LOCALS;

	mod(me, 1);
	finished++
}

proctype survivor(byte me) {
	LOCALS;

	atomic {
		child = true;
		finished = 0;
#ifdef LATE
		run late(5);
#endif
	}
#ifndef LATE
	mod(me, 1);
	mod(me, 2);
#endif
	flush(me);
#ifdef LATE
	finished == 1;
	flush(me);
#endif
	assert(value[1] + adding[1] >= returned[1] && value[2] + adding[2] >= returned[2])
}
#endif

init {
	LOCALS;

	atomic {
#if UPDATERS > 0
		run updater(0);
#endif
#if UPDATERS > 1
		run updater(1);
#endif
#if FLUSHES > 0
		run flusher(2);
#endif
#ifdef FORK
		/* What is listed already. */
		head = 2; armed[2] = ARMED; total[2] = 1; begun[2] = 1; returned[2] = 1;
#ifdef LATE
		next[2] = 1; armed[1] = ARMED; total[1] = 1; begun[1] = 1; returned[1] = 1;
#endif
		run survivor(4);
#endif
	}
#ifndef FORK
	finished == UPDATERS + FLUSHES;
	flush(7);
	assert(value[1] == begun[1] && value[2] == begun[2])
#endif
}
