# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# program.sh - what the check_PROGRAM.sh scripts and cost.sh share: needs, servers on loopback, CPU time.
# Expects to be sourced in the project's folder, by a script that has set `program`.
# shellcheck disable=SC2034

so=$PWD/build/examples/libpcbatch-malloc.so
load=$PWD/build/tests/preload/load
# shellcheck source=tests/preload/lib.sh
. tests/preload/lib.sh

tmp=$(mktemp -d) || exit 1
servers=
cleanup() {
	for s in $servers; do
		kill "$s" 2>/dev/null
	done
	# shellcheck disable=SC2086
	[ -z "$servers" ] || wait $servers 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM
unset LD_PRELOAD

fail() { echo "$program: $*"; exit 1; }

# need COMMAND PACKAGE: a skip, with the line that installs it.
need() {
	command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || {
		echo "$1 was not found. On Debian: apt-get install -y $2"
		exit 77
	}
}

# A port for this process that is most probably free; a server that can't have it fails to answer.
port=$((20000 + ($$ * 7 + $(date +%S | sed 's/^0//') * 331) % 12000)) # below those that clients get

# in_front NAME=VALUE... -- COMMAND...: runs it with the accounting; reports to $stat.
stat=$tmp/stat
in_front() {
	set -- "$@"
	env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" "$@"
}

# answers COMMAND...: waits until it succeeds, at most 10 s; the server is the last of $servers.
answers() {
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || return 1
		sleep 0.05
	done
}

# ends PID: waits, at most 20 s, and sets status.
ends() {
	tries=0
	while kill -0 "$1" 2>/dev/null && [ $tries -lt 400 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	kill -0 "$1" 2>/dev/null && { kill -KILL "$1"; echo "$program: $1 did not end"; }
	wait "$1"
	status=$?
	servers=
}

# cpu_ns PID...: CPU time of all their threads so far.
cpu_ns() {
	for pid in "$@"; do
		cat "/proc/$pid/task/"*/schedstat 2>/dev/null
	done | awk '{ ns += $1 } END { printf "%.0f\n", ns }'
}

# What a report says in one line.
shown() { # GROUP WHY
	echo "$program: $2: bytes $(stat_of "$stat" "$1" bytes "$2"), peak $(stat_of "$stat" "$1" peak "$2") of" \
		"$(stat_of "$stat" "$1" max "$2"), refused $(stat_of "$stat" "$1" events.refused "$2"); still allocated" \
		"$(stat_of "$stat" "$1" blocks "$2") blocks, audit $(stat_of "$stat" "$1" audit.difference "$2")"
}

# The allocator's own figure against ours at the exit: $1 is how much more it may say, in bytes and in percent of ours.
# glibc adds a header of 8 bytes to a block (16 when mapped) and counts what its threads' caches keep; jemalloc counts those.
agrees() { # BYTES PERCENT
	awk -v more="$1" -v percent="$2" -v program="$program" -v bytes="$(stat_of "$stat" / bytes exit)" \
		-v blocks="$(stat_of "$stat" / blocks exit)" -v je="$(stat_of "$stat" - allocator.allocated exit)" \
		-v uord="$(stat_of "$stat" - allocator.uordblks exit)" -v mapped="$(stat_of "$stat" - allocator.hblkhd exit)" '
		BEGIN {
			said = je != "" ? je + 0 : uord + mapped
			ours = je != "" ? bytes : bytes + 8 * blocks
			if (je == "" && uord == "") { print program ": the allocator says nothing"; exit 0 }
			printf "%s: the allocator says %.0f, we %.0f with its headers: %.0f more\n", program, said, ours, said - ours
			exit said < ours || said > ours * (1 + percent / 100) + more
		}' || fail "the allocator's figure and ours differ by more than $1 bytes and $2 %"
}
