#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run.sh COMMAND...
# Runs each command in turn (each argument is one shell command line, at most TEST_TIMEOUT seconds, 300 unless set)
# and prints PASS, FAIL or SKIP. Exit status 0 of a command is a pass, 77 a skip, anything else a failure, and then
# its whole output follows. Ends with one line of totals; exits 1 when anything failed.
set -u

[ $# -gt 0 ] || { echo "usage: run.sh COMMAND..." >&2; exit 2; }

# A test that calls make must not find this make's job server.
unset MAKEFLAGS MFLAGS MAKELEVEL

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM

# Not every date has nanoseconds.
now_ms() {
	t=$(date +%s%N)
	case $t in
	*[!0-9]*) echo "$(date +%s)000" ;;
	*) echo "${t%??????}" ;;
	esac
}

passed=0 failed=0 skipped=0
for command in "$@"; do
	name=${command#"build/tests/rseq_probe && "}
	start=$(now_ms)
	timeout -k 10 "${TEST_TIMEOUT:-300}" sh -c "$command" >"$out" 2>&1 </dev/null
	status=$?
	ms=$(($(now_ms) - start))
	case $status in
	0) verdict=PASS passed=$((passed + 1)) ;;
	77) verdict=SKIP skipped=$((skipped + 1)) ;;
	*) verdict=FAIL failed=$((failed + 1)) ;;
	esac
	printf '%s  %-60s %4d.%d s\n' "$verdict" "$name" $((ms / 1000)) $((ms % 1000 / 100))
	case $verdict in
	# What cmocka counted, or nothing.
	PASS) sed -n '/^\[=*\] .* run\.$/p; /^\[  [A-Z]* *\] [0-9]/p' "$out" ;;
	SKIP) tail -n 1 "$out" ;;
	FAIL)
		cat "$out"
		case $status in
		124 | 137) echo "$name: stopped after ${TEST_TIMEOUT:-300} s" ;;
		*) echo "$name: exit status $status" ;;
		esac
		;;
	esac
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
