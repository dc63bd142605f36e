/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that each build of the matrix runs: threads that hop CPUs under timer
 * signals charge more groups than a CPU has slots, in pages and in bytes, while
 * others drain, flush and move limits, and every account must be exact afterwards;
 * and no 64-bit word may ever be read in halves. With STORM_OTHERS, workers of
 * other units or shared objects, built otherwise, take part on the same domain.
 * With STORM_DELAY (x86-64) a thread spends most of its time inside a section, where a
 * unit that stores to a CPU's words without one would be noticed.
 */
#if defined(STORM_DELAY) && defined(__x86_64__)
extern __thread unsigned int storm_delay;
#define PCBATCH_INJECT_ASM(n)                        \
	"movl $60, %%fs:storm_delay@tpoff\n"         \
	"77:\n\t"                                    \
	"decl %%fs:storm_delay@tpoff\n\t"            \
	"jnz 77b\n\t"
#endif
#include "../stress.h"

#if defined(STORM_DELAY) && defined(__x86_64__)
__thread unsigned int storm_delay __attribute__((used));
#endif

#ifndef STORM_OTHERS
#define STORM_OTHERS 0
#endif

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

/* -------------------------------------------------------------- other units */

#if STORM_OTHERS
#ifdef __cplusplus
extern "C" {
#endif
void *storm_other_1(void *worker);
#if STORM_OTHERS > 1
void *storm_other_2(void *worker);
#endif
#ifdef __cplusplus
}
#endif

static void *(*const other_work[])(void *) = {
	storm_other_1,
#if STORM_OTHERS > 1
	storm_other_2,
#endif
};

