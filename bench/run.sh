#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: [QUICK=1] [CC=gcc] [CFLAGS=...] bench/run.sh [SECTION...]      (make bench builds first, and calls this)
# Runs the benches, or only those named (limits add charge hierarchy seeds read peers_c peers_cpp model), puts what they
# say into build/bench/results.json, draws the plots beside it and prints every ratio with what is wanted of it.
# Exits 1 when a total was wrong or a bench failed; a ratio that falls short is only shown.
set -u
cd "$(dirname "$0")/.." || exit 2

out=build/bench
quick=
limit=150
if [ "${QUICK:-0}" = 1 ]; then
	quick=--quick
	limit=40
fi
[ -x $out/report ] || { echo "bench: build first: make bench" >&2; exit 2; }

if [ $# -gt 0 ]; then
	wanted=$*
else
	wanted="limits add charge hierarchy seeds read"
	for p in "$out"/peers_*; do
		[ -x "$p" ] && [ -f "$p" ] && wanted="$wanted ${p#"$out"/}"
	done
	[ -x bench/model/run.sh ] && wanted="$wanted model"
	[ -s $out/results.json ] && mv $out/results.json $out/results.old
	rm -f "$out"/*.json "$out"/*.gp "$out"/*.svg
fi

# ---- run -----------------------------------------------------------------------------------------

failed=
# shellcheck disable=SC2086
total=$(set -- $wanted; echo $#)
number=0
for name in $wanted; do
	number=$((number + 1))
	case $name in
	model) program=bench/model/run.sh ;;
	peers_*) program=$out/$name ;;
	*) program=$out/bench_$name ;;
	esac
	[ -t 2 ] && printf '== %s of %s: %s\n' "$number" "$total" "$name" >&2
	json=$out/$name.json
	rm -f "$json"
	# shellcheck disable=SC2086
	timeout $limit "$program" --json "$json" $quick
	status=$?
	# 77: it can't be measured here, and has said why.
	[ $status -eq 0 ] || [ $status -eq 77 ] || failed="$failed $name"
	echo
done

# ---- put together --------------------------------------------------------------------------------

quoted() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }
cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
backend=$(sed -n 's/.*"backend":"\([a-z]*\)".*/\1/p' "$out"/*.json 2>/dev/null | head -n 1)
{
	printf '{"machine":"%s","cpu":"%s","cpus":%s,"kernel":"%s",\n' "$(uname -m)" "$(quoted "$cpu")" "$(getconf _NPROCESSORS_ONLN)" \
		"$(uname -sr)"
	printf '  "compiler":"%s","flags":"%s","backend":"%s","quick":%s}' "$(quoted "$("${CC:-gcc}" --version | head -n 1)")" \
		"$(quoted "${CFLAGS:-}")" "$backend" "$([ -n "$quick" ] && echo true || echo false)"
} >$out/machine.txt

# A section that failed counts as far as it got.
set --
for name in limits add charge hierarchy seeds read $(cd $out && ls peers_*.json 2>/dev/null) model; do
	json=$out/${name%.json}.json
	[ -s "$json" ] && set -- "$@" "$json"
done
if [ $# -eq 0 ] || ! $out/report merge $out/machine.txt "$@" >$out/results.tmp; then
	echo "bench: no results" >&2
	exit 1
fi
mv $out/results.tmp $out/results.json
rm -f $out/machine.txt

if command -v gnuplot >/dev/null && $out/report plots $out/results.json $out; then
	for script in "$out"/*.gp; do
		[ -e "$script" ] && { gnuplot "$script" 2>&1 || echo "bench: gnuplot failed on $script" >&2; }
	done
	plots=" and plots beside it"
else
	plots=" (plots want gnuplot-nox)"
fi

# ---- say -----------------------------------------------------------------------------------------

echo "== ratios"
$out/report verdicts $out/results.json
echo
echo "results in $out/results.json$plots"
if [ -n "$failed" ]; then
	echo "FAILED:$failed"
	exit 1
fi
