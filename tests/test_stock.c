/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves one owner's stock: what hits, misses, is trimmed or goes past the slots, to the
 * page and to the count, at every limit of batch, marks and statistic.
 */
#include "util.h"

#define ITEM 2

static struct box *box_with(uint32_t batch, uint32_t high, uint32_t low)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.stock_batch = batch;
	attr.stock_high = high;
	attr.stock_low = low;
	attr.stat_items = 3;
	attr.stock_item = ITEM;
	return box_open(attr);
}

/* Ends a group that has `live` pages charged. */
static void drop(struct pcbatch_group *g, int64_t live)
{
	assert_live(g, live);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_current(g), live);
	assert_int_equal(pcbatch_group_uncharge_direct(g, (uint64_t)live), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
}

static int64_t statistic(struct box *box, const struct pcbatch_group *g)
{
	assert_int_equal(pcbatch_stats_flush(&box->dom, NULL), 0);
	assert_int_equal(pcbatch_group_stat_read_signed(g, 0), 0);
	assert_int_equal(pcbatch_group_stat_read_signed(g, 1), 0);
	return pcbatch_group_stat_read_signed(g, ITEM);
}

static void assert_info(struct box *box, uint64_t hits, uint64_t misses, uint64_t direct, uint64_t trims)
{
	struct pcbatch_stock_info info = info_of(box);

	assert_int_equal(info.hits, hits);
	assert_int_equal(info.misses, misses);
	assert_int_equal(info.direct, direct);
	assert_int_equal(info.trims, trims);
}

/* rule 2: the slot is kept, with its reference, when its counts reach zero. rule 18: both directions go through it. */
static void rule_02_and_18_life_of_a_slot(void **state)
{
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 1), 0); /* a miss buys a batch */
	assert_int_equal(pcbatch_group_current(g), 64);
	assert_int_equal(cached_of(g).pages, 63);
	assert_info(box, 0, 1, 0, 0);
	assert_int_equal(pcbatch_group_charge(g, 63), 0);
	assert_int_equal(pcbatch_group_current(g), 64);
	assert_int_equal(cached_of(g).pages, 0);
	assert_int_equal(cached_of(g).slots, 1);
	assert_live(g, 64);
	assert_info(box, 1, 1, 0, 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0); /* another batch into the same slot */
	assert_int_equal(pcbatch_group_current(g), 128);
	assert_int_equal(cached_of(g).slots, 1);
	assert_info(box, 1, 2, 0, 0);
	assert_int_equal(pcbatch_group_uncharge(g, 64), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(pcbatch_group_current(g), 128);
	assert_int_equal(cached_of(g).pages, 128); /* at the high mark */
	assert_live(g, 0);
	assert_info(box, 3, 2, 0, 0);
	assert_int_equal(pcbatch_group_charge(g, 128), 0); /* larger than a batch, and there */
	assert_info(box, 4, 2, 0, 0);
	assert_live(g, 128);
	drop(g, 128);
	box_close(box);
}

static void rule_17_hit_rate_of_a_warm_pair(void **state)
{
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_int_equal(pcbatch_group_charge(g, 1), 0);
		assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	}
	assert_info(box, PCBATCH_COUNT_HITS ? 1999 : info_of(box).hits, 1, 0, 0);
	assert_int_equal(info_of(box).evictions, 0);
	drop(g, 0);
	box_close(box);
}

static void rule_10_requests_around_the_batch(void **state)
{
	static const uint32_t batches[] = { 1, 2, 63, 64, 65, 256, 4096 };
	size_t i;
	int64_t step;

	(void)state;
	for (i = 0; i < COUNT_OF(batches); i++)
		for (step = -1; step <= 1; step++) {
			const int64_t batch = batches[i], pages = batch + step;
			struct box *box = box_with(batches[i], 0, 0);
			struct pcbatch_group *g = group_new(box, NULL);

			if (pages > 0) {
				assert_int_equal(pcbatch_group_charge(g, (uint64_t)pages), 0);
				assert_int_equal(pcbatch_group_current(g), step < 0 ? batch : pages);
				assert_int_equal(cached_of(g).pages, step < 0 ? 1 : 0);
				assert_info(box, 0, step <= 0, step > 0, 0);
				assert_int_equal(pcbatch_group_drain(g), 0);
				assert_int_equal(pcbatch_group_current(g), pages);
				/* Up to the batch it is cached, beyond it no new slot takes it. */
				assert_int_equal(pcbatch_group_uncharge(g, (uint64_t)pages), 0);
				assert_int_equal(cached_of(g).pages, step <= 0 ? pages : 0);
				assert_int_equal(pcbatch_group_current(g), step <= 0 ? pages : 0);
				assert_info(box, 0, step <= 0, step > 0 ? 2 : 0, 0);
			}
			drop(g, 0);
			box_close(box);
		}
}

