/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "report.h"

static const char *const kinds[ACCT_KINDS] = { "charge", "uncharge", "stat_update", "event", "skb", "nothing" };

/* file names only: everything else that is printed is ours */
static void json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void json_options(FILE *out, const struct options *opt)
{
	fprintf(out, "  \"options\": { \"flows\": %u, \"threads\": %u, \"message\": %u, \"seconds\": %g, \"pairs\": %u, "
		"\"depth\": %u, \"memcgs\": %u, \"batch\": %u, \"reclaim_threshold\": %" PRId64 ", \"reserve\": %" PRId64
		", \"seed\": %" PRIu64 ", \"pin\": %s", opt->flows, opt->threads, opt->message, opt->seconds, opt->pairs,
		opt->depth, opt->memcgs, opt->batch, opt->reclaim_threshold, opt->reserve, opt->seed,
		opt->pin ? "true" : "false");
	fprintf(out, ", \"max_pages\": %" PRId64 ", \"high_pages\": %" PRId64 ", \"replay\": ", opt->max, opt->high);
	json_string(out, opt->replay ? opt->replay : "");
	fprintf(out, " }");
}

static void json_audit(FILE *out, const struct audit *audit)
{
	fprintf(out, "{ \"passed\": %s, \"trees\": %u, \"pages\": %" PRIu64 ", \"events\": %" PRIu64
		", \"connections\": %" PRIu64 ", \"wrong\": [", audit_passed(audit) ? "true" : "false", audit->trees,
		audit->pages, audit->events, audit->connections);
	for (int i = 0; i < AUDIT_CHECKS; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", audit->wrong[i]);
	fprintf(out, "] }");
}

static void json_phase(FILE *out, const struct phase *phase)
{
	struct phase_costs costs;

	phase_costs(phase, &costs);
	fprintf(out, "    { \"name\": \"%s\", \"requests_per_second\": %.1f, \"slices\": [", phase->name, costs.rate);
	for (unsigned int i = 0; i < phase->slices; i++)
		fprintf(out, "%s%.1f", i ? ", " : "", phase->rates[i]);
	fprintf(out, "],\n      \"latency_us\": { \"mean\": %.2f, \"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f, "
		"\"max\": %.2f },\n      \"calls\": {", hist_mean(&phase->latency) / 1e3,
		(double)hist_quantile(&phase->latency, 0.5) / 1e3, (double)hist_quantile(&phase->latency, 0.9) / 1e3,
		(double)hist_quantile(&phase->latency, 0.99) / 1e3, (double)phase->latency.max / 1e3);
	for (int i = 0; i < ACCT_NOTHING; i++)
		fprintf(out, "%s \"%s\": { \"per_request\": %.4f, \"ns\": %.2f, \"samples\": %" PRIu64 " }", i ? "," : "",
			kinds[i], costs.calls[i], costs.ns[i], phase->acct.probe[i].samples);
	fprintf(out, " },\n      \"accounting_ns\": %.2f, \"cpu_ns\": %.1f, \"server_cpu_ns\": %.1f, "
		"\"accounting_share_percent\": %.3f, \"server_share_percent\": %.3f, \"stock_hit_percent\": %.3f,\n",
		costs.accounting_ns, costs.cpu_ns, costs.server_ns, costs.share, costs.server_share, costs.hit_rate);
	fprintf(out, "      \"throttled\": %" PRIu64 ", \"forced\": %" PRIu64 ", \"unreserved\": %" PRIu64
		", \"audit\": ", phase->throttles, phase->acct.forced, phase->unreserved);
	json_audit(out, &phase->audit);
	fprintf(out, " }");
}

static void json_pair(FILE *out, const char *what, const struct phase *a, const struct phase *b, struct interval d,
		      bool first)
{
	fprintf(out, "%s\n    { \"what\": \"%s\", \"base\": \"%s\", \"other\": \"%s\", \"n\": %u, \"percent\": %.3f, "
		"\"low\": %.3f, \"high\": %.3f }", first ? "" : ",", what, a->name, b->name, d.n, d.mean,
		d.mean - d.half, d.mean + d.half);
}

static void json_pairs(FILE *out, const struct phase *phases, unsigned int nr)
{
	bool first = true;

	fprintf(out, ",\n  \"pairs\": [");
	for (const struct phase *a = phases; a < phases + nr; a++) {
		for (const struct phase *b = a + 1; b < phases + nr; b++) {
			json_pair(out, "requests_per_second", a, b, interval_paired(a->rates, b->rates, a->slices), first);
			json_pair(out, "cpu_per_request", a, b, interval_paired(a->cpus, b->cpus, a->slices), false);
			first = false;
		}
	}
	fprintf(out, " ]");
}

static void json_replay(FILE *out, struct replay *replay)
{
	char name[32];

	fprintf(out, ",\n  \"replay\": { \"backend\": \"%s\", \"requests\": %" PRIu64 ", \"pairs_per_request\": %.4f, "
		"\"rounds\": %u, \"audit\": ", replay->backend, replay->file->header.requests, replay->pairs,
		replay->opt->rounds);
	json_audit(out, &replay->audit);
	fprintf(out, ",\n    \"configs\": [");
	for (unsigned int i = 0; i < REPLAY_CONFIGS; i++) {
		const struct replay_config *c = &replay->configs[i];
		const struct replay_result *r = &c->result;

		fprintf(out, "%s\n      { \"changes\": \"%s\", \"charge_uncharge_ns\": %.3f, \"charge_ns\": %.2f, "
			"\"uncharge_ns\": %.2f, \"updates_per_request\": %.4f, \"update_ns\": %.3f, \"event_ns\": %.3f, "
			"\"calls_per_request\": %.4f, \"request_ns\": %.2f, \"stock_hit_percent\": %.3f }", i ? "," : "",
			change_name(c->changes, name, sizeof(name)), r->pair_ns, r->charge_ns, r->uncharge_ns, r->updates,
			r->update_ns, r->event_ns, r->calls, r->request_ns, r->hit_rate);
	}
	fprintf(out, " ] }");
}

int json_write(const char *path, const struct options *opt, const struct phase *phases, unsigned int nr,
	       struct replay *replay)
{
	FILE *out = fopen(path, "w");

	if (!out) {
		fprintf(stderr, "memcg-socket: %s: %s\n", path, strerror(errno));
		return -1;
	}
	fprintf(out, "{\n  \"program\": \"memcg-socket\", \"version\": \"%d.%d.%d\",\n", PCBATCH_VERSION_MAJOR,
		PCBATCH_VERSION_MINOR, PCBATCH_VERSION_PATCH);
	json_options(out, opt);
	if (nr) {
		fprintf(out, ",\n  \"backend\": \"%s\",\n  \"phases\": [", phases[0].backend);
		for (unsigned int i = 0; i < nr; i++) {
			fprintf(out, "%s\n", i ? "," : "");
			json_phase(out, &phases[i]);
		}
		fprintf(out, " ]");
		json_pairs(out, phases, nr);
	}
	if (replay)
		json_replay(out, replay);
	fprintf(out, "\n}\n");
	if (fclose(out) == 0)
		return 0;
	fprintf(stderr, "memcg-socket: %s: %s\n", path, strerror(errno));
	return -1;
}
