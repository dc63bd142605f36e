/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* zmalloc.c, built four times into one program. */
#ifndef ZMALLOC_VARIANTS_H
#define ZMALLOC_VARIANTS_H

#include <stdbool.h>

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
	/*
	 * The cheap reading is one value, so it was right, but for the slack, at some moment. A sum over
	 * several that others change meanwhile may be what it never was: off either way by what they did.
	 */
	bool one_value;
};

#define ZMALLOC_VARIANT(p, one_value)                                                                                   \
	{                                                                                                                \
		p##zmalloc, p##zrealloc, p##zfree, p##zmalloc_used_memory, p##zmalloc_used_memory_exact,                 \
			p##zmalloc_used_slack, p##zmalloc_state, p##zmalloc_counter, one_value                           \
	}

enum { NONE, ATOMIC, SHARDED, PCBATCH, VARIANTS };

static const struct variant variants[VARIANTS] = { ZMALLOC_VARIANT(none_, true), ZMALLOC_VARIANT(atomic_, true),
						   ZMALLOC_VARIANT(sharded_, false), ZMALLOC_VARIANT(pcbatch_, true) };

#endif /* ZMALLOC_VARIANTS_H */
