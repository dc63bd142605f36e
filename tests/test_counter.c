/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the batched counter: sum is exact; read is off by less than the batch a CPU; 64
 * bits end to end; limited adds are all or nothing in both directions.
 */
#include "util.h"

static const uint32_t batches[] = { 1, 2, 3, 4, 63, 64, 65, 100, 128, 1024, 4096, 1u << 30 };

static struct box *box_with(uint32_t batch)
{
	struct pcbatch_domain_attr attr;

	assert_int_equal(pcbatch_domain_attr_init(&attr), 0);
	attr.counter_batch = batch;
	return box_open(attr);
}

/* What counter.h says a CPU may owe after a look at it: the batch less its step. */
static int64_t room_of(int64_t batch)
{
	int64_t step = 1;

	while (step * 2 <= batch / 2)
		step *= 2;
	return batch - step;
}

/* rule 10: next to the batch, both signs, by one add; rule 8: magnitudes of negative deltas. */
static void rule_08_and_10_boundaries_of_one_add(void **state)
{
	struct pcbatch_counter c;
	size_t i, j, sign;

	(void)state;
	for (i = 0; i < COUNT_OF(batches); i++) {
		const int64_t batch = batches[i], room = room_of(batch);
		const int64_t deltas[] = { 1, room - 1, room, room + 1, batch - 1, batch, batch + 1, 2 * batch, 10 * batch + 7 };
		struct box *box = box_with(batches[i]);

		for (j = 0; j < COUNT_OF(deltas); j++)
			for (sign = 0; sign < 2; sign++) {
				int64_t delta = sign == 0 ? deltas[j] : -deltas[j];

				if (deltas[j] < 0)
					continue;
				assert_int_equal(pcbatch_counter_init(&c, &box->dom, 1000), 0);
				pcbatch_counter_add(&c, delta);
				assert_int_equal(pcbatch_counter_sum(&c), 1000 + delta);
				assert_int_equal(pcbatch_counter_read(&c), 1000 + (deltas[j] <= room ? 0 : delta));
				assert_int_equal(pcbatch_counter_destroy(&c), 0);
			}
		box_close(box);
	}
}

/* Contract 2 on one CPU, for every length of run: |sum - read| < batch, and folds no oftener than need be. */
static void read_is_off_by_less_than_the_batch(void **state)
{
	uint64_t seed = 88172645463325252u;
	struct pcbatch_counter c;
	size_t i, step;

	(void)state;
	for (i = 0; i < COUNT_OF(batches); i++)
		for (step = 0; step < 4; step++) {
			const int64_t batch = batches[i], steps[] = { 1, -1, 3, 0 };
			struct box *box = box_with(batches[i]);
			int64_t truth = 0, read = 0, folds = 0, n;

			assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
			for (n = 0; n < 20000; n++) {
				int64_t delta = steps[step];

				if (delta == 0)
					delta = (int64_t)(next_random(&seed) % (uint64_t)(4 * batch)) - 2 * batch;
				truth += delta;
				pcbatch_counter_add(&c, delta);
				folds += pcbatch_counter_read(&c) != read;
				read = pcbatch_counter_read(&c);
				if (read - truth >= batch || truth - read >= batch || pcbatch_counter_sum(&c) != truth)
					fail_msg("batch %d: read %lld of %lld", (int)batch, (long long)read, (long long)truth);
			}
			/* By ones, a fold takes more than the room and at most the batch. */
			if (step < 2)
				assert_in_range((uint64_t)folds, (uint64_t)(20000 / batch),
						(uint64_t)(20000 / (room_of(batch) + 1)));
			assert_int_equal(pcbatch_counter_destroy(&c), 0);
			box_close(box);
		}
}

