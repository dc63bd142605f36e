/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The allocation layer of a Redis-style server: malloc with a count of the bytes in use, which
 * INFO prints and eviction compares with maxmemory. Callable from anywhere, also before main.
 *
 * zmalloc.c is built once for each way of counting (used_*.h). ZMALLOC_PREFIX is put before the
 * names, so that one program can hold several and compare them; a server leaves it out.
 */
#ifndef ZMALLOC_H
#define ZMALLOC_H

#include <stddef.h>

#define ZMALLOC_PASTE(prefix, name) prefix##name
#define ZMALLOC_JOIN(prefix, name) ZMALLOC_PASTE(prefix, name)
#ifdef ZMALLOC_PREFIX
#define ZMALLOC_NAME(name) ZMALLOC_JOIN(ZMALLOC_PREFIX, name)
#else
#define ZMALLOC_NAME(name) name
#endif

/* What eviction wants to know. */
struct zmalloc_state {
	size_t used;   /* bytes, as zmalloc_used_memory */
	size_t excess; /* bytes to free to be within max again; 0: it surely is */
};

#define ZMALLOC_DECLARE(prefix)                                                                              \
	/* As malloc, calloc, realloc, but never NULL: out of memory ends in the handler, which aborts. */ \
	void *ZMALLOC_JOIN(prefix, zmalloc)(size_t size);                                                     \
	void *ZMALLOC_JOIN(prefix, zcalloc)(size_t n, size_t size);                                           \
	void *ZMALLOC_JOIN(prefix, zrealloc)(void *ptr, size_t size);                                         \
	/* The same, NULL when there is no memory. */                                                      \
	void *ZMALLOC_JOIN(prefix, ztrymalloc)(size_t size);                                                  \
	void *ZMALLOC_JOIN(prefix, ztryrealloc)(void *ptr, size_t size);                                      \
	void ZMALLOC_JOIN(prefix, zfree)(void *ptr);                                                          \
	char *ZMALLOC_JOIN(prefix, zstrdup)(const char *text);                                                \
	/* Bytes in use: cheap, at most zmalloc_used_slack() too high and never too low (the sharded        \
	 * array: only while no other thread works). */                                                    \
	size_t ZMALLOC_JOIN(prefix, zmalloc_used_memory)(void);                                               \
	/* Bytes in use, to the byte. */                                                                   \
	size_t ZMALLOC_JOIN(prefix, zmalloc_used_memory_exact)(void);                                         \
	size_t ZMALLOC_JOIN(prefix, zmalloc_used_slack)(void);                                                \
	/*                                                                                                 \
	 * Compares with max bytes, cheaply: eviction may begin slack bytes early, never late. Add up what \
	 * evicting frees from the blocks' sizes; a difference of two readings would show batches.         \
	 */                                                                                                \
	struct zmalloc_state ZMALLOC_JOIN(prefix, zmalloc_state)(size_t max);                                 \
	void ZMALLOC_JOIN(prefix, zmalloc_set_oom_handler)(void (*handler)(size_t size));                     \
	/* What counts: "pcbatch rseq", "one atomic", ... */                                               \
	const char *ZMALLOC_JOIN(prefix, zmalloc_counter)(void)

#ifdef ZMALLOC_PREFIX
ZMALLOC_DECLARE(ZMALLOC_PREFIX);
#else
ZMALLOC_DECLARE();
#endif

#endif /* ZMALLOC_H */
