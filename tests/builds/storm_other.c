/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker in a unit (or shared object) of its own, for storm.c: the same domain through other compiled copies of the headers. */
#include "../stress.h"

#ifndef STORM_OTHER
#define STORM_OTHER storm_other_1
#endif

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((visibility("default"))) void *STORM_OTHER(void *worker);

void *STORM_OTHER(void *worker)
{
	return stress_work(worker);
}

#ifdef __cplusplus
}
#endif
