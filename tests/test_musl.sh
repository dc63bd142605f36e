#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that the library works with musl, whose threads have no rseq area unless they register one: 10 000 threads
# that come, charge and end, linked dynamically and statically. Also on one CPU, where musl counts only that one.
set -eu

cd "$(dirname "$0")/.."
command -v musl-gcc >/dev/null || { echo "musl-gcc was not found (package musl-tools)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# The kernel's headers come after musl's own.
flags="-std=gnu11 -O2 -Wall -Wextra -Iinclude -DPCBATCH_USE_BUILTINS=1 -idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
# shellcheck disable=SC2086
{
	musl-gcc $flags tests/musl_own.c -o "$dir/own" -lpthread
	musl-gcc $flags -static tests/musl_own.c -o "$dir/own_static" -lpthread
}
"$dir/own" 100000
"$dir/own_static" 10000
if command -v taskset >/dev/null && taskset -c 1 true 2>/dev/null; then
	taskset -c 1 "$dir/own" 1000
fi
