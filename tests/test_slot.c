/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* backend: none */
/*
 * Proves that the one-word arithmetic of a slot (slot.h) is that of plain integers:
 * the hit test says yes if and only if the slow step would pass nothing on, the two
 * then make the same word, and nothing leaks between the fields at any limit.
 */
#include "util.h"

static const uint32_t batches[] = { 1, 2, 3, 63, 64, 65, 100, 255, 256, 257, 4095, 4096 };
static const uint32_t owners[] = { 1, 2, 7, 0x7fffffff, 0x80000000u, UINT32_MAX };

/* One (slot, request): the guard-bit test against integers, and against the slow step. */
static void try_both(uint32_t owner, uint32_t id, int64_t pages, int64_t stat, int64_t dp, int64_t ds, uint32_t batch,
		     uint32_t high)
{
	uint64_t word = pcbatch_slot_pack(owner, (uint32_t)pages, (int32_t)stat);
	uint64_t take = pcbatch_slot_delta(-dp, ds), put = pcbatch_slot_delta(dp, -ds);
	bool takes = owner == id && pages >= dp && stat + ds < batch;
	bool puts = owner == id && pages + dp <= high && stat - ds > -(int64_t)batch;
	struct pcbatch_slot_step step = { 0, 0, 0 };

	if (pcbatch_slot_fits(word, take, pcbatch_slot_check_consume(id, batch)) != takes)
		fail_msg("consume %d/%d of %d/%d, batch %u", (int)dp, (int)ds, (int)pages, (int)stat, batch);
	if (pcbatch_slot_fits(word, put, pcbatch_slot_check_refill(id, batch, high)) != puts)
		fail_msg("refill %d/%d to %d/%d, batch %u high %u", (int)dp, (int)ds, (int)pages, (int)stat, batch, high);
	if (owner != id)
		return;
	if (pcbatch_slot_consume(word, (uint64_t)dp, ds, batch, &step) != (pages >= dp))
		fail_msg("slow consume %d of %d", (int)dp, (int)pages);
	if (pages >= dp && (takes != (step.stat == 0) || step.pages != 0 || (takes && step.word != word + take)))
		fail_msg("slow consume %d/%d of %d/%d differs", (int)dp, (int)ds, (int)pages, (int)stat);
	pcbatch_slot_refill(word, (uint64_t)dp, -ds, batch, high, high / 2, &step);
	if (puts != (step.stat == 0 && step.pages == 0) || (puts && step.word != word + put))
		fail_msg("slow refill %d/%d to %d/%d differs", (int)dp, (int)ds, (int)pages, (int)stat);
}

/* Steps next to everything that is a limit for some field. */
static size_t steps_near(uint32_t batch, uint32_t high, int64_t *steps)
{
	const int64_t wanted[] = { 0, 1, 2, batch - 1, batch, batch + 1, 2 * (int64_t)batch - 1, 2 * (int64_t)batch - 2,
				   high - 1, high, high + 1, PCBATCH_SLOT_STEP_MAX - 1, PCBATCH_SLOT_STEP_MAX };
	size_t i, n = 0;

	for (i = 0; i < COUNT_OF(wanted); i++)
		if (wanted[i] >= 0 && wanted[i] <= (int64_t)PCBATCH_SLOT_STEP_MAX)
			steps[n++] = wanted[i];
	return n;
}

static void fields_keep_every_value(void **state)
{
	uint32_t pages, i;
	int32_t stat;

	(void)state;
	for (i = 0; i < COUNT_OF(owners); i++)
		for (pages = 0; pages <= 0x7fff; pages++) {
			for (stat = -0x4000; stat <= 0x3fff; stat += pages % 0x1000 == 0 ? 1 : 0x1fff) {
				uint64_t word = pcbatch_slot_pack(owners[i], pages, stat);

				if (pcbatch_slot_owner(word) != owners[i] || pcbatch_slot_pages(word) != pages ||
				    pcbatch_slot_stat(word) != stat || (word & UINT64_C(0x80008000)) != 0)
					fail_msg("owner %u pages %u stat %d", owners[i], pages, stat);
			}
		}
}

/* Small batches: every slot, every request up to twice what fits, by every owner near the right one. */
static void hit_test_is_exact_exhaustively(void **state)
{
	const uint32_t near[] = { 5, 4, 6, 0, 5u ^ 0x80000000u, 0x10005, UINT32_MAX };
	uint32_t batch, high, i;
	int64_t pages, stat, dp, ds;

	(void)state;
	for (batch = 1; batch <= 4; batch++)
		for (high = batch; high <= 2 * batch + 1; high++)
			for (i = 0; i < COUNT_OF(near); i++)
				for (pages = 0; pages <= high; pages++)
					for (stat = 1 - (int64_t)batch; stat < batch; stat++)
						for (dp = 0; dp <= 2 * (int64_t)high + 2; dp++)
							for (ds = 0; ds <= 2 * (int64_t)batch + 2; ds++)
								try_both(near[i], 5, pages, stat, dp, ds, batch, high);
}

