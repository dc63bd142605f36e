/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* seeds_table.h - what bench_seeds.c makes of its measurements: "seed | metric | published | here". Included there only. */
#ifndef PCBATCH_BENCH_SEEDS_TABLE_H
#define PCBATCH_BENCH_SEEDS_TABLE_H

#define SOCKET_PROGRAM "build/examples/memcg-socket"

static double less(double from, double to)
{
	return from > 0 ? 100 * (to / from - 1) : 0;
}

/* A row of the table, also in results.json: as a note, since it is words. */
__attribute__((format(printf, 5, 6))) static void seed(struct bench_out *out, const char *which, const char *metric,
						       const char *published, const char *format, ...)
{
	char here[160];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(here, sizeof(here), format, args);
	va_end(args);
	bench_out_note(out, "%-4s| %-44s| %-22s| %s", which, metric, published, here);
}

static void split_medians(struct split *s, double *charge, double *uncharge)
{
	*charge = bench_median(s->first, s->n) / RUN;
	*uncharge = bench_median(s->second, s->n) / RUN;
	s->n = 0;
}

/* Both ways in turn, with the clock's own cost taken off. */
static void splits_run(double charge[2], double uncharge[2])
{
	double none_charge, none_uncharge;
	unsigned int i, k;

	for (i = 0; i < 20; i++) {
		split_apart(&splits[0], RUN * SPLITS / 20);
		split_batched(&splits[1], RUN * SPLITS / 20);
		split_clock(&splits[2], RUN * SPLITS / 20);
	}
	split_medians(&splits[2], &none_charge, &none_uncharge);
	for (k = 0; k < 2; k++) {
		split_medians(&splits[k], &charge[k], &uncharge[k]);
		charge[k] -= none_charge;
		uncharge[k] -= none_uncharge;
	}
}

static void socket_rows(struct bench_out *out)
{
	unsigned int i, t;

	bench_plot(out, "reclaim_threshold", "a message against what its socket may keep (seed 003)", "KiB a socket may keep (2: less than a page)",
		   "ns or calls a message", "xy");
	bench_plot_series(out, "ns a message (CPU time, 2 threads)");
	for (i = 0; i < THRESHOLDS; i++)
		bench_plot_point(out, i == 0 ? 2 : (double)sockets[i].threshold / 1024, work[SOCKETS + i].ns);
	bench_plot_series(out, "charges and uncharges a message");
	for (i = 0; i < THRESHOLDS; i++) {
		double calls = 0;

		for (t = 0; t < 2; t++)
			calls += (double)sockets[i].calls[t][0];
		calls /= (double)work[SOCKETS + i].done;
		bench_out_value(out, sockets[i].name, 2, "calls", calls, calls, 1);
		bench_plot_point(out, i == 0 ? 2 : (double)sockets[i].threshold / 1024, calls > 1e-6 ? calls : 1e-6);
	}
}

static void synthetic(struct bench_out *out)
{
	double charge[2], uncharge[2];
	const struct bench_work *two = &work[SINGLE];
	unsigned int w;

	splits_run(charge, uncharge);
	bench_out_head("seeds, synthetic traffic, ns (CPU time)");
	for (w = 0; w < WORKS; w++)
		bench_out_work(out, &work[w]);
	socket_rows(out);
	printf("\n");
	seed(out, "seed", "metric, synthetic traffic", "published", "here (1 thread; 2 threads)");
	seed(out, "000", "charge + uncharge, statistic batched", "-58.4 %", "%.1f -> %.1f ns, %.1f %%; %.1f %%", work[APART].ns, work[BATCHED].ns,
	     less(work[APART].ns, work[BATCHED].ns), less(two[APART].ns, two[BATCHED].ns));
	seed(out, "000", "charge", "-59.4 %", "%.1f -> %.1f ns, %.1f %%", charge[0], charge[1], less(charge[0], charge[1]));
	seed(out, "000", "uncharge", "-48.5 %", "%.1f -> %.1f ns, %.1f %%", uncharge[0], uncharge[1], less(uncharge[0], uncharge[1]));
	seed(out, "001", "update at depth 8, hot, parents cached", "30-38 % regressions go", "%.1f -> %.1f ns, %.1f %%; %.1f %% (cold: see hierarchy)",
	     work[WALK].ns, work[CACHED].ns, less(work[WALK].ns, work[CACHED].ns), less(two[WALK].ns, two[CACHED].ns));
	seed(out, "002", "uncharge through the stock", "2.13 % of cycles go", "%.1f -> %.1f ns a pair, %.1f %%; %.1f %%", work[DIRECT].ns, work[STOCKED].ns,
	     less(work[DIRECT].ns, work[STOCKED].ns), less(two[DIRECT].ns, two[STOCKED].ns));
	seed(out, "003", "accounting of a message, 64 KiB kept", "2.01 x requests/s", "%.1f -> %.1f ns, %.2f x (2 threads)", work[SOCKETS].ns,
	     work[SOCKETS + 5].ns, work[SOCKETS].ns / work[SOCKETS + 5].ns);
	seed(out, "004", "add, batch 32 to 256", "+9.1 % at 24 processes", "%.2f -> %.2f ns, %.1f %%; %.1f %%", work[B32].ns, work[B256].ns,
	     less(work[B32].ns, work[B256].ns), less(two[B32].ns, two[B256].ns));
}

