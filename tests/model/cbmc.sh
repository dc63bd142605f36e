#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: cbmc.sh [-i] PROGRAM...
# Proves tests/model/cbmc/PROGRAM.c: each "check: FUNCTION options" line of it with the headers as they are, then each
# "mutant: FUNCTION options HEADER s/.../.../" with a copy of the headers changed by that, which must fail. Prints a
# line each, and adds one a program to build/model/table. Exit status 77: there is no cbmc.
#
# cbmc is what the PATH has, else that of a small Debian 13 under build/model/debian13, since Debian 12 has none. -i
# makes that folder (about 30 s and 400 MB), from where this machine's packages come; that takes root and debootstrap.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
mkdir -p "$here/../../build/model" && top=$(cd "$here/../../build/model" && pwd) || exit 1
root=$top/debian13

skip() {
	echo "no cbmc: $1"
	exit 77
}

mirror() {
	{
		# shellcheck disable=SC2016 # apt's variables
		apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian'
		sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*
	} 2>/dev/null | grep '/debian/*$' | head -n 1
}

install_cbmc() {
	[ "$(id -u)" = 0 ] || skip "making $root takes root; or have cbmc in the PATH"
	command -v debootstrap >/dev/null || skip "making $root takes debootstrap: apt-get install -y debootstrap"
	from=$(mirror)
	[ -n "$from" ] || skip "no Debian mirror in apt's sources; or have cbmc in the PATH"
	rm -rf "$root"
	{
		debootstrap --variant=minbase trixie "$root.new" "$from" &&
			chroot "$root.new" env DEBIAN_FRONTEND=noninteractive \
				apt-get install -y --no-install-recommends cbmc gcc libc6-dev
	} >"$top/debian13.log" 2>&1 || { tail -n 5 "$top/debian13.log"; rm -rf "$root.new"; skip "see $top/debian13.log"; }
	mv "$root.new" "$root"
}

install=no
[ "${1:-}" = -i ] && { install=yes; shift; }
[ $# -gt 0 ] || { echo "usage: cbmc.sh [-i] PROGRAM..." >&2; exit 2; }
if command -v cbmc >/dev/null; then
	root=
elif [ ! -x "$root/usr/bin/cbmc" ]; then
	[ $install = yes ] || skip "have it in the PATH, or: make check-model (a Debian 13 in build/model, takes root)"
	install_cbmc
elif [ "$(id -u)" != 0 ]; then
	skip "only root can use $root"
fi

# prove FUNCTION OPTION...: on what $work holds; the answer in $top/cbmc.out.
prove() {
	function=$1
	shift
	set -- --function "$function" -I include -DPCBATCH_USE_BUILTINS=1 -DPCBATCH_USE_ASM=0 -DPCBATCH_REGION_SHIFT=12 \
		--drop-unused-functions --unwind 8 --unwinding-assertions --verbosity 8 "$@" program.c
	# Since version 6 the checks of pointers and overflows are on, but they know no threads.
	[ "$program" = threads ] && set -- "$@" --no-standard-checks
	started=$(date +%s)
	if [ -z "$root" ]; then
		(cd "$work" && timeout "${CBMC_TIMEOUT:-280}" cbmc "$@")
	else
		# shellcheck disable=SC2016 # for the inner shell
		chroot "$root" sh -c 'cd /work && exec "$@"' sh timeout "${CBMC_TIMEOUT:-280}" cbmc "$@"
	fi >"$top/cbmc.out" 2>&1
	status=$?
	seconds=$(($(date +%s) - started))
}

fresh() {
	work=${root:-$top/cbmc}/work
	rm -rf "$work"
	mkdir -p "$work" && cp -R "$here/../../include" "$work" && cp "$here/cbmc/$program.c" "$work/program.c"
}

failed=0
for program in "$@"; do
	[ -f "$here/cbmc/$program.c" ] || { echo "no program $program" >&2; exit 2; }
	vccs=0 time=0 found=0 planted=0
	while read -r kind name rest; do
		fresh || exit 1
		case $kind in
		check:)
			# shellcheck disable=SC2086 # options are words
			prove "$name" $rest
			verdict=proved
			[ $status -eq 0 ] || { verdict=FAILED failed=1; grep -e FAILURE -e rror -e '^VERI' "$top/cbmc.out"; }
			n=$(sed -n 's/^Generated \([0-9]*\) VCC.*/\1/p' "$top/cbmc.out")
			vccs=$((vccs + ${n:-0})) time=$((time + seconds))
			printf '%-8s %-12s %-12s %-8s %5s VCCs %3d s\n' "$program" "$name" "$rest" $verdict "${n:-?}" $seconds
			;;
		mutant:)
			planted=$((planted + 1)) verdict=found
			head=${rest%%.h s/*} change=s/${rest#*.h s/} options=
			file=${head##* }.h
			case $head in *' '*) options=${head% *} ;; esac
			sed -i "$change" "$work/include/pcbatch/$file"
			cmp -s "$work/include/pcbatch/$file" "$here/../../include/pcbatch/$file" && verdict='NOT PLANTED'
			# shellcheck disable=SC2086 # options are words
			prove "$name" $options
			# 10: an assertion failed; anything else is an error of the run.
			[ "$verdict" != found ] || [ $status -eq 10 ] || verdict='NOT FOUND'
			if [ "$verdict" = found ]; then found=$((found + 1)); else failed=1; fi
			printf '%-8s %-12s %-12s %-8s %s %s\n' "$program" "$name" "$options" "$verdict" "$file" "$change"
			;;
		esac
	done <<-LIST
		$(sed -n 's/^ \* \(check\|mutant\): */\1: /p' "$here/cbmc/$program.c")
	LIST
	printf '%-24s %12s VCCs   %8s s  %s/%s\n' "cbmc $program" "$vccs" "$time" "$found" "$planted" >>"$top/table"
done
exit $failed
