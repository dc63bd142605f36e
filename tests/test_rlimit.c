/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Row 29 of the fault matrix, with a real lack of memory: in a child whose address space is limited, groups and
 * counters are made until there is no room; each refusal is -ENOMEM and has changed nothing, what exists goes on
 * working, and once some is given back there is room again.
 */
#include "stress.h"

#include <sys/resource.h>

#define MAKE_MAX 200000

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_group *group[MAKE_MAX];
static struct pcbatch_counter counter[MAKE_MAX];

/* So many bytes more than now. */
static void limit_memory(rlim_t more)
{
	unsigned long pages = 0;
	struct rlimit limit;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu", &pages) != 1)
		_exit(77);
	(void)fclose(f);
	limit.rlim_cur = limit.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		_exit(77);
}

static int make_all(int from)
{
	int n, err = 0;

	for (n = from; n < MAKE_MAX; n++) {
		err = pcbatch_group_create(&dom, n == 0 ? NULL : group[(n - 1) / 2], NULL, &group[n]);
		if (err != 0)
			break;
		err = pcbatch_counter_init(&counter[n], &dom, n);
		if (err != 0) {
			STRESS_EQUAL(pcbatch_group_destroy(group[n]), 0);
			break;
		}
	}
	STRESS_CHECK(n < MAKE_MAX && err == -ENOMEM, n, err);
	return n;
}

static void use(int n)
{
	int64_t bytes = -1;
	int i;

	for (i = 0; i < n; i += 1 + n / 50) {
		STRESS_EQUAL(pcbatch_group_charge_stat(group[i], 3, 2), 0);
		STRESS_EQUAL(pcbatch_group_charge_bytes(group[i], 100), 0);
		STRESS_EQUAL(pcbatch_group_bytes(group[i], &bytes), 0);
		STRESS_EQUAL(bytes, 3 * 4096 + 100);
		STRESS_EQUAL(pcbatch_group_uncharge_bytes(group[i], 100), 0);
		STRESS_EQUAL(pcbatch_group_uncharge_stat(group[i], 3, 2), 0);
		pcbatch_counter_add(&counter[i], 5);
		STRESS_EQUAL(pcbatch_counter_sum(&counter[i]), i + 5);
		pcbatch_counter_sub(&counter[i], 5);
	}
}

static void no_room(void *arg)
{
	int n, again, i;

	(void)arg;
	limit_memory(8 << 20);
	if (pcbatch_domain_init(&dom, NULL) != 0)
		_exit(77);
	n = make_all(0);
	STRESS_CHECK(n > 100, n, 0);
	use(n);
	/* A hundred fewer, then a hundred more: their memory is used again, so none is asked for. */
	for (i = n - 1; i >= n - 100; i--) {
		STRESS_EQUAL(pcbatch_counter_destroy(&counter[i]), 0);
		STRESS_EQUAL(pcbatch_group_destroy(group[i]), 0);
	}
	again = make_all(n - 100);
	STRESS_CHECK(again >= n, again, n);
	use(again);
	for (i = again - 1; i >= 0; i--) {
		STRESS_EQUAL(pcbatch_counter_destroy(&counter[i]), 0);
		STRESS_EQUAL(pcbatch_group_destroy(group[i]), 0);
	}
	STRESS_EQUAL(pcbatch_domain_destroy(&dom), 0);
	printf("%d groups and counters in 8 MiB, %d the second time\n", n, again);
	(void)fflush(stdout);
}

static void no_domain(void *arg)
{
	struct pcbatch_domain_attr attr;

	(void)arg;
	limit_memory(1 << 20);
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 4096;
	STRESS_EQUAL(pcbatch_domain_init(&dom, &attr), -ENOMEM);
}

static void in_a_child(void (*fn)(void *))
{
	int status = stress_in_child(fn, NULL);

	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

static void groups_and_counters(void **state)
{
	(void)state;
	in_a_child(no_room);
}

static void domains(void **state)
{
	(void)state;
	in_a_child(no_domain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(groups_and_counters),
		stress_test(domains),
	};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("a sanitizer needs more address space than there is\n");
	return 77;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
	printf("a sanitizer needs more address space than there is\n");
	return 77;
#endif
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
