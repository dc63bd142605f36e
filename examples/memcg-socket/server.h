/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* What server.c and server_setup.c share. */
#ifndef MEMCG_SOCKET_SERVER_H
#define MEMCG_SOCKET_SERVER_H

#include "net.h"

enum flow_state {
	FLOW_READ,
	FLOW_SENDING, /* the reply did not fit into the socket's buffer */
	FLOW_NO_RMEM, /* waits for memory to read */
	FLOW_NO_WMEM, /* has read, waits for memory to reply */
};

/* A connection, at the server. */
struct flow {
	bool is_listener; /* false */
	enum flow_state state;
	int fd;
	uint32_t armed; /* epoll events */
	struct server *server;
	struct listener *listener;
	struct sock sk;
	uint8_t *buf;
	uint32_t buf_pages;
	uint32_t left;	    /* of the message, not yet sent back */
	uint32_t have, sent; /* in buf, and of that */
	uint64_t sent_tick; /* when the last reply left */
	TAILQ_ENTRY(flow) all;
	TAILQ_ENTRY(flow) throttled;
};

static inline bool server_accounts(const struct server *server)
{
	return !(server->run->changes & CHANGE_OFF);
}

void *server_main(void *arg);
/* an interrupt TICK_HZ times a second, delivered to the calling thread */
int server_timer_start(timer_t *timer);

#endif
