/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "options.h"
#include "sock.h"

#define MESSAGE_MAX (1u << 20)

static const char usage_text[] =
	"Usage: memcg-socket [OPTION]...\n"
	"TCP echo over loopback in which every message is charged to a memory cgroup, the way\n"
	"the kernel charges its skb; measures the accounting before and after five changes.\n"
	"\n"
	"Load\n"
	"  --flows N              connections (64)\n"
	"  --threads N            threads on each side (2)\n"
	"  --message BYTES        size of a request and of its reply (64)\n"
	"  --seconds S            time for each of off, before and after (2.4)\n"
	"  --pairs N              interleaved slices that this time is cut into (15)\n"
	"  --seed N               start of the messages' contents (1)\n"
	"  --no-pin               threads may migrate; else thread n of each side stays on CPU n\n"
	"\n"
	"Memory cgroups and sockets; sizes in bytes, with K, M or G, limits may be \"max\"\n"
	"  --depth N              levels of the tree (3)\n"
	"  --memcgs N             memory cgroups at the lowest level (8)\n"
	"  --max SIZE             memory.max of each of these (max)\n"
	"  --high SIZE            memory.high of each of these (max)\n"
	"  --root-max SIZE        memory.max of the root (max)\n"
	"  --batch PAGES          charge batch (64)\n"
	"  --reclaim-threshold BYTES[,BYTES]\n"
	"                         what a socket may keep (65536); a second value is set half-way\n"
	"  --reserve BYTES        SO_RESERVE_MEM of every connection (0)\n"
	"  --tcp-mem LOW,PRESSURE,HIGH\n"
	"                         the protocol's three levels, in pages (from the size of memory)\n"
	"\n"
	"Changes: 000 statistic batched with the stock, 001 parents cached per CPU, 002 uncharge\n"
	"through the stock, 003 reclaim threshold, 004 event batch 256 and narrow blocking\n"
	"  --mode MODE            before, after, off (no accounting) or both (both, with off)\n"
	"  --change LIST          \"after\" is exactly these, such as 000,002\n"
	"  --overhead             off and after only, in at least 15 pairs\n"
	"\n"
	"Output\n"
	"  --record FILE          write the stream of charges and uncharges\n"
	"  --replay FILE          run such a stream at full speed instead of TCP\n"
	"  --rounds N             alternating rounds of a replay (9)\n"
	"  --json FILE            write all results\n"
	"  --verbose              the files of every memory cgroup\n"
	"  --help\n"
	"\n"
	"Exit status: 0, 1 when something failed or the audit found a difference, 2 for misuse.\n";

enum {
	OPT_FLOWS = 256, OPT_THREADS, OPT_MESSAGE, OPT_SECONDS, OPT_PAIRS, OPT_SEED, OPT_NO_PIN, OPT_DEPTH, OPT_MEMCGS,
	OPT_MAX, OPT_HIGH, OPT_ROOT_MAX, OPT_BATCH, OPT_THRESHOLD, OPT_RESERVE, OPT_TCP_MEM, OPT_MODE, OPT_CHANGE,
	OPT_OVERHEAD, OPT_RECORD, OPT_REPLAY, OPT_ROUNDS, OPT_JSON, OPT_VERBOSE, OPT_HELP
};

static const struct option long_options[] = {
	{ "flows", required_argument, NULL, OPT_FLOWS },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "message", required_argument, NULL, OPT_MESSAGE },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "pairs", required_argument, NULL, OPT_PAIRS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "no-pin", no_argument, NULL, OPT_NO_PIN },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "memcgs", required_argument, NULL, OPT_MEMCGS },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "high", required_argument, NULL, OPT_HIGH },
	{ "root-max", required_argument, NULL, OPT_ROOT_MAX },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "reclaim-threshold", required_argument, NULL, OPT_THRESHOLD },
	{ "reserve", required_argument, NULL, OPT_RESERVE },
	{ "tcp-mem", required_argument, NULL, OPT_TCP_MEM },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "change", required_argument, NULL, OPT_CHANGE },
	{ "overhead", no_argument, NULL, OPT_OVERHEAD },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool refuse(const char *name, const char *text, const char *allowed)
{
	fprintf(stderr, "memcg-socket: --%s %s: must be %s\n", name, text, allowed);
	return false;
}

