#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that every header compiles on its own, included first and only, without a warning: gcc and clang, C11, GNU C11
# and C++17, with and without optimization, with compiler builtins for atomics, in debug builds. Of pcbatch.h the inline
# functions that nobody calls are compiled too, so that the assembler sees every asm statement. Proves also that the
# headers in pcbatch/arch/ refuse to be included from outside. The list of headers is what the directory holds.
#
# Called with arguments it is the one job: test_headers.sh HEADER COMPILER FLAG...
set -u
cd "$(dirname "$0")/.." || exit 1

if [ $# -gt 1 ]; then
	header=$1
	shift
	# The declaration keeps a header of macros alone from being an empty unit.
	printf '#include <%s>\nextern int unit;\n' "$header" |
		"$@" -Iinclude -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror -c -o /dev/null - && exit 0
	echo "<$header> alone: $*" >&2
	exit 1
fi

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

public=$(cd include && find pcbatch.h pcbatch -name '*.h' ! -path 'pcbatch/arch/*' | sort)
private=$(cd include && find pcbatch/arch -name '*.h' | sort)
if [ -z "$public" ] || [ -z "$private" ]; then
	echo "found no headers" >&2
	exit 1
fi

for family in "gcc g++ -fkeep-inline-functions" "clang clang++ -femit-all-decls"; do
	# shellcheck disable=SC2086
	set -- $family
	if ! command -v "$1" || ! command -v "$2"; then
		echo "without $1 and $2" >&2
		continue
	fi >/dev/null
	for header in $public; do
		for language in "$1 -x c -std=c11" "$1 -x c -std=gnu11" "$2 -x c++ -std=c++17"; do
			# Compiling what nobody calls takes long: done for the header that has everything.
			[ "$header" = pcbatch.h ] && keep=$3 || keep=
			for option in -O0 -O2 '-DPCBATCH_USE_BUILTINS=1 -O2' '-DPCBATCH_DEBUG=1 -O2'; do
				echo "$header $language $keep $option"
			done
		done
	done
done >"$tmp/jobs"
[ -s "$tmp/jobs" ] || { echo "no compiler"; exit 77; }

xargs -P 2 -L 1 sh "$0" <"$tmp/jobs" || exit 1

status=0
for header in $private; do
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		if printf '#include <%s>\n' "$header" | $cc -x c -Iinclude -fsyntax-only - 2>"$tmp/err"; then
			echo "<$header> can be included directly with $cc" >&2
			status=1
		elif ! grep -q 'error:.*pcbatch/percpu\.h' "$tmp/err"; then
			echo "<$header> does not say what to include instead:" >&2
			cat "$tmp/err" >&2
			status=1
		fi
	done
done

echo "$(wc -l <"$tmp/jobs") compilations, $(echo "$private" | wc -l) private headers refused"
exit $status
