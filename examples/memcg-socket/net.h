/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The echo server, the client, and one slice of a run that has both.
 *
 * Sockets of one memcg are served by one thread, as a container's sockets are served by its own
 * threads. Listener l belongs to memcg l % memcgs and thread l % threads; flow f connects to
 * listener f % listeners.
 */
#ifndef MEMCG_SOCKET_NET_H
#define MEMCG_SOCKET_NET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hist.h"
#include "memcg.h"
#include "options.h"
#include "proto.h"
#include "sock.h"

/* interrupts a second and server thread; also the clock for what happens off the hot path */
#define TICK_HZ 250u

struct server;
struct flow;

struct listener {
	bool is_listener; /* what epoll's pointer is, a listener or a flow */
	int fd;
	uint16_t port;
	struct memcg *memcg;
	struct server *server;
	unsigned int waiting; /* its connections that are throttled */
	unsigned int tries;   /* how many of them have reason to try again */
};

TAILQ_HEAD(flow_list, flow);

/* One server thread. */
struct server {
	struct task task;
	struct run *run;
	pthread_t thread;
	int epoll;
	bool started;
	bool ticking; /* has its timer; without, epoll's timeout stands in for it */
	struct flow_list flows;
	struct flow_list throttled;
	unsigned int nr_flows;
	uint64_t served;     /* requests */
	uint64_t accepted;
	uint64_t failed;     /* connections that ended in an error */
	uint64_t throttles;  /* times that a memcg refused and reading stopped */
	uint64_t unreserved; /* connections whose reservation was refused */
	uint64_t cpu_ns;
} __attribute__((aligned(64)));

/* One client thread. */
struct client {
	struct run *run;
	pthread_t thread;
	unsigned int id;
	int epoll;
	bool started;
	struct peer *peers;
	unsigned int nr_peers, alive;
	uint64_t requests; /* read by the main thread meanwhile */
	uint64_t lost;	   /* connections that did not get every reply */
	struct hist latency;
} __attribute__((aligned(64)));

struct run {
	const struct options *opt;
	unsigned int changes;
	struct memcg_tree *tree;
	struct proto prot;
	struct listener *listeners;
	unsigned int nr_listeners;
	struct server *servers;
	struct client *clients;
	struct trace *traces; /* one a server thread, or NULL */
	uint32_t next_sock;
	int stop;	/* no new requests */
	int measuring;	/* latencies count */
	int clients_done; /* servers leave once their connections are gone */
	uint64_t deadline; /* for clients that wait for a last reply, ns */
};

/* 0 or a negative errno */
int server_start(struct run *run);
void server_stop(struct run *run);
int client_start(struct run *run);
void client_join(struct run *run);

int net_nonblocking(int fd);
void net_nodelay(int fd);

#endif
