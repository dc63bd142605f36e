/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * step.c: a child that runs one operation after another between two stops, and a debugger that steps it and
 * lets something happen at each instruction. No test framework: it runs as init's child in a virtual machine.
 */
#ifndef FAULT_STEP_H
#define FAULT_STEP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum step_op {
	STEP_CHARGE, STEP_UNCHARGE, STEP_CHARGE_BIG, STEP_UNCHARGE_BIG, STEP_BYTES, STEP_UNBYTES, STEP_ADD, STEP_MOD, STEP_DRAIN_CPU,
	STEP_DRAIN, STEP_REFUSED, STEP_INSTALL, STEP_EVICT, STEP_FLUSH, STEP_OPS
};

enum step_event { STEP_SIGNAL, STEP_MIGRATE, STEP_REMOTE_DRAIN, STEP_EVENTS };

/* What the debugger and the child tell each other. */
struct step_shared {
	volatile uint32_t op;         /* to run next; STEP_OPS: end */
	volatile uint32_t running;    /* between its first and its last instruction */
	volatile uint32_t handling;   /* in the signal handler */
	volatile uint32_t helper;     /* 1: the child's other thread is to drain; 0: it has */
	volatile uint32_t failures;   /* of audits */
	volatile uint32_t ready, cpus;
	volatile uint64_t audits, signals, aborts;
	volatile uint64_t rseq;       /* address of the thread's area; 0: generic backend */
};

extern struct step_shared *step_shared;
extern const char *const step_op_name[STEP_OPS];

/* Never returns. */
void step_child(void) __attribute__((noreturn));

#endif /* FAULT_STEP_H */