/* rule 5: the largest batch and mark, filled to the brim and over. */
static void rule_05_largest_slot(void **state)
{
	struct box *box = box_with(4096, 16383, 5000);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_direct(g, 40000), 0);
	assert_int_equal(cached_of(g).slots, 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4095), 0);
	assert_int_equal(cached_of(g).pages, 16383);
	assert_int_equal(pcbatch_group_current(g), 40000);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(cached_of(g).pages, 5000);
	assert_int_equal(pcbatch_group_current(g), 40000 - (16383 + 4096 - 5000));
	assert_int_equal(info_of(box).trims, 1);
	assert_live(g, 40000 - 16383 - 4096);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4096), 0);
	assert_int_equal(pcbatch_group_charge(g, 13192), 0);
	assert_int_equal(cached_of(g).pages, 0);
	drop(g, 40000 - 16383 - 4096 + 5000);
	box_close(box);
}

static void larger_than_a_slot_goes_direct(void **state)
{
	static const uint64_t sizes[] = { 129, 16383, 16384, 32768, 65536, UINT64_C(1) << 32, (uint64_t)PCBATCH_PAGES_MAX - 64 };
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	size_t i;

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	for (i = 0; i < COUNT_OF(sizes); i++) {
		assert_int_equal(pcbatch_group_charge_stat(g, sizes[i], 1), 0);
		assert_live(g, 1 + (int64_t)sizes[i]);
		assert_int_equal(cached_of(g).pages, 63);
		assert_int_equal(pcbatch_group_uncharge_stat(g, sizes[i], 2), 0);
		assert_live(g, 1);
		assert_info(box, 0, 1, 2 * (i + 1), 0);
		assert_int_equal(statistic(box, g) + cached_of(g).stat, -(int64_t)(i + 1));
	}
	drop(g, 1);
	box_close(box);
}

/* Above high the slot keeps low and stays: an owner at the mark goes to the page counter once in high - low. */
static void watermark_trims_to_low_and_keeps_the_slot(void **state)
{
	static const uint32_t lows[] = { 1, 10, 50, 100 };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(lows); i++) {
		struct box *box = box_with(50, 100, lows[i]);
		struct pcbatch_group *g = group_new(box, NULL);
		uint32_t n;

		assert_int_equal(pcbatch_group_charge_direct(g, 1000), 0);
		for (n = 1; n <= 100; n++) {
			assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
			assert_int_equal(pcbatch_group_current(g), 1000);
		}
		assert_info(box, 99, 0, 0, 0);
		assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
		assert_int_equal(cached_of(g).pages, lows[i]);
		assert_int_equal(cached_of(g).slots, 1);
		assert_int_equal(pcbatch_group_current(g), 899 + lows[i]);
		assert_info(box, 99, 0, 0, 1);
		assert_live(g, 899);
		drop(g, 899);
		box_close(box);
	}
}

/* Both signs, at batch - 1 (stays), batch (all of it goes), batch + 1 at once. */
static void rule_07_and_10_statistic_moves_on_at_the_batch(void **state)
{
	static const uint32_t batches[] = { 2, 63, 64, 65, 256, 4096 };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(batches); i++) {
		const int64_t batch = batches[i];
		struct box *box = box_with(batches[i], 0, 0);
		struct pcbatch_group *g = group_new(box, NULL);

		assert_int_equal(pcbatch_group_charge_direct(g, 10), 0);
		assert_int_equal(pcbatch_group_charge_stat(g, 1, batch - 1), 0);
		assert_int_equal(cached_of(g).stat, batch - 1);
		assert_int_equal(statistic(box, g), 0);
		assert_int_equal(pcbatch_group_charge_stat(g, 1, 1), 0);
		assert_int_equal(cached_of(g).stat, 0);
		assert_int_equal(statistic(box, g), batch);
		assert_int_equal(pcbatch_group_uncharge_stat(g, 1, batch - 1), 0);
		assert_int_equal(cached_of(g).stat, 1 - batch);
		assert_int_equal(statistic(box, g), batch);
		assert_int_equal(pcbatch_group_uncharge_stat(g, 1, 1), 0);
		assert_int_equal(cached_of(g).stat, 0);
		assert_int_equal(statistic(box, g), 0);
		assert_int_equal(pcbatch_group_charge_stat(g, 1, batch + 1), 0);
		assert_int_equal(cached_of(g).stat, 0);
		assert_int_equal(statistic(box, g), batch + 1);
		assert_int_equal(pcbatch_group_uncharge_stat(g, 1, batch + 1), 0);
		assert_int_equal(statistic(box, g), 0);
		/* A charge may lower the statistic and an uncharge raise it; without pages as well. */
		assert_int_equal(pcbatch_group_charge_stat(g, 1, -batch), 0);
		assert_int_equal(statistic(box, g), -batch);
		assert_int_equal(pcbatch_group_uncharge_stat(g, 1, -batch), 0);
		assert_int_equal(statistic(box, g), 0);
		assert_int_equal(pcbatch_group_charge_stat(g, 0, 3 * batch), 0);
		assert_int_equal(pcbatch_group_uncharge_stat(g, 0, 2 * batch), 0);
		assert_int_equal(statistic(box, g) + cached_of(g).stat, batch);
		drop(g, 10);
		box_close(box);
	}
}

