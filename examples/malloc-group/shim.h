/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim.h - what the files of libpcbatch-malloc.so share.
 *
 * A block's group stands in a table beside the heap (tag.h), so that blocks keep the
 * size, the alignment and the contents that the real allocator gives them, and a block
 * that did not come through here is known as such. What is charged for a block is its
 * malloc_usable_size, at malloc and at free.
 */
#ifndef MALLOC_GROUP_SHIM_H
#define MALLOC_GROUP_SHIM_H

#include <pcbatch.h>

#include "malloc_group.h"

/* Files are built with -fvisibility=hidden; this is what programs see. */
#define SHIM_EXPORT __attribute__((visibility("default")))
#define SHIM_COLD __attribute__((noinline, cold))

/* Blocks are at least this far apart when no request is smaller: glibc, jemalloc and mimalloc alike. */
#define SHIM_GRANULE 16
/* From here on a limit is looked at before the allocator is bothered. */
#define SHIM_LARGE ((size_t)64 << 10)
#define SHIM_PAGE ((size_t)4096)
#define SHIM_GROUPS 65535
#define SHIM_NAME 48

/* The allocator behind us. All of one object; what it does not have is made from what it has. */
struct shim_real {
	void *(*malloc)(size_t);
	void (*free)(void *);
	size_t (*usable)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*good_size)(size_t); /* at least what usable will say after a realloc to that size */
	const char *path;
};

extern struct shim_real shim_real;

/*
 * What malloc_usable_size says of a block asked for with up to 16 * index bytes, where the
 * allocator promises that (jemalloc's nallocx), up to shim_classed bytes; else that is 0.
 */
#define SHIM_CLASSES 256
extern uint16_t shim_class[SHIM_CLASSES + 1];
extern size_t shim_classed;

/*
 * Index: the group's number. [0] is NULL until everything is set up, so that the hot
 * path has one test for that and for a group that has gone.
 */
extern struct pcbatch_group *shim_group[SHIM_GROUPS];
extern __thread uint32_t shim_here __attribute__((tls_model("initial-exec")));

struct shim_name {
	char text[SHIM_NAME];
};
extern struct shim_name shim_names[SHIM_GROUPS];
extern int32_t shim_parent[SHIM_GROUPS];
extern uint32_t shim_groups; /* numbers ever used */
extern struct pcbatch_domain shim_domain;

/* The environment, checked. Sizes are bytes. */
struct shim_config {
	uint64_t max, high, batch;
	char group[SHIM_NAME];
	char stat[512]; /* "" none, "stderr", or an absolute path */
	int signal;     /* 0: none */
	bool audit;
};
extern struct shim_config shim_config;

/* config.c: reads PCBATCH_MALLOC_*; a message and exit status 2 when something is wrong there. */
void shim_config_read(char **env, struct shim_config *c);
bool shim_name_valid(const char *name);

/* init.c */
bool shim_ready(void);    /* sets everything up if need be; false: this call has to do without accounting */
bool shim_real_now(void); /* whether shim_real can be used; else there is shim_boot_alloc only */
void *shim_boot_alloc(size_t size, size_t align);
size_t shim_boot_size(const void *p); /* 0: p is not from there */

#define SHIM_BOOT_BYTES 65536
extern char shim_boot[SHIM_BOOT_BYTES];

static inline bool shim_boot_has(const void *p)
{
	return (uintptr_t)p - (uintptr_t)shim_boot < SHIM_BOOT_BYTES;
}

int shim_freeze(void);                /* other threads wait in the real functions from here to shim_thaw */
void shim_thaw(void);

/* shim.c: for a free that has no tag */
uint64_t shim_foreign_frees(void);
uint64_t shim_early(void);

/* group.c */
void shim_lock(void);
void shim_unlock(void);
struct shim_tally {
	uint64_t rest;     /* bytes in remainders below */
	uint64_t children; /* bytes of the children's pages */
};
void shim_tally(struct shim_tally *tally); /* SHIM_GROUPS of them; async-signal-safe */
uint64_t shim_bytes(struct pcbatch_group *g); /* charged and not free in the group's shared remainder */
int shim_root_add(void); /* the root, and the process's own group when the environment names one */
int shim_group_info(int id, struct malloc_group_info *out); /* what the slots hold is not looked for */
size_t shim_bound(void);
int shim_audit_all(bool (*each)(uint32_t id, const struct malloc_group_found *a, void *ctx), void *ctx);

/* report.c: async-signal-safe but for walk */
void shim_report(const char *why, bool walk);
void shim_refused(uint32_t id, size_t bytes);
void shim_die(const char *a, const char *b, const char *c, const char *d) __attribute__((noreturn));

void shim_signal_start(void);

#endif /* MALLOC_GROUP_SHIM_H */
