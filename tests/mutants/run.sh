#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run.sh [REGEX]
# Breaks the library on purpose, one mutant at a time (README.md beside this file), and sees whether the test that
# should notice does. REGEX picks mutants by name, file or test. JOBS=2 run at a time; CC, CFLAGS (-O2),
# CPPFLAGS and LDLIBS (-lcmocka) are as in the Makefile. Prints how each was caught, the quickest first, then the equivalent ones with their reasons
# and one line of totals. Exit status 0: all were caught, 1: one was not, or the lists or the tests are wrong.
set -u

here=$(dirname "$0")
out=build/mutants
cc=${CC:-gcc} cflags=${CFLAGS:--O2} cppflags=${CPPFLAGS:-} libs=${LDLIBS:--lcmocka} jobs=${JOBS:-2}
tab=$(printf '\t')

# A test that calls make must not find this make's job server.
unset MAKEFLAGS MFLAGS MAKELEVEL

now_ms() {
	t=$(date +%s%N)
	case $t in
	*[!0-9]*) echo "$(date +%s)000" ;;
	*) echo "${t%??????}" ;;
	esac
}

awk_lists() { # MODE [VARIABLE=VALUE...]
	mode=$1
	shift
	for v in "$@"; do set -- "$@" -v "$v"; shift; done
	awk -v "mode=$mode" "$@" -f "$here/mutants.awk" "$here"/*.mut
}

field() { # N: of the line in $line
	printf '%s\n' "$line" | cut -f "$1"
}

# ---- one program, one run ------------------------------------------------------------------------

build() { # INCLUDE PROGRAM FLAGS OUTPUT
	more=$3
	[ "$more" != - ] || more=
	# shellcheck disable=SC2086
	$cc -std=gnu11 $cflags -w -I"$1" $cppflags $more -o "$4" "tests/$2.c" $libs -lpthread >"$4.log" 2>&1
}

run() { # SECONDS BACKEND TEST SETTINGS PROGRAM LOG: its exit status
	env=$4
	[ "$env" != - ] || env=
	[ "$2" = none ] || env="$env PCBATCH_BACKEND=$2"
	# shellcheck disable=SC3045
	ulimit -c 0 2>/dev/null
	# shellcheck disable=SC2086
	env $env PCBATCH_TEST="$3" timeout -k 5 "$1" "$5" >"$6" 2>&1 </dev/null
}

backends() {
	case $1 in
	both) echo rseq generic ;;
	*) echo "$1" ;;
	esac
}

# ---- the tests must pass without a mutant --------------------------------------------------------

# Of a mutant's line: what distinguishes its run.
key() {
	echo "$1_$2_$3_$4_$5" | tr -c 'A-Za-z0-9_=\n' '.'
}

baseline() { # BACKEND PROGRAM TEST SETTINGS FLAGS
	dir=$out/base
	binary=$dir/$(key none "$2" - - "$5")
	for b in $(backends "$1"); do
		log=$dir/$(key "$b" "$2" "$3" "$4" "$5")
		start=$(now_ms)
		run 300 "$b" "$3" "$4" "$binary" "$log.log"
		status=$?
		echo $(($(now_ms) - start)) >"$log.ms"
		passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) .*/\1/p' "$log.log")
		verdict=pass
		if grep -q '^\[  SKIPPED \]' "$log.log" || [ "$status" -eq 77 ]; then
			verdict=skip
		elif [ "$status" -ne 0 ] || [ "${passed:-0}" -eq 0 ]; then
			verdict=fail
			echo "without a mutant: $b $2 $3: exit status $status" >&2
		fi
		echo "$verdict" >"$log.verdict"
	done
}

# ---- one mutant ----------------------------------------------------------------------------------

seconds_of() { # MS
	printf '%d.%02d' $(($1 / 1000)) $(($1 % 1000 / 10))
}

verdict() { # VERDICT BY BUILD_MS RUN_MS
	printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$name" "$2" "$3" "$4" >"$dir/result"
	if [ -t 1 ]; then
		printf '%-9s %-40s %s\n' "$1" "$name" "$2"
	fi
	exit 0
}

# Runs one backend of a mutant. Sets how and ms; returns 0 when caught.
caught() { # BACKEND
	base=$out/base/$(key "$1" "$program" "$test" "$settings" "$flags")
	limit=$(($(cat "$base.ms") * 20 / 1000 + 60))
	[ "$kind" != hang ] || limit=$(($(cat "$base.ms") * 4 / 1000 + 5))
	start=$(now_ms)
	run "$limit" "$1" "$test" "$settings" "$dir/test" "$dir/$1.log"
	status=$?
	ms=$(($(now_ms) - start))
	how="$1 $program $test"
	case $status in
	0) return 1 ;;
	124 | 137)
		how="$how: hang"
		[ "$kind" = hang ]
		;;
	77 | 125 | 126 | 127)
		how="$how: exit status $status"
		return 1
		;;
	*)
		# Without a filter the whole program ran: the named test must be among those that failed.
		first=$(sed -n 's/^\[  FAILED  \] \([a-z][a-z0-9_]*\)$/\1/p' "$dir/$1.log" | head -n 1)
		if [ "$test" = '*' ] && [ -n "$first" ]; then
			how="$1 $program $first"
			return 0
		fi
		if grep -q "^\[  FAILED  \] $test\$" "$dir/$1.log"; then return 0; fi
		how="$how: exit status $status"
		[ "$status" -gt 128 ]
		;;
	esac
}