static void batch_of_the_call(void **state)
{
	struct box *box = box_with(1u << 20);
	struct pcbatch_counter c;
	int64_t i;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, 0), -EINVAL);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, -1), -EINVAL);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, INT64_MIN), -EINVAL);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, (int64_t)PCBATCH_COUNTER_BATCH_MAX + 1), -EINVAL);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, INT64_MAX), -EINVAL);
	assert_int_equal(pcbatch_counter_sum(&c), 0);
	assert_int_equal(pcbatch_counter_add_batch(&c, 5, PCBATCH_COUNTER_BATCH_MAX), 0);
	assert_int_equal(pcbatch_counter_read(&c), 0);
	assert_int_equal(pcbatch_counter_add_batch(&c, 1, 1), 0);
	assert_int_equal(pcbatch_counter_read(&c), 6);
	/* Each batch bounds what its own adds leave behind. */
	for (i = 1; i <= 1000; i++) {
		assert_int_equal(pcbatch_counter_add_batch(&c, -1, 64), 0);
		assert_int_equal(pcbatch_counter_sum(&c), 6 - i);
		assert_in_range(pcbatch_counter_read(&c) - (6 - i), 0, 63);
	}
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/* rule 9: 64-bit deltas end to end; wraps are those of two's complement, without undefined behaviour. */
static void rule_09_64_bit_deltas(void **state)
{
	static const int64_t deltas[] = { INT64_MIN, INT64_MIN + 1, -(INT64_C(1) << 32), INT32_MIN, INT32_MAX,
					  INT64_C(1) << 31, UINT32_MAX, (INT64_C(1) << 32) + 1, INT64_MAX - 1, INT64_MAX };
	struct pcbatch_counter c;
	struct box *box;
	size_t i, j;

	(void)state;
	for (j = 0; j < COUNT_OF(batches); j++) {
		box = box_with(batches[j]);
		for (i = 0; i < COUNT_OF(deltas); i++) {
			assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
			pcbatch_counter_add(&c, deltas[i]);
			assert_int_equal(pcbatch_counter_sum(&c), deltas[i]);
			/* Also by a constant, for which the hit path looks at half a word. */
			pcbatch_counter_add(&c, 1);
			pcbatch_counter_add(&c, -1);
			assert_int_equal(pcbatch_counter_sum(&c), deltas[i]);
			pcbatch_counter_sub(&c, deltas[i]);
			assert_int_equal(pcbatch_counter_sum(&c), 0);
			pcbatch_counter_sub(&c, deltas[i]);
			pcbatch_counter_flush(&c);
			assert_int_equal(pcbatch_counter_read(&c), (int64_t)(0 - (uint64_t)deltas[i]));
			assert_int_equal(pcbatch_counter_destroy(&c), 0);
		}
		box_close(box);
	}
	box = box_with(64);
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, INT64_MAX), 0);
	assert_int_equal(pcbatch_counter_sum(&c), INT64_MAX);
	assert_int_equal(pcbatch_counter_read(&c), INT64_MAX);
	pcbatch_counter_add(&c, 1);
	assert_int_equal(pcbatch_counter_sum(&c), INT64_MIN);
	pcbatch_counter_add(&c, INT64_MIN);
	assert_int_equal(pcbatch_counter_sum(&c), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/* Only bits above half a word change: the half that the hit path looks at for small constants is not enough. */
static void constant_deltas_of_more_than_half_a_word(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
#define ADD_CONSTANT(n)                                                                                     \
	do {                                                                                                \
		pcbatch_counter_add(&c, n);                                                                 \
		assert_in_range(pcbatch_counter_read(&c) - pcbatch_counter_sum(&c) + 63, 0, 126);           \
	} while (0)
	ADD_CONSTANT(INT64_C(1) << 32);
	ADD_CONSTANT(-(INT64_C(1) << 33));
	ADD_CONSTANT(INT64_C(3) << 40);
	ADD_CONSTANT(INT64_C(1) << 31);
	ADD_CONSTANT(INT64_MIN);
#undef ADD_CONSTANT
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/* A total that steps over each power of two, by constants: none of the looks may be missed. */
static void constant_deltas_cross_every_power_of_two(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;
	int shift, i;

	(void)state;
	for (shift = 6; shift < 63; shift++) {
		int64_t truth = (INT64_C(1) << shift) - 100;

		assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
		pcbatch_counter_add(&c, truth);
		for (i = 0; i < 400; i++) {
			pcbatch_counter_add(&c, i < 200 ? 1 : -1);
			truth += i < 200 ? 1 : -1;
			assert_int_equal(pcbatch_counter_sum(&c), truth);
			assert_in_range(pcbatch_counter_read(&c) - truth + 63, 0, 126);
		}
		pcbatch_counter_add(&c, INT32_MAX - 1);
		pcbatch_counter_add(&c, INT32_MIN + 1);
		assert_in_range(pcbatch_counter_read(&c) - (truth - 1) + 63, 0, 126);
		assert_int_equal(pcbatch_counter_destroy(&c), 0);
	}
	box_close(box);
}

static void clamped_views(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, -3), 0);
	assert_int_equal(pcbatch_counter_read(&c), -3);
	assert_int_equal(pcbatch_counter_read_positive(&c), 0);
	assert_int_equal(pcbatch_counter_sum_positive(&c), 0);
	pcbatch_counter_add(&c, 5);
	assert_int_equal(pcbatch_counter_sum_positive(&c), 2);
	assert_int_equal(pcbatch_counter_read_positive(&c), 0);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_read_positive(&c), 2);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

