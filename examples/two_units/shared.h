/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* What the units of this program share: one domain, defined in main.c, and a group and a counter in it. */
#ifndef SHARED_H
#define SHARED_H

#include <pcbatch.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROUNDS 100000

extern struct pcbatch_domain app_domain;
extern struct pcbatch_group *app_memory;
extern struct pcbatch_counter app_requests;

/* Thread functions, one a unit. Each charges pages, keeps some, and returns how many it kept (NULL after an error). */
void *unit_a(void *kept);
void *unit_b(void *kept);
void *unit_c(void *kept);

#ifdef __cplusplus
}
#endif

#endif /* SHARED_H */
