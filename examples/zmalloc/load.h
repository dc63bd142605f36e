/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* The load: threads that keep a cache below maxmemory, as a server's commands do. */
#ifndef ZMALLOC_LOAD_H
#define ZMALLOC_LOAD_H

#include <stdint.h>

#include "variants.h"

#define LOAD_THREADS_MAX 64

struct load_result {
	double ns;        /* CPU time of one command, all threads together */
	uint64_t commands;
	uint64_t evicted; /* entries */
	uint64_t wrong;   /* audits that did not agree, and values outside their bounds */
};

/* Runs `commands` a thread, then audits and frees everything. */
struct load_result load_run(const struct variant *v, unsigned int threads, uint64_t commands, size_t maxmemory);

#endif /* ZMALLOC_LOAD_H */
