/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the byte-granular stock: at every moment the pages charged are the live bytes,
 * the bytes in slots, the shared remainder and the cached pages, to the byte; parts of
 * pages from several CPUs meet again; nothing is lost at any size.
 */
#include "util.h"

static struct box *box_with(uint32_t page_size, uint32_t high, uint32_t low)
{
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.page_size = page_size;
	attr.obj_high = high;
	attr.obj_low = low;
	return box_open(attr);
}

/* `bytes` are live in byte charges. */
static void assert_bytes(const struct pcbatch_group *g, uint64_t bytes)
{
	struct cached held = cached_of(g);
	uint64_t size = g->owner.dom->attr.page_size, remainder = g->owner.remainder;

	assert_true(remainder < size);
	assert_int_equal((uint64_t)(pcbatch_group_current(g) - held.pages) * size, bytes + (uint64_t)held.bytes + remainder);
	assert_int_equal(g->owner.refs, 1 + held.slots + g->owner.children);
}

static void end(struct box *box, struct pcbatch_group *g)
{
	assert_bytes(g, 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(g->owner.remainder, 0);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_underflow(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	box_close(box);
}

static void bytes_of_one_page(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 100), 0);
	assert_int_equal(cached_of(g).bytes, 3996);
	assert_int_equal(cached_of(g).pages, 63);
	assert_int_equal(pcbatch_group_charge_bytes(g, 3995), 0);
	assert_int_equal(cached_of(g).bytes, 1);
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), 0);
	assert_int_equal(cached_of(g).bytes, 0);
	assert_int_equal(cached_of(g).pages, 63);
	assert_bytes(g, 4096);
	assert_int_equal(info_of(box).misses, 1);
	assert_int_equal(info_of(box).hits, 2);
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), 0); /* the next page, from the page stock */
	assert_int_equal(cached_of(g).bytes, 4095);
	assert_int_equal(cached_of(g).pages, 62);
	assert_int_equal(info_of(box).misses, 1);
	assert_int_equal(pcbatch_group_charge_bytes(g, 0), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 0), 0);
	assert_bytes(g, 4097);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 4097), 0);
	assert_int_equal(cached_of(g).bytes, 2 * 4096);
	end(box, g);
}

/* rule 19: bytes are bytes and pages are pages: n objects cost what they add up to, rounded up once. */
static void rule_19_objects_cost_their_bytes(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	int i;

	(void)state;
	for (i = 1; i <= 4096; i++) {
		assert_int_equal(pcbatch_group_charge_bytes(g, 512), 0);
		assert_int_equal(pcbatch_group_current(g) - cached_of(g).pages, (i * 512 + 4095) / 4096);
	}
	assert_int_equal(pcbatch_group_stat_read(g, 0), 0);
	for (i = 0; i < 4096; i++)
		assert_int_equal(pcbatch_group_uncharge_bytes(g, 512), 0);
	end(box, g);
}

/* Whole pages go, down to low; the part of a page stays. */
static void watermarks(void **state)
{
	struct box *box = box_with(4096, 16384, 8192);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 100000), 0); /* 25 pages, 2400 bytes over */
	assert_int_equal(cached_of(g).bytes, 2400);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 13984), 0);
	assert_int_equal(cached_of(g).bytes, 16384);
	assert_int_equal(info_of(box).trims, 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 1), 0);
	/* (16385 - 8192) / 4096 pages are too many. */
	assert_int_equal(cached_of(g).bytes, 16385 - 2 * 4096);
	assert_int_equal(info_of(box).trims, 1);
	assert_bytes(g, 100000 - 13985);
	/* More than a slot holds: whole pages the pages' way, the rest here. */
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 16385), 0);
	assert_int_equal(cached_of(g).bytes, 16385 - 2 * 4096 + 1);
	assert_bytes(g, 100000 - 13985 - 16385);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 100000 - 13985 - 16385), 0);
	end(box, g);
}

