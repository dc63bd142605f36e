/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket memory, as the kernel's socket core keeps it.
 *
 * A socket buys whole pages and hands out bytes of them: sk_forward_alloc is what it has bought and
 * not handed out. An skb takes its truesize from there when it is queued and puts it back when it
 * is freed. Pages are bought from the protocol (with its three levels, tcp_mem) and from the
 * socket's memcg; they go back when there is more than the socket may keep.
 *
 * A socket belongs to one thread: that stands for the socket lock.
 */
#ifndef MEMCG_SOCKET_SOCK_H
#define MEMCG_SOCKET_SOCK_H

#include "memcg.h"
#include "proto.h"
#include "trace.h"

/* one skb carries at most this much of a message */
#define SKB_DATA_MAX 65536u

/* struct sk_buff, and a linear area for headers with the shared info behind it, as slab gives them */
#define SKB_HEAD_TRUESIZE (256u + 1024u)

#define SOCK_RESERVE_MAX (64 << 20)

#define SOCK_MIN_SNDBUF 4608
#define SOCK_SNDBUF 87380

enum sk_mem { SK_MEM_SEND, SK_MEM_RECV };

struct sock {
	struct memcg *sk_memcg;
	struct proto *sk_prot;
	struct task *sk_task;
	int64_t sk_forward_alloc; /* bytes bought and not in use */
	int64_t sk_reserved_mem;  /* bytes of it that are kept whatever happens */
	int64_t sk_rmem_alloc;
	int64_t sk_wmem_queued;
	int64_t sk_sndbuf;
	int64_t sk_traced; /* what forward_alloc would be if nothing were kept; only while recording */
	uint32_t sk_id;
	bool sk_charging; /* buying pages: not a victim of reclaim meanwhile */
};

void sock_init(struct sock *sk, struct proto *prot, struct memcg *memcg, struct task *task, uint32_t id);
/* everything freed: gives back the reservation and all that was bought */
void sock_release(struct sock *sk);

/* SO_RESERVE_MEM: 0, -EINVAL or -ENOMEM */
int sock_reserve_mem(struct sock *sk, int64_t bytes);

/* gives back every page that is neither in use nor reserved; returns pages */
uint64_t sk_mem_reclaim_all(struct sock *sk);

static inline int64_t skb_truesize(uint32_t len)
{
	return (int64_t)SKB_HEAD_TRUESIZE + len;
}

/*
 * An skb arrives, leaves: len bytes of payload. Charging fails when a memcg or the protocol refuses.
 * Both count the event and record the charge when the thread records.
 */
bool sock_rmem_charge(struct sock *sk, uint32_t len);
void sock_rmem_free(struct sock *sk, int64_t truesize);
bool sock_wmem_charge(struct sock *sk, uint32_t len);
void sock_wmem_free(struct sock *sk, int64_t truesize);

/* Notes the call for --record: the pages are what it moves when the socket keeps less than one. */
void sock_trace_add(struct sock *sk, enum trace_kind kind, int64_t size);

static inline void trace_add(struct sock *sk, enum trace_kind kind, int64_t size)
{
	if (unlikely(sk->sk_task->trace))
		sock_trace_add(sk, kind, size);
}

#endif
