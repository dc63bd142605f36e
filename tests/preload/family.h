/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* family.h - what the parts of the family program share; family.c says what it is for. */
#ifndef TESTS_FAMILY_H
#define TESTS_FAMILY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/malloc-group/malloc_group.h"

extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

#define CHECK(cond)                                                              \
	do {                                                                     \
		if (!(cond)) {                                                   \
			fprintf(stderr, "family: line %d: %s\n", __LINE__, #cond); \
			_exit(1);                                                \
		}                                                                \
	} while (0)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum call { MALLOC, CALLOC, REALLOC, REALLOCARRAY, MEMALIGN, POSIX_MEMALIGN, ALIGNED_ALLOC, VALLOC, PVALLOC, CALLS };

extern bool on; /* the accounting is there */
/* The compiler must not know what is allocated, or it leaves the pair out. */
extern void *volatile hide;

size_t bytes_of(int group);
void exact(int group, size_t want);                        /* charged to it are so many bytes */
void audited(int group, uint64_t blocks, size_t bytes);    /* and a walk of the heap finds them */
int group_new(const char *name, int parent, size_t max);
uint32_t next_random(uint32_t *state);
void *call(enum call c, size_t align, size_t n);
bool all_are(const unsigned char *p, size_t n, unsigned char value);
bool out_of_memory(const void *p); /* and errno says so; jemalloc and mimalloc alone forget it in places */

/* family_calls.c */
void every_call(void);
void refusals_of_nonsense(void);
void reallocs(void);
void from_libc(void);
/* family_limits.c */
void limits(void);
void no_address_space(void);
void groups(void);
/* family_threads.c */
void handed_on(void);
void walked(void);
void movers(void);
void threads(void);
void forks(void);

#endif /* TESTS_FAMILY_H */
