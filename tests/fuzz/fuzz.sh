#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: fuzz.sh CPU_SECONDS
# Replays the corpus on both backends with build/tests/fuzz, then fuzzes both at once for CPU_SECONDS in all: with
# libFuzzer, the address and the undefined behaviour sanitizer where clang has them, else with the program's own
# driver; from 300 seconds on a quarter of the time goes to AFL++, where it is installed. What fails is kept in
# build/fuzz, to be replayed by build/tests/fuzz FILE and then to join the corpus.
set -u

case ${1-} in
'' | *[!0-9]*)
	echo "usage: fuzz.sh CPU_SECONDS" >&2
	exit 2
	;;
esac

total=$1
dir=build/fuzz
corpus=tests/fuzz/corpus
sources=$(echo tests/fuzz/*.c)
# Small regions: most of a run is the zeroing of the domain's memory.
flags="-std=gnu11 -g -DPCBATCH_REGION_SHIFT=12 -DFUZZ_LIBFUZZER -Iinclude"
mkdir -p $dir

for backend in rseq generic; do
	if [ $backend = rseq ] && ! build/tests/rseq_probe >/dev/null 2>&1; then continue; fi
	printf '%s: ' $backend
	PCBATCH_BACKEND=$backend build/tests/fuzz $corpus || exit 1
done

afl=0
if [ "$total" -ge 300 ] && command -v afl-fuzz >/dev/null 2>&1 && command -v afl-clang-fast >/dev/null 2>&1; then
	afl=$((total / 4))
fi
each=$(((total - afl) / 2))

libfuzzer=no
# shellcheck disable=SC2086
if clang -O1 $flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $sources -o $dir/libfuzzer \
	>$dir/clang.log 2>&1; then
	libfuzzer=yes
fi

# backend, seconds
fuzz_one() {
	mkdir -p "$dir/new.$1"
	if [ $libfuzzer = yes ]; then
		PCBATCH_BACKEND=$1 $dir/libfuzzer -max_total_time="$2" -max_len=1024 -seed="$(date +%s)" -print_final_stats=1 \
			-artifact_prefix="$dir/$1-" "$dir/new.$1" $corpus >"$dir/$1.log" 2>&1
	else
		(cd "$dir/new.$1" && PCBATCH_BACKEND=$1 ../../tests/fuzz --seconds "$2" --seed "$(date +%s)" ../../../$corpus) \
			>"$dir/$1.log" 2>&1
	fi
}

fuzz_one rseq $each &
first=$!
fuzz_one generic $each
second=$?
wait $first
status=$?
for backend in rseq generic; do
	if [ $libfuzzer = yes ]; then
		awk -v b=$backend '/number_of_executed_units/ { n = $2 } /average_exec_per_sec/ { r = $2 }
		  END { printf "%s: libFuzzer with sanitizers, %d inputs, %d a second\n", b, n, r }' "$dir/$backend.log"
	else
		echo "$backend: own driver (no libFuzzer here: apt-get install -y clang libclang-rt-14-dev): $(tail -n 1 "$dir/$backend.log")"
	fi
done
if [ $status -ne 0 ] || [ $second -ne 0 ]; then
	tail -n 40 "$dir/rseq.log" "$dir/generic.log"
	exit 1
fi
[ $afl -gt 0 ] || exit 0

# shellcheck disable=SC2086
AFL_QUIET=1 afl-clang-fast -O2 $flags -fsanitize=fuzzer $sources -o $dir/afl >$dir/afl-build.log 2>&1 || {
	cat $dir/afl-build.log
	exit 1
}
rm -rf $dir/afl-rseq $dir/afl-generic
export AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
PCBATCH_BACKEND=rseq afl-fuzz -i $corpus -o $dir/afl-rseq -V $((afl / 2)) -- $dir/afl >$dir/afl-rseq.log 2>&1 &
first=$!
PCBATCH_BACKEND=generic afl-fuzz -i $corpus -o $dir/afl-generic -V $((afl / 2)) -- $dir/afl >$dir/afl-generic.log 2>&1
second=$?
wait $first
status=$?
crashes=0
for backend in rseq generic; do
	stats=$dir/afl-$backend/default/fuzzer_stats
	[ -e "$stats" ] || { tail -n 20 "$dir/afl-$backend.log"; exit 1; }
	awk -v b=$backend '$1 == "execs_done" { n = $3 } $1 == "saved_crashes" { c = $3 } $1 == "execs_per_sec" { r = $3 }
	  END { printf "%s: AFL++, %d inputs, %d a second, %d crashes\n", b, n, r, c }' "$stats"
	crashes=$((crashes + $(awk '$1 == "saved_crashes" { print $3 }' "$stats")))
done
[ $status -eq 0 ] && [ $second -eq 0 ] && [ $crashes -eq 0 ]