static void rule_28_sizes_up_to_the_largest(void **state)
{
	static const uint32_t page_sizes[] = { 512, 4096, 65536, 1u << 21 };
	static const uint64_t sizes[] = { 1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537, (1u << 29) - 1, 1u << 29,
					  (1u << 29) + 1, INT32_MAX, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 40) + 1,
					  (uint64_t)PCBATCH_PAGES_MAX - 1, (uint64_t)PCBATCH_PAGES_MAX };
	size_t i, j;

	(void)state;
	for (i = 0; i < COUNT_OF(page_sizes); i++) {
		struct box *box = box_with(page_sizes[i], 0, 0);
		struct pcbatch_group *g = group_new(box, NULL);

		for (j = 0; j < COUNT_OF(sizes); j++) {
			assert_int_equal(pcbatch_group_charge_bytes(g, sizes[j]), 0);
			assert_bytes(g, sizes[j]);
			assert_int_equal(pcbatch_group_uncharge_bytes(g, sizes[j] / 2), 0);
			assert_bytes(g, sizes[j] - sizes[j] / 2);
			assert_int_equal(pcbatch_group_uncharge_bytes(g, sizes[j] - sizes[j] / 2), 0);
			assert_bytes(g, 0);
		}
		assert_int_equal(pcbatch_group_charge_bytes(g, (uint64_t)PCBATCH_PAGES_MAX + 1), -EINVAL);
		assert_int_equal(pcbatch_group_charge_bytes(g, UINT64_MAX), -EINVAL);
		assert_int_equal(pcbatch_group_charge_bytes_force(g, UINT64_MAX), -EINVAL);
		assert_int_equal(pcbatch_group_uncharge_bytes(g, (uint64_t)PCBATCH_PAGES_MAX + 1), -EINVAL);
		assert_int_equal(pcbatch_group_uncharge_bytes(g, UINT64_MAX), -EINVAL);
		assert_bytes(g, 0);
		end(box, g);
	}
}

static void null_groups(void **state)
{
	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_try_charge_bytes(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_charge_bytes_force(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_group_uncharge_bytes(NULL, 1), -EINVAL);
}

/* The limit is that of the page counter, and a page is used to its last byte. */
static void limits_in_pages(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *root = group_with(box, NULL, 2), *g = group_new(box, root);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4096), 0);
	assert_int_equal(pcbatch_group_current(root), 2);
	assert_int_equal(pcbatch_group_try_charge_bytes(g, 4095), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), -ENOMEM);
	assert_int_equal(pcbatch_group_event_local(root, PCBATCH_EVENT_FAIL), 1);
	assert_bytes(g, 8192);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 10), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 10), 0);
	assert_int_equal(pcbatch_group_charge_bytes_force(g, 1), 0);
	assert_int_equal(pcbatch_group_current(root), 3);
	assert_int_equal(pcbatch_group_event(root, PCBATCH_EVENT_FORCED), 1);
	assert_bytes(g, 8193);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 8193), 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_current(root), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	end(box, root);
}

/*
 * Contract 3: a refusal must leave what would have been granted before it. The refused
 * request drains the byte slot, whose part of a page must not be out of reach then.
 */
static void a_drained_part_of_a_page_can_still_be_charged(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_with(box, NULL, 1);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4096), -ENOMEM);
	/* Tried twice, since the first try brought that part; refused once. */
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 1);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4095), 0);
	assert_bytes(g, 4096);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 1), -ENOMEM);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 4000), 0);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4000), 0);
	assert_bytes(g, 4096);
	/* In two places: some of it drained, some in a slot. */
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 2000), 0);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 1000), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 3001), -ENOMEM);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 3);
	/* What the first try drains is enough for the second: no refusal. */
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 1000), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4000), 0);
	assert_int_equal(pcbatch_group_event(g, PCBATCH_EVENT_FAIL), 3);
	assert_bytes(g, 4096);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 4096), 0);
	end(box, g);
}

