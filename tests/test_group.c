/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the life of a group: who may be created under whom, what offline and destroy do
 * and refuse, what becomes of ids and memory, and that a failed call leaves all as it was.
 */
#include "util.h"

static struct box *box_with(uint32_t stat_items)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.stat_items = stat_items;
	return box_open(attr);
}

static void attributes_and_defaults(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group_attr attr, zero;
	struct pcbatch_group *g;
	int here;

	(void)state;
	memset(&zero, 0, sizeof(zero));
	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(pcbatch_group_attr_init(NULL), -EINVAL);
	assert_int_equal(pcbatch_group_attr_init(&attr), 0);
	assert_int_equal(attr.max, PCBATCH_PAGES_MAX);
	assert_int_equal(attr.high, PCBATCH_PAGES_MAX);
	attr.max = attr.high = 0;
	assert_memory_equal(&attr, &zero, sizeof(zero));

	attr.max = 300;
	attr.high = 200;
	attr.low = 100;
	attr.user = &here;
	g = group_from(box, NULL, &attr);
	assert_int_equal(pcbatch_group_max(g), 300);
	assert_int_equal(pcbatch_group_high(g), 200);
	assert_int_equal(pcbatch_group_low(g), 100);
	assert_ptr_equal(pcbatch_group_user(g), &here);
	assert_null(pcbatch_group_parent(g));
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_peak(g), 0);
	assert_int_equal(pcbatch_group_failcnt(g), 0);
	assert_int_equal(pcbatch_group_underflow(g), 0);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENTS), 0);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENTS), 0);
	assert_int_equal(pcbatch_group_set_low(g, 50), 0);
	assert_int_equal(pcbatch_group_low(g), 50);
	assert_int_equal(pcbatch_group_set_high(g, 60), 0);
	assert_int_equal(pcbatch_group_high(g), 60);
	assert_int_equal(pcbatch_group_destroy(g), 0);

	g = group_new(box, NULL);
	assert_int_equal(pcbatch_group_max(g), PCBATCH_PAGES_MAX);
	assert_null(pcbatch_group_user(g));
	assert_int_equal(pcbatch_group_low(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

#define REFUSED(field, value)                                                              \
	do {                                                                               \
		assert_int_equal(pcbatch_group_attr_init(&attr), 0);                       \
		attr.field = value;                                                        \
		g = untouched;                                                             \
		assert_int_equal(pcbatch_group_create(&box->dom, NULL, &attr, &g), -EINVAL); \
		assert_ptr_equal(g, untouched);                                            \
	} while (0)

static void create_refuses(void **state)
{
	struct box *box = box_with(1), *other = box_with(1);
	struct pcbatch_group *untouched = (struct pcbatch_group *)(void *)box, *g, *parent = group_new(box, NULL);
	struct pcbatch_group *foreign = group_new(other, NULL);
	struct pcbatch_group_attr attr;

	(void)state;
	REFUSED(max, -1);
	REFUSED(max, PCBATCH_PAGES_MAX + 1);
	REFUSED(high, -1);
	REFUSED(high, INT64_MAX);
	REFUSED(low, INT64_MIN);
	REFUSED(low, PCBATCH_PAGES_MAX + 1);
	REFUSED(reclaim_retries, 1001);
	REFUSED(reclaim_retries, UINT32_MAX);
	assert_int_equal(pcbatch_group_create(NULL, NULL, NULL, &g), -EINVAL);
	assert_int_equal(pcbatch_group_create(&box->dom, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(pcbatch_group_create(&box->dom, foreign, NULL, &g), -EXDEV);
	assert_ptr_equal(g, untouched);
	assert_int_equal(pcbatch_group_offline(parent), 0);
	assert_int_equal(pcbatch_group_create(&box->dom, parent, NULL, &g), -ENODEV);
	assert_ptr_equal(g, untouched);
	assert_int_equal(pcbatch_group_destroy(parent), 0);
	assert_int_equal(pcbatch_group_create(&box->dom, parent, NULL, &g), -ENODEV);
	assert_ptr_equal(g, untouched);
	assert_int_equal(pcbatch_group_destroy(foreign), 0);
	box_close(box);
	box_close(other);
}

static void null_groups(void **state)
{
	(void)state;
	assert_int_equal(pcbatch_group_charge(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_charge_stat(NULL, 1, 1), -EINVAL);
	assert_int_equal(pcbatch_group_try_charge(NULL, 1, 1), -EINVAL);
	assert_int_equal(pcbatch_group_charge_force(NULL, 1, 1), -EINVAL);
	assert_int_equal(pcbatch_group_charge_direct(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge_stat(NULL, 1, 1), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge_direct(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_set_max(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_set_high(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_set_low(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_peak_reset(NULL), -EINVAL);
	assert_int_equal(pcbatch_group_offline(NULL), -EINVAL);
	assert_int_equal(pcbatch_group_destroy(NULL), -EINVAL);
	assert_int_equal(pcbatch_group_stat_flush(NULL), -EINVAL);
}

static void ranges_of_calls(void **state)
{
	const uint64_t over = (uint64_t)PCBATCH_PAGES_MAX + 1;
	struct box *box = box_with(1);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 7), 0);
	assert_int_equal(pcbatch_group_charge(g, over), -EINVAL);
	assert_int_equal(pcbatch_group_charge(g, UINT64_MAX), -EINVAL);
	assert_int_equal(pcbatch_group_try_charge(g, over, 0), -EINVAL);
	assert_int_equal(pcbatch_group_charge_force(g, over, 0), -EINVAL);
	assert_int_equal(pcbatch_group_charge_direct(g, over), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge(g, over), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge(g, UINT64_MAX), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge_direct(g, over), -EINVAL);
	assert_int_equal(pcbatch_group_set_max(g, -1), -EINVAL);
	assert_int_equal(pcbatch_group_set_max(g, PCBATCH_PAGES_MAX + 1), -EINVAL);
	assert_int_equal(pcbatch_group_set_high(g, -1), -EINVAL);
	assert_int_equal(pcbatch_group_set_low(g, PCBATCH_PAGES_MAX + 1), -EINVAL);
	assert_int_equal(pcbatch_group_max(g), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_group_high(g), PCBATCH_PAGES_MAX);
	assert_int_equal(pcbatch_group_low(g), 0);
	assert_int_equal(pcbatch_group_current(g), 64);
	assert_live(g, 7);
	assert_int_equal(pcbatch_group_charge(g, 0), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 0), 0);
	assert_live(g, 7);
	assert_int_equal(pcbatch_group_uncharge(g, 7), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

/* Refused, a group goes on as before: charged, cached, able to have children. */
static void destroy_is_busy_and_changes_nothing(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group *parent = group_new(box, NULL), *g = group_new(box, parent), *child = NULL;

	(void)state;
	assert_ptr_equal(pcbatch_group_parent(g), parent);
	assert_int_equal(pcbatch_group_charge(g, 5), 0);
	assert_int_equal(pcbatch_group_destroy(g), -EBUSY);
	assert_live(g, 5);
	assert_int_equal(pcbatch_group_destroy(parent), -EBUSY);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_live(g, 6);
	assert_true(cached_of(g).pages > 0);
	assert_int_equal(pcbatch_group_create(&box->dom, g, NULL, &child), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 6), 0);
	assert_int_equal(pcbatch_group_destroy(g), -EBUSY);
	assert_true(cached_of(g).pages > 0);
	assert_int_equal(pcbatch_group_destroy(child), 0);
	/* Hits still hit. */
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_destroy(g), -EBUSY);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(cached_of(g).slots, 1);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_group_current(parent), 0);
	assert_int_equal(pcbatch_group_destroy(parent), 0);
	box_close(box);
}

/* A destroy that was refused leaves a group as quick as it was. */
static void busy_groups_keep_their_hits(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 5), 0);
	assert_int_equal(g->owner.bound, box->dom.rseq_bound);
	assert_int_equal(pcbatch_group_destroy(g), -EBUSY);
	assert_int_equal(g->owner.bound, box->dom.rseq_bound);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_true(cached_of(g).pages > 0);
	assert_int_equal(pcbatch_group_uncharge(g, 6), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

static void destroyed_is_destroyed(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group *keep = group_new(box, NULL), *g = group_new(box, keep);

	(void)state;
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), -EINVAL);
	assert_int_equal(pcbatch_group_offline(g), -EINVAL);
	assert_int_equal(pcbatch_group_charge(g, 1), -EINVAL);
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge(g, 1), -EINVAL);
	assert_int_equal(pcbatch_group_set_max(g, 1), -EINVAL);
	assert_int_equal(pcbatch_group_drain(g), -EINVAL);
	assert_int_equal(pcbatch_group_current(keep), 0);
	assert_int_equal(pcbatch_group_destroy(keep), 0);
	box_close(box);
}

static void charge_there(void *arg)
{
	(void)pcbatch_group_charge_stat((struct pcbatch_group *)arg, 1, 5);
}

/* rule 23: a dying owner is never cached again; its uncharges go direct. rule 12: what slots held went home. */
static void rule_12_and_23_offline(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_stat(g, 1, 7), 0);
	errand(box, charge_there, g);
	assert_int_equal(cached_of(g).slots, 2);
	assert_int_equal(pcbatch_group_offline(g), 0);
	assert_int_equal(cached_of(g).slots, 0);
	assert_live(g, 2);
	assert_int_equal(pcbatch_group_current(g), 2);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0), 12);
	assert_int_equal(pcbatch_group_charge_stat(g, 3, 3), 0);
	assert_int_equal(pcbatch_group_current(g), 5);
	assert_int_equal(pcbatch_group_uncharge_stat(g, 2, 1), 0);
	assert_int_equal(pcbatch_group_current(g), 3);
	assert_int_equal(pcbatch_group_charge_bytes(g, 100), 0);
	assert_int_equal(pcbatch_group_current(g), 4);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 100), 0);
	assert_int_equal(cached_of(g).slots, 0);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read(g, 0), 14);
	assert_int_equal(pcbatch_group_offline(g), 0);
	/* Refused, it stays offline. */
	assert_int_equal(pcbatch_group_destroy(g), -EBUSY);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(cached_of(g).slots, 0);
	assert_int_equal(pcbatch_group_uncharge(g, 2), 0);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

