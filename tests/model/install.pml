/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One slot for an owner in a line: include/pcbatch/stock.h (stock_find, _place, _try_refill, _confirm, _install, _stays,
 * _take_back) and the install section of arch/ (percpu.h: install), with a drain (drain.h) that empties another
 * owner's slot meanwhile.
 *
 * Kept: the order in which a line's slots, its gate and its count of installs are read and written, each a step of its
 * own; threads that look at CPU 0's line from CPU 1. Left out: pages and statistics (a word is its owner's tag), byte
 * slots (same code), the install gate (drain.pml), references (evict.pml).
 * Sections are aborted as in drain.pml.
 *
 * run: rseq            -DMOVES=3
 * full: rseq_3         -DMOVES=1 -DTHREADS=3
 * run: generic         -DMOVES=0 -DGENERIC
 * mutant: not_confirmed     -DMOVES=3 -DMUT_NO_CONFIRM
 * mutant: confirmed_late    -DMOVES=3 -DMUT_CONFIRM_LATE
 * mutant: count_not_checked -DMOVES=0 -DMUT_NO_COUNT
 * mutant: no_look_after     -DMOVES=0 -DGENERIC -DMUT_NO_LOOK
 * mutant: look_before       -DMOVES=0 -DGENERIC -DMUT_LOOK_FIRST
 */
#ifndef THREADS
#define THREADS 2
#endif
#define OWNER 1
#define OTHER 2

/* CPU 0's line; the owner's first probe is slot 0. */
byte slot[2];
byte gate, installs;

byte cpu[THREADS];
bool inside[THREADS], aborted[THREADS];
byte done;

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

inline leave(me, result) {
	atomic { inside[me] = false; aborted[me] = false; ok = result }
}

/* A section's last step, or one before it. */
inline store(me, what, value, last) {
	atomic {
		if
		:: aborted[me] -> inside[me] = false; ok = false
		:: else -> what = value; ok = true; inside[me] = !last
		fi;
		aborted[me] = false
	}
}

inline find() {
	k = 2;
	w = slot[0];
	if
	:: w == OWNER -> k = 0
	:: else ->
		w = slot[1];
		if
		:: w == OWNER -> k = 1
		:: else
		fi
	fi;
	w = 0
}

inline place() {
	w = slot[0];
	if
	:: w == 0 -> k = 0
	:: else ->
		w = slot[1];
		if
		:: w == 0 -> k = 1
		:: else -> w = slot[0]; k = 0
		fi
	fi
}

/* A section that stores the count it read: it was read where no install was under way. */
inline confirm(me) {
	begin(me);
	if
	:: cpu[me] != 0 || gate != 0 || installs != n -> leave(me, false)
	:: else -> store(me, installs, n, true)
	fi
}

inline install(me) {
	begin(me);
	if
	:: cpu[me] != 0 || gate != 0 -> leave(me, false)
#ifndef MUT_NO_COUNT
	:: cpu[me] == 0 && gate == 0 && installs != n -> leave(me, false)
#endif
	:: else ->
		if
		:: slot[k] != w -> leave(me, false)
		:: else ->
			store(me, installs, installs + 1, false);
			if
			:: ok -> store(me, slot[k], OWNER, true)
			:: else
			fi
		fi
	fi;
	assert(slot[0] != OWNER || slot[1] != OWNER)
}

inline install_generic() {
#ifdef MUT_LOOK_FIRST
	seen = slot[1 - k] == OWNER;
#endif
	atomic {
		ok = slot[k] == w;
		if
		:: ok -> slot[k] = OWNER
		:: else
		fi
	}
#if !defined(MUT_LOOK_FIRST) && !defined(MUT_NO_LOOK)
	seen = slot[1 - k] == OWNER;
#endif
	if
	:: ok && seen ->
		/* take_back */
		atomic {
			if
			:: slot[k] == OWNER -> slot[k] = 0
			:: else
			fi
		}
	:: else
	fi;
	seen = false
}

proctype refiller(byte me) {
	byte n, k, w, i;
	bool ok, seen;

	n = installs;
	if
	:: gate != 0
	:: else ->
		find();
		ok = true;
#if !defined(GENERIC) && !defined(MUT_NO_CONFIRM) && !defined(MUT_CONFIRM_LATE)
		if
		:: k == 2 ->
			confirm(me);
			if
			:: ok -> find()
			:: else
			fi
		:: else
		fi;
#endif
		if
		:: !ok || k != 2
		:: else ->
			place();
#ifdef MUT_CONFIRM_LATE
			confirm(me);
#endif
#ifdef GENERIC
			install_generic()
#else
			if
			:: ok -> install(me)
			:: else
			fi
#endif
		fi
	fi;
	done++
}

/* Takes the other owner's word from under the others. */
proctype drainer() {
	byte i;

	gate++;
	atomic {
		i = 0;
		do
		:: i < THREADS -> aborted[i] = inside[i]; i++
		:: else -> break
		od;
		i = 0
	}
	atomic {
		if
		:: slot[0] == OTHER -> slot[0] = 0
		:: else
		fi
	}
	gate--;
	done++
}

/* The same by a thread of that CPU: a section that looks at no count (pcbatch_stock_drain_cpu). */
proctype drainer_here() {
	atomic {
		byte i = 0;
		do
		:: i < THREADS ->
			if
			:: inside[i] && cpu[i] == 0 -> aborted[i] = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		if
		:: slot[0] == OTHER -> slot[0] = 0
		:: else
		fi;
		done++
	}
}

proctype mover() {
	byte moves = MOVES, t;

	do
	:: moves > 0 ->
		atomic {
			select(t : 0 .. THREADS - 1);
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
		slot[0] = OTHER;
		run refiller(0);
		run refiller(1);
#if THREADS > 2
		run refiller(2);
#endif
		if
		:: run drainer()
		:: run drainer_here()
		fi;
		run mover()
	}
	done == THREADS + 1;
	assert(slot[0] != OWNER || slot[1] != OWNER)
}
