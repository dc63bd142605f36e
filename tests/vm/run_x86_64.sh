#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run_x86_64.sh many|hotadd|rt [CPUS]
# Boots Debian's kernel with emulated CPUs and tests the x86-64 sections there:
#	many	CPUS (64) of them, some taken off and on again under load; a domain with slots for two of them only; and
#		copies of the library with one mistake each, which must be caught
#	hotadd	two of them, and six more plugged in while the storm runs, which must get to them
#	rt	CPUS (8) under the PREEMPT_RT kernel, real-time threads against ordinary ones
# What is downloaded and built stays in build/vm. Installs nothing. Exit status: 0 passed, 1 failed, 77 could not be
# run, with the reason.
set -u
cd "$(dirname "$0")/../.." || exit 1

guest=${1-}
case $guest in
many) cpus=${2:-64} kernel=cloud ;;
hotadd) cpus=8 kernel=cloud ;;
rt) cpus=${2:-8} kernel=rt ;;
*)
	echo "usage: run_x86_64.sh many|hotadd|rt [CPUS]" >&2
	exit 2
	;;
esac

work=$PWD/build/vm
root=$work/x86-$guest
log=$work/console-$guest.log
seconds=${VM_SECONDS:-8} # of each storm
started=$(date +%s)

. tests/vm/boot.sh

say() { printf '[%3d s] %s\n' $(($(date +%s) - started)) "$*"; }
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 was not found. On Debian: apt-get install -y qemu-system-x86"
[ "$(uname -m)" = x86_64 ] || skip "the programs are built with this machine's compiler, which is not for x86-64"
for tool in timeout gzip dpkg-deb apt-get cpio; do
	command -v $tool >/dev/null || skip "$tool was not found. On Debian: apt-get install -y cpio"
done

# ---- kernels, unpacked and not installed -------------------------------------------------------------------------------

