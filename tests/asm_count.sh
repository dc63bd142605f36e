#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: asm_count.sh [-v] [COMPILER...]        (gcc and clang by default; -v shows the instructions as well)
# Prints what the fast paths cost once they are inlined into a function of their own at -O2. The hit path is the
# shortest way from the function's first instruction to a ret that arms a restartable sequence (stores to rseq_cs) and
# stores to memory after that; for a read, just the shortest way to a ret. Columns: instructions on that path (ret and
# alignment included), loads from memory, stores to memory, locked instructions, calls, backward jumps.
set -u
cd "$(dirname "$0")/.." || exit 1

verbose=0
if [ "${1-}" = -v ]; then
	verbose=1
	shift
fi
[ $# -gt 0 ] || set -- gcc clang

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/paths.c" <<'END'
#include <pcbatch.h>
int charge_stat(struct pcbatch_group *g, uint64_t n);
int charge_stat(struct pcbatch_group *g, uint64_t n) { return pcbatch_group_charge_stat(g, n, (int64_t)n); }
int uncharge_stat(struct pcbatch_group *g, uint64_t n);
int uncharge_stat(struct pcbatch_group *g, uint64_t n) { return pcbatch_group_uncharge_stat(g, n, (int64_t)n); }
int charge(struct pcbatch_group *g, uint64_t n);
int charge(struct pcbatch_group *g, uint64_t n) { return pcbatch_group_charge(g, n); }
int uncharge(struct pcbatch_group *g, uint64_t n);
int uncharge(struct pcbatch_group *g, uint64_t n) { return pcbatch_group_uncharge(g, n); }
void counter_add(struct pcbatch_counter *c, int64_t d);
void counter_add(struct pcbatch_counter *c, int64_t d) { pcbatch_counter_add(c, d); }
int64_t counter_read(struct pcbatch_counter *c);
int64_t counter_read(struct pcbatch_counter *c) { return pcbatch_counter_read(c); }
END

# An instruction is " 4f:\tjne    55 <charge+0x55>"; a relocation on the line below means that the target of a jump is
# elsewhere. A state of the search is an instruction plus what has been seen so far (0 nothing, 1 armed, 2 committed).
# A call costs as much as a thousand instructions, so that a path with one is taken only if there is no other.
# shellcheck disable=SC2016
walk='
function operands(text,   i, c, depth) {
	n_ops = 1; ops[1] = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "(") depth++
		if (c == ")") depth--
		if (c == "," && !depth) ops[++n_ops] = ""
		else ops[n_ops] = ops[n_ops] c
	}
}
function memory(op) { return op ~ /\(|%[fg]s:/ && op !~ /^\*/ }
function add(addr, text,   i, rest) {
	i = ++n
	index_of[addr] = i; line[i] = text
	load[i] = store[i] = lock[i] = call[i] = arms[i] = external[i] = 0
	sub(/ *#.*/, "", text)
	while (text ~ /^(lock|rep[a-z]*|bnd|notrack|data16|cs) /) {
		if (text ~ /^lock /) lock[i] = 1
		sub(/^[a-z0-9]+ +/, "", text)
	}
	op[i] = text; sub(/ .*/, "", op[i])
	rest = text; if (!sub(/^[^ ]+ +/, "", rest)) rest = ""
	target[i] = op[i] ~ /^j/ && rest !~ /^\*/ ? rest : ""
	sub(/ .*/, "", target[i])
	if (op[i] ~ /^(j|nop|lea|endbr|prefetch)/) return
	if (op[i] ~ /^call/) { call[i] = 1; return }
	operands(rest)
	for (rest = 1; rest < n_ops; rest++)
		if (memory(ops[rest])) load[i] = 1
	if (memory(ops[n_ops])) {
		if (op[i] ~ /^(cmp|test|push)/) load[i] = 1
		else {
			store[i] = 1
			if (op[i] !~ /^(v?mov|set|pop)/) load[i] = 1
		}
		if (op[i] ~ /^xchg/) lock[i] = 1
		if (op[i] ~ /^mov/ && ops[n_ops] ~ /^%fs:0x8\(/) arms[i] = 1
	}
	stack[i] = ops[n_ops] ~ /\(%rsp/
}
function relax(from, to, seen,   cost) {
	if (to < 1 || to > n) return
	if (arms[to]) seen = 1
	else if (seen && store[to] && !stack[to]) seen = 2
	cost = dist[from] + (call[to] ? 1000 : 1)
	to = to SUBSEP seen
	if (!(to in dist) || cost < dist[to]) { dist[to] = cost; prev[to] = from }
}
function finish(   need, best, state, key, part, i, seen, end, from, count, l, s, k, c, b, text) {
	if (name == "" || name ~ /^pcbatch_/) return
	need = name ~ /read$/ ? 0 : 2
	split("", dist); split("", prev); split("", done)
	dist[0] = 0; relax(0, 1, 0); delete dist[0]
	for (;;) {
		best = ""
		for (key in dist)
			if (!(key in done) && (best == "" || dist[key] < dist[best])) best = key
		if (best == "") break
		done[best] = 1
		split(best, part, SUBSEP); i = part[1]; seen = part[2]
		if (op[i] ~ /^ret/) {
			if (seen >= need) { end = best; break }
			continue
		}
		if (op[i] ~ /^j/ && !external[i] && target[i] in index_of) relax(best, index_of[target[i]], seen)
		if (op[i] !~ /^(jmp|ud2|hlt)/) relax(best, i + 1, seen)
	}
	if (end == "") {
		printf "%-14s %-7s no hit path\n", name, compiler
	} else {
		for (state = end; state != 0; state = from) {
			split(state, part, SUBSEP); i = part[1]
			from = prev[state]; split(from, part, SUBSEP)
			count++; l += load[i]; s += store[i]; k += lock[i]; c += call[i]
			if (from != 0 && i <= part[1]) b++
			text = "    " line[i] "\n" text
		}
		printf "%-14s %-7s %12d %5d %6d %4d %4d %8d\n", name, compiler, count, l, s, k, c, b
		if (verbose) printf "%s", text
	}
	name = ""
}
/^[0-9a-f]+ <.*>:$/ { finish(); name = $2; gsub(/[<>:]/, "", name); n = 0; split("", index_of); next }
/^ *[0-9a-f]+:\t/ {
	addr = $1; sub(/:/, "", addr)
	text = $0; sub(/^[^\t]*\t/, "", text); sub(/ +$/, "", text)
	add(addr, text); next
}
/R_X86_64/ { external[n] = 1 }
END { finish() }'

printf '%-14s %-7s %12s %5s %6s %4s %4s %8s\n' function compiler instructions loads stores lock call backward
for cc in "$@"; do
	$cc -std=gnu11 -O2 -Iinclude -c -o "$tmp/paths.o" "$tmp/paths.c" || exit 1
	objdump -dr --no-show-raw-insn -j .text "$tmp/paths.o" | awk -v compiler="$cc" -v verbose=$verbose "$walk" || exit 1
done
