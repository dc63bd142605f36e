/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "sock.h"
#include "trace.h"

struct ending {
	struct trace_record last; /* any record of the socket, for its thread and memcg */
	int64_t queued[2];	  /* rmem, wmem */
	int64_t kept;
	bool open;
};

static bool is_charge(const struct trace_record *r)
{
	return r->kind == TRACE_RMEM_CHARGE || r->kind == TRACE_WMEM_CHARGE;
}

static void follow(struct ending *sk, const struct trace_record *r)
{
	int64_t size = is_charge(r) ? (int64_t)r->size : -(int64_t)r->size;

	sk->last = *r;
	sk->open = r->kind != TRACE_RELEASE;
	if (!sk->open)
		return;
	sk->queued[r->kind >= TRACE_WMEM_CHARGE] += size;
	sk->kept += (is_charge(r) ? r->pages : -(int64_t)r->pages) * PAGE_BYTES - size;
}

static void finish(struct trace *out, struct ending *sk)
{
	static const uint8_t kinds[2] = { TRACE_RMEM_UNCHARGE, TRACE_WMEM_UNCHARGE };
	struct trace_record r = sk->last;

	for (int i = 0; i < 2; i++) {
		if (!sk->queued[i])
			continue;
		sk->kept += sk->queued[i];
		r.kind = kinds[i];
		r.size = (uint32_t)sk->queued[i];
		r.pages = (uint16_t)(sk->kept >> PAGE_SHIFT);
		sk->kept -= (int64_t)r.pages << PAGE_SHIFT;
		trace_append(out, &r);
	}
	r.kind = TRACE_RELEASE;
	r.size = 0;
	r.pages = 0;
	trace_append(out, &r);
	sk->open = false;
}

static void shorten(const struct trace_file *file, uint64_t records, struct trace *out, struct ending *sockets)
{
	const struct trace_record *r = file->records, *end = r + file->header.records;

	for (uint32_t thread = 0; thread < file->header.threads; thread++) {
		for (uint64_t n = 0; r < end && r->thread == thread; r++, n++) {
			if (n >= records)
				continue;
			follow(&sockets[r->socket], r);
			trace_append(out, r);
		}
		for (uint32_t s = 0; s < file->header.sockets; s++)
			if (sockets[s].open && sockets[s].last.thread == thread)
				finish(out, &sockets[s]);
	}
}

static uint64_t charges(const struct trace_record *records, uint64_t nr)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < nr; i++)
		n += is_charge(&records[i]);
	return n;
}

int trace_shorten(const char *name, struct trace_file *file, uint64_t records)
{
	struct ending *sockets = calloc(file->header.sockets, sizeof(*sockets));
	struct trace out = { .records = NULL };
	double share;

	if (sockets)
		shorten(file, records, &out, sockets);
	free(sockets);
	if (!sockets || out.failed || !out.used) {
		fprintf(stderr, "memcg-socket: %s: out of memory\n", name);
		free(out.records);
		return -1;
	}
	/* every request has as many charges */
	share = ratio((double)charges(out.records, out.used), (double)charges(file->records, file->header.records));
	file->header.requests = (uint64_t)((double)file->header.requests * share + 0.5);
	file->header.requests += !file->header.requests;
	file->header.records = out.used;
	free(file->records);
	file->records = out.records;
	return trace_check(name, file);
}
