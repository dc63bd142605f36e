# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# For run_x86_64.sh and run_aarch64.sh: starts an emulated machine and waits for its end. An emulator sometimes hangs
# before the first program of the guest runs, once in many boots, which says nothing about the library: then
# the machine is started again, three times at most. Uses say, fail, $work, $guest; a function each_second of the
# caller's is called, well, each second, and may write to the monitor, file descriptor 9.

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
		say "boot $try did not get to the first program in ${VM_BOOT:-90} s"
		[ $try -lt 3 ] || fail "no boot did"
		try=$((try + 1))
	done
	exec 9>&-
	rm -f "$fifo"
}

# Whether the guest's first program was reached, or the machine ended by itself.
boot_once() {
	: >"$log"
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
			return 1
		fi
		each_second
		boot_progress
	done
	wait $qemu
	return 0
}

boot_progress() {
	[ -t 1 ] || return 0
	lines=$(grep -acE '^(GUEST|JOB)' "$log")
	[ "${lines:-0}" -eq $shown ] || say "$(grep -aE '^(GUEST|JOB)' "$log" | tail -n 1 | tr -d '\r')"
	shown=${lines:-0}
}
