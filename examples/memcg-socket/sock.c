/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "memcg_sk.h"
#include "proto.h"
#include "sock.h"

/* ---- pages, in and out ------------------------------------------------------------------------- */

static inline bool mem_cgroup_sk_charge(struct sock *sk, uint32_t pages)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_CHARGE);
	bool ok = memcg_sk_charge(sk->sk_memcg, pages, sk->sk_prot->changes, acct);

	acct_exit(acct, ACCT_CHARGE, start);
	if (likely(ok))
		acct->pages_charged += pages;
	return ok;
}

static inline void mem_cgroup_sk_uncharge(struct sock *sk, uint32_t pages)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_UNCHARGE);

	memcg_sk_uncharge(sk->sk_memcg, pages, sk->sk_prot->changes, acct);
	acct_exit(acct, ACCT_UNCHARGE, start);
	acct->pages_uncharged += pages;
}

static NOINLINE void mem_cgroup_sk_charge_force(struct sock *sk, uint32_t pages)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_CHARGE);

	memcg_sk_charge_force(sk->sk_memcg, pages, sk->sk_prot->changes, acct);
	acct_exit(acct, ACCT_CHARGE, start);
	acct->pages_charged += pages;
}

/* of the reservation, what queued skbs do not use */
static inline int64_t sk_unused_reserved_mem(const struct sock *sk)
{
	int64_t unused;

	if (likely(!sk->sk_reserved_mem))
		return 0;
	unused = sk->sk_reserved_mem - sk->sk_wmem_queued - sk->sk_rmem_alloc;
	return unused > 0 ? unused : 0;
}

/* Whether the protocol lets the socket have what it has just been given. */
static bool proto_allows(struct sock *sk, enum sk_mem kind)
{
	struct proto *prot = sk->sk_prot;
	int64_t allocated = proto_memory_read(prot), sockets;

	if (likely(allocated <= prot->mem[0])) {
		proto_pressure(prot, false);
		return true;
	}
	if (allocated > prot->mem[1])
		proto_pressure(prot, true);
	if (allocated > prot->mem[2])
		return false;
	if (kind == SK_MEM_RECV ? sk->sk_rmem_alloc < prot->rmem_min : sk->sk_wmem_queued < prot->wmem_min)
		return true;
	if (!READ_ONCE(prot->memory_pressure))
		return true;
	/* Under pressure: while every socket could have as much as this one without going over. */
	sockets = pcbatch_counter_read_positive(&prot->sockets_allocated);
	return prot->mem[2] > sockets * pages_ceil(sk->sk_wmem_queued + sk->sk_rmem_alloc + sk->sk_forward_alloc);
}

/* Shrinks the send buffer to half of what is queued. A sender that is already over it must go on. */
static bool sk_send_must_go_on(struct sock *sk, int64_t size)
{
	int64_t sndbuf = sk->sk_wmem_queued / 2;

	if (sndbuf < sk_unused_reserved_mem(sk))
		sndbuf = sk_unused_reserved_mem(sk);
	if (sndbuf > sk->sk_sndbuf)
		sndbuf = sk->sk_sndbuf;
	sk->sk_sndbuf = sndbuf > SOCK_MIN_SNDBUF ? sndbuf : SOCK_MIN_SNDBUF;
	return sk->sk_wmem_queued + size >= sk->sk_sndbuf;
}

static NOINLINE bool sk_mem_suppress(struct sock *sk, int64_t size, uint32_t pages, enum sk_mem kind, bool charged)
{
	if (kind == SK_MEM_SEND && sk_send_must_go_on(sk, size)) {
		if (!charged)
			mem_cgroup_sk_charge_force(sk, pages);
		return true;
	}
	proto_memory_add(sk->sk_prot, -(int64_t)pages);
	if (charged)
		mem_cgroup_sk_uncharge(sk, pages);
	return false;
}

static bool sk_mem_raise_allocated(struct sock *sk, int64_t size, uint32_t pages, enum sk_mem kind)
{
	bool charged;

	proto_memory_add(sk->sk_prot, pages);
	charged = mem_cgroup_sk_charge(sk, pages);
	if (likely(charged && proto_allows(sk, kind)))
		return true;
	return sk_mem_suppress(sk, size, pages, kind, charged);
}

