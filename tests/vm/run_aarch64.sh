#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: run_aarch64.sh [TEST.c...]
# Tests the AArch64 sections for real on a Debian 12 of any architecture: cross-compiles, runs the generic backend under
# qemu's user emulation, then boots Debian's arm64 kernel with 8 emulated CPUs and runs storm.c there on the rseq backend.
# Copies of the library with one mistake each must be caught by the same storm. Each TEST.c given (one that needs no
# library) is run in the guest as well. What is downloaded and built stays in build/vm.
#
# Missing packages are installed when this is root (VM_INSTALL=0: never). Emulation runs loads and stores in order, so a
# missing barrier is not found here. Exit status: 0 passed, 1 failed, 77 could not be run, with the reason.
set -u
cd "$(dirname "$0")/../.." || exit 1

cross=aarch64-linux-gnu-gcc
work=$PWD/build/vm
apt=$work/apt
root=$work/root
seconds=${VM_SECONDS:-8} # of each storm
started=$(date +%s)

. tests/vm/boot.sh

say() { printf '[%3d s] %s\n' $(($(date +%s) - started)) "$*"; }
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

# ---- tools -----------------------------------------------------------------------------------------------------------

missing() {
	command -v $cross >/dev/null || echo gcc-aarch64-linux-gnu
	command -v qemu-system-aarch64 >/dev/null || echo qemu-system-arm
	command -v qemu-aarch64-static >/dev/null || echo qemu-user-static
}

packages=$(missing | tr '\n' ' ')
if [ -n "$packages" ]; then
	command -v apt-get >/dev/null || skip "without $packages"
	if [ "$(id -u)" != 0 ] || [ "${VM_INSTALL:-1}" != 1 ]; then skip "without $packages"; fi
	say "installing $packages"
	# shellcheck disable=SC2086
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 150 apt-get install -y -qq --no-install-recommends \
		$packages; } >/dev/null 2>&1
	packages=$(missing | tr '\n' ' ')
	[ -z "$packages" ] || skip "could not install $packages"
fi
for tool in timeout gzip dpkg-deb apt-get; do
	command -v $tool >/dev/null || skip "without $tool"
done

# ---- arm64 packages, by an apt of their own, so that the machine's dpkg hears nothing of arm64 -------------------------

setup_apt() {
	rm -rf "$apt"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.list.d"
	: >"$apt/status"
	# Debian's own archives, as this machine has them, for all architectures.
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
		[ ! -f "$f" ] || sed -e '/^Architectures:/d' -e 's/arch=[a-z0-9,]*//' "$f" >"$apt/sources.list.d/$(basename "$f" |
			sed 's/^sources\.list$/debian.list/')"
	done
	cat >"$apt/apt.conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "2";
		Acquire::http::Timeout "20";
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$apt/sources.list.d";
	END
	APT_CONFIG=$apt/apt.conf timeout 60 apt-get update -qq >"$apt/log" 2>&1
}

download() {
	(cd "$apt" && APT_CONFIG=$apt/apt.conf timeout 100 apt-get download -qq "$@" >>"$apt/log" 2>&1) ||
		skip "could not download $* for arm64: $(tail -n 1 "$apt/log")"
}

