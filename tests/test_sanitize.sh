#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that the storms are clean under ThreadSanitizer (which runs the generic backend, as it can't see sections),
# AddressSanitizer with UndefinedBehaviorSanitizer (both backends), and valgrind where it is installed. Each is a
# shortened run of the stress tests.
set -eu

cd "$(dirname "$0")/.."
: "${CC:=cc}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

flags="-std=gnu11 -g -Iinclude ${CPPFLAGS-}"
libs="-lcmocka -lpthread"
[ "${CK-}" = no ] && flags="$flags -DPCBATCH_USE_BUILTINS=1"
echo 'int main(void) { return 0; }' > "$dir/empty.c"
usable() {
	$CC "$@" "$dir/empty.c" -o "$dir/empty" 2>/dev/null && "$dir/empty"
}

tests="test_stress_group test_stress_limit test_stress_life test_stress_counter test_stress_stats"
done=
if usable -fsanitize=thread; then
	for t in $tests; do
		# shellcheck disable=SC2086
		$CC $flags -O1 -fsanitize=thread "tests/$t.c" -o "$dir/$t" $libs
		# It puts signals off, so nothing can be stepped through under it.
		[ "$t" = test_stress_stats ] && export PCBATCH_TEST=storm
		# Address space randomisation of some kernels is more than older runtimes take.
		TSAN_OPTIONS=halt_on_error=1 PCBATCH_STRESS_DIVISOR=200 PCBATCH_BACKEND=generic setarch -R "$dir/$t"
	done
	unset PCBATCH_TEST
	done="$done thread"
fi
if usable -fsanitize=address,undefined; then
	for t in $tests; do
		# shellcheck disable=SC2086
		$CC $flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "tests/$t.c" -o "$dir/$t" $libs
		for backend in auto generic; do
			[ $backend = auto ] && unset PCBATCH_BACKEND || export PCBATCH_BACKEND=$backend
			PCBATCH_STRESS_DIVISOR=50 "$dir/$t"
		done
	done
	done="$done address undefined"
fi
unset PCBATCH_BACKEND
if command -v valgrind >/dev/null; then
	for t in test_stress_group test_stress_life; do
		# shellcheck disable=SC2086
		$CC $flags -O1 "tests/$t.c" -o "$dir/$t" $libs
		PCBATCH_STRESS_DIVISOR=2000 valgrind -q --error-exitcode=1 --leak-check=full "$dir/$t"
	done
	done="$done valgrind"
fi
[ -n "$done" ] || { echo "$CC has no sanitizers here, and valgrind was not found"; exit 77; }
echo "clean:$done"
