/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gate, fence and drain on the rseq backend: include/pcbatch/drain.h (pcbatch_priv_drain_close, _take, _open,
 * _rseq; stock_hold and _let; owner_take_offline), stock.h (consume_hit, refill_hit, stock_refill with its install
 * and commit sections) and group_charge.h (charge_drained: hold, drain, retry, let), for one owner.
 *
 * Kept: every load and store of gate, install gate, state, bound and word is a step of its own, so is every check
 * within a section; two CPUs, threads that move between them.
 * Left out: a line has one slot (lines with several: install.pml), the statistic, byte slots (same gate), retries (a
 * disturbed try goes direct at once), page counters are exact in one step (limit.pml). Memory is sequentially
 * consistent: what the drainer changes it changes by full barriers, and the fence is one on every CPU.
 *
 * A section is aborted when another thread begins one on that CPU (it must have been preempted), when its own thread
 * moves, at any fence and by a signal. An aborted one commits nothing.
 *
 * run: hold_and_drain  -DCHARGERS=1 -DDRAINERS=2 -DHOLD -DMOVES=1 -DTWICE
 * run: offline         -DCHARGERS=1 -DDRAINERS=1 -DOFFLINE -DMOVES=2 -DTWICE
 * run: signal          -DCHARGERS=1 -DDRAINERS=1 -DSIGNAL -DMOVES=0 -DNOREDUCE
 * full: two_drainers   -DCHARGERS=2 -DDRAINERS=2 -DMOVES=0
 * full: hold_2         -DCHARGERS=2 -DDRAINERS=1 -DHOLD -DMOVES=1
 * full: offline_2      -DCHARGERS=2 -DDRAINERS=1 -DOFFLINE -DMOVES=1
 * full: signal_move    -DCHARGERS=1 -DDRAINERS=1 -DSIGNAL -DMOVES=1 -DNOREDUCE
 * mutant: no_fence            -DCHARGERS=1 -DDRAINERS=1 -DMOVES=0 -DMUT_NO_FENCE
 * mutant: fence_before_gate   -DCHARGERS=1 -DDRAINERS=1 -DMOVES=0 -DMUT_FENCE_FIRST
 * mutant: gate_not_checked    -DCHARGERS=1 -DDRAINERS=1 -DMOVES=0 -DMUT_NO_GATE
 * mutant: opened_outright     -DCHARGERS=2 -DDRAINERS=2 -DMOVES=1 -DMUT_STORE_GATE
 * mutant: taken_by_store      -DCHARGERS=1 -DDRAINERS=2 -DMOVES=0 -DMUT_TAKE_STORE
 * mutant: let_before_retry    -DCHARGERS=1 -DDRAINERS=1 -DHOLD -DMOVES=1 -DMUT_LET_EARLY
 * mutant: no_hold             -DCHARGERS=1 -DDRAINERS=1 -DHOLD -DMOVES=1 -DMUT_NO_HOLD
 * mutant: one_round           -DCHARGERS=2 -DDRAINERS=1 -DHOLD -DMOVES=1 -DMUT_ONE_ROUND
 * mutant: epoch_not_checked   -DCHARGERS=1 -DDRAINERS=1 -DOFFLINE -DMOVES=1 -DMUT_NO_EPOCH
 * mutant: epoch_read_late     -DCHARGERS=1 -DDRAINERS=1 -DOFFLINE -DMOVES=1 -DMUT_EPOCH_LATE
 * mutant: waits_at_gate       -DCHARGERS=1 -DDRAINERS=1 -DSIGNAL -DMOVES=0 -DNOREDUCE -DMUT_WAIT
 * mutant: commits_after_abort -DCHARGERS=2 -DDRAINERS=1 -DMOVES=1 -DMUT_NO_ABORT
 */
#define CPUS 2
#define BATCH 2
#define HIGH 2
#define LOW 1

#ifdef SIGNAL
#define HANDLERS 1
#else
#define HANDLERS 0
#endif
#define THREADS (CHARGERS + DRAINERS + HANDLERS)

