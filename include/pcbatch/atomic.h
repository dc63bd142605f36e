/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/atomic.h - the one door to atomics.
 *
 * Plain integer fields, explicit order. Loads and stores are relaxed unless the
 * name says otherwise. Every read-modify-write is a full barrier on both sides:
 * they stand on slow paths only, and several of them (a taken slot, a raised
 * gate, a limit) are one half of a store-then-load handshake.
 *
 * The operations are Concurrency Kit's, or the compiler's builtins when
 * PCBATCH_USE_BUILTINS is 1. Concurrency Kit's read-modify-writes are relaxed on
 * AArch64, hence the fences around them there.
 */
#ifndef PCBATCH_ATOMIC_H
#define PCBATCH_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

#if !PCBATCH_USE_BUILTINS
#include <ck_pr.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if PCBATCH_USE_BUILTINS

/* Otherwise they are calls of libatomic with its locks, and a signal handler would wait for the thread it interrupted. */
#if defined(__clang__)
PCBATCH_STATIC_ASSERT(__atomic_always_lock_free(sizeof(uint64_t), NULL), "64-bit atomics must be lock-free");
#else
PCBATCH_STATIC_ASSERT(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free");
#endif

/* i386 aligns 64-bit members to 4 bytes only; those that are used here have 8, which clang has to be told. */
typedef uint64_t pcbatch_priv_word PCBATCH_ALIGNED(8);

/* A sequentially consistent exclusive pair on AArch64 lets later loads pass its store. */
#if defined(__aarch64__)
#define PCBATCH_PRIV_RMW_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#define PCBATCH_PRIV_RMW_FENCE() ((void)0)
#endif

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_load(const uint64_t *p)
{
	return __atomic_load_n((const pcbatch_priv_word *)p, __ATOMIC_RELAXED);
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store(uint64_t *p, uint64_t v)
{
	__atomic_store_n((pcbatch_priv_word *)p, v, __ATOMIC_RELAXED);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_load_acquire(const uint64_t *p)
{
	return __atomic_load_n((const pcbatch_priv_word *)p, __ATOMIC_ACQUIRE);
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n((pcbatch_priv_word *)p, v, __ATOMIC_RELEASE);
}

PCBATCH_ALWAYS_INLINE void *pcbatch_priv_load_ptr(void *const *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store_ptr(void **p, void *v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_fetch_add(uint64_t *p, uint64_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = __atomic_fetch_add((pcbatch_priv_word *)p, v, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_exchange(uint64_t *p, uint64_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = __atomic_exchange_n((pcbatch_priv_word *)p, v, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

/* True when *p was old and is now v. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas(uint64_t *p, uint64_t old, uint64_t v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = __atomic_compare_exchange_n((pcbatch_priv_word *)p, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas_ptr(void **p, void *old, void *v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE void *pcbatch_priv_exchange_ptr(void **p, void *v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store32(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_exchange32(uint32_t *p, uint32_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas32(uint32_t *p, uint32_t old, uint32_t v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_fence(void)
{
#if PCBATCH_THREAD_SANITIZER
	/* ThreadSanitizer does not model fences; a read-modify-write it does. */
	static uint64_t dummy;
	(void)__atomic_fetch_add(&dummy, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#else /* Concurrency Kit */

/*
 * Its fences follow the memory model that its own build was configured for, which a
 * cross build takes from the wrong machine: on AArch64 the strict ones are asked for.
 */
#if defined(__aarch64__)
#define PCBATCH_PRIV_ACQUIRE() ck_pr_fence_strict_acquire()
#define PCBATCH_PRIV_RELEASE() ck_pr_fence_strict_release()
#else
#define PCBATCH_PRIV_ACQUIRE() ck_pr_fence_acquire()
#define PCBATCH_PRIV_RELEASE() ck_pr_fence_release()
#endif

#if defined(__aarch64__)
#define PCBATCH_PRIV_RMW_FENCE() ck_pr_fence_strict_memory()
#else
#define PCBATCH_PRIV_RMW_FENCE() ck_pr_barrier()
#endif

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_load(const uint64_t *p)
{
	return ck_pr_load_64(p);
}

/* ck_pr_store_64 (0.7) lets the compiler pass constants that no store instruction can hold: keep them in a register. */
PCBATCH_ALWAYS_INLINE void pcbatch_priv_store(uint64_t *p, uint64_t v)
{
	__asm__("" : "+r"(v));
	ck_pr_store_64(p, v);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_load_acquire(const uint64_t *p)
{
	uint64_t v = ck_pr_load_64(p);

	PCBATCH_PRIV_ACQUIRE();
	return v;
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store_release(uint64_t *p, uint64_t v)
{
	PCBATCH_PRIV_RELEASE();
	pcbatch_priv_store(p, v);
}

PCBATCH_ALWAYS_INLINE void *pcbatch_priv_load_ptr(void *const *p)
{
	void *v = ck_pr_load_ptr(p);

	PCBATCH_PRIV_ACQUIRE();
	return v;
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store_ptr(void **p, void *v)
{
	PCBATCH_PRIV_RELEASE();
	ck_pr_store_ptr(p, v);
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_fetch_add(uint64_t *p, uint64_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = ck_pr_faa_64(p, v);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_exchange(uint64_t *p, uint64_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = ck_pr_fas_64(p, v);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

/* True when *p was old and is now v. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas(uint64_t *p, uint64_t old, uint64_t v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = ck_pr_cas_64(p, old, v);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas_ptr(void **p, void *old, void *v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = ck_pr_cas_ptr(p, old, v);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE void *pcbatch_priv_exchange_ptr(void **p, void *v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = ck_pr_fas_ptr(p, v);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_load32(const uint32_t *p)
{
	return ck_pr_load_32(p);
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_store32(uint32_t *p, uint32_t v)
{
	ck_pr_store_32(p, v);
}

PCBATCH_ALWAYS_INLINE uint32_t pcbatch_priv_exchange32(uint32_t *p, uint32_t v)
{
	PCBATCH_PRIV_RMW_FENCE();
	v = ck_pr_fas_32(p, v);
	PCBATCH_PRIV_RMW_FENCE();
	return v;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_cas32(uint32_t *p, uint32_t old, uint32_t v)
{
	bool done;

	PCBATCH_PRIV_RMW_FENCE();
	done = ck_pr_cas_32(p, old, v);
	PCBATCH_PRIV_RMW_FENCE();
	return done;
}

PCBATCH_ALWAYS_INLINE void pcbatch_priv_fence(void)
{
	ck_pr_fence_strict_memory();
}

#undef PCBATCH_PRIV_ACQUIRE
#undef PCBATCH_PRIV_RELEASE

#endif

#undef PCBATCH_PRIV_RMW_FENCE

/* The new value of *p after adding v. */
PCBATCH_ALWAYS_INLINE uint64_t pcbatch_priv_add_return(uint64_t *p, uint64_t v)
{
	return pcbatch_priv_fetch_add(p, v) + v;
}

/* Raises *p to v unless it is higher already (both signed). */
PCBATCH_INLINE void pcbatch_priv_raise(uint64_t *p, int64_t v)
{
	uint64_t old = pcbatch_priv_load(p);

	while ((int64_t)old < v && !pcbatch_priv_cas(p, old, (uint64_t)v))
		old = pcbatch_priv_load(p);
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_ATOMIC_H */
