/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net.h"
#include "phase.h"

#define WARMUP_NS 20000000u
#define CLOSE_NS 10000000000u /* a last reply that takes longer counts as a lost connection */

/* ---- what a run needs -------------------------------------------------------------------------- */

static int check_descriptors(const struct options *opt)
{
	uint64_t other = 3u * opt->threads + (opt->memcgs > opt->threads ? opt->memcgs : opt->threads) + 32;
	uint64_t need = 2u * (uint64_t)opt->flows + other;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;
		if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
			return 0;
	}
	fprintf(stderr, "memcg-socket: --flows %u needs %" PRIu64 " descriptors, the hard limit (ulimit -Hn) is %" PRIu64
		": must be 1 to %" PRIu64 "\n", opt->flows, need, (uint64_t)limit.rlim_max,
		limit.rlim_max > other ? ((uint64_t)limit.rlim_max - other) / 2 : 0);
	return 1;
}

/* pages that the connections of one memcg hold whatever happens, and one message */
static int64_t least_pages(const struct options *opt, int64_t flows)
{
	uint32_t chunk = opt->message < SKB_DATA_MAX ? opt->message : SKB_DATA_MAX;

	return flows * (pages_ceil(chunk) + pages_ceil(opt->reserve)) + pages_ceil(flows * SOCK_OBJECT_BYTES) +
	       2 * pages_ceil(skb_truesize(chunk)) + 1;
}

static int check_max(const char *name, int64_t max, int64_t least, const struct options *opt)
{
	if (max >= least)
		return 0;
	fprintf(stderr, "memcg-socket: --%s: must be %" PRId64 " bytes or more with %u flows, messages of %u bytes and a "
		"reserve of %" PRId64 "\n", name, least * PAGE_BYTES, opt->flows, opt->message, opt->reserve);
	return 2;
}

int phase_check_limits(const struct options *opt)
{
	unsigned int listeners = opt->memcgs > opt->threads ? opt->memcgs : opt->threads;
	int64_t share = (listeners + opt->memcgs - 1) / opt->memcgs;
	int64_t flows = share * ((opt->flows + listeners - 1) / listeners); /* of the memcg that gets most */

	int status = check_max("max", opt->max, least_pages(opt, flows), opt);

	if (!status)
		status = check_max("root-max", opt->root_max, least_pages(opt, opt->flows), opt);
	return status ? status : check_descriptors(opt);
}

int phase_init(struct phase *phase, const char *name, unsigned int changes, unsigned int slices)
{
	*phase = (struct phase){ .name = name, .changes = changes };
	acct_init(&phase->acct);
	phase->rates = calloc(slices, sizeof(double));
	phase->cpus = calloc(slices, sizeof(double));
	return phase->rates && phase->cpus ? 0 : -1;
}

void phase_free(struct phase *phase)
{
	free(phase->rates);
	free(phase->cpus);
	free(phase->files);
}

/* ---- one slice --------------------------------------------------------------------------------- */

static int run_start(struct run *run)
{
	const struct options *opt = run->opt;
	struct memcg_tree_attr attr = {
		.depth = opt->depth, .memcgs = opt->memcgs, .batch = opt->batch, .max = opt->max, .high = opt->high,
		.root_max = opt->root_max, .changes = run->changes,
	};
	int ret = memcg_tree_create(&attr, &run->tree);

	if (ret)
		return ret;
	ret = proto_init(&run->prot, run->tree, opt->tcp_mem, run->changes);
	if (ret) {
		memcg_tree_destroy(run->tree);
		run->tree = NULL;
		return ret;
	}
	proto_set_reclaim_threshold(&run->prot, opt->reclaim_threshold);
	ret = server_start(run);
	return ret ? ret : client_start(run);
}

static uint64_t process_cpu_ns(void)
{
	return now_ns_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t requests_now(const struct run *run)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < run->opt->threads; i++)
		sum += READ_ONCE(run->clients[i].requests);
	return sum;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void show_files(struct phase *phase, struct run *run)
{
	size_t size;
	FILE *out;

	free(phase->files);
	phase->files = NULL;
	if (run->changes & CHANGE_OFF)
		return;
	out = open_memstream(&phase->files, &size);
	if (!out)
		return;
	for (unsigned int i = 0; i < (run->opt->verbose ? run->tree->nr_nodes : 1); i++)
		memcg_show_files(out, &run->tree->nodes[i], run->opt->verbose);
	memcg_show_tree(out, run->tree, run->opt->verbose ? UINT32_MAX : 16);
	fclose(out);
}