static void sk_mem_reduce_allocated(struct sock *sk, uint32_t pages)
{
	struct proto *prot = sk->sk_prot;

	mem_cgroup_sk_uncharge(sk, pages);
	proto_memory_add(prot, -(int64_t)pages);
	if (unlikely(READ_ONCE(prot->memory_pressure)) && proto_memory_read(prot) < prot->mem[0])
		proto_pressure(prot, false);
}

/* ---- forward allocation ------------------------------------------------------------------------ */

static NOINLINE bool sk_mem_schedule_slow(struct sock *sk, int64_t size, enum sk_mem kind)
{
	int64_t pages = pages_ceil(size - sk->sk_forward_alloc);
	bool ok;

	/* in the books before it is bought, as others judge the socket by it */
	sk->sk_forward_alloc += pages << PAGE_SHIFT;
	sk->sk_charging = true;
	ok = sk_mem_raise_allocated(sk, size, (uint32_t)pages, kind);
	sk->sk_charging = false;
	if (unlikely(!ok))
		sk->sk_forward_alloc -= pages << PAGE_SHIFT;
	return ok;
}

static inline bool sk_mem_schedule(struct sock *sk, int64_t size, enum sk_mem kind)
{
	if (likely(size <= sk->sk_forward_alloc))
		return true;
	return sk_mem_schedule_slow(sk, size, kind);
}

static inline void sk_mem_charge(struct sock *sk, int64_t size)
{
	sk->sk_forward_alloc -= size;
}

static void sk_mem_reclaim(struct sock *sk, int64_t amount)
{
	int64_t pages = amount >> PAGE_SHIFT;

	sk->sk_forward_alloc -= pages << PAGE_SHIFT;
	sk_mem_reduce_allocated(sk, (uint32_t)pages);
}

/*
 * What change 003 is about. Without it a socket keeps less than a page, so nearly every skb buys
 * and nearly every free gives back. With it only the excess over the threshold goes back, unless
 * the memcg is short: then the others need it more.
 */
static inline void sk_mem_uncharge(struct sock *sk, int64_t size)
{
	int64_t reclaimable;

	sk->sk_forward_alloc += size;
	reclaimable = sk->sk_forward_alloc - sk_unused_reserved_mem(sk);
	if (sk->sk_prot->changes & CHANGE_003 && likely(!memcg_under_pressure(sk->sk_memcg)))
		reclaimable -= READ_ONCE(sk->sk_prot->reclaim_threshold);
	if (unlikely(reclaimable >= PAGE_BYTES))
		sk_mem_reclaim(sk, reclaimable);
}

uint64_t sk_mem_reclaim_all(struct sock *sk)
{
	int64_t reclaimable = sk->sk_forward_alloc - sk_unused_reserved_mem(sk);

	if (reclaimable < PAGE_BYTES || sk->sk_charging)
		return 0;
	sk_mem_reclaim(sk, reclaimable);
	return (uint64_t)(reclaimable >> PAGE_SHIFT);
}

static inline void sock_count_event(struct sock *sk, enum memcg_event event)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_EVENT);

	count_memcg_events(sk->sk_task, sk->sk_memcg, event, 1, sk->sk_prot->changes);
	acct_exit(acct, ACCT_EVENT, start);
}

NOINLINE void sock_trace_add(struct sock *sk, enum trace_kind kind, int64_t size)
{
	struct trace_record record = { .socket = sk->sk_id, .size = (uint32_t)size, .kind = (uint8_t)kind,
				       .thread = (uint16_t)sk->sk_task->id, .memcg = (uint16_t)sk->sk_memcg->position };
	int64_t pages = 0;

	if (kind == TRACE_RMEM_CHARGE || kind == TRACE_WMEM_CHARGE) {
		if (size > sk->sk_traced)
			pages = pages_ceil(size - sk->sk_traced);
		sk->sk_traced += (pages << PAGE_SHIFT) - size;
	} else {
		pages = (sk->sk_traced + size) >> PAGE_SHIFT;
		sk->sk_traced += size - (pages << PAGE_SHIFT);
	}
	record.pages = (uint16_t)pages;
	trace_append(sk->sk_task->trace, &record);
}

/* ---- skbs -------------------------------------------------------------------------------------- */

