/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcg-socket: the full path of charging and uncharging socket memory, on real TCP traffic.
 *
 * The run is cut into short slices of no accounting, before and after, taken in turn, so that what
 * else happens on the machine falls on all of them alike. The stream of charges of one more slice
 * is then replayed without sockets, where small differences show.
 */
#include <stdio.h>
#include <stdlib.h>

#include "acct.h"
#include "change.h"
#include "options.h"
#include "phase.h"
#include "replay.h"
#include "report.h"

#define RECORD_SECONDS_MAX 2.0
#define RECORD_SECONDS 0.3

/* A longer stream is cut: many rounds over a part say more than one over all of it. */
#define REPLAY_RECORDS 50000u

static int run_replay(const struct options *opt, struct trace_file *file, struct replay *replay)
{
	if (trace_shorten("stream", file, REPLAY_RECORDS) != 0 || replay_run(replay, opt, file) != 0)
		return -1;
	report_replay(stdout, replay);
	return 0;
}

/* which phases a mode has, in the order of the table */
static unsigned int phases_init(struct phase *phases, const struct options *opt)
{
	static char after[32];
	const struct {
		const char *name;
		unsigned int changes;
		bool wanted;
	} all[] = {
		{ "off", CHANGE_OFF, opt->mode == MODE_OFF || opt->mode == MODE_BOTH },
		{ "before", CHANGE_NONE, opt->mode == MODE_BEFORE || (opt->mode == MODE_BOTH && !opt->overhead) },
		{ change_name(opt->changes, after, sizeof(after)), opt->changes,
		  opt->mode == MODE_AFTER || opt->mode == MODE_BOTH },
	};
	unsigned int nr = 0;

	for (unsigned int i = 0; i < 3; i++)
		if (all[i].wanted && phase_init(&phases[nr++], all[i].name, all[i].changes, opt->pairs) != 0)
			return 0;
	return nr;
}

static int run_slices(const struct options *opt, struct phase *phases, unsigned int nr)
{
	double seconds = opt->seconds / opt->pairs;

	for (unsigned int round = 0; round < opt->pairs; round++) {
		for (unsigned int i = 0; i < nr; i++) {
			struct phase *phase = &phases[(i + round) % nr]; /* each is first as often */

			progress("TCP: round %u of %u, %s", round + 1, opt->pairs, phase->name);
			if (phase_slice(phase, opt, seconds, NULL) != 0)
				return -1;
		}
	}
	progress_end();
	return 0;
}

/* one more slice, outside of the figures, with the changes of the last phase */
static int run_recording(const struct options *opt, const struct phase *last, struct trace_file *file,
			 struct audit *audit)
{
	double seconds = opt->record ? opt->seconds : RECORD_SECONDS;
	struct phase phase;
	int ret;

	if (phase_init(&phase, "record", last->changes, 1) != 0)
		return -1;
	progress("TCP: recording");
	ret = phase_slice(&phase, opt, seconds < RECORD_SECONDS_MAX ? seconds : RECORD_SECONDS_MAX, file);
	progress_end();
	*audit = phase.audit;
	phase_free(&phase);
	if (!ret && opt->record)
		ret = trace_write(opt->record, file);
	return ret;
}

static bool audits(const struct phase *phases, unsigned int nr, const struct audit *record, const struct replay *replay)
{
	bool passed = true;

	printf("\n");
	for (unsigned int i = 0; i < nr; i++) {
		audit_print(stdout, phases[i].name, &phases[i].audit);
		passed &= audit_passed(&phases[i].audit);
	}
	if (record && record->trees) {
		audit_print(stdout, "record", record);
		passed &= audit_passed(record);
	}
	if (replay) {
		audit_print(stdout, "replay", &replay->audit);
		passed &= audit_passed(&replay->audit);
	}
	return passed;
}

static int run_tcp(const struct options *opt)
{
	static struct replay replay;
	struct phase phases[3];
	unsigned int nr = phases_init(phases, opt);
	bool replays = opt->mode == MODE_BOTH && !opt->overhead;
	struct trace_file file = { .records = NULL };
	struct audit record = { 0 };
	int status = phase_check_limits(opt);
	bool passed;

	if (status)
		return status;
	report_config(stdout, opt);
	if (!nr || run_slices(opt, phases, nr) != 0)
		return 1;
	if ((replays || opt->record) && run_recording(opt, &phases[nr - 1], &file, &record) != 0)
		return 1;
	for (unsigned int i = 0; i < nr; i++)
		if (phases[i].files)
			printf("\nNear the end of the last slice: %s\n%s", phases[i].name, phases[i].files);
	if (replays && run_replay(opt, &file, &replay) != 0)
		return 1;
	report_phases(stdout, phases, nr);
	report_pairs(stdout, phases, nr);
	passed = audits(phases, nr, &record, replays ? &replay : NULL);
	if (opt->json && json_write(opt->json, opt, phases, nr, replays ? &replay : NULL) != 0)
		passed = false;
	for (unsigned int i = 0; i < nr; i++)
		phase_free(&phases[i]);
	trace_free(&file);
	return passed ? 0 : 1;
}

static int run_file(const struct options *opt)
{
	static struct replay replay;
	struct trace_file file;
	bool passed;

	if (trace_read(opt->replay, &file) != 0)
		return 1;
	if (run_replay(opt, &file, &replay) != 0)
		return 1;
	passed = audits(NULL, 0, NULL, &replay);
	if (opt->json && json_write(opt->json, opt, NULL, 0, &replay) != 0)
		passed = false;
	trace_free(&file);
	return passed ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options opt;
	int status = options_parse(&opt, argc, argv);

	if (status >= 0)
		return status;
	clock_calibrate();
	acct_calibrate();
	return opt.replay ? run_file(&opt) : run_tcp(&opt);
}
