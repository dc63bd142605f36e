/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Charges a page a round and gives back every other one. */
#include "shared.h"

void *unit_a(void *kept)
{
	uint64_t *pages = kept;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (pcbatch_group_charge(app_memory, 1) != 0)
			return NULL;
		pcbatch_counter_add(&app_requests, 1);
		if (i % 2)
			pcbatch_group_uncharge(app_memory, 1);
		else
			*pages += 1;
	}
	return kept;
}
