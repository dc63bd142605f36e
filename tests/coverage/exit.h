/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Included before every unit of a coverage build: a process that leaves by _exit or abort writes its counts first. */
#ifndef COVERAGE_EXIT_H
#define COVERAGE_EXIT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);

#define _exit(status) (__gcov_dump(), (_exit)(status))
#define abort() (__gcov_dump(), (abort)())

#endif /* COVERAGE_EXIT_H */