/* Every number of pages, requests next to each limit. */
static void rule_05_and_10_pages_at_every_limit(void **state)
{
	int64_t steps[16], pages, stat;
	size_t b, h, i, j, n;

	(void)state;
	PCBATCH_STATIC_ASSERT(PCBATCH_STOCK_HIGH_MAX + PCBATCH_SLOT_STEP_MAX <= 0x7fff, "a refill fits the field before its test");
	PCBATCH_STATIC_ASSERT(PCBATCH_STOCK_BATCH_MAX - 1 + PCBATCH_SLOT_STEP_MAX + PCBATCH_SLOT_STAT_ZERO <= 0xffff,
			      "so does a statistic, with its guard");
	for (b = 0; b < COUNT_OF(batches); b++) {
		const uint32_t highs[] = { batches[b], 2 * batches[b], PCBATCH_STOCK_HIGH_MAX };

		for (h = 0; h < COUNT_OF(highs); h++) {
			n = steps_near(batches[b], highs[h], steps);
			for (pages = 0; pages <= highs[h]; pages++)
				for (stat = -1; stat <= 1; stat++)
					for (i = 0; i < n; i++)
						for (j = 0; j < 3; j++)
							try_both(9, 9, pages, stat * (int64_t)(batches[b] - 1), steps[i],
								 steps[j * (n - 1) / 2], batches[b], highs[h]);
		}
	}
}

/* Every statistic, both signs, requests next to each limit. */
static void rule_07_and_10_statistic_at_every_limit(void **state)
{
	int64_t steps[16], stat;
	size_t b, i, j, o, n;

	(void)state;
	for (b = 0; b < COUNT_OF(batches); b++) {
		const uint32_t batch = batches[b], high = 2 * batch;
		const int64_t held[] = { 0, 1, high - 1, high };

		n = steps_near(batch, high, steps);
		for (stat = 1 - (int64_t)batch; stat < batch; stat++)
			for (i = 0; i < COUNT_OF(held); i++)
				for (j = 0; j < n * n; j++)
					try_both(3, 3, held[i], stat, steps[j / n], steps[j % n], batch, high);
		/* Another owner never fits, whatever carries and borrows do. */
		for (o = 0; o < COUNT_OF(owners); o++)
			for (j = 0; j < n * n; j++) {
				try_both(owners[o], owners[o] - 1, high, batch - 1, steps[j / n], steps[j % n], batch, high);
				try_both(owners[o], owners[o] + 1, 0, 1 - (int64_t)batch, steps[j / n], steps[j % n], batch, high);
			}
	}
}

/* rule 6: what leaves a slot is counted wide, then the rest is stored. rule 4: a new slot holds what was put, no more. */
static void rule_04_and_06_nothing_is_lost_whatever_the_size(void **state)
{
	const uint64_t amounts[] = { 0, 1, 64, 65, 127, 128, 129, 65535, 65536, 65537, UINT32_MAX, UINT64_C(1) << 32,
				     (UINT64_C(1) << 32) + 5, (uint64_t)PCBATCH_PAGES_MAX };
	struct pcbatch_slot_step step;
	uint32_t have;
	size_t i;

	(void)state;
	for (have = 0; have <= 128; have++)
		for (i = 0; i < COUNT_OF(amounts); i++) {
			uint64_t word = pcbatch_slot_pack(77, have, -3), sum = have + amounts[i];

			pcbatch_slot_refill(word, amounts[i], 0, 64, 128, 64, &step);
			assert_int_equal(step.pages, sum > 128 ? sum - 64 : 0);
			assert_int_equal(pcbatch_slot_pages(step.word), sum > 128 ? 64 : sum);
			assert_int_equal(pcbatch_slot_owner(step.word), 77);
			assert_int_equal(pcbatch_slot_stat(step.word), -3);
			assert_int_equal(step.stat, 0);
			assert_int_equal(pcbatch_slot_consume(word, amounts[i], 0, 64, &step), have >= amounts[i]);
		}
	pcbatch_slot_refill(pcbatch_slot_pack(8, 0, 0), 5, 0, 64, 128, 64, &step);
	assert_int_equal(step.word, pcbatch_slot_pack(8, 5, 0));
}

static void watermark_keeps_low_and_the_slot(void **state)
{
	struct pcbatch_slot_step step;

	(void)state;
	pcbatch_slot_refill(pcbatch_slot_pack(8, 128, 2), 1, 0, 64, 128, 40, &step);
	assert_int_equal(step.word, pcbatch_slot_pack(8, 40, 2));
	assert_int_equal(step.pages, 89);
	pcbatch_slot_refill(pcbatch_slot_pack(8, 127, 2), 1, 0, 64, 128, 40, &step);
	assert_int_equal(step.word, pcbatch_slot_pack(8, 128, 2));
	assert_int_equal(step.pages, 0);
	pcbatch_slot_refill(pcbatch_slot_pack(8, 1, 0), 1, 0, 1, 1, 0, &step);
	assert_int_equal(step.word, pcbatch_slot_pack(8, 0, 0));
	assert_int_equal(step.pages, 2);
}

