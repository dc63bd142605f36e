/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock.h"

double cycle_clock_ns = 1.0;

void clock_calibrate(void)
{
	uint64_t ns = now_ns(), cycles = cycles_now(), ns_end;

	do
		ns_end = now_ns();
	while (ns_end - ns < 20000000);
	cycle_clock_ns = ratio((double)(ns_end - ns), (double)(cycles_now() - cycles));
}
