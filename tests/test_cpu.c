/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* backend: none */
/*
 * Proves what cpu.h promises: the number of possible CPUs is right, registration of an
 * area of the program's own never takes what is somebody else's, and works where libc
 * registers none (the program runs itself again under a tunable to get there).
 */
#include "util.h"

static __thread struct pcbatch_rseq_area own_area = PCBATCH_RSEQ_AREA_INIT;

static bool libc_has_rseq(void)
{
#if PCBATCH_PRIV_LIBC_RSEQ
	return __rseq_size > 0;
#else
	return false;
#endif
}

static uint32_t parsed(const char *text)
{
	return pcbatch_priv_parse_cpu_list(text, strlen(text));
}

static void cpu_lists(void **state)
{
	(void)state;
	assert_int_equal(parsed("0\n"), 1);
	assert_int_equal(parsed("0-1\n"), 2);
	assert_int_equal(parsed("0-1"), 2);
	assert_int_equal(parsed("0,2-5,7\n"), 8);
	assert_int_equal(parsed("0-3,128-255\n"), 256);
	assert_int_equal(parsed("8-11,0-3\n"), 12);
	assert_int_equal(parsed("0-16383\n"), 16384);
	assert_int_equal(parsed("0-16384\n"), PCBATCH_CPUS_MAX);
	assert_int_equal(parsed("0-99999999999999999999\n"), PCBATCH_CPUS_MAX);
	assert_int_equal(parsed("\n"), 1);
	assert_int_equal(parsed(""), 1);
}

