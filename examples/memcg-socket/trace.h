/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of charges and uncharges of a run, for --record and --replay.
 *
 * A record is what a socket was asked for, in bytes, and the pages that this moves in a socket that
 * keeps nothing back. So the stream does not depend on which changes were on when it was recorded:
 * with change 003 off a replay charges exactly the recorded pages, with it on the socket decides.
 */
#ifndef MEMCG_SOCKET_TRACE_H
#define MEMCG_SOCKET_TRACE_H

#include <stdint.h>

#define TRACE_VERSION 1u

enum trace_kind {
	TRACE_RMEM_CHARGE,
	TRACE_RMEM_UNCHARGE,
	TRACE_WMEM_CHARGE,
	TRACE_WMEM_UNCHARGE,
	TRACE_RELEASE, /* the socket is closed: what it kept goes back */
	TRACE_KINDS
};

struct trace_record {
	uint32_t socket;
	uint32_t size; /* bytes of truesize */
	uint16_t thread;
	uint16_t memcg; /* leaf of the tree */
	uint16_t pages;
	uint8_t kind; /* the direction, and which of the two queues */
	uint8_t zero;
};

struct trace_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint32_t header_size;
	uint32_t record_size;
	uint32_t page_size;
	uint32_t threads;
	uint32_t sockets;
	uint32_t memcgs;
	uint32_t depth;
	uint32_t batch;
	uint32_t message;
	uint32_t pinned;
	uint64_t requests;
	uint64_t records; /* thread by thread, each in the order of time */
};

/* what one thread has recorded so far */
struct trace {
	struct trace_record *records;
	size_t used, size;
	int failed; /* out of memory: the stream is not whole */
};

struct trace_file {
	struct trace_header header;
	struct trace_record *records;
};

void trace_append(struct trace *trace, const struct trace_record *record);
void trace_header_init(struct trace_header *header);

/* All print what is wrong on stderr and return -1. */
int trace_write(const char *path, const struct trace_file *file);
int trace_read(const char *path, struct trace_file *file);
/* every index in range, every socket ends with nothing charged; name is for the message */
int trace_check(const char *name, const struct trace_file *file);
/*
 * Keeps the first `records` records of each thread and ends them properly: what is charged then is
 * uncharged, open sockets are closed. Returns 0, or -1 with a message.
 */
int trace_shorten(const char *name, struct trace_file *file, uint64_t records);
void trace_free(struct trace_file *file);

#endif
