/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* backend: none */
/*
 * Proves the choice of the backend and what goes on working in hostile places: no
 * rseq area from libc, rseq or membarrier refused by a filter from the start or
 * from the middle on, and an rseq area of the program's own. Each case runs this
 * program again, or in a child.
 */
#include "stress.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

static const char *self_path;

/* Refuses one system call with an errno, for all threads of this process from now on. */
static bool deny(int number, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static bool have_rseq(void)
{
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	struct pcbatch_domain_attr attr;

	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	if (pcbatch_domain_init(&dom, &attr) != 0)
		return false;
	return pcbatch_domain_destroy(&dom) == 0;
}

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

static void small_storm(const struct pcbatch_domain_attr *attr, enum pcbatch_backend backend)
{
	stress_init(&storm, 9, attr);
	STRESS_EQUAL(pcbatch_domain_backend(&storm.dom), backend);
	storm.timer_us = 300;
	storm.bytes = true;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH | STRESS_CHURN;
	stress_run(&storm, pcbatch_backend_name(backend), 6, 20000);
}

/* Where rseq can't work: automatic means generic, and forcing is an error that changes nothing. */
static void falls_back(void *arg)
{
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
	struct pcbatch_domain_attr attr;

	(void)arg;
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	STRESS_EQUAL(pcbatch_domain_init(&dom, &attr), -ENOTSUP);
	(void)setenv("PCBATCH_BACKEND", "rseq", 1);
	STRESS_EQUAL(pcbatch_domain_init(&dom, NULL), -ENOTSUP);
	(void)setenv("PCBATCH_BACKEND", "nonsense", 1);
	STRESS_EQUAL(pcbatch_domain_init(&dom, NULL), -EINVAL);
	(void)unsetenv("PCBATCH_BACKEND");
	small_storm(NULL, PCBATCH_BACKEND_GENERIC);
}

/* ------------------------------------------------------- areas of our own */

static __thread struct pcbatch_rseq_area area = PCBATCH_RSEQ_AREA_INIT;

static void *own_worker(void *arg)
{
	struct stress_worker *w = (struct stress_worker *)arg;
	bool registered = w->main.rng % 3 != 0;

	if (registered)
		STRESS_EQUAL(pcbatch_rseq_register(&area), 0);
	(void)stress_work(w);
	if (registered)
		STRESS_EQUAL(pcbatch_rseq_unregister(&area), 0);
	return NULL;
}

/* libc has no area: the program registers its own, in two of three threads. */
static void own_area(void *arg)
{
	struct pcbatch_domain_attr attr;
	struct stress_worker w[6];
	struct pcbatch_stock_info info;
	pthread_t drainer;
	int i;

	(void)arg;
	STRESS_EQUAL(pcbatch_rseq_register(&area), 0);
	STRESS_EQUAL(pcbatch_rseq_register(&area), -EBUSY);
	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	attr.thread_area = &area;
	stress_init(&storm, 9, &attr);
	STRESS_EQUAL(pcbatch_domain_backend(&storm.dom), PCBATCH_BACKEND_RSEQ);
	stress_catch();
	storm.timer_us = 300;
	memset(w, 0, sizeof(w));
	for (i = 0; i < 6; i++) {
		w[i].s = &storm;
		w[i].main.rng = (uint64_t)i + 900;
		w[i].handler.rng = (uint64_t)i + 1900;
		w[i].budget = 100000;
		assert_int_equal(pthread_create(&w[i].thread, NULL, own_worker, &w[i]), 0);
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
	STRESS_EQUAL(pcbatch_stock_info_read(&storm.dom, &info), 0);
	STRESS_CHECK(info.hits > 1000, info.hits, 0);
	stress_settle(&storm, &storm.done);
	STRESS_EQUAL(pcbatch_rseq_unregister(&area), 0);
}

/* ------------------------------------------- the fence refused from now on */

static void late_denial(void *arg)
{
	int error = *(const int *)arg, i;
	struct pcbatch_domain_attr attr;
	struct pcbatch_counter counter;
	struct pcbatch_group *g = NULL, *other = NULL;
	struct pcbatch_stock_info info, later;
	int64_t value = 0, usage;
	static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	stress_pin(0);
	STRESS_EQUAL(pcbatch_domain_init(&dom, &attr), 0);
	STRESS_EQUAL(pcbatch_counter_init(&counter, &dom, 4), 0);
	STRESS_EQUAL(pcbatch_group_create(&dom, NULL, NULL, &g), 0);
	STRESS_EQUAL(pcbatch_group_create(&dom, NULL, NULL, &other), 0);
	STRESS_EQUAL(pcbatch_group_charge_stat(g, 5, 5), 0);
	STRESS_EQUAL(pcbatch_group_charge(other, 1), 0);
	usage = pcbatch_group_current(g);
	STRESS_EQUAL(usage, 64);
	STRESS_CHECK(deny(SYS_membarrier, error), errno, 0);

	/* Drains take nothing, say why, and leave the gates open. */
	STRESS_EQUAL(pcbatch_group_drain(g), -error);
	STRESS_EQUAL(pcbatch_group_drain_subtree(g), -error);
	STRESS_EQUAL(pcbatch_stock_drain_all(&dom), -error);
	STRESS_EQUAL(pcbatch_group_current(g), usage);
	STRESS_EQUAL(pcbatch_stock_info_read(&dom, &info), 0);
	for (i = 0; i < 20; i++) {
		STRESS_EQUAL(pcbatch_group_charge_stat(g, 2, 2), 0);
		STRESS_EQUAL(pcbatch_group_uncharge_stat(g, 2, 2), 0);
	}
	STRESS_EQUAL(pcbatch_stock_info_read(&dom, &later), 0);
	STRESS_CHECK(later.hits >= info.hits + 30, later.hits, info.hits);
	STRESS_EQUAL(pcbatch_group_current(g), usage);

	/* Sums are exact for what this thread did, and say that the fence is missing. */
	pcbatch_counter_add(&counter, 38);
	STRESS_EQUAL(pcbatch_counter_sum_fenced(&counter, &value), -error);
	STRESS_EQUAL(value, 42);
	STRESS_EQUAL(pcbatch_group_stat_mod(other, 0, 7), 0);
	STRESS_EQUAL(pcbatch_stats_flush(&dom, NULL), -error);
	STRESS_EQUAL(pcbatch_group_stat_read(other, 0), 7);

	/* A limit still is one. */
	STRESS_EQUAL(pcbatch_group_set_max(g, 64), 0);
	STRESS_EQUAL(pcbatch_group_charge(g, 60), -ENOMEM);
	STRESS_EQUAL(pcbatch_group_current(g), usage);

	/* Live charges: as ever. None: it stays, usable, since a slot may hold it. */
	STRESS_CHECK(pcbatch_group_destroy(g) < 0, 0, 0);
	STRESS_EQUAL(pcbatch_group_uncharge_stat(g, 5, 5), 0);
	STRESS_EQUAL(pcbatch_group_destroy(g), -error);
	STRESS_EQUAL(pcbatch_group_charge(g, 1), 0);
	STRESS_EQUAL(pcbatch_group_uncharge(g, 1), 0);
	STRESS_EQUAL(pcbatch_group_offline(g), -error);
	STRESS_EQUAL(pcbatch_group_charge(g, 1), 0);
	STRESS_EQUAL(pcbatch_group_uncharge(g, 1), 0);

	/* This CPU's slots need no fence. */
	STRESS_EQUAL(pcbatch_stock_drain_cpu(&dom), 0);
	STRESS_EQUAL(pcbatch_group_current(g), 0);
	STRESS_EQUAL(pcbatch_group_current(other), 1);
	STRESS_EQUAL(pcbatch_domain_destroy(&dom), -EBUSY);
	STRESS_EQUAL(pcbatch_group_underflow(g), 0);
}

static void early_denial(void *arg)
{
	STRESS_CHECK(deny(SYS_membarrier, *(const int *)arg), errno, 0);
	falls_back(NULL);
}

/* A filter comes in the middle of a storm, which stays exact. */
static void *deny_soon(void *arg)
{
	(void)arg;
	(void)usleep(30000);
	STRESS_CHECK(deny(SYS_membarrier, EPERM), errno, 0);
	return NULL;
}

static void denial_under_fire(void *arg)
{
	struct stress_worker w[4];
	struct stress_account all;
	pthread_t thread;
	int i;

	(void)arg;
	stress_init(&storm, 9, NULL);
	storm.bytes = true;
	memset(w, 0, sizeof(w));
	memset(&all, 0, sizeof(all));
	assert_int_equal(pthread_create(&thread, NULL, deny_soon, NULL), 0);
	for (i = 0; i < 4; i++) {
		w[i].s = &storm;
		w[i].main.rng = (uint64_t)i + 5;
		w[i].budget = 1000000;
		assert_int_equal(pthread_create(&w[i].thread, NULL, stress_work, &w[i]), 0);
	}
	while (__atomic_load_n(&w[0].main.ops, __ATOMIC_RELAXED) < 500000) {
		int err = pcbatch_stock_drain_all(&storm.dom);

		STRESS_CHECK(err == 0 || err == -EPERM, err, 0);
		err = pcbatch_stats_flush(&storm.dom, NULL);
		STRESS_CHECK(err == 0 || err == -EPERM, err, 0);
		(void)usleep(100);
	}
	for (i = 0; i < 4; i++) {
		(void)pthread_join(w[i].thread, NULL);
		stress_add(&all, &w[i].main);
	}
	(void)pthread_join(thread, NULL);
	/* No thread is left: what a flush without a fence reads is all there is. */
	for (i = 0; i < storm.groups; i++) {
		int64_t bytes = 0, pages, stat, slot_bytes;
		int g;

		for (g = i; g < storm.groups; g++) {
			if (!stress_below(&storm, g, i))
				continue;
			stress_cached(&storm, g, &pages, &stat, &slot_bytes);
			bytes += (all.pages[g] + pages) * STRESS_PAGE + all.bytes[g] + slot_bytes +
				 (int64_t)storm.group[g]->owner.remainder;
		}
		STRESS_EQUAL((int64_t)storm.group[i]->owner.pages.usage * STRESS_PAGE, bytes);
	}
	STRESS_EQUAL(pcbatch_counter_sum(&storm.counter), all.count);
}

/* --------------------------------------------------------- running again */

struct again {
	const char *mode;
	const char *tunables;
	int deny_rseq; /* errno, or 0 */
};

static void exec_again(void *arg)
{
	const struct again *a = (const struct again *)arg;

	(void)unsetenv("PCBATCH_BACKEND");
	if (a->tunables != NULL)
		(void)setenv("GLIBC_TUNABLES", a->tunables, 1);
	if (a->deny_rseq != 0)
		STRESS_CHECK(deny(SYS_rseq, a->deny_rseq), errno, 0);
	(void)execl(self_path, self_path, a->mode, (char *)NULL);
	STRESS_CHECK(false, errno, 0);
}

static void run_again(const char *mode, const char *tunables, int deny_rseq)
{
	struct again a = { mode, tunables, deny_rseq };

	assert_int_equal(stress_in_child(exec_again, &a), 0);
}

static void tunable(void **state)
{
	(void)state;
	run_again("falls-back", "glibc.pthread.rseq=0", 0);
}

static void tunable_own_area(void **state)
{
	(void)state;
	if (!have_rseq())
		skip();
	run_again("own-area", "glibc.pthread.rseq=0", 0);
}

static void rseq_denied(void **state)
{
	(void)state;
	run_again("falls-back", NULL, ENOSYS);
	run_again("falls-back", NULL, EPERM);
}

/* Registering one's own area then is -ENOSYS, whatever the filter says. */
static void own_area_denied(void *arg)
{
	(void)arg;
	STRESS_EQUAL(pcbatch_rseq_register(&area), -ENOSYS);
	STRESS_EQUAL(pcbatch_rseq_unregister(&area), -ENOSYS);
}

static void rseq_denied_own_area(void **state)
{
	(void)state;
	run_again("own-area-denied", NULL, ENOSYS);
	run_again("own-area-denied", NULL, EPERM);
}

static void membarrier_denied_early(void **state)
{
	int error = ENOSYS;

	(void)state;
	assert_int_equal(stress_in_child(early_denial, &error), 0);
	error = EPERM;
	assert_int_equal(stress_in_child(early_denial, &error), 0);
}

static void membarrier_denied_late(void **state)
{
	int error = ENOSYS;

	(void)state;
	if (!have_rseq())
		skip();
	assert_int_equal(stress_in_child(late_denial, &error), 0);
	error = EPERM;
	assert_int_equal(stress_in_child(late_denial, &error), 0);
	assert_int_equal(stress_in_child(denial_under_fire, NULL), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		stress_test(tunable),
		stress_test(tunable_own_area),
		stress_test(rseq_denied),
		stress_test(rseq_denied_own_area),
		stress_test(membarrier_denied_early),
		stress_test(membarrier_denied_late),
	};

	self_path = "/proc/self/exe";
	(void)unsetenv("PCBATCH_BACKEND");
	if (argc > 1 && strcmp(argv[1], "falls-back") == 0)
		falls_back(NULL);
	else if (argc > 1 && strcmp(argv[1], "own-area") == 0)
		own_area(NULL);
	else if (argc > 1 && strcmp(argv[1], "own-area-denied") == 0)
		own_area_denied(NULL);
	else
		return cmocka_run_group_tests(tests, NULL, NULL);
	return stress_status();
}
