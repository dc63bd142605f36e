/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * design_cpu.h - counters split without threads' help: by CPU (ClickHouse's per-CPU
 * ProfileEvents, RocksDB's statistics, DuckDB's buffer pool) and by contention
 * (LongAdder). Written here after the design, not copied.
 */
#ifndef PEERS_DESIGN_CPU_H
#define PEERS_DESIGN_CPU_H

#include <sched.h>
#include <unistd.h>

#include "peers.h"

/* ---- a row of counters for each CPU, locked adds ---- */

struct cpu_row {
	int64_t v[PEER_COUNTERS];
} __attribute__((aligned(64)));

static struct cpu_row *cpu_rows;
static unsigned int cpu_row_count;

static inline void getcpu_line_add(unsigned int k)
{
	unsigned int cpu = (unsigned int)sched_getcpu();

	/* A CPU that came later shares a row: the add is atomic wherever it goes. */
	if (__builtin_expect(cpu >= cpu_row_count, 0))
		cpu = 0;
	(void)__atomic_fetch_add(&cpu_rows[cpu].v[k], 1, __ATOMIC_RELAXED);
}

static int64_t getcpu_line_total(void)
{
	int64_t sum = 0;
	unsigned int cpu, k;

	for (cpu = 0; cpu < cpu_row_count; cpu++)
		for (k = 0; k < PEER_COUNTERS; k++)
			sum += __atomic_load_n(&cpu_rows[cpu].v[k], __ATOMIC_RELAXED);
	return sum;
}

static void getcpu_line_set_up(void)
{
	cpu_row_count = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
	cpu_rows = (struct cpu_row *)peers_zalloc(sizeof(*cpu_rows) * cpu_row_count);
}

PEER_COUNTER(getcpu_line, "line[sched_getcpu()], locked add, ClickHouse (design)")

/* ---- LongAdder / Striped64: one cell until threads collide, then more, up to the CPUs ---- */

#define STRIPED_CELLS_MAX 256

struct striped {
	struct peer_line base;
	struct peer_line *cell[STRIPED_CELLS_MAX];
	unsigned int n; /* cells in use, a power of two; 0: base only */
	int busy;       /* someone adds cells */
} __attribute__((aligned(64)));

static struct striped striped_counter[PEER_COUNTERS];
static unsigned int striped_limit = 1;
static unsigned int striped_seed;
static __thread unsigned int striped_probe;

static inline int striped_try(int64_t *v)
{
	int64_t old = __atomic_load_n(v, __ATOMIC_RELAXED);

	return __atomic_compare_exchange_n(v, &old, old + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Doubles the cells (0 to 2 first) unless another does; what is in use stays where it is. */
static void striped_grow(struct striped *s, unsigned int n)
{
	unsigned int i, more = n == 0 ? 2 : 2 * n;

	if (__atomic_exchange_n(&s->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return;
	if (s->n == n) {
		for (i = n; i < more; i++)
			s->cell[i] = (struct peer_line *)peers_zalloc(sizeof(struct peer_line));
		__atomic_store_n(&s->n, more, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void striped_add_slow(struct striped *s)
{
	unsigned int n, failures = 0;

	if (striped_probe == 0)
		striped_probe = __atomic_add_fetch(&striped_seed, 0x9e3779b9u, __ATOMIC_RELAXED);
	for (;;) {
		n = __atomic_load_n(&s->n, __ATOMIC_ACQUIRE);
		if (striped_try(n == 0 ? &s->base.v : &s->cell[striped_probe & (n - 1)]->v))
			return;
		/* Another cell first; a second collision asks for more cells. */
		striped_probe ^= striped_probe << 13;
		striped_probe ^= striped_probe >> 17;
		striped_probe ^= striped_probe << 5;
		if ((n == 0 || ++failures % 2 == 0) && n < striped_limit)
			striped_grow(s, n);
	}
}

static inline void long_adder_add(unsigned int k)
{
	struct striped *s = &striped_counter[k];
	unsigned int n = __atomic_load_n(&s->n, __ATOMIC_ACQUIRE);

	if (!striped_try(n == 0 ? &s->base.v : &s->cell[striped_probe & (n - 1)]->v))
		striped_add_slow(s);
}

static int64_t long_adder_total(void)
{
	int64_t sum = 0;
	unsigned int k, i, n;

	for (k = 0; k < PEER_COUNTERS; k++) {
		n = __atomic_load_n(&striped_counter[k].n, __ATOMIC_ACQUIRE);
		sum += __atomic_load_n(&striped_counter[k].base.v, __ATOMIC_RELAXED);
		for (i = 0; i < n; i++)
			sum += __atomic_load_n(&striped_counter[k].cell[i]->v, __ATOMIC_RELAXED);
	}
	return sum;
}

static void long_adder_set_up(void)
{
	while (striped_limit < (unsigned int)sysconf(_SC_NPROCESSORS_ONLN) && striped_limit < STRIPED_CELLS_MAX)
		striped_limit *= 2;
}

PEER_COUNTER(long_adder, "LongAdder / Striped64 (design)")

#endif /* PEERS_DESIGN_CPU_H */
