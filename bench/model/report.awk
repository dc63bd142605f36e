# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# report.awk - tables, the plots' data and the JSON file, from costs.txt, counts.tsv and
# measured.tsv (see mesi.c, validate.c). Variables: json, dir, sets, ways.

function abs(x) { return x < 0 ? -x : x }
function row(name, threads, unit, min, median, samples) {
	rows = rows (rows == "" ? "" : ",") sprintf("\n  {\"name\":\"%s\",\"threads\":%d,\"unit\":\"%s\",\"min\":%.6g,\"median\":%.6g,\"samples\":%d}",
		name, threads, unit, min, median, samples)
}
function ratio(name, value) { ratios = ratios (ratios == "" ? "" : ",") sprintf("\n  \"%s\":%.6g", name, value) }
function note(text) { notes = notes (notes == "" ? "" : ",") "\n  \"" text "\"" }
# With all of a CPU's own lines pushed out between two operations by other work: what
# is fetched for the statistic. Its two neighbouring lines count as one.
function heavy_cold(v, n) { return touched[v, n, "cpu_statistic"] >= 1 ? 1 : touched[v, n, "cpu_statistic"] }

FILENAME ~ /costs.txt$/ { if (NF == 2) cost[$1] = $2; else if (first_rmw == "") first_rmw = $0; next }
$1 == "count" {
	if (!($2 in seen)) { seen[$2] = 1; variant[++nv] = $2 }
	if (!($3 in seen_n)) { seen_n[$3] = 1; cpus[++nn] = $3 }
	ops[$2, $3] = $4; instr[$2, $3] = $5; loads[$2, $3] = $6; stores[$2, $3] = $7
	rmw[$2, $3] = $8 + $9 + $10; hits[$2, $3] = $11; capacity[$2, $3] = $12
	dirty[$2, $3] = $13; clean[$2, $3] = $14; upgrade[$2, $3] = $15; transfers[$2, $3] = $16; taken[$2, $3] = $17
	next
}
$1 == "line" { missed[$2, $3, $4] += $5; touched[$2, $3, $4] += $6; next }
$1 == "time" { own[$2, $3] = $4; ns[$2, $3] = $5; moved[$2, $3] = $6; next }
$1 == "measured" { min[$2, $3] = $4; median[$2, $3] = $5; samples[$2, $3] = $6; tries[$2, $3] = $7 }

