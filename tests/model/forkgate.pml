/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gates that a child inherits closed: include/pcbatch/lock.h (fork_check, reopen_gates, install_gate_reset, lower) and
 * drain.h (drain_close, _open, stock_hold, _let), on two CPUs' gates and the install gate.
 *
 * A fork is the moment from which the parent's other drainer does not run any more: the memory is as it left it. The
 * survivor forks, or its signal handler does at any step of a drain of its own with a hold; in the child the handler
 * charges (looks at the gates) or drains, and returns to what it interrupted. A second thread of the child's begins when
 * lock.h allows it: not before what a handler interrupted has returned.
 * Kept: each access to gates, install gate, pid and claim. Left out: slots (a drain is its gates).
 *
 * known_limit is no mutant but the library as it is, with a handler that interrupts fork_check itself and goes through
 * it, in a child that has another thread already: what was interrupted may then open a gate of that thread's drain.
 *
 * What must hold: a gate that a drainer of the child has closed stays closed until that one opens it, the same for
 * a hold; when all have returned everything is open; nobody waits for ever.
 *
 * run: other_drainer   -DFORK -DNOREDUCE -DOTHER=1
 * run: own_drain       -DFORK -DNOREDUCE -DOTHER=0
 * full: two_threads    -DFORK -DNOREDUCE -DOTHER=1 -DTHREADS=2
 * mutant: not_reopened    -DFORK -DNOREDUCE -DOTHER=1 -DMUT_NO_REOPEN
 * mutant: pid_set_first   -DFORK -DNOREDUCE -DOTHER=1 -DTHREADS=2 -DMUT_PID_FIRST
 * mutant: no_claim        -DFORK -DNOREDUCE -DOTHER=1 -DTHREADS=2 -DMUT_NO_CLAIM
 * mutant: known_limit     -DFORK -DNOREDUCE -DOTHER=1 -DTHREADS=2 -DNESTED
 * mutant: lowered_anyway  -DFORK -DNOREDUCE -DOTHER=0 -DMUT_LOWER
 * mutant: hold_not_reset  -DFORK -DNOREDUCE -DOTHER=1 -DMUT_KEEP_HOLD
 */
#define PARENT 1
#define CHILD 2
#ifndef THREADS
#define THREADS 1
#endif

byte gate[2], holders;
byte process = PARENT; /* getpid */
byte dom_pid = PARENT, claim;
bool child, alone = true;
byte closers[2], holding; /* drainers of the running process that rely on it */
bool handling;            /* the survivor's handler runs, and it stands still */
byte done;

inline fork_check(me, result) {
	result = process;
	do
	:: dom_pid == result -> break
	:: else ->
#ifndef MUT_NO_CLAIM
		/* Another one is at it: wait (sched_yield). */
		if
		:: atomic { claim == 0 || claim == me -> claim = me }
		   skip
		:: dom_pid == result -> break
		fi;
#endif
#ifdef MUT_PID_FIRST
		dom_pid = result;
#endif
#ifndef MUT_NO_REOPEN
		if :: gate[0] != 0 -> gate[0] = 0 :: else fi;
		if :: gate[1] != 0 -> gate[1] = 0 :: else fi;
#ifndef MUT_KEEP_HOLD
		holders = 0;
#endif
#endif
		dom_pid = result
	od
}

inline lower(word) {
	atomic {
		if
		:: word != 0 -> word--
		:: else
		fi
	}
}

/* A drain with a hold; in a child forked since it began, what it had closed is opened outright. */
inline drain(me) {
	fork_check(me, mine);
	atomic { holders++; holding++ }
	atomic { gate[0]++; closers[0]++ }
	atomic { gate[1]++; closers[1]++ }
	/* The fence, and what is taken: nothing may be open. */
	atomic {
		if
		:: process == mine -> assert(gate[0] != 0 && gate[1] != 0 && holders != 0)
		:: else
		fi
	}
	fork_check(me, now);
#ifdef MUT_LOWER
	gate[0]--; gate[1]--; holders--;
	atomic { closers[0]--; closers[1]--; holding-- }
#else
	if
	:: now == mine ->
		atomic { closers[0]--; if :: gate[0] != 0 -> gate[0]-- :: else fi }
		atomic { closers[1]--; if :: gate[1] != 0 -> gate[1]-- :: else fi }
	:: else -> atomic { gate[0] = 0; gate[1] = 0; closers[0] = 0; closers[1] = 0 }
	fi;
	fork_check(me, now);
	if
	:: now == mine -> atomic { holding--; if :: holders != 0 -> holders-- :: else fi }
	:: else -> atomic { holders = 0; holding = 0 }
	fi
#endif
}

#define RELIED (gate[0] >= closers[0] && gate[1] >= closers[1] && holders >= holding)

proctype other() provided (!child) {
	byte mine, now;

	drain(3);
	drain(3)
}

/* What runs in the child on a thread of its own: when nothing that was interrupted can go on. */
proctype late() {
	byte mine, now;

	!alone;
	drain(5);
	assert(RELIED);
	done++
}

proctype handler() {
	byte mine, now;

	atomic {
		!child -> child = true;
		process = CHILD;
		handling = true;
#if OTHER
		alone = false; /* nothing was interrupted that relies on a gate */
#endif
		/* Those of the parent do not rely on anything here. */
		closers[0] = 0; closers[1] = 0; holding = 0
	}
	if
	:: drain(4)
	:: gate[0] != 0 || holders != 0 -> fork_check(4, now) /* a charge that found it closed */
	:: skip
	fi;
	handling = false;
	done++
}

#ifdef NESTED
/* A charge in a handler that interrupts the survivor in the child. */
proctype nested() {
	byte now;

	atomic { child && !handling -> handling = true }
	fork_check(4, now);
	handling = false
}
#endif

/* Its own drain, in the middle of which the handler forks; goes on in the child. */
proctype survivor() provided (!handling) {
	byte mine, now;

#if OTHER == 0
	drain(4);
#endif
	child;
	/* Any later call. */
	if
	:: gate[0] != 0 || gate[1] != 0 || holders != 0 -> fork_check(4, now)
	:: else
	fi;
	alone = false;
#if THREADS > 1
	drain(4);
	done++
#else
	done++
#endif
}

init {
	atomic {
#if OTHER
		run other();
#endif
		run handler();
		run survivor();
#ifdef NESTED
		run nested();
#endif
#if THREADS > 1
		run late()
#endif
	}
	done == THREADS + 1;
	assert(gate[0] == 0 && gate[1] == 0 && holders == 0)
}
