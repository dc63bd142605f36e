/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares all that can be read of the domain with the model of world.h. */
#include "world.h"

/* What slots hold of a group's pages, bytes and statistic. */
struct held {
	uint64_t pages, bytes;
	int64_t stat;
};

static struct held held_by(const struct fuzz_world *w, int i)
{
	uint32_t c, id = w->group[i].g->owner.id;
	struct held h = { 0, 0, 0 };
	int k;

	for (c = 0; c < w->dom.lines; c++) {
		const struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(&w->dom, c);
		int slots = 0;

		FUZZ_EQUAL(stock->page.gate, 0);
		for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
			if (pcbatch_slot_owner(stock->page.slot[k]) == id) {
				h.pages += pcbatch_slot_pages(stock->page.slot[k]);
				h.stat += pcbatch_slot_stat(stock->page.slot[k]);
				slots++;
			}
			if (pcbatch_slot_owner(stock->obj.slot[k]) == id)
				h.bytes += pcbatch_slot_obj_bytes(stock->obj.slot[k]);
		}
		FUZZ_TRUE(slots <= 1, slots, c);
	}
	return h;
}

/* usage is live charges and what slots hold, to the byte; and within the bound that is published. */
static void audit_usage(const struct fuzz_world *w, int root, bool drained)
{
	const struct pcbatch_group *g = w->group[root].g;
	uint64_t bytes = 0, usage = (uint64_t)pcbatch_group_current(g), live = fuzz_live(w, root);
	int i;

	for (i = 0; i < FUZZ_GROUPS; i++) {
		struct held h;

		if (w->group[i].g == NULL || !fuzz_below(w, i, root))
			continue;
		h = held_by(w, i);
		FUZZ_TRUE(!drained || (h.pages == 0 && h.bytes == 0 && h.stat == 0), h.pages, h.bytes);
		bytes += (w->group[i].pages + h.pages) * 4096 + w->group[i].bytes + h.bytes + w->group[i].g->owner.remainder;
	}
	FUZZ_EQUAL(usage * 4096, bytes);
	FUZZ_TRUE(usage >= live && usage - live <= (uint64_t)pcbatch_group_error_bound(g), usage, live);
	FUZZ_EQUAL(pcbatch_group_underflow(g), 0);
	FUZZ_TRUE((uint64_t)pcbatch_group_peak(g) >= w->group[root].peak_min, pcbatch_group_peak(g), w->group[root].peak_min);
	FUZZ_TRUE(w->group[root].forced || (uint64_t)pcbatch_group_peak(g) <= w->group[root].max, pcbatch_group_peak(g),
		  w->group[root].max);
}

static void audit_statistics(struct fuzz_world *w, int root)
{
	int64_t sum[FUZZ_ITEMS] = { 0 };
	int i, k;

	for (i = 0; i < FUZZ_GROUPS; i++) {
		if (w->group[i].g == NULL || !fuzz_below(w, i, root))
			continue;
		for (k = 0; k < FUZZ_ITEMS; k++)
			sum[k] += w->group[i].stat[k] + w->gone[i][k];
		sum[FUZZ_ITEM] -= held_by(w, i).stat;
	}
	for (k = 0; k < FUZZ_ITEMS; k++)
		FUZZ_EQUAL(pcbatch_group_stat_read_signed(w->group[root].g, (uint32_t)k), sum[k]);
}

static void audit_counters(const struct fuzz_world *w)
{
	int i;

	for (i = 0; i < FUZZ_COUNTERS; i++) {
		int64_t bound = pcbatch_counter_error_bound(&w->counter[i]);
		int64_t off = (int64_t)((uint64_t)pcbatch_counter_read(&w->counter[i]) - w->value[i]);

		FUZZ_EQUAL(pcbatch_counter_sum(&w->counter[i]), w->value[i]);
		FUZZ_TRUE(off < bound && off > -bound, off, bound);
	}
}

void fuzz_audit(struct fuzz_world *w, bool drained)
{
	int i;

	FUZZ_EQUAL(pcbatch_stats_flush(&w->dom, NULL), 0);
	for (i = 0; i < FUZZ_GROUPS; i++)
		if (w->group[i].g != NULL) {
			audit_usage(w, i, drained);
			audit_statistics(w, i);
		}
	audit_counters(w);
}