/* rule 2 and 3: an id is used again only when no slot holds it, and then as new. */
static void rule_02_and_03_ids_and_memory_are_used_again(void **state)
{
	struct box *box = box_with(1);
	struct pcbatch_group *g, *first = group_new(box, NULL), *other = group_new(box, NULL);
	uint32_t id = first->owner.id;
	struct pcbatch_group_attr attr;

	(void)state;
	(void)pcbatch_group_attr_init(&attr);
	attr.max = 1;
	/* Events, peaks, failures, underflow, remainder: nothing of it is the next one's. */
	assert_int_equal(pcbatch_group_set_max(first, 100), 0);
	assert_int_equal(pcbatch_group_charge_stat(first, 90, 900), 0);
	assert_int_equal(pcbatch_group_charge(first, 90), -ENOMEM);
	assert_int_equal(pcbatch_group_uncharge_stat(first, 90, 1), 0);
	assert_int_equal(pcbatch_group_uncharge_direct(first, 5), -ERANGE);
	assert_int_equal(pcbatch_group_destroy(first), -ERANGE); /* ended, and told of it once more */
	assert_int_equal(cached_of(first).slots, 0);
	g = group_from(box, other, &attr);
	assert_int_equal(g->owner.id, id);
	assert_int_equal(pcbatch_group_max(g), 1);
	assert_ptr_equal(pcbatch_group_parent(g), other);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_peak(g), 0);
	assert_int_equal(pcbatch_group_failcnt(g), 0);
	assert_int_equal(pcbatch_group_underflow(g), 0);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_MAX), 0);
	assert_int_equal(pcbatch_group_event_local(g, PCBATCH_EVENT_FAIL), 0);
	assert_int_equal(pcbatch_group_stat_flush(g), 0);
	assert_int_equal(pcbatch_group_stat_read_signed(g, 0), 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_live(g, 1);
	assert_int_equal(pcbatch_group_uncharge_direct(g, 1), 0);
	assert_int_equal(pcbatch_group_reap(&box->dom), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_group_destroy(other), 0);
	box_close(box);
}

