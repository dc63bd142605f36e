#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run_builds.sh [PATTERN]
# The matrix of cells.sh, or the cells whose name matches the extended regular expression: builds all of them, two at a
# time, runs one after the other with a line each as tests/run.sh prints it, and closes with a table. Exits 1 when
# anything failed. BUILDS_JOBS is how many builds run at once; BUILDS_DIVISOR makes the storms shorter (20).
set -u
cd "$(dirname "$0")/../.." || exit 1

[ $# -le 1 ] || { echo "usage: run_builds.sh [PATTERN]" >&2; exit 2; }
names=$(sh tests/builds/cell.sh list "${1:-.}")
[ -n "$names" ] || { echo "no cell matches $1" >&2; exit 2; }
[ -x build/tests/rseq_probe ] || { echo "build/tests/rseq_probe is missing: make it first" >&2; exit 1; }

work=build/builds
mkdir -p $work
log=$work/results.log
unset MAKEFLAGS MFLAGS MAKELEVEL

total=$(echo "$names" | wc -l)
if [ -t 2 ]; then
	# The longest to build are last in the list, and begin first.
	echo "$names" | tac | awk -v total="$total" '{ print $0, NR "/" total }' |
		xargs -P "${BUILDS_JOBS:-2}" -L 1 sh -c 'printf "\rbuilding %s \033[K" "$1 $0" >&2; sh tests/builds/cell.sh build "$0"'
	printf '\r\033[K' >&2
else
	echo "$names" | tac | xargs -P "${BUILDS_JOBS:-2}" -L 1 sh tests/builds/cell.sh build
fi

# Each name is one command of run.sh.
echo "$names" | sed 's/.*/sh tests\/builds\/cell.sh run &/' >$work/commands
set --
while read -r c; do
	set -- "$@" "$c"
done <$work/commands
{ TEST_TIMEOUT=${TEST_TIMEOUT:-300} sh tests/run.sh "$@"; echo "status $?" >$work/status; } | sed -u 's/sh tests\/builds\/cell.sh run //' |
	tee $log
awk -f tests/builds/table.awk $log
[ "$(cat $work/status)" = "status 0" ]
