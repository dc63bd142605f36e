/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* sim.h - the moving lines and the CPUs that use them, see sim.c. */
#ifndef MODEL_SIM_H
#define MODEL_SIM_H

#include "replay.h"

/* One access to a moving line; `wait` ns of work precede it, `cost` is its own. */
struct step {
	double wait, cost;
	uint32_t line;
	int write;
};

/* An operation is its steps and `rest` ns of work behind the last. */
struct piece_op {
	uint32_t first, count;
	double rest;
};

struct moving;
struct cpu;
struct event;

struct sim {
	double reach, travel, hold;
	int migratory;
	uint32_t cpus, lines;
	uint32_t shift; /* whose piece continues CPU c's: c + shift */
	struct step *steps;
	struct piece_op *ops;
	uint32_t *first_op; /* of each CPU's piece, and one more */
	/* set up and freed by sim_run */
	struct moving *line;
	struct cpu *cpu;
	uint8_t *asked; /* [line * cpus + cpu]: 1 load, 2 store */
	struct event *heap;
	uint32_t events;
	uint64_t transfers, done;
};

/* Runs until the CPUs have done ops each on average; ns of CPU time and transfers an operation, of the second half. */
double sim_run(struct sim *m, uint32_t ops, double *transfers);

#endif /* MODEL_SIM_H */
