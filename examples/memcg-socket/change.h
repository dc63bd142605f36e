/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The five changes, each of which can be off ("before") or on ("after").
 *
 * A set of changes is an unsigned; the accounting code takes it as an argument, so that the
 * replay can pass a constant and the compiler drops the side that is not taken.
 */
#ifndef MEMCG_SOCKET_CHANGE_H
#define MEMCG_SOCKET_CHANGE_H

#include <stddef.h>

enum {
	CHANGE_000 = 1u << 0,	/* socket statistic batched with the page stock */
	CHANGE_001 = 1u << 1,	/* parents cached per CPU in the statistics */
	CHANGE_002 = 1u << 2,	/* uncharge goes to the stock */
	CHANGE_003 = 1u << 3,	/* sockets keep memory up to a reclaim threshold */
	CHANGE_004 = 1u << 4,	/* events: batch 256, signals blocked for the flush only */

	CHANGE_NR = 5,
	CHANGE_NONE = 0,
	CHANGE_ALL = (1u << CHANGE_NR) - 1,
	CHANGE_OFF = 1u << CHANGE_NR	/* no accounting at all */
};

const char *change_title(unsigned int index);
/* "000,002", "before", "after" or "off"; returns buf */
const char *change_name(unsigned int changes, char *buf, size_t size);

#endif
