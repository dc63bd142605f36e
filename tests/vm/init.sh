#!/bin/busybox sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
#
# The guest's init: runs what /jobs says, one job a line: NAME SECONDS TRIES HOTPLUG(0|1|2) COMMAND..., and reports each
# with "JOB NAME status=N", that of the first try that was not 0. HOTPLUG=1 takes CPUs off and on again meanwhile, 2
# brings those online that are added to the machine. Then the machine is switched off.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
export PATH=/bin PCBATCH_BACKEND=rseq
busybox --install -s /bin
dmesg -n 1
echo 1 >/proc/sys/debug/exception-trace
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
echo "GUEST $(uname -m) Linux $(uname -r), $(grep -c ^processor /proc/cpuinfo) CPUs, up $(cut -d ' ' -f 1 /proc/uptime) s"

hotplug() {
	cycles=0
	while :; do
		for cpu in 2 5; do
			echo 0 >/sys/devices/system/cpu/cpu$cpu/online
			sleep 0.3
			echo 1 >/sys/devices/system/cpu/cpu$cpu/online
			sleep 0.2
			cycles=$((cycles + 1))
			echo $cycles >/tmp/cycles
		done
	done 2>/dev/null
}

hotadd() {
	while :; do
		for online in /sys/devices/system/cpu/cpu*/online; do
			if [ "$(cat "$online")" = 0 ]; then echo 1 >"$online" && echo "GUEST online $(cat /sys/devices/system/cpu/online)"; fi
		done
		sleep 0.3
	done 2>/dev/null
}

while read -r name seconds tries plug command; do
	echo "JOB $name: $command"
	case $plug in
	1) hotplug & plugger=$! ;;
	2) hotadd & plugger=$! ;;
	esac
	status=0
	while [ "$status" = 0 ] && [ "$tries" -gt 0 ]; do
		# shellcheck disable=SC2086
		timeout -s KILL "$seconds" $command </dev/null
		status=$?
		tries=$((tries - 1))
	done
	echo "JOB $name status=$status"
	# Where it crashed, if it did.
	dmesg -c | grep -A 8 'unhandled exception' | grep -E 'unhandled|pc :|lr :'
	if [ "$plug" != 0 ]; then
		kill "$plugger"
		wait "$plugger" 2>/dev/null
	fi
	if [ "$plug" = 1 ]; then
		echo "GUEST $(cat /tmp/cycles) CPUs taken off and on again"
		echo 1 >/sys/devices/system/cpu/cpu2/online
		echo 1 >/sys/devices/system/cpu/cpu5/online
	fi
done </jobs 2>/dev/null
echo "GUEST done"
poweroff -f
