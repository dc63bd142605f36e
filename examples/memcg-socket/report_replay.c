/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a replay. */
#include "report.h"

static double less(double from, double to)
{
	return 100.0 * (1.0 - ratio(to, from));
}

static void config_row(FILE *out, const struct replay_config *c)
{
	const struct replay_result *r = &c->result;
	char name[32];

	change_name(c->changes, name, sizeof(name));
	fprintf(out, "  %-20s %10.1f %8.1f %8.1f %9.2f", name, r->pair_ns, r->charge_ns, r->uncharge_ns, r->updates);
	if (c->changes & CHANGE_000)
		fprintf(out, " %8s", "-");
	else
		fprintf(out, " %8.1f", r->update_ns);
	fprintf(out, " %8.1f %9.3f %10.1f %8.2f\n", r->event_ns, r->calls, r->request_ns, r->hit_rate);
}

/* ---- each change by its own measure ------------------------------------------------------------ */

struct measure {
	const char *what;
	double (*value)(const struct replay_result *result);
	const char *why[2]; /* when there is nothing to see with the others on, and off */
};

static double pair_ns(const struct replay_result *r)
{
	return r->pair_ns;
}

static double update_ns(const struct replay_result *r)
{
	return r->update_ns;
}

static double updates(const struct replay_result *r)
{
	return r->updates;
}

static double calls(const struct replay_result *r)
{
	return r->calls;
}

static double event_ns(const struct replay_result *r)
{
	return r->event_ns;
}

static double request_ns(const struct replay_result *r)
{
	return r->request_ns;
}

static const struct {
	unsigned int change;
	struct measure measure;
} measures[] = {
	{ 0, { "charge + uncharge, ns", pair_ns,
	       { "the stock misses: more memcgs than it has slots",
		 "without 002 the uncharge's atomics at every level are nearly all of it" } } },
	{ 0, { "statistics updates a request", updates, { "", "" } } },
	{ 1, { "charge + uncharge, ns", pair_ns,
	       { "with 000 on there is no update left that could be cheaper",
		 "3N loads become N + 1, but on this machine all of them hit the first-level cache" } } },
	{ 1, { "statistics update, ns", update_ns,
	       { "", "what is saved is cache misses, and a tree of this size has none here" } } },
	{ 2, { "charge + uncharge, ns", pair_ns,
	       { "few CPUs: an atomic on a line that nobody else writes is cheap",
		 "few CPUs: an atomic on a line that nobody else writes is cheap" } } },
	{ 3, { "charge and uncharge calls a request", calls,
	       { "the skbs are larger than the threshold", "the skbs are larger than the threshold" } } },
	{ 4, { "event, ns", event_ns,
	       { "blocking signals is cheap on this machine", "blocking signals is cheap on this machine" } } },
};

#define FEW_CALLS "with 003 on hardly a call is left that could be cheaper"
#define SYSTEM_CALLS "without 004 the blocking of signals is nearly all of it"

static const struct measure everything[CHANGE_NR] = {
	{ "everything a request, ns", request_ns, { FEW_CALLS, SYSTEM_CALLS } },
	{ "everything a request, ns", request_ns, { FEW_CALLS, SYSTEM_CALLS } },
	{ "everything a request, ns", request_ns, { FEW_CALLS, SYSTEM_CALLS } },
	{ "everything a request, ns", request_ns, { "", SYSTEM_CALLS } },
	{ "everything a request, ns", request_ns, { "", "" } },
};

/* below this a difference is as good as none */
#define VISIBLE 5.0

static void side(FILE *out, double off, double on)
{
	if (off > 0.0)
		fprintf(out, " %9.2f -> %8.2f %7.1f %%", off, on, less(off, on));
	else
		fprintf(out, " %31s", "none");
}

static void measure_row(FILE *out, struct replay *replay, unsigned int change, const struct measure *m)
{
	double off[2] = { m->value(replay_without(replay, change)), m->value(&replay->configs[0].result) };
	double on[2] = { m->value(&replay->configs[1].result), m->value(replay_alone(replay, change)) };

	fprintf(out, "  %03u %-36s", change, m->what);
	for (int i = 0; i < 2; i++)
		side(out, off[i], on[i]);
	fprintf(out, "\n");
	for (int i = 0; i < 2; i++)
		if (off[i] > 0.0 && less(off[i], on[i]) < VISIBLE && m->why[i][0])
			fprintf(out, "      %s: %s\n", i ? "the others off" : "the others on", m->why[i]);
}

static void report_measures(FILE *out, struct replay *replay)
{
	const struct replay_result *before = &replay->configs[0].result, *after = &replay->configs[1].result;

	fprintf(out, "\nWhat each change takes off\n  %-40s %31s %31s\n", "", "off -> on, the others on",
		"off -> on, the others off");
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		measure_row(out, replay, measures[i].change, &measures[i].measure);
	for (unsigned int change = 0; change < CHANGE_NR; change++)
		measure_row(out, replay, change, &everything[change]);
	fprintf(out, "  000 with the others on: %.1f %% off charge + uncharge (the kernel's figure is 58.4 %%), %.1f %% "
		"off the statistics updates\n", less(replay_without(replay, 0)->pair_ns, after->pair_ns),
		less(replay_without(replay, 0)->updates, after->updates));
	fprintf(out, "  before to after: charge + uncharge %.1f -> %.1f ns (%.1f %%), event %.1f -> %.1f ns (%.1f %%), "
		"everything a request %.0f -> %.0f ns (%.1f %%)\n", before->pair_ns, after->pair_ns,
		less(before->pair_ns, after->pair_ns), before->event_ns, after->event_ns,
		less(before->event_ns, after->event_ns), before->request_ns, after->request_ns,
		less(before->request_ns, after->request_ns));
}

void report_replay(FILE *out, struct replay *replay)
{
	const struct trace_header *h = &replay->file->header;

	fprintf(out, "\nReplay, %s backend: %.0f requests of %u threads, %.2f pairs of charge and uncharge each; "
		"%u memcgs at depth %u, batch %u\n", replay->backend, (double)h->requests, h->threads, replay->pairs,
		h->memcgs, replay->depth, replay->opt->batch);
	fprintf(out, "  medians of %u rounds (the middle half is %.1f %% wide); the loop's own %.2f ns a record are taken "
		"off\n", replay->opt->rounds, replay->spread, replay->loop_ns);
	fprintf(out, "  %-20s %10s %8s %8s %9s %8s %8s %9s %10s %8s\n", "", "charge +", "charge", "uncharge", "updates/",
		"update", "event", "calls/", "all,", "stock");
	fprintf(out, "  %-20s %10s %8s %8s %9s %8s %8s %9s %10s %8s\n", "changes on", "uncharge", "singly", "singly",
		"request", "ns", "ns", "request", "ns/request", "hits %");
	for (unsigned int i = 0; i < REPLAY_CONFIGS; i++)
		config_row(out, &replay->configs[i]);
	report_measures(out, replay);
}
