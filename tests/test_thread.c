/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that threads may be of any kind: without a registered rseq area from the
 * start or from the middle on, made by clone with blocked signals or detached,
 * ending at any time with pages cached; and that registering an area of one's own
 * is refused where libc owns the registration.
 */
#include "stress.h"

#if defined(__GLIBC__)
#include <sys/rseq.h>
#endif

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

/* Gives up glibc's registration of this thread; false when there is none. */
static bool unregister_libc(void)
{
#if PCBATCH_PRIV_LIBC_RSEQ
	char *area = (char *)pcbatch_priv_thread_pointer() + __rseq_offset;
	unsigned int length;

	if (__rseq_size == 0)
		return false;
	/* glibc says how many bytes have a meaning and registers at least 32. */
	length = __rseq_size < 32 ? 32 : __rseq_size;
	return syscall(SYS_rseq, area, length, 1, 0x53053053) == 0;
#else
	return false;
#endif
}

static void *unregistered(void *arg)
{
	struct stress_worker *w = (struct stress_worker *)arg;
	uint64_t budget = w->budget;

	/* Half registered, half not. */
	w->budget = budget / 2;
	(void)stress_work(w);
	if (pcbatch_domain_backend(&w->s->dom) == PCBATCH_BACKEND_RSEQ) {
		STRESS_CHECK(unregister_libc(), errno, 0);
		STRESS_EQUAL(pcbatch_stock_drain_cpu(&w->s->dom), -EAGAIN);
	} else {
		(void)unregister_libc();
	}
	(void)stress_work(w);
	return NULL;
}

static void mixed(void **state)
{
	struct stress_worker w[6];
	pthread_t drainer;
	int i;

	(void)state;
	stress_init(&storm, 9, NULL);
	stress_catch();
	storm.timer_us = 300;
	storm.bytes = true;
	stress_limit(&storm, 0, 3000);
	memset(w, 0, sizeof(w));
	for (i = 0; i < 6; i++) {
		w[i].s = &storm;
		w[i].main.rng = (uint64_t)(i + 1) * 4242;
		w[i].handler.rng = (uint64_t)(i + 1) * 2424;
		w[i].budget = stress_scaled(100000);
		assert_int_equal(pthread_create(&w[i].thread, NULL, i % 2 != 0 ? unregistered : stress_work, &w[i]), 0);
	}
	assert_int_equal(pthread_create(&drainer, NULL, stress_drainer, &storm), 0);
	for (i = 0; i < 6; i++)
		(void)pthread_join(w[i].thread, NULL);
	__atomic_store_n(&storm.stop, 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(drainer, NULL);
	for (i = 0; i < 6; i++) {
		stress_add(&storm.done, &w[i].main);
		stress_add(&storm.done, &w[i].handler);
	}
	stress_settle(&storm, &storm.done);
	assert_int_equal(stress_failures, 0);
}

/* An unregistered thread is counted as going direct, and its limits are as exact. */
static void *direct_only(void *arg)
{
	struct pcbatch_stock_info before, after;
	int i;

	(void)arg;
	STRESS_CHECK(unregister_libc(), errno, 0);
	STRESS_EQUAL(pcbatch_stock_info_read(&storm.dom, &before), 0);
	for (i = 0; i < 100; i++) {
		STRESS_EQUAL(pcbatch_group_charge(storm.group[0], 10), 0);
		STRESS_EQUAL(pcbatch_group_charge(storm.group[0], 1), -ENOMEM);
		STRESS_EQUAL(pcbatch_group_current(storm.group[0]), 10);
		STRESS_EQUAL(pcbatch_group_uncharge(storm.group[0], 10), 0);
		pcbatch_counter_add(&storm.counter, 3);
		STRESS_EQUAL(pcbatch_counter_read(&storm.counter), 3 * (i + 1));
	}
	STRESS_EQUAL(pcbatch_stock_info_read(&storm.dom, &after), 0);
	STRESS_EQUAL(after.hits, before.hits);
	return NULL;
}

static void all_direct(void **state)
{
	pthread_t thread;

	(void)state;
	stress_init(&storm, 3, NULL);
	if (pcbatch_domain_backend(&storm.dom) == PCBATCH_BACKEND_RSEQ) {
		stress_limit(&storm, 0, 10);
		assert_int_equal(pthread_create(&thread, NULL, direct_only, NULL), 0);
		(void)pthread_join(thread, NULL);
		storm.done.count = 300;
	}
	stress_settle(&storm, &storm.done);
	assert_int_equal(stress_failures, 0);
}

/* Many short threads, all gone with something cached, most of them never joined. */
static uint32_t running;

static void *brief(void *arg)
{
	STRESS_EQUAL(pcbatch_group_charge_stat(storm.group[(uintptr_t)arg % 9], 3, 1), 0);
	pcbatch_counter_add(&storm.counter, 1);
	STRESS_EQUAL(pcbatch_group_uncharge_stat(storm.group[(uintptr_t)arg % 9], 2, 0), 0);
	(void)__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void brief_threads(void **state)
{
	pthread_attr_t attr;
	pthread_t thread, drainer;
	uintptr_t i, n = (uintptr_t)stress_scaled(5000);

	(void)state;
	stress_init(&storm, 9, NULL);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_create(&drainer, NULL, stress_drainer, &storm), 0);
	for (i = 0; i < n; i++) {
		while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) > 32)
			(void)sched_yield();
		(void)__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_create(&thread, &attr, brief, (void *)i), 0);
		storm.done.pages[i % 9] += 1;
		storm.done.stat[i % 9] += 1;
		storm.done.count++;
	}
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) != 0)
		(void)usleep(100);
	__atomic_store_n(&storm.stop, 1, __ATOMIC_SEQ_CST);
	(void)pthread_join(drainer, NULL);
	(void)pthread_attr_destroy(&attr);
	stress_settle(&storm, &storm.done);
	assert_int_equal(stress_failures, 0);
}