static void set_makes_the_sum_what_is_given(void **state)
{
	static const int64_t values[] = { 0, 1, -1, 12345, INT64_MIN, INT64_MAX, 7 };
	struct box *box = box_with(64);
	struct pcbatch_counter c;
	size_t i;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	for (i = 0; i < COUNT_OF(values); i++) {
		pcbatch_counter_add(&c, 20);
		pcbatch_counter_set(&c, values[i]);
		assert_int_equal(pcbatch_counter_sum(&c), values[i]);
		pcbatch_counter_flush(&c);
		assert_int_equal(pcbatch_counter_read(&c), values[i]);
	}
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/*
 * An add with a batch far above the domain's leaves read off by more than the
 * domain's bound, which shows whether compare read or summed.
 */
static void compare_sums_only_when_it_must(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;
	int64_t bound;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	bound = pcbatch_counter_error_bound(&c);
	assert_int_equal(bound, 64 * (int64_t)pcbatch_domain_cpus(&box->dom));
	assert_int_equal(pcbatch_counter_compare(&c, 0), 0);
	assert_int_equal(pcbatch_counter_compare(&c, 1), -1);
	assert_int_equal(pcbatch_counter_compare(&c, -1), 1);
	assert_int_equal(pcbatch_counter_compare(&c, INT64_MAX), -1);
	assert_int_equal(pcbatch_counter_compare(&c, INT64_MIN), 1);
	pcbatch_counter_add(&c, 20);
	assert_int_equal(pcbatch_counter_read(&c), 0);
	assert_int_equal(pcbatch_counter_compare(&c, 19), 1);
	assert_int_equal(pcbatch_counter_compare(&c, 20), 0);
	assert_int_equal(pcbatch_counter_compare(&c, 21), -1);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_add_batch(&c, 100000, 1 << 20), 0);
	assert_int_equal(pcbatch_counter_read(&c), 20);
	assert_int_equal(pcbatch_counter_compare(&c, 20 + bound), -1);
	assert_int_equal(pcbatch_counter_compare(&c, 20 + bound - 1), 1);
	pcbatch_counter_set(&c, INT64_MIN);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_compare(&c, INT64_MAX), -1);
	assert_int_equal(pcbatch_counter_compare(&c, INT64_MIN), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

static void limited_add_is_all_or_nothing_both_ways(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	pcbatch_counter_add(&c, 10);
	assert_true(pcbatch_counter_limited_add(&c, 30, 19));
	assert_false(pcbatch_counter_limited_add(&c, 30, 2));
	assert_int_equal(pcbatch_counter_sum(&c), 29);
	assert_true(pcbatch_counter_limited_add(&c, 30, 1));
	assert_false(pcbatch_counter_limited_add(&c, 30, 1));
	assert_true(pcbatch_counter_limited_add(&c, -1000, 0));
	assert_int_equal(pcbatch_counter_sum(&c), 30);
	assert_false(pcbatch_counter_limited_add(&c, -5, -36));
	assert_int_equal(pcbatch_counter_sum(&c), 30);
	assert_true(pcbatch_counter_limited_add(&c, -5, -35));
	assert_int_equal(pcbatch_counter_sum(&c), -5);
	assert_false(pcbatch_counter_limited_add(&c, -5, -1));
	/* A negative amount is not held back by a limit below, nor a positive one by a limit above. */
	assert_true(pcbatch_counter_limited_add(&c, INT64_MIN, -100));
	assert_true(pcbatch_counter_limited_add(&c, INT64_MAX, 200));
	assert_false(pcbatch_counter_limited_add(&c, INT64_MAX, INT64_MIN));
	assert_int_equal(pcbatch_counter_sum(&c), 95);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_read(&c), 95);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/* A value that wrapped is on the wrong side of where it was, whatever the limit. */
static void limited_add_does_not_wrap(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter c;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, INT64_MAX - 5), 0);
	assert_false(pcbatch_counter_limited_add(&c, INT64_MAX, 6));
	assert_true(pcbatch_counter_limited_add(&c, INT64_MAX, 5));
	pcbatch_counter_set(&c, INT64_MIN + 5);
	assert_false(pcbatch_counter_limited_add(&c, INT64_MIN, -6));
	assert_true(pcbatch_counter_limited_add(&c, INT64_MIN, -5));
	assert_int_equal(pcbatch_counter_sum(&c), INT64_MIN);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

