/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a limit is a limit and a refusal is right: the order of a charge's attempts,
 * what each of them counts, that a failed one leaves no trace, and, against a model, that
 * a charge is granted if and only if the live charges leave room for it at every level.
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

/* Stock, then a batch, then exactly what was asked, then refused. */
static void order_stock_batch_exact(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *g = group_with(box, NULL, 100);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_current(g), 64);
	assert_int_equal(pcbatch_group_charge(g, 63), 0);
	assert_int_equal(pcbatch_group_current(g), 64);
	assert_int_equal(pcbatch_group_failcnt(g), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0); /* no room for a batch */
	assert_int_equal(pcbatch_group_current(g), 65);
	assert_int_equal(cached_of(g).pages, 0);
	assert_int_equal(pcbatch_group_failcnt(g), 1);
	assert_int_equal(pcbatch_group_charge(g, 35), 0);
	assert_int_equal(pcbatch_group_current(g), 100);
	assert_int_equal(pcbatch_group_peak(g), 100);
	assert_events(g, 0, 0, 0, 0, 0);
	assert_int_equal(info_of(box).drains, 0);
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 9), -ENOMEM);
	assert_int_equal(pcbatch_group_current(g), 100);
	assert_events(g, 0, 0, 1, 1, 0);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0) + cached_of(g).stat, 0);
	drop(g, 100);
	box_close(box);
}

/* rule 27: what siblings cache is drained, on every CPU and in both kinds of slots, before a charge is refused. */
static void charge_there(void *arg)
{
	(void)pcbatch_group_charge_bytes((struct pcbatch_group *)arg, 100);
}

static void rule_27_drain_before_refusal(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *top = group_new(box, NULL), *p = group_with(box, top, 129), *a = group_new(box, p),
			     *b = group_new(box, p), *outside = group_new(box, top);

	(void)state;
	assert_int_equal(pcbatch_group_charge(outside, 1), 0);
	assert_int_equal(pcbatch_group_charge(a, 1), 0);
	errand(box, charge_there, a);
	assert_int_equal(pcbatch_group_current(p), 128);
	assert_int_equal(pcbatch_group_charge(b, 127), 0);
	assert_int_equal(pcbatch_group_current(p), 129);
	assert_int_equal(cached_of(a).slots, 0);
	assert_int_equal(cached_of(outside).pages, 63);
	assert_events(p, 0, 0, 1, 0, 0);
	assert_int_equal(pcbatch_group_event(top, PCBATCH_EVENT_MAX), 1);
	assert_events(top, 0, 0, 0, 0, 0);
	assert_events(b, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_charge(b, 1), -ENOMEM);
	assert_events(p, 0, 0, 2, 1, 0);
	assert_int_equal(pcbatch_group_event(top, PCBATCH_EVENT_FAIL), 1);
	drop(b, 127);
	assert_int_equal(pcbatch_group_uncharge_bytes(a, 100), 0);
	drop(a, 1);
	drop(outside, 1);
	drop(p, 0);
	drop(top, 0);
	box_close(box);
}

/* Drained, the first level accepts and a higher one refuses: that one is drained too. */
static void every_level_that_refuses_is_drained(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *root = group_with(box, NULL, 128), *mid = group_with(box, root, 65), *a = group_new(box, mid),
			     *b = group_new(box, mid), *x = group_new(box, root);

	(void)state;
	assert_int_equal(pcbatch_group_charge(x, 1), 0);
	assert_int_equal(pcbatch_group_charge(a, 1), 0);
	assert_int_equal(pcbatch_group_current(root), 128);
	assert_int_equal(pcbatch_group_try_charge(b, 64, 0), 0);
	assert_int_equal(pcbatch_group_current(root), 66);
	assert_int_equal(pcbatch_group_current(mid), 65);
	assert_int_equal(cached_of(x).slots, 0);
	drop(b, 64);
	drop(a, 1);
	drop(x, 1);
	drop(mid, 0);
	drop(root, 0);
	box_close(box);
}

static void forced_charges_go_over_and_are_counted(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *root = group_with(box, NULL, 15), *g = group_with(box, root, 10);

	(void)state;
	assert_int_equal(pcbatch_group_charge_force(g, 10, 1), 0);
	assert_events(g, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_charge_force(g, 20, 2), 0);
	assert_int_equal(pcbatch_group_current(g), 30);
	assert_int_equal(pcbatch_group_current(root), 30);
	assert_int_equal(pcbatch_group_peak(root), 30);
	assert_events(g, 0, 0, 1, 0, 1);
	assert_events(root, 0, 0, 0, 0, 0);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_FORCED), 1);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0) + cached_of(g).stat, 3);
	assert_int_equal(pcbatch_group_charge(g, 1), -ENOMEM);
	drop(g, 30);
	drop(root, 0);
	box_close(box);
}

static void set_max_drains_and_retries(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *g = group_new(box, NULL), *child = group_new(box, g), *outside = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge(outside, 1), 0);
	assert_int_equal(pcbatch_group_charge(child, 5), 0);
	assert_int_equal(pcbatch_group_set_max(g, 64), 0); /* nothing to drain for that */
	assert_int_equal(cached_of(child).pages, 59);
	assert_int_equal(pcbatch_group_set_max(g, 5), 0);
	assert_int_equal(pcbatch_group_max(g), 5);
	assert_int_equal(pcbatch_group_current(g), 5);
	assert_int_equal(cached_of(outside).pages, 63);
	assert_int_equal(pcbatch_group_charge(child, 1), -ENOMEM);
	assert_int_equal(pcbatch_group_set_max(g, 4), -EBUSY);
	assert_int_equal(pcbatch_group_max(g), 5);
	assert_int_equal(pcbatch_group_set_max(g, 6), 0);
	assert_int_equal(pcbatch_group_charge(child, 1), 0);
	assert_int_equal(pcbatch_group_set_max(g, PCBATCH_PAGES_MAX), 0);
	assert_int_equal(pcbatch_group_charge(child, 1), 0);
	assert_int_equal(cached_of(child).pages, 63); /* slots work again */
	drop(child, 7);
	drop(outside, 1);
	drop(g, 0);
	box_close(box);
}

