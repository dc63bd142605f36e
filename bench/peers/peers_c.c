/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers_c.c - what a C program would use instead of pcbatch: C11 atomics, Concurrency
 * Kit, liburcu, a POSIX semaphore, and the designs that servers carry in their trees.
 *
 * PEERS_HAVE_CK, PEERS_HAVE_URCU: 1 when the package is there (see peers.mk).
 */
#include "peers_pcbatch.h"

#include "design_cpu.h"
#include "design_limit.h"
#include "design_thread.h"

#include <stdatomic.h>

/* ---- C11: one shared atomic ---- */

static struct {
	_Alignas(64) _Atomic int64_t v;
} c11_counter[PEER_COUNTERS];

static inline void c11_atomic_add(unsigned int k)
{
	atomic_fetch_add_explicit(&c11_counter[k].v, 1, memory_order_relaxed);
}

static int64_t c11_atomic_total(void)
{
	int64_t sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += atomic_load_explicit(&c11_counter[k].v, memory_order_relaxed);
	return sum;
}

PEER_COUNTER(c11_atomic, "C11 atomic_fetch_add, shared")

/* ---- Concurrency Kit: it has no counters, so users count with ck_pr ---- */

#if PEERS_HAVE_CK
#include <ck_pr.h>

static struct {
	uint64_t v;
	char pad[56];
} ck_faa_counter[PEER_COUNTERS], ck_inc_counter[PEER_COUNTERS];

static inline void ck_pr_faa_64_add(unsigned int k)
{
	(void)ck_pr_faa_64(&ck_faa_counter[k].v, 1);
}

static int64_t ck_pr_faa_64_total(void)
{
	uint64_t sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += ck_pr_load_64(&ck_faa_counter[k].v);
	return (int64_t)sum;
}

PEER_COUNTER(ck_pr_faa_64, "Concurrency Kit ck_pr_faa_64, shared")

static inline void ck_pr_inc_64_add(unsigned int k)
{
	ck_pr_inc_64(&ck_inc_counter[k].v);
}

static int64_t ck_pr_inc_64_total(void)
{
	uint64_t sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += ck_pr_load_64(&ck_inc_counter[k].v);
	return (int64_t)sum;
}

PEER_COUNTER(ck_pr_inc_64, "Concurrency Kit ck_pr_inc_64, shared")

static uint64_t ck_usage __attribute__((aligned(64)));

static inline int ck_pr_limit_charge(void)
{
	if (ck_pr_faa_64(&ck_usage, 1) < PEER_LIMIT)
		return 1;
	ck_pr_dec_64(&ck_usage);
	return 0;
}

static inline void ck_pr_limit_uncharge(void)
{
	ck_pr_dec_64(&ck_usage);
}

static int64_t ck_pr_limit_total(void)
{
	return (int64_t)ck_pr_load_64(&ck_usage);
}

PEER_LIMITER(ck_pr_limit, "Concurrency Kit ck_pr_faa_64, check, ck_pr_dec_64", 1)

static void ck_rows(void)
{
	peers_add(&ck_pr_faa_64_peer);
	peers_add(&ck_pr_inc_64_peer);
	peers_add(&ck_pr_limit_peer);
}
#else
static void ck_rows(void)
{
	peers_skip("Concurrency Kit", "apt-get install libck-dev");
}
#endif

/* ---- liburcu: its atomics, the split count of its hash table, a cell a thread ---- */

#if PEERS_HAVE_URCU
#include <urcu/list.h>
#include <urcu/system.h>
#include <urcu/tls-compat.h>
#include <urcu/uatomic.h>

static struct {
	unsigned long v;
	char pad[64 - sizeof(unsigned long)];
} uatomic_counter[PEER_COUNTERS];

static inline void urcu_uatomic_add(unsigned int k)
{
	uatomic_inc(&uatomic_counter[k].v);
}

static int64_t urcu_uatomic_total(void)
{
	unsigned long sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++)
		sum += uatomic_read(&uatomic_counter[k].v);
	return (int64_t)sum;
}

PEER_COUNTER(urcu_uatomic, "liburcu uatomic_inc, shared")

/* As the nodes of its hash table are counted: a part for each CPU, to the whole every 1024. */
#define URCU_COMMIT 1024