/* A part of a page that leaves a slot is in the remainder, to the byte. */
static void remainders_are_never_lost(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	uint64_t seed = 77, live = 0;
	int i;

	(void)state;
	for (i = 0; i < 3000; i++) {
		uint64_t bytes = next_random(&seed) % 9000;

		assert_int_equal(pcbatch_group_charge_bytes(g, bytes), 0);
		live += bytes;
		if (i % 3 == 0)
			assert_int_equal(i % 2 == 0 ? pcbatch_group_drain(g) : pcbatch_stock_drain_cpu(&box->dom), 0);
		assert_bytes(g, live);
		bytes = next_random(&seed) % (live + 1);
		assert_int_equal(pcbatch_group_uncharge_bytes(g, bytes), 0);
		live -= bytes;
		assert_bytes(g, live);
	}
	assert_int_equal(pcbatch_group_uncharge_bytes(g, live), 0);
	end(box, g);
}

/* More byte owners than slots, pages and bytes mixed: exact through every eviction. */
static void more_owners_than_slots(void **state)
{
	enum { OWNERS = 12 };
	struct box *box = box_with(4096, 16384, 4096);
	struct pcbatch_group *g[OWNERS];
	uint64_t seed = 99, live[OWNERS] = { 0 };
	int i, n;

	(void)state;
	for (i = 0; i < OWNERS; i++)
		g[i] = group_new(box, NULL);
	for (n = 0; n < 20000; n++) {
		int who = (int)(next_random(&seed) % OWNERS);
		uint64_t bytes = next_random(&seed) % (n % 8 == 0 ? 40000 : 600);

		if (next_random(&seed) % 2 == 0) {
			assert_int_equal(pcbatch_group_charge_bytes(g[who], bytes), 0);
			live[who] += bytes;
		} else {
			bytes = bytes > live[who] ? live[who] : bytes;
			assert_int_equal(pcbatch_group_uncharge_bytes(g[who], bytes), 0);
			live[who] -= bytes;
		}
		assert_bytes(g[who], live[who]);
		if (n % 1000 == 0)
			for (i = 0; i < OWNERS; i++)
				assert_bytes(g[i], live[i]);
	}
	assert_true(info_of(box).evictions > 1000 && info_of(box).trims > 10 && info_of(box).hits > 1000);
	for (i = 0; i < OWNERS; i++) {
		assert_bytes(g[i], live[i]);
		assert_int_equal(pcbatch_group_uncharge_bytes(g[i], live[i]), 0);
	}
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	for (i = 0; i < OWNERS; i++) {
		assert_int_equal(g[i]->owner.remainder, 0);
		assert_int_equal(pcbatch_group_current(g[i]), 0);
		assert_int_equal(pcbatch_group_destroy(g[i]), 0);
	}
	box_close(box);
}

/* rule 13: the drain of a CPU empties every kind of cache; others keep theirs. */
static void rule_13_drains_cover_bytes(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL), *h = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 10), 0);
	assert_int_equal(pcbatch_group_charge_bytes(h, 20), 0);
	assert_int_equal(cached_of(g).slots, 2);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(info_of(box).drains, 2);
	assert_int_equal(cached_of(g).slots, 0);
	assert_int_equal(pcbatch_group_current(g), 1);
	assert_int_equal(g->owner.remainder, 4086);
	assert_int_equal(cached_of(h).bytes, 4076);
	assert_int_equal(cached_of(h).pages, 63);
	assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), 0);
	assert_int_equal(cached_of(h).slots, 0);
	assert_int_equal(h->owner.remainder, 4076);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 10), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(h, 20), 0);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_destroy(h), 0);
	end(box, g);
}

static void uncharge_there(void *arg)
{
	(void)pcbatch_group_uncharge_bytes((struct pcbatch_group *)arg, 2000);
}

/* Parts of one page on two CPUs make a page again. */
static void remainders_of_two_cpus_meet(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 8192), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 3000), 0);
	errand(box, uncharge_there, g);
	assert_bytes(g, 3192);
	assert_int_equal(cached_of(g).bytes, 5000);
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(g->owner.remainder, 904);
	assert_int_equal(pcbatch_group_current(g), 1);
	assert_bytes(g, 3192);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 3192), 0);
	end(box, g);
}

