/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: each connection has one request under way, and checks what comes back. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"

/* A connection, at the client. */
struct peer {
	int fd;
	uint32_t armed;
	uint32_t sent, received; /* of the message under way */
	uint64_t next;		 /* state of the content generator */
	uint64_t stamp;		 /* the first bytes of the message */
	uint64_t begun;		 /* cycles */
	struct client *client;
};

/* One buffer a thread to send from and one to receive into; only the stamp differs between messages. */
static __thread uint8_t *out_buf, *in_buf;

static uint64_t next_stamp(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void peer_arm(struct peer *peer, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = peer };

	if (peer->armed == events)
		return;
	peer->armed = events;
	epoll_ctl(peer->client->epoll, EPOLL_CTL_MOD, peer->fd, &ev);
}

static void peer_close(struct peer *peer, bool lost)
{
	if (peer->fd < 0)
		return;
	close(peer->fd);
	peer->fd = -1;
	peer->client->alive--;
	peer->client->lost += lost;
}

static void peer_send(struct peer *peer)
{
	uint32_t message = peer->client->run->opt->message;
	size_t stamp = message < sizeof(peer->stamp) ? message : sizeof(peer->stamp);

	while (peer->sent < message) {
		ssize_t n;

		memcpy(out_buf, &peer->stamp, stamp);
		n = send(peer->fd, out_buf + peer->sent, message - peer->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			peer_arm(peer, EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0) {
			peer_close(peer, true);
			return;
		}
		peer->sent += (uint32_t)n;
	}
	peer_arm(peer, EPOLLIN);
}

static void peer_begin(struct peer *peer)
{
	peer->sent = peer->received = 0;
	peer->stamp = next_stamp(&peer->next);
	peer->begun = cycles_now();
	peer_send(peer);
}

static void peer_done(struct peer *peer)
{
	struct client *client = peer->client;

	if (READ_ONCE(client->run->measuring))
		hist_add(&client->latency, (uint64_t)cycles_to_ns((double)(cycles_now() - peer->begun)));
	WRITE_ONCE(client->requests, client->requests + 1);
	if (READ_ONCE(client->run->stop))
		peer_close(peer, false);
	else
		peer_begin(peer);
}

/* the part of the stamp that this piece of the reply covers must be what was sent */
static bool peer_check(const struct peer *peer, size_t n)
{
	size_t end = peer->received + n;

	if (end > sizeof(peer->stamp))
		end = sizeof(peer->stamp);
	return peer->received >= end ||
	       memcmp(in_buf, (const uint8_t *)&peer->stamp + peer->received, end - peer->received) == 0;
}

static void peer_receive(struct peer *peer)
{
	uint32_t message = peer->client->run->opt->message;
	ssize_t n;

	do
		n = recv(peer->fd, in_buf, message - peer->received, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !peer_check(peer, (size_t)n)) {
		peer_close(peer, true);
		return;
	}
	peer->received += (uint32_t)n;
	if (peer->received == message)
		peer_done(peer);
}

static void peer_event(struct peer *peer, uint32_t events)
{
	if (events & EPOLLOUT)
		peer_send(peer);
	if (peer->fd >= 0 && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		peer_receive(peer);
}

static void client_loop(struct client *client)
{
	struct epoll_event events[64];

	for (unsigned int i = 0; i < client->nr_peers; i++)
		if (client->peers[i].fd >= 0)
			peer_begin(&client->peers[i]);
	while (client->alive) {
		int n = epoll_wait(client->epoll, events, 64, 100);

		for (int i = 0; i < n; i++) {
			struct peer *peer = events[i].data.ptr;

			if (peer->fd >= 0)
				peer_event(peer, events[i].events);
		}
		if (unlikely(n <= 0) && READ_ONCE(client->run->stop) && now_ns() > client->run->deadline)
			break;
	}
	for (unsigned int i = 0; i < client->nr_peers; i++)
		peer_close(&client->peers[i], true);
}

static void *client_main(void *arg)
{
	struct client *client = arg;
	size_t size = client->run->opt->message;

	if (client->run->opt->pin)
		pin_thread(client->id);
	out_buf = malloc(size);
	in_buf = malloc(size);
	if (out_buf && in_buf) {
		memset(out_buf, (int)client->run->opt->seed, size);
		client_loop(client);
	} else {
		client->lost += client->alive;
	}
	free(out_buf);
	free(in_buf);
	return NULL;
}

/* ---- setting up -------------------------------------------------------------------------------- */

static int peer_open(struct client *client, struct peer *peer, unsigned int flow)
{
	struct run *run = client->run;
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(run->listeners[flow % run->nr_listeners].port) };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = peer };
	int ret;

	peer->client = client;
	peer->armed = EPOLLIN;
	peer->next = run->opt->seed + flow;
	peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (peer->fd < 0)
		return -errno;
	client->alive++;
	do
		ret = connect(peer->fd, (struct sockaddr *)&addr, sizeof(addr));
	while (ret < 0 && errno == EINTR);
	if (ret < 0 || epoll_ctl(client->epoll, EPOLL_CTL_ADD, peer->fd, &ev) != 0)
		return -errno;
	net_nodelay(peer->fd);
	return net_nonblocking(peer->fd);
}

static int client_open(struct client *client)
{
	unsigned int threads = client->run->opt->threads, flows = client->run->opt->flows;
	unsigned int nr = (flows + threads - 1 - client->id) / threads;
	int ret;

	client->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (client->epoll < 0)
		return -errno;
	client->peers = calloc(nr ? nr : 1, sizeof(*client->peers));
	if (!client->peers)
		return -ENOMEM;
	for (; client->nr_peers < nr; client->nr_peers++) {
		unsigned int i = client->nr_peers;

		ret = peer_open(client, &client->peers[i], client->id + i * threads);
		if (ret) {
			client->nr_peers++;
			return ret;
		}
	}
	return 0;
}

int client_start(struct run *run)
{
	unsigned int threads = run->opt->threads;
	int ret = 0;

	run->clients = zalloc_line(threads * sizeof(*run->clients));
	if (!run->clients)
		return -ENOMEM;
	for (unsigned int i = 0; i < threads; i++)
		run->clients[i].epoll = -1;
	for (unsigned int i = 0; i < threads && !ret; i++) {
		run->clients[i].run = run;
		run->clients[i].id = i;
		ret = client_open(&run->clients[i]);
	}
	for (unsigned int i = 0; i < threads && !ret; i++) {
		ret = -pthread_create(&run->clients[i].thread, NULL, client_main, &run->clients[i]);
		run->clients[i].started = !ret;
	}
	return ret;
}

void client_join(struct run *run)
{
	for (unsigned int i = 0; run->clients && i < run->opt->threads; i++) {
		struct client *client = &run->clients[i];

		if (client->started)
			pthread_join(client->thread, NULL);
		for (unsigned int p = 0; p < client->nr_peers; p++)
			peer_close(&client->peers[p], false);
		if (client->epoll >= 0)
			close(client->epoll);
		free(client->peers);
		client->peers = NULL;
	}
}
