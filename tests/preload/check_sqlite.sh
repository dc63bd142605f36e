#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_sqlite.sh
# sqlite3 on an import of 200,000 rows into memory, under libpcbatch-malloc.so in front of three allocators, and with a limit.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=sqlite3
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need sqlite3 sqlite3

awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%d,name-%d,%d.%d\n", i, i * 7919 % 200000, i % 977, i % 89 }' >"$tmp/rows.csv"
cat >"$tmp/script" <<END
create table t(a integer, b text, c real);
.mode csv
.import $tmp/rows.csv t
create index tb on t(b);
create index tc on t(c, a);
select count(*), sum(a), min(b), max(b), total(c) from t;
select b, c from t where a % 1000 = 7 order by b;
.stats on
select group_concat(b, '') from (select b from t order by c limit 20000);
END
sqlite3 :memory: <"$tmp/script" | sed '/^[A-Z][^:,]*:  /d' >"$tmp/plain" || fail "failed without the accounting"
for name in glibc jemalloc mimalloc; do
	behind=$(allocator $name) || { echo "$behind"; continue; }
	rm -f "$stat"
	env LD_PRELOAD="$so $behind" PCBATCH_MALLOC_STAT="$stat" sqlite3 :memory: <"$tmp/script" >"$tmp/out" || fail "failed on $name"
	sed '/^[A-Z][^:,]*:  /d' "$tmp/out" >"$tmp/with"
	cmp "$tmp/plain" "$tmp/with" || fail "another result on $name"
	check_stat "$stat" "sqlite3 on $name" exit || exit 1
	used=$(sed -n 's/^Memory Used: *\([0-9]*\) .*/\1/p' "$tmp/out")
	peak=$(stat_of "$stat" / peak exit)
	echo "sqlite3: on $name it counts $used bytes while it has everything; our peak is $peak"
	[ "$used" -le "$peak" ] || fail "it has more than our peak"
	agrees 1048576 2
done
rm -f "$stat"
env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=16M sqlite3 :memory: <"$tmp/script" >"$tmp/out" 2>"$tmp/err"
grep -qi 'out of memory' "$tmp/err" "$tmp/out" || { head -n 3 "$tmp/err"; fail "no message about memory at the limit"; }
check_stat "$stat" sqlite3 exit || exit 1
shown / exit
