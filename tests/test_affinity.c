/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Row 17 of the fault matrix: the CPUs that a process may use become few and many again while it works, by the
 * affinity of its threads and, where this may be done, by a cpuset: nothing is lost, and with one CPU
 * for all everybody still gets on.
 */
#include "stress.h"

#include <dirent.h>
#include <sys/stat.h>

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static char cpuset[64]; /* folder of a cpuset of our own; "" when there is none */
static uint64_t flips;

static bool write_file(const char *folder, const char *name, const char *text)
{
	char path[160];
	bool written;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (f == NULL)
		return false;
	written = fputs(text, f) >= 0;
	return fclose(f) == 0 && written;
}

/* A cpuset (of either version of cgroups) with this process in it. */
static bool cpuset_make(void)
{
	static const char *const root[] = { "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup" };
	char pid[16];
	size_t i;

	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (i = 0; i < sizeof(root) / sizeof(root[0]); i++) {
		(void)snprintf(cpuset, sizeof(cpuset), "%s/pcbatch-%s", root[i], pid);
		if (mkdir(cpuset, 0700) != 0)
			continue;
		if (write_file(cpuset, "cpuset.cpus", "0-1") && write_file(cpuset, "cpuset.mems", "0") &&
		    write_file(cpuset, "cgroup.procs", pid))
			return true;
		(void)rmdir(cpuset);
	}
	cpuset[0] = '\0';
	return false;
}

static void cpuset_remove(void)
{
	char pid[16], *end;

	if (cpuset[0] == '\0')
		return;
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	end = strrchr(cpuset, '/');
	*end = '\0';
	(void)write_file(cpuset, "cgroup.procs", pid);
	*end = '/';
	(void)rmdir(cpuset);
	cpuset[0] = '\0';
}

/* All threads of this process to one CPU, or to all. */
static void everybody(const cpu_set_t *set)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks != NULL && (task = readdir(tasks)) != NULL)
		if (task->d_name[0] != '.')
			(void)sched_setaffinity((pid_t)atoi(task->d_name), sizeof(*set), set);
	if (tasks != NULL)
		(void)closedir(tasks);
}

static void shrink(bool by_cpuset, int index)
{
	char text[16];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)stress_cpu[index % stress_cpus], &set);
	(void)snprintf(text, sizeof(text), "%d", stress_cpu[index % stress_cpus]);
	if (by_cpuset)
		STRESS_CHECK(write_file(cpuset, "cpuset.cpus", text), errno, 0);
	else
		everybody(&set);
}

static void regrow(bool by_cpuset)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < stress_cpus; i++)
		CPU_SET((size_t)stress_cpu[i], &set);
	if (by_cpuset)
		STRESS_CHECK(write_file(cpuset, "cpuset.cpus", "0-1"), errno, 0);
	everybody(&set);
}

static void *flipper(void *by_cpuset)
{
	struct stress *s = &storm;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		shrink(by_cpuset != NULL, (int)(flips++ % 2));
		(void)usleep(5000);
		regrow(by_cpuset != NULL);
		(void)usleep(5000);
	}
	return NULL;
}

static void run(bool by_cpuset, unsigned int hop_every, const char *name)
{
	pthread_t thread;

	stress_init(&storm, 9, NULL);
	storm.bytes = true;
	storm.hop_every = hop_every;
	storm.timer_us = 500;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH | STRESS_BATCH;
	flips = 0;
	assert_int_equal(pthread_create(&thread, NULL, flipper, by_cpuset ? &storm : NULL), 0);
	storm.joined = &thread;
	stress_run(&storm, name, 6, 3000000);
	printf("%s: shrunk %" PRIu64 " times\n", name, flips);
	assert_int_equal(stress_failures, 0);
	assert_true(flips > 0);
}

static void affinity(void **state)
{
	(void)state;
	/* Without hops of their own the threads stay where they are put; with them, some go elsewhere at once. */
	run(false, 0, "affinity");
	run(false, 500, "affinity, and hops");
}

static void cpusets(void **state)
{
	(void)state;
	stress_find_cpus();
	if (stress_cpus != 2 || stress_cpu[1] != 1 || !cpuset_make())
		skip();
	run(true, 500, "cpuset");
	cpuset_remove();
}

/* Eight threads on one CPU, a drainer among them: whoever is interrupted in a section must get through in the end. */
static void one_cpu(void **state)
{
	(void)state;
	stress_pin(0);
	stress_find_cpus();
	assert_int_equal(stress_cpus, 1);
	stress_init(&storm, 9, NULL);
	storm.timer_us = 200;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH;
	stress_run(&storm, "one CPU", 8, 2000000);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(affinity),
		stress_test(cpusets),
		stress_test(one_cpu), /* last: it stays on that CPU */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
