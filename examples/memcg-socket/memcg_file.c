/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface files of cgroup v2, in the formats that its readers parse. */
#include <inttypes.h>

#include "memcg.h"

static void show_limit(FILE *out, int64_t pages)
{
	if (pages >= PCBATCH_PAGES_MAX)
		fprintf(out, "max\n");
	else
		fprintf(out, "%" PRId64 "\n", pages * PAGE_BYTES);
}

void memcg_show_current(FILE *out, struct memcg *memcg)
{
	fprintf(out, "%" PRId64 "\n", pcbatch_group_current(memcg->group) * PAGE_BYTES);
}

void memcg_show_peak(FILE *out, struct memcg *memcg)
{
	fprintf(out, "%" PRId64 "\n", pcbatch_group_peak(memcg->group) * PAGE_BYTES);
}

void memcg_show_max(FILE *out, struct memcg *memcg)
{
	show_limit(out, pcbatch_group_max(memcg->group));
}

void memcg_show_high(FILE *out, struct memcg *memcg)
{
	show_limit(out, pcbatch_group_high(memcg->group));
}

/* readers never see a negative value: a decrease may be flushed before the increase it belongs to */
static int64_t clamped(int64_t value)
{
	return value < 0 ? 0 : value;
}

void memcg_show_stat(FILE *out, struct memcg *memcg)
{
	int64_t anon = clamped(memcg_stat_read(memcg, MEMCG_ANON)) * PAGE_BYTES;
	int64_t slab = clamped(memcg_stat_read(memcg, MEMCG_SLAB)) * SOCK_OBJECT_BYTES;
	int64_t sock = clamped(memcg_stat_read(memcg, MEMCG_SOCK)) * PAGE_BYTES;

	fprintf(out, "anon %" PRId64 "\nfile 0\nkernel %" PRId64 "\nsock %" PRId64 "\nslab_reclaimable 0\n"
		"slab_unreclaimable %" PRId64 "\nslab %" PRId64 "\n", anon, slab, sock, slab, slab);
	fprintf(out, "sock_rx %" PRId64 "\nsock_tx %" PRId64 "\ntick %" PRId64 "\n",
		memcg_event_read(memcg, MEMCG_SOCK_RX), memcg_event_read(memcg, MEMCG_SOCK_TX),
		memcg_event_read(memcg, MEMCG_TICK));
}

void memcg_show_events(FILE *out, struct memcg *memcg)
{
	fprintf(out, "low %" PRIu64 "\nhigh %" PRIu64 "\nmax %" PRIu64 "\noom 0\noom_kill 0\noom_group_kill 0\n"
		"sock_throttled %" PRIu64 "\n",
		pcbatch_group_event(memcg->group, PCBATCH_EVENT_LOW),
		pcbatch_group_event(memcg->group, PCBATCH_EVENT_HIGH),
		pcbatch_group_event(memcg->group, PCBATCH_EVENT_MAX), memcg_throttled_read(memcg));
}

void memcg_show_events_local(FILE *out, struct memcg *memcg)
{
	fprintf(out, "low %" PRIu64 "\nhigh %" PRIu64 "\nmax %" PRIu64 "\noom 0\noom_kill 0\noom_group_kill 0\n"
		"sock_throttled %" PRIu64 "\n",
		pcbatch_group_event_local(memcg->group, PCBATCH_EVENT_LOW),
		pcbatch_group_event_local(memcg->group, PCBATCH_EVENT_HIGH),
		pcbatch_group_event_local(memcg->group, PCBATCH_EVENT_MAX), READ_ONCE(memcg->totals->sock_throttled));
}

void memcg_show_files(FILE *out, struct memcg *memcg, bool all)
{
	static const struct {
		const char *name;
		void (*show)(FILE *out, struct memcg *memcg);
		bool always;
	} files[] = {
		{ "memory.current", memcg_show_current, false },
		{ "memory.peak", memcg_show_peak, false },
		{ "memory.high", memcg_show_high, false },
		{ "memory.max", memcg_show_max, false },
		{ "memory.stat", memcg_show_stat, true },
		{ "memory.events", memcg_show_events, true },
		{ "memory.events.local", memcg_show_events_local, false },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!all && !files[i].always)
			continue;
		fprintf(out, "==> %s/%s <==\n", memcg->path, files[i].name);
		files[i].show(out, memcg);
	}
}

void memcg_show_tree(FILE *out, struct memcg_tree *tree, unsigned int lines)
{
	fprintf(out, "%-28s %12s %12s %10s %10s %10s %8s %8s %10s\n", "memcg", "current", "peak", "sock", "anon", "slab",
		"ev.high", "ev.max", "throttled");
	for (unsigned int i = 0; i < tree->nr_nodes && i < lines; i++) {
		struct memcg *memcg = &tree->nodes[i];

		fprintf(out, "%-28s %12" PRId64 " %12" PRId64 " %10" PRId64 " %10" PRId64 " %10" PRId64 " %8" PRIu64
			" %8" PRIu64 " %10" PRIu64 "\n", memcg->path, pcbatch_group_current(memcg->group) * PAGE_BYTES,
			pcbatch_group_peak(memcg->group) * PAGE_BYTES,
			clamped(memcg_stat_read(memcg, MEMCG_SOCK)) * PAGE_BYTES,
			clamped(memcg_stat_read(memcg, MEMCG_ANON)) * PAGE_BYTES,
			clamped(memcg_stat_read(memcg, MEMCG_SLAB)) * SOCK_OBJECT_BYTES,
			pcbatch_group_event(memcg->group, PCBATCH_EVENT_HIGH),
			pcbatch_group_event(memcg->group, PCBATCH_EVENT_MAX), memcg_throttled_read(memcg));
	}
	if (lines < tree->nr_nodes)
		fprintf(out, "and %u more\n", tree->nr_nodes - lines);
}
