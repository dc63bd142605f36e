/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: reads a message when its memcg has memory for it, and sends it back. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "memcg_sk.h"
#include "net.h"
#include "server.h"

/* ---- flow control ------------------------------------------------------------------------------ */

static void flow_arm(struct flow *flow, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = flow };

	if (flow->armed == events)
		return;
	flow->armed = events;
	epoll_ctl(flow->server->epoll, EPOLL_CTL_MOD, flow->fd, &ev);
}

/* Back-pressure: nothing is read, so the peer's window closes and it waits. Always false. */
static bool flow_throttle(struct flow *flow, enum flow_state state)
{
	struct server *server = flow->server;

	if (flow->state == state)
		return false;
	flow->state = state;
	server->throttles++;
	__atomic_fetch_add(&flow->sk.sk_memcg->totals->sock_throttled, 1, __ATOMIC_RELAXED);
	flow_arm(flow, 0);
	TAILQ_INSERT_TAIL(&server->throttled, flow, throttled);
	flow->listener->waiting++;
	/* what it keeps is more use to the others while it waits */
	sk_mem_reclaim_all(&flow->sk);
	return false;
}

static bool flow_waits(const struct flow *flow)
{
	return flow->state == FLOW_NO_RMEM || flow->state == FLOW_NO_WMEM;
}

static void flow_unthrottle(struct flow *flow)
{
	if (!flow_waits(flow))
		return;
	TAILQ_REMOVE(&flow->server->throttled, flow, throttled);
	flow->listener->waiting--;
	flow->state = FLOW_READ;
}

/* The peer has acknowledged all replies: their skbs leave the queue. */
static void flow_acked(struct flow *flow)
{
	if (flow->sk.sk_wmem_queued && !flow->have)
		sock_wmem_free(&flow->sk, flow->sk.sk_wmem_queued);
}

static void flow_close(struct flow *flow, bool failed)
{
	struct server *server = flow->server;

	flow_unthrottle(flow);
	TAILQ_REMOVE(&server->flows, flow, all);
	flow->listener->tries++;
	server->nr_flows--;
	server->failed += failed;
	close(flow->fd);
	if (server_accounts(server)) {
		flow->have = 0;
		flow_acked(flow);
		sock_release(&flow->sk);
		memcg_uncharge_anon(flow->sk.sk_memcg, flow->buf_pages);
		memcg_uncharge_object(flow->sk.sk_memcg);
	}
	free(flow->buf);
	free(flow);
}

/* ---- a message --------------------------------------------------------------------------------- */

static void flow_send(struct flow *flow)
{
	struct server *server = flow->server;

	while (flow->sent < flow->have) {
		ssize_t n = send(flow->fd, flow->buf + flow->sent, flow->have - flow->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			flow->state = FLOW_SENDING;
			flow_arm(flow, EPOLLOUT);
			return;
		}
		if (n < 0) {
			flow_close(flow, true);
			return;
		}
		flow->sent += (uint32_t)n;
	}
	flow->left -= flow->have;
	flow->have = 0;
	flow->sent_tick = READ_ONCE(server->task.interrupts);
	flow->state = FLOW_READ;
	flow_arm(flow, EPOLLIN);
	if (!flow->left) {
		flow->left = server->run->opt->message;
		server->served++;
	}
}

/* false: the memcg refused and the flow waits */
static bool flow_reply(struct flow *flow)
{
	if (server_accounts(flow->server) && !sock_wmem_charge(&flow->sk, flow->have))
		return flow_throttle(flow, FLOW_NO_WMEM);
	flow_unthrottle(flow);
	flow->sent = 0;
	flow_send(flow);
	return true;
}

/* One skb: charged before it is read, so that nothing is ever read that is not accounted. */
static bool flow_receive(struct flow *flow)
{
	uint32_t want = flow->left < SKB_DATA_MAX ? flow->left : SKB_DATA_MAX;
	bool accounts = server_accounts(flow->server);
	ssize_t n;

	if (accounts) {
		acct_nothing(&flow->server->task.acct);
		flow_acked(flow); /* the request carries the acknowledgement of the last reply */
		/* what that gave back is for those who wait already: it takes its place behind them */
		if (unlikely(flow->listener->waiting) && !flow_waits(flow)) {
			flow->listener->tries++;
			return flow_throttle(flow, FLOW_NO_RMEM);
		}
		if (!sock_rmem_charge(&flow->sk, want))
			return flow_throttle(flow, FLOW_NO_RMEM);
	}
	flow_unthrottle(flow);
	do
		n = recv(flow->fd, flow->buf, want, 0);
	while (n < 0 && errno == EINTR);
	if (accounts)
		sock_rmem_free(&flow->sk, skb_truesize(want)); /* copied to the user */
	if (n > 0) {
		flow->have = (uint32_t)n;
		return flow_reply(flow);
	}
	if (n < 0 && errno == EAGAIN)
		flow_arm(flow, EPOLLIN);
	else /* the end belongs between two messages */
		flow_close(flow, n < 0 || flow->left != flow->server->run->opt->message);
	return true;
}

static void flow_event(struct flow *flow)
{
	if (flow->state == FLOW_SENDING)
		flow_send(flow);
	else if (flow->state == FLOW_READ)
		flow_receive(flow);
}

/* ---- accepting --------------------------------------------------------------------------------- */

