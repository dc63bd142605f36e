/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MEMCG_SOCKET_REPORT_H
#define MEMCG_SOCKET_REPORT_H

#include <stdio.h>

#include "options.h"
#include "phase.h"
#include "replay.h"
#include "stats.h"

/* "\r..." on a terminal, nothing elsewhere */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);

/* What a request costs, from a phase's counts and samples. */
struct phase_costs {
	double rate;
	double cpu_ns;	  /* process, both ends */
	double server_ns; /* server threads only */
	double calls[ACCT_KINDS];
	double ns[ACCT_KINDS]; /* a call */
	double accounting_ns;  /* all of it, a request */
	double share;	       /* of cpu_ns, percent */
	double server_share;
	double hit_rate; /* percent */
};

void phase_costs(const struct phase *phase, struct phase_costs *costs);

/* percent of the hits since before */
double hit_rate(const struct pcbatch_stock_info *before, const struct pcbatch_stock_info *after);

void report_config(FILE *out, const struct options *opt);
void report_phases(FILE *out, const struct phase *phases, unsigned int nr);
void report_pairs(FILE *out, const struct phase *phases, unsigned int nr);
void report_replay(FILE *out, struct replay *replay);

/* everything, as one JSON object; -1 with a message */
int json_write(const char *path, const struct options *opt, const struct phase *phases, unsigned int nr,
	       struct replay *replay);

#endif
