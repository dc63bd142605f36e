/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/drain.h - taking back what the slots hold: this CPU's, one owner's on
 * all CPUs (others' slots stay warm), a subtree's, everything.
 *
 * A drainer raises the gates of the CPUs that hold what it wants, fences once,
 * takes the words by compare-and-swap, lowers the gates. Whoever meets a raised gate
 * goes to the page counters and never waits. On the generic backend the swap alone
 * is enough.
 *
 * `final` drains also keep out what is not in a slot yet: the install gate's epoch
 * was raised before (pcbatch_priv_stock_hold, or an owner's offline), so a commit
 * that a thread prepared earlier fails; the drain goes round until no CPU that it
 * has not closed holds anything.
 */
#ifndef PCBATCH_DRAIN_H
#define PCBATCH_DRAIN_H

#include "stock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which words a drain wants. */
struct pcbatch_priv_wanted {
	const struct pcbatch_owner *owner; /* NULL: every one */
	bool subtree;                      /* and its descendants */
};

PCBATCH_INLINE bool pcbatch_priv_drain_wants(const struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted,
					     uint64_t word)
{
	uint32_t id = pcbatch_slot_owner(word);

	if (id == 0)
		return false;
	if (wanted->owner == NULL)
		return true;
	if (!wanted->subtree || id == wanted->owner->id)
		return id == wanted->owner->id;
	return pcbatch_priv_owner_within(pcbatch_priv_owner_at(dom, id), wanted->owner);
}

PCBATCH_INLINE bool pcbatch_priv_drain_line_wants(const struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted,
						  const struct pcbatch_priv_line *line)
{
	uint32_t k;

	for (k = 0; k < PCBATCH_STOCK_SLOTS; k++)
		if (pcbatch_priv_drain_wants(dom, wanted, pcbatch_priv_load(&line->slot[k])))
			return true;
	return false;
}

/*
 * Gives back the whole pages of what a byte slot held and adds the rest to the
 * owner's shared remainder, whose own whole pages go too. Nothing is lost: a byte
 * is in a live charge, in a slot or in the remainder.
 */
PCBATCH_INLINE int pcbatch_priv_obj_give_back(struct pcbatch_owner *owner, uint64_t bytes)
{
	uint64_t size = owner->dom->attr.page_size, sum;

	if (bytes % size != 0)
		(void)pcbatch_priv_fetch_add(&owner->remainder, bytes % size);
	PCBATCH_INJECT_C(14);
	bytes -= bytes % size;
	do {
		sum = pcbatch_priv_load(&owner->remainder);
	} while (sum >= size && !pcbatch_priv_cas(&owner->remainder, sum, sum % size));
	if (sum >= size)
		bytes += sum - sum % size;
	PCBATCH_INJECT_C(15);
	return pcbatch_priv_stock_uncharge(owner, bytes / size);
}

/* Hands on what a taken byte word held, and drops its reference last. */
PCBATCH_INLINE int pcbatch_priv_obj_release(struct pcbatch_domain *dom, uint64_t word)
{
	struct pcbatch_owner *owner = pcbatch_priv_owner_at(dom, pcbatch_slot_owner(word));
	int err;

	PCBATCH_INJECT_C(13);
	err = pcbatch_priv_obj_give_back(owner, pcbatch_slot_obj_bytes(word));
	pcbatch_priv_owner_put(owner);
	return err;
}

/* Counts a drained word and hands on what it held. */
PCBATCH_INLINE int pcbatch_priv_drain_hand_on(struct pcbatch_domain *dom, uint64_t word, bool obj)
{
	pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_DRAIN, 1);
	if (obj)
		return pcbatch_priv_obj_release(dom, word);
	pcbatch_priv_count(dom, PCBATCH_PRIV_COUNT_DRAINED_PAGES, pcbatch_slot_pages(word));
	return pcbatch_priv_stock_release(dom, word);
}

/* Takes what is wanted from a line that nobody but drainers can write now (or that takes swaps only). */
PCBATCH_INLINE int pcbatch_priv_drain_take(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted,
					   struct pcbatch_priv_line *line, bool obj)
{
	int err = 0, one;
	uint32_t k;

	for (k = 0; k < PCBATCH_STOCK_SLOTS; k++) {
		uint64_t word;
		bool taken = false;

		do {
			word = pcbatch_priv_load(&line->slot[k]);
			if (!pcbatch_priv_drain_wants(dom, wanted, word))
				break;
			PCBATCH_INJECT_C(17);
			taken = pcbatch_priv_cas(&line->slot[k], word, 0);
		} while (!taken);
		if (!taken)
			continue;
		one = pcbatch_priv_drain_hand_on(dom, word, obj);
		err = err != 0 ? err : one;
	}
	return err;
}

PCBATCH_INLINE int pcbatch_priv_drain_cpu(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted, uint32_t c)
{
	/* Bytes first: they may become pages, but never a page slot's. */
	int obj = pcbatch_priv_drain_take(dom, wanted, &pcbatch_priv_stock(dom, c)->obj, true);
	int page = pcbatch_priv_drain_take(dom, wanted, &pcbatch_priv_stock(dom, c)->page, false);

	return obj != 0 ? obj : page;
}

/* One bit a CPU. */
struct pcbatch_priv_cpu_set {
	uint64_t bits[PCBATCH_CPUS_MAX / 64];
};

PCBATCH_INLINE bool pcbatch_priv_cpu_in(const struct pcbatch_priv_cpu_set *set, uint32_t c)
{
	return (set->bits[c / 64] >> (c % 64) & 1) != 0;
}

/* Raises the gates of all CPUs that hold what is wanted and are not in `closed`; these are `fresh`. */
PCBATCH_INLINE bool pcbatch_priv_drain_close(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted,
					     struct pcbatch_priv_cpu_set *closed, struct pcbatch_priv_cpu_set *fresh)
{
	bool any = false;
	uint32_t c;

	memset(fresh, 0, sizeof(uint64_t) * ((dom->lines + 63) / 64));
	for (c = 0; c < dom->lines; c++) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, c);

		if (pcbatch_priv_cpu_in(closed, c) || (!pcbatch_priv_drain_line_wants(dom, wanted, &stock->page) &&
						       !pcbatch_priv_drain_line_wants(dom, wanted, &stock->obj)))
			continue;
		(void)pcbatch_priv_fetch_add(&stock->page.gate, 1);
		closed->bits[c / 64] |= UINT64_C(1) << (c % 64);
		fresh->bits[c / 64] |= UINT64_C(1) << (c % 64);
		any = true;
	}
	return any;
}

