#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: [PAIRS=15] [REQUESTS=120000] [SLICES=40] cost.sh [redis|memcached|nginx|sqlite|python|gcc]...        (redis and memcached)
# What libpcbatch-malloc.so costs a program: CPU time of its threads a request (or a run), without and with, in turn and in
# alternating order, new processes for each pair; the median of the pairs' differences and its 95 % interval.
# For redis and memcached 2 % is allowed. Exits 1 when the whole interval is above that.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=cost
PAIRS=${PAIRS:-15}
REQUESTS=${REQUESTS:-120000}
SLICES=${SLICES:-40}
case $PAIRS$REQUESTS$SLICES in
*[!0-9]*) echo "usage: PAIRS=N REQUESTS=N SLICES=N cost.sh [PROGRAM]..." >&2; exit 2 ;;
esac
[ "$PAIRS" -ge 2 ] || { echo "cost.sh: PAIRS=$PAIRS: must be 2 or more" >&2; exit 2; }
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
PATH=$PATH:/usr/sbin

# Servers: start_NAME PORT PREFIX... leaves $server; load_NAME PORT COUNT.
serve() {
	"$@" >"$tmp/log" 2>&1 &
	server=$!
	servers="$servers $server"
}
start_redis() {
	at=$1
	shift
	mkdir -p "$tmp/dir$at"
	serve env "$@" redis-server --port "$at" --bind 127.0.0.1 --save '' --appendonly no --dir "$tmp/dir$at"
	answers redis-cli -p "$at" ping || fail "redis-server does not answer"
}
load_redis() {
	redis-benchmark -p "$1" -q -t set,get -n $(($2 / 2)) -c 20 -r 10000 -d 64
}
start_memcached() {
	at=$1
	shift
	serve env "$@" memcached -l 127.0.0.1 -p "$at" -U 0 -m 64 -t 1 -u "$(id -un)"
	answers "$load" memcached "$at" 1 4 10 || fail "memcached does not answer"
}
load_memcached() {
	"$load" memcached "$1" 50 "$2" 100
}
start_nginx() {
	at=$1
	shift
	mkdir -p "$tmp/www"
	[ -s "$tmp/www/small" ] || awk 'BEGIN { for (i = 0; i < 100; i++) print "line", i }' >"$tmp/www/small"
	cat >"$tmp/conf$at" <<-END
		daemon off; worker_processes 1; pid $tmp/pid$at; error_log $tmp/nginx-log;
		events { worker_connections 256; }
		http { access_log off; client_body_temp_path $tmp/a; proxy_temp_path $tmp/b; fastcgi_temp_path $tmp/c;
			uwsgi_temp_path $tmp/d; scgi_temp_path $tmp/e; keepalive_requests 1000000;
			server { listen 127.0.0.1:$at; root $tmp/www; } }
	END
	chmod 755 "$tmp" "$tmp/www"
	serve env "$@" nginx -c "$tmp/conf$at" -p "$tmp"
	answers "$load" http "$at" 1 1 /small || fail "nginx does not answer"
}
load_nginx() {
	"$load" http "$1" 20 "$2" /small
}

# slice NAME PORT PID: adds what the server takes for its slice to $spent.
slice() {
	pids="$3 $(cat "/proc/$3/task/$3/children" 2>/dev/null)"
	# shellcheck disable=SC2086
	begin=$(cpu_ns $pids)
	"load_$1" "$2" $((REQUESTS / SLICES)) >"$tmp/out" 2>&1 || fail "the load failed: $(tail -n 1 "$tmp/out")"
	# shellcheck disable=SC2086
	spent=$(($(cpu_ns $pids) - begin))
}

# One pair: two servers side by side, loaded in short slices in turn, so that what else the machine does falls on both.
pair_of_servers() { # NAME
	plain=0 with=0 s=0
	port=$((port + 2))
	"start_$1" $port NONE=1
	one=$server
	"start_$1" $((port + 1)) LD_PRELOAD="$so"
	two=$server
	slice "$1" $port "$one" && slice "$1" $((port + 1)) "$two" # warm
	while [ $s -lt $SLICES ]; do
		s=$((s + 1))
		if [ $(((s + n) % 2)) -eq 0 ]; then
			slice "$1" $port "$one" && plain=$((plain + spent))
			slice "$1" $((port + 1)) "$two" && with=$((with + spent))
		else
			slice "$1" $((port + 1)) "$two" && with=$((with + spent))
			slice "$1" $port "$one" && plain=$((plain + spent))
		fi
	done
	kill "$one" "$two"
	ends "$one" >"$tmp/out" 2>&1
	ends "$two" >"$tmp/out" 2>&1
	echo "$plain $with $REQUESTS" | awk '{ print $1 / $3, $2 / $3 }' >>"$tmp/pairs"
}

