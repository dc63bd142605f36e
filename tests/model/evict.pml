/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eviction against destruction: include/pcbatch/owner.h (owner_get, _put, _reap_locked, _create_locked), stock.h
 * (_try_refill, _refilled, _release, _stays, _take_back), drain.h (owner_take_offline, drain_take) and group.h
 * (group_offline, _destroy, _create).
 *
 * One line with one slot, two owners that fight for it. The word carries the generation of the id it was written for,
 * which the library does not have: whoever follows an id to its owner asserts that it is still that one and not freed.
 * Kept: the order of reference, commit, hand-over and drop; state, epoch, gate, fence; the dead list; -EBUSY and the
 * second try; ids that are used again. Left out: what drain.pml and install.pml have (several CPUs and slots), parents
 * (a child's reference on its parent is dropped by reap), statistics. A section here is one step between its checks and
 * its commit, since drain.pml has its inside; what was read before it may be old.
 *
 * run: rseq               -DDRAINERS=0
 * run: generic            -DDRAINERS=0 -DGENERIC
 * full: rseq_drained      -DDRAINERS=1
 * full: generic_drained   -DDRAINERS=1 -DGENERIC
 * mutant: got_after_commit   -DDRAINERS=0 -DMUT_GET_LATE
 * mutant: dropped_first      -DDRAINERS=0 -DMUT_PUT_FIRST
 * mutant: kept_on_failure    -DDRAINERS=0 -DMUT_KEEP
 * mutant: victim_not_checked -DDRAINERS=0 -DMUT_NO_OLD
 * mutant: epoch_not_checked  -DDRAINERS=0 -DMUT_NO_EPOCH
 * mutant: id_free_too_early  -DDRAINERS=0 -DMUT_FREE_EARLY
 * mutant: no_look_after      -DDRAINERS=0 -DGENERIC -DMUT_NO_LOOK
 */
#define A 0
#define B 1
#define FREE 0
#define ONLINE 1
#define OFFLINE 2
#define DEAD 3

#ifdef MUT_NO_OLD
#define UNCHANGED true
#else
#define UNCHANGED (s_id == w_id && s_pages == w_pages)
#endif
#if defined(GENERIC)
#define UNDISTURBED true
#elif defined(MUT_NO_EPOCH)
#define UNDISTURBED (gate == 0)
#else
#define UNDISTURBED (gate == 0 && epoch == e)
#endif

/* The slot: owner's id + 1 (0: empty), generation, pages; always one word. */
byte s_id, s_gen, s_pages;
byte gate, epoch;

byte state[2], refs[2], gen[2];
short usage[2];
bool dead[2]; /* on the dead list */
byte done, busy;

inline put(id) {
	atomic { refs[id]--; last = refs[id] == 0 }
	if
	:: last -> dead[id] = true
	:: else
	fi;
	last = false
}

/* Hands on a taken word: t_id, t_gen, t_pages. */
inline release() {
#ifdef MUT_PUT_FIRST
	put(t_id - 1);
#endif
	atomic {
		assert(gen[t_id - 1] == t_gen && state[t_id - 1] != FREE);
		usage[t_id - 1] = usage[t_id - 1] - t_pages
	}
#ifndef MUT_PUT_FIRST
	assert(gen[t_id - 1] == t_gen && state[t_id - 1] != FREE);
	put(t_id - 1);
#endif
	atomic { t_id = 0; t_gen = 0; t_pages = 0 }
}

inline look() {
	atomic { w_id = s_id; w_gen = s_gen; w_pages = s_pages }
}

/* pcbatch_priv_stock_refill for an owner that the caller holds. */
inline refill(id, pages) {
	e = epoch;
	on = state[id] == ONLINE;
	ok = false;
	fresh = false;
	if
	:: !on || gate != 0
	:: else ->
		look();
		if
		:: w_id == id + 1 -> n = w_pages + pages
		:: else ->
			fresh = true;
			n = pages;
#ifndef MUT_GET_LATE
			refs[id]++
#endif
		fi;
		atomic {
			ok = UNCHANGED && UNDISTURBED;
			if
			:: ok -> w_gen = s_gen; s_id = id + 1; s_gen = gen[id]; s_pages = n
			:: else
			fi
		}
#ifdef MUT_GET_LATE
		if :: ok && fresh -> refs[id]++ :: else fi;
#endif
		if
		:: !ok && fresh ->
#if !defined(MUT_KEEP) && !defined(MUT_GET_LATE)
			put(id)
#endif
		:: else
		fi
	fi;
	if
	:: ok && fresh && w_id != 0 ->
		atomic { t_id = w_id; t_gen = w_gen; t_pages = w_pages }
		release()
	:: else
	fi;
	if
	:: !ok -> usage[id] = usage[id] - pages
	:: else
#ifdef GENERIC
#ifndef MUT_NO_LOOK
		;
		if
		:: epoch == e
		:: else ->
			atomic {
				if
				:: s_id == id + 1 ->
					t_id = s_id; t_gen = s_gen; t_pages = s_pages;
					s_id = 0; s_gen = 0; s_pages = 0
				:: else
				fi
			}
			if
			:: t_id != 0 -> release()
			:: else
			fi
		fi
#endif
#endif
	fi;
	atomic { w_id = 0; w_gen = 0; w_pages = 0; ok = false; on = false; fresh = false; n = 0; e = 0 }
}

/* A hit that takes the last page: the word stays, with nothing in it. */
inline consume(id) {
	atomic {
		ok = gate == 0 && s_id == id + 1 && s_pages > 0;
		if
		:: ok -> s_pages--
		:: else -> usage[id]++
		fi;
		ok = false
	}
}

/* Two pages from the page counter; one is used at once, the other one later, or the first one comes back to it. */
inline use(id) {
	usage[id] = usage[id] + 2;
	refill(id, 1);
	if
	:: refill(id, 1)
	:: consume(id); usage[id] = usage[id] - 2
	fi
}

/* A drain of one owner (or, any: of whoever is there), also the final one: this model has one CPU. */
inline drain(id, any) {
	look();
	if
	:: w_id != 0 && (any || w_id == id + 1) ->
#ifndef GENERIC
		gate++;
		/* The fence: sections are single steps here. */
		look();
#endif
		if
		:: w_id != 0 && (any || w_id == id + 1) ->
			atomic {
				if
				:: s_id == w_id && s_pages == w_pages ->
					t_id = s_id; t_gen = s_gen; t_pages = s_pages;
					s_id = 0; s_gen = 0; s_pages = 0
				:: else
				fi
			}
			if
			:: t_id != 0 -> release()
			:: else
			fi
		:: else
		fi
#ifndef GENERIC
		;
		gate--
#endif
	:: else
	fi;
	atomic { w_id = 0; w_gen = 0; w_pages = 0 }
}

/* A swap that failed is tried again: the final drain leaves nothing. */
inline take_offline(id) {
	state[id] = OFFLINE;
	epoch++;
	do
	:: s_id != id + 1 -> break
	:: else -> drain(id, false)
	od
}

inline reap() {
	if :: dead[A] -> atomic { dead[A] = false; assert(refs[A] == 0); state[A] = FREE } :: else fi;
	if :: dead[B] -> atomic { dead[B] = false; assert(refs[B] == 0); state[B] = FREE } :: else fi
}

inline destroy(id) {
	do
	:: take_offline(id);
	   if
	   :: usage[id] != 0 ->
		/* -EBUSY: stays as it was. Trying again before anything has changed would only go in circles. */
		state[id] = ONLINE;
		usage[id] == 0 || s_id == id + 1
	   :: else -> break
	   fi
	od;
	state[id] = DEAD;
#ifdef MUT_FREE_EARLY
	refs[id]--;
	state[id] = FREE;
#else
	put(id);
#endif
	reap()
}

#define LOCALS byte t_id, t_gen, t_pages, w_id, w_gen, w_pages, n, e; bool ok, on, fresh, last

/* Evicts what stands in its way. */
proctype rival() {
	LOCALS;

	use(B);
	done++
}

proctype user() {
	LOCALS;

	use(A);
	busy--;
	done++
}

proctype drainer() {
	LOCALS;

	drain(0, true);
	done++
}

/* Takes A offline under its user, ends it when that is done, and gives its id to another if it is free. */
proctype destroyer() {
	LOCALS;

	take_offline(A);
	busy == 0;
	/* Offline is for good. */
	assert(s_id != A + 1);
	destroy(A);
	if
	:: state[A] == FREE ->
		atomic { gen[A]++; refs[A] = 1; usage[A] = 0; state[A] = ONLINE }
		use(A);
		destroy(A)
	:: else
	fi;
	/* Everybody has gone: nothing may be left. */
	done == DRAINERS + 2;
	destroy(B);
	reap();
	assert(s_id == 0 && gate == 0);
	assert(state[A] == FREE && state[B] == FREE && refs[A] == 0 && refs[B] == 0);
	assert(usage[A] == 0 && usage[B] == 0)
}

init {
	atomic {
		state[A] = ONLINE; refs[A] = 1;
		state[B] = ONLINE; refs[B] = 1;
		busy = 1;
		run user();
		run rival();
#if DRAINERS > 0
		run drainer();
#endif
		run destroyer()
	}
}
