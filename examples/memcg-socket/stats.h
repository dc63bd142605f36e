/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Mean with its 95 % interval, and median. */
#ifndef MEMCG_SOCKET_STATS_H
#define MEMCG_SOCKET_STATS_H

#include <math.h>
#include <stdlib.h>

struct interval {
	double mean;
	double half; /* the 95 % interval is mean - half to mean + half */
	unsigned int n;
};

/* 97.5 % point of Student's t with n - 1 degrees of freedom; Cornish and Fisher's series is right to 0.1 % from 5 on */
static inline double student_t(unsigned int n)
{
	static const double small[] = { 0.0, 12.706, 4.303, 3.182, 2.776 };
	const double z = 1.959964;
	double v = (double)n - 1.0;

	if (n < 2)
		return 0.0;
	if (n <= 5)
		return small[n - 1];
	return z + (z * z * z + z) / (4.0 * v) + (5.0 * pow(z, 5) + 16.0 * z * z * z + 3.0 * z) / (96.0 * v * v) +
	       (3.0 * pow(z, 7) + 19.0 * pow(z, 5) + 17.0 * z * z * z - 15.0 * z) / (384.0 * v * v * v);
}

/* of the paired differences, in percent of the base: how b differs from a */
static inline struct interval interval_paired(const double *a, const double *b, unsigned int n)
{
	struct interval out = { 0.0, 0.0, n };
	double squares = 0.0;

	for (unsigned int i = 0; i < n; i++)
		out.mean += 100.0 * (b[i] - a[i]) / a[i] / n;
	for (unsigned int i = 0; i < n; i++) {
		double d = 100.0 * (b[i] - a[i]) / a[i] - out.mean;

		squares += d * d;
	}
	if (n > 1)
		out.half = student_t(n) * sqrt(squares / (n - 1) / n);
	return out;
}

static inline int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* sorts values */
static inline double median(double *values, unsigned int n)
{
	if (!n)
		return 0.0;
	qsort(values, n, sizeof(*values), compare_double);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

#endif
