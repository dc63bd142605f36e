/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The closing audit: what went in came out, and nothing is left anywhere. */
#ifndef MEMCG_SOCKET_AUDIT_H
#define MEMCG_SOCKET_AUDIT_H

#include <stdio.h>

#include "memcg.h"
#include "proto.h"

enum audit_check {
	AUDIT_PAGES,	   /* every page charged was uncharged */
	AUDIT_STOCKS,	   /* all stocks drained */
	AUDIT_COUNTERS,	   /* the page counter of every level is zero, nothing went below */
	AUDIT_STATS,	   /* every statistic of every level is zero */
	AUDIT_EVENTS,	   /* every event counted is in the totals, interrupts included */
	AUDIT_PROTOCOL,	   /* the protocol has no memory and no sockets left */
	AUDIT_CONNECTIONS, /* none was lost, none failed */
	AUDIT_DESTROY,	   /* every level and the domain could be destroyed */
	AUDIT_CHECKS
};

struct audit {
	unsigned int trees; /* audited */
	uint64_t pages;	    /* charged and uncharged */
	uint64_t events;
	uint64_t connections;
	uint64_t counters; /* looked at */
	uint64_t wrong[AUDIT_CHECKS]; /* by how much, in the check's unit */
};

/*
 * When no thread runs any more: checks the tree and destroys it and the protocol. `events` is what
 * the threads say they have counted.
 */
void audit_tree(struct audit *audit, struct memcg_tree *tree, struct proto *prot, const struct acct *acct,
		uint64_t events);
void audit_merge(struct audit *to, const struct audit *from);
bool audit_passed(const struct audit *audit);
void audit_print(FILE *out, const char *name, const struct audit *audit);
const char *audit_title(enum audit_check check);

#endif
