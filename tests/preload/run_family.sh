#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run_family.sh glibc|jemalloc|mimalloc|handoff
# Runs family and new without and with libpcbatch-malloc.so in front of that allocator: the output must be the same, the
# accounting exact (the programs see to that), and at exit what is charged must be what a walk of the heap finds.
set -u
cd "$(dirname "$0")/../.." || exit 2
so=$PWD/build/examples/libpcbatch-malloc.so
bin=build/tests/preload
# shellcheck source=tests/preload/lib.sh
. tests/preload/lib.sh

[ $# -eq 1 ] || { echo "usage: run_family.sh glibc|jemalloc|mimalloc|handoff" >&2; exit 2; }
behind=$(allocator "$1") || { echo "$behind"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# With another allocator in place a plugin bound to the C library's malloc would not work without us either.
plugin=
[ "$1" = glibc ] && plugin=$bin/plugin.so

run() { # NAME WHAT COMMAND...
	name=$1
	shift
	"$@" >"$tmp/$name" 2>"$tmp/$name.err" || { echo "$1 ... ($name): exit status $?"; cat "$tmp/$name.err"; exit 1; }
}

for program in family new; do
	args=
	[ $program = family ] && args=$plugin
	# shellcheck disable=SC2086
	run plain env LD_PRELOAD="$behind" $bin/$program $args
	for backend in rseq generic; do
		[ $backend = rseq ] && ! build/tests/rseq_probe >/dev/null && continue
		rm -f "$tmp/stat"
		# shellcheck disable=SC2086
		run with env PCBATCH_BACKEND=$backend PCBATCH_MALLOC_STAT="$tmp/stat" LD_PRELOAD="$so $behind" $bin/$program $args
		cmp "$tmp/plain" "$tmp/with" || exit 1
		check_stat "$tmp/stat" $program exit || exit 1
		[ "$(stat_of "$tmp/stat" / events.forced)" = 0 ] || { echo "a realloc's size was not foreseen"; exit 1; }
		grep -q "^backend $backend" "$tmp/stat" || { echo "not on the $backend backend"; exit 1; }
	done
done
echo "$1: same output, every sum exact"