/* rule 14: every possible id counts, not those online or allowed now. */
static void rule_14_possible_not_online(void **state)
{
	uint32_t possible = pcbatch_cpu_possible();
	unsigned int first, last;
	FILE *file = fopen("/sys/devices/system/cpu/possible", "r");
	char text[256];

	(void)state;
	assert_true(possible >= (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(possible > (uint32_t)sched_getcpu());
	assert_true(possible <= PCBATCH_CPUS_MAX);
	if (file == NULL)
		skip();
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	if (sscanf(text, "%u-%u", &first, &last) == 2 && strchr(text, ',') == NULL)
		assert_int_equal(possible, last + 1);
	/* Still so when this process may use one CPU only. */
	pin(nth_cpu(0));
	assert_int_equal(pcbatch_cpu_possible(), possible);
	assert_int_equal(sched_setaffinity(0, sizeof(util_allowed), &util_allowed), 0);
}

static void current_cpu_is_the_kernels(void **state)
{
	intptr_t off;

	(void)state;
	if (!pcbatch_priv_rseq_libc(&off))
		skip();
	pin(nth_cpu(0));
	assert_int_equal(pcbatch_priv_rseq_cpu(off), nth_cpu(0));
	if (nth_cpu(1) >= 0) {
		pin(nth_cpu(1));
		assert_int_equal(pcbatch_priv_rseq_cpu(off), nth_cpu(1));
	}
	assert_int_equal(sched_setaffinity(0, sizeof(util_allowed), &util_allowed), 0);
}

static void null_areas(void **state)
{
	(void)state;
	assert_int_equal(pcbatch_rseq_register(NULL), -EINVAL);
	assert_int_equal(pcbatch_rseq_unregister(NULL), -EINVAL);
}

static void somebody_elses_registration_is_left_alone(void **state)
{
	uint32_t cpu_id = own_area.cpu_id;

	(void)state;
	if (!libc_has_rseq())
		skip();
	assert_int_equal(pcbatch_rseq_register(&own_area), -EBUSY);
	assert_int_equal(pcbatch_rseq_unregister(&own_area), -EBUSY);
	assert_int_equal(own_area.cpu_id, cpu_id);
	assert_int_equal(cpu_id, UINT32_MAX);
}

/* Nobody in this program has asked for the fence yet: it is refused, and errno is as before. */
static void refused_fence_keeps_errno(void **state)
{
	int err;

	(void)state;
	errno = 77;
	err = pcbatch_priv_fence_rseq();
	assert_int_equal(errno, 77);
	assert_true(err == -EPERM || err == -EINVAL || err == -ENOSYS);
}

static void fence_works_where_registered(void **state)
{
	(void)state;
	if (!libc_has_rseq())
		skip();
	assert_int_equal(pcbatch_priv_fence_register(), 0);
	errno = 77;
	assert_int_equal(pcbatch_priv_fence_rseq(), 0);
	assert_int_equal(errno, 77);
}

#define EXPECT(cond)                                                        \
	do {                                                                \
		if (!(cond)) {                                              \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond);  \
			return 1;                                           \
		}                                                           \
	} while (0)

/* Runs where libc has registered nothing; says 77 when the kernel has no rseq either. */
static int without_libc(void)
{
	struct pcbatch_domain *dom = (struct pcbatch_domain *)aligned_alloc(PCBATCH_CACHE_LINE, sizeof(*dom));
	struct pcbatch_rseq_area other = PCBATCH_RSEQ_AREA_INIT;
	struct pcbatch_domain_attr attr;
	struct pcbatch_counter counter;
	struct pcbatch_group *g;
	int i;

	EXPECT(!libc_has_rseq() && unsetenv("PCBATCH_BACKEND") == 0 && dom != NULL);
	(void)pcbatch_domain_attr_init(&attr);

	/* Nobody registered anything: generic serves, and forcing rseq is an error. */
	EXPECT(pcbatch_domain_init(dom, &attr) == 0);
	EXPECT(pcbatch_domain_backend(dom) == PCBATCH_BACKEND_GENERIC);
	EXPECT(pcbatch_group_create(dom, NULL, NULL, &g) == 0 && pcbatch_group_charge(g, 3) == 0);
	EXPECT(pcbatch_group_uncharge(g, 3) == 0 && pcbatch_group_destroy(g) == 0);
	EXPECT(pcbatch_domain_destroy(dom) == 0);
	attr.backend = PCBATCH_BACKEND_RSEQ;
	EXPECT(pcbatch_domain_init(dom, &attr) == -ENOTSUP);
	attr.thread_area = &own_area;
	EXPECT(pcbatch_domain_init(dom, &attr) == -ENOTSUP);

	i = pcbatch_rseq_register(&own_area);
	if (i == -ENOSYS)
		return 77;
	EXPECT(i == 0);
	EXPECT(own_area.cpu_id < PCBATCH_CPUS_MAX);
	EXPECT(pcbatch_rseq_register(&own_area) == -EBUSY);
	EXPECT(pcbatch_rseq_register(&other) == -EBUSY);
	EXPECT(pcbatch_rseq_unregister(&other) == -EBUSY);

	EXPECT(pcbatch_domain_init(dom, &attr) == 0);
	EXPECT(pcbatch_domain_backend(dom) == PCBATCH_BACKEND_RSEQ);
	EXPECT(pcbatch_counter_init(&counter, dom, 0) == 0);
	EXPECT(pcbatch_group_create(dom, NULL, NULL, &g) == 0);
	for (i = 0; i < 1000; i++) {
		pcbatch_counter_add(&counter, 1);
		EXPECT(pcbatch_group_charge(g, 3) == 0 && pcbatch_group_uncharge(g, 2) == 0);
	}
	/* Something of it went through the CPUs' cells. */
	EXPECT(pcbatch_priv_counter_shared(&counter)->direct == 0);
	EXPECT(pcbatch_counter_sum(&counter) == 1000);
	/* Unregistered, a thread bypasses the cells and stays exact. */
	EXPECT(pcbatch_thread_quiesce(dom) == 0 && own_area.rseq_cs == 0);
	EXPECT(pcbatch_rseq_unregister(&own_area) == 0);
	EXPECT(own_area.cpu_id == UINT32_MAX);
	EXPECT(pcbatch_rseq_unregister(&own_area) == -EBUSY);
	pcbatch_counter_add(&counter, 5);
	EXPECT(pcbatch_priv_counter_shared(&counter)->direct == 5);
	EXPECT(pcbatch_counter_sum(&counter) == 1005);
	EXPECT(pcbatch_group_uncharge(g, 1000) == 0);
	EXPECT(pcbatch_stock_drain_all(dom) == 0 && pcbatch_group_current(g) == 0);
	EXPECT(pcbatch_group_destroy(g) == 0 && pcbatch_counter_destroy(&counter) == 0);
	EXPECT(pcbatch_domain_destroy(dom) == 0);
	free(dom);
	return 0;
}

static void opt_in_where_libc_registers_none(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	if (!PCBATCH_PRIV_HAVE_SECTIONS)
		skip();
	child = fork();
	if (child == 0) {
		char self[] = "/proc/self/exe", word[] = "without-libc";
		char *argv[] = { self, word, NULL };

		(void)setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		(void)execv(self, argv);
		/* A program of another architecture, under emulation, can't be run by the kernel. */
		_exit(errno == ENOEXEC ? 77 : 127);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_lists),
		cmocka_unit_test(rule_14_possible_not_online),
		cmocka_unit_test(current_cpu_is_the_kernels),
		cmocka_unit_test(null_areas),
		cmocka_unit_test(somebody_elses_registration_is_left_alone),
		cmocka_unit_test(refused_fence_keeps_errno),
		cmocka_unit_test(fence_works_where_registered),
		cmocka_unit_test(opt_in_where_libc_registers_none),
	};

	if (argc > 1 && strcmp(argv[1], "without-libc") == 0)
		return without_libc();
	if (sched_getaffinity(0, sizeof(util_allowed), &util_allowed) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