/* Offline, and with closed gates: past the slots, to the byte. */
static void past_the_slots(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL);
	uint64_t seed = 5, live = 0;
	uint32_t c;
	int i;

	(void)state;
	for (i = 0; i < 600; i++) {
		uint64_t bytes = next_random(&seed) % 6000;

		for (c = 0; c < box->dom.lines; c++)
			pcbatch_priv_stock(&box->dom, c)->page.gate = i < 400 && i % 2 == 0;
		if (i == 400)
			assert_int_equal(pcbatch_group_offline(g), 0);
		assert_int_equal(pcbatch_group_charge_bytes(g, bytes), 0);
		live += bytes;
		assert_bytes(g, live);
		bytes = next_random(&seed) % (live + 1);
		assert_int_equal(pcbatch_group_uncharge_bytes(g, bytes), 0);
		live -= bytes;
		assert_bytes(g, live);
		if (i >= 400)
			assert_int_equal(cached_of(g).slots, 0);
	}
	assert_int_equal(pcbatch_group_uncharge_bytes(g, live), 0);
	assert_int_equal(pcbatch_group_current(g), 0);
	end(box, g);
}

static void uncharging_too_many_bytes_is_reported(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *root = group_new(box, NULL), *g = group_new(box, root);

	(void)state;
	assert_int_equal(pcbatch_group_charge_direct(root, 50), 0);
	assert_int_equal(pcbatch_group_charge_bytes(g, 4096), 0);
	assert_int_equal(pcbatch_group_offline(g), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 4096 + 8192), -ERANGE);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_underflow(g), 2);
	assert_int_equal(pcbatch_group_current(root), 50);
	assert_int_equal(pcbatch_group_uncharge_direct(root, 50), 0);
	assert_int_equal(pcbatch_group_destroy(g), -ERANGE);
	end(box, root);
}

/* Less than a page too much is told of by destroy; and whoever gets the memory next begins without it. */
static void a_part_of_a_page_too_much_is_reported(void **state)
{
	struct box *box = box_with(4096, 0, 0);
	struct pcbatch_group *g = group_new(box, NULL), *again;
	uint32_t id = g->owner.id;

	(void)state;
	assert_int_equal(pcbatch_group_charge_bytes(g, 100), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 100), 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(g, 100), 0);
	assert_int_equal(pcbatch_group_drain(g), 0);
	assert_int_equal(pcbatch_group_current(g), 0);
	assert_int_equal(pcbatch_group_underflow(g), 0);
	assert_int_equal(pcbatch_group_destroy(g), -ERANGE);
	again = group_new(box, NULL);
	assert_int_equal(again->owner.id, id);
	assert_int_equal(pcbatch_group_charge_bytes(again, 100), 0);
	assert_true(pcbatch_group_current(again) > 0);
	assert_int_equal(pcbatch_group_uncharge_bytes(again, 100), 0);
	assert_int_equal(pcbatch_group_destroy(again), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_one_page),
		cmocka_unit_test(rule_19_objects_cost_their_bytes),
		cmocka_unit_test(watermarks),
		cmocka_unit_test(rule_28_sizes_up_to_the_largest),
		cmocka_unit_test(null_groups),
		cmocka_unit_test(limits_in_pages),
		cmocka_unit_test(a_drained_part_of_a_page_can_still_be_charged),
		cmocka_unit_test(remainders_are_never_lost),
		cmocka_unit_test(more_owners_than_slots),
		cmocka_unit_test(rule_13_drains_cover_bytes),
		cmocka_unit_test(remainders_of_two_cpus_meet),
		cmocka_unit_test(past_the_slots),
		cmocka_unit_test(uncharging_too_many_bytes_is_reported),
		cmocka_unit_test(a_part_of_a_page_too_much_is_reported),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
