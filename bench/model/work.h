/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.h - the operations that the model is about. trace.c runs them under valgrind
 * for N virtual CPUs, validate.c on real ones: the same object file, so that what was
 * counted is what is timed.
 */
#ifndef MODEL_WORK_H
#define MODEL_WORK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdint.h>
#include <stdio.h>

#define WORK_CPUS_MAX 512
#define WORK_DOMAIN_CPUS 4096 /* so many that no flush becomes due while a sample runs */

/* Runs operations first .. first + n - 1 of the calling CPU. */
typedef void (*work_fn)(uint32_t cpu, uint64_t first, uint64_t n);

struct work {
	const char *name;
	const char *unit; /* what one operation is */
	work_fn run;
	uint32_t period;   /* operations after which a CPU does the same again */
	int64_t (*total)(void); /* what is left when every operation balanced, or the sum of the adds */
	int balanced;
};

#define WORKS 8
extern const struct work works[WORKS];
extern const struct work work_empty; /* what the loop around an operation costs */

extern __thread uint32_t work_cpu; /* what the user of the library says the CPU number is */

/* Begins anew, for so many CPUs. */
void work_set_up(uint32_t cpus);
/* Its period; the counter's is its batch, which depends on the CPUs. */
uint32_t work_period(const struct work *w);
/* Gives a CPU the counts that CPU 0's lines hold now. It must have run an operation before. */
void work_clone(uint32_t cpu);
/* Resets the statistics' pending updates; nobody may be inside an operation. */
void work_flush(void);
/* Names the lines: "line NAME BASE STRIDE COUNT BYTES", for the simulator. */
void work_print_lines(FILE *out, uint32_t cpus);

#endif /* MODEL_WORK_H */
