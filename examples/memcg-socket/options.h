/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MEMCG_SOCKET_OPTIONS_H
#define MEMCG_SOCKET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum run_mode { MODE_BOTH, MODE_BEFORE, MODE_AFTER, MODE_OFF };

struct options {
	unsigned int flows;
	unsigned int threads; /* on each side */
	double seconds;	      /* for each of off, before and after */
	unsigned int message;
	unsigned int depth;
	unsigned int memcgs;
	int64_t max, high, root_max; /* pages */
	int64_t tcp_mem[3];	     /* pages */
	unsigned int batch;
	int64_t reclaim_threshold;
	int64_t reclaim_threshold_later; /* set half-way through each slice, 0 = stays */
	int64_t reserve;		 /* bytes a socket */
	enum run_mode mode;
	unsigned int changes; /* the "after" side */
	unsigned int pairs;   /* interleaved slices */
	unsigned int rounds;  /* of the replay */
	uint64_t seed;
	bool pin;
	bool overhead; /* off and after only */
	bool verbose;
	bool depth_given; /* a replay takes the recorded depth otherwise */
	const char *json;
	const char *record;
	const char *replay;
};

/* Returns -1 to go on, else the exit status: 0 after --help, 2 for misuse. */
int options_parse(struct options *opt, int argc, char **argv);

#endif