bool sock_rmem_charge(struct sock *sk, uint32_t len)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_SOCK);
	int64_t truesize = skb_truesize(len);
	bool ok = sk_mem_schedule(sk, truesize, SK_MEM_RECV);

	if (likely(ok)) {
		sk_mem_charge(sk, truesize);
		sk->sk_rmem_alloc += truesize;
		sock_count_event(sk, MEMCG_SOCK_RX);
		trace_add(sk, TRACE_RMEM_CHARGE, truesize);
	}
	acct_exit(acct, ACCT_SOCK, start);
	return ok;
}

void sock_rmem_free(struct sock *sk, int64_t truesize)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_SOCK);

	sk->sk_rmem_alloc -= truesize;
	sk_mem_uncharge(sk, truesize);
	trace_add(sk, TRACE_RMEM_UNCHARGE, truesize);
	acct_exit(acct, ACCT_SOCK, start);
}

bool sock_wmem_charge(struct sock *sk, uint32_t len)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_SOCK);
	int64_t truesize = skb_truesize(len);
	bool ok = sk_mem_schedule(sk, truesize, SK_MEM_SEND);

	if (likely(ok)) {
		sk_mem_charge(sk, truesize);
		sk->sk_wmem_queued += truesize;
		sock_count_event(sk, MEMCG_SOCK_TX);
		trace_add(sk, TRACE_WMEM_CHARGE, truesize);
	}
	acct_exit(acct, ACCT_SOCK, start);
	return ok;
}

void sock_wmem_free(struct sock *sk, int64_t truesize)
{
	struct acct *acct = &sk->sk_task->acct;
	uint64_t start = acct_enter(acct, ACCT_SOCK);

	sk->sk_wmem_queued -= truesize;
	if (!sk->sk_wmem_queued)
		sk->sk_sndbuf = SOCK_SNDBUF; /* room again: an earlier squeeze is over */
	sk_mem_uncharge(sk, truesize);
	trace_add(sk, TRACE_WMEM_UNCHARGE, truesize);
	acct_exit(acct, ACCT_SOCK, start);
}

/* ---- reservation and lifetime ------------------------------------------------------------------ */

static int sk_reserve_grow(struct sock *sk, int64_t bytes)
{
	struct proto *prot = sk->sk_prot;
	int64_t pages = pages_ceil(bytes - sk->sk_reserved_mem);
	bool charged;

	sk->sk_charging = true;
	charged = mem_cgroup_sk_charge(sk, (uint32_t)pages);
	sk->sk_charging = false;
	if (!charged)
		return -ENOMEM;
	proto_memory_add(prot, pages);
	if (proto_memory_read(prot) > prot->mem[1]) {
		proto_memory_add(prot, -pages);
		mem_cgroup_sk_uncharge(sk, (uint32_t)pages);
		return -ENOMEM;
	}
	sk->sk_forward_alloc += pages << PAGE_SHIFT;
	sk->sk_reserved_mem += pages << PAGE_SHIFT;
	return 0;
}

int sock_reserve_mem(struct sock *sk, int64_t bytes)
{
	if (bytes < 0 || bytes > SOCK_RESERVE_MAX)
		return -EINVAL;
	if (bytes > sk->sk_reserved_mem)
		return sk_reserve_grow(sk, bytes);
	/* rounded down: a part of a page that is given up can't be given back */
	sk->sk_reserved_mem -= (sk->sk_reserved_mem - bytes) & -PAGE_BYTES;
	sk_mem_reclaim_all(sk);
	return 0;
}

void sock_init(struct sock *sk, struct proto *prot, struct memcg *memcg, struct task *task, uint32_t id)
{
	*sk = (struct sock){ .sk_memcg = memcg, .sk_prot = prot, .sk_task = task, .sk_sndbuf = SOCK_SNDBUF,
			     .sk_id = id };
	pcbatch_counter_add_batch(&prot->sockets_allocated, 1, SOCKETS_BATCH);
}

void sock_release(struct sock *sk)
{
	sk->sk_reserved_mem = 0;
	sk_mem_reclaim_all(sk);
	trace_add(sk, TRACE_RELEASE, 0);
	pcbatch_counter_add_batch(&sk->sk_prot->sockets_allocated, -1, SOCKETS_BATCH);
}