PCBATCH_INLINE void pcbatch_priv_drain_open(struct pcbatch_domain *dom, const struct pcbatch_priv_cpu_set *closed, uint64_t pid)
{
	bool forked = pcbatch_priv_fork_check(dom) != pid;
	uint32_t c;

	for (c = 0; c < dom->lines; c++) {
		uint64_t *gate = &pcbatch_priv_stock(dom, c)->page.gate;

		if (!pcbatch_priv_cpu_in(closed, c))
			continue;
		/* Forked in the middle of closing: which of them the child's reopening came before can't be told. */
		if (forked)
			pcbatch_priv_store(gate, 0);
		else
			pcbatch_priv_lower(gate, UINT64_MAX);
	}
}

/* Takes from the CPUs of the set. */
PCBATCH_INLINE int pcbatch_priv_drain_cpus(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted,
					   const struct pcbatch_priv_cpu_set *set)
{
	int err = 0, one;
	uint32_t c;

	for (c = 0; c < dom->lines; c++) {
		one = pcbatch_priv_cpu_in(set, c) ? pcbatch_priv_drain_cpu(dom, wanted, c) : 0;
		err = err != 0 ? err : one;
	}
	return err;
}

/*
 * The first round's fence serves twice: no hit that read an open gate can commit
 * after it, and neither can an install prepared before the epoch moved. So what a
 * final drain finds on further CPUs landed before it, and the rounds end.
 */
