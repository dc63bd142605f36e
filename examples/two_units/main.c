/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two C units and a C++ unit, each a thread, account to one group and one counter. The headers own
 * no state, so units share what they are given: here the domain that this file defines.
 */
#include <pthread.h>
#include <stdio.h>

#include "shared.h"

struct pcbatch_domain app_domain;
struct pcbatch_group *app_memory;
struct pcbatch_counter app_requests;

int main(void)
{
	static void *(*const units[])(void *) = { unit_a, unit_b, unit_c };
	enum { UNITS = sizeof(units) / sizeof(units[0]) };
	pthread_t threads[UNITS];
	uint64_t kept[UNITS] = { 0 };
	uint64_t live = 0;
	int64_t usage, requests;
	int i;

	if (pcbatch_domain_init(&app_domain, NULL) != 0 ||
	    pcbatch_group_create(&app_domain, NULL, NULL, &app_memory) != 0 ||
	    pcbatch_counter_init(&app_requests, &app_domain, 0) != 0)
		return 1;

	for (i = 0; i < UNITS; i++)
		if (pthread_create(&threads[i], NULL, units[i], &kept[i]) != 0)
			return 1;
	for (i = 0; i < UNITS; i++) {
		void *result;

		if (pthread_join(threads[i], &result) != 0 || result == NULL)
			return 1;
		live += kept[i];
	}

	pcbatch_group_drain(app_memory);
	usage = pcbatch_group_current(app_memory);
	requests = pcbatch_counter_sum(&app_requests);
	printf("pages in use %lld, kept by the units %llu; requests %lld of %d\n", (long long)usage,
	       (unsigned long long)live, (long long)requests, UNITS * ROUNDS);

	pcbatch_group_uncharge(app_memory, live);
	if (usage != (int64_t)live || requests != UNITS * ROUNDS)
		return 1;
	if (pcbatch_counter_destroy(&app_requests) != 0 || pcbatch_group_destroy(app_memory) != 0 ||
	    pcbatch_domain_destroy(&app_domain) != 0)
		return 1;
	return 0;
}
