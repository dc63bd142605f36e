/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves contract points 1 and 2 of counters under storm: no add is lost or counted
 * twice whatever folds meanwhile, a sum never goes back while only positive adds
 * run, contains every add that happened before it, and read stays within its bound.
 */
#include "stress.h"

#define ADDERS 6
#define DELTA_MAX 40

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_counter up, both;
static uint64_t published[ADDERS]; /* what each thread says it has added to `up`, after the add */
static int64_t both_sum[ADDERS], handler_up[ADDERS], handler_both[ADDERS];
static uint32_t stop;
static uint64_t operations;
static __thread int self = -1;

static void on_timer(int sig)
{
	(void)sig;
	if (self < 0)
		return;
	pcbatch_counter_add(&up, 3);
	handler_up[self] += 3;
	pcbatch_counter_sub(&both, 11);
	handler_both[self] -= 11;
	if ((handler_up[self] & 31) == 0)
		pcbatch_counter_flush(&up);
}

static void *adder(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t rng = 100 + (uint64_t)me, n = stress_scaled(3000000), r, sum = 0, i;
	uint64_t soak = stress_env("PCBATCH_SOAK_SECONDS", 0), deadline = stress_now_ns() + soak * 1000000000u;
	timer_t timer;
	bool timed = stress_timer(200, &timer);

	__atomic_store_n(&self, me, __ATOMIC_SEQ_CST);
	for (i = 0; soak == 0 ? i < n : (i & 0xffff) != 0 || stress_now_ns() < deadline; i++) {
		r = stress_random(&rng);
		if ((r & 15) == 0)
			(void)pcbatch_counter_add_batch(&up, (int64_t)(r >> 8) % DELTA_MAX, 1 + (int64_t)(r >> 20 & 511));
		else
			pcbatch_counter_add(&up, (int64_t)(r >> 8) % DELTA_MAX);
		sum += (uint64_t)((int64_t)(r >> 8) % DELTA_MAX);
		__atomic_store_n(&published[me], sum, __ATOMIC_RELEASE);
		pcbatch_counter_add(&both, (int64_t)(r >> 16 & 1023) - 511);
		both_sum[me] += (int64_t)(r >> 16 & 1023) - 511;
		if ((i & 0x3ff) == 0)
			stress_pin((int)(r >> 30 & 0xff));
	}
	__atomic_store_n(&self, -1, __ATOMIC_SEQ_CST);
	if (timed)
		(void)timer_delete(timer);
	(void)__atomic_add_fetch(&operations, 2 * i, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *reader(void *arg)
{
	/* In flight: per thread an add and its handler's, and a fold each of at most a batch of either kind. */
	const int64_t flight = 2 * (ADDERS + 3) * (1024 + DELTA_MAX);
	int64_t last = 0, bound = pcbatch_counter_error_bound(&up);
	int i;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int64_t known = 0, first, second, fenced = 0, value;

		for (i = 0; i < ADDERS; i++)
			known += (int64_t)__atomic_load_n(&published[i], __ATOMIC_ACQUIRE);
		first = pcbatch_counter_sum(&up);
		value = pcbatch_counter_read(&up);
		STRESS_EQUAL(pcbatch_counter_sum_fenced(&up, &fenced), 0);
		second = pcbatch_counter_sum(&up);
		STRESS_CHECK(first >= known, first, known);
		STRESS_CHECK(first >= last, first, last);
		STRESS_CHECK(fenced >= first && second >= fenced, fenced, second);
		STRESS_CHECK(value > first - bound - flight, value, first);
		STRESS_CHECK(value < second + bound + flight, value, second);
		last = second;
	}
	return NULL;
}

static void *folder(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pcbatch_counter_flush(&up);
		pcbatch_counter_flush(&both);
		(void)pcbatch_counter_compare(&both, 0);
		(void)usleep(20);
	}
	return NULL;
}

