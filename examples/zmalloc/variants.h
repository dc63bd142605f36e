/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* zmalloc.c, built four times into one program. */
#ifndef ZMALLOC_VARIANTS_H
#define ZMALLOC_VARIANTS_H

#include "zmalloc.h"

ZMALLOC_DECLARE(none_);
ZMALLOC_DECLARE(atomic_);
ZMALLOC_DECLARE(sharded_);
ZMALLOC_DECLARE(pcbatch_);

struct variant {
	void *(*alloc)(size_t size);
	void *(*resize)(void *ptr, size_t size);
	void (*release)(void *ptr);
	size_t (*used)(void);
	size_t (*exact)(void);
	size_t (*slack)(void);
	struct zmalloc_state (*state)(size_t max);
	const char *(*name)(void);
};

#define ZMALLOC_VARIANT(p)                                                                                              \
	{                                                                                                                \
		p##zmalloc, p##zrealloc, p##zfree, p##zmalloc_used_memory, p##zmalloc_used_memory_exact,                 \
			p##zmalloc_used_slack, p##zmalloc_state, p##zmalloc_counter                                      \
	}

enum { NONE, ATOMIC, SHARDED, PCBATCH, VARIANTS };

static const struct variant variants[VARIANTS] = { ZMALLOC_VARIANT(none_), ZMALLOC_VARIANT(atomic_),
						   ZMALLOC_VARIANT(sharded_), ZMALLOC_VARIANT(pcbatch_) };

#endif /* ZMALLOC_VARIANTS_H */
