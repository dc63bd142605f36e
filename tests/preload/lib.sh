# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# lib.sh - what the scripts here share: finding allocators, and reading the reports of libpcbatch-malloc.so.

# allocator NAME: prints what to preload behind the accounting ("" for glibc), or fails with what installs it.
allocator() {
	case $1 in
	handoff) echo "$PWD/build/tests/preload/handoff.so"; return 0 ;;
	glibc) lib='' package='' ;;
	jemalloc) lib=libjemalloc.so.2 package=libjemalloc2 ;;
	mimalloc) lib=libmimalloc.so.2 package=libmimalloc2.0 ;;
	*) echo "no allocator $1"; return 1 ;;
	esac
	[ -n "$lib" ] || return 0
	path=$(ldconfig -p 2>/dev/null | sed -n "s|.*$lib .*=> ||p" | head -n 1)
	[ -n "$path" ] || path=$(PATH=$PATH:/sbin ldconfig -p | sed -n "s|.*$lib .*=> ||p" | head -n 1)
	[ -n "$path" ] && { echo "$path"; return 0; }
	echo "$lib was not found. On Debian: apt-get install -y $package"
	return 1
}

# stat_of FILE GROUP KEY [WHY]: the value in the last report (of that kind) for that group; GROUP -: of the process.
stat_of() {
	awk -v group="$2" -v key="$3" -v why="${4-}" '
		/^pcbatch-malloc / { on = why == "" || $NF == why; g = "-"; next }
		/^group / { g = $2; next }
		on && g == group && $1 == key { value = $2 }
		END { print value }' "$1"
}

# check_stat FILE WHAT [WHY]: in each report of the file peak is within max, nothing was uncharged that had not been charged,
# and what is charged is what the heap holds.
check_stat() {
	awk -v what="$2" -v why="${3-}" '
		function fail(text) { printf "%s: %s, group %s: %s\n", what, report, group, text; bad = 1 }
		function done() {
			if (group == "") return
			if (v["max"] != "max" && v["peak"] + 0 > v["max"] + 0) fail("peak " v["peak"] " above max " v["max"])
			if (v["max"] != "max" && v["bytes"] + 0 > v["max"] + 0) fail("bytes " v["bytes"] " above max " v["max"])
			if (v["underflow"] + 0 != 0) fail("underflow " v["underflow"])
			if ("audit.difference" in v && v["audit.difference"] + 0 != 0)
				fail("audit.difference " v["audit.difference"])
			split("", v)
		}
		/^pcbatch-malloc / { done(); group = ""; report = $2 " " $3 " " $NF; if (why == "" || why == $NF) reports++; next }
		/^group / { done(); group = $2; next }
		NF == 2 { v[$1] = $2 }
		END {
			done()
			if (!reports) { printf "%s: no report\n", what; bad = 1 }
			exit bad
		}' "$1"
}
