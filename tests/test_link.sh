#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that the headers can be used in every unit of a program at once: two C units, a C++ unit and a shared object
# charge one group, and the sum is right. Proves that the headers leave nothing behind: an object that only includes
# them is empty, what ends up in an object is local and prefixed pcbatch_, and no macro without the prefix is defined.
set -u
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/shared.h" <<'END'
#include <pcbatch.h>
#ifdef __cplusplus
extern "C" {
#endif
int charge_in_c(struct pcbatch_group *g, struct pcbatch_counter *c);
int charge_in_cxx(struct pcbatch_group *g, struct pcbatch_counter *c);
int charge_in_so(struct pcbatch_group *g, struct pcbatch_counter *c);
#ifdef __cplusplus
}
#endif
END
unit() { # name of the function, pages
	cat <<END
#include "shared.h"
int $1(struct pcbatch_group *g, struct pcbatch_counter *c)
{
	int i;
	for (i = 0; i < 1000; i++) {
		int err = pcbatch_group_charge_stat(g, $2, 1);
		if (err != 0)
			return err;
		pcbatch_counter_add(c, $2);
	}
	return 0;
}
END
}
unit charge_in_c 1 >"$tmp/c.c"
unit charge_in_cxx 2 >"$tmp/cxx.cpp"
unit charge_in_so 3 >"$tmp/so.c"
cat >"$tmp/main.c" <<'END'
#include <stdio.h>
#include "shared.h"
static struct pcbatch_domain dom;
static struct pcbatch_counter counter;
int main(void)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_group *g;
	int64_t pages, items, sum;

	if (pcbatch_domain_attr_init(&attr) != 0)
		return 1;
	attr.stat_items = 1;
	if (pcbatch_domain_init(&dom, &attr) != 0 || pcbatch_group_create(&dom, NULL, NULL, &g) != 0 ||
	    pcbatch_counter_init(&counter, &dom, 0) != 0)
		return 1;
	if (charge_in_c(g, &counter) != 0 || charge_in_cxx(g, &counter) != 0 || charge_in_so(g, &counter) != 0)
		return 1;
	sum = pcbatch_counter_sum(&counter);
	pcbatch_group_drain(g);
	pcbatch_group_stat_flush(g);
	pages = pcbatch_group_current(g);
	items = pcbatch_group_stat_read(g, 0);
	if (pages != 6000 || items != 3000 || sum != 6000) {
		printf("pages %lld of 6000, items %lld of 3000, counter %lld of 6000\n", (long long)pages,
		       (long long)items, (long long)sum);
		return 1;
	}
	/* Uncharged by another unit than charged it. */
	if (pcbatch_group_uncharge_stat(g, 6000, 3000) != 0 || pcbatch_counter_destroy(&counter) != 0 ||
	    pcbatch_group_destroy(g) != 0 || pcbatch_domain_destroy(&dom) != 0) {
		printf("pages or owners are left\n");
		return 1;
	}
	return 0;
}
END
echo '#include <pcbatch.h>' >"$tmp/only.c"
# The system headers that the library includes, where this system has them.
grep -rhoE '^ *# *include <[a-z_/]+\.h>' include | grep -vE 'pcbatch|ck_pr' | sort -u |
	sed 's/.*\(<.*>\)/#if __has_include(\1)\n#include \1\n#endif/' >"$tmp/system.c"
echo 'extern int unit;' >>"$tmp/system.c"

status=0
fail() {
	echo "$*" >&2
	status=1
}
run() {
	"$@" || { fail "failed: $*"; return 1; }
}