# fetch FOLDER PACKAGE...
fetch() {
	folder=$work/$1
	shift
	[ ! -f "$folder/fetched" ] || return 0
	rm -rf "$folder"
	mkdir -p "$folder/debs"
	say "downloading $*"
	(cd "$folder/debs" && timeout 200 apt-get download -qq "$@" >log 2>&1) ||
		skip "could not download $*: $(tail -n 1 "$folder/debs/log") (apt-get update?)"
	for deb in "$folder"/debs/*.deb; do
		dpkg-deb -x "$deb" "$folder" || fail "cannot unpack $deb"
	done
	rm -rf "$folder/debs"
	touch "$folder/fetched"
}

image=$(apt-cache depends linux-image-$kernel-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
[ -n "$image" ] || skip "no linux-image-$kernel-amd64 in the package lists (apt-get update?)"
fetch busybox-amd64 busybox-static
fetch "kernel-$kernel" "$image"
vmlinuz=$(echo "$work/kernel-$kernel"/boot/vmlinuz-*)
[ -f "$vmlinuz" ] || fail "$work is incomplete: remove it"

# ---- programs ----------------------------------------------------------------------------------------------------------

rm -rf "$root"
mkdir -p "$root/bin"
: >"$root/jobs"

# build OUTPUT INCLUDE SOURCE [FLAGS...]
build() {
	output=$1 include=$2
	shift 2
	${CC:-gcc} -std=gnu11 -O2 -g -Wall -Wextra -Wpedantic -static -I"$include" "$@" -o "$root/bin/$output" -lpthread -lm ||
		fail "cannot build $output"
}

job() { echo "$*" >>"$root/jobs"; }

# mutant NAME FILE SED-COMMAND: a copy of the library with one mistake, which the storm must notice.
mutants=
mutant() {
	rm -rf "$work/mutant-$guest"
	mkdir -p "$work/mutant-$guest"
	cp -r include "$work/mutant-$guest/include"
	sed "$3" "include/pcbatch/$2" >"$work/mutant-$guest/include/pcbatch/$2"
	! cmp -s "include/pcbatch/$2" "$work/mutant-$guest/include/pcbatch/$2" || fail "mutant $1 changes nothing in $2: mend it"
	build "$1" "$work/mutant-$guest/include" tests/vm/storm.c -DSTORM_DELAY=600
	mutants="$mutants $1 "
	job "$1 60 4 0 $1 4 $threads"
}

threads=$((cpus < 16 ? cpus : 16))
say "building"
build storm include tests/vm/storm.c
case $guest in
many)
	build storm_slow include tests/vm/storm.c -DSTORM_DELAY=200 -DPCBATCH_DEBUG=1
	job "storm_hotplug $((seconds * 2 + 90)) 1 1 storm $((seconds * 2)) $threads 0 $((cpus / 2))"
	job "storm_slow $((seconds + 90)) 1 1 storm_slow $seconds $threads"
	job "small_table $((seconds + 90)) 1 0 storm $seconds $threads 2"
	mutant no_fence drain.h 's/one = pcbatch_priv_fence_rseq();/one = 0;/'
	mutant online_only drain.h 's/for (c = 0; c < dom->lines; c++) {/for (c = 0; c < dom->lines - 1; c++) {/'
	;;
hotadd) job "storm_hotadd 300 1 2 storm $((seconds + 60)) 8 0 8" ;;
rt)
	build rt include tests/vm/rt.c
	job "rt 120 1 0 rt"
	job "storm_rt $((seconds + 60)) 1 1 storm $seconds $threads"
	;;
esac

cp "$work/busybox-amd64/bin/busybox" "$root/bin/busybox"
cp tests/vm/init.sh "$root/init"
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null) | gzip -1 >"$work/initrd-$guest.gz" || fail "cannot pack the initramfs"

# ---- the machine -------------------------------------------------------------------------------------------------------

model=qemu64 machine=pc smp=$cpus
[ "$cpus" -le 64 ] || model=qemu64,+x2apic machine=q35
[ "$guest" != hotadd ] || smp=2,sockets=$cpus,cores=1,threads=1,maxcpus=$cpus

# CPUs to add, one in three seconds, once the storm has begun.
boot_started() { next=2 pause=4; }
each_second() {
	[ "$guest" = hotadd ] && [ $next -lt "$cpus" ] || return 0
	grep -aq '^JOB storm_hotadd: ' "$log" || return 0
	pause=$((pause - 1))
	[ $pause -eq 0 ] || return 0
	[ $next != 2 ] || echo '{"execute": "qmp_capabilities"}' >&9
	printf '{"execute": "device_add", "arguments": {"driver": "qemu64-x86_64-cpu", "id": "cpu%d", "socket-id": %d, %s}}\n' \
		$next $next '"core-id": 0, "thread-id": 0' >&9
	next=$((next + 1)) pause=3
}

say "booting $cpus CPUs with $(basename "$vmlinuz")"
boot "$log" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -machine $machine -cpu $model -smp "$smp" -m 3G \
	-display none -vga none -nic none -serial "file:$log" -chardev stdio,id=qmp -mon chardev=qmp,mode=control -no-reboot -kernel "$vmlinuz" \
	-initrd "$work/initrd-$guest.gz" -append "console=ttyS0 panic=-1 nopti mitigations=off no5lvl nokaslr tsc=reliable \
lpj=4000000 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
tr -d '\r' <"$log" >"$log.txt"
grep -E '^(GUEST|JOB|backend|ops=|EXACT|LOST|CANNOT|pcbatch:|FAILED|step:|points)|Kernel panic' "$log.txt"

status() { sed -n "s/^JOB $1 status=\([0-9]*\)$/\1/p" "$log.txt"; }
grep -q '^GUEST done' "$log.txt" || {
	tail -n 20 "$log.txt" "$work/qemu-$guest.log"
	fail "the guest did not finish"
}
bad=0
while read -r name _; do
	s=$(status "$name")
	case " $mutants " in
	# Neither exact nor "took too long" nor "could not run".
	*" $name "*) case $s in
		'' | 0 | 2 | 77 | 124) echo "mutant $name was not caught (status $s)"; bad=1 ;;
		esac ;;
	*) [ "$s" = 0 ] || { echo "$name: status ${s:-none}"; bad=1; } ;;
	esac
done <"$root/jobs"
[ "$guest" = rt ] || grep -q "^backend=rseq cpus=$cpus$" "$log.txt" || { echo "the storm did not run with sections on $cpus CPUs"; bad=1; }
[ $bad = 0 ] || fail "see above; the console is in $log"
say "passed"
