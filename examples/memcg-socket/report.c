/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include "report.h"

/* ---- progress ---------------------------------------------------------------------------------- */

void progress(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
}

void progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* ---- figures ----------------------------------------------------------------------------------- */

double hit_rate(const struct pcbatch_stock_info *before, const struct pcbatch_stock_info *after)
{
	double hits = (double)(after->hits - before->hits);
	double others = (double)(after->misses - before->misses) + (double)(after->direct - before->direct);

	return 100.0 * ratio(hits, hits + others);
}

void phase_costs(const struct phase *phase, struct phase_costs *costs)
{
	static const struct pcbatch_stock_info none;
	double served = (double)phase->served;

	*costs = (struct phase_costs){ 0 };
	costs->rate = ratio((double)phase->requests, phase->seconds);
	costs->cpu_ns = ratio((double)phase->cpu_ns, (double)phase->requests);
	costs->server_ns = ratio((double)phase->server_cpu_ns, served);
	for (int i = 0; i < ACCT_KINDS; i++) {
		costs->calls[i] = ratio((double)acct_calls(&phase->acct, (enum acct_kind)i), served);
		costs->ns[i] = acct_ns(&phase->acct, (enum acct_kind)i);
	}
	costs->accounting_ns = costs->calls[ACCT_SOCK] * costs->ns[ACCT_SOCK];
	costs->share = 100.0 * ratio(costs->accounting_ns, costs->cpu_ns);
	costs->server_share = 100.0 * ratio(costs->accounting_ns, costs->server_ns);
	costs->hit_rate = hit_rate(&none, &phase->stock);
}

/* ---- tables ------------------------------------------------------------------------------------ */

void report_config(FILE *out, const struct options *opt)
{
	fprintf(out, "%u flows, %u + %u threads, messages of %u bytes, seed %" PRIu64 "; %u memcgs at depth %u, "
		"batch %u, reclaim threshold %" PRId64 "\n", opt->flows, opt->threads, opt->threads, opt->message,
		opt->seed, opt->memcgs, opt->depth, opt->batch, opt->reclaim_threshold);
}

static void row(FILE *out, const char *name, const double *values, unsigned int nr, int digits, const bool *shown)
{
	fprintf(out, "  %-40s", name);
	for (unsigned int i = 0; i < nr; i++) {
		if (shown[i])
			fprintf(out, " %14.*f", digits, values[i]);
		else
			fprintf(out, " %14s", "-");
	}
	fprintf(out, "\n");
}

#define PHASES_MAX 3

struct table {
	FILE *out;
	unsigned int nr;
	const struct phase *phases;
	struct phase_costs costs[PHASES_MAX];
};

static void rows_latency(const struct table *t)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = { { "latency p50, us", 0.5 }, { "latency p90, us", 0.9 }, { "latency p99, us", 0.99 } };
	bool all[PHASES_MAX] = { true, true, true };
	double v[PHASES_MAX] = { 0.0 };

	for (unsigned int i = 0; i < t->nr; i++)
		v[i] = hist_mean(&t->phases[i].latency) / 1000.0;
	row(t->out, "latency mean, us", v, t->nr, 1, all);
	for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++) {
		for (unsigned int i = 0; i < t->nr; i++)
			v[i] = (double)hist_quantile(&t->phases[i].latency, quantiles[q].q) / 1000.0;
		row(t->out, quantiles[q].name, v, t->nr, 1, all);
	}
}

