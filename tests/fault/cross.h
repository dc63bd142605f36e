/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What test_cross.c is made of: one thread, the victim, runs an operation and stops in the middle of it, at a
 * marked point of a section (it spins there, undisturbed) or of the C code. Another thread meanwhile does
 * something to it, and lets it go on. Include first.
 */
#ifndef FAULT_CROSS_H
#define FAULT_CROSS_H

static void cross_at_c(int n);
#define PCBATCH_INJECT_C(n) cross_at_c(n)
#if defined(__x86_64__)
extern __thread unsigned int cross_point, cross_spins;
extern volatile unsigned int cross_reached, cross_go;
/* The thread whose cross_point this is says so and waits, for about a second at most. Clobbers flags only. */
#define PCBATCH_INJECT_ASM(n)                                 \
	"cmpl $" #n ", %%fs:cross_point@tpoff\n\t"            \
	"jne 78f\n\t"                                         \
	"movl $0, %%fs:cross_point@tpoff\n\t"                 \
	"movl $1, cross_reached(%%rip)\n"                     \
	"77:\n\t"                                             \
	"decl %%fs:cross_spins@tpoff\n\t"                     \
	"jz 78f\n\t"                                          \
	"pause\n\t"                                           \
	"cmpl $0, cross_go(%%rip)\n\t"                        \
	"je 77b\n"                                            \
	"78:\n\t"
#endif
#include "../stress.h"

#define CROSS_ASM 20   /* points inside sections, 1 to 20 */
#define CROSS_C 39   /* points of the C code, 1 to 39 */
#define CROSS_POINTS (CROSS_ASM + CROSS_C)

__thread unsigned int cross_point __attribute__((used)), cross_spins __attribute__((used));
volatile unsigned int cross_reached __attribute__((used)), cross_go __attribute__((used));
static __thread int cross_c_point;

/* The other is on another CPU, mostly: so spin for a while, and let others run only then. */
static void cross_relax(void)
{
	static __thread unsigned int n;

	if (++n % 4096 == 0)
		(void)sched_yield();
#if defined(__x86_64__)
	else
		__builtin_ia32_pause();
#endif
}

static void cross_at_c(int n)
{
	uint64_t until;

	if (n != cross_c_point)
		return;
	cross_c_point = 0;
	__atomic_store_n(&cross_reached, 1, __ATOMIC_SEQ_CST);
	until = stress_now_ns() + UINT64_C(2000000000);
	while (!__atomic_load_n(&cross_go, __ATOMIC_SEQ_CST) && stress_now_ns() < until)
		cross_relax();
}

/* From here on, this thread stops at the point. */
static void cross_arm(int point)
{
	__atomic_store_n(&cross_go, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&cross_reached, 0, __ATOMIC_SEQ_CST);
	cross_spins = 20000000;
	if (point <= CROSS_ASM)
		cross_point = (unsigned int)point;
	else
		cross_c_point = point - CROSS_ASM;
}

static void cross_disarm(void)
{
	cross_point = 0;
	cross_c_point = 0;
}

#endif /* FAULT_CROSS_H */
