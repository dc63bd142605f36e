/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* pcbatch/version.h - the one place that holds the version. */
#ifndef PCBATCH_VERSION_H
#define PCBATCH_VERSION_H

#define PCBATCH_VERSION_MAJOR 0
#define PCBATCH_VERSION_MINOR 1
#define PCBATCH_VERSION_PATCH 0

/* One number that grows with every release: 1.2.3 is 10203. */
#define PCBATCH_VERSION_NUMBER \
	(PCBATCH_VERSION_MAJOR * 10000 + PCBATCH_VERSION_MINOR * 100 + PCBATCH_VERSION_PATCH)

/* For preprocessor tests: #if PCBATCH_VERSION_AT_LEAST(0, 2, 0). */
#define PCBATCH_VERSION_AT_LEAST(major, minor, patch) \
	(PCBATCH_VERSION_NUMBER >= (major) * 10000 + (minor) * 100 + (patch))

/* ISO C wants a declaration in every unit, also in one that includes nothing but this. */
enum { PCBATCH_PRIV_VERSION = PCBATCH_VERSION_NUMBER };

#endif /* PCBATCH_VERSION_H */
