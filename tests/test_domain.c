/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the making of a domain: every attribute's range, the choice of the backend, and
 * CPU numbers of the caller's own.
 */
#include "util.h"

static bool sections_expected(void)
{
#if PCBATCH_PRIV_LIBC_RSEQ
	return PCBATCH_PRIV_HAVE_SECTIONS && __rseq_size > 0;
#else
	return false;
#endif
}

static struct pcbatch_domain_attr defaults(void)
{
	struct pcbatch_domain_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(pcbatch_domain_attr_init(&attr), 0);
	return attr;
}

static void defaults_are_those_documented(void **state)
{
	struct pcbatch_domain_attr attr = defaults(), zero;
	struct box *box = box_open(attr);
	const struct pcbatch_domain_attr *a = &box->dom.attr;
	uint32_t lines = 1;

	(void)state;
	memset(&zero, 0, sizeof(zero));
	assert_memory_equal(&attr, &zero, sizeof(zero));
	assert_int_equal(pcbatch_domain_attr_init(NULL), -EINVAL);
	assert_int_equal(a->cpus, pcbatch_cpu_possible());
	assert_int_equal(a->stock_batch, 64);
	assert_int_equal(a->stock_high, 128);
	assert_int_equal(a->stock_low, 64);
	assert_int_equal(a->counter_batch, a->cpus > 256 ? 4 * a->cpus : 1024);
	assert_int_equal(a->page_size, 4096);
	assert_int_equal(a->obj_high, 16 * 4096);
	assert_int_equal(a->obj_low, 8 * 4096);
	assert_int_equal(a->stat_items, 1);
	assert_int_equal(a->stat_batch, 64);
	while (lines < 4 * a->cpus)
		lines *= 2;
	assert_int_equal(pcbatch_domain_cpus(&box->dom),
			 pcbatch_domain_backend(&box->dom) == PCBATCH_BACKEND_RSEQ ? a->cpus : lines);
	box_close(box);
}

static void libc_memory_and_no_attributes(void **state)
{
	struct pcbatch_domain *dom = (struct pcbatch_domain *)aligned_alloc(PCBATCH_CACHE_LINE, sizeof(*dom));
	struct pcbatch_group *g = NULL;

	(void)state;
	assert_non_null(dom);
	memset(dom, 0xa5, sizeof(*dom));
	assert_int_equal(pcbatch_domain_init(dom, NULL), 0);
	assert_int_equal(pcbatch_group_create(dom, NULL, NULL, &g), 0);
	assert_int_equal((uintptr_t)g % PCBATCH_CACHE_LINE, 0);
	assert_int_equal(pcbatch_group_charge(g, 1), 0);
	assert_int_equal(pcbatch_group_uncharge(g, 1), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_domain_destroy(dom), 0);
	free(dom);
}

/* What init says to attributes it can judge, told from what it can't afford by an allocator that never has anything. */
static int judged(struct pcbatch_domain_attr attr)
{
	struct box *box = box_new(&attr);
	unsigned char before[sizeof(box->dom)];
	int err;

	box->memory.fail_at = 1;
	memset(&box->dom, 0xa5, sizeof(box->dom));
	memcpy(before, &box->dom, sizeof(before));
	err = pcbatch_domain_init(&box->dom, &attr);
	if (err == -EINVAL)
		assert_memory_equal(&box->dom, before, sizeof(before));
	/* Nor is an allocator asked for more than its size_t can say. */
	if (sizeof(size_t) > 4 || box->memory.calls != 0)
		assert_int_equal(box->memory.calls, err == -EINVAL ? 0 : 1);
	assert_int_equal(pcbatch_domain_backend(&box->dom), PCBATCH_BACKEND_AUTO);
	assert_int_equal(pcbatch_domain_cpus(&box->dom), 0);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EINVAL);
	free(box);
	return err;
}

#define TRY(expected, field, value)                            \
	do {                                                   \
		struct pcbatch_domain_attr a_ = attr;          \
		a_.field = value;                              \
		assert_int_equal(judged(a_), expected);        \
	} while (0)