PCBATCH_COLD int pcbatch_priv_drain_rseq(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted, bool final)
{
	uint64_t pid = pcbatch_priv_fork_check(dom);
	struct pcbatch_priv_cpu_set closed, fresh;
	bool again = final;
	int err = 0, one;

	memset(&closed, 0, sizeof(uint64_t) * ((dom->lines + 63) / 64));
	while (pcbatch_priv_drain_close(dom, wanted, &closed, &fresh) || again) {
		PCBATCH_INJECT_C(16);
		one = pcbatch_priv_fence_rseq();
		PCBATCH_INJECT_C(8);
		if (one != 0) {
			err = one;
			break;
		}
		one = pcbatch_priv_drain_cpus(dom, wanted, &fresh);
		err = err != 0 ? err : one;
		if (!final)
			break;
		again = false;
	}
	PCBATCH_INJECT_C(18);
	pcbatch_priv_drain_open(dom, &closed, pid);
	return err;
}

PCBATCH_COLD int pcbatch_priv_drain_generic(struct pcbatch_domain *dom, const struct pcbatch_priv_wanted *wanted)
{
	int err = 0, one;
	uint32_t c;

	for (c = 0; c < dom->lines; c++) {
		one = pcbatch_priv_drain_cpu(dom, wanted, c);
		err = err != 0 ? err : one;
	}
	return err;
}

/*
 * Returns 0; -ERANGE something drained had never been charged (all of it was
 * handled); another negative errno: the fence was refused, and nothing more was taken.
 */
PCBATCH_INLINE int pcbatch_priv_drain(struct pcbatch_domain *dom, const struct pcbatch_owner *owner, bool subtree, bool final)
{
	struct pcbatch_priv_wanted wanted;

	wanted.owner = owner;
	wanted.subtree = subtree;
	return pcbatch_priv_is_rseq(dom) ? pcbatch_priv_drain_rseq(dom, &wanted, final) : pcbatch_priv_drain_generic(dom, &wanted);
}

/* From here to pcbatch_priv_stock_let, nobody installs a slot, anywhere; uncharges of what has none go direct. */
PCBATCH_INLINE uint64_t pcbatch_priv_stock_hold(struct pcbatch_domain *dom)
{
	uint64_t pid = pcbatch_priv_fork_check(dom);

	(void)pcbatch_priv_fetch_add(&dom->install_gate, 0x10000 + 1);
	return pid;
}

/* pid: what pcbatch_priv_stock_hold returned; in a child forked by a signal handler since, nobody else holds. */
PCBATCH_INLINE void pcbatch_priv_stock_let(struct pcbatch_domain *dom, uint64_t pid)
{
	if (pcbatch_priv_fork_check(dom) == pid)
		pcbatch_priv_lower(&dom->install_gate, 0xffff);
	else
		pcbatch_priv_install_gate_reset(dom);
}

/* Takes an owner off the slots for good: what is cached is drained, and nothing is cached again. */
PCBATCH_INLINE int pcbatch_priv_owner_take_offline(struct pcbatch_owner *owner)
{
	struct pcbatch_domain *dom = owner->dom;

	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_store(&owner->state, PCBATCH_PRIV_OWNER_OFFLINE);
	pcbatch_priv_store32(&owner->bound, 0);
	PCBATCH_INJECT_C(26);
	/* Full barrier; see the install gate's reader in pcbatch_priv_stock_refill. */
	(void)pcbatch_priv_fetch_add(&dom->install_gate, 0x10000);
	PCBATCH_INJECT_C(27);
	return pcbatch_priv_drain(dom, owner, false, true);
}

PCBATCH_INLINE void pcbatch_priv_owner_take_online(struct pcbatch_owner *owner)
{
	pcbatch_priv_store32(&owner->bound, owner->dom->rseq_bound);
	pcbatch_priv_store_release(&owner->state, PCBATCH_PRIV_OWNER_ONLINE);
}

