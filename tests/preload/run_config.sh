#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run_config.sh
# The environment of libpcbatch-malloc.so: what is refused, with which message; where and when reports are written; limits
# and groups by environment; programs that fork, exec and are signalled.
set -u
cd "$(dirname "$0")/../.." || exit 2
so=$PWD/build/examples/libpcbatch-malloc.so
demo=$PWD/build/examples/malloc-group-demo
# shellcheck source=tests/preload/lib.sh
. tests/preload/lib.sh

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
fail() { echo "run_config: $*"; exit 1; }

# refused VARIABLE VALUE TEXT: exit status 2 before main, and one line that names the variable, the value and what is allowed.
refused() {
	env "$1=$2" LD_PRELOAD="$so" "$demo" >"$tmp/out" 2>"$tmp/err"
	status=$?
	[ $status -eq 2 ] || fail "$1=$2: exit status $status"
	[ -s "$tmp/out" ] && fail "$1=$2: main ran"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$1=$2: not one line"
	grep -qF -- "$1" "$tmp/err" && grep -qF -- "$2" "$tmp/err" && grep -qF -- "$3" "$tmp/err" || {
		cat "$tmp/err"
		fail "$1=$2: the message lacks the name, the value or: $3"
	}
}
for value in '' 0 -1 12 4095 4x 4KB 1.5M 0x1000 4097T 99999999999999999999 18014398509481992K ' 8M' MAX; do
	refused PCBATCH_MALLOC_MAX "$value" '4K to 4096T'
done
refused PCBATCH_MALLOC_HIGH 100 '4K to 4096T'
for value in 0 4095 17M max; do
	refused PCBATCH_MALLOC_BATCH $value '4K to 16M'
done
for value in '' 'a b' a/b "$(printf '%048d' 0)"; do
	refused PCBATCH_MALLOC_GROUP "$value" '1 to 47'
done
refused PCBATCH_MALLOC_STAT '' 'a file that can be written'
refused PCBATCH_MALLOC_STAT /nonexistent/file 'a file that can be written'
refused PCBATCH_MALLOC_STAT "$(printf '/tmp/%0500d' 0)" 'at most 400 bytes'
for value in KILL SEGV 9 11 33 65 usr1 ''; do
	refused PCBATCH_MALLOC_SIGNAL "$value" 'USR1, USR2'
done
refused PCBATCH_MALLOC_AUDIT 1 'yes or no'
refused PCBATCH_MALLOC_MAXX '' 'AUDIT, BATCH, GROUP, HIGH, MAX, SIGNAL or STAT'
refused PCBATCH_BACKEND rsec 'rseq or generic'

# What is accepted.
for setting in MAX=4096 MAX=max MAX=64M MAX=64m MAX=4096T HIGH=1G BATCH=4K BATCH=16M GROUP=web:1.a-b_c SIGNAL=SIGUSR1 \
	SIGNAL=40 AUDIT=no; do
	env "PCBATCH_MALLOC_$setting" LD_PRELOAD="$so" sh -c 'exit 7' 2>"$tmp/err"
	case $setting in
	MAX=4096) ;; # dies of it, but not of the value
	*) [ $? -eq 7 ] || { cat "$tmp/err"; fail "$setting was refused"; } ;;
	esac
	grep -q 'must be' "$tmp/err" && fail "$setting was refused"
done

# A relative path is of the directory that a process starts in, also when it goes elsewhere.
(cd "$tmp" && mkdir there && PCBATCH_MALLOC_STAT=rel LD_PRELOAD="$so" bash -c 'cd there; exit 0') || fail "bash failed"
[ -s "$tmp/rel" ] || fail "no report under a relative path"
[ -e "$tmp/there/rel" ] && fail "a relative path moved with the process"
check_stat "$tmp/rel" relative exit || exit 1
# %p is the process.
sh -c "echo \$\$ >$tmp/pid; PCBATCH_MALLOC_STAT=$tmp/pid.%p LD_PRELOAD=$so exec $demo" >"$tmp/out" || fail "the demo failed"
[ -s "$tmp/pid.$(cat "$tmp/pid")" ] || fail "%p did not name the process"
LD_PRELOAD="$so" PCBATCH_MALLOC_STAT=stderr "$demo" >"$tmp/out" 2>"$tmp/err" || fail "the demo failed"
check_stat "$tmp/err" demo exit || exit 1

# Limits: a mark that is passed is counted, a limit is kept, a group by environment is charged and the root with it.
PCBATCH_MALLOC_STAT="$tmp/limit" PCBATCH_MALLOC_MAX=9M PCBATCH_MALLOC_HIGH=1M PCBATCH_MALLOC_GROUP=me PCBATCH_MALLOC_BATCH=8K \
	LD_PRELOAD="$so" "$demo" >"$tmp/out" || fail "the demo failed at 9M"
check_stat "$tmp/limit" limit exit || exit 1
[ "$(stat_of "$tmp/limit" / max)" = 9437184 ] || fail "max"
[ "$(stat_of "$tmp/limit" / high)" = 1048576 ] || fail "high"
[ "$(stat_of "$tmp/limit" / events.high)" -gt 0 ] || fail "high was passed and not counted"
[ "$(stat_of "$tmp/limit" / events.refused refusal)" -gt 0 ] || fail "no refusal was reported"
[ "$(stat_of "$tmp/limit" me blocks)" -gt 0 ] && [ "$(stat_of "$tmp/limit" / bytes)" -gt 0 ] || fail "group me has nothing"
grep -q '^group me /$' "$tmp/limit" || fail "group me is not below the root"

# The signal, to a program that is busy allocating, without disturbing it.
for backend in rseq generic; do
	[ $backend = rseq ] && ! build/tests/rseq_probe >/dev/null && continue
	rm -f "$tmp/sig"
	PCBATCH_BACKEND=$backend PCBATCH_MALLOC_SIGNAL=USR2 PCBATCH_MALLOC_STAT="$tmp/sig" LD_PRELOAD="$so" \
		awk 'BEGIN { for (i = 0; i < 1000000 && !done; i++) { a[i % 5000] = a[(i * 7) % 5000] "x"
		if (length(a[i % 5000]) > 200) a[i % 5000] = "" } print "finished" }' >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	n=0
	while [ $n -lt 15 ]; do
		n=$((n + 1))
		sleep 0.02
		# Only once it is there to be caught.
		[ -s "$tmp/sig" ] || [ -e "$tmp/sig" ] || continue
		kill -USR2 $pid 2>/dev/null
	done
	wait $pid || fail "awk, under signals: exit status $?"
	grep -q finished "$tmp/out" || fail "awk did not finish"
	grep -q ' signal$' "$tmp/sig" || fail "no report on a signal"
	check_stat "$tmp/sig" signal exit || exit 1
done
echo "environment and reports"