/* Several slabs of owners: growing moves nothing, ids are unique, and destroying in any order frees everything. */
static void very_many_groups(void **state)
{
	enum { MANY = 1000 };
	static struct pcbatch_group *g[MANY];
	struct box *box = box_with(1);
	struct pcbatch_group *root = group_new(box, NULL);
	int i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		g[i] = group_new(box, root);
		assert_int_equal(g[i]->owner.id, root->owner.id + 1 + (uint32_t)i);
		assert_int_equal(pcbatch_group_charge(g[i], (uint64_t)i), 0);
	}
	for (i = 0; i < MANY; i++)
		assert_live(g[i], i);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_current(root), MANY * (MANY - 1) / 2);
	for (i = 0; i < MANY; i++) {
		int k = i * 617 % MANY;

		assert_int_equal(pcbatch_group_uncharge(g[k], (uint64_t)k), 0);
		assert_int_equal(pcbatch_group_destroy(g[k]), 0);
	}
	assert_int_equal(pcbatch_group_current(root), 0);
	assert_int_equal(pcbatch_group_destroy(root), 0);
	box_close(box);
}

/*
 * A chain of groups whose statistics fill a piece of per-CPU memory each, built while
 * each allocation in turn fails: -ENOMEM, nothing kept, and the same call works next.
 */