static void attribute_ranges(void **state)
{
	struct pcbatch_domain_attr attr = defaults();

	(void)state;
	TRY(-ENOMEM, cpus, 1);
	TRY(-ENOMEM, cpus, PCBATCH_CPUS_MAX);
	TRY(-EINVAL, cpus, PCBATCH_CPUS_MAX + 1);
	TRY(-EINVAL, cpus, UINT32_MAX);
	TRY(-EINVAL, backend, (enum pcbatch_backend)3);
	TRY(-ENOMEM, stock_batch, 1);
	TRY(-ENOMEM, stock_batch, 4096);
	TRY(-EINVAL, stock_batch, 4097);
	TRY(-EINVAL, stock_batch, UINT32_MAX);
	TRY(-EINVAL, stock_batch, 1u << 31);
	TRY(-EINVAL, stock_high, 63);
	TRY(-ENOMEM, stock_high, 64);
	TRY(-ENOMEM, stock_high, 16383);
	TRY(-EINVAL, stock_high, 16384);
	TRY(-ENOMEM, stock_low, 128);
	TRY(-EINVAL, stock_low, 129);
	TRY(-ENOMEM, counter_batch, 1);
	TRY(-ENOMEM, counter_batch, 1u << 30);
	TRY(-EINVAL, counter_batch, (1u << 30) + 1);
	TRY(-EINVAL, page_size, 256);
	TRY(-EINVAL, page_size, 511);
	TRY(-ENOMEM, page_size, 512);
	TRY(-EINVAL, page_size, 513);
	TRY(-EINVAL, page_size, 768);
	TRY(-ENOMEM, page_size, 1u << 21);
	TRY(-EINVAL, page_size, 1u << 22);
	TRY(-EINVAL, obj_high, 4095);
	TRY(-ENOMEM, obj_high, 4096);
	TRY(-ENOMEM, obj_high, 1u << 29);
	TRY(-EINVAL, obj_high, (1u << 29) + 1);
	TRY(-ENOMEM, obj_low, 15 * 4096);
	TRY(-EINVAL, obj_low, 15 * 4096 + 1);
	TRY(-ENOMEM, stat_items, 4000);
	TRY(-EINVAL, stat_items, 4001);
	TRY(-EINVAL, stock_item, 1);
	TRY(-ENOMEM, stat_batch, 1u << 20);
	TRY(-EINVAL, stat_batch, (1u << 20) + 1);
	attr.stat_items = 5;
	TRY(-ENOMEM, stock_item, 4);
	TRY(-EINVAL, stock_item, 5);
}

static void half_an_allocator_is_none(void **state)
{
	struct pcbatch_domain_attr attr = defaults();
	struct box *box = box_new(&attr);

	(void)state;
	attr.free = NULL;
	assert_int_equal(pcbatch_domain_init(&box->dom, &attr), -EINVAL);
	attr.free = tracker_free;
	attr.zalloc = NULL;
	assert_int_equal(pcbatch_domain_init(&box->dom, &attr), -EINVAL);
	assert_int_equal(box->memory.calls, 0);
	free(box);
}

static void null_and_misaligned(void **state)
{
	struct pcbatch_domain_attr attr = defaults();
	struct box *box = box_new(&attr);
	struct pcbatch_stock_info info;

	(void)state;
	assert_int_equal(pcbatch_domain_init(NULL, &attr), -EINVAL);
	assert_int_equal(pcbatch_domain_init((struct pcbatch_domain *)(uintptr_t)((char *)&box->dom + 8), &attr), -EINVAL);
	assert_int_equal(pcbatch_domain_destroy(NULL), -EINVAL);
	assert_int_equal(pcbatch_domain_destroy(&box->dom), -EINVAL);
	assert_int_equal(pcbatch_group_reap(NULL), -EINVAL);
	assert_int_equal(pcbatch_thread_quiesce(NULL), -EINVAL);
	assert_int_equal(pcbatch_stock_drain_cpu(NULL), -EINVAL);
	assert_int_equal(pcbatch_stock_drain_all(NULL), -EINVAL);
	assert_int_equal(pcbatch_stock_set_batch(NULL, 64, 0, 0), -EINVAL);
	assert_int_equal(pcbatch_stock_info_read(NULL, &info), -EINVAL);
	assert_int_equal(pcbatch_stats_flush(NULL, NULL), -EINVAL);
	assert_int_equal(pcbatch_stats_try_flush(NULL, NULL), -EINVAL);
	assert_int_equal(pcbatch_stats_flush_periodic(NULL, 1), -EINVAL);
	assert_int_equal(pcbatch_stats_flush_visits(NULL), 0);
	assert_int_equal(pcbatch_domain_backend(NULL), PCBATCH_BACKEND_AUTO);
	assert_int_equal(pcbatch_domain_cpus(NULL), 0);
	free(box);
}