static struct urcu_part {
	unsigned long v[PEER_COUNTERS];
} __attribute__((aligned(64))) * urcu_split;
static unsigned long urcu_mask;
static unsigned long urcu_whole[PEER_COUNTERS];

static inline void urcu_split_add(unsigned int k)
{
	unsigned long cpu = (unsigned long)sched_getcpu() & urcu_mask;

	if (caa_unlikely(uatomic_add_return(&urcu_split[cpu].v[k], 1) % URCU_COMMIT == 0))
		uatomic_add(&urcu_whole[k], URCU_COMMIT);
}

static int64_t urcu_split_total(void)
{
	unsigned long cpu, sum = 0;
	int k;

	for (k = 0; k < PEER_COUNTERS; k++) {
		sum += uatomic_read(&urcu_whole[k]);
		for (cpu = 0; cpu <= urcu_mask; cpu++)
			sum += uatomic_read(&urcu_split[cpu].v[k]) % URCU_COMMIT;
	}
	return (int64_t)sum;
}

PEER_COUNTER(urcu_split, "liburcu split count as in rculfhash, commit 1024")

/* As its users count events: a URCU_TLS cell, known to readers by a list. */
struct urcu_cell {
	unsigned long v[PEER_COUNTERS];
	int listed;
	struct cds_list_head node;
};

static DEFINE_URCU_TLS(struct urcu_cell, urcu_mine);
static CDS_LIST_HEAD(urcu_cells);
static pthread_mutex_t urcu_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t urcu_key;
static unsigned long urcu_ended;

static void urcu_leave(void *arg)
{
	struct urcu_cell *cell = arg;
	int k;

	pthread_mutex_lock(&urcu_lock);
	for (k = 0; k < PEER_COUNTERS; k++)
		urcu_ended += cell->v[k];
	cds_list_del(&cell->node);
	pthread_mutex_unlock(&urcu_lock);
}

static __attribute__((noinline)) void urcu_join(void)
{
	struct urcu_cell *cell = &URCU_TLS(urcu_mine);

	cell->listed = 1;
	pthread_setspecific(urcu_key, cell);
	pthread_mutex_lock(&urcu_lock);
	cds_list_add(&cell->node, &urcu_cells);
	pthread_mutex_unlock(&urcu_lock);
}

static inline void urcu_tls_add(unsigned int k)
{
	if (caa_unlikely(!URCU_TLS(urcu_mine).listed))
		urcu_join();
	CMM_STORE_SHARED(URCU_TLS(urcu_mine).v[k], URCU_TLS(urcu_mine).v[k] + 1);
}

static int64_t urcu_tls_total(void)
{
	struct urcu_cell *cell;
	unsigned long sum;
	int k;

	pthread_mutex_lock(&urcu_lock);
	sum = urcu_ended;
	cds_list_for_each_entry(cell, &urcu_cells, node)
		for (k = 0; k < PEER_COUNTERS; k++)
			sum += CMM_LOAD_SHARED(cell->v[k]);
	pthread_mutex_unlock(&urcu_lock);
	return (int64_t)sum;
}

PEER_COUNTER(urcu_tls, "liburcu URCU_TLS cell, cds_list at exit")

static void urcu_rows(void)
{
	while (urcu_mask + 1 < (unsigned long)sysconf(_SC_NPROCESSORS_CONF))
		urcu_mask = 2 * urcu_mask + 1;
	urcu_split = peers_zalloc(sizeof(*urcu_split) * (urcu_mask + 1));
	if (pthread_key_create(&urcu_key, urcu_leave) != 0)
		abort();
	peers_add(&urcu_uatomic_peer);
	peers_add(&urcu_split_peer);
	peers_add(&urcu_tls_peer);
}
#else
static void urcu_rows(void)
{
	peers_skip("liburcu", "apt-get install liburcu-dev");
}
#endif

int main(int argc, char **argv)
{
	pcbatch_rseq_rows();
	pcbatch_generic_rows();
	peers_add(&c11_atomic_peer);
	ck_rows();
	urcu_rows();
	getcpu_line_set_up();
	peers_add(&getcpu_line_peer);
	long_adder_set_up();
	peers_add(&long_adder_peer);
	design_thread_rows();
	design_limit_rows();
	return peers_main(argc, argv, "peers");
}
