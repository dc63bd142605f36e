#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that a shared object that includes the headers can be unloaded under timer signals, in the two documented
# ways: each thread quiesces first, or the object is linked with -z nodelete. On both backends, 250 loops each.
set -eu

cd "$(dirname "$0")/.."
: "${CC:=cc}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

flags="-std=gnu11 -O2 -Wall -Wextra -Iinclude ${CPPFLAGS-}"
[ "${CK-}" = no ] && flags="$flags -DPCBATCH_USE_BUILTINS=1"
# shellcheck disable=SC2086
{
	$CC $flags tests/dlclose_host.c -o "$dir/host" -ldl -lpthread
	$CC $flags -fPIC -shared tests/dlclose_plugin.c -o "$dir/plugin.so"
	$CC $flags -fPIC -shared -Wl,-z,nodelete tests/dlclose_plugin.c -o "$dir/nodelete.so"
}
for backend in auto generic; do
	[ $backend = auto ] && unset PCBATCH_BACKEND || export PCBATCH_BACKEND=$backend
	"$dir/host" "$dir/plugin.so" 250 quiesce
	"$dir/host" "$dir/nodelete.so" 250 nodelete
done
