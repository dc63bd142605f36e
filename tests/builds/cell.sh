#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: cell.sh list [PATTERN] | build NAME | run NAME
# One cell of the matrix in cells.sh. build compiles its programs into build/builds/NAME and always succeeds, so that it
# can be done for many at once; run says what came of that, and runs them. Exit status of run: 0 passed, 77 a tool is
# missing (with the line that installs it), else failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/builds/cells.sh

usage() { echo "usage: cell.sh list [PATTERN] | build NAME | run NAME" >&2; exit 2; }

include=${PCBATCH_INCLUDE:-include}
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror"
divisor=${BUILDS_DIVISOR:-20}
jobs=${BUILDS_JOBS:-2}

# What each stress test of a suite is divided by, of the native build and where each step costs more.
stress_tests="stress_group stress_limit stress_life stress_counter stress_stats"

# ---- tools -----------------------------------------------------------------------------------------------------------

package_of() {
	case $1 in
	clang-rt) echo "libclang-rt-$(clang -dumpversion | sed 's/\..*//')-dev" ;;
	clang++) echo clang ;;
	musl-gcc) echo musl-tools ;;
	*-linux-gnu*-gcc) echo "gcc-${1%-gcc}" ;;
	*-linux-gnu*-g++) echo "g++-${1%-g++}" ;;
	qemu-*) echo qemu-user-static ;;
	ld.lld) echo lld ;;
	ld.gold) echo binutils ;;
	*) echo "$1" ;;
	esac
}

have() {
	case $1 in
	clang-rt) echo 'int main(void) { return 0; }' | clang -x c -fsanitize=address -o /dev/null - 2>/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

missing() {
	for tool in $tools; do
		have "$tool" || package_of "$tool"
	done | sort -u | tr '\n' ' '
}

# ---- building --------------------------------------------------------------------------------------------------------

# expand COMMAND...: the words CK and MUSL stand for where headers are found, NOTIMERS for what its header says.
expand() {
	echo "$*" | sed -e 's/ STRESS//' -e 's| NOTIMERS| -include tests/builds/no_timers.h|' -e "s|MUSL|-DPCBATCH_USE_BUILTINS=1 -idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu|" \
		-e "s|CK|-DPCBATCH_USE_BUILTINS=0 -idirafter /usr/include|"
}