/* Shared. A word: 0 empty, else 1 + pages. */
byte word[CPUS], gate[CPUS];
byte epoch, holders; /* the install gate's two parts, always read and written together */
bool online = true, bound = true;
short usage;

/* The machine. */
byte cpu[THREADS];
bool inside[THREADS], aborted[THREADS];
bool signalled; /* drainer 0 is under its handler */

/* What must hold. */
byte live, done;

/* Others that are within a section on this CPU have been preempted in it. */
inline begin(me) {
	atomic {
		i = 0;
		do
		:: i < THREADS ->
			if
			:: i != me && inside[i] && cpu[i] == cpu[me] -> aborted[i] = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		inside[me] = true;
		aborted[me] = false
	}
}

inline commit(me, c, value) {
	atomic {
		if
#ifndef MUT_NO_ABORT
		:: aborted[me] -> ok = false
		:: else -> word[c] = value; ok = true
#else
		:: word[c] = value; ok = true
#endif
		fi;
		inside[me] = false;
		aborted[me] = false;
		w = 0
	}
}

inline leave(me) {
	atomic { inside[me] = false; aborted[me] = false; ok = false; w = 0 }
}

inline fence() {
	atomic {
		i = 0;
		do
		:: i < THREADS -> aborted[i] = inside[i]; i++
		:: else -> break
		od;
		i = 0
	}
}

/* The hit: section slot of percpu.h; `need` pages there, `change` of them. */
inline hit(me, need, change, most) {
	begin(me);
	if
	:: !bound -> leave(me)
	:: else ->
		c = cpu[me];
		if
#ifndef MUT_NO_GATE
		:: gate[c] != 0 ->
			leave(me)
#ifdef MUT_WAIT
			; gate[c] == 0
#endif
#endif
		:: else ->
			w = word[c];
			if
			:: w < 1 + need || w + change > 1 + most -> leave(me)
			:: else -> commit(me, c, w + change)
			fi
		fi
	fi
}

/* pcbatch_priv_stock_refill */
inline refill(me, pages) {
#ifdef MUT_EPOCH_LATE
	on = online;
	atomic { e = epoch; h = holders }
#else
	atomic { e = epoch; h = holders }
	on = online;
#endif
	ok = false;
	extra = 0;
	c = cpu[me];
	if
	:: h != 0 || !on
	:: else ->
		if
		:: gate[c] != 0
		:: else ->
			w = word[c];
			n = (w == 0 -> 1 : w) + pages;
			if
			:: n > 1 + HIGH -> extra = n - 1 - LOW; n = 1 + LOW
			:: else
			fi;
			begin(me);
			if
			:: cpu[me] != c || gate[c] != 0 -> leave(me)
			:: else ->
				if
#ifndef MUT_NO_EPOCH
				:: epoch != e || holders != h -> leave(me)
#endif
				:: else ->
					if
					:: word[c] != w -> leave(me)
					:: else -> commit(me, c, n)
					fi
				fi
			fi
		fi
	fi;
	usage = usage - (ok -> extra : pages);
	atomic { e = 0; h = 0; on = false; extra = 0; n = 0; w = 0; c = 0 }
}

inline charge(me) {
	hit(me, 1, -1, HIGH);
	if
	:: ok
	:: else -> usage = usage + BATCH; refill(me, BATCH - 1)
	fi;
	atomic { live++; ok = false }
}

inline uncharge(me) {
	atomic { live--; ok = false }
	hit(me, 0, 1, HIGH);
	if
	:: ok
	:: else -> refill(me, 1)
	fi;
	ok = false
}

proctype charger(byte me) {
	byte c, w, n, e, h, extra, i;
	bool ok, on;

#ifdef TWICE
	charge(me);
	uncharge(me);
#endif
	charge(me);
	uncharge(me);
	done++
}