static void run(const char *name, uint32_t batch)
{
	struct pcbatch_domain_attr attr;
	struct sigaction action;
	pthread_t thread[ADDERS], other[3];
	int64_t expected_up = 0, expected_both = 5;
	uint64_t start = stress_now_ns();
	intptr_t i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGRTMIN, &action, NULL);
	memset(published, 0, sizeof(published));
	memset(both_sum, 0, sizeof(both_sum));
	memset(handler_up, 0, sizeof(handler_up));
	memset(handler_both, 0, sizeof(handler_both));
	stop = 0;
	operations = 0;
	stress_find_cpus();
	(void)pcbatch_domain_attr_init(&attr);
	attr.counter_batch = batch;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	assert_int_equal(pcbatch_counter_init(&up, &dom, 0), 0);
	assert_int_equal(pcbatch_counter_init(&both, &dom, 5), 0);
	for (i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, adder, (void *)i), 0);
	assert_int_equal(pthread_create(&other[0], NULL, reader, NULL), 0);
	assert_int_equal(pthread_create(&other[1], NULL, reader, NULL), 0);
	assert_int_equal(pthread_create(&other[2], NULL, folder, NULL), 0);
	for (i = 0; i < ADDERS; i++)
		(void)pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 3; i++)
		(void)pthread_join(other[i], NULL);
	for (i = 0; i < ADDERS; i++) {
		expected_up += (int64_t)published[i] + handler_up[i];
		expected_both += both_sum[i] + handler_both[i];
	}
	stress_print(name, operations, 0, start);
	STRESS_EQUAL(pcbatch_counter_sum(&up), expected_up);
	STRESS_EQUAL(pcbatch_counter_sum(&both), expected_both);
	STRESS_CHECK(llabs(pcbatch_counter_read(&both) - expected_both) < pcbatch_counter_error_bound(&both),
		     pcbatch_counter_read(&both), expected_both);
	pcbatch_counter_flush(&up);
	pcbatch_counter_flush(&both);
	STRESS_EQUAL(pcbatch_counter_read(&up), expected_up);
	STRESS_EQUAL(pcbatch_counter_read(&both), expected_both);
	assert_int_equal(pcbatch_counter_destroy(&up), 0);
	assert_int_equal(pcbatch_counter_destroy(&both), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

static void default_batch(void **state)
{
	(void)state;
	run("default_batch", 0);
}

static void batch_of_one(void **state)
{
	(void)state;
	run("batch_of_one", 1);
}

/* ------------------------------------------------------------------ one line */

static int cpu_zero(void *ctx)
{
	(void)ctx;
	return 0;
}

static struct pcbatch_counter narrow;

static void *narrow_adder(void *arg)
{
	uint64_t i, n = *(const uint64_t *)arg;

	for (i = 0; i < n; i++)
		pcbatch_counter_add(&narrow, 1);
	return NULL;
}

/* All threads share the only line, so that lost swaps, three in a row among them, have nowhere to go. */
static void one_line(void **state)
{
	struct pcbatch_domain_attr attr;
	pthread_t thread[ADDERS];
	uint64_t n = stress_scaled(4000000);
	int i;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.current_cpu = cpu_zero;
	attr.cpus = 1;
	assert_int_equal(pcbatch_domain_init(&dom, &attr), 0);
	assert_int_equal(pcbatch_counter_init(&narrow, &dom, 0), 0);
	for (i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, narrow_adder, &n), 0);
	for (i = 0; i < ADDERS; i++)
		(void)pthread_join(thread[i], NULL);
	STRESS_EQUAL(pcbatch_counter_sum(&narrow), (int64_t)n * ADDERS);
	assert_int_equal(pcbatch_counter_destroy(&narrow), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

/* ---------------------------------------------------------------- sum_fenced */

/*
 * An add that has returned may still stand in its CPU's store buffer. When it returned
 * before this thread's flag could be seen there, a fenced sum made after the flag was
 * raised contains it.
 */
static uint64_t turn PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);  /* whose round it is */
static uint64_t flag PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static uint64_t before PCBATCH_ALIGNED(PCBATCH_CACHE_LINE); /* the round in which the add came before the flag */
static uint64_t added PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);  /* rounds that are over */

/* Far-away lines: stores to them hold up those behind them in the store buffer. */
#define FAR_BYTES (16u << 20)
static volatile char far_away[FAR_BYTES];

static void *returning(void *arg)
{
	uint64_t round, rounds = *(const uint64_t *)arg, wait, rng = 17, k;
	volatile uint64_t n;

	stress_pin(1);
	for (k = 0; k < FAR_BYTES; k += 512)
		far_away[k] = 1;
	for (round = 1; round <= rounds; round++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != round)
			if (stress_cpus < 2)
				(void)sched_yield();
		wait = round % 97;
		for (n = 0; n < wait; n++)
			;
		for (k = 0; k < 12; k++)
			far_away[stress_random(&rng) % FAR_BYTES] = 2;
		pcbatch_counter_add(&narrow, 1);
		if (__atomic_load_n(&flag, __ATOMIC_RELAXED) != round)
			__atomic_store_n(&before, round, __ATOMIC_RELAXED);
		__atomic_store_n(&added, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void fenced_sum_has_what_returned(void **state)
{
	uint64_t round, rounds = stress_scaled(30000), wait, early = 0;
	volatile uint64_t n;
	pthread_t thread;
	int64_t sum = 0;

	(void)state;
	stress_find_cpus();
	turn = flag = before = added = 0;
	assert_int_equal(pcbatch_domain_init(&dom, NULL), 0);
	assert_int_equal(pcbatch_counter_init(&narrow, &dom, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, returning, &rounds), 0);
	stress_pin(0);
	for (round = 1; round <= rounds; round++) {
		__atomic_store_n(&turn, round, __ATOMIC_RELEASE);
		wait = round / 97 % 31 * 10;
		for (n = 0; n < wait; n++)
			;
		__atomic_store_n(&flag, round, __ATOMIC_RELAXED);
		STRESS_EQUAL(pcbatch_counter_sum_fenced(&narrow, &sum), 0);
		while (__atomic_load_n(&added, __ATOMIC_ACQUIRE) != round)
			if (stress_cpus < 2)
				(void)sched_yield();
		if (__atomic_load_n(&before, __ATOMIC_RELAXED) == round) {
			early++;
			STRESS_EQUAL(sum, (int64_t)round);
		}
	}
	(void)pthread_join(thread, NULL);
	printf("fenced_sum_has_what_returned: %" PRIu64 " of %" PRIu64 " adds came first\n", early, rounds);
	stress_unpin();
	assert_int_equal(pcbatch_counter_destroy(&narrow), 0);
	assert_int_equal(pcbatch_domain_destroy(&dom), 0);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(default_batch),
		stress_test(batch_of_one),
		stress_test(one_line),
		stress_test(fenced_sum_has_what_returned),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