/* ------------------------------------------------------------------ backends */

static int init_under(const char *env, struct pcbatch_domain_attr attr, enum pcbatch_backend *backend)
{
	const char *old = getenv("PCBATCH_BACKEND");
	char *saved = old == NULL ? NULL : strdup(old);
	struct box *box = box_new(&attr);
	int err;

	assert_int_equal(env == NULL ? unsetenv("PCBATCH_BACKEND") : setenv("PCBATCH_BACKEND", env, 1), 0);
	err = pcbatch_domain_init(&box->dom, &attr);
	*backend = pcbatch_domain_backend(&box->dom);
	if (err == 0)
		box_close(box);
	else
		free(box);
	assert_int_equal(saved == NULL ? unsetenv("PCBATCH_BACKEND") : setenv("PCBATCH_BACKEND", saved, 1), 0);
	free(saved);
	return err;
}

static void backend_by_environment_and_attribute(void **state)
{
	const char *const bogus[] = { "bogus", "RSEQ", "rseq ", "auto", "generic,rseq", "0" };
	const int rseq_err = sections_expected() ? 0 : -ENOTSUP;
	const enum pcbatch_backend best = sections_expected() ? PCBATCH_BACKEND_RSEQ : PCBATCH_BACKEND_GENERIC;
	struct pcbatch_rseq_area unregistered = PCBATCH_RSEQ_AREA_INIT;
	struct pcbatch_domain_attr attr = defaults();
	enum pcbatch_backend backend;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(bogus); i++) {
		assert_int_equal(init_under(bogus[i], attr, &backend), -EINVAL);
		assert_int_equal(backend, PCBATCH_BACKEND_AUTO);
	}
	assert_int_equal(init_under(NULL, attr, &backend), 0);
	assert_int_equal(backend, best);
	assert_int_equal(init_under("", attr, &backend), 0);
	assert_int_equal(backend, best);
	assert_int_equal(init_under("generic", attr, &backend), 0);
	assert_int_equal(backend, PCBATCH_BACKEND_GENERIC);
	assert_int_equal(init_under("rseq", attr, &backend), rseq_err);
	assert_int_equal(backend, rseq_err == 0 ? PCBATCH_BACKEND_RSEQ : PCBATCH_BACKEND_AUTO);
	/* The attribute is stronger, and does not even look at the environment. */
	attr.backend = PCBATCH_BACKEND_GENERIC;
	assert_int_equal(init_under("rseq", attr, &backend), 0);
	assert_int_equal(backend, PCBATCH_BACKEND_GENERIC);
	assert_int_equal(init_under("bogus", attr, &backend), 0);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	assert_int_equal(init_under("generic", attr, &backend), rseq_err);
	assert_int_equal(backend, rseq_err == 0 ? PCBATCH_BACKEND_RSEQ : PCBATCH_BACKEND_AUTO);
	/* An area that nobody registered: an error where rseq is forced, generic where it is not. */
	attr.thread_area = &unregistered;
	assert_int_equal(init_under(NULL, attr, &backend), -ENOTSUP);
	assert_int_equal(backend, PCBATCH_BACKEND_AUTO);
	attr.backend = PCBATCH_BACKEND_AUTO;
	assert_int_equal(init_under("rseq", attr, &backend), -ENOTSUP);
	assert_int_equal(init_under(NULL, attr, &backend), 0);
	assert_int_equal(backend, PCBATCH_BACKEND_GENERIC);
	/* CPU numbers of the caller's own. */
	attr = defaults();
	attr.current_cpu = box_cpu;
	attr.backend = PCBATCH_BACKEND_RSEQ;
	assert_int_equal(init_under(NULL, attr, &backend), -EINVAL);
	attr.backend = PCBATCH_BACKEND_AUTO;
	assert_int_equal(init_under("rseq", attr, &backend), 0);
	assert_int_equal(backend, PCBATCH_BACKEND_GENERIC);
	assert_string_equal(pcbatch_backend_name(PCBATCH_BACKEND_RSEQ), "rseq");
	assert_string_equal(pcbatch_backend_name(PCBATCH_BACKEND_GENERIC), "generic");
	assert_string_equal(pcbatch_backend_name(PCBATCH_BACKEND_AUTO), "auto");
}

