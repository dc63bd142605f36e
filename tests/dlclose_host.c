/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: dlclose_host PLUGIN LOOPS quiesce|nodelete
 * Loads the plugin, lets four threads use the domain through it under timer
 * signals, has each of them quiesce (or nothing, where the plugin is linked with
 * -z nodelete), unloads it while they live on under signals, and begins again.
 * Without either, the kernel would look for a section in memory that is gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <pcbatch.h>

#define THREADS 4

static struct pcbatch_domain dom PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static struct pcbatch_group *group;
static struct pcbatch_counter counter;
static pthread_barrier_t barrier;
static int (*run)(struct pcbatch_group *, struct pcbatch_counter *, unsigned int);
static int loops, failed;
static int must_quiesce;
static volatile sig_atomic_t signals;

static void on_timer(int sig)
{
	(void)sig;
	signals++;
}

static void start_timer(void)
{
	struct sigevent event;
	struct itimerspec spec;
	timer_t timer;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMIN;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	memset(&spec, 0, sizeof(spec));
	spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 100000;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &spec, NULL) != 0)
		failed = 1;
}

/* In the main program, so that a thread has something to be interrupted in. */
static void spin(void)
{
	struct timespec from, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		(void)sched_yield();
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 1000000L);
}

static void *work(void *arg)
{
	int i;

	(void)arg;
	start_timer();
	for (i = 0; i < loops; i++) {
		(void)pthread_barrier_wait(&barrier); /* loaded */
		if (run(group, &counter, 2000) != 0)
			failed = 1;
		if (must_quiesce && pcbatch_thread_quiesce(&dom) != 0)
			failed = 1;
		(void)pthread_barrier_wait(&barrier); /* done with it */
		(void)pthread_barrier_wait(&barrier); /* unloaded */
		spin();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	struct sigaction action;
	int i;

	if (argc != 4)
		return 2;
	loops = atoi(argv[2]);
	must_quiesce = strcmp(argv[3], "quiesce") == 0;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGRTMIN, &action, NULL);
	if (pcbatch_domain_init(&dom, NULL) != 0 || pcbatch_group_create(&dom, NULL, NULL, &group) != 0 ||
	    pcbatch_counter_init(&counter, &dom, 0) != 0 || pthread_barrier_init(&barrier, NULL, THREADS + 1) != 0)
		return 1;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, NULL) != 0)
			return 1;
	for (i = 0; i < loops; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

		if (plugin == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		run = (int (*)(struct pcbatch_group *, struct pcbatch_counter *, unsigned int))(uintptr_t)dlsym(plugin, "plugin_run");
		(void)pthread_barrier_wait(&barrier);
		(void)pthread_barrier_wait(&barrier);
		if (dlclose(plugin) != 0)
			failed = 1;
		(void)pthread_barrier_wait(&barrier);
	}
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	if (pcbatch_counter_sum(&counter) != (int64_t)THREADS * loops * 2000)
		failed = 1;
	if (pcbatch_counter_destroy(&counter) != 0 || pcbatch_group_destroy(group) != 0 || pcbatch_domain_destroy(&dom) != 0)
		failed = 1;
	printf("%d loops, %d signals\n", loops, (int)signals);
	return failed;
}