/*
 * Empties this CPU's slots (on the generic backend: of this thread's line).
 *
 * Returns: 0; -EINVAL dom is not a domain; -EAGAIN this thread has no CPU, or was
 *	moved or interrupted at each try; -ERANGE something drained had never been charged.
 * Threading: any thread, async-signal-safe. Progress: lock-free; no fence.
 */
PCBATCH_INLINE int pcbatch_stock_drain_cpu(struct pcbatch_domain *dom)
{
	uint32_t cpu, k;
	int err = 0, one, tries = 0;

	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	cpu = pcbatch_priv_cpu(dom);
	if (cpu >= dom->lines)
		return -EAGAIN;
	for (k = 0; k < 2 * PCBATCH_STOCK_SLOTS;) {
		struct pcbatch_priv_stock_block *stock = pcbatch_priv_stock(dom, cpu);
		bool obj = k < PCBATCH_STOCK_SLOTS;
		uint64_t *slot = obj ? &stock->obj.slot[k] : &stock->page.slot[k - PCBATCH_STOCK_SLOTS];
		uint64_t word = pcbatch_priv_load(slot);

		if (word == 0) {
			k++;
			continue;
		}
		PCBATCH_INJECT_C(17);
		if (!pcbatch_priv_stock_commit(dom, cpu, &stock->page.gate, 0, slot, word, 0)) {
			if (tries++ == 2 * PCBATCH_STOCK_SLOTS * PCBATCH_RETRIES || pcbatch_priv_cpu(dom) != cpu)
				return -EAGAIN;
			continue;
		}
		one = pcbatch_priv_drain_hand_on(dom, word, obj);
		err = err != 0 ? err : one;
		k++;
	}
	return err;
}

/*
 * Empties every slot of every CPU, page and byte slots.
 *
 * Calls that run at the same time may fill slots again behind it.
 * Returns: 0; -EINVAL dom is not a domain; -ERANGE something drained had never been
 *	charged; another negative errno: the kernel refused the fence, nothing was taken.
 * Threading: any thread, async-signal-safe. Progress: never waits for a charge; one system call.
 */
PCBATCH_INLINE int pcbatch_stock_drain_all(struct pcbatch_domain *dom)
{
	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	return pcbatch_priv_drain(dom, NULL, false, false);
}

/*
 * Changes batch and watermarks while in use, and drains, so that on return no slot
 * holds more than the new marks allow (but for what calls in flight put there).
 *
 * batch: pages a miss buys, 1 to PCBATCH_STOCK_BATCH_MAX. high: pages a slot may
 * hold, batch to PCBATCH_STOCK_HIGH_MAX; 0: 2 x batch. low: what it is trimmed to,
 * 0 to high; it is batch when high is 0.
 * Returns: 0; -EINVAL dom is not a domain or a value is out of range, nothing has
 *	changed; -ERANGE and others as pcbatch_stock_drain_all, the new values hold.
 * Threading: any thread, not a signal handler. Progress: may block on the domain's lock.
 */
PCBATCH_INLINE int pcbatch_stock_set_batch(struct pcbatch_domain *dom, uint32_t batch, uint32_t high, uint32_t low)
{
	uint64_t id;

	if (!pcbatch_priv_domain_valid(dom))
		return -EINVAL;
	if (high == 0) {
		high = 2 * batch;
		low = batch;
	}
	if (!pcbatch_priv_stock_batch_valid(batch, high, low))
		return -EINVAL;
	(void)pcbatch_priv_fork_check(dom);
	pcbatch_priv_lock(&dom->lock);
	pcbatch_priv_store(&dom->stock_marks, pcbatch_priv_marks_pack(batch, high, low));
	PCBATCH_INJECT_C(31);
	for (id = 1; id <= dom->owner_ids; id++)
		pcbatch_priv_owner_set_checks(pcbatch_priv_owner_at(dom, (uint32_t)id));
	pcbatch_priv_unlock(&dom->lock);
	return pcbatch_stock_drain_all(dom);
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_DRAIN_H */
