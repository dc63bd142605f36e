/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sock.h"
#include "trace.h"

#define TRACE_MAGIC "PCBMEMCG"
#define TRACE_BYTE_ORDER 0x01020304u
#define TRACE_THREADS_MAX 1024u
#define TRACE_SOCKETS_MAX (1u << 24)
#define TRACE_RECORDS_MAX ((uint64_t)1 << 36)

void trace_append(struct trace *trace, const struct trace_record *record)
{
	if (trace->used == trace->size) {
		size_t size = trace->size ? 2 * trace->size : 1 << 16;
		struct trace_record *bigger = realloc(trace->records, size * sizeof(*bigger));

		if (!bigger) {
			trace->failed = 1;
			return;
		}
		trace->records = bigger;
		trace->size = size;
	}
	trace->records[trace->used++] = *record;
}

void trace_header_init(struct trace_header *header)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, TRACE_MAGIC, sizeof(header->magic));
	header->version = TRACE_VERSION;
	header->byte_order = TRACE_BYTE_ORDER;
	header->header_size = sizeof(*header);
	header->record_size = sizeof(struct trace_record);
	header->page_size = (uint32_t)PAGE_BYTES;
}

void trace_free(struct trace_file *file)
{
	free(file->records);
	file->records = NULL;
}

int trace_write(const char *path, const struct trace_file *file)
{
	FILE *out = fopen(path, "wb");
	int error = 0;

	if (!out) {
		fprintf(stderr, "memcg-socket: %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (fwrite(&file->header, sizeof(file->header), 1, out) != 1 ||
	    fwrite(file->records, sizeof(*file->records), file->header.records, out) != file->header.records)
		error = errno;
	if (fclose(out) != 0 && !error)
		error = errno;
	if (error)
		fprintf(stderr, "memcg-socket: %s: %s\n", path, strerror(error));
	return error ? -1 : 0;
}

static int complain(const char *name, const char *what, uint64_t got, uint64_t want)
{
	fprintf(stderr, "memcg-socket: %s: %s is %" PRIu64 ", must be %" PRIu64 "\n", name, what, got, want);
	return -1;
}

static int outside(const char *name, const char *what, uint64_t got, uint64_t low, uint64_t high)
{
	fprintf(stderr, "memcg-socket: %s: %s is %" PRIu64 ", must be %" PRIu64 " to %" PRIu64 "\n", name, what,
		got, low, high);
	return -1;
}

static int check_header(const char *name, const struct trace_header *h)
{
	if (memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)) != 0) {
		fprintf(stderr, "memcg-socket: %s: not a recording of this program\n", name);
		return -1;
	}
	if (h->byte_order != TRACE_BYTE_ORDER) {
		fprintf(stderr, "memcg-socket: %s: recorded on a machine of the other byte order\n", name);
		return -1;
	}
	if (h->version != TRACE_VERSION)
		return complain(name, "version", h->version, TRACE_VERSION);
	if (h->header_size != sizeof(*h))
		return complain(name, "header size", h->header_size, sizeof(*h));
	if (h->record_size != sizeof(struct trace_record))
		return complain(name, "record size", h->record_size, sizeof(struct trace_record));
	if (h->page_size != PAGE_BYTES)
		return complain(name, "page size", h->page_size, (uint64_t)PAGE_BYTES);
	if (h->threads < 1 || h->threads > TRACE_THREADS_MAX)
		return outside(name, "threads", h->threads, 1, TRACE_THREADS_MAX);
	if (h->memcgs < 1 || h->memcgs > MEMCGS_MAX)
		return outside(name, "memcgs", h->memcgs, 1, MEMCGS_MAX);
	if (h->depth < 1 || h->depth > MEMCG_DEPTH_MAX)
		return outside(name, "depth", h->depth, 1, MEMCG_DEPTH_MAX);
	if (h->sockets < 1 || h->sockets > TRACE_SOCKETS_MAX)
		return outside(name, "sockets", h->sockets, 1, TRACE_SOCKETS_MAX);
	if (h->batch < 1 || h->batch > 4096)
		return outside(name, "batch", h->batch, 1, 4096);
	if (h->records > TRACE_RECORDS_MAX)
		return outside(name, "records", h->records, 1, TRACE_RECORDS_MAX);
	if (h->requests < 1 || h->records < 1) {
		fprintf(stderr, "memcg-socket: %s: nothing was recorded\n", name);
		return -1;
	}
	return 0;
}

