#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: [ROUNDS=9] [OPS=2000000] run_bench.sh        (make bench-malloc)
# A malloc and its free in front of each allocator: by itself, with libpcbatch-malloc.so, with one shared atomic counter.
# CPU time in ns, median of ROUNDS processes each, taken in turn.
set -u
cd "$(dirname "$0")/../.." || exit 2
ROUNDS=${ROUNDS:-9}
OPS=${OPS:-2000000}
case $ROUNDS$OPS in
*[!0-9]*) echo "usage: ROUNDS=N OPS=N run_bench.sh" >&2; exit 2 ;;
esac
so=$PWD/build/examples/libpcbatch-malloc.so
shim=$PWD/build/tests/preload/atomic_shim.so
bench=build/tests/preload/malloc_bench
# shellcheck source=tests/preload/lib.sh
. tests/preload/lib.sh

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
printf '%-10s %-8s %9s %9s %9s   (ns of CPU a malloc and free: same block; mixed, 1 and 2 threads)\n' allocator with same mix mix-2
for name in glibc jemalloc mimalloc; do
	behind=$(allocator $name) || { echo "$name: $behind"; continue; }
	round=0
	rm -f "$tmp"/*
	while [ $round -lt "$ROUNDS" ]; do
		round=$((round + 1))
		[ -t 2 ] && printf '\r%s: round %s of %s ' $name $round "$ROUNDS" >&2
		LD_PRELOAD="$behind" $bench "$OPS" >>"$tmp/nothing" || exit 1
		LD_PRELOAD="$so $behind" $bench "$OPS" >>"$tmp/pcbatch" || exit 1
		LD_PRELOAD="$shim $behind" $bench "$OPS" >>"$tmp/atomic" || exit 1
	done
	[ -t 2 ] && printf '\r                              \r' >&2
	for with in nothing pcbatch atomic; do
		printf '%-10s %-8s' $name $with
		for column in 1 2 3; do
			cut -d ' ' -f $column "$tmp/$with" | sort -n | sed -n "$(((ROUNDS + 1) / 2))p" | tr '\n' ' ' |
				awk '{ printf " %9.1f", $1 }'
		done
		echo
	done
done
