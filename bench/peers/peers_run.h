/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* peers_run.h - what peers.c measures and peers_report.c prints. */
#ifndef PEERS_RUN_H
#define PEERS_RUN_H

#include "peers.h"

#define PEERS_MAX 32
#define PEERS_NOTES_MAX 24
#define PEERS_ROUNDS_MAX 64
#define PEERS_COUNTS 3 /* thread counts: 1, 2, 8 */

struct peers_cell {
	long n; /* operations a thread and sample */
	double quiet[PEER_PLACES][PEERS_ROUNDS_MAX], noisy[PEER_PLACES][PEERS_ROUNDS_MAX];
	unsigned int quiets[PEER_PLACES], noisies[PEER_PLACES];
	double min, median; /* ns */
	unsigned int samples;
};

struct peers_entry {
	const struct peer *peer;
	int64_t adds; /* the total that must come out */
	int wrong;
	struct peers_cell cell[2][PEERS_COUNTS]; /* one counter (or the pair), 64 in turn */
};

extern const unsigned int peers_threads[PEERS_COUNTS];
extern struct peers_entry peers_entry[PEERS_MAX];
extern unsigned int peers_count;
extern char peers_note[PEERS_NOTES_MAX][160];
extern unsigned int peers_notes;

/* Measures and checks all; target: ns a sample and thread. Returns how many peers were wrong. */
unsigned int peers_run(unsigned int rounds, double target);

#endif /* PEERS_RUN_H */
