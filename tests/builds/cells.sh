# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# The matrix, sourced by cell.sh: one line a cell, "NAME|TOOLS|KIND|BACKENDS|HOW".
#
#	NAME	group/what
#	TOOLS	programs that must be there (see packages_of in cell.sh), else the cell is a skip
#	KIND	storm	storm.c, built by HOW (compiler and flags)
#		units	storm.c and a storm_other.c for each command after the first; commands are separated by ";"
#		objects	the same with each storm_other.c in a shared object of its own
#		dlclose	../dlclose_host.c by the first command, ../dlclose_plugin.c by the second; "PLUGIN MODE" is the third
#		musl	../musl_own.c
#		refused	must not compile, with HOW's last word in what the compiler says
#		suite	storm.c, every unit test, and the stress tests where HOW says STRESS; see suite() in cell.sh
#	BACKENDS both, rseq or generic, or the emulator that runs it (generic)

cell() { echo "$1|$2|$3|$4|$5"; }

# What every build may be asked for: option by option, for both compilers.
options() {
	for cc in gcc clang; do
		for o in -O0 -O1 -O2 -O3 -Os; do
			cell "$cc/$o" $cc storm both "$cc -std=gnu11 $o"
		done
		for o in -fPIE\ -pie -fPIC\ -pie -static -static-pie\ -fPIE -no-pie\ -fno-pie -fcf-protection=full -fno-plt \
			-march=native -fstack-protector-all -fstack-clash-protection -D_FORTIFY_SOURCE=3 -fomit-frame-pointer \
			-fno-omit-frame-pointer -funsigned-char -fno-builtin -fno-strict-aliasing -fwrapv -ftrapv --coverage -pg \
			-finstrument-functions -fshort-enums -ftls-model=initial-exec -g3\ -gdwarf-5 -fno-asynchronous-unwind-tables \
			-DPCBATCH_DEBUG=1 -DPCBATCH_USE_BUILTINS=1 -DPCBATCH_COUNT_HITS=0 -DPCBATCH_RETRIES=100 \
			-DPCBATCH_REGION_SHIFT=13 -DPCBATCH_CACHE_LINE=128; do
			cell "$cc/$(echo "$o" | tr ' ' ,)" $cc storm both "$cc -std=gnu11 -O2 $o"
		done
		cell "$cc/-DPCBATCH_USE_ASM=0" $cc storm generic "$cc -std=gnu11 -O2 -DPCBATCH_USE_ASM=0"
		cell "$cc/-mcmodel=large" $cc storm both "$cc -std=gnu11 -O2 -mcmodel=large -fno-pie -no-pie"
		cell "$cc/-mcmodel=medium" $cc storm both "$cc -std=gnu11 -O2 -mcmodel=medium -fno-pie -no-pie"
		cell "$cc/gc-sections" $cc storm both "$cc -std=gnu11 -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections"
		cell "$cc/relro,now" $cc storm both "$cc -std=gnu11 -O2 -Wl,-z,relro,-z,now,-z,separate-code"
		for std in c11 c17 gnu17 gnu2x; do
			cell "$cc/$std" $cc storm both "$cc -std=$std -O2"
		done
		cxx=$cc++ && [ $cc = clang ] || cxx=g++
		for std in c++17 c++20 gnu++20; do
			cell "$cc/$std" $cxx storm both "$cxx -x c++ -std=$std -O2"
		done
	done
	cell gcc/-Og gcc storm both "gcc -std=gnu11 -Og"
	cell gcc/-Ofast gcc storm both "gcc -std=gnu11 -Ofast"
	cell clang/-Oz clang storm both "clang -std=gnu11 -Oz"
	cell clang/no-integrated-as clang storm both "clang -std=gnu11 -O2 -fno-integrated-as"
	cell refused/region-shift gcc refused "" "gcc -std=gnu11 -DPCBATCH_REGION_SHIFT=18 PCBATCH_REGION_SHIFT"
	for old in gcc-11 clang-13 clang-16; do
		cell "$old/-O2" $old storm both "$old -std=gnu11 -O2"
		cell "$old/-O0" $old storm both "$old -std=gnu11 -O0"
	done
}

