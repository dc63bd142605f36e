# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154
#
# For run_x86_64.sh and run_aarch64.sh: starts an emulated machine and waits for its end. An emulated machine sometimes
# hangs before its first program runs, or is reset as a CPU is plugged in, which no program in it can bring about: then it
# is started again, three times at most. Uses say, fail, $work, $guest, and two functions of the caller's: boot_started,
# called before each start, and each_second, which may write to the emulator's standard input, file descriptor 9.

# boot LOG COMMAND...: LOG is where COMMAND writes the guest's console.
boot() {
	log=$1
	shift
	fifo=$work/monitor-$guest
	rm -f "$fifo"
	mkfifo "$fifo" || fail "cannot make $fifo"
	exec 9<>"$fifo"
	try=1
	until boot_once "$@"; do
		tail -n 5 "$log"
		[ $try -lt 3 ] || fail "three times"
		try=$((try + 1))
	done
	exec 9>&-
	rm -f "$fifo"
}

# Whether it ended by itself, and not before time.
boot_once() {
	: >"$log"
	boot_started
	timeout -k 5 "${VM_TIMEOUT:-500}" "$@" <"$fifo" >"$work/qemu-$guest.log" 2>&1 &
	qemu=$!
	trap 'kill $qemu 2>/dev/null' EXIT
	trap 'exit 1' HUP INT TERM
	waited=0 up=0 shown=0
	while kill -0 $qemu 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		[ $up = 1 ] || ! grep -aq '^GUEST' "$log" || up=1
		if [ $up = 0 ] && [ $waited -ge "${VM_BOOT:-90}" ]; then
			kill $qemu
			wait $qemu
			say "boot $try did not get to the first program in ${VM_BOOT:-90} s"
			return 1
		fi
		each_second
		boot_progress
	done
	wait $qemu
	status=$?
	# Out of time (124, 137) is the tests' doing, or what they test.
	if [ $status = 124 ] || [ $status = 137 ] || grep -aq '^GUEST done' "$log"; then return 0; fi
	say "boot $try ended before time, status $status: $(grep -ao '"event": "SHUTDOWN".*\|Kernel panic.*' "$work/qemu-$guest.log" "$log")"
	return 1
}

boot_progress() {
	[ -t 1 ] || return 0
	lines=$(grep -acE '^(GUEST|JOB)' "$log")
	[ "${lines:-0}" -eq "$shown" ] || say "$(grep -aE '^(GUEST|JOB)' "$log" | tail -n 1 | tr -d '\r')"
	shown=${lines:-0}
}
