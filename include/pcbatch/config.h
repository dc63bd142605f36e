/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/config.h - every compile-time tunable, its default, range and risk.
 *
 * Each may be set with -D, or all of them in one header named by
 * PCBATCH_CONFIG_HEADER (with its quotes or brackets). Each is always defined
 * to a number, so that it can be tested with #if under -Wundef. What can differ
 * between two domains of one program is not here but in pcbatch_domain_attr.
 */
#ifndef PCBATCH_CONFIG_H
#define PCBATCH_CONFIG_H

#include "version.h"

#ifdef PCBATCH_CONFIG_HEADER
#include PCBATCH_CONFIG_HEADER
#endif

/* 1: misuse stops the program with a message (see PCBATCH_PRIV_ASSERT); 0: it returns an error. */
#ifndef PCBATCH_DEBUG
#define PCBATCH_DEBUG 0
#endif

/* ThreadSanitizer can't see into assembly, so a unit built with it uses neither the sections nor Concurrency Kit. */
#ifndef PCBATCH_THREAD_SANITIZER
#if defined(__SANITIZE_THREAD__)
#define PCBATCH_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PCBATCH_THREAD_SANITIZER 1
#else
#define PCBATCH_THREAD_SANITIZER 0
#endif
#else
#define PCBATCH_THREAD_SANITIZER 0
#endif
#endif

/*
 * 1: atomics are compiler builtins; 0: they are Concurrency Kit's ck_pr.
 * The default is ck_pr on 64-bit x86 and Arm when <ck_pr.h> can be found.
 */
#ifndef PCBATCH_USE_BUILTINS
#if PCBATCH_THREAD_SANITIZER
#define PCBATCH_USE_BUILTINS 1
#elif (defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__))
#if defined(__has_include)
#if __has_include(<ck_pr.h>)
#define PCBATCH_USE_BUILTINS 0
#else
#define PCBATCH_USE_BUILTINS 1
#endif
#else
#define PCBATCH_USE_BUILTINS 1
#endif
#else
#define PCBATCH_USE_BUILTINS 1
#endif
#endif

/*
 * 1: the restartable sequences of this architecture are compiled in; 0: they are
 * not, and a domain that another unit put on the rseq backend is used through its
 * global counters only (correct, and as slow as a shared atomic).
 */
#ifndef PCBATCH_USE_ASM
#if PCBATCH_THREAD_SANITIZER || !defined(__linux__)
#define PCBATCH_USE_ASM 0
#elif defined(__x86_64__) && defined(__LP64__)
#define PCBATCH_USE_ASM 1
#elif defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
#define PCBATCH_USE_ASM 1
#else
#define PCBATCH_USE_ASM 0
#endif
#endif

/* 1: a stock hit also counts itself, in the CPU's own line (one instruction); 0: hits read as zero. */
#ifndef PCBATCH_COUNT_HITS
#define PCBATCH_COUNT_HITS 1
#endif

/* Bytes a CPU's data is kept apart by: what two CPUs would fight over. */
#ifndef PCBATCH_CACHE_LINE
#define PCBATCH_CACHE_LINE 64
#endif

/*
 * log2 of the bytes that one CPU owns in a chunk of per-CPU memory, 12 to 17.
 * A chunk is (CPUs + 1) << PCBATCH_REGION_SHIFT bytes of address space, touched
 * only where used. Must be the same in every unit that shares a domain.
 */
#ifndef PCBATCH_REGION_SHIFT
#define PCBATCH_REGION_SHIFT 16
#endif

/* How often an interrupted update is tried again before it goes to the global counter, 1 to 100. */
#ifndef PCBATCH_RETRIES
#define PCBATCH_RETRIES 3
#endif

/* The largest number of CPUs that a domain will serve; the generic backend has four lines for each. */
#define PCBATCH_CPUS_MAX 16384

#endif /* PCBATCH_CONFIG_H */
