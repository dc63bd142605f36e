#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: spin.sh MODEL...
# Checks tests/model/MODEL.pml completely, in each configuration that a line of its own "run: NAME options" names:
# no error may be found and no state left out. Then each "mutant: NAME options" must have an error, or the model
# proves nothing. FULL=1: the "full: NAME options" too, which take longer. Prints one line each, and adds one a model
# to build/model/table. Exit status 77: no spin.
set -u

[ $# -gt 0 ] || { echo "usage: spin.sh MODEL..." >&2; exit 2; }
command -v spin >/dev/null || { echo "no spin: apt-get install -y spin"; exit 77; }

here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$here/../../build/model
cc=${CC:-cc}

# check DIR OPTIMISATION OPTION...: leaves what pan says in DIR/out.
check() {
	dir=$1 optimise=$2
	shift 2
	mkdir -p "$dir" && cd "$dir" || exit 1
	rm -f pan pan.* ./*.trail out
	pan_flags=-DSAFETY
	# Processes that a condition holds back are not for partial order reduction.
	case " $* " in *" -DNOREDUCE "*) pan_flags="-DSAFETY -DNOREDUCE" ;; esac
	# Nor does who is lost in a fork ever come to an end.
	ends=
	case " $* " in *" -DFORK "*) ends=-E ;; esac
	spin -a "$@" "$here/$model.pml" >spin.out 2>&1 || { cat spin.out; return 1; }
	# shellcheck disable=SC2086 # flags are words
	"$cc" "$optimise" -w $pan_flags -DVECTORSZ=2048 -DMEMLIM=6000 -o pan pan.c || return 1
	./pan $ends -n -m1000000 -w20 >out 2>&1
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	seconds=$(sed -n 's/^pan: elapsed time \([0-9.]*\) seconds.*/\1/p' out)
}

# All of it was searched, and nothing found.
proved() {
	grep -q 'errors: 0' out && ! grep -q -e 'search depth too small' -e 'Search not completed' -e 'out of memory' out
}

kinds='run\|mutant'
[ "${FULL:-0}" = 1 ] && kinds='run\|full\|mutant'
failed=0
for model in "$@"; do
	[ -f "$here/$model.pml" ] || { echo "no model $model" >&2; exit 2; }
	sum=0 time=0 found=0 planted=0
	while read -r kind name options; do
		# What takes long to build and little to run is built without optimisation.
		optimise=-O0
		[ "$kind" = full: ] && optimise=-O1
		# shellcheck disable=SC2086 # options are words
		check "$top/$model/$name" $optimise $options || { echo "$model $name: can't be built"; failed=1; continue; }
		case $kind in
		run: | full:)
			verdict=proved
			proved || { verdict='ERROR FOUND' failed=1; grep '^pan:' out; sed -n '/errors:/p' out; }
			sum=$(echo "$sum $states" | awk '{ printf "%d", $1 + $2 }')
			time=$(echo "$time ${seconds:-0}" | awk '{ print $1 + $2 }')
			printf '%-12s %-20s %-12s %9.0f states %6s s\n' "$model" "$name" "$verdict" "${states:-0}" "${seconds:-?}"
			;;
		mutant:)
			planted=$((planted + 1))
			if grep -q 'errors: 1' out; then
				found=$((found + 1)) verdict=found
			else
				failed=1 verdict='NOT FOUND'
			fi
			printf '%-12s %-20s %-12s %s\n' "$model" "$name" "$verdict" "$(sed -n 's/^pan:1: //p' out)"
			;;
		esac
	done <<-LIST
		$(sed -n "s/^ \* \($kinds\): */\1: /p" "$here/$model.pml")
	LIST
	printf '%-24s %12s states %8s s  %s/%s\n' "spin $model" "$sum" "$time" "$found" "$planted" >>"$top/table"
done
exit $failed