found=
for family in "gcc g++ -fkeep-inline-functions" "clang clang++ -femit-all-decls"; do
	# shellcheck disable=SC2086
	set -- $family
	if ! command -v "$1" || ! command -v "$2"; then
		echo "without $1 and $2" >&2
		continue
	fi >/dev/null
	found="$found $1"
	cc="$1 -std=c11 -Iinclude"
	cxx="$2 -std=c++17 -Iinclude"
	keep=$3

	for level in -O0 -O2; do
		{
			run $cc $level -c -o "$tmp/main.o" "$tmp/main.c" &&
				run $cc $level -c -o "$tmp/c.o" "$tmp/c.c" &&
				run $cxx $level -c -o "$tmp/cxx.o" "$tmp/cxx.cpp" &&
				run $cc $level -fPIC -shared -o "$tmp/libso.so" "$tmp/so.c" &&
				run $cxx -o "$tmp/prog" "$tmp/main.o" "$tmp/c.o" "$tmp/cxx.o" "$tmp/libso.so" -Wl,-rpath,"$tmp"
		} || continue
		for backend in rseq generic; do
			[ $backend = generic ] || ! [ -x build/tests/rseq_probe ] || build/tests/rseq_probe >/dev/null || continue
			PCBATCH_BACKEND=$backend "$tmp/prog" || fail "$1 $level $backend: wrong sum"
		done

		for object in c cxx; do
			symbols=$(nm -g --defined-only "$tmp/$object.o" | awk '{ print $3 }')
			[ "$symbols" = "charge_in_$object" ] || fail "$1 $level: $object.o exports: $symbols"
		done
		symbols=$(nm -D --defined-only "$tmp/libso.so" | awk '{ print $3 }')
		[ "$symbols" = charge_in_so ] || fail "$1 $level: the shared object exports: $symbols"
		symbols=$(nm --defined-only "$tmp/c.o" | awk '{ print $NF }' | grep -vE '^(charge_in_c(\.cold)?$|pcbatch_|ck_)')
		[ -z "$symbols" ] || fail "$1 $level: not prefixed: $symbols"

		# Without optimization gcc keeps static functions that are not inline, so there those may be found.
		run $cc $level -c -o "$tmp/only.o" "$tmp/only.c"
		symbols=$(nm "$tmp/only.o" | if [ $level = -O0 ]; then grep -vE ' (t (pcbatch|ck)_.*|U .*)$'; else cat; fi)
		[ -z "$symbols" ] || fail "$1 $level: an object that only includes pcbatch.h has: $symbols"
	done

	# All inline functions at once, but for those of system headers (there are none of Concurrency Kit with builtins).
	run $cc -O0 "$keep" -DPCBATCH_USE_BUILTINS=1 -c -o "$tmp/all.o" "$tmp/only.c"
	run $cc -O0 "$keep" -c -o "$tmp/system.o" "$tmp/system.c"
	nm --defined-only "$tmp/system.o" | awk '{ print $3 }' >"$tmp/system"
	[ "$(nm --defined-only "$tmp/all.o" | grep -c ' pcbatch_')" -gt 50 ] || fail "$1: $keep kept no functions"
	symbols=$(nm --defined-only "$tmp/all.o" | grep -vE ' [a-z] (pcbatch_|\.L)' | grep -vwFf "$tmp/system")
	[ -z "$symbols" ] || fail "$1: not local or not prefixed: $symbols"
done
[ -n "$found" ] || { echo "no compiler"; exit 77; }

# -dD keeps each #define, #undef and the name of the file they stand in.
for mode in "gcc -std=c11 -x c" "g++ -std=c++17 -x c++"; do
	$mode -Iinclude -E -dD "$tmp/only.c" | awk '
		/^# [0-9]+ "/ { ours = $3 ~ /^"include\/pcbatch/ }
		ours && /^#define / { sub(/\(.*/, "", $2); defined[$2] = 1; n++ }
		ours && /^#undef / { if (!($2 in defined)) { print "undefines " $2; bad = 1 } delete defined[$2] }
		END {
			for (name in defined)
				if (name !~ /^PCBATCH_/) { print "defines " name; bad = 1 }
			if (!n) { print "saw no macro at all"; bad = 1 }
			exit bad
		}' >&2 || fail "${mode%% *}: macros"
done

echo "with$found"
exit $status
