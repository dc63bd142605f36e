#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_nginx.sh
# nginx, a master and two workers, under libpcbatch-malloc.so and wrk's load: the same bodies; a request that needs more
# memory than the limit leaves fails alone.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=nginx
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need nginx nginx
need wrk wrk
PATH=$PATH:/usr/sbin

mkdir "$tmp/www"
awk 'BEGIN { for (i = 0; i < 3000; i++) print "line", i }' >"$tmp/www/small"
awk 'BEGIN { for (i = 0; i < 600000; i++) print "line", i }' >"$tmp/www/large"
cat >"$tmp/conf" <<END
daemon off;
worker_processes 2;
pid $tmp/pid;
error_log $tmp/log;
env LD_PRELOAD;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path $tmp/a; proxy_temp_path $tmp/b; fastcgi_temp_path $tmp/c; uwsgi_temp_path $tmp/d; scgi_temp_path $tmp/e;
	server {
		listen 127.0.0.1:$port;
		root $tmp/www;
		location = /large { sendfile off; output_buffers 1 24m; }
	}
}
END
chmod 755 "$tmp" "$tmp/www"
start() { # COMMAND PREFIX...
	"$@" nginx -c "$tmp/conf" -p "$tmp" 2>"$tmp/err" &
	server=$!
	servers=$server
	answers "$load" http $port 1 1 /small || { cat "$tmp/err" "$tmp/log"; fail "does not answer"; }
}
stop() {
	kill -QUIT "$server"
	ends "$server"
}
fetch() {
	"$load" http $port 20 2000 /small && "$load" http $port 1 4 /large
}
# Workers run as another user, who has to be able to add to the reports.
touch "$stat" && chmod 666 "$stat"
start env
fetch >"$tmp/plain" || fail "the load failed"
stop
start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat"
fetch >"$tmp/with" || fail "the load failed with the accounting"
wrk -t 1 -c 20 -d 1 "http://127.0.0.1:$port/small" >"$tmp/wrk" || fail "wrk failed"
grep -q 'Non-2xx\|Socket errors' "$tmp/wrk" && { cat "$tmp/wrk"; fail "errors under wrk"; }
stop
cmp "$tmp/plain" "$tmp/with" || fail "other bodies than without"
check_stat "$stat" nginx exit || exit 1
[ "$(grep -c '^pcbatch-malloc .* exit$' "$stat")" -eq 3 ] || fail "not three reports: $(grep -c ' exit$' "$stat")"
shown / exit
agrees 1048576 2
: >"$stat"
start env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=4M
"$load" http $port 1 1 /large >"$tmp/limited" 2>&1 && grep -q ' 0 errors' "$tmp/limited" && fail "did not notice the limit"
grep -q 'Cannot allocate memory' "$tmp/log" || { cat "$tmp/log"; fail "no message about memory in its log"; }
"$load" http $port 5 50 /small >"$tmp/after" || fail "does not answer after the limit"
grep -q ' 0 errors' "$tmp/after" || fail "errors after the limit"
stop
check_stat "$stat" nginx exit || exit 1
shown / refusal
