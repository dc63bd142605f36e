/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* backend: none */
/*
 * Proves the one door to atomics (atomic.h): each operation does what it says at the
 * limits of its type, by variables and by constants (which some assemblers' immediates
 * can't hold), and so do the public calls that store what they are given.
 */
#include "util.h"

static uint64_t word;

#define EACH(X)                                                                                                   \
	X(0) X(1) X(UINT64_C(0x7fffffff)) X(UINT64_C(0x80000000)) X(UINT64_C(0xffffffff)) X(UINT64_C(0x100000000)) \
		X(UINT64_C(0x7fffffffffffffff)) X(UINT64_C(0x8000000000000000)) X(UINT64_MAX)

#define STORES(v)                                                     \
	pcbatch_priv_store(&word, v);                                 \
	assert_int_equal(pcbatch_priv_load(&word), v);                \
	pcbatch_priv_store(&word, 5);                                 \
	pcbatch_priv_store_release(&word, v);                         \
	assert_int_equal(pcbatch_priv_load_acquire(&word), v);        \
	assert_int_equal(pcbatch_priv_exchange(&word, 5), v);         \
	assert_int_equal(pcbatch_priv_exchange(&word, v), 5);         \
	assert_int_equal(pcbatch_priv_fetch_add(&word, v), v);        \
	assert_int_equal(word, v + v);                                \
	assert_int_equal(pcbatch_priv_add_return(&word, UINT64_C(0) - (v)), v); \
	assert_false(pcbatch_priv_cas(&word, v + 1, 5));              \
	assert_int_equal(word, v);                                    \
	assert_true(pcbatch_priv_cas(&word, v, 5));                   \
	assert_true(pcbatch_priv_cas(&word, 5, v));                   \
	assert_int_equal(word, v);

static void constants_of_every_size(void **state)
{
	(void)state;
	EACH(STORES)
}

static void variables_of_every_size(void **state)
{
#define VALUE(v) v,
	static const uint64_t values[] = { EACH(VALUE) };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(values); i++) {
		volatile uint64_t opaque = values[i];
		uint64_t v = opaque;

		STORES(v)
	}
}

static void pointers(void **state)
{
	void *p = &word, *q = &p;

	(void)state;
	assert_ptr_equal(pcbatch_priv_load_ptr(&p), &word);
	pcbatch_priv_store_ptr(&p, q);
	assert_ptr_equal(p, q);
	assert_false(pcbatch_priv_cas_ptr(&p, &word, NULL));
	assert_true(pcbatch_priv_cas_ptr(&p, q, NULL));
	assert_null(pcbatch_priv_exchange_ptr(&p, &word));
	assert_ptr_equal(pcbatch_priv_exchange_ptr(&p, NULL), &word);
}

static void raise_is_signed_and_only_up(void **state)
{
	static const int64_t values[] = { INT64_MIN, -1, 0, 1, INT64_MAX };
	size_t i, j;

	(void)state;
	for (i = 0; i < COUNT_OF(values); i++)
		for (j = 0; j < COUNT_OF(values); j++) {
			word = (uint64_t)values[i];
			pcbatch_priv_raise(&word, values[j]);
			assert_int_equal(word, values[i > j ? i : j]);
		}
}

/* A limit of 2^31 pages (8 TiB), 3e9 of anything: constants in a caller's source. */
static void public_calls_take_constants_of_every_size(void **state)
{
	struct pcbatch_domain_attr attr;
	struct pcbatch_page_counter pages;
	struct pcbatch_counter counter;
	struct pcbatch_group *g;
	struct box *box;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	box = box_open(attr);
	g = group_new(box, NULL);
	assert_int_equal(pcbatch_page_counter_init(&pages, NULL), 0);
	assert_int_equal(pcbatch_page_counter_set_high(&pages, INT64_C(0x80000000)), 0);
	assert_int_equal(pcbatch_page_counter_high(&pages), INT64_C(0x80000000));
	assert_int_equal(pcbatch_page_counter_set_max(&pages, INT64_C(0x80000001)), 0);
	assert_int_equal(pcbatch_page_counter_max(&pages), INT64_C(0x80000001));
	assert_int_equal(pcbatch_group_set_low(g, INT64_C(3000000000)), 0);
	assert_int_equal(pcbatch_group_low(g), INT64_C(3000000000));
	assert_int_equal(pcbatch_group_set_high(g, INT64_C(0xffffffff)), 0);
	assert_int_equal(pcbatch_group_high(g), INT64_C(0xffffffff));
	assert_int_equal(pcbatch_group_set_max(g, INT64_C(3000000000)), 0);
	assert_int_equal(pcbatch_group_max(g), INT64_C(3000000000));
	assert_int_equal(pcbatch_counter_init(&counter, &box->dom, INT64_C(3000000000)), 0);
	assert_int_equal(pcbatch_counter_sum(&counter), INT64_C(3000000000));
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, UINT64_C(4000000000)), 0);
	assert_int_equal(pcbatch_stats_flush_periodic(&box->dom, UINT64_C(5999999999)), -EAGAIN);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_counter_destroy(&counter), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_of_every_size),
		cmocka_unit_test(variables_of_every_size),
		cmocka_unit_test(pointers),
		cmocka_unit_test(raise_is_signed_and_only_up),
		cmocka_unit_test(public_calls_take_constants_of_every_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
