/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts nothing: what the other ways are compared with. */
#ifndef USED_NONE_H
#define USED_NONE_H

#include <stddef.h>

static inline void used_add(size_t bytes)
{
	(void)bytes;
}

static inline void used_sub(size_t bytes)
{
	(void)bytes;
}

static inline size_t used_read(void)
{
	return 0;
}

static inline size_t used_sum(void)
{
	return 0;
}

static inline size_t used_slack(void)
{
	return 0;
}

static inline const char *used_name(void)
{
	return "nothing";
}

#endif /* USED_NONE_H */
