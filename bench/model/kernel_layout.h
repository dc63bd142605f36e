/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_layout.h - the kernel's stock of seed 000: a line a CPU with a lock, page
 * counts, socket counts and owners. Part of work.c, whose page counter (kpages) and
 * group (for the statistics) it uses. Where the kernel has a local lock, which costs
 * nothing because preemption is off, this has a lock-prefixed try-lock.
 */
#ifndef MODEL_KERNEL_LAYOUT_H
#define MODEL_KERNEL_LAYOUT_H

#define KSLOTS 6
struct kstock {
	uint32_t lock;
	uint8_t pages[KSLOTS];
	int8_t sock[KSLOTS];
	struct pcbatch_group *cached[KSLOTS];
} __attribute__((aligned(64)));

static struct kstock kstocks[WORK_CPUS_MAX];
static inline int kstock_lock(struct kstock *s)
{
	return __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void kstock_unlock(struct kstock *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

/* mod_memcg_state as in seed 000's profile: every update looks at the shared count of updates. */
static NOINLINE void kstat(int64_t n)
{
	if (!pcbatch_group_stat_needs_flush(group))
		(void)pcbatch_group_stat_mod(group, 0, n);
}

static inline int kstock_find(const struct kstock *s)
{
	int i;

	for (i = 0; i < KSLOTS; i++)
		if (s->cached[i] == group)
			return i;
	return -1;
}

static inline int kstock_sock(struct kstock *s, int i, int n)
{
	int sock = s->sock[i] + n;

	s->sock[i] = (int8_t)(sock > -BATCH && sock < BATCH ? sock : 0);
	return sock > -BATCH && sock < BATCH ? 0 : sock;
}

/* nr_sock: 0 when the statistic is not batched here. */
static inline __attribute__((always_inline)) int consume(uint32_t cpu, unsigned int pages, int nr_sock)
{
	struct kstock *s = &kstocks[cpu];
	int i, done = 0, fold = 0;

	if (!kstock_lock(s))
		return 0;
	i = kstock_find(s);
	if (i >= 0 && s->pages[i] >= pages) {
		s->pages[i] = (uint8_t)(s->pages[i] - pages);
		if (nr_sock != 0)
			fold = kstock_sock(s, i, nr_sock);
		done = 1;
	}
	kstock_unlock(s);
	if (fold != 0)
		kstat(fold);
	return done;
}

static inline __attribute__((always_inline)) void refill(uint32_t cpu, unsigned int pages, int nr_sock)
{
	struct kstock *s = &kstocks[cpu];
	unsigned int have, drain = 0;
	int i, fold = 0;

	if (!kstock_lock(s)) {
		(void)pcbatch_page_counter_uncharge(&kpages, pages);
		return;
	}
	i = kstock_find(s);
	if (i < 0) {
		i = 0;
		s->cached[0] = group;
	}
	have = s->pages[i] + pages;
	if (have > 2 * BATCH) { /* the watermarks: above high, down to low */
		drain = have - BATCH;
		have = BATCH;
	}
	s->pages[i] = (uint8_t)have;
	if (nr_sock != 0)
		fold = kstock_sock(s, i, -nr_sock);
	kstock_unlock(s);
	if (drain != 0)
		(void)pcbatch_page_counter_uncharge(&kpages, drain);
	if (fold != 0)
		kstat(fold);
}

#endif /* MODEL_KERNEL_LAYOUT_H */
