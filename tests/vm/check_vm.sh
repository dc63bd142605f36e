#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_vm.sh [small]
# The library on CPUs that this machine has not: x86-64 with 64 CPUs (small: 16) of which some go off and on, with CPUs
# plugged in, under PREEMPT_RT; AArch64 with 8. Installs nothing; a guest that can't be run is skipped with the reason.
# On a terminal, shows what the guest is at. Prints lines as tests/run.sh does, with the figures of each guest below.
set -u
cd "$(dirname "$0")/../.." || exit 1

many=64 rt=8 seconds=12
case ${1-} in
small)
	# Stepping takes minutes in emulation.
	many=16 rt=4 seconds=5
	export VM_STEP=0
	;;
'') ;;
*)
	echo "usage: check_vm.sh [small]" >&2
	exit 2
	;;
esac
export VM_INSTALL=0 VM_SECONDS=$seconds
mkdir -p build/vm
passed=0 failed=0 skipped=0

# name, command...
guest() {
	name=$1
	shift
	log=build/vm/$name.log
	start=$(date +%s)
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while [ -t 1 ] && kill -0 $pid 2>/dev/null; do
		last=$(grep -aE '^(JOB|GUEST|\[)' "$log" build/vm/console-"${name#x86-}".log 2>/dev/null | tail -n 1 | cut -d: -f2- | tr -d '\r')
		printf '\r\033[K%s %3d s: %.60s' "$name" $(($(date +%s) - start)) "$last"
		sleep 1
	done
	wait $pid
	status=$?
	[ ! -t 1 ] || printf '\r\033[K'
	case $status in
	0) verdict=PASS passed=$((passed + 1)) ;;
	77) verdict=SKIP skipped=$((skipped + 1)) ;;
	*) verdict=FAIL failed=$((failed + 1)) ;;
	esac
	printf '%s  %-60s %4d s\n' $verdict "$name" $(($(date +%s) - start))
	case $verdict in
	PASS) grep -aE '^(GUEST [a-z0-9_]+ Linux|GUEST .*(off and on|online)|ops=|step:|contract:)' "$log" | sed 's/ in_signals.* aborts=/ aborts=/; s/^/      /' ;;
	SKIP) tail -n 1 "$log" ;;
	FAIL) tail -n 60 "$log" ;;
	esac
}

guest x86-many sh tests/vm/run_x86_64.sh many $many
guest x86-hotadd sh tests/vm/run_x86_64.sh hotadd
guest x86-rt sh tests/vm/run_x86_64.sh rt $rt
guest aarch64 sh tests/vm/run_aarch64.sh

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