/* The same in a signal handler of drainer 0: that one stands still meanwhile. */
proctype handler(byte me) {
	byte c, w, n, e, h, extra, i;
	bool ok, on;

	atomic { signalled = true; cpu[me] = cpu[CHARGERS]; aborted[CHARGERS] = inside[CHARGERS] }
	charge(me);
	uncharge(me);
	signalled = false;
	done++
}

inline take(c) {
#ifdef MUT_TAKE_STORE
	w = word[c];
	word[c] = 0;
#else
	do
	:: w = word[c];
	   if
	   :: w == 0 -> break
	   :: else ->
		atomic {
			if
			:: word[c] == w -> word[c] = 0; break
			:: else
			fi
		}
	   fi
	od;
#endif
	if
	:: w != 0 -> usage = usage - (w - 1)
	:: else
	fi;
	w = 0
}

inline close(c) {
	if
	:: !shut[c] && word[c] != 0 -> gate[c]++; shut[c] = true; fresh[c] = true; any = true
	:: else
	fi
}

inline open(c) {
	if
	:: shut[c] ->
#ifdef MUT_STORE_GATE
		gate[c] = 0;
#else
		gate[c]--;
#endif
		shut[c] = false
	:: else
	fi
}

/* pcbatch_priv_drain_rseq */
inline drain(final) {
	again = final;
	do
	:: any = false;
	   close(0);
	   close(1);
	   if
	   :: !any && !again -> break
	   :: else
	   fi;
#if !defined(MUT_NO_FENCE) && !defined(MUT_FENCE_FIRST)
	   fence();
#endif
	   if :: fresh[0] -> take(0); fresh[0] = false :: else fi;
	   if :: fresh[1] -> take(1); fresh[1] = false :: else fi;
#ifdef MUT_ONE_ROUND
	   break;
#endif
	   if
	   :: !final -> break
	   :: else
	   fi;
	   again = false
	od;
	open(0);
	open(1);
	again = false;
	any = false
}

proctype drainer(byte me; byte kind)
#ifdef SIGNAL
	provided (!signalled)
#endif
{
	bool shut[CPUS], fresh[CPUS];
	bool any, again;
	byte w, i;

#ifdef MUT_FENCE_FIRST
	fence();
#endif
	if
#ifdef HOLD
	:: kind == 1 ->
#ifndef MUT_NO_HOLD
		atomic { epoch++; holders++ }
#endif
		drain(true);
#ifdef MUT_LET_EARLY
		holders--;
#endif
		/* The retry: a refusal here is right, since nothing is cached. */
		assert(word[0] == 0 && word[1] == 0);
#if !defined(MUT_LET_EARLY) && !defined(MUT_NO_HOLD)
		holders--;
#endif
#endif
#ifdef OFFLINE
	:: kind == 1 ->
		online = false;
		bound = false;
		epoch++;
		drain(true);
		assert(word[0] == 0 && word[1] == 0)
#endif
	:: else -> drain(false)
	fi;
	done++
}

/* Moves threads about. */
proctype mover() {
	byte moves = MOVES, t;

	do
	:: moves > 0 ->
		atomic {
			select(t : 0 .. CHARGERS - 1);
			cpu[t] = 1 - cpu[t];
			aborted[t] = inside[t];
			moves--;
			t = 0
		}
	:: break
	od
}

init {
	atomic {
		/* A page is cached already, so that there are hits at once. */
		word[0] = 2;
		usage = 1;
#if CHARGERS > 0
		run charger(0);
#endif
#if CHARGERS > 1
		run charger(1);
#endif
		run drainer(CHARGERS, 1);
#if DRAINERS > 1
		run drainer(CHARGERS + 1, 0);
#endif
#ifdef SIGNAL
		run handler(CHARGERS + DRAINERS);
#endif
#if MOVES > 0
		run mover();
#endif
	}
	done == THREADS;
	assert(gate[0] == 0 && gate[1] == 0 && holders == 0);
	assert(live == 0);
	assert(usage == (word[0] -> word[0] - 1 : 0) + (word[1] -> word[1] - 1 : 0));
#ifdef OFFLINE
	assert(word[0] == 0 && word[1] == 0)
#endif
}
