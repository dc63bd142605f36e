/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets, threads and timers of the server. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memcg_sk.h"
#include "net.h"
#include "server.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

int net_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

void net_nodelay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* ---- the interrupt ----------------------------------------------------------------------------- */

/*
 * Counts in the same cell that the thread may be counting in at this moment: what the blocking of
 * signals in change 004 is for.
 */
static void interrupt(int sig)
{
	struct task *task = current_task;

	(void)sig;
	if (!task)
		return;
	WRITE_ONCE(task->interrupts, task->interrupts + 1);
	if (!(task->tree->changes & CHANGE_OFF))
		count_memcg_events(task, task->tree->leaves[task->id % task->tree->nr_leaves], MEMCG_TICK, 1,
				   task->tree->changes);
}

int server_timer_start(timer_t *timer)
{
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
	struct itimerspec period = { .it_interval.tv_nsec = 1000000000 / TICK_HZ,
				     .it_value.tv_nsec = 1000000000 / TICK_HZ };
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMIN;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGRTMIN, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, timer) != 0)
		return -errno;
	if (timer_settime(*timer, 0, &period, NULL) != 0) {
		timer_delete(*timer);
		return -EINVAL;
	}
	return 0;
}

/* ---- sockets and threads ----------------------------------------------------------------------- */

static int listener_open(struct listener *listener)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = listener };
	socklen_t len = sizeof(addr);

	listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    listen(listener->fd, SOMAXCONN) != 0 || getsockname(listener->fd, (struct sockaddr *)&addr, &len) != 0 ||
	    epoll_ctl(listener->server->epoll, EPOLL_CTL_ADD, listener->fd, &ev) != 0)
		return -errno;
	listener->port = ntohs(addr.sin_port);
	return 0;
}

static int listeners_open(struct run *run)
{
	unsigned int memcgs = run->opt->memcgs, threads = run->opt->threads;
	int ret;

	run->nr_listeners = memcgs > threads ? memcgs : threads;
	run->listeners = calloc(run->nr_listeners, sizeof(*run->listeners));
	if (!run->listeners)
		return -ENOMEM;
	for (unsigned int l = 0; l < run->nr_listeners; l++)
		run->listeners[l].fd = -1;
	for (unsigned int l = 0; l < run->nr_listeners; l++) {
		struct listener *listener = &run->listeners[l];

		listener->is_listener = true;
		listener->memcg = run->tree->leaves[l % memcgs];
		listener->server = &run->servers[l % threads];
		ret = listener_open(listener);
		if (ret)
			return ret;
	}
	return 0;
}

static int server_init(struct run *run, unsigned int id)
{
	struct server *server = &run->servers[id];
	int ret;

	server->run = run;
	server->task.id = id;
	server->task.trace = run->traces ? &run->traces[id] : NULL;
	TAILQ_INIT(&server->flows);
	TAILQ_INIT(&server->throttled);
	ret = memcg_task_init(run->tree, &server->task);
	if (ret)
		return ret;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	return server->epoll < 0 ? -errno : 0;
}

int server_start(struct run *run)
{
	unsigned int threads = run->opt->threads;
	int ret;

	run->servers = zalloc_line(threads * sizeof(*run->servers));
	if (!run->servers)
		return -ENOMEM;
	for (unsigned int i = 0; i < threads; i++)
		run->servers[i].epoll = -1;
	for (unsigned int i = 0; i < threads; i++) {
		ret = server_init(run, i);
		if (ret)
			return ret;
	}
	ret = listeners_open(run);
	for (unsigned int i = 0; i < threads && !ret; i++) {
		ret = -pthread_create(&run->servers[i].thread, NULL, server_main, &run->servers[i]);
		run->servers[i].started = !ret;
	}
	return ret;
}

void server_stop(struct run *run)
{
	WRITE_ONCE(run->clients_done, 1);
	for (unsigned int i = 0; run->servers && i < run->opt->threads; i++) {
		struct server *server = &run->servers[i];

		if (server->started)
			pthread_join(server->thread, NULL);
		if (server->epoll >= 0)
			close(server->epoll);
	}
	for (unsigned int l = 0; run->listeners && l < run->nr_listeners; l++)
		if (run->listeners[l].fd >= 0)
			close(run->listeners[l].fd);
	free(run->listeners);
	run->listeners = NULL;
}