compile() { # OUTPUT ARGUMENT...: by $command
	output=$1
	shift
	# gcc's alarm at tests that initialise through an out parameter; clang has none, and complains of the option.
	case $command in
	clang*) quiet= ;;
	*) quiet=-Wno-maybe-uninitialized ;;
	esac
	# shellcheck disable=SC2086
	$(expand "$command") $warnings $quiet -I"$include" -Itests/builds/lite "$@" -o "$dir/$output" ||
		{ echo "does not build: $command $*"; return 1; }
	# clang leaves its coverage notes where it stands.
	case $command in clang*--coverage*) mv -f ./*.gcno "$dir" ;; esac
	echo "$output" >>"$dir/built"
}

# The n-th of HOW's commands.
command_number() { echo "$how" | awk -F ' ; ' -v n="$1" '{ print $n }'; }
commands_count() { echo "$how" | awk -F ' ; ' '{ print NF }'; }

build_units() { # and objects
	count=$(commands_count)
	parts= i=2
	while [ "$i" -le "$count" ]; do
		command=$(command_number "$i") n=$((i - 1))
		if [ "$kind" = objects ]; then
			compile "libother$n.so" -fPIC -shared -DSTORM_OTHER="storm_other_$n" tests/builds/storm_other.c -lpthread || return 1
			parts="$parts $dir/libother$n.so"
		else
			compile "other$n.o" -c -DSTORM_OTHER="storm_other_$n" tests/builds/storm_other.c || return 1
			parts="$parts $dir/other$n.o"
		fi
		i=$((i + 1))
	done
	command=$(command_number 1)
	# A unit in C++ wants the C++ library's few symbols.
	case $how in *++*) parts="$parts -lstdc++" ;; esac
	# shellcheck disable=SC2086
	compile storm -DSTORM_OTHERS=$((count - 1)) tests/builds/storm.c $parts '-Wl,-rpath,$ORIGIN' -lpthread
}

build_dlclose() {
	command=$(command_number 1)
	compile host tests/dlclose_host.c -ldl -lpthread || return 1
	command=$(command_number 2)
	compile plugin.so -fPIC -shared tests/dlclose_plugin.c
}

suite_programs() {
	for t in tests/test_*.c; do
		t=$(basename "$t" .c)
		case $t in
		test_stress_*) ;;
		*) leave_out "$t" || echo "$t" ;;
		esac
	done
	case $how in
	*STRESS*) for t in $stress_tests; do echo "test_$t"; done ;;
	esac
	echo storm
}

build_program() { # one of a suite
	case $1 in
	storm) compile storm tests/builds/storm.c -lpthread ;;
	*) compile "$1" "tests/$1.c" -lpthread ;;
	esac
}

build() {
	rm -rf "$dir"
	mkdir -p "$dir"
	: >"$dir/built"
	case $kind in
	storm) build_program storm ;;
	units | objects) build_units ;;
	dlclose) build_dlclose ;;
	musl) compile own tests/musl_own.c -lpthread ;;
	suite) for p in $(suite_programs); do build_program "$p" || return 1; done ;;
	esac
}

# ---- running ---------------------------------------------------------------------------------------------------------

# What can't be in a suite: nothing of the kind that a test is about exists there.
leave_out() {
	case $runs:$name:$1 in
	# No filters of system calls, no running of a program by another under the emulator or the checker.
	# And the emulator takes no notice of a limit of the address space.
	qemu-*:*:test_rlimit | qemu-*:*:test_platform | valgrind:*:test_platform | valgrind:*:test_cpu) return 0 ;;
	# Single steps would go through the checker's own code, and take it for the program's.
	*:sanitize/gcc-plain:*) return 1 ;;
	*:sanitize/*:test_signal) return 0 ;;
	# The child of a thread is alone with the locks of the sanitizer; and its own thread meets the filters of system calls.
	*:sanitize/*thread:test_fork | *:sanitize/*thread:test_platform) return 0 ;;
	esac
	return 1
}

# Of what also takes single steps, the tests that don't.
only() {
	case $name:$1 in
	sanitize/gcc-plain:*) ;;
	# A thousand processes are too many to watch as well.
	sanitize/valgrind:test_fork) echo '[!at]*' ;;
	# memcheck takes a size near SIZE_MAX for an error.
	sanitize/valgrind:test_errors) echo '[!m]*' ;;
	sanitize/*:test_fork) echo '[!a]*' ;;
	sanitize/*:test_stress_stats) echo storm ;;
	esac
}

backends() {
	case $runs in
	both | rseq)
		if "build/tests/rseq_probe" >/dev/null; then echo rseq; fi
		[ "$runs" = rseq ] || echo generic
		;;
	*) echo generic ;;
	esac
}

launcher() {
	case $runs in
	qemu-*) echo "$runs" ;;
	valgrind) echo "valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --fair-sched=yes" ;;
	*) case $name in sanitize/*thread) echo "setarch -R" ;; esac ;;
	esac
}

# How much less a program does than when it stands alone.
divide() {
	case $runs:$name in
	valgrind:*) echo $((divisor * 100)) ;;
	qemu-*) echo $((divisor * 10)) ;;
	*:sanitize/*thread) echo $((divisor * 20)) ;;
	*:sanitize/gcc-plain) echo "$divisor" ;;
	*) [ "$kind" = suite ] && echo $((divisor * 5)) || echo "$divisor" ;;
	esac
}

run_one() { # PROGRAM BACKEND: its output in PROGRAM.BACKEND.out
	out=$dir/$1.$2.out
	# (A cancelled thread leaves its stack marked, and clang's runtime puts its own alternate stack away on that.)
	filter=$(only "$1")
	null=allocator_may_return_null=1 # as malloc does
	[ -z "$filter" ] || export PCBATCH_TEST="$filter"
	# shellcheck disable=SC2046
	GMON_OUT_PREFIX="$dir/gmon" GCOV_PREFIX="$dir" GCOV_PREFIX_STRIP=99 TSAN_OPTIONS="halt_on_error=1:$null" \
		MSAN_OPTIONS="$null" ASAN_OPTIONS="use_sigaltstack=0:$null" \
		PCBATCH_STRESS_DIVISOR="$(divide)" PCBATCH_BACKEND=$2 \
		timeout 250 $(launcher) "$dir/$1" >"$out" 2>&1 </dev/null
	status=$?
	# Exit status 77: the whole program has nothing to do here.
	[ $status = 0 ] || [ $status = 77 ] || { echo "$1, backend $2: exit status $status"; tail -n 60 "$out"; return 1; }
}

# Adds up what the programs' own closing lines say.
tally() {
	find "$dir" -name '*.out' -exec cat {} + | awk -v built="$(wc -l <"$dir/built")" -v how="$(backends | tr '\n' ' ')" '
		/^\[  CHECKS  \]/ { checks += $4 }
		/^\[==========\] .* run\.$/ { tests += $2; programs++ }
		/^\[  SKIPPED \] [0-9]/ { skipped += $4 }
		/operations,/ { ops += $2 }
		END {
			printf "[  EXACT   ] %d tests of %d runs, %d skipped; %d assertions, %d operations; built %d; %s\n", tests, programs,
				skipped, checks, ops, built, how
		}'
}

run_suite() {
	for b in $(backends); do
		for p in $(suite_programs); do
			echo "$p $b"
		done
	done | xargs -P "$jobs" -L 1 sh "$0" one "$name" || return 1
	tally
}

run_dlclose() {
	for b in $(backends); do
		# shellcheck disable=SC2046
		PCBATCH_BACKEND=$b "$dir/host" "$dir/plugin.so" $(command_number 3) >"$dir/host.$b.out" 2>&1 ||
			{ echo "backend $b: exit status $?"; cat "$dir/host.$b.out"; return 1; }
	done
	echo "[  EXACT   ] $(cat "$dir"/host.*.out | tr '\n' ' '); built 2; $(backends | tr '\n' ' ')"
}

run_refused() {
	reason=${how##* } command=${how% *}
	# shellcheck disable=SC2086
	if echo '#include <pcbatch.h>' | $command -I"$include" -fsyntax-only -x c - 2>"$dir/err"; then
		echo "should not compile"
		return 1
	fi
	grep -q "error.*$reason" "$dir/err" && echo "[  REFUSED ] 1 build" && return 0
	cat "$dir/err"
	return 1
}

run_musl() {
	"$dir/own" 10000 >"$dir/own.out" 2>&1
	status=$?
	[ $status = 0 ] || { cat "$dir/own.out"; return $status; }
	taskset -c 1 "$dir/own" 1000 >>"$dir/own.out" 2>&1 || { cat "$dir/own.out"; return 1; }
	echo "[  EXACT   ] $(tr '\n' ';' <"$dir/own.out") built 1; rseq"
}

run() {
	absent=$(missing)
	[ -z "$absent" ] || { echo "without: apt-get install -y $absent"; exit 77; }
	if [ "$kind" = refused ]; then
		mkdir -p "$dir"
		run_refused
		return
	fi
	[ -f "$dir/done" ] || { cat "$dir/log" 2>/dev/null || echo "was not built"; return 1; }
	case $kind in
	dlclose) run_dlclose ;;
	musl) run_musl ;;
	suite) run_suite ;;
	*)
		for b in $(backends); do
			run_one storm "$b" || return 1
		done
		tally
		;;
	esac
}

[ $# -ge 1 ] || usage
if [ "$1" = list ]; then
	cells | cut -d '|' -f 1 | grep -E -e "${2:-.}"
	exit
fi
[ $# -ge 2 ] || usage
name=$2
line=$(cells | awk -F '|' -v name="$name" '$1 == name')
[ -n "$line" ] || { echo "no cell $name" >&2; exit 2; }
tools=$(echo "$line" | cut -d '|' -f 2) kind=$(echo "$line" | cut -d '|' -f 3)
runs=$(echo "$line" | cut -d '|' -f 4) how=$(echo "$line" | cut -d '|' -f 5)
command=$how
dir=$PWD/build/builds/$name
case $1 in
build)
	mkdir -p "$dir"
	[ -z "$(missing)" ] || exit 0
	build >"$dir.log" 2>&1 && touch "$dir/done"
	mv "$dir.log" "$dir/log"
	exit 0
	;;
one) run_one "$3" "$4" ;;
run) run ;;
*) usage ;;
esac