static int read_all(const char *path, FILE *in, struct trace_file *file)
{
	struct trace_header *h = &file->header;
	struct stat st = { .st_size = 0 };
	uint64_t want;

	if (fread(h, sizeof(*h), 1, in) != 1) {
		fprintf(stderr, "memcg-socket: %s: too short for a recording\n", path);
		return -1;
	}
	if (check_header(path, h) != 0)
		return -1;
	want = h->records * sizeof(struct trace_record) + sizeof(*h);
	if (fstat(fileno(in), &st) != 0 || (uint64_t)st.st_size != want)
		return complain(path, "file size", (uint64_t)st.st_size, want);
	file->records = malloc(h->records * sizeof(struct trace_record));
	if (!file->records || fread(file->records, sizeof(struct trace_record), h->records, in) != h->records) {
		fprintf(stderr, "memcg-socket: %s: %s\n", path, file->records ? "cannot be read" : "out of memory");
		return -1;
	}
	return trace_check(path, file);
}

int trace_read(const char *path, struct trace_file *file)
{
	FILE *in = fopen(path, "rb");
	int ret;

	memset(file, 0, sizeof(*file));
	if (!in) {
		fprintf(stderr, "memcg-socket: %s: %s\n", path, strerror(errno));
		return -1;
	}
	ret = read_all(path, in, file);
	fclose(in);
	if (ret)
		trace_free(file);
	return ret;
}

/* what a check follows of each socket */
struct trace_socket {
	int64_t queued[2]; /* rmem, wmem */
	int64_t kept;	   /* bought and not in use; less than a page after an uncharge */
	uint16_t owner;	   /* thread + 1 */
	uint16_t memcg;
	uint8_t closed;
};

static const char *check_record(const struct trace_header *h, const struct trace_record *r, struct trace_socket *sk)
{
	bool charge = r->kind == TRACE_RMEM_CHARGE || r->kind == TRACE_WMEM_CHARGE;
	int64_t *queued = &sk->queued[r->kind >= TRACE_WMEM_CHARGE];
	int64_t pages;

	if (sk->closed)
		return "its socket was closed before";
	if (!sk->owner) {
		sk->owner = (uint16_t)(r->thread + 1);
		sk->memcg = r->memcg;
	}
	if (sk->owner != r->thread + 1 || sk->memcg != r->memcg || r->memcg >= h->memcgs)
		return "its socket belongs to another thread or memcg";
	if (r->kind == TRACE_RELEASE) {
		sk->closed = 1;
		return r->size || r->pages || sk->queued[0] || sk->queued[1] ? "a socket is closed that holds memory"
									       : NULL;
	}
	if (charge && r->size < SKB_HEAD_TRUESIZE)
		return "smaller than an empty skb";
	if (charge) {
		*queued += r->size;
		pages = r->size > sk->kept ? pages_ceil(r->size - sk->kept) : 0;
		sk->kept += pages * PAGE_BYTES - r->size;
	} else {
		*queued -= r->size;
		pages = (sk->kept + r->size) >> PAGE_SHIFT;
		sk->kept += r->size - pages * PAGE_BYTES;
	}
	if (*queued < 0)
		return "more is uncharged than was charged";
	return pages != r->pages ? "pages don't agree with the sizes" : NULL;
}

int trace_check(const char *name, const struct trace_file *file)
{
	const struct trace_header *h = &file->header;
	struct trace_socket *sockets = calloc(h->sockets, sizeof(*sockets));
	const char *wrong = sockets ? NULL : "out of memory";
	uint16_t thread = 0;
	uint64_t i;

	for (i = 0; i < h->records && !wrong; i++) {
		const struct trace_record *r = &file->records[i];

		if (r->kind >= TRACE_KINDS || r->zero)
			wrong = "unknown kind";
		else if (r->thread >= h->threads || r->thread < thread)
			wrong = "thread out of range or out of order";
		else if (r->socket >= h->sockets)
			wrong = "socket out of range";
		else
			wrong = check_record(h, r, &sockets[r->socket]);
		thread = r->thread;
	}
	if (wrong)
		fprintf(stderr, "memcg-socket: %s: record %" PRIu64 ": %s\n", name, i - !!i, wrong);
	for (uint32_t s = 0; s < h->sockets && !wrong; s++) {
		if (sockets[s].owner && !sockets[s].closed) {
			wrong = "is never closed";
			fprintf(stderr, "memcg-socket: %s: socket %" PRIu32 " %s\n", name, s, wrong);
		}
	}
	free(sockets);
	return wrong ? -1 : 0;
}
