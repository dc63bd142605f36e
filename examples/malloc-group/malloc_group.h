/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_group.h - for programs that run under libpcbatch-malloc.so: groups of blocks
 * with a name, a parent and a limit. A thread is in one group at a time; what it
 * allocates is charged to that group and all above it, until it is freed, by whichever
 * thread. A new thread is in group 0, that of the process.
 *
 * When the shared object is not preloaded every call does nothing and returns 0.
 * Functions return 0 or more, or a negative errno. Groups are small numbers.
 * Threading: any thread, not from signal handlers, but enter and leave.
 * (Link with -ldl where the C library is older than glibc 2.34.)
 */
#ifndef MALLOC_GROUP_H
#define MALLOC_GROUP_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MALLOC_GROUP_PROCESS 0 /* what threads are in that have not entered another one */
#define MALLOC_GROUP_ROOT 1    /* the top; the same as 0 unless PCBATCH_MALLOC_GROUP names a group */
#define MALLOC_GROUP_NO_LIMIT SIZE_MAX

/* Sizes are bytes; limits and peak are counted in pages of 4096. */
struct malloc_group_info {
	char name[48];
	int parent; /* -1: none */
	size_t bytes; /* in live blocks, of the group and all below it; see malloc_group_read and _sum */
	size_t peak;  /* the most that was granted, what CPUs held ready included */
	size_t max, high; /* MALLOC_GROUP_NO_LIMIT: none */
	uint64_t refused; /* calls that returned NULL because of this group's limit */
	uint64_t events_high, events_max, failcnt; /* charges above high, charges that met max, tries of pages that met it */
};

/* What heap walks find: the blocks themselves, against what is charged for them. */
struct malloc_group_found {
	uint64_t blocks;
	size_t bytes;        /* sum of malloc_usable_size */
	int64_t difference;  /* what is charged more than that: 0 when no call is in flight */
};

struct malloc_group_calls {
	int version; /* 1 */
	int (*create)(const char *name, int parent, size_t max);
	int (*destroy)(int group);
	int (*enter)(int group);
	int (*current)(void);
	int (*find)(const char *name);
	int (*of)(const void *block);
	int (*set_max)(int group, size_t max);
	int (*set_high)(int group, size_t high);
	int (*read)(int group, struct malloc_group_info *out);
	int (*sum)(int group, struct malloc_group_info *out);
	int (*audit)(int group, struct malloc_group_found *out);
	size_t (*bound)(void);
};

/* Looked up by name: a weak reference would read as absent in executables that are not position independent. */
static inline const struct malloc_group_calls *malloc_group_api(void)
{
	static const struct malloc_group_calls *api;
	static int looked;

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		api = (const struct malloc_group_calls *)dlsym(NULL, "pcbatch_malloc_group_api");
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	return api;
}

/* Whether the shared object is there. */
static inline int malloc_group_active(void)
{
	return malloc_group_api() != NULL;
}

/*
 * Makes a group. name: 1 to 47 letters, digits or . _ - :, unique. parent: a group.
 * Returns: its number; -EINVAL; -EEXIST; -ENOMEM; -ENOSPC there are 65533 already.
 */
static inline int malloc_group_create(const char *name, int parent, size_t max)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->create(name, parent, max);
}

/* Ends a group that no thread is in. Returns: 0; -EBUSY blocks or children of it are alive; -EINVAL no such group. */
static inline int malloc_group_destroy(int group)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->destroy(group);
}

/* Puts the calling thread into a group. Returns the one it was in, to go back to; -EINVAL no such group. */
static inline int malloc_group_enter(int group)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->enter(group);
}

/* Back to what malloc_group_enter returned. */
static inline void malloc_group_leave(int previous)
{
	(void)malloc_group_enter(previous);
}

/* The group the calling thread is in. */
static inline int malloc_group_current(void)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->current();
}

/* The group with this name ("/" is the root). Returns: its number; -ENOENT. */
static inline int malloc_group_find(const char *name)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->find(name);
}

/* The group a live block belongs to. Returns: its number; -ENOENT the block was not made by the accounted functions. */
static inline int malloc_group_of(const void *block)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->of(block);
}

/* Sets the limit. Returns: 0; -EBUSY live blocks are above it, and the old limit stands; -EINVAL. */
static inline int malloc_group_set_max(int group, size_t max)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->set_max(group, max);
}

/* Sets the mark above which charges count events_high. Returns: 0; -EINVAL. */
static inline int malloc_group_set_high(int group, size_t high)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->set_high(group, high);
}

/* Cheap: bytes includes what CPUs hold ready, at most malloc_group_bound for each group below. Returns: 0; -EINVAL. */
static inline int malloc_group_read(int group, struct malloc_group_info *out)
{
	memset(out, 0, sizeof(*out));
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->read(group, out);
}

/* Exact, but for calls in flight in other threads: takes back what CPUs hold first, by one system call. */
static inline int malloc_group_sum(int group, struct malloc_group_info *out)
{
	memset(out, 0, sizeof(*out));
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->sum(group, out);
}

/*
 * Walks the heap: every block of this group alone (not of those below it). Other
 * threads' calls of the malloc family wait meanwhile. Returns: 0; -EINVAL; -ENOSYS
 * the kernel has no membarrier.
 */
static inline int malloc_group_audit(int group, struct malloc_group_found *out)
{
	memset(out, 0, sizeof(*out));
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->audit(group, out);
}

/* How far malloc_group_read may be above the truth, for each group in the subtree: bytes a CPU holds times CPUs. */
static inline size_t malloc_group_bound(void)
{
	return malloc_group_api() == NULL ? 0 : malloc_group_api()->bound();
}

#ifdef __cplusplus
}
#endif

#endif /* MALLOC_GROUP_H */
