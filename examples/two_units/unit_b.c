/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Charges runs of one to eight pages and gives each back whole: keeps nothing. */
#include "shared.h"

void *unit_b(void *kept)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t run = (uint64_t)i % 8 + 1;

		if (pcbatch_group_charge(app_memory, run) != 0)
			return NULL;
		pcbatch_counter_add(&app_requests, 1);
		pcbatch_group_uncharge(app_memory, run);
	}
	return kept;
}
