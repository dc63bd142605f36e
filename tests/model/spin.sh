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

# one KIND NAME OPTION...: says what came of one line of the model, and sums it up in its folder's result.
one() {
	kind=$1 name=$2
	shift 2
	mkdir -p "$top/$model/$name" && echo 'bad 0 0' >"$top/$model/$name/result"
	# What takes long to build and little to run is built without optimisation.
	optimise=-O0
	[ "$kind" = full: ] && optimise=-O1
	check "$top/$model/$name" $optimise "$@" || { echo "$model $name: can't be built"; return; }
	result=bad verdict='NOT FOUND'
	case $kind in
	mutant:)
		grep -q 'errors: 1' out && result=good verdict=found
		printf '%-12s %-20s %-12s %s\n' "$model" "$name" "$verdict" "$(sed -n 's/^pan:1: //p' out)"
		;;
	*)
		verdict='ERROR FOUND'
		if proved; then result=good verdict=proved; else grep -e '^pan:' -e 'errors:' out; fi
		printf '%-12s %-20s %-12s %9.0f states %6s s\n' "$model" "$name" "$verdict" "${states:-0}" "${seconds:-?}"
		;;
	esac
	echo "$result ${states:-0} ${seconds:-0}" >result
}

kinds='run\|mutant'
[ "${FULL:-0}" = 1 ] && kinds='run\|full\|mutant'

lines() {
	sed -n "s/^ \* \($kinds\): */\1: /p" "$here/$model.pml"
}

# half N: every second line, so that two run at a time.
half() {
	lines | awk -v n="$1" 'NR % 2 == n' | while read -r kind name options; do
		# shellcheck disable=SC2086 # options are words
		(one "$kind" "$name" $options)
	done
}

failed=0
for model in "$@"; do
	[ -f "$here/$model.pml" ] || { echo "no model $model" >&2; exit 2; }
	half 1 &
	half 0
	wait
	lines | while read -r kind name options; do
		echo "$kind $(cat "$top/$model/$name/result")"
	done | awk -v model="$model" '
		$1 == "mutant:" { planted++; found += $2 == "good" }
		$1 != "mutant:" { states += $3; seconds += $4 }
		$2 != "good" { bad = 1 }
		END {
			printf "spin %-19s %12.0f states %8.1f s  %d/%d\n", model, states, seconds, found, planted
			exit bad
		}' >>"$top/table" || failed=1
done
exit $failed
