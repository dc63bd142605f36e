/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* A phase: all slices of a run with the same changes on, and what they add up to. */
#ifndef MEMCG_SOCKET_PHASE_H
#define MEMCG_SOCKET_PHASE_H

#include "audit.h"
#include "hist.h"
#include "options.h"
#include "trace.h"

struct phase {
	const char *name;
	unsigned int changes;
	const char *backend;
	unsigned int slices;
	double *rates;	   /* requests/s of each slice */
	double *cpus;	   /* CPU ns a request of each slice, both ends */
	double seconds;	   /* measured, all slices */
	uint64_t requests; /* in these */
	uint64_t cpu_ns;   /* of the whole process in these */
	uint64_t served;   /* requests with warm-up and end, which the calls below belong to */
	uint64_t server_cpu_ns;
	struct hist latency;
	struct acct acct;
	struct pcbatch_stock_info stock;
	uint64_t throttles;
	uint64_t unreserved;
	uint64_t pressure_entered;
	struct audit audit;
	char *files; /* the memory cgroups' files near the end of the last slice */
};

int phase_init(struct phase *phase, const char *name, unsigned int changes, unsigned int slices);
void phase_free(struct phase *phase);

/* Runs one slice and adds it up; with recording, file gets the stream. 0, or -1 with a message. */
int phase_slice(struct phase *phase, const struct options *opt, double seconds, struct trace_file *recording);

/*
 * Whether the limits leave room for what the options ask for; raises the soft limit on descriptors
 * as far as needed. 0, or the exit status with a message that says what is possible.
 */
int phase_check_limits(const struct options *opt);

#endif