/* Every page went back; every statistic is what was added. */
static void audit(struct bench_out *out)
{
	unsigned int i, t, k;
	int64_t kept = 0;

	for (i = 0; i < THRESHOLDS; i++)
		for (t = 0; t < BENCH_THREADS_MAX; t++)
			for (k = 0; k < STREAMS; k++)
				kept += sockets[i].forward[t][k] / 4096;
	(void)pcbatch_stock_drain_all(&dom);
	(void)pcbatch_stats_flush(&dom, NULL);
	bench_out_check(out, "pages that sockets keep", pcbatch_group_current(leaf), kept);
	bench_out_check(out, "statistic of these", pcbatch_group_stat_read_signed(leaf, 0), kept);
	bench_out_check(out, "updates", pcbatch_group_stat_read_signed(walked, 0),
			(long long)(work[WALK].done + work[CACHED].done + work[SINGLE + WALK].done + work[SINGLE + CACHED].done));
	for (i = 0; i < 2; i++)
		bench_out_check(out, "adds", pcbatch_counter_sum(&counters[i]), (long long)(work[B32 + i].done + work[SINGLE + B32 + i].done));
}

/* ---- recorded traffic ---- */

/* Runs the example with its output thrown away; 0 when it passed its own audit. */
static int socket_run(char *const args[])
{
	int status;
	pid_t pid;

	(void)fflush(NULL); /* or the child says it again */
	pid = fork();
	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(127);
		(void)execv(SOCKET_PROGRAM, args);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return -1;
	return pid > 0 ? status : -1;
}

static const struct json *config_of(const struct json *configs, const char *changes)
{
	const struct json *c = json_first(configs);

	while (c != NULL && strcmp(json_text(c, "changes", ""), changes) != 0)
		c = c->next;
	return c;
}

static void replay_rows(struct bench_out *out, const struct json *configs)
{
	static const struct {
		const char *seed, *metric, *published, *off, *on, *key, *why;
	} rows[] = {
		{ "000", "charge + uncharge", "-58.4 %", "001,002,003,004", "after", "charge_uncharge_ns", "" },
		{ "000", "charge, singly, fenced", "-59.4 %", "001,002,003,004", "after", "charge_ns", "" },
		{ "000", "uncharge, singly, fenced", "-48.5 %", "001,002,003,004", "after", "uncharge_ns", "" },
		{ "000", "statistics updates a request", "-100 %", "001,002,003,004", "after", "updates_per_request", "" },
		{ "001", "charge + uncharge, alone against before", "30-38 % regressions go", "before", "001", "charge_uncharge_ns",
		  " (three levels that stay in the cache: nothing to miss)" },
		{ "002", "charge + uncharge", "2.13 % of cycles go", "000,001,003,004", "after", "charge_uncharge_ns", "" },
		{ "003", "charge and uncharge calls a request", "2.01 x requests/s", "000,001,002,004", "after", "calls_per_request", "" },
		{ "003", "all accounting of a request", "2.01 x requests/s", "000,001,002,004", "after", "request_ns", "" },
		{ "004", "an event", "+9.1 % at 24 processes", "000,001,002,003", "after", "event_ns",
		  " (blocking signals, a system call, is most of it)" },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double off = json_number(config_of(configs, rows[i].off), rows[i].key, 0);
		double on = json_number(config_of(configs, rows[i].on), rows[i].key, 0);

		seed(out, rows[i].seed, rows[i].metric, rows[i].published, "%.3g -> %.3g, %.1f %%%s", off, on, less(off, on), rows[i].why);
		if (i == 0 && off > 0)
			bench_out_ratio(out, "replay_000_off_to_on", on / off);
	}
}

static void replayed(struct bench_out *out)
{
	char stream[] = "build/bench/stream", json[] = "build/bench/replay.json", program[] = SOCKET_PROGRAM;
	char seconds[8] = "1", rounds[8] = "9";
	char *record[] = { program, (char[]){ "--mode" }, (char[]){ "after" }, (char[]){ "--seconds" }, seconds, (char[]){ "--record" }, stream, NULL };
	char *replay[] = { program, (char[]){ "--replay" }, stream, (char[]){ "--rounds" }, rounds, (char[]){ "--json" }, json, NULL };
	const struct json *configs;

	if (access(SOCKET_PROGRAM, X_OK) != 0) {
		bench_out_note(out, "no recorded traffic: %s is not there", SOCKET_PROGRAM);
		return;
	}
	if (out->quick) {
		(void)strcpy(seconds, "0.4");
		(void)strcpy(rounds, "3");
	}
	if (socket_run(record) != 0 || socket_run(replay) != 0) {
		out->failed = 1;
		bench_out_note(out, "WRONG: %s failed, or its audit found a difference", SOCKET_PROGRAM);
		return;
	}
	configs = json_get(json_get(json_read(json), "replay"), "configs");
	printf("\n");
	seed(out, "seed", "metric, recorded traffic replayed", "published", "here, off -> on, the others on");
	replay_rows(out, configs);
	bench_out_note(out, "two CPUs can't show how shared lines behave on 24 to 256: there each miss costs more and queues; see the model");
	(void)remove(stream);
}

#endif /* PCBATCH_BENCH_SEEDS_TABLE_H */