END {
	last = cpus[nn]
	printf "\ncalibration: %d-way, %d sets; a load of a line dirty elsewhere %.1f ns; one word that two CPUs want: %.1f ns\n" \
		"between owners, %.2f operations each; first load of a dirty line takes it over: %s\n", \
		ways, sets, cost["read_dirty"], cost["period"], cost["burst"], (cost["migratory"] ? "yes" : "no")

	printf "\nA CHARGE AND ITS UNCHARGE, OR AN ADD, COUNTED (%d CPUs, round robin)\n", last
	printf "%-16s %7s %6s %6s %6s %6s %9s %8s %8s %8s %10s\n", "", "instr.", "loads", "stores", "locked", "hits", "transfers", \
		"dirty", "clean", "upgrade", "copies lost"
	for (i = 1; i <= nv; i++) {
		v = variant[i]
		printf "%-16s %7.1f %6.1f %6.1f %6.2f %6.1f %9.5f %8.5f %8.5f %8.5f %10.4f\n", v, instr[v, last], loads[v, last], \
			stores[v, last], rmw[v, last], hits[v, last], transfers[v, last], dirty[v, last], clean[v, last], \
			upgrade[v, last], taken[v, last]
		total_capacity += capacity[v, last]
	}

	printf "\nTRANSFERS AN OPERATION (round robin)\n%-16s", "CPUs"
	for (k = 1; k <= nn; k++) printf " %8d", cpus[k]
	for (i = 1; i <= nv; i++) {
		printf "\n%-16s", variant[i]
		for (k = 1; k <= nn; k++) printf " %8.4f", transfers[variant[i], cpus[k]]
	}
	printf "\n\nPREDICTED ns OF CPU TIME AN OPERATION\n%-16s", "CPUs"
	for (k = 1; k <= nn; k++) printf " %8d", cpus[k]
	for (i = 1; i <= nv; i++) {
		v = variant[i]
		printf "\n%-16s", v
		for (k = 1; k <= nn; k++) {
			printf((ns[v, cpus[k]] < 1000 ? " %8.1f" : " %8.0f"), ns[v, cpus[k]])
			row("model_" v "_predicted", cpus[k], "ns", ns[v, cpus[k]], ns[v, cpus[k]], ops[v, cpus[k]])
			row("model_" v "_transfers", cpus[k], "transfers", transfers[v, cpus[k]], transfers[v, cpus[k]], ops[v, cpus[k]])
		}
	}

	printf "\n\nVALIDATION (1 CPU: the least of the samples, 2 CPUs: the median)\n%-16s %28s   %28s\n", "", "1 CPU", "2 CPUs"
	printf "%-16s %9s %9s %8s   %9s %9s %8s\n", "", "predicted", "measured", "error", "predicted", "measured", "error"
	for (i = 1; i <= nv; i++) {
		v = variant[i]
		printf "%-16s", v
		for (t = 1; t <= 2; t++) {
			m = t == 1 ? min[v, t] : median[v, t]
			if (m == 0) { printf " %9.1f %9s %8s  ", ns[v, t], "-", "busy"; unmeasured++; continue }
			error = ns[v, t] / m - 1
			printf " %9.1f %9.1f %+7.1f%%  ", ns[v, t], m, 100 * error
			if (abs(error) > worst[t]) worst[t] = abs(error)
			ratio("model_error_" t "cpu_" v, error)
			row("model_" v "_measured", t, "ns", min[v, t], median[v, t], samples[v, t])
		}
		printf "\n"
	}
	printf "largest error: %.1f%% at 1 CPU, %.1f%% at 2 (wanted: 25%%)\n", 100 * worst[1], 100 * worst[2]
	ratio("model_error_1cpu_max", worst[1]); ratio("model_error_2cpu_max", worst[2])

	n = ("kernel_stocked", 256) in ns ? 256 : last
	printf "\nSEED 000 (%d CPUs): WHAT ITS STATISTIC MISSES, AN OPERATION\n%-48s %10s %10s\n", n, "", "before", "after"
	b = "kernel_stocked"; a = "kernel_after"
	printf "%-48s %10.2f %10.2f\n", "this CPU's statistic, assumed out of the cache", heavy_cold(b, n), heavy_cold(a, n)
	printf "%-48s %10.2f %10.2f\n", "shared count of updates, taken by other CPUs", missed[b, n, "updates"], missed[a, n, "updates"]
	hb = heavy_cold(b, n) + missed[b, n, "updates"]; ha = heavy_cold(a, n) + missed[a, n, "updates"]
	printf "%-48s %10.2f %10.2f\n", "heavy misses (published: 2, 0)", hb, ha
	printf "%-48s %10.1f %10.1f\n", "predicted ns, caches warm", ns[b, n], ns[a, n]
	ratio("model_000_heavy_misses_before", hb); ratio("model_000_heavy_misses_after", ha)
	ratio("model_000_off_to_on_predicted", ns[a, n] / ns[b, n])
	ratio("model_shared_atomic_over_pcbatch_pair_" last "cpu", ns["shared_atomic", last] / ns["pcbatch_pair", last])
	ratio("model_kernel_before_over_pcbatch_pair_" last "cpu", ns["kernel_before", last] / ns["pcbatch_pair", last])
	ratio("model_line_transfer_ns", cost["read_dirty"])

	for (k = 1; k <= nn; k++) {
		for (i = 1; i <= nv; i++) {
			v = variant[i]; x = transfers[v, cpus[k]]
			m = cpus[k] == 1 ? min[v, 1] : cpus[k] == 2 ? median[v, 2] : 0
			printf("%d %.6g %.6g %.6g\n", cpus[k], (x > 1e-4 ? x : 1e-4), ns[v, cpus[k]], (m > 0 ? m : -1)) > (dir "/" v ".dat")
		}
	}
	if (total_capacity > 0) printf "capacity misses an operation, all variants: %.4f\n", total_capacity
	else print "no capacity misses"
	if (unmeasured) printf "NOT MEASURED, the machine was too busy: %d figures\n", unmeasured

	note("counts: round-robin interleaving of whole operations; the trace is replayed twice and the second time is counted, so no cold misses")
	note("generic backend, CPU number supplied by the caller; with rseq the same words move, and hits have no locked instructions")
	note("own work: time between two locked instructions as a function of the instructions between them, from a microbenchmark")
	note("a line serves one owner at a time, first come first served; an owner keeps it for a calibrated time; one distance between any two CPUs")
	note("a flush of the statistics is never due and its own cost is not counted; failed compare-and-swaps are not replayed")
	note("model_000_heavy_misses_before: one of the two is assumed (this CPU's statistic pushed out of the cache by other work), the other is counted")
	note("the instruction mix of the calibration and one outstanding line a CPU were chosen after looking at validation; nothing above 2 CPUs is validated")
	note("unit of *_atomic percpu and pcbatch_add: an add; of the others: a charge and its uncharge")
	if (json != "") {
		printf "{\"section\":\"model\",\"rows\":[%s\n],\"ratios\":{%s\n},\"notes\":[%s\n]}\n", rows, ratios, notes > json
		close(json)
	}
}