/* Two threads killed by cancellation in the middle of a loop of calls: at most what they had in flight is left. */
static void *endless(void *arg)
{
	(void)arg;
	(void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	for (;;) {
		STRESS_EQUAL(pcbatch_group_charge(storm.group[1], 1), 0);
		STRESS_EQUAL(pcbatch_group_uncharge(storm.group[1], 1), 0);
		pthread_testcancel();
	}
	return NULL;
}

static void cancelled(void **state)
{
	pthread_t thread[3];
	int i;

	(void)state;
	stress_init(&storm, 3, NULL);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, endless, NULL), 0);
	(void)usleep(20000);
	for (i = 0; i < 3; i++) {
		(void)pthread_cancel(thread[i]);
		(void)pthread_join(thread[i], NULL);
	}
	stress_settle(&storm, &storm.done);
	assert_int_equal(stress_failures, 0);
}

/* ---------------------------------------------------------- own registration */

static __thread struct pcbatch_rseq_area area = PCBATCH_RSEQ_AREA_INIT;

static void *register_freed(void *arg)
{
	(void)arg;
	STRESS_EQUAL(pcbatch_rseq_unregister(&area), -EBUSY);
	if (!unregister_libc())
		return NULL;
	/* Nobody owns it now. */
	STRESS_EQUAL(pcbatch_rseq_register(&area), 0);
	STRESS_CHECK((int32_t)area.cpu_id >= 0, area.cpu_id, 0);
	STRESS_EQUAL(pcbatch_rseq_register(&area), -EBUSY);
	STRESS_EQUAL(pcbatch_rseq_unregister(&area), 0);
	STRESS_EQUAL(area.cpu_id, UINT32_MAX);
	STRESS_EQUAL(pcbatch_rseq_unregister(&area), -EBUSY);
	return NULL;
}

static void registration_errors(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pcbatch_rseq_register(NULL), -EINVAL);
	assert_int_equal(pcbatch_rseq_unregister(NULL), -EINVAL);
	/* No sections in this unit, or no rseq in an emulator. */
	if (pcbatch_rseq_unregister(&area) == -ENOSYS)
		skip();
#if defined(__GLIBC__)
	if (__rseq_size > 0)
		assert_int_equal(pcbatch_rseq_register(&area), -EBUSY);
#endif
	assert_int_equal(pthread_create(&thread, NULL, register_freed, NULL), 0);
	(void)pthread_join(thread, NULL);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(mixed),	    stress_test(all_direct), stress_test(brief_threads),
		stress_test(cancelled), stress_test(registration_errors),
	};

	cmocka_set_test_filter(getenv("PCBATCH_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
