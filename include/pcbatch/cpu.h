/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/cpu.h - how many CPUs can exist, which one this thread is on, and
 * whether restartable sequences (rseq) and their fence (membarrier) work here.
 *
 * The area that glibc 2.35 and later registers for each thread is used, and
 * only its rseq_cs field is ever written. Where libc registered none, a program
 * may opt in thread by thread with pcbatch_rseq_register.
 */
#ifndef PCBATCH_CPU_H
#define PCBATCH_CPU_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "atomic.h"

#if defined(__linux__)
#include <sys/syscall.h>
#endif

#if PCBATCH_USE_ASM && defined(__GLIBC__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define PCBATCH_PRIV_LIBC_RSEQ 1
#endif
#endif
#ifndef PCBATCH_PRIV_LIBC_RSEQ
#define PCBATCH_PRIV_LIBC_RSEQ 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What the kernel wants before an abort handler; glibc registers with the same value. */
#define PCBATCH_PRIV_RSEQ_SIG_X86 0x53053053
#define PCBATCH_PRIV_RSEQ_SIG_ARM64 0xd428bc00

/* membarrier(2) commands, spelled out so that old kernel headers do. */
#define PCBATCH_PRIV_MB_FENCE_RSEQ (1 << 7)
#define PCBATCH_PRIV_MB_REGISTER_RSEQ (1 << 8)

/*
 * A thread's own rseq area, for programs whose libc registers none. Declare one
 * with static storage and thread duration in the main program:
 *	static __thread struct pcbatch_rseq_area area = PCBATCH_RSEQ_AREA_INIT;
 * The kernel writes it, up to the moment the thread unregisters it.
 */
struct pcbatch_rseq_area {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags;
	uint32_t reserved[3];
} PCBATCH_ALIGNED(32);

PCBATCH_STATIC_ASSERT(sizeof(struct pcbatch_rseq_area) == 32, "the size the rseq system call is given");

/* cpu_id is "not registered", so that a thread that never registers is seen as such. */
#define PCBATCH_RSEQ_AREA_INIT { 0, UINT32_MAX, 0, 0, { 0, 0, 0 } }

#if defined(__linux__)
/* Strict C11 hides syscall(); the symbol is there all the same. */
long pcbatch_priv_syscall(long number, ...) __asm__("syscall");
#endif

/* Of this thread; the same in every unit and shared object. */
PCBATCH_ALWAYS_INLINE uintptr_t pcbatch_priv_thread_pointer(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	uintptr_t tp;

	__asm__("movq %%fs:0, %0" : "=r"(tp));
	return tp;
#elif defined(__aarch64__)
	uintptr_t tp;

	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
#else
	/* Any address that differs between threads will do where there are no sections. */
	return (uintptr_t)&errno;
#endif
}

PCBATCH_INLINE uint32_t pcbatch_priv_parse_cpu_list(const char *text, size_t length)
{
	uint32_t last = 0, number = 0;
	size_t i;

	for (i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			number = number * 10 + (uint32_t)(text[i] - '0');
			if (number >= PCBATCH_CPUS_MAX)
				return PCBATCH_CPUS_MAX;
			last = number > last ? number : last;
		} else {
			number = 0;
		}
	}
	return last + 1;
}

/*
 * How many CPU numbers can ever occur: the highest possible id plus one.
 *
 * Possible, not online and not allowed: hotplug and cpusets change those, and
 * musl's sysconf reports only the allowed ones.
 *
 * Returns: 1 to PCBATCH_CPUS_MAX (CPUs).
 * Threading: any thread. Progress: opens and reads one file of sysfs.
 */
PCBATCH_INLINE uint32_t pcbatch_cpu_possible(void)
{
	char text[4096];
	ssize_t length = -1;
	long configured;
#ifdef O_CLOEXEC /* strict C11 hides it */
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
#else
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY);
#endif

	if (fd >= 0) {
		length = read(fd, text, sizeof(text));
		(void)close(fd);
	}
	if (length > 0)
		return pcbatch_priv_parse_cpu_list(text, (size_t)length);
	configured = sysconf(_SC_NPROCESSORS_CONF);
	if (configured < 1)
		return 1;
	return configured > PCBATCH_CPUS_MAX ? PCBATCH_CPUS_MAX : (uint32_t)configured;
}

/* The area `off` bytes from this thread's pointer. */
PCBATCH_ALWAYS_INLINE struct pcbatch_rseq_area *pcbatch_priv_rseq_area(intptr_t off)
{
	return (struct pcbatch_rseq_area *)(pcbatch_priv_thread_pointer() + (uintptr_t)off);
}

/* This thread's CPU as the kernel last wrote it; -1 or less when the area is not registered. */
PCBATCH_ALWAYS_INLINE int32_t pcbatch_priv_rseq_cpu(intptr_t off)
{
	return (int32_t)*(volatile uint32_t *)&pcbatch_priv_rseq_area(off)->cpu_id;
}

/* Where libc's area is, and whether it registered it for this thread. */
PCBATCH_INLINE bool pcbatch_priv_rseq_libc(intptr_t *off)
{
#if PCBATCH_PRIV_LIBC_RSEQ
	*off = (intptr_t)__rseq_offset;
	return __rseq_size > 0 && pcbatch_priv_rseq_cpu(*off) >= 0;
#else
	*off = 0;
	return false;
#endif
}