ran() {
	"$load" cpu "$tmp/result" env "$@" >"$tmp/out" 2>&1 || fail "$*: failed"
}
run_sqlite() {
	[ -s "$tmp/rows.csv" ] || {
		awk 'BEGIN { for (i = 0; i < 60000; i++) printf "%d,name-%d,%d.%d\n", i, i * 7919 % 60000, i % 977, i % 89 }' >"$tmp/rows.csv"
		printf '%s\n' 'create table t(a, b text, c real);' '.mode csv' ".import $tmp/rows.csv t" 'create index tb on t(b);' \
			'select sum(a), min(b) from t;' 'select count(distinct substr(b, 5)) from t;' >"$tmp/script"
	}
	ran "$@" sqlite3 -init "$tmp/script" :memory: 'select 1;'
}
run_python() {
	[ -s "$tmp/work.py" ] || cat >"$tmp/work.py" <<-END
		d = {}
		for i in range(200000):
		    d["k%d" % (i % 5000)] = [str(i) * (i % 60), {"n": i}]
		print(len(d))
	END
	[ -n "${python-}" ] || python=$(python3 -c 'import sys; print(sys.executable)')
	ran "$@" "$python" "$tmp/work.py"
}
run_gcc() {
	ran "$@" gcc -std=gnu11 -O2 -Iinclude -DPCBATCH_USE_BUILTINS=1 -c -o "$tmp/out.o" examples/quickstart.c
}

# Median and interval by ranks: a neighbour's burst of work makes outliers, which a mean would follow.
summary() { # NAME LIMIT UNIT < pairs: without with
	awk '{ printf "%.6f %s\n", ($2 / $1 - 1) * 100, $1 }' | sort -n | awk -v name="$1" -v limit="$2" -v unit="$3" '
		{ d[NR] = $1; plain[NR] = $2 }
		END {
			n = NR
			# The k-th from either end: the largest k with 2 P(fewer than k of n below the median) <= 5 %.
			p = 0.5 ^ n; below = p; k = 0
			while (2 * below <= 0.05) { k++; p = p * (n - k + 1) / k; below += p }
			low = d[k > 0 ? k : 1]; high = d[k > 0 ? n + 1 - k : n]
			median = n % 2 ? d[(n + 1) / 2] : (d[n / 2] + d[n / 2 + 1]) / 2
			for (i = 1; i <= n; i++) if (i == 1 || plain[i] < least) least = plain[i]
			verdict = limit == "" ? "" : high <= limit + 0 ? "within " limit " %" : low > limit + 0 ? \
				"ABOVE " limit " %" : "not decided: more PAIRS or a quieter machine"
			printf "%-10s %10.0f ns a %s at best, with the accounting %+.2f %% (95 %%: %+.2f to %+.2f, %d pairs)  %s\n", name,
				least, unit, median, low, high, n, verdict
			exit limit != "" && low > limit + 0
		}'
}

pair_of_runs() { # NAME
	if [ $((n % 2)) -eq 0 ]; then
		"run_$1" NONE=1 && plain=$(cat "$tmp/result") && "run_$1" LD_PRELOAD="$so" && with=$(cat "$tmp/result")
	else
		"run_$1" LD_PRELOAD="$so" && with=$(cat "$tmp/result") && "run_$1" NONE=1 && plain=$(cat "$tmp/result")
	fi
	echo "$plain $with" >>"$tmp/pairs"
}

pairs() { # NAME KIND
	n=0
	rm -f "$tmp/pairs"
	while [ $n -lt "$PAIRS" ]; do
		[ -t 2 ] && printf '\r%s: pair %s of %s ' "$1" $((n + 1)) "$PAIRS" >&2
		"pair_of_$2" "$1"
		n=$((n + 1))
	done
	[ -t 2 ] && printf '\r                                \r' >&2
	return 0
}

[ $# -gt 0 ] || set -- redis memcached
bad=0
for name; do
	limit='' unit=run kind=runs
	case $name in
	redis) set -- redis-server redis-server redis-benchmark redis-tools; limit=2 unit=request kind=servers ;;
	memcached) set -- memcached memcached; limit=2 unit=request kind=servers ;;
	nginx) set -- nginx nginx; unit=request kind=servers ;;
	sqlite) set -- sqlite3 sqlite3 ;;
	python) set -- python3 python3 ;;
	gcc) set -- gcc gcc ;;
	*) echo "usage: cost.sh [redis|memcached|nginx|sqlite|python|gcc]..." >&2; exit 2 ;;
	esac
	missing=
	while [ $# -gt 1 ]; do
		command -v "$1" >/dev/null 2>&1 || missing=$2
		shift 2
	done
	[ -z "$missing" ] || { echo "$name: skipped. On Debian: apt-get install -y $missing"; continue; }
	pairs "$name" "$kind"
	summary "$name" "$limit" $unit <"$tmp/pairs" || bad=1
done
exit $bad
