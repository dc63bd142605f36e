#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that the example in README.md is true: the C block under <!-- quickstart --> compiles without a warning as C11
# and as C++17, and does what it says (it exits 0).
set -u
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

awk '/^<!-- quickstart -->$/ { marked = 1 }
     /^```/ && inside { exit }
     inside
     marked && /^```c$/ { inside = 1 }' README.md >"$tmp/readme.c"
[ -s "$tmp/readme.c" ] || { echo "README.md has no C block under the marker" >&2; exit 1; }

status=0
found=
for compiler in "gcc -x c -std=c11" "g++ -x c++ -std=c++17" "clang -x c -std=c11" "clang++ -x c++ -std=c++17"; do
	command -v "${compiler%% *}" >/dev/null || continue
	found=yes
	if ! $compiler -Wall -Wextra -Wpedantic -Werror -Iinclude -o "$tmp/readme" "$tmp/readme.c"; then
		echo "does not compile: $compiler" >&2
		status=1
	elif ! "$tmp/readme"; then
		echo "fails: $compiler" >&2
		status=1
	fi
done
[ -n "$found" ] || { echo "no compiler"; exit 77; }
exit $status
