/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sum and read against folding: include/pcbatch/counter.h (pcbatch_counter_add, _sum, _flush, counter_fold, _direct) on
 * two CPUs' cells, with folders that race for one cell.
 *
 * Kept: every load, store and swap is a step; the loads of folded and total in either order. Left out: the batch (a
 * fold may come at any time), the inside of the add's section (it commits one store on its own CPU or nothing: here one
 * step), wrapping (CBMC).
 * What must hold: a sum has every add that returned before it began and none that began after it ended; the global
 * value and what the cells still owe are the total when nothing is under way; after a flush, read is exact.
 *
 * run: two_folders     -DADDERS=1 -DFOLDERS=2
 * run: either_order    -DADDERS=1 -DFOLDERS=2 -DTOTAL_FIRST
 * run: two_adders      -DADDERS=2 -DFOLDERS=1
 * full: two_and_two    -DADDERS=2 -DFOLDERS=2 -DONE_SUM
 * mutant: folded_by_store   -DADDERS=1 -DFOLDERS=2 -DMUT_NO_CAS
 * mutant: total_reset       -DADDERS=2 -DFOLDERS=1 -DMUT_RESET
 * mutant: sum_of_debts      -DADDERS=1 -DFOLDERS=1 -DMUT_SUM_GLOBAL
 * mutant: global_first      -DADDERS=1 -DFOLDERS=2 -DMUT_GLOBAL_FIRST
 * mutant: direct_not_summed -DADDERS=2 -DFOLDERS=1 -DMUT_NO_DIRECT
 */
byte total[2], folded[2];
byte value, direct;

byte begun, returned; /* units of adds */
byte done;

proctype adder(byte c) {
	atomic { begun++ }
	total[c]++;
	atomic { returned++ }
	/* On the other CPU by now, or on none. */
	atomic { begun++ }
	if
	:: total[1 - c]++
	:: direct++; value++
	fi;
	atomic { returned++ }
	done++
}

inline fold(c) {
	do
	::
#ifdef TOTAL_FIRST
		t = total[c];
		f = folded[c];
#else
		f = folded[c];
		t = total[c];
#endif
		if
		:: t == f -> break
		:: else
		fi;
#ifdef MUT_RESET
		/* The classic: take it, and set it to zero. */
		value = value + t;
		total[c] = 0;
		break
#else
#ifdef MUT_GLOBAL_FIRST
		value = value + (t - f);
#endif
#ifdef MUT_NO_CAS
		folded[c] = t;
		ok = true;
#else
		atomic {
			ok = folded[c] == f;
			if
			:: ok -> folded[c] = t
			:: else
			fi
		}
#endif
		if
		:: ok ->
#ifndef MUT_GLOBAL_FIRST
			value = value + (t - f);
#endif
			break
		:: else
		fi
#endif
	od;
	atomic { t = 0; f = 0; ok = false }
}

proctype folder() {
	byte t, f;
	bool ok;

	fold(0);
	fold(1);
	done++
}

proctype summer() {
#ifdef ONE_SUM
	byte times = 1;
#else
	byte times = 2;
#endif
	byte least, sum;

	do
	:: times == 0 -> break
	:: else ->
		times--;
		least = returned;
#ifdef MUT_SUM_GLOBAL
		sum = value;
		sum = sum + (total[0] - folded[0]);
		sum = sum + (total[1] - folded[1]);
#else
#ifdef MUT_NO_DIRECT
		sum = 0;
#else
		sum = direct;
#endif
		sum = sum + total[0];
		sum = sum + total[1];
#endif
		assert(sum >= least && sum <= begun);
		sum = 0;
		least = 0
	od;
	done++
}

init {
	byte t, f;
	bool ok;

	atomic {
		run adder(0);
#if ADDERS > 1
		run adder(0);
#endif
		run folder();
#if FOLDERS > 1
		run folder();
#endif
		run summer()
	}
	done == ADDERS + FOLDERS + 1;
#ifndef MUT_RESET
	assert(value + (total[0] - folded[0]) + (total[1] - folded[1]) == total[0] + total[1] + direct);
#endif
	fold(0);
	fold(1);
	assert(value == begun && begun == returned)
}
