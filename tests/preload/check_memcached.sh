#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_memcached.sh
# memcached under libpcbatch-malloc.so: the same replies, its own figures, and a limit at which it refuses and goes on.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=memcached
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need memcached memcached

start() { # COMMAND PREFIX...
	"$@" memcached -l 127.0.0.1 -p $port -U 0 -m 64 -t 2 -u "$(id -un)" 2>"$tmp/log" &
	server=$!
	servers=$server
	answers "$load" memcached $port 1 4 10 || { cat "$tmp/log"; fail "does not answer"; }
}
stop() {
	kill -TERM "$server"
	ends "$server"
}

start env
"$load" memcached $port 50 20000 1000 >"$tmp/plain" || fail "the load failed"
stop
start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat"
"$load" memcached $port 50 20000 1000 >"$tmp/with" || fail "the load failed with the accounting"
stop
cmp "$tmp/plain" "$tmp/with" || fail "other replies than without"
grep -q ' 0 errors' "$tmp/with" || fail "errors: $(cat "$tmp/with")"
check_stat "$stat" memcached exit || exit 1
shown / exit
agrees 1048576 2

# Its tables fit, the items don't: it says so to its client and keeps serving.
rm -f "$stat"
start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=12M
"$load" memcached $port 50 20000 4000 >"$tmp/limited" || fail "the load failed at the limit"
grep -q ' 0 errors' "$tmp/limited" && [ "$(stat_of "$stat" / events.refused refusal)" = 0 ] && fail "did not notice the limit"
"$load" memcached $port 1 8 10 >"$tmp/after" || fail "does not answer after the limit"
stop
check_stat "$stat" memcached exit || exit 1
shown / exit
