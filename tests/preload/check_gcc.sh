#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_gcc.sh
# gcc compiling this project under libpcbatch-malloc.so: the same object file; at a limit, its own message.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=gcc
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need gcc gcc

compile() { "$@" gcc -std=gnu11 -O2 -Iinclude -DPCBATCH_USE_BUILTINS=1 -c -o "$tmp/out.o" examples/quickstart.c; }
compile env || fail "failed without the accounting"
mv "$tmp/out.o" "$tmp/plain.o"
compile env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" || fail "failed with the accounting"
cmp "$tmp/plain.o" "$tmp/out.o" || fail "another object file"
check_stat "$stat" gcc exit || exit 1
for process in gcc cc1 as; do
	grep -q "^pcbatch-malloc [0-9]* $process exit$" "$stat" || fail "no report of $process"
done
shown / exit
agrees 1048576 2
rm -f "$stat"
compile env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=3M 2>"$tmp/err" && fail "did not notice the limit"
grep -qi 'out of memory' "$tmp/err" || { head -n 3 "$tmp/err"; fail "no message about memory"; }
check_stat "$stat" gcc || exit 1
shown / refusal
