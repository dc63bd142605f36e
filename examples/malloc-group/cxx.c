/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cxx.c - C++ operator new and delete. libstdc++'s call malloc, but jemalloc and mimalloc
 * bring their own, which would go past the accounting. Here they are malloc and free
 * for every allocator; what is to be thrown is asked of libstdc++, which a C++ program has.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

typedef void (*handler_fn)(void);

/* std::get_new_handler and std::__throw_bad_alloc. */
static SHIM_COLD void no_memory(int nothrow)
{
	handler_fn (*get)(void), handler, bad_alloc;
	void *g = dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv"), *t = dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv");

	memcpy(&get, &g, sizeof(g));
	memcpy(&bad_alloc, &t, sizeof(t));
	handler = get == NULL ? NULL : get();
	if (handler != NULL)
		handler();
	else if (!nothrow && bad_alloc != NULL)
		bad_alloc();
	else if (!nothrow)
		abort();
}

static inline __attribute__((always_inline)) int may_retry(int nothrow)
{
	handler_fn (*get)(void);
	void *g;

	if (!nothrow)
		return 1;
	g = dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv");
	memcpy(&get, &g, sizeof(g));
	return get != NULL && get() != NULL;
}

static SHIM_COLD void *again(size_t n, size_t align, int nothrow)
{
	void *p = NULL;

	while (p == NULL && may_retry(nothrow)) {
		no_memory(nothrow);
		p = align == 0 ? malloc(n) : aligned_alloc(align, n);
	}
	return p;
}

static inline __attribute__((always_inline)) void *new_plain(size_t n, int nothrow)
{
	void *p = malloc(n);

	return PCBATCH_LIKELY(p != NULL) ? p : again(n, 0, nothrow);
}

static inline __attribute__((always_inline)) void *new_aligned(size_t n, size_t align, int nothrow)
{
	void *p = aligned_alloc(align, n);

	return PCBATCH_LIKELY(p != NULL) ? p : again(n, align, nothrow);
}

#define NEW(name, args, body)           \
	SHIM_EXPORT void *name args;    \
	SHIM_EXPORT void *name args     \
	{                               \
		return body;            \
	}
#define DELETE(name, args)              \
	SHIM_EXPORT void name args;     \
	SHIM_EXPORT void name args      \
	{                               \
		free(p);                \
	}
#define UNUSED __attribute__((unused))

NEW(_Znwm, (size_t n), new_plain(n, 0))
NEW(_Znam, (size_t n), new_plain(n, 0))
NEW(_ZnwmRKSt9nothrow_t, (size_t n, UNUSED const void *t), new_plain(n, 1))
NEW(_ZnamRKSt9nothrow_t, (size_t n, UNUSED const void *t), new_plain(n, 1))
NEW(_ZnwmSt11align_val_t, (size_t n, size_t a), new_aligned(n, a, 0))
NEW(_ZnamSt11align_val_t, (size_t n, size_t a), new_aligned(n, a, 0))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, UNUSED const void *t), new_aligned(n, a, 1))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, UNUSED const void *t), new_aligned(n, a, 1))
DELETE(_ZdlPv, (void *p))
DELETE(_ZdaPv, (void *p))
DELETE(_ZdlPvm, (void *p, UNUSED size_t n))
DELETE(_ZdaPvm, (void *p, UNUSED size_t n))
DELETE(_ZdlPvRKSt9nothrow_t, (void *p, UNUSED const void *t))
DELETE(_ZdaPvRKSt9nothrow_t, (void *p, UNUSED const void *t))
DELETE(_ZdlPvSt11align_val_t, (void *p, UNUSED size_t a))
DELETE(_ZdaPvSt11align_val_t, (void *p, UNUSED size_t a))
DELETE(_ZdlPvmSt11align_val_t, (void *p, UNUSED size_t n, UNUSED size_t a))
DELETE(_ZdaPvmSt11align_val_t, (void *p, UNUSED size_t n, UNUSED size_t a))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, UNUSED size_t a, UNUSED const void *t))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, UNUSED size_t a, UNUSED const void *t))
