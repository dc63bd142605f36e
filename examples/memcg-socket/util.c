/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include <sched.h>

#include "util.h"

void pin_thread(unsigned int thread)
{
	cpu_set_t allowed, one;
	unsigned int want;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	want = thread % (unsigned int)CPU_COUNT(&allowed);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || want-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}
