/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_limits.c - what the machine can do: the costs that nothing built on it can be below. */
#include "base.h"

#include <sys/syscall.h>

static struct pcbatch_domain dom;
static struct pcbatch_counter counters[64];
static struct padded *lines;
static __thread volatile uint64_t tls[64];

BENCH_KERNEL(empty, , BENCH_KEEP(i))
BENCH_KERNEL(tls_add, , tls[i & 63]++)
BENCH_KERNEL(tls_one, , tls[0]++)
BENCH_KERNEL(bare, struct pcbatch_counter *c = arg, bare_add(&c[i & 63]))
BENCH_KERNEL(bare_one, struct pcbatch_counter *c = arg, bare_add(c))
BENCH_KERNEL(lock_own, struct padded *l = (struct padded *)arg + 1 + bench_self, (void)__atomic_fetch_add(&l->v, 1, __ATOMIC_RELAXED))
BENCH_KERNEL(lock_shared, struct padded *l = arg, (void)__atomic_fetch_add(&l->v, 1, __ATOMIC_RELAXED))
BENCH_KERNEL(getcpu, , { int cpu = sched_getcpu(); BENCH_KEEP(cpu); })
BENCH_KERNEL(getpids, , { int pid = getpid(); BENCH_KEEP(pid); })
BENCH_KERNEL(membarrier, , (void)pcbatch_priv_fence_rseq())

enum { EMPTY, TLS, TLS1, BARE, BARE1, OWN, OWN2, SHARED, SHARED2, SHARED8, GETCPU, GETPID, MB, WORKS };

static struct bench_work work[WORKS] = {
	[EMPTY] = BENCH_WORK("empty loop", empty, NULL, 1, 400000),
	[TLS] = BENCH_WORK("plain add, thread-local, 64 in turn", tls_add, NULL, 1, 400000),
	[TLS1] = BENCH_WORK("plain add, thread-local, one", tls_one, NULL, 1, 200000),
	[BARE] = BENCH_WORK("bare rseq add, 64 in turn", bare, counters, 1, 400000),
	[BARE1] = BENCH_WORK("bare rseq add, one", bare_one, counters, 1, 100000),
	[OWN] = BENCH_WORK("lock add, own line", lock_own, NULL, 1, 50000),
	[OWN2] = BENCH_WORK("lock add, own line", lock_own, NULL, 2, 50000),
	[SHARED] = BENCH_WORK("lock add, one shared line", lock_shared, NULL, 1, 50000),
	[SHARED2] = BENCH_WORK("lock add, one shared line", lock_shared, NULL, 2, 40000),
	[SHARED8] = BENCH_WORK("lock add, one shared line", lock_shared, NULL, 8, 20000),
	[GETCPU] = BENCH_WORK("sched_getcpu()", getcpu, NULL, 1, 50000),
	[GETPID] = BENCH_WORK("getpid(), a system call", getpids, NULL, 1, 5000),
	[MB] = BENCH_WORK("membarrier, all CPUs of the process", membarrier, NULL, 1, 2000),
};

int main(int argc, char **argv)
{
	struct bench_out out;
	double transfer;
	unsigned int w;

	bench_out_begin(&out, "limits", argc, argv, 9, 3);
	base_domain(&dom, NULL);
	base_counters(&dom, counters, 64);
	lines = bench_alloc(sizeof(*lines) * (1 + BENCH_THREADS_MAX));
	for (w = OWN; w <= SHARED8; w++)
		work[w].arg = lines;
	if (!bare_works(&dom))
		work[BARE].place[0] = work[BARE1].place[0] = NULL;
	transfer = bench_line_transfer();
	bench_run(work, WORKS, out.rounds);
	base_describe(&out, &dom, transfer);
	bench_out_head("limits, ns an operation (CPU time)");
	for (w = 0; w < WORKS; w++)
		bench_out_work(&out, &work[w]);
	bench_out_value(&out, "one-way line transfer (wall)", 2, "ns", transfer, transfer, 9);
	bench_out_quiet(&out, work, WORKS);
	bench_out_check(&out, "shared line", (long long)lines[0].v, (long long)(work[SHARED].done + work[SHARED2].done + work[SHARED8].done));
	return bench_out_end(&out);
}
