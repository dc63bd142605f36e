#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves that dependencies point downward only: no header includes one of its own level or above. Proves also what every
# header must have alike: two SPDX lines on top, a guard named after its path, and no identifier that the C and C++
# standards reserve.
set -u
cd "$(dirname "$0")/../include" || exit 1

# Lowest level first; headers on one line do not include each other. Behind a colon: the parts of a header, which are on
# its level and which it includes at its end (a part may include its whole, so that it also works alone).
levels='
pcbatch/version.h
pcbatch/config.h
pcbatch/compiler.h
pcbatch/atomic.h pcbatch/slot.h
pcbatch/cpu.h pcbatch/page_counter.h
pcbatch/percpu.h : pcbatch/arch/x86_64.h pcbatch/arch/aarch64.h pcbatch/arch/none.h pcbatch/arch/generic.h
pcbatch/domain.h
pcbatch/lock.h pcbatch/memory.h
pcbatch/process.h
pcbatch/domain_init.h
pcbatch/counter.h
pcbatch/stats.h : pcbatch/stats_flush.h
pcbatch/owner.h
pcbatch/stock.h : pcbatch/drain.h
pcbatch/obj_stock.h
pcbatch/group.h : pcbatch/group_charge.h pcbatch/group_info.h
pcbatch.h
'

status=0
fail() {
	echo "$*" >&2
	status=1
}

headers=$(find pcbatch.h pcbatch -name '*.h' | sort)
[ -n "$headers" ] || { echo "found no headers" >&2; exit 1; }

# shellcheck disable=SC2086
awk -v levels="$levels" '
	BEGIN {
		n = split(levels, line, "\n")
		for (i = 1; i <= n; i++) {
			m = split(line[i], name, " ")
			for (j = 1; j <= m; j++) {
				level[name[j]] = i
				if (j > 2 && name[2] == ":")
					whole[name[j]] = name[1]
			}
		}
	}
	FNR == 1 {
		folder = FILENAME
		sub(/[^\/]*$/, "", folder)
	}
	FNR == 1 && !(FILENAME in level) {
		print FILENAME ": has no level in the table of test_layers.sh"
		bad = 1
	}
	/^[ \t]*#[ \t]*include/ {
		# In quotes a name is relative to the including file; in brackets it is ours only with pcbatch/ in front.
		target = $0
		sub(/^[^<"]*[<"]/, "", target)
		sub(/[>"].*/, "", target)
		if ($0 ~ /"/)
			target = folder target
		else if (target !~ /^pcbatch/)
			next
		edges++
		if (whole[target] == FILENAME || whole[FILENAME] == target)
			next
		if (!(target in level)) {
			print FILENAME ": includes " target ", which is no header of the library"
			bad = 1
		} else if (level[target] >= level[FILENAME]) {
			print FILENAME ": includes " target ", which is not below it"
			bad = 1
		}
	}
	END {
		if (!edges)
			print "found no #include at all"
		exit bad || !edges
	}' $headers >&2 || status=1

for header in $headers; do
	{
		read -r first
		read -r second
	} <"$header"
	case $first in
	*'SPDX-FileCopyrightText: 2026 the pcbatch authors'*) ;;
	*) fail "$header: line 1 is not the copyright" ;;
	esac
	case $second in
	*'SPDX-License-Identifier: BSD-2-Clause'*) ;;
	*) fail "$header: line 2 is not the licence" ;;
	esac

	# pcbatch/slot.h and pcbatch/arch/x86_64.h are guarded by PCBATCH_SLOT_H and PCBATCH_ARCH_X86_64_H.
	guard=$(echo "$header" | tr 'a-z/.' 'A-Z__')
	[ "$(grep -cE "^#(ifndef|define) $guard\$" "$header")" -eq 2 ] || fail "$header: the guard is not $guard"

	bad=$(grep -nE '^[ \t]*#[ \t]*define[ \t]+(_|[A-Za-z0-9]+_*__)' "$header") && fail "$header: reserved macro: $bad"
	bad=$(grep -nE '^(typedef +)?(struct|union|enum) +[A-Za-z]' "$header" |
		grep -vE '(struct|union|enum) +pcbatch_') && fail "$header: type without the prefix: $bad"
done

if command -v clang >/dev/null && echo | clang -Werror -Wreserved-identifier -x c -fsyntax-only - 2>/dev/null; then
	for header in $headers; do
		case $header in pcbatch/arch/*) continue ;; esac
		for language in 'c -std=c11' 'c++ -std=c++17'; do
			# shellcheck disable=SC2086
			echo "#include <$header>" |
				clang -Werror -Wreserved-identifier -I. -x $language -fsyntax-only - ||
				fail "$header: reserved identifier"
		done
	done
else
	echo "without clang's check for reserved identifiers"
fi

echo "$(echo "$headers" | wc -l) headers"
exit $status