/* a number with an optional suffix, from low to high; *end is where it stopped */
static bool number_at(const char *text, const char **end, bool suffix, int64_t *value)
{
	static const char units[] = "KMG";
	const char *unit;
	char *stop;

	errno = 0;
	*value = strtoll(text, &stop, 10);
	if (stop == text || errno)
		return false;
	unit = suffix && *stop ? strchr(units, *stop & ~0x20) : NULL;
	for (int i = unit ? (int)(unit - units) + 1 : 0; i > 0; i--)
		if (__builtin_mul_overflow(*value, 1024, value))
			return false;
	*end = stop + (unit != NULL);
	return true;
}

static bool parse_number(const char *name, const char *text, int64_t low, int64_t high, bool suffix, int64_t *value)
{
	char range[64];
	const char *end;

	if (number_at(text, &end, suffix, value) && !*end && *value >= low && *value <= high)
		return true;
	snprintf(range, sizeof(range), "%" PRId64 " to %" PRId64, low, high);
	return refuse(name, text, range);
}

static bool parse_unsigned(const char *name, const char *text, unsigned int low, unsigned int high, unsigned int *out)
{
	int64_t value;

	if (!parse_number(name, text, low, high, true, &value))
		return false;
	*out = (unsigned int)value;
	return true;
}

/* bytes, rounded down to pages as writing memory.max does */
static bool parse_limit(const char *name, const char *text, int64_t *pages)
{
	int64_t bytes;

	*pages = PCBATCH_PAGES_MAX;
	if (strcmp(text, "max") == 0)
		return true;
	if (!parse_number(name, text, 0, INT64_MAX / 2, true, &bytes))
		return false;
	*pages = bytes >> PAGE_SHIFT;
	return true;
}

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end != text && !*end && *seconds >= 0.05 && *seconds <= 86400.0)
		return true;
	return refuse("seconds", text, "0.05 to 86400");
}

static bool parse_threshold(const char *text, struct options *opt)
{
	int64_t *value[2] = { &opt->reclaim_threshold, &opt->reclaim_threshold_later };
	const char *at = text;
	struct proto prot;

	for (int i = 0; i < 2; i++) {
		/* asked of the socket layer: it is its sysctl */
		if (!number_at(at, &at, true, value[i]) || proto_set_reclaim_threshold(&prot, *value[i]) != 0)
			break;
		if (!*at)
			return true;
		if (*at++ != ',')
			break;
	}
	return refuse("reclaim-threshold", text, "4096 to 2097152 (EINVAL), one value or two");
}

static bool parse_tcp_mem(const char *text, int64_t mem[3])
{
	const char *at = text;

	for (int i = 0; i < 3; i++) {
		if (!number_at(at, &at, false, &mem[i]) || mem[i] < (i ? mem[i - 1] : 1) || mem[i] > INT32_MAX ||
		    *at != (i < 2 ? ',' : '\0'))
			return refuse("tcp-mem", text, "three rising numbers of pages, 1 to 2147483647");
		at++;
	}
	return true;
}

static bool parse_mode(const char *text, enum run_mode *mode)
{
	static const char *const names[] = { "both", "before", "after", "off" };

	for (int i = 0; i < 4; i++) {
		if (strcmp(text, names[i]) == 0) {
			*mode = (enum run_mode)i;
			return true;
		}
	}
	return refuse("mode", text, "both, before, after or off");
}

static bool parse_changes(const char *text, unsigned int *changes)
{
	const char *at = text;

	for (*changes = 0;; at += 4) {
		if (at[0] != '0' || at[1] != '0' || at[2] < '0' || at[2] >= '0' + CHANGE_NR || (at[3] && at[3] != ','))
			return refuse("change", text, "a list of 000 to 004, such as 000,003");
		*changes |= 1u << (at[2] - '0');
		if (!at[3])
			return true;
	}
}