static void quiesce_clears_rseq_cs(void **state)
{
	struct box *box = box_open(defaults());
	struct pcbatch_counter c;

	(void)state;
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	pcbatch_counter_add(&c, 1);
	assert_int_equal(pcbatch_thread_quiesce(&box->dom), 0);
	if (sections_expected())
		assert_int_equal(pcbatch_priv_rseq_area(pcbatch_priv_hit_off(0))->rseq_cs, 0);
	pcbatch_counter_add(&c, 1);
	assert_int_equal(pcbatch_counter_sum(&c), 2);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

/* 512 CPUs on whatever this machine has; ids that are none go past the slots and stay exact. */
static void cpu_numbers_of_the_callers_own(void **state)
{
	static const int none[] = { -1, -2, 512, 513, 16384, 65536, INT32_MAX, INT32_MIN };
	struct pcbatch_domain_attr attr = defaults();
	struct pcbatch_counter c;
	struct pcbatch_group *g;
	struct box *box;
	int64_t live = 0;
	size_t i;

	(void)state;
	attr.cpus = 512;
	attr.current_cpu = box_cpu;
	box = box_open(attr);
	g = group_new(box, NULL);
	assert_int_equal(pcbatch_domain_cpus(&box->dom), 512);
	assert_int_equal(pcbatch_counter_init(&c, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_error_bound(&c), 512 * 4 * 512);
	for (box->cpu = 0; box->cpu < 512; box->cpu++) {
		pcbatch_counter_add(&c, 1);
		assert_int_equal(pcbatch_group_charge(g, 2), 0);
		live += 2;
		assert_int_equal(pcbatch_group_current(g), 64 * (box->cpu + 1));
	}
	assert_int_equal(pcbatch_counter_read(&c), 0);
	assert_int_equal(pcbatch_counter_sum(&c), 512);
	assert_int_equal(cached_of(g).slots, 512);
	assert_live(g, live);
	for (i = 0; i < COUNT_OF(none); i++) {
		int64_t before = pcbatch_counter_read(&c);

		box->cpu = none[i];
		pcbatch_counter_add(&c, 5);
		assert_int_equal(pcbatch_counter_read(&c), before + 5);
		assert_int_equal(pcbatch_counter_sum(&c), before + 5 + 512);
		assert_int_equal(pcbatch_group_charge(g, 3), 0);
		assert_live(g, live + 3);
		assert_int_equal(pcbatch_group_uncharge(g, 4), 0);
		live -= 1;
		assert_live(g, live);
		assert_int_equal(cached_of(g).slots, 512);
		assert_int_equal(pcbatch_stock_drain_cpu(&box->dom), -EAGAIN);
	}
	assert_int_equal(pcbatch_stock_drain_all(&box->dom), 0);
	assert_int_equal(pcbatch_group_current(g), live);
	assert_int_equal(pcbatch_group_uncharge(g, (uint64_t)live), 0);
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_counter_destroy(&c), 0);
	box_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_documented),
		cmocka_unit_test(libc_memory_and_no_attributes),
		cmocka_unit_test(attribute_ranges),
		cmocka_unit_test(half_an_allocator_is_none),
		cmocka_unit_test(null_and_misaligned),
		cmocka_unit_test(backend_by_environment_and_attribute),
		cmocka_unit_test(quiesce_clears_rseq_cs),
		cmocka_unit_test(cpu_numbers_of_the_callers_own),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
