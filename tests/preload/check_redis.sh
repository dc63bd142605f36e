#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_redis.sh
# redis-server, which allocates with jemalloc, under libpcbatch-malloc.so: the same data, its own memory figures, a limit.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=redis
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need redis-server redis-server
need redis-cli redis-tools

cli() { redis-cli -p $port "$@"; }
# It opens a log file anew for each line, for which there is no memory at the limit: so it logs to its output.
start() { # COMMAND PREFIX...
	(cd "$tmp" && exec "$@" redis-server --port $port --bind 127.0.0.1 --save '' --appendonly no --dir "$tmp" \
		--enable-debug-command local --crash-log-enabled no --crash-memcheck-enabled no >"$tmp/log" 2>&1) &
	server=$!
	servers=$server
	answers cli ping || { cat "$tmp/log"; fail "does not answer"; }
}
# Strings, lists, hashes and sorted sets that grow, shrink, expire and are deleted: about 30 MB.
commands() {
	awk 'BEGIN {
		for (i = 0; i < 60000; i++) {
			v = sprintf("%0" (20 + i * 7 % 400) "d", i)
			print "SET s" i % 30000 " " v
			if (i % 3 == 0) print "APPEND s" i % 20000 " " v
			if (i % 5 == 0) print "DEL s" (i * 13) % 30000
			print "RPUSH l" i % 100 " " v
			print "HSET h" i % 500 " f" i % 50 " " v
			print "ZADD z" i % 50 " " i * 37 % 1000 " m" i % 700
			if (i % 7 == 0) print "LTRIM l" i % 100 " 50 -1"
		}
	}'
}
memory() { # sets used (as redis counts) and ours
	kill -USR2 "$server"
	tries=0
	while [ "$(grep -c ' signal$' "$stat")" -le "${before:-0}" ] && [ $tries -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	before=$(grep -c ' signal$' "$stat")
	sleep 0.1
	ours=$(stat_of "$stat" / bytes signal)
	used=$(cli info memory | tr -d '\r' | sed -n 's/^used_memory://p')
}

commands >"$tmp/commands"
start env
cli --pipe <"$tmp/commands" >"$tmp/out" || fail "the load failed"
plain=$(cli debug digest)
cli shutdown nosave
ends "$server"

start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_SIGNAL=USR2
memory
ours0=$ours used0=$used
cli --pipe <"$tmp/commands" >"$tmp/out" || fail "the load failed with the accounting"
[ "$(cli debug digest)" = "$plain" ] || fail "other data than without: $(cli debug digest), $plain"
memory
echo "redis: grew by $((used - used0)) bytes by its own count, by $((ours - ours0)) by ours"
awk -v a=$((used - used0)) -v b=$((ours - ours0)) 'BEGIN { d = b - a; exit !(a > 10e6 && d < 262144 + a / 200 && d > -262144 - a / 200) }' ||
	fail "these differ by more than 256 KiB and 0.5 %"
cli shutdown nosave
ends "$server"
[ $status -eq 0 ] || fail "exit status $status"
check_stat "$stat" redis exit || exit 1
shown / exit
agrees 2097152 2

# Less than it needs: it gives up with its own message, as when malloc fails, and never had more.
rm -f "$stat" "$tmp/log"
start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=16M
cli --pipe --pipe-timeout 5 <"$tmp/commands" >"$tmp/out" 2>&1
ends "$server"
[ $status -ne 0 ] || fail "did not notice the limit"
grep -qi 'out of memory' "$tmp/log" || { tail -n 5 "$tmp/log"; fail "no message about memory in its log"; }
check_stat "$stat" redis refusal || exit 1
shown / refusal
