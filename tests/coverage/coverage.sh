#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: coverage.sh DIR
# Builds every C test with gcov's counting into DIR, runs it on both backends, and says which branches of
# include/ no test took. Each line that has some must be in uncovered.txt with its reason. Fails when less than COVERAGE_FLOOR (95) percent of the branches were taken. Assembly has no
# branches that gcov could see.
set -u

[ $# -eq 1 ] || { echo "usage: coverage.sh DIR" >&2; exit 2; }
command -v python3 >/dev/null || { echo "python3 was not found. On Debian: apt-get install -y python3"; exit 77; }

dir=$1
floor=${COVERAGE_FLOOR:-95}
here=tests/coverage
CC=${CC:-gcc}
flags="-std=gnu11 -O0 -g --coverage -fprofile-update=atomic -Iinclude -Itests -include $here/exit.h"
libs="-lcmocka -lpthread"

rm -rf "$dir"
mkdir -p "$dir"

backends="rseq generic"

# name, sources and further flags of one program, run with arguments on each backend
program() {
	name=$1 sources=$2 more=$3
	shift 3
	# shellcheck disable=SC2086
	$CC $flags $more -o "$dir/$name" $sources $libs || exit 1
	pids=
	for backend in $backends; do
		PCBATCH_BACKEND=$backend PCBATCH_STRESS_DIVISOR="${COVERAGE_DIVISOR:-100}" timeout 300 "$dir/$name" "$@" \
			>"$dir/$name.$backend.log" 2>&1 &
		pids="$pids $!"
	done
	[ ! -t 2 ] || printf '\r%-40s' "$name" >&2
	for pid in $pids; do
		wait "$pid"
		status=$?
		case $status in
		0 | 77) ;;
		*)
			tail -n 30 "$dir/$name".*.log
			echo "$name: exit status $status"
			exit 1
			;;
		esac
	done
}

# Those that step through every instruction would take an hour at -O0, and take no branch that others don't: of two
# programs, the tests that don't, by their names.
for source in tests/test_*.c; do
	case $source in
	*/test_signal.c) continue ;;
	*/test_fork.c) export PCBATCH_TEST='[!a]*' ;;
	*/test_stress_stats.c) export PCBATCH_TEST=storm ;;
	*) unset PCBATCH_TEST ;;
	esac
	name=$(basename "$source" .c)
	program "$name" "$source" ""
done
unset PCBATCH_TEST
program test_cross tests/fault/test_cross.c ""
for name in test_counter test_group test_group_limits test_stats test_stock test_obj_stock test_page_counter test_atomic; do
	program "$name.builtins" "tests/$name.c" "-DPCBATCH_USE_BUILTINS=1"
done
# Units without sections.
backends=generic
for name in test_counter test_group test_stats test_stock test_obj_stock; do
	program "$name.noasm" "tests/$name.c" "-DPCBATCH_USE_ASM=0"
done
backends="rseq generic"
program fuzz "$(echo tests/fuzz/*.c)" "-DPCBATCH_REGION_SHIFT=12" tests/fuzz/corpus
[ ! -t 2 ] || printf '\r%-40s\r' "" >&2

python3 $here/merge.py "$dir" $here/uncovered.txt "$floor"