static bool parse_load(int id, const char *arg, struct options *opt)
{
	int64_t value;

	switch (id) {
	case OPT_FLOWS:
		return parse_unsigned("flows", arg, 1, 1000000, &opt->flows);
	case OPT_THREADS:
		return parse_unsigned("threads", arg, 1, 256, &opt->threads);
	case OPT_MESSAGE:
		return parse_unsigned("message", arg, 1, MESSAGE_MAX, &opt->message);
	case OPT_SECONDS:
		return parse_seconds(arg, &opt->seconds);
	case OPT_PAIRS:
		return parse_unsigned("pairs", arg, 1, 1000, &opt->pairs);
	case OPT_ROUNDS:
		return parse_unsigned("rounds", arg, 1, 1000, &opt->rounds);
	case OPT_SEED:
		if (!parse_number("seed", arg, 0, INT64_MAX, false, &value))
			return false;
		opt->seed = (uint64_t)value;
		return true;
	default:
		return false;
	}
}

static bool parse_memory(int id, const char *arg, struct options *opt)
{
	switch (id) {
	case OPT_DEPTH:
		return parse_unsigned("depth", arg, 1, MEMCG_DEPTH_MAX, &opt->depth);
	case OPT_MEMCGS:
		return parse_unsigned("memcgs", arg, 1, MEMCGS_MAX, &opt->memcgs);
	case OPT_MAX:
		return parse_limit("max", arg, &opt->max);
	case OPT_HIGH:
		return parse_limit("high", arg, &opt->high);
	case OPT_ROOT_MAX:
		return parse_limit("root-max", arg, &opt->root_max);
	case OPT_BATCH:
		return parse_unsigned("batch", arg, 1, 4096, &opt->batch);
	case OPT_THRESHOLD:
		return parse_threshold(arg, opt);
	case OPT_RESERVE:
		return parse_number("reserve", arg, 0, SOCK_RESERVE_MAX, true, &opt->reserve);
	case OPT_TCP_MEM:
		return parse_tcp_mem(arg, opt->tcp_mem);
	case OPT_MODE:
		return parse_mode(arg, &opt->mode);
	case OPT_CHANGE:
		return parse_changes(arg, &opt->changes);
	default:
		return parse_load(id, arg, opt);
	}
}

static void defaults(struct options *opt)
{
	*opt = (struct options){
		.flows = 64, .threads = 2, .seconds = 2.4, .message = 64, .depth = 3, .memcgs = 8,
		.max = PCBATCH_PAGES_MAX, .high = PCBATCH_PAGES_MAX, .root_max = PCBATCH_PAGES_MAX, .batch = 64,
		.reclaim_threshold = RECLAIM_THRESHOLD_DEFAULT, .mode = MODE_BOTH, .changes = CHANGE_ALL,
		.pairs = 15, .rounds = 9, .seed = 1, .pin = true,
	};
	proto_default_mem(opt->tcp_mem);
}

static bool parse_flag(int id, struct options *opt)
{
	if (id == OPT_NO_PIN)
		opt->pin = false;
	else if (id == OPT_OVERHEAD)
		opt->overhead = true;
	else if (id == OPT_VERBOSE)
		opt->verbose = true;
	else
		return false;
	return true;
}

int options_parse(struct options *opt, int argc, char **argv)
{
	bool ok = true, mode_given = false, change_given = false;
	int id;

	defaults(opt);
	while (ok && (id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		mode_given |= id == OPT_MODE;
		change_given |= id == OPT_CHANGE;
		opt->depth_given |= id == OPT_DEPTH;
		if (id == OPT_HELP) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (id == OPT_JSON)
			opt->json = optarg;
		else if (id == OPT_RECORD)
			opt->record = optarg;
		else if (id == OPT_REPLAY)
			opt->replay = optarg;
		else if (!parse_flag(id, opt))
			ok = id != '?' && parse_memory(id, optarg, opt);
	}
	if (ok && optind < argc) {
		fprintf(stderr, "memcg-socket: unexpected argument %s\n", argv[optind]);
		ok = false;
	}
	if (ok && opt->record && (opt->replay || opt->mode == MODE_OFF)) {
		fprintf(stderr, "memcg-socket: --record needs a TCP run with accounting: neither --replay nor --mode off\n");
		ok = false;
	}
	if (!ok) {
		fprintf(stderr, "Try 'memcg-socket --help'.\n");
		return 2;
	}
	if (change_given && !mode_given)
		opt->mode = MODE_AFTER;
	if (opt->overhead && opt->pairs < 15)
		opt->pairs = 15;
	return -1;
}