static struct pcbatch_counter victim;


static void add_five(void *arg)
{
	pcbatch_counter_add((struct pcbatch_counter *)arg, 5);
}

/* rule 14: all slots are summed; another CPU's debt is in sum, not in read, until a flush from here. */
static void rule_14_sum_and_flush_cover_other_cpus(void **state)
{
	struct box *box = box_with(64);
	int64_t value = 0;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 0), 0);
	pcbatch_counter_add(&victim, 2);
	errand(box, add_five, &victim);
	assert_int_equal(pcbatch_counter_sum(&victim), 7);
	assert_int_equal(pcbatch_counter_sum_fenced(&victim, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(pcbatch_counter_read(&victim), 0);
	pcbatch_counter_flush(&victim);
	assert_int_equal(pcbatch_counter_read(&victim), 7);
	assert_int_equal(pcbatch_counter_sum_fenced(&victim, NULL), -EINVAL);
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	box_close(box);
}

/* rule 4: memory that is used again holds nothing of its last user, on any CPU. */
static void rule_04_reused_counter_is_zero(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_counter other;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 5), 0);
	pcbatch_counter_add(&victim, 40);
	pcbatch_counter_add(&victim, 3);
	errand(box, add_five, &victim);
	other = victim;
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	assert_int_equal(pcbatch_counter_init(&victim, &box->dom, 0), 0);
	assert_memory_equal(&victim, &other, sizeof(other));
	assert_int_equal(pcbatch_counter_sum(&victim), 0);
	assert_int_equal(pcbatch_counter_read(&victim), 0);
	pcbatch_counter_flush(&victim);
	assert_int_equal(pcbatch_counter_read(&victim), 0);
	assert_int_equal(pcbatch_counter_destroy(&victim), 0);
	box_close(box);
}

static void reused_cells_are_zero_on_every_line(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_counter c, other;
	struct box *box;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 3;
	attr.current_cpu = box_cpu;
	box = box_open(attr);
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	for (box->cpu = 0; box->cpu < 3; box->cpu++)
		pcbatch_counter_add(&c, 5);
	assert_int_equal(pcbatch_counter_sum(&c), 15);
	assert_int_equal(pcbatch_counter_read(&c), 0);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_read(&c), 15);
	/* Two in a row, so that the first of the free ones links on to the other. */
	assert_int_equal(pcbatch_counter_init(&other, &box->dom, 7), 0);
	assert_int_equal(pcbatch_counter_destroy(&other), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_sum(&c), 0);
	assert_int_equal(pcbatch_counter_read(&c), 0);
	pcbatch_counter_flush(&c);
	assert_int_equal(pcbatch_counter_read(&c), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

static void misuse_is_refused(void **state)
{
	struct box *box = box_with(64);
	struct pcbatch_domain unused;
	struct pcbatch_counter c;

	(void)state;
	memset(&unused, 0, sizeof(unused));
	memset(&c, 0, sizeof(c));
	assert_int_equal(pcbatch_counter_init(NULL, &box->dom, 0), -EINVAL);
	assert_int_equal(pcbatch_counter_init(&c, NULL, 0), -EINVAL);
	assert_int_equal(pcbatch_counter_init(&c, &unused, 0), -EINVAL);
	assert_int_equal(pcbatch_counter_destroy(NULL), -EINVAL);
	assert_int_equal(pcbatch_counter_destroy(&c), -EINVAL);
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), -EINVAL);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_08_and_10_boundaries_of_one_add),
		cmocka_unit_test(read_is_off_by_less_than_the_batch),
		cmocka_unit_test(batch_of_the_call),
		cmocka_unit_test(rule_09_64_bit_deltas),
		cmocka_unit_test(constant_deltas_cross_every_power_of_two),
		cmocka_unit_test(constant_deltas_of_more_than_half_a_word),
		cmocka_unit_test(clamped_views),
		cmocka_unit_test(set_makes_the_sum_what_is_given),
		cmocka_unit_test(compare_sums_only_when_it_must),
		cmocka_unit_test(limited_add_is_all_or_nothing_both_ways),
		cmocka_unit_test(limited_add_does_not_wrap),
		cmocka_unit_test(rule_14_sum_and_flush_cover_other_cpus),
		cmocka_unit_test(rule_04_reused_counter_is_zero),
		cmocka_unit_test(reused_cells_are_zero_on_every_line),
		cmocka_unit_test(misuse_is_refused),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
