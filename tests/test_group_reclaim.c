/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the reclaim callback and the marks: who is asked, for how much, how often; what
 * each of it counts; and who is never asked.
 */
#include "util.h"

static struct box *box_default(void)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	return box_open(attr);
}

static void drop(struct pcbatch_group *g, uint64_t live)
{
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_current(g), live);
	assert_int_equal(pcbatch_group_uncharge_direct(g, live), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
}

/* Local events LOW, HIGH, MAX, FAIL, FORCED, in this order. */
static void assert_events(const struct pcbatch_group *g, uint64_t low, uint64_t high, uint64_t max, uint64_t fail,
			  uint64_t forced)
{
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_LOW), low);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_HIGH), high);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_MAX), max);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_FAIL), fail);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_FORCED), forced);
}

struct reclaimer {
	struct pcbatch_group *of, *limiting; /* whose pages it frees; whom it was last asked about */
	uint64_t frees, says, asked;
	uint32_t calls;
};

static uint64_t reclaim(struct pcbatch_group *limiting, uint64_t pages, void *ctx)
{
	struct reclaimer *r = (struct reclaimer *)ctx;

	r->calls++;
	r->limiting = limiting;
	r->asked = pages;
	if (r->frees != 0)
		assert_int_equal(pcbatch_group_uncharge_direct(r->of, r->frees), 0);
	return r->says;
}

static struct pcbatch_group *reclaiming(struct box *box, struct pcbatch_group *parent, int64_t max, uint32_t retries,
					struct reclaimer *r)
{
	struct pcbatch_group_attr attr;
	struct pcbatch_group *g;

	(void)pcbatch_group_attr_init(&attr);
	attr.max = max;
	attr.reclaim = reclaim;
	attr.reclaim_ctx = r;
	attr.reclaim_retries = retries;
	g = group_from(box, parent, &attr);
	memset(r, 0, sizeof(*r));
	r->of = g;
	return g;
}

static void reclaim_until_there_is_room(void **state)
{
	struct box *box = box_default();
	struct reclaimer r;
	struct pcbatch_group *g = reclaiming(box, NULL, 10, 0, &r);

	(void)state;
	assert_int_equal(pcbatch_group_charge_direct(g, 10), 0);
	r.frees = r.says = 3;
	assert_int_equal(pcbatch_group_charge_stat(g, 5, 7), 0); /* 10, 7, 4: then there is room */
	assert_int_equal(r.calls, 2);
	assert_int_equal(r.asked, 5);
	assert_ptr_equal(r.limiting, g);
	assert_int_equal(pcbatch_group_current(g), 9);
	assert_events(g, 0, 0, 2, 0, 0);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0) + cached_of(g).stat, 7);
	drop(g, 9);
	box_close(box);
}

/* A reclaimer that promises and does not deliver is asked so many times, one that can't is asked once. */
static void reclaim_retries_are_bounded(void **state)
{
	static const uint32_t retries[] = { 1, 3, 0, 1000 };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(retries); i++) {
		const uint32_t n = retries[i] == 0 ? 16 : retries[i];
		struct box *box = box_default();
		struct reclaimer r;
		struct pcbatch_group *g = reclaiming(box, NULL, 10, retries[i], &r);

		assert_int_equal(pcbatch_group_charge(g, 10), 0);
		r.says = 1;
		assert_int_equal(pcbatch_group_charge(g, 1), -ENOMEM);
		assert_int_equal(r.calls, n);
		assert_events(g, 0, 0, n + 1, 1, 0);
		r.says = 0;
		assert_int_equal(pcbatch_group_charge(g, 1), -ENOMEM);
		assert_int_equal(r.calls, n + 1);
		assert_events(g, 0, 0, n + 2, 2, 0);
		/* Never from these. */
		r.says = 1;
		assert_int_equal(pcbatch_group_try_charge(g, 1, 0), -ENOMEM);
		assert_int_equal(pcbatch_group_try_charge_bytes(g, 1), -ENOMEM);
		assert_int_equal(pcbatch_group_charge_direct(g, 1), -ENOMEM);
		assert_int_equal(pcbatch_group_charge_force(g, 1, 0), 0);
		assert_int_equal(r.calls, n + 1);
		/* From these. */
		assert_int_equal(pcbatch_group_charge_bytes(g, 1), -ENOMEM);
		assert_int_equal(r.calls, 2 * n + 1);
		drop(g, 11);
		box_close(box);
	}
}