static void rows_calls(const struct table *t)
{
	static const struct {
		const char *calls, *ns;
	} names[ACCT_NOTHING] = {
		[ACCT_CHARGE] = { "charge, calls a request", "charge, ns a call" },
		[ACCT_UNCHARGE] = { "uncharge, calls a request", "uncharge, ns a call" },
		[ACCT_STAT] = { "statistics updates a request", "statistics update, ns" },
		[ACCT_EVENT] = { "events counted a request", "event, ns" },
		[ACCT_SOCK] = { "skbs accounted, calls a request", "skb, ns a call" },
	};
	bool shown[PHASES_MAX] = { false }, sampled[PHASES_MAX] = { false };
	double calls[PHASES_MAX] = { 0.0 }, ns[PHASES_MAX] = { 0.0 };

	for (int kind = 0; kind < ACCT_NOTHING; kind++) {
		for (unsigned int i = 0; i < t->nr; i++) {
			shown[i] = !(t->phases[i].changes & CHANGE_OFF);
			sampled[i] = t->phases[i].acct.probe[kind].samples >= 10;
			calls[i] = t->costs[i].calls[kind];
			ns[i] = t->costs[i].ns[kind];
		}
		row(t->out, names[kind].calls, calls, t->nr, 3, shown);
		row(t->out, names[kind].ns, ns, t->nr, 1, sampled);
	}
}

static void rows_costs(const struct table *t)
{
	bool all[PHASES_MAX] = { true, true, true }, shown[PHASES_MAX] = { false };
	double v[PHASES_MAX] = { 0.0 };

#define ROW(name, digits, which, expression)                    \
	do {                                                    \
		for (unsigned int i = 0; i < t->nr; i++) {      \
			const struct phase *p = &t->phases[i];  \
			const struct phase_costs *c = &t->costs[i]; \
			(void)p;                                \
			(void)c;                                \
			v[i] = (expression);                    \
		}                                               \
		row(t->out, name, v, t->nr, digits, which);     \
	} while (0)

	for (unsigned int i = 0; i < t->nr; i++)
		shown[i] = !(t->phases[i].changes & CHANGE_OFF);
	ROW("accounting, ns a request", 1, shown, c->accounting_ns);
	ROW("CPU a request, both ends, us", 2, all, c->cpu_ns / 1000.0);
	ROW("accounting, % of it", 2, shown, c->share);
	ROW("accounting, % of the server's CPU alone", 2, shown, c->server_share);
	ROW("stock hits, %", 2, shown, c->hit_rate);
	ROW("throttled by a memcg, times", 0, shown, (double)p->throttles);
	ROW("forced charges", 0, shown, (double)p->acct.forced);
	ROW("protocol under pressure, times", 0, shown, (double)p->pressure_entered);
#undef ROW
}

void report_phases(FILE *out, const struct phase *phases, unsigned int nr)
{
	struct table t = { .out = out, .nr = nr, .phases = phases };
	bool all[PHASES_MAX] = { true, true, true };
	double rates[PHASES_MAX] = { 0.0 };

	fprintf(out, "\nTCP, %s backend\n  %-40s", phases[0].backend, "");
	for (unsigned int i = 0; i < nr; i++) {
		fprintf(out, " %14s", phases[i].name);
		phase_costs(&phases[i], &t.costs[i]);
		rates[i] = t.costs[i].rate;
	}
	fprintf(out, "\n");
	row(out, "requests/s", rates, nr, 0, all);
	rows_latency(&t);
	rows_calls(&t);
	rows_costs(&t);
}

static void pair(FILE *out, const char *what, const struct phase *a, const struct phase *b, struct interval d)
{
	fprintf(out, "  %-14s %s against %s: %+.2f %%, 95 %% interval %+.2f to %+.2f (%u pairs)\n", what, b->name, a->name,
		d.mean, d.mean - d.half, d.mean + d.half, d.n);
}

void report_pairs(FILE *out, const struct phase *phases, unsigned int nr)
{
	for (const struct phase *a = phases; a < phases + nr; a++) {
		for (const struct phase *b = a + 1; b < phases + nr && a->slices > 1; b++) {
			pair(out, "requests/s:", a, b, interval_paired(a->rates, b->rates, a->slices));
			pair(out, "CPU a request:", a, b, interval_paired(a->cpus, b->cpus, a->slices));
		}
	}
}