static void peaks(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *root = group_with(box, NULL, 90), *g = group_new(box, root);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 80), 0);
	assert_int_equal(pcbatch_group_peak(g), 80);
	assert_int_equal(pcbatch_group_charge(g, 20), -ENOMEM);
	assert_int_equal(pcbatch_group_peak(g), 80);
	assert_int_equal(pcbatch_group_uncharge(g, 80), 0);
	assert_int_equal(pcbatch_group_peak_reset(g), 0);
	assert_int_equal(pcbatch_group_peak(g), 0);
	assert_int_equal(pcbatch_group_peak(root), 80);
	assert_int_equal(pcbatch_group_charge(g, 70), 0);
	assert_int_equal(pcbatch_group_peak(g), 70);
	assert_int_equal(pcbatch_group_peak(root), 80);
	drop(g, 70);
	drop(root, 0);
	box_close(box);
}

/* Contract 4: through the slot it shows when the page counter hears of it; the parent loses nothing. */
static void uncharging_too_much_is_reported_by_drain(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *root = group_new(box, NULL), *g = group_new(box, root);

	(void)state;
	assert_int_equal(pcbatch_group_charge_direct(root, 100), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 5), 0);
	assert_int_equal(pcbatch_group_underflow(g), 0);
	assert_int_equal(pcbatch_group_drain(g), -ERANGE);
	assert_int_equal(pcbatch_group_underflow(g), 4);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_current(root), 100);
	assert_int_equal(pcbatch_group_underflow(root), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 3), 0);
	assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), -ERANGE);
	assert_int_equal(pcbatch_group_uncharge(g, 3), 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), -ERANGE);
	assert_int_equal(pcbatch_group_uncharge(g, 65), -ERANGE); /* past the slots, at once */
	assert_int_equal(pcbatch_group_uncharge(g, 2), 0);
	assert_int_equal(pcbatch_group_offline(g), -ERANGE);
	assert_int_equal(pcbatch_group_underflow(g), 4 + 3 + 3 + 65 + 2);
	assert_int_equal(pcbatch_group_current(root), 100);
	assert_int_equal(pcbatch_group_destroy(g), -ERANGE);
	assert_int_equal(pcbatch_group_destroy(g), -EINVAL);
	/* Hidden in the slot until then, whole pages and less. */
	assert_int_equal(pcbatch_group_create(&box->dom, root, NULL, &g), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 5), 0);
	assert_int_equal(pcbatch_group_destroy(g), -ERANGE);
	assert_int_equal(pcbatch_group_create(&box->dom, root, NULL, &g), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 100), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 200), 0);
	assert_int_equal(pcbatch_group_destroy(g), -ERANGE);
	assert_int_equal(pcbatch_group_current(root), 100);
	drop(root, 100);
	box_close(box);
}

/*
 * Contract 3 against a model: root -> a -> (x, y), root -> z, with limits at root and a. A
 * charge is granted if and only if the live charges leave room for it at every level,
 * whatever is cached where.
 */
static void a_charge_is_granted_iff_it_fits(void **state)
{
	struct box *box = box_default();
	struct pcbatch_group *root = group_with(box, NULL, 400), *a = group_with(box, root, 250);
	struct pcbatch_group *g[3] = { group_new(box, a), group_new(box, a), group_new(box, root) };
	int64_t live[3] = { 0, 0, 0 };
	uint64_t seed = 4242;
	int n, refused = 0;

	(void)state;
	for (n = 0; n < 30000; n++) {
		int who = (int)(next_random(&seed) % 3);
		int64_t pages = (int64_t)(next_random(&seed) % (n % 4 < 3 ? 8 : 150));
		int64_t all = live[0] + live[1] + live[2];

		if (next_random(&seed) % 100 < 55) {
			bool fits = pages == 0 || (all + pages <= 400 && (who == 2 || live[0] + live[1] + pages <= 250));

			assert_int_equal(pcbatch_group_charge(g[who], (uint64_t)pages), fits ? 0 : -ENOMEM);
			live[who] += fits ? pages : 0;
			refused += !fits;
		} else {
			pages = pages > live[who] ? live[who] : pages;
			assert_int_equal(pcbatch_group_uncharge(g[who], (uint64_t)pages), 0);
			live[who] -= pages;
		}
		assert_live(g[who], live[who]);
		assert_in_range(pcbatch_group_current(root), 0, 400);
		assert_in_range(pcbatch_group_current(a), 0, 250);
		assert_int_equal(pcbatch_group_current(a), pcbatch_group_current(g[0]) + pcbatch_group_current(g[1]));
	}
	assert_true(refused > 1000);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_FAIL), refused);
	assert_in_range(pcbatch_group_peak(root), 399, 400);
	for (n = 0; n < 3; n++)
		drop(g[n], (uint64_t)live[n]);
	drop(a, 0);
	drop(root, 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_stock_batch_exact),
		cmocka_unit_test(rule_27_drain_before_refusal),
		cmocka_unit_test(every_level_that_refuses_is_drained),
		cmocka_unit_test(forced_charges_go_over_and_are_counted),
		cmocka_unit_test(set_max_drains_and_retries),
		cmocka_unit_test(peaks),
		cmocka_unit_test(uncharging_too_much_is_reported_by_drain),
		cmocka_unit_test(a_charge_is_granted_iff_it_fits),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
