#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves what a hit costs in compiled code: how many instructions a charge, an uncharge and a counter's add take at
# most, that none of them is locked, calls or jumps backward, and that reading a counter is one load of its value,
# behind the load of the pointer to it.
set -u
cd "$(dirname "$0")/.." || exit 1

[ "$(uname -m)" = x86_64 ] || { echo "the count reads x86-64 code only"; exit 77; }
command -v objdump >/dev/null || { echo "without objdump"; exit 77; }

compilers=
for cc in gcc clang; do
	command -v $cc >/dev/null && compilers="$compilers $cc"
done
[ -n "$compilers" ] || { echo "without gcc and clang"; exit 77; }

# shellcheck disable=SC2086
table=$(sh tests/asm_count.sh $compilers) || exit 1
echo "$table"
echo "$table" | awk -v compilers="$(echo "$compilers" | wc -w)" '
	BEGIN {
		limit["charge_stat"] = limit["uncharge_stat"] = limit["charge"] = limit["uncharge"] = 30
		limit["counter_add"] = 15
		limit["counter_read"] = 4
		functions = 6
	}
	function fail(why) { print "FAILED: " $1 " with " $2 ": " why; bad = 1 }
	NR == 1 { next }
	{ rows++ }
	!($1 in limit) { fail("has no limit here"); next }
	$3 !~ /^[0-9]+$/ { fail("no hit path found"); next }
	$3 > limit[$1] { fail($3 " instructions, at most " limit[$1]) }
	$6 { fail("locked instruction") }
	$7 { fail("call") }
	$8 { fail("backward jump") }
	$1 == "counter_read" && ($4 > 2 || $5 != 0) { fail($4 " loads and " $5 " stores") }
	END {
		if (rows != functions * compilers) { print "FAILED: " rows + 0 " rows"; bad = 1 }
		exit bad
	}'
