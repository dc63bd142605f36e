# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# The closing table of run_builds.sh, from what it printed: a line a group of cells, and how many programs were built.

function group_of(name) { sub(/\/.*/, "", name); return name }

/^(PASS|FAIL|SKIP)  / {
	group = group_of($2)
	if (!(group in seen)) { seen[group] = 1; order[++groups] = group }
	count[group, $1]++
}
/^\[  EXACT   \]/ {
	line = $0
	if (match(line, /[0-9]+ assertions/)) checks[group] += substr(line, RSTART, RLENGTH)
	if (match(line, /[0-9]+ operations/)) ops[group] += substr(line, RSTART, RLENGTH)
	if (match(line, /[0-9]+ tests/)) tests[group] += substr(line, RSTART, RLENGTH)
	if (match(line, /[0-9]+ skipped/)) skipped[group] += substr(line, RSTART, RLENGTH)
	if (match(line, /built [0-9]+/)) built[group] += substr(line, RSTART + 6, RLENGTH - 6)
	if (line ~ /rseq/) rseq[group] = "rseq"
	if (line ~ /generic/) generic[group] = "generic"
}
/^\[  REFUSED \]/ { built[group]++ }
END {
	form = "%-12s %5s %5s %5s %7s %7s %6s %11s %12s  %s\n"
	printf "\n" form, "group", "PASS", "FAIL", "SKIP", "built", "tests", "skips", "assertions", "operations", "backends"
	for (i = 1; i <= groups; i++) {
		g = order[i]
		printf form, g, count[g, "PASS"] + 0, count[g, "FAIL"] + 0, count[g, "SKIP"] + 0, built[g] + 0, tests[g] + 0,
			skipped[g] + 0, checks[g] + 0, ops[g] + 0, rseq[g] " " generic[g]
		all["P"] += count[g, "PASS"]; all["F"] += count[g, "FAIL"]; all["S"] += count[g, "SKIP"]
		all["b"] += built[g]; all["t"] += tests[g]; all["s"] += skipped[g]; all["c"] += checks[g]; all["o"] += ops[g]
	}
	printf form, "all", all["P"] + 0, all["F"] + 0, all["S"] + 0, all["b"] + 0, all["t"] + 0, all["s"] + 0, all["c"] + 0,
		all["o"] + 0, ""
}
