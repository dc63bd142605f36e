/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ratio_kernels.h - the loops of bench_ratios.c, included once for each placement:
 * PLACE numbers it, K(name) makes the function's name.
 */

/* Shifts the loop that follows: 0, 11, 22 ... bytes. */
#if defined(__x86_64__)
#define SHIFT() __asm__ __volatile__(".skip %c0, 0x90" : : "i"(PLACE * 11 + 1))
#else
#define SHIFT() __asm__ __volatile__(".skip %c0" : : "i"(PLACE * 8))
#endif

#define KERNEL(name) static __attribute__((noinline, aligned(64))) void K(name)(void *arg, long n)

KERNEL(bare)
{
	struct pcbatch_counter *counters = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++)
		bare_add(&counters[i & 63]);
}

KERNEL(add64)
{
	struct pcbatch_counter *counters = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++)
		pcbatch_counter_add(&counters[i & 63], 1);
}

KERNEL(add64_b64)
{
	struct pcbatch_counter *counters = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++)
		(void)pcbatch_counter_add_batch(&counters[i & 63], 1, 64);
}

KERNEL(getcpu64)
{
	struct padded *lines = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++)
		(void)__atomic_fetch_add(&lines[(unsigned int)sched_getcpu() * 64 + (i & 63)].v, 1, __ATOMIC_RELAXED);
}

KERNEL(shared64)
{
	struct padded *lines = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++)
		(void)__atomic_fetch_add(&lines[i & 63].v, 1, __ATOMIC_RELAXED);
}

KERNEL(pair)
{
	struct pcbatch_group *g = *(struct pcbatch_group **)arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++) {
		if (pcbatch_group_charge_stat(g, 1, 1) != 0)
			abort();
		(void)pcbatch_group_uncharge_stat(g, 1, 1);
	}
}

KERNEL(pair7)
{
	struct pcbatch_group **groups = arg;
	long i, k = 0;

	SHIFT();
	for (i = 0; i < n; i++) {
		struct pcbatch_group *g = groups[k];

		k = k == 6 ? 0 : k + 1;
		if (pcbatch_group_charge_stat(g, 1, 1) != 0)
			abort();
		(void)pcbatch_group_uncharge_stat(g, 1, 1);
	}
}

KERNEL(pair64)
{
	struct pcbatch_group **groups = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++) {
		struct pcbatch_group *g = groups[i & 63];

		if (pcbatch_group_charge_stat(g, 1, 1) != 0)
			abort();
		(void)pcbatch_group_uncharge_stat(g, 1, 1);
	}
}

KERNEL(atomics)
{
	struct level *leaf = arg;
	long i;

	SHIFT();
	for (i = 0; i < n; i++) {
		if (!atomics_charge(leaf, 1))
			abort();
		atomics_uncharge(leaf, 1);
	}
}

#undef KERNEL
#undef SHIFT