static void run_measure(struct phase *phase, struct run *run, double seconds)
{
	uint64_t cpu, requests, begin, end, half = (uint64_t)(seconds * 0.5e9);

	sleep_until(now_ns() + WARMUP_NS);
	WRITE_ONCE(run->measuring, 1);
	cpu = process_cpu_ns();
	requests = requests_now(run);
	begin = now_ns();
	sleep_until(begin + half);
	if (run->opt->reclaim_threshold_later)
		proto_set_reclaim_threshold(&run->prot, run->opt->reclaim_threshold_later);
	sleep_until(begin + 2 * half);
	end = now_ns();
	requests = requests_now(run) - requests;
	cpu = process_cpu_ns() - cpu;
	WRITE_ONCE(run->measuring, 0);

	phase->rates[phase->slices] = (double)requests * 1e9 / (double)(end - begin);
	phase->cpus[phase->slices] = ratio((double)cpu, (double)requests);
	phase->seconds += (double)(end - begin) / 1e9;
	phase->requests += requests;
	phase->cpu_ns += cpu;
	show_files(phase, run);
}

static void run_finish(struct run *run)
{
	run->deadline = now_ns() + CLOSE_NS;
	__atomic_store_n(&run->stop, 1, __ATOMIC_RELEASE);
	client_join(run);
	server_stop(run);
}

static void collect_stock(struct pcbatch_stock_info *to, struct pcbatch_domain *domain)
{
	struct pcbatch_stock_info info;

	if (pcbatch_stock_info_read(domain, &info) != 0)
		return;
	to->hits += info.hits;
	to->misses += info.misses;
	to->evictions += info.evictions;
	to->direct += info.direct;
	to->drains += info.drains;
	to->drained_pages += info.drained_pages;
	to->trims += info.trims;
	to->aborts += info.aborts;
}

static void collect_servers(struct phase *phase, struct run *run, struct acct *acct, uint64_t *events,
			    struct audit *audit)
{
	for (unsigned int i = 0; i < run->opt->threads; i++) {
		struct server *server = &run->servers[i];

		acct_merge(acct, &server->task.acct);
		if (!(run->changes & CHANGE_OFF))
			*events += server->task.interrupts + acct_calls(&server->task.acct, ACCT_EVENT);
		audit->connections += server->accepted;
		audit->wrong[AUDIT_CONNECTIONS] += server->failed;
		phase->served += server->served;
		phase->server_cpu_ns += server->cpu_ns;
		phase->throttles += server->throttles;
		phase->unreserved += server->unreserved;
	}
}

static void run_collect(struct phase *phase, struct run *run)
{
	struct audit audit = { 0 };
	uint64_t events = 0;
	struct acct acct;

	acct_init(&acct);
	collect_servers(phase, run, &acct, &events, &audit);
	for (unsigned int i = 0; i < run->opt->threads; i++) {
		hist_merge(&phase->latency, &run->clients[i].latency);
		audit.wrong[AUDIT_CONNECTIONS] += run->clients[i].lost;
	}
	phase->pressure_entered += run->prot.pressure_entered;
	phase->backend = pcbatch_backend_name(pcbatch_domain_backend(&run->tree->domain));
	acct_merge(&phase->acct, &acct);
	collect_stock(&phase->stock, &run->tree->domain);
	audit_tree(&audit, run->tree, &run->prot, &acct, events);
	audit_merge(&phase->audit, &audit);
}

/* ---- recording --------------------------------------------------------------------------------- */

static int recording_build(const struct run *run, struct trace_file *file)
{
	struct trace_header *h = &file->header;
	uint64_t at = 0;

	trace_header_init(h);
	h->threads = run->opt->threads;
	h->sockets = run->next_sock;
	h->memcgs = run->opt->memcgs;
	h->depth = run->opt->depth;
	h->batch = run->opt->batch;
	h->message = run->opt->message;
	h->pinned = run->opt->pin;
	for (unsigned int i = 0; i < h->threads; i++) {
		h->records += run->traces[i].used;
		h->requests += run->servers[i].served;
		if (run->traces[i].failed)
			return -1;
	}
	file->records = malloc((h->records ? h->records : 1) * sizeof(struct trace_record));
	for (unsigned int i = 0; file->records && i < h->threads; at += run->traces[i++].used)
		if (run->traces[i].used)
			memcpy(&file->records[at], run->traces[i].records,
			       run->traces[i].used * sizeof(struct trace_record));
	return file->records ? trace_check("recording", file) : -1;
}

int phase_slice(struct phase *phase, const struct options *opt, double seconds, struct trace_file *recording)
{
	struct run run = { .opt = opt, .changes = phase->changes };
	int ret = 0;

	if (recording) {
		run.traces = calloc(opt->threads, sizeof(*run.traces));
		ret = run.traces ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = run_start(&run);
	if (!ret)
		run_measure(phase, &run, seconds);
	run_finish(&run);
	if (ret)
		fprintf(stderr, "memcg-socket: cannot start: %s\n", strerror(-ret));
	else if (recording && recording_build(&run, recording) != 0) {
		fprintf(stderr, "memcg-socket: the stream could not be recorded\n");
		ret = -1;
	}
	if (!ret) {
		run_collect(phase, &run);
		phase->slices++;
	}
	for (unsigned int i = 0; run.traces && i < opt->threads; i++)
		free(run.traces[i].records);
	free(run.traces);
	free(run.servers);
	free(run.clients);
	return ret ? -1 : 0;
}
