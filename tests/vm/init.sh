#!/bin/busybox sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
#
# The guest's init: runs what /jobs says, one job a line: NAME SECONDS TRIES HOTPLUG(0|1) COMMAND..., and reports each
# with "JOB NAME status=N", that of the first try that was not 0. HOTPLUG=1 takes CPUs off and on again meanwhile. Then
# the machine is switched off.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
export PATH=/bin PCBATCH_BACKEND=rseq
busybox --install -s /bin
echo 1 >/proc/sys/debug/exception-trace
echo "GUEST $(uname -m) Linux $(uname -r), $(grep -c ^processor /proc/cpuinfo) CPUs, up $(cut -d ' ' -f 1 /proc/uptime) s"

hotplug() {
	while :; do
		for cpu in 2 5; do
			echo 0 >/sys/devices/system/cpu/cpu$cpu/online
			sleep 0.3
			echo 1 >/sys/devices/system/cpu/cpu$cpu/online
			sleep 0.2
		done
	done 2>/dev/null
}

while read -r name seconds tries plug command; do
	echo "JOB $name: $command"
	if [ "$plug" = 1 ]; then
		hotplug &
		plugger=$!
	fi
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
	if [ "$plug" = 1 ]; then
		kill "$plugger"
		wait "$plugger" 2>/dev/null
		echo 1 >/sys/devices/system/cpu/cpu2/online
		echo 1 >/sys/devices/system/cpu/cpu5/online
	fi
done </jobs 2>/dev/null
echo "GUEST done"
poweroff -f