/*
 * The area's offset for the hit path. Where libc has one it is the same for every
 * domain and a constant of the process, so that the compiler may keep it in a
 * register: loading it from the domain puts two dependent loads in front of each
 * section, a cycle and a half per add. A domain on an area of the program's own finds
 * libc's not registered there, fails the bound, and goes on with dom_off.
 * 0: there is none, don't try.
 */
PCBATCH_ALWAYS_INLINE intptr_t pcbatch_priv_hit_off(intptr_t dom_off)
{
#if PCBATCH_PRIV_LIBC_RSEQ && defined(__x86_64__) && defined(__clang__) && (!defined(__PIC__) || defined(__PIE__))
	intptr_t off;

	/* What gcc does by itself in an executable: no detour by the global offset table. */
	(void)dom_off;
	__asm__("movq __rseq_offset(%%rip), %0" : "=r"(off));
	return off;
#elif PCBATCH_PRIV_LIBC_RSEQ
	(void)dom_off;
	return (intptr_t)__rseq_offset;
#else
	return dom_off;
#endif
}

/* Whether the hit path may try its section at all; known when compiling where libc has the area. */
PCBATCH_ALWAYS_INLINE bool pcbatch_priv_try_section(intptr_t off)
{
#if PCBATCH_PRIV_LIBC_RSEQ
	(void)off;
	return true;
#else
	return PCBATCH_USE_ASM && off != 0;
#endif
}

PCBATCH_INLINE int pcbatch_priv_rseq_call(struct pcbatch_rseq_area *area, int flags)
{
#if defined(SYS_rseq) && defined(__x86_64__)
	const uint32_t sig = PCBATCH_PRIV_RSEQ_SIG_X86;
#else
	const uint32_t sig = PCBATCH_PRIV_RSEQ_SIG_ARM64;
#endif
#if defined(SYS_rseq) && PCBATCH_USE_ASM
	if (pcbatch_priv_syscall(SYS_rseq, area, (uint32_t)sizeof(*area), flags, sig) == 0)
		return 0;
	/* EINVAL: this thread has another area; EBUSY: it has this one. */
	return errno == EINVAL || errno == EBUSY ? -EBUSY : -ENOSYS;
#else
	(void)area;
	(void)flags;
	(void)sig;
	return -ENOSYS;
#endif
}

/*
 * Registers this thread's own rseq area, where libc registered none.
 *
 * area: this thread's, static thread-local storage of the main program (see
 *	struct pcbatch_rseq_area). Must stay mapped until unregistered.
 * Returns: 0; -EINVAL area is NULL; -EBUSY somebody else owns this thread's
 *	registration (libc, another library) or it is registered already;
 *	-ENOSYS the kernel or a filter refuses rseq, or this unit has no sections.
 * Threading: the calling thread only. Progress: one system call.
 */
PCBATCH_INLINE int pcbatch_rseq_register(struct pcbatch_rseq_area *area)
{
	intptr_t off;

	if (area == NULL)
		return -EINVAL;
	if (pcbatch_priv_rseq_libc(&off))
		return -EBUSY;
	return pcbatch_priv_rseq_call(area, 0);
}

/*
 * Ends the registration. A thread that registered must call this before it exits:
 * musl unmaps the stack that holds the area, and the kernel would write to it.
 *
 * area: the one given to pcbatch_rseq_register by this thread.
 * Returns: 0; -EINVAL area is NULL; -EBUSY it is not this thread's registration;
 *	-ENOSYS the kernel or a filter refuses rseq, or this unit has no sections.
 * Threading: the calling thread only. Progress: one system call.
 */
PCBATCH_INLINE int pcbatch_rseq_unregister(struct pcbatch_rseq_area *area)
{
	int err;

	if (area == NULL)
		return -EINVAL;
	err = pcbatch_priv_rseq_call(area, 1);
	if (err == 0)
		*(volatile uint32_t *)&area->cpu_id = UINT32_MAX;
	return err;
}

/*
 * Asks for the fence that restarts running sections, once per process image.
 * Returns 0 or -ENOSYS.
 */
PCBATCH_INLINE int pcbatch_priv_fence_register(void)
{
#if defined(SYS_membarrier)
	if (pcbatch_priv_syscall(SYS_membarrier, PCBATCH_PRIV_MB_REGISTER_RSEQ, 0, 0) == 0)
		return 0;
#endif
	return -ENOSYS;
}

/*
 * Returns when every section that another thread of this process was in has
 * been aborted or finished, and all its stores are visible; a full barrier here.
 * Async-signal-safe; keeps errno. Returns 0 or the negative errno of the refusal.
 */
PCBATCH_INLINE int pcbatch_priv_fence_rseq(void)
{
#if defined(SYS_membarrier)
	int saved = errno, err = 0;

	if (pcbatch_priv_syscall(SYS_membarrier, PCBATCH_PRIV_MB_FENCE_RSEQ, 0, 0) != 0)
		err = -errno;
	errno = saved;
	return err;
#else
	return -ENOSYS;
#endif
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_CPU_H */