linkers() {
	for cc in gcc clang; do
		lld="-fuse-ld=lld" && [ $cc = clang ] || lld="-fuse-ld=lld -Wno-unused"
		cell "link/$cc-lto" $cc storm both "$cc -std=gnu11 -O2 -flto -ffat-lto-objects $([ $cc = gcc ] || echo -fuse-ld=lld -Wno-unused-command-line-argument -Wno-ignored-optimization-argument)"
		cell "link/$cc-lld" "$cc ld.lld" storm both "$cc -std=gnu11 -O2 $lld"
		cell "link/$cc-lld-gc-icf" "$cc ld.lld" storm both "$cc -std=gnu11 -O2 $lld -ffunction-sections -Wl,--gc-sections,--icf=all"
		cell "link/$cc-lld-static-pie" "$cc ld.lld" storm both "$cc -std=gnu11 -O2 $lld -fPIE -static-pie"
		cell "link/$cc-gold" "$cc ld.gold" storm both "$cc -std=gnu11 -O2 -fuse-ld=gold"
		cell "link/$cc-gold-gc-icf" "$cc ld.gold" storm both "$cc -std=gnu11 -O2 -fuse-ld=gold -ffunction-sections -Wl,--gc-sections,--icf=all"
		cell "link/$cc-mold" "$cc mold" storm both "$cc -std=gnu11 -O2 $([ $cc = clang ] && echo -fuse-ld=mold || echo -fuse-ld=mold)"
	done
	cell link/clang-thinlto "clang ld.lld" storm both "clang -std=gnu11 -O2 -flto=thin -fuse-ld=lld"
	cell link/clang-cfi "clang ld.lld clang-rt" storm both "clang -std=gnu11 -O2 -flto -fvisibility=hidden -fsanitize=cfi -fuse-ld=lld"
	cell link/clang-safe-stack "clang clang-rt" storm both "clang -std=gnu11 -O2 -fsanitize=safe-stack"
	cell link/gcc-lto-units gcc units both "gcc -std=gnu11 -O2 -flto ; gcc -std=gnu11 -O3 -flto"

	# Units built otherwise on one domain.
	cell mixed/gcc+clang "gcc clang" units both "gcc -std=gnu11 -O2 ; clang -std=gnu11 -O2"
	cell mixed/O0+O3 gcc units both "gcc -std=gnu11 -O0 ; gcc -std=gnu11 -O3 ; gcc -std=gnu11 -Os"
	cell mixed/c+c++ "gcc g++" units both "gcc -std=gnu11 -O2 ; g++ -x c++ -std=c++17 -O2"
	cell mixed/c+clang++ "gcc clang++" units both "gcc -std=gnu11 -O2 ; clang++ -x c++ -std=c++20 -O2"
	cell mixed/ck+builtins gcc units both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -DPCBATCH_USE_BUILTINS=1"
	cell mixed/asm+none gcc units both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -DPCBATCH_USE_ASM=0"
	cell mixed/delayed-asm+none gcc units both "gcc -std=gnu11 -O2 -DSTORM_DELAY ; gcc -std=gnu11 -O2 -DPCBATCH_USE_ASM=0"
	cell mixed/debug+release gcc units both "gcc -std=gnu11 -O2 -DPCBATCH_DEBUG=1 ; gcc -std=gnu11 -O2"
	cell mixed/hits+no-hits gcc units both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -DPCBATCH_COUNT_HITS=0"

	cell shared/two-objects gcc objects both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2"
	cell shared/clang clang objects both "clang -std=gnu11 -O2 ; clang -std=gnu11 -O2 ; clang -std=gnu11 -O2"
	cell shared/no-plt gcc objects both "gcc -std=gnu11 -O2 -fno-plt -Wl,-z,now ; gcc -std=gnu11 -O2 -fno-plt ; gcc -std=gnu11 -O0 -fno-plt"
	cell shared/symbolic gcc objects both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -Wl,-Bsymbolic ; clang -std=gnu11 -O2 -fvisibility=hidden"
	cell shared/lld "gcc ld.lld" objects both "gcc -std=gnu11 -O2 -fuse-ld=lld ; gcc -std=gnu11 -O2 -fuse-ld=lld ; gcc -std=gnu11 -O2 -fuse-ld=lld"
	cell shared/gold "gcc ld.gold" objects both "gcc -std=gnu11 -O2 -fuse-ld=gold ; gcc -std=gnu11 -O2 -fuse-ld=gold ; gcc -std=gnu11 -O2 -fuse-ld=gold"
	for cc in gcc clang; do
		for mode in quiesce nodelete; do
			cell "dlclose/$cc-$mode" $cc dlclose both "$cc -std=gnu11 -O2 ; $cc -std=gnu11 -O2 $([ $mode = quiesce ] || echo -Wl,-z,nodelete) ; 100 $mode"
		done
	done
	cell dlclose/no-plt gcc dlclose both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -fno-plt ; 100 quiesce"
	cell dlclose/lld "gcc ld.lld" dlclose both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -fuse-ld=lld ; 100 quiesce"
	cell dlclose/gold "gcc ld.gold" dlclose both "gcc -std=gnu11 -O2 ; gcc -std=gnu11 -O2 -fuse-ld=gold ; 100 quiesce"
}