/* rule 8: signed and wide all the way; rule 9: 64-bit statistics pass through whole. */
static void rule_08_and_09_statistic_magnitudes(void **state)
{
	const int64_t values[] = { INT64_MIN, INT64_MIN + 1, INT32_MIN, -65536, -65, -64, -63, -1, 0,
				   1, 63, 64, 65, 65536, INT32_MAX, UINT32_MAX, INT64_MAX - 1, INT64_MAX };
	struct pcbatch_slot_step step;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(values); i++) {
		bool stays = values[i] > -64 && values[i] < 64;

		assert_true(pcbatch_slot_consume(pcbatch_slot_pack(4, 9, 0), 2, values[i], 64, &step));
		assert_int_equal(pcbatch_slot_stat(step.word), stays ? values[i] : 0);
		assert_int_equal(step.stat, stays ? 0 : values[i]);
		assert_int_equal(pcbatch_slot_pages(step.word), 7);
		pcbatch_slot_refill(pcbatch_slot_pack(4, 9, 0), 2, values[i], 64, 128, 64, &step);
		assert_int_equal(pcbatch_slot_stat(step.word), stays ? values[i] : 0);
		assert_int_equal(step.stat, stays ? 0 : values[i]);
		assert_int_equal(pcbatch_slot_pages(step.word), 11);
	}
	/* At the limits a sum wraps like the totals it goes to. */
	assert_true(pcbatch_slot_consume(pcbatch_slot_pack(4, 9, 63), 0, INT64_MAX, 64, &step));
	assert_int_equal(step.stat, INT64_MIN + 62);
	assert_true(pcbatch_slot_consume(pcbatch_slot_pack(4, 9, -63), 0, INT64_MIN, 64, &step));
	assert_int_equal(step.stat, INT64_MAX - 62);
}

static void try_bytes(uint32_t owner, uint32_t id, uint32_t have, uint32_t bytes, uint32_t high)
{
	uint64_t word = pcbatch_slot_obj_pack(owner, have);
	bool takes = owner == id && have >= bytes, puts = owner == id && (uint64_t)have + bytes <= high;

	if (pcbatch_slot_owner(word) != owner || pcbatch_slot_obj_bytes(word) != have)
		fail_msg("owner %u bytes %u", owner, have);
	if (pcbatch_slot_obj_fits(word, 0 - (uint64_t)bytes, pcbatch_slot_obj_check_consume(id)) != takes)
		fail_msg("consume %u bytes of %u", bytes, have);
	if (pcbatch_slot_obj_fits(word, bytes, pcbatch_slot_obj_check_refill(id, high)) != puts)
		fail_msg("refill %u bytes to %u, high %u", bytes, have, high);
	if (takes && word - bytes != pcbatch_slot_obj_pack(owner, have - bytes))
		fail_msg("consume %u bytes of %u spills", bytes, have);
	if (puts && word + bytes != pcbatch_slot_obj_pack(owner, have + bytes))
		fail_msg("refill %u bytes to %u spills", bytes, have);
}

static void byte_hit_test_is_exact(void **state)
{
	const uint32_t highs[] = { 512, 513, 4096, 65536, (1u << 29) - 1, 1u << 29 };
	const uint32_t near[] = { 0, 1, 2, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537,
				  (1u << 29) - 2, (1u << 29) - 1, 1u << 29 };
	uint32_t have, bytes;
	size_t h, i, j, o;

	(void)state;
	for (have = 0; have <= 512; have++)
		for (bytes = 0; bytes <= 1030; bytes++)
			try_bytes(6, 6, have, bytes, 512);
	for (h = 0; h < COUNT_OF(highs); h++)
		for (i = 0; i < COUNT_OF(near) && near[i] <= highs[h]; i++)
			for (j = 0; j < COUNT_OF(near); j++)
				for (o = 0; o < COUNT_OF(owners); o++) {
					try_bytes(owners[o], owners[o], near[i], near[j], highs[h]);
					try_bytes(owners[o], owners[o] - 1, near[i], near[j], highs[h]);
					try_bytes(owners[o], owners[o] + 1, near[i], near[j], highs[h]);
					try_bytes(0, owners[o], 0, near[j], highs[h]);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_keep_every_value),
		cmocka_unit_test(hit_test_is_exact_exhaustively),
		cmocka_unit_test(rule_05_and_10_pages_at_every_limit),
		cmocka_unit_test(rule_07_and_10_statistic_at_every_limit),
		cmocka_unit_test(rule_04_and_06_nothing_is_lost_whatever_the_size),
		cmocka_unit_test(watermark_keeps_low_and_the_slot),
		cmocka_unit_test(rule_08_and_09_statistic_magnitudes),
		cmocka_unit_test(byte_hit_test_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
