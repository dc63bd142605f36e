#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves the way from a release to a program: a tarball unpacked in a folder without git builds and changes nothing
# outside build/; make install puts down the headers and pcbatch.pc and nothing else; C and C++ programs build against
# that with pkg-config alone and link nothing but the C library; CK=no makes a .pc that stands without Concurrency Kit;
# make uninstall leaves nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
# pkg-config must see what is installed here and nothing that the caller has set.
unset MAKEFLAGS MFLAGS DESTDIR PREFIX PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR PCBATCH_BACKEND

for tool in make pkg-config tar readelf; do
	command -v $tool >/dev/null || { echo "without $tool"; exit 77; }
done
cc=${CC:-gcc}
cxx=${CXX:-g++}
ck=${CK-}
pkg-config --exists ck || ck=no

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

status=0
fail() {
	echo "$*" >&2
	status=1
}
die() {
	echo "$*" >&2
	exit 1
}

# --- the tarball ---
tarball=$(make -s dist) || die "make dist failed"
mkdir "$tmp/src" || exit 1
tar -xzf "$tarball" -C "$tmp/src" --strip-components=1 || die "cannot unpack $tarball"
listed=$(tar -tzf "$tarball" | sort)
cd "$tmp/src" || exit 1
if [ -e .git ] || [ -e build ]; then fail "the tarball holds .git or build"; fi
snapshot() {
	find . -path ./build -prune -o -type f -exec cksum {} + | sort
}
before=$(snapshot)
make -s help | grep -q '^ *install ' || fail "make help does not work"
make CC="$cc" CXX="$cxx" CK="$ck" build/examples/quickstart build/examples/two_units >"$tmp/log" 2>&1 ||
	die "make failed: $(cat "$tmp/log")"
build/examples/quickstart >/dev/null || fail "quickstart fails"
[ "$(tar -tzf "$(make -s dist)" | sort)" = "$listed" ] || fail "a tarball made from the tarball differs"

# --- install ---
want=$({
	find include/pcbatch.h include/pcbatch -name '*.h'
	echo share/pkgconfig/pcbatch.pc
} | sort)
holds() {
	(cd "$1" && find . ! -type d | sed 's|^\./||' | sort)
}
cat >"$tmp/user.c" <<'END'
#include <pcbatch.h>
static struct pcbatch_domain dom;
int main(void)
{
	struct pcbatch_group *g;
	if (pcbatch_domain_init(&dom, NULL) != 0 || pcbatch_group_create(&dom, NULL, NULL, &g) != 0)
		return 1;
	if (pcbatch_group_charge(g, 3) != 0 || pcbatch_group_drain(g) != 0 || pcbatch_group_current(g) != 3)
		return 1;
	return pcbatch_group_uncharge(g, 3) != 0 || pcbatch_group_destroy(g) != 0 || pcbatch_domain_destroy(&dom) != 0;
}
END
cp "$tmp/user.c" "$tmp/user.cpp"

consumer() { # name, then pkg-config with its options
	name=$1
	shift
	flags=$("$@" --cflags pcbatch) || { fail "$name: pkg-config failed"; return; }
	libs=$("$@" --libs pcbatch | tr -d ' ')
	[ -z "$libs" ] || fail "$name: links $libs"
	# shellcheck disable=SC2086
	if ! "$cc" -std=c11 $flags -o "$tmp/user_c" "$tmp/user.c" || ! "$tmp/user_c"; then
		fail "$name: the C program fails"
	fi
	# shellcheck disable=SC2086
	if ! "$cxx" -std=c++17 $flags -o "$tmp/user_cxx" "$tmp/user.cpp" || ! "$tmp/user_cxx"; then
		fail "$name: the C++ program fails"
	fi
	needed=$(readelf -d "$tmp/user_c" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux)')
	[ -z "$needed" ] || fail "$name: the C program needs $needed"
}

# Straight into a prefix.
make -s install PREFIX="$tmp/prefix" CK="$ck" || fail "make install failed"
[ "$(holds "$tmp/prefix")" = "$want" ] || fail "installed other files than the headers and the .pc"
version=$(printf '#include <pcbatch/version.h>\nPCBATCH_VERSION_MAJOR PCBATCH_VERSION_MINOR PCBATCH_VERSION_PATCH\n' |
	"$cc" -Iinclude -E -P - | awk 'NF == 3 { print $1 "." $2 "." $3 }')
[ "$(PKG_CONFIG_PATH=$tmp/prefix/share/pkgconfig pkg-config --modversion pcbatch)" = "$version" ] ||
	fail "the .pc does not give version $version"
consumer prefix env PKG_CONFIG_PATH="$tmp/prefix/share/pkgconfig" pkg-config
make -s uninstall PREFIX="$tmp/prefix" || fail "make uninstall failed"
[ -z "$(holds "$tmp/prefix")" ] || fail "make uninstall leaves files"
[ ! -e "$tmp/prefix/include/pcbatch" ] || fail "make uninstall leaves the folder"

# Staged for a package, then used from where it was staged; without Concurrency Kit.
make -s install DESTDIR="$tmp/stage" PREFIX=/usr CK=no || fail "make install with DESTDIR and CK=no failed"
[ "$(holds "$tmp/stage/usr")" = "$want" ] || fail "DESTDIR: installed other files than the headers and the .pc"
pc=$tmp/stage/usr/share/pkgconfig/pcbatch.pc
grep -q "$tmp" "$pc" && fail "the .pc knows DESTDIR"
grep -q '^Requires' "$pc" && fail "CK=no: the .pc still requires something"
consumer "DESTDIR, CK=no" env PKG_CONFIG_LIBDIR="${pc%/*}" pkg-config --define-variable=prefix="$tmp/stage/usr"
PKG_CONFIG_LIBDIR=${pc%/*} pkg-config --cflags pcbatch | grep -q -e -DPCBATCH_USE_BUILTINS=1 ||
	fail "CK=no: the .pc does not choose the compiler's builtins"
make -s uninstall DESTDIR="$tmp/stage" PREFIX=/usr || fail "make uninstall with DESTDIR failed"
[ -z "$(holds "$tmp/stage")" ] || fail "DESTDIR: make uninstall leaves files"

[ "$(snapshot)" = "$before" ] || fail "the build changed files outside build/"
exit $status