static void rule_09_64_bit_statistics(void **state)
{
	static const int64_t stats[] = { INT64_MIN, INT64_MIN + 1, -(INT64_C(1) << 32), INT32_MIN, -16384, 16383, 16384,
					 32768, 65536, UINT32_MAX, INT64_MAX };
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	size_t i;

	(void)state;
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 5), 0);
	for (i = 0; i < COUNT_OF(stats); i++) {
		assert_int_equal(pcbatch_group_charge_stat(g, 1, stats[i]), 0);
		assert_int_equal((int64_t)((uint64_t)statistic(box, g) + (uint64_t)cached_of(g).stat),
				 (int64_t)(5 + (uint64_t)stats[i]));
		assert_int_equal(pcbatch_group_uncharge_stat(g, 1, stats[i]), 0);
		assert_int_equal(statistic(box, g) + cached_of(g).stat, 5);
		assert_live(g, 1);
	}
	drop(g, 1);
	box_close(box);
}

static void batch_changes_at_run_time(void **state)
{
	static const uint32_t bad[][3] = { { 0, 0, 0 },     { 4097, 0, 0 },      { 64, 63, 10 }, { 64, 16384, 10 },
					   { 64, 100, 101 }, { UINT32_MAX, 0, 0 }, { 1u << 31, 0, 0 }, { 0, 10, 5 } };
	struct box *box = box_with(64, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	size_t i;

	(void)state;
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 40), 0);
	for (i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(pcbatch_stock_set_batch(&box->dom, bad[i][0], bad[i][1], bad[i][2]), -EINVAL);
	assert_int_equal(cached_of(g).pages, 63);
	assert_int_equal(pcbatch_stock_set_batch(&box->dom, 16, 0, 7), 0);
	assert_int_equal(cached_of(g).slots, 0);
	assert_int_equal(pcbatch_group_current(g), 1);
	assert_int_equal(statistic(box, g), 40);
	/* Batch 16 both for pages and the statistic, marks 32 and 16. */
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 15), 0);
	assert_int_equal(pcbatch_group_current(g), 17);
	assert_int_equal(cached_of(g).stat, 15);
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 1), 0);
	assert_int_equal(cached_of(g).stat, 0);
	assert_int_equal(pcbatch_group_charge_direct(g, 100), 0);
	for (i = 14; i < 32; i++)
		assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(cached_of(g).pages, 32);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(cached_of(g).pages, 16);
	/* A low mark of zero empties the slot and keeps it. */
	assert_int_equal(pcbatch_stock_set_batch(&box->dom, 4, 4, 0), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 4), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(cached_of(g).pages, 0);
	assert_int_equal(cached_of(g).slots, 1);
	drop(g, 103 - 19 - 5);
	box_close(box);
}

static void info_needs_somewhere_to_go(void **state)
{
	struct box *box = box_with(64, 0, 0);

	(void)state;
	assert_int_equal(pcbatch_stock_info_read(&box->dom, NULL), -EINVAL);
	assert_int_equal(info_of(box).hits, 0);
	assert_int_equal(info_of(box).aborts, 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_02_and_18_life_of_a_slot),
		cmocka_unit_test(rule_17_hit_rate_of_a_warm_pair),
		cmocka_unit_test(rule_10_requests_around_the_batch),
		cmocka_unit_test(rule_05_largest_slot),
		cmocka_unit_test(larger_than_a_slot_goes_direct),
		cmocka_unit_test(watermark_trims_to_low_and_keeps_the_slot),
		cmocka_unit_test(rule_07_and_10_statistic_moves_on_at_the_batch),
		cmocka_unit_test(rule_09_64_bit_statistics),
		cmocka_unit_test(batch_changes_at_run_time),
		cmocka_unit_test(info_needs_somewhere_to_go),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