# Each runs every unit test, storm.c and the shortened stress tests.
sanitizers() {
	san="-std=gnu11 -g -O1 -fno-omit-frame-pointer"
	cell sanitize/gcc-address,undefined gcc suite both "gcc $san -fsanitize=address,undefined -fno-sanitize-recover=all STRESS"
	cell sanitize/clang-address,undefined "clang clang-rt" suite both "clang $san -fsanitize=address,undefined -fno-sanitize-recover=all STRESS"
	cell sanitize/clang-integer "clang clang-rt" storm both "clang $san -fsanitize=undefined,local-bounds,nullability -fno-sanitize-recover=all"
	cell sanitize/gcc-thread gcc suite generic "gcc $san -fsanitize=thread STRESS"
	cell sanitize/clang-thread "clang clang-rt" storm generic "clang $san -fsanitize=thread"
	cell sanitize/clang-memory "clang clang-rt" suite both "clang $san -fsanitize=memory STRESS"
	cell sanitize/valgrind "gcc valgrind" suite valgrind "gcc $san STRESS"
	cell sanitize/gcc-plain gcc suite both "gcc -std=gnu11 -O2 STRESS"
}

arches() {
	cross="-std=gnu11 -O1 -static"
	# 32-bit x86 runs as it is (and qemu-i386 7.2 stops at an assertion of its own under timer signals).
	cell i686/gcc i686-linux-gnu-gcc suite generic "i686-linux-gnu-gcc $cross STRESS"
	cell i686/gcc-c++17 i686-linux-gnu-g++ storm generic "i686-linux-gnu-g++ -x c++ -std=c++17 -O2 -static"
	cell i686/clang "clang i686-linux-gnu-gcc" storm generic "clang --target=i686-linux-gnu -std=gnu11 -O2 -static"
	cell i686/refused clang refused "" "clang --target=i386-linux-gnu -march=i486 -std=gnu11 lock-free"
	set -- aarch64 aarch64-linux-gnu riscv64 riscv64-linux-gnu s390x s390x-linux-gnu arm arm-linux-gnueabihf \
		mips64el mips64el-linux-gnuabi64 ppc64le powerpc64le-linux-gnu
	while [ $# -gt 0 ]; do
		timers= && [ "$1" != arm ] || timers=" NOTIMERS"
		cell "$1/gcc" "$2-gcc qemu-$1-static" suite "qemu-$1-static" "$2-gcc $cross$timers STRESS"
		for o in -O0 -O3 -DPCBATCH_DEBUG=1; do
			cell "$1/gcc$o" "$2-gcc qemu-$1-static" storm "qemu-$1-static" "$2-gcc -std=gnu11 -O2 $o -static$timers"
		done
		cell "$1/clang" "clang $2-gcc qemu-$1-static" storm "qemu-$1-static" "clang --target=$2 -std=gnu11 -O2 -static$timers"
		shift 2
	done
	cell aarch64/ck "aarch64-linux-gnu-gcc qemu-aarch64-static" storm qemu-aarch64-static "aarch64-linux-gnu-gcc -std=gnu11 -O2 -static CK"
	cell aarch64/ck-lse "aarch64-linux-gnu-gcc qemu-aarch64-static" storm qemu-aarch64-static "aarch64-linux-gnu-gcc -std=gnu11 -O2 -static -march=armv8.1-a CK"
	cell aarch64/outline-atomics-off "aarch64-linux-gnu-gcc qemu-aarch64-static" storm qemu-aarch64-static "aarch64-linux-gnu-gcc -std=gnu11 -O2 -static -mno-outline-atomics"
	cell aarch64/no-asm "aarch64-linux-gnu-gcc qemu-aarch64-static" storm qemu-aarch64-static "aarch64-linux-gnu-gcc -std=gnu11 -O2 -static -DPCBATCH_USE_ASM=0"
	cell s390x/g++ "s390x-linux-gnu-g++ qemu-s390x-static" storm qemu-s390x-static "s390x-linux-gnu-g++ -x c++ -std=c++17 -O2 -static"
	# A 64-bit atomic is a call with a lock there, which a signal handler would wait for.
	for t in mipsel-linux-gnu powerpc-linux-gnu arm-linux-gnueabi; do
		cell "refused/$t" $t-gcc refused "" "$t-gcc -std=gnu11 lock-free"
	done
}

musl() {
	cell musl/static musl-gcc storm generic "musl-gcc -std=gnu11 -O2 -static MUSL"
	cell musl/dynamic musl-gcc storm generic "musl-gcc -std=gnu11 -O2 MUSL"
	cell musl/static-pie musl-gcc storm generic "musl-gcc -std=gnu11 -O2 -fPIE -static-pie MUSL"
	cell musl/suite musl-gcc suite generic "musl-gcc -std=gnu11 -O1 -static MUSL STRESS"
	cell musl/own-registration musl-gcc musl "" "musl-gcc -std=gnu11 -O2 -static MUSL"
}

cells() {
	options
	linkers
	sanitizers
	arches
	musl
}