static bool flow_account(struct flow *flow, struct memcg *memcg)
{
	struct server *server = flow->server;
	struct run *run = server->run;

	sock_init(&flow->sk, &run->prot, memcg, &server->task,
		  __atomic_fetch_add(&run->next_sock, 1, __ATOMIC_RELAXED));
	if (memcg_charge_object(memcg) != 0)
		return false;
	if (memcg_charge_anon(memcg, flow->buf_pages) != 0) {
		memcg_uncharge_object(memcg);
		return false;
	}
	if (run->opt->reserve && sock_reserve_mem(&flow->sk, run->opt->reserve) != 0)
		server->unreserved++;
	return true;
}

static bool flow_open(struct listener *listener, int fd)
{
	struct server *server = listener->server;
	unsigned int message = server->run->opt->message;
	size_t size = message < SKB_DATA_MAX ? message : SKB_DATA_MAX;
	struct flow *flow = calloc(1, sizeof(*flow));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = flow };

	if (!flow)
		return false;
	flow->fd = fd;
	flow->server = server;
	flow->listener = listener;
	flow->left = message;
	flow->armed = EPOLLIN;
	flow->buf = malloc(size);
	flow->buf_pages = (uint32_t)pages_ceil((int64_t)size);
	if (!flow->buf || (server_accounts(server) && !flow_account(flow, listener->memcg))) {
		free(flow->buf);
		free(flow);
		return false;
	}
	net_nodelay(fd);
	TAILQ_INSERT_TAIL(&server->flows, flow, all);
	server->nr_flows++;
	server->accepted++;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		flow_close(flow, true);
	return true;
}

static void listener_event(struct listener *listener)
{
	int fd;

	while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (!flow_open(listener, fd)) {
			listener->server->failed++;
			close(fd);
		}
	}
}

/* ---- off the hot path -------------------------------------------------------------------------- */

/*
 * Lets those that wait try again, oldest first. Each try has its reason, memory that another
 * connection gave back or a tick: a refusal makes the library drain every CPU's stock, which is
 * nothing to do on the off chance.
 */
static void retry_throttled(struct server *server)
{
	struct flow *flow, *next;

	for (flow = TAILQ_FIRST(&server->throttled); flow; flow = next) {
		next = TAILQ_NEXT(flow, throttled);
		if (!flow->listener->tries)
			continue;
		flow->listener->tries--;
		if (!(flow->state == FLOW_NO_RMEM ? flow_receive(flow) : flow_reply(flow)))
			flow->listener->tries = 0;
	}
}

/* Memory that flows of this thread hold without need, below a memcg that is short of it. */
static uint64_t server_shrink(struct task *task, struct memcg *below, uint64_t pages)
{
	struct server *server = (struct server *)task; /* its first member */
	uint64_t freed = 0;
	struct flow *flow;

	TAILQ_FOREACH(flow, &server->flows, all) {
		if (memcg_is_below(flow->sk.sk_memcg, below))
			freed += sk_mem_reclaim_all(&flow->sk);
		if (freed >= pages)
			break;
	}
	return freed;
}

/* Under pressure a reply that is old enough for a delayed acknowledgement doesn't wait for the next request. */
static void relieve_pressure(struct server *server)
{
	struct flow *flow;

	TAILQ_FOREACH(flow, &server->flows, all) {
		if (!memcg_under_pressure(flow->sk.sk_memcg))
			continue;
		if (READ_ONCE(server->task.interrupts) - flow->sent_tick >= TICK_HZ / 25)
			flow_acked(flow);
		sk_mem_reclaim_all(&flow->sk);
	}
}

static void server_tick(struct server *server)
{
	struct run *run = server->run;
	bool pressure = false;

	if (!server_accounts(server))
		return;
	for (unsigned int i = 0; i < run->nr_listeners; i++) {
		struct listener *listener = &run->listeners[i];

		if (listener->server != server)
			continue;
		listener->tries = listener->waiting; /* another thread or the protocol may have room now */
		if (run->opt->high < PCBATCH_PAGES_MAX)
			memcg_check_high(listener->memcg);
		pressure |= memcg_under_pressure(listener->memcg);
	}
	if (pressure)
		relieve_pressure(server);
}

static void server_loop(struct server *server)
{
	struct epoll_event events[64];
	uint64_t tick = 0;

	while (!READ_ONCE(server->run->clients_done) || server->nr_flows) {
		int n = epoll_wait(server->epoll, events, 64, 100);

		for (int i = 0; i < n; i++) {
			struct listener *listener = events[i].data.ptr;

			if (listener->is_listener)
				listener_event(listener);
			else
				flow_event(events[i].data.ptr);
		}
		if (READ_ONCE(server->task.interrupts) != tick) {
			tick = READ_ONCE(server->task.interrupts);
			server_tick(server);
		}
		if (unlikely(!TAILQ_EMPTY(&server->throttled)))
			retry_throttled(server);
	}
}

void *server_main(void *arg)
{
	struct server *server = arg;
	timer_t timer;

	current_task = &server->task;
	server->task.shrink = server_shrink;
	if (server->run->opt->pin)
		pin_thread(server->task.id);
	server->ticking = server_timer_start(&timer) == 0;
	server_loop(server);
	if (server->ticking)
		timer_delete(timer);
	server->cpu_ns = now_ns_clock(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}