one() { # NAME
	name=$1 dir=$out/$1
	line=$(grep "^[a-z]*$tab$name$tab" "$out/list")
	kind=$(field 1) backend=$(field 3) program=$(field 4) test=$(field 5) settings=$(field 6) flags=$(field 7)
	for b in $(backends "$backend"); do
		[ "$kind" != static ] || break
		[ "$(cat "$out/base/$(key "$b" "$program" "$test" "$settings" "$flags").verdict")" != skip ] ||
			verdict skip "$b $program $test: skipped here" 0 0
	done
	[ "$kind" != static ] || program=test_slot
	start=$(now_ms)
	build "$dir/include" "$program" "$flags" "$dir/test"
	status=$?
	build_ms=$(($(now_ms) - start))
	if [ "$kind" = static ]; then
		[ "$status" -ne 0 ] && grep -q 'static assertion' "$dir/test.log" &&
			verdict pass "static assertion" "$build_ms" 0
		verdict survived "no static assertion failed" "$build_ms" 0
	fi
	[ "$status" -eq 0 ] || verdict broken "does not compile" "$build_ms" 0
	total=0
	for b in $(backends "$backend"); do
		caught "$b" || verdict survived "$how" "$build_ms" "$ms"
		total=$((total + ms))
	done
	rm -rf "$dir/test" "$dir/include"
	verdict pass "$(echo "$how" | sed "s/^$b /$backend /")" "$build_ms" "$total"
}

# ---- all of them ---------------------------------------------------------------------------------

prepare() {
	rm -rf "$out"
	mkdir -p "$out/base" || exit 1
	awk_lists list >"$out/all" || exit 1
	# The regex is for name, backend, program, test and file, not for what is said about them.
	cut -f 1-8 "$out/all" | grep -E -- "${1:-.}" | cut -f 2 >"$out/names"
	awk -F '\t' 'NR == FNR { want[$1] = 1; next } $2 in want' "$out/names" "$out/all" >"$out/list"
	[ -s "$out/list" ] || { echo "no mutant matches $1" >&2; exit 1; }
	bad=0
	while read -r n; do
		mkdir -p "$out/$n" && cp -R include "$out/$n/include" && awk_lists apply "name=$n" "dir=$out/$n" </dev/null || bad=1
	done <"$out/names"
	[ "$bad" -eq 0 ] || exit 1
}

report() {
	grep -v "^same$tab" "$out/list" | cut -f 2 | while read -r n; do cat "$out/$n/result"; done >"$out/results"
	printf '\n%-38s %-62s %7s %7s\n' mutant 'killed by' 'build s' 'run s'
	grep "^pass$tab" "$out/results" | sort -t "$tab" -k 5n | while IFS=$tab read -r v n by b r; do
		printf '%-38s %-62s %7s %7s\n' "$n" "$by" "$(seconds_of "$b")" "$(seconds_of "$r")"
	done
	awk -F '\t' '$1 == "pass" { n++; b += $4; r += $5 }
		END { if (n) printf "\nin all %.1f s of building and %.1f s of running, one after the other\n", b / 1000, r / 1000 }' \
		"$out/results"
	grep "^same$tab" "$out/list" >"$out/same" && {
		echo
		echo "equivalent here, not counted:"
		cut -f 2,9 "$out/same" | while IFS=$tab read -r n why; do printf '  %-36s %s\n' "$n" "$why"; done
	}
	grep -v "^pass$tab" "$out/results" | while IFS=$tab read -r v n by b r; do
		case $v in
		skip) echo "SKIP  $n: $by" ;;
		*) echo "FAIL  $n: $v: $by" ;;
		esac
	done
	awk -F '\t' '{ n[$1]++ } END {
		f = NR - n["pass"] - n["skip"]
		printf "%d passed, %d failed, %d skipped\n", n["pass"], f, n["skip"]
		exit f != 0
	}' "$out/results"
}

case ${1:-} in
--build) shift; build include "$2" "$5" "$out/base/$(key none "$2" - - "$5")"; exit ;;
--base) shift; baseline "$@"; exit 0 ;;
--one) one "$2" ;;
-*) sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2 ;;
esac

prepare "${1:-}"
grep -v "^\(same\|static\)$tab" "$out/list" | cut -f 3-7 | sort -u >"$out/runs"
cut -f 2,5 "$out/runs" | sort -u | tr '\t' '\n' >"$out/builds"
awk -F '\t' '!(($2, $5) in done) { done[$2, $5] = 1; print }' "$out/runs" | tr '\t' '\n' |
	xargs -d '\n' -n 5 -P "$jobs" sh "$0" --build || { echo "the tests do not compile without a mutant" >&2; exit 1; }
tr '\t' '\n' <"$out/runs" | xargs -d '\n' -n 5 -P "$jobs" sh "$0" --base
if grep -q fail "$out"/base/*.verdict 2>/dev/null; then exit 1; fi
grep -v "^same$tab" "$out/list" | cut -f 2 | xargs -n 1 -P "$jobs" sh "$0" --one
report
