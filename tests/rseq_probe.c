/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says whether the rseq backend must work on this machine: exit status 0 when it must, 77 with the
 * reason when it cannot. It asks the kernel and the C library, never pcbatch: a library that
 * wrongly gave up on rseq must fail its tests, not skip them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif
#ifndef HAVE_RSEQ
#define HAVE_RSEQ 0
#endif

static int skip(const char *why)
{
	printf("no rseq backend here: %s\n", why);
	return 77;
}

int main(void)
{
#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
	return skip("only Linux on x86-64 and AArch64 has one");
#elif !HAVE_RSEQ
	return skip("the C library registers no rseq area (glibc does from 2.35)");
#else
	const int register_rseq = 1 << 8; /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ */
	const struct rseq *area;

	if (__rseq_size == 0)
		return skip("the C library could not register its rseq area");
	area = (const struct rseq *)(const void *)((const char *)__builtin_thread_pointer() + __rseq_offset);
	if ((int)area->cpu_id < 0)
		return skip("the kernel does not keep the rseq area");
	if (syscall(SYS_membarrier, register_rseq, 0, 0) != 0)
		return skip(strerror(errno));
	return 0;
#endif
}