static void failing_allocations_in_a_deep_tree(void **state)
{
	enum { DEEP = 12 };
	struct box *box = box_with(4000);
	struct pcbatch_group *g[DEEP], *untouched = (struct pcbatch_group *)(void *)box;
	size_t k, failures = 0;
	int i;

	(void)state;
	for (i = 0; i < DEEP; i++) {
		for (k = 1;; k++) {
			struct pcbatch_group *parent = i == 0 ? NULL : g[i - 1];
			size_t live = box->memory.live;
			int err;

			box->memory.calls = 0;
			box->memory.fail_at = k;
			g[i] = untouched;
			err = pcbatch_group_create(&box->dom, parent, NULL, &g[i]);
			if (err == 0) {
				assert_int_equal(box->memory.calls, k - 1);
				break;
			}
			failures++;
			assert_int_equal(err, -ENOMEM);
			assert_ptr_equal(g[i], untouched);
			/* A slab of owners may have come before what failed, and is the domain's. */
			assert_in_range(box->memory.live - live, 0, k - 1);
			assert_int_equal(box->dom.owners, i);
			if (parent != NULL) {
				assert_int_equal(parent->owner.children, 0);
				assert_int_equal(parent->owner.refs, 1);
			}
		}
		assert_int_equal(g[i]->owner.id, i + 1);
	}
	box->memory.fail_at = 0;
	assert_true(failures >= DEEP);
	assert_int_equal(pcbatch_group_charge_stat(g[DEEP - 1], 3, 100), 0);
	assert_live(g[DEEP - 1], 3);
	assert_int_equal(pcbatch_group_stat_mod(g[DEEP - 1], 3999, 8), 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_stat_flush(g[0]), 0);
	assert_int_equal(pcbatch_group_current(g[0]), 3);
	assert_int_equal(pcbatch_group_stat_read(g[0], 0), 100);
	assert_int_equal(pcbatch_group_stat_read(g[0], 3999), 8);
	assert_int_equal(pcbatch_group_uncharge_direct(g[DEEP - 1], 3), 0);
	for (i = DEEP; i-- > 0;)
		assert_int_equal(pcbatch_group_destroy(g[i]), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_and_defaults),
		cmocka_unit_test(create_refuses),
		cmocka_unit_test(null_groups),
		cmocka_unit_test(ranges_of_calls),
		cmocka_unit_test(destroy_is_busy_and_changes_nothing),
		cmocka_unit_test(busy_groups_keep_their_hits),
		cmocka_unit_test(destroyed_is_destroyed),
		cmocka_unit_test(rule_12_and_23_offline),
		cmocka_unit_test(rule_02_and_03_ids_and_memory_are_used_again),
		cmocka_unit_test(very_many_groups),
		cmocka_unit_test(failing_allocations_in_a_deep_tree),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
