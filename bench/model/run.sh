#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds and runs the scale model: counts, calibration, prediction, validation, plots.
#
#	bench/model/run.sh [--quick] [--json FILE]
#
# Exit status: 0; 1 something failed; 77 this machine lacks what it takes (said which).
set -eu
export LC_ALL=C

quick=0
json=
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--json) shift; json=${1:?--json FILE} ;;
	*) echo "usage: run.sh [--quick] [--json FILE]" >&2; exit 2 ;;
	esac
	shift
done
case $json in "" | /*) ;; *) json=$PWD/$json ;; esac
cd "$(dirname "$0")/../.."

skip() { echo "SKIP bench/model: $*"; exit 77; }
[ "$(uname -m)" = x86_64 ] || skip "it knows the locked instructions of x86-64 only"
for tool in valgrind gnuplot objdump; do
	command -v $tool >/dev/null 2>&1 || skip "no $tool. On Debian: apt-get install -y valgrind gnuplot-nox binutils"
done
[ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || skip "validation needs two CPUs"

src=bench/model
out=build/bench/model
svg=build/bench
mkdir -p $out
CC=${CC:-gcc}
flags="-std=gnu11 -O2 -g -fno-pie -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Iinclude"
# One object for both: what is counted is what is timed.
$CC $flags -c -o $out/work.o $src/work.c
$CC $flags -static -no-pie -o $out/trace $src/trace.c $out/work.o -lpthread
$CC $flags -no-pie -o $out/validate $src/validate.c $out/work.o -lpthread
$CC $flags -mno-red-zone -no-pie -o $out/calibrate $src/calibrate.c -lpthread
$CC $flags -no-pie -o $out/mesi $src/mesi.c $src/directory.c $src/timed.c $src/sim.c -lm

if [ $quick = 1 ]; then
	samples=9 cpus="1 2 32 512" ops=512
else
	samples=41 cpus="1 2 4 8 16 32 64 128 256 512" ops=512
fi

# The private cache of the model is this machine's L1 data cache, or a usual one.
cache=/sys/devices/system/cpu/cpu0/cache/index0
sets=$(cat $cache/number_of_sets 2>/dev/null || echo 64)
ways=$(cat $cache/ways_of_associativity 2>/dev/null || echo 12)

echo "calibrating" >&2
$out/calibrate $samples >$out/costs.txt
grep -q '^period' $out/costs.txt || skip "too busy: no undisturbed sample of two CPUs"

# Next to each other, since a neighbour's load changes how lines move.
echo "validating" >&2
$out/validate $samples >$out/measured.tsv

objdump -d --no-show-raw-insn $out/trace | awk '
	/lock/ { sub(":", "", $1); print $1, (/cmpxchg/ ? "cas" : "add"); next }
	/xchg .*\(/ { sub(":", "", $1); print $1, "xchg" }' >$out/rmw.txt
mark=$($out/trace --mark)
points=
for n in $cpus; do points="$points $n:$ops"; done
: >$out/counts.tsv
for v in $($out/trace --list); do
	echo "tracing $v" >&2
	# By way of a file: lackey writes line by line, which through a pipe costs three times as much.
	valgrind --tool=lackey --trace-mem=yes --log-fd=9 $out/trace $v $out/map.txt $points 9>$out/trace.tmp >/dev/null ||
		{ tail -n 5 $out/trace.tmp >&2; exit 1; }
	$out/mesi "$mark" $out/rmw.txt $out/map.txt "$sets" "$ways" $out/costs.txt <$out/trace.tmp >>$out/counts.tsv
	rm -f $out/trace.tmp
done
awk -v json="$json" -v dir=$out -v ways="$ways" -v sets="$sets" -f $src/report.awk \
	$out/costs.txt $out/counts.tsv $out/measured.tsv
gnuplot -e "dir='$out'; svg='$svg'" $src/plots.gp
echo "plots: $svg/model_transfers.svg $svg/model_ns.svg"