static void *run_others(void *arg)
{
	static struct stress_worker w[2 * STORM_OTHERS];
	struct stress *s = (struct stress *)arg;
	int i;

	memset(w, 0, sizeof(w));
	for (i = 0; i < 2 * STORM_OTHERS; i++) {
		w[i].s = s;
		w[i].main.rng = (uint64_t)i + 4711;
		w[i].budget = stress_scaled(500000);
		if (pthread_create(&w[i].thread, NULL, other_work[i % STORM_OTHERS], &w[i]) != 0)
			abort();
	}
	for (i = 0; i < 2 * STORM_OTHERS; i++)
		(void)pthread_join(w[i].thread, NULL);
	(void)pthread_mutex_lock(&s->lock);
	for (i = 0; i < 2 * STORM_OTHERS; i++) {
		STRESS_CHECK(w[i].main.ops != 0, i, 0);
		stress_add(&s->done, &w[i].main);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}
#endif

static void run(const char *name, unsigned int workers, uint64_t ops)
{
#if STORM_OTHERS
	pthread_t others;

	stress_catch(); /* their timers run at once */
	assert_int_equal(pthread_create(&others, NULL, run_others, &storm), 0);
	storm.joined = &others;
#endif
	stress_run(&storm, name, workers, ops);
	assert_int_equal(stress_failures, 0);
}

/* ------------------------------------------------------------------- storms */

/* The backend that was asked for is the one in use, unless this build can't have it, and then it says so. */
static void backend(void **state)
{
	const char *env = getenv("PCBATCH_BACKEND");
	const bool rseq = env != NULL && strcmp(env, "rseq") == 0;
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
#if !PCBATCH_USE_ASM
	assert_false(rseq);
	assert_int_equal(pcbatch_domain_init(&storm.dom, &attr), -ENOTSUP);
#endif
	if (rseq) {
		assert_int_equal(pcbatch_domain_init(&storm.dom, &attr), 0);
		assert_int_equal(pcbatch_domain_destroy(&storm.dom), 0);
	}
	assert_int_equal(pcbatch_domain_init(&storm.dom, NULL), 0);
	printf("backend %s, atomics of %s, %zu-bit\n", pcbatch_backend_name(pcbatch_domain_backend(&storm.dom)),
	       PCBATCH_USE_BUILTINS ? "the compiler" : "Concurrency Kit", 8 * sizeof(void *));
	if (env != NULL)
		assert_string_equal(pcbatch_backend_name(pcbatch_domain_backend(&storm.dom)), env);
	assert_int_equal(pcbatch_domain_destroy(&storm.dom), 0);
}

static void everything(void **state)
{
	(void)state;
	stress_init(&storm, 20, NULL);
	storm.timer_us = 200;
	storm.bytes = true;
	storm.disturbers = STRESS_ALL & ~(unsigned int)STRESS_MAX;
	run("everything", 6, 500000);
}

/* Hits above all: what the compiler did to the fast path. */
static void hits(void **state)
{
	(void)state;
	stress_init(&storm, 6, NULL);
	storm.timer_us = 300;
	storm.cap = 1000;
	run("hits", 4, 1500000);
}

static void limited(void **state)
{
	int g;

	(void)state;
	stress_init(&storm, 11, NULL);
	storm.timer_us = 200;
	storm.track = true;
	storm.disturbers = STRESS_DRAIN | STRESS_MAX;
	for (g = 0; g < 11; g += 2)
		stress_limit(&storm, g, 700);
	run("limited", 6, 200000);
}

/* More CPUs than 32 bits have address space for: said so, and no less memory taken than what is written. */
static void more_than_there_is_room_for(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	if (sizeof(void *) > 4)
		return;
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_GENERIC;
	attr.cpus = PCBATCH_CPUS_MAX;
	assert_int_equal(pcbatch_domain_init(&storm.dom, &attr), -ENOMEM);
}

/* ------------------------------------------------------------- torn readings */

#define ALIGNED(type, member) assert_int_equal(offsetof(struct type, member) % 8, 0)

/* What is read and written whole is aligned whole, also where 64-bit members may stand at any multiple of 4 (i386). */
static void words_are_aligned(void **state)
{
	(void)state;
	ALIGNED(pcbatch_domain, counter_batch);
	ALIGNED(pcbatch_domain, counter_mask);
	ALIGNED(pcbatch_domain, stat_threshold);
	ALIGNED(pcbatch_domain, stock_marks);
	ALIGNED(pcbatch_domain, lock);
	ALIGNED(pcbatch_domain, flush_lock);
	ALIGNED(pcbatch_domain, pid);
	ALIGNED(pcbatch_domain, fork_claim);
	ALIGNED(pcbatch_domain, install_gate);
	ALIGNED(pcbatch_domain, free_cells);
	ALIGNED(pcbatch_domain, free_blocks);
	ALIGNED(pcbatch_domain, counters);
	ALIGNED(pcbatch_domain, owners);
	ALIGNED(pcbatch_domain, owner_ids);
	ALIGNED(pcbatch_domain, free_owner);
	ALIGNED(pcbatch_domain, last_flush_ns);
	ALIGNED(pcbatch_domain, flush_visits);
	ALIGNED(pcbatch_owner, check_consume);
	ALIGNED(pcbatch_owner, slot_off);
	ALIGNED(pcbatch_owner, obj_check_consume);
	ALIGNED(pcbatch_owner, obj_check_refill);
	ALIGNED(pcbatch_owner, obj_slot_off);
	ALIGNED(pcbatch_owner, state);
	ALIGNED(pcbatch_owner, refs);
	ALIGNED(pcbatch_owner, children);
	ALIGNED(pcbatch_owner, remainder);
	ALIGNED(pcbatch_owner, next_free);
	ALIGNED(pcbatch_group, low);
	ALIGNED(pcbatch_group, events);
	ALIGNED(pcbatch_group, events_local);
	ALIGNED(pcbatch_page_counter, usage);
	ALIGNED(pcbatch_page_counter, failcnt);
	ALIGNED(pcbatch_page_counter, underflow);
	ALIGNED(pcbatch_page_counter, high);
	ALIGNED(pcbatch_priv_stats_block, updates);
	ALIGNED(pcbatch_priv_stock_block, counts);
}

#define TORN_STEP INT64_C(0x100000001) /* both halves change by one: a word read in halves is no multiple of it */
#define TORN_WORKERS 4

static struct pcbatch_page_counter torn_pages;

static void *torn_work(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t i;

	for (i = 1; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); i++) {
		pcbatch_counter_add(&s->counter, TORN_STEP);
		STRESS_EQUAL(pcbatch_group_stat_mod(s->group[0], 0, TORN_STEP), 0);
		STRESS_EQUAL(pcbatch_page_counter_try_charge(&torn_pages, (uint64_t)TORN_STEP, NULL), 0);
		pcbatch_counter_add(&s->counter, -TORN_STEP);
		STRESS_EQUAL(pcbatch_group_stat_mod(s->group[0], 0, -TORN_STEP), 0);
		STRESS_EQUAL(pcbatch_page_counter_uncharge(&torn_pages, (uint64_t)TORN_STEP), 0);
		if (i % 64 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static void torn_look(struct stress *s)
{
	STRESS_EQUAL(pcbatch_counter_sum(&s->counter) % TORN_STEP, 0);
	STRESS_EQUAL(pcbatch_counter_read(&s->counter) % TORN_STEP, 0);
	STRESS_EQUAL(pcbatch_group_stat_read_signed(s->group[0], 0) % TORN_STEP, 0);
	STRESS_EQUAL(pcbatch_page_counter_read(&torn_pages) % TORN_STEP, 0);
	STRESS_EQUAL(pcbatch_page_counter_peak(&torn_pages) % TORN_STEP, 0);
}

static void torn(void **state)
{
	/* Where a word is two of the machine's, the moment in between is short and has to be met by chance. */
	const uint64_t looks = stress_scaled(sizeof(void *) > 4 ? 2000000 : 30000000);
	pthread_t worker[TORN_WORKERS];
	uint64_t look;
	int i;

	(void)state;
	stress_init(&storm, 2, NULL);
	assert_int_equal(pcbatch_page_counter_init(&torn_pages, NULL), 0);
	for (i = 0; i < TORN_WORKERS; i++)
		assert_int_equal(pthread_create(&worker[i], NULL, torn_work, &storm), 0);
	for (look = 0; look < looks; look++) {
		torn_look(&storm);
		if (look % 64 != 0)
			continue;
		STRESS_EQUAL(pcbatch_stats_flush(&storm.dom, NULL), 0);
		(void)sched_yield();
	}
	__atomic_store_n(&storm.stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < TORN_WORKERS; i++)
		(void)pthread_join(worker[i], NULL);
	printf("torn: %" PRIu64 " looks at five values\n", looks);
	assert_int_equal(pcbatch_page_counter_read(&torn_pages), 0);
	stress_settle(&storm, &storm.done);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(backend), stress_test(words_are_aligned), stress_test(more_than_there_is_room_for),
		stress_test(everything), stress_test(hits),    stress_test(limited),	      stress_test(torn),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