if [ ! -f "$work/fetched" ]; then
	say "downloading the arm64 kernel, busybox and Concurrency Kit"
	mkdir -p "$work"
	setup_apt || skip "no package lists for arm64: $(tail -n 1 "$apt/log")"
	kernel=$(APT_CONFIG=$apt/apt.conf apt-cache depends linux-image-cloud-arm64 2>/dev/null |
		sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
	[ -n "$kernel" ] || skip "no arm64 kernel in the package lists"
	download "$kernel" busybox-static libck-dev
	for deb in "$apt"/*.deb; do
		dpkg-deb -x "$deb" "$work/arm64" || fail "cannot unpack $deb"
	done
	rm -rf "$apt"
	touch "$work/fetched"
fi
vmlinuz=$(echo "$work"/arm64/boot/vmlinuz-*)
busybox=$work/arm64/bin/busybox
[ -f "$vmlinuz" ] || fail "$work is incomplete: remove it"
[ -f "$busybox" ] || fail "$work is incomplete: remove it"

# ---- programs --------------------------------------------------------------------------------------------------------

warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror'
with_ck="-isystem $work/arm64/usr/include"
with_builtins=-DPCBATCH_USE_BUILTINS=1

# build OUTPUT INCLUDE SOURCE [FLAGS...]
build() {
	output=$1 include=$2
	shift 2
	# shellcheck disable=SC2086
	$cross -std=gnu11 -O2 -g $warnings -static -I"$include" "$@" -o "$root/bin/$output" -lpthread -lm ||
		fail "cannot build $output"
}

# mutant NAME PROGRAM FILE SED-COMMAND: a copy of the library with one mistake, which the program must notice.
mutants=
mutant() {
	rm -rf "$work/mutant"
	mkdir -p "$work/mutant"
	cp -r include "$work/mutant/include"
	sed "$4" "include/pcbatch/$3" >"$work/mutant/include/pcbatch/$3"
	! cmp -s "include/pcbatch/$3" "$work/mutant/include/pcbatch/$3" || fail "mutant $1 changes nothing in $3: mend it"
	build "$1" "$work/mutant/include" "tests/vm/$2.c" $with_builtins -DSTORM_DELAY=1500
	mutants="$mutants $1 "
	case $2 in
	storm) echo "$1 40 4 0 $1 3 8" ;;
	*) echo "$1 20 1 0 $1" ;;
	esac >>"$root/jobs"
}

rm -rf "$root"
mkdir -p "$root/bin"
: >"$root/jobs"
say "building"
# shellcheck disable=SC2086
build storm include tests/vm/storm.c $with_ck
build storm_slow include tests/vm/storm.c $with_builtins -DSTORM_DELAY=200 -DPCBATCH_DEBUG=1
build rseq_probe include tests/rseq_probe.c
# shellcheck disable=SC2086
build contract include tests/vm/contract.c $with_ck
build contract_O0 include tests/vm/contract.c $with_builtins -O0
# shellcheck disable=SC2086
# A loop of load and store exclusive never ends when stepped, unless the debugger knows it: so without such.
build step include tests/fault/step.c tests/fault/step_child.c $with_builtins -march=armv8-a+lse -mno-outline-atomics
# shellcheck disable=SC2086
for example in examples/*.c; do
	build "$(basename "$example" .c)" include "$example" $with_ck
done

# examples/malloc-group in front of the C library's malloc, with the cross compiler's own C library.
libraries=$(dirname "$($cross -print-file-name=libc.so.6)")
mkdir -p "$root/lib" "$root/tmp"
cp "$libraries/libc.so.6" "$libraries/ld-linux-aarch64.so.1" "$root/lib" || fail "no C library in $libraries"
# shellcheck disable=SC2086
$cross -std=gnu11 -O2 -g $warnings -Iinclude $with_ck -fPIC -shared -fvisibility=hidden -fno-builtin \
	-ftls-model=initial-exec -Wl,-z,nodelete,-z,now,-z,defs -o "$root/lib/libpcbatch-malloc.so" \
	examples/malloc-group/[!d]*.c || fail "cannot build libpcbatch-malloc.so"
$cross -std=gnu11 -O2 -g -fno-builtin -w -Iinclude -Iexamples/malloc-group -o "$root/bin/family" tests/preload/family*.c ||
	fail "cannot build family"
cat >"$root/bin/malloc_group" <<'END'
#!/bin/busybox sh
LD_PRELOAD=/lib/libpcbatch-malloc.so PCBATCH_MALLOC_STAT=/tmp/stat family || exit 1
grep -E '^(backend|hits|aborts)' /tmp/stat
grep -q '^backend rseq' /tmp/stat
END
chmod 755 "$root/bin/malloc_group"

{
	echo "family 60 1 0 family"
	echo "malloc_group 60 1 0 malloc_group"
	for name in rseq_probe contract contract_O0; do
		echo "$name 20 1 0 $name"
	done
	for example in examples/*.c; do
		name=$(basename "$example" .c)
		echo "$name 30 1 0 $name"
	done
	[ "${VM_STEP:-1}" = 0 ] || echo "step 400 1 0 step 4"
	echo "storm $((seconds + 40)) 1 0 storm $seconds 8"
	echo "storm_hotplug $((seconds + 40)) 1 1 storm $seconds 8"
	echo "storm_slow $((seconds + 40)) 1 0 storm_slow $seconds 8"
} >>"$root/jobs"
extra=
for t in "$@"; do
	name=$(basename "$t" .c)
	extra="$extra $name "
	# shellcheck disable=SC2086
	build "$name" include "$t" $with_ck
	echo "$name 60 1 0 $name" >>"$root/jobs"
done
mutant no_fence storm drain.h 's/one = pcbatch_priv_fence_rseq();/one = 0;/'
mutant late_commit storm arch/aarch64.h \
	'/PCBATCH_INJECT_ASM(3)/,/"2:/{s/^\([^"]*\)"str \(.*\)\\n"/\1"2:\\n\\tstr \2\\n\\t"/;/"2:\\n\\t"$/d;}'
mutant no_gate contract arch/aarch64.h '/"ldar %\[t\], \[%\[slot\]\]/s/ldar %\[t\], \[%\[slot\]\]/mov %[t], xzr/'
mutant no_signature contract arch/aarch64.h 's/\.inst 0xd428bc00/.inst 0xd428bc20/'
mutant no_restore contract arch/aarch64.h 's/"mov %\[x\], #-1\\n\\t"/"nop\\n\\t"/'

# ---- user emulation ----------------------------------------------------------------------------------------------------

say "user emulation: no rseq there, so the generic backend"
(cd "$root/bin" && timeout 20 qemu-aarch64-static ./rseq_probe)
s=$?
[ $s = 77 ] || fail "rseq_probe should say that user emulation has no rseq"
for example in examples/*.c; do
	(cd "$root/bin" && timeout 60 qemu-aarch64-static "./$(basename "$example" .c)" >/dev/null) || fail "$example, status $?"
done
PCBATCH_BACKEND=generic timeout 60 qemu-aarch64-static "$root/bin/storm" 2 8 || fail "storm on the generic backend"

# ---- the machine -------------------------------------------------------------------------------------------------------

cp "$busybox" "$root/bin/busybox"
cp tests/vm/init.sh "$root/init"
chmod 755 "$root/init"
cpio='cpio'
command -v cpio >/dev/null || cpio="qemu-aarch64-static $busybox cpio"
(cd "$root" && find . | $cpio -o -H newc 2>/dev/null) | gzip -1 >"$work/initrd.gz" || fail "cannot pack the initramfs"

boot_started() { :; }
each_second() { :; }

say "booting 8 CPUs"
guest=aarch64
boot "$work/console-aarch64.log" qemu-system-aarch64 -accel tcg,thread=multi -machine virt,gic-version=3 -cpu neoverse-n1 \
	-smp 8 -m 1G -display none -vga none -nic none -serial "file:$work/console-aarch64.log" -monitor none -no-reboot \
	-kernel "$vmlinuz" -initrd "$work/initrd.gz" -append "console=ttyAMA0 panic=-1 mitigations=off nokaslr nowatchdog \
rcupdate.rcu_cpu_stall_suppress=1"
log=$work/console-aarch64.log.txt
tr -d '\r' <"$work/console-aarch64.log" >"$log"
grep -E '^(GUEST|JOB|\[.*(pc|lr) :|backend|ops=|EXACT|LOST|CANNOT|pcbatch:|no rseq|contract:|step:|FAILED)|Kernel panic' "$log"

status() { sed -n "s/^JOB $1 status=\([0-9]*\)$/\1/p" "$log"; }
grep -q '^GUEST done' "$log" || fail "the guest did not finish; its console is in $log"
bad=0
while read -r name _; do
	s=$(status "$name")
	case " $mutants " in
	# Neither exact nor "took too long" nor "could not run".
	*" $name "*) case $s in
		'' | 0 | 2 | 77 | 124 | 137) echo "mutant $name was not caught (status $s)"; bad=1 ;;
		esac ;;
	*)
		case " $extra " in
		*" $name "*) [ "$s" != 77 ] || continue ;;
		esac
		[ "$s" = 0 ] || { echo "$name: status $s"; bad=1; }
		;;
	esac
done <"$root/jobs"
[ "$(grep -c '^backend=rseq cpus=8$' "$log")" -ge 3 ] || { echo "the storms did not run on the rseq backend"; bad=1; }
[ $bad = 0 ] || fail "see above; the console is in $log"
say "passed: exact on rseq with 8 CPUs, every mutant caught"