/* rule 16: each attempt is decided anew: whoever refuses now is asked, not whoever did before. */
static void rule_16_the_level_that_refuses_is_asked(void **state)
{
	struct box *box = box_default();
	struct reclaimer up, down;
	struct pcbatch_group *root = reclaiming(box, NULL, 12, 0, &up), *g = reclaiming(box, root, 10, 0, &down),
			     *other = group_new(box, root);

	(void)state;
	up.of = other;
	assert_int_equal(pcbatch_group_charge_direct(g, 8), 0);
	assert_int_equal(pcbatch_group_charge_direct(other, 4), 0);
	down.frees = down.says = 3;
	up.frees = up.says = 2;
	assert_int_equal(pcbatch_group_charge(g, 5), 0); /* g: 8 + 5 > 10; then the root: 9 + 5 > 12 */
	assert_int_equal(down.calls, 1);
	assert_ptr_equal(down.limiting, g);
	assert_int_equal(up.calls, 1);
	assert_ptr_equal(up.limiting, root);
	assert_events(g, 0, 0, 1, 0, 0);
	assert_events(root, 0, 0, 1, 0, 0);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_MAX), 2);
	drop(other, 2);
	drop(g, 10);
	drop(root, 0);
	box_close(box);
}

/* The leaf refuses while it has pages cached; once it is drained, the level above refuses, and that one is asked. */
static void the_level_that_refuses_last_is_asked(void **state)
{
	struct box *box = box_default();
	struct reclaimer r, none;
	struct pcbatch_group *root = reclaiming(box, NULL, 100, 1, &r), *leaf = reclaiming(box, root, 60, 1, &none);

	(void)state;
	assert_int_equal(pcbatch_group_charge_direct(leaf, 50), 0);
	assert_int_equal(pcbatch_group_uncharge(leaf, 5), 0);
	assert_int_equal(cached_of(leaf).pages, 5);
	assert_int_equal(pcbatch_group_charge_direct(root, 50), 0);
	r.of = root;
	r.frees = r.says = 7;
	/* 50 + 12 are more than the leaf's 60; 45 + 12 are not, but with the root's own 50 they are more than 100. */
	assert_int_equal(pcbatch_group_charge(leaf, 12), 0);
	assert_int_equal(none.calls, 0);
	assert_int_equal(r.calls, 1);
	assert_ptr_equal(r.limiting, root);
	drop(leaf, 57);
	drop(root, 43);
	box_close(box);
}

static void low_events(void **state)
{
	struct box *box = box_default();
	struct reclaimer r;
	struct pcbatch_group *root = group_new(box, NULL), *g = reclaiming(box, root, 10, 1, &r);

	(void)state;
	r.says = 1;
	assert_int_equal(pcbatch_group_charge(g, 10), 0);
	assert_int_equal(pcbatch_group_set_low(g, 9), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), -ENOMEM);
	assert_events(g, 0, 0, 2, 1, 0);
	assert_int_equal(pcbatch_group_set_low(g, 10), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), -ENOMEM);
	assert_events(g, 1, 0, 4, 2, 0);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_LOW), 1);
	drop(g, 10);
	drop(root, 0);
	box_close(box);
}

/* Counted by the lowest level above its mark, by charges that left the slots only; reclaim is asked for what is over. */
static void high_events(void **state)
{
	struct box *box = box_default();
	struct reclaimer up, down;
	struct pcbatch_group *root = reclaiming(box, NULL, PCBATCH_PAGES_MAX, 0, &up),
			     *g = reclaiming(box, root, PCBATCH_PAGES_MAX, 0, &down);

	(void)state;
	assert_int_equal(pcbatch_group_set_high(g, 64), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0); /* at the mark */
	assert_events(g, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_set_high(g, 63), 0);
	assert_int_equal(pcbatch_group_charge(g, 63), 0); /* a hit looks at nothing */
	assert_events(g, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_events(g, 0, 1, 0, 0, 0);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_HIGH), 1);
	assert_int_equal(down.calls, 1);
	assert_int_equal(down.asked, 128 - 63);
	assert_ptr_equal(down.limiting, g);
	assert_int_equal(pcbatch_group_try_charge(g, 100, 0), 0);
	assert_int_equal(pcbatch_group_charge_direct(g, 1), 0);
	assert_events(g, 0, 3, 0, 0, 0);
	assert_int_equal(down.calls, 1);
	assert_int_equal(pcbatch_group_set_high(root, 10), 0);
	assert_int_equal(pcbatch_group_charge(g, 65), 0);
	assert_events(g, 0, 4, 0, 0, 0);
	assert_events(root, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_set_high(g, PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_group_charge(g, 65), 0);
	assert_events(root, 0, 1, 0, 0, 0);
	assert_int_equal(up.calls, 1);
	assert_ptr_equal(up.limiting, root);
	drop(g, 1 + 63 + 1 + 100 + 1 + 65 + 65);
	drop(root, 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reclaim_until_there_is_room),
		cmocka_unit_test(reclaim_retries_are_bounded),
		cmocka_unit_test(rule_16_the_level_that_refuses_is_asked),
		cmocka_unit_test(the_level_that_refuses_last_is_asked),
		cmocka_unit_test(low_events),
		cmocka_unit_test(high_events),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
