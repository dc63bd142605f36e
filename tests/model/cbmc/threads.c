/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads on the library's own code, every interleaving of their accesses: on sequentially consistent memory, and
 * with the stores of either thread delayed as x86 does (tso) or in any order (pso).
 *
 * check: limit
 * check: limit --mm tso
 * check: limit --mm pso
 * check: folds
 * check: folds --mm pso
 * check: take
 * check: take --mm pso
 * check: two_slots
 * check: two_slots --mm tso
 * check: two_slots --mm pso
 * mutant: limit     page_counter.h s/pages >= old || pcbatch_page_counter_read(c) <= pages/1/
 * mutant: limit --mm tso page_counter.h s/old = (int64_t)pcbatch_priv_exchange(\&c->max, (uint64_t)pages);/old = (int64_t)c->max; pcbatch_priv_store(\&c->max, (uint64_t)pages);/
 * mutant: folds     counter.h s/while (!pcbatch_priv_cas(\&cell->folded, folded, total));/while (pcbatch_priv_store(\&cell->folded, total), 0);/
 * mutant: take      stock.h s/while (!pcbatch_priv_cas(\&line->slot\[slot\], word, 0));/while (pcbatch_priv_store(\&line->slot[slot], 0), 0);/
 * mutant: two_slots stock.h s/if (k != slot \&\& pcbatch_slot_owner/if (k > slot \&\& pcbatch_slot_owner/
 */
#include <assert.h>
/* The checker takes every builtin for a full barrier; loads and stores of the library are not (a release or acquire is
 * weakened by this, too). Its read-modify-writes and fences are. */
#define __atomic_load_n(p, order) (*(p))
#define __atomic_store_n(p, v, order) (*(p) = (v))
#include <pcbatch.h>

uint64_t nondet_u64(void);

static _Bool finished;

#define IN_A_THREAD(call)     \
	__CPROVER_ASYNC_1:    \
	call, pcbatch_priv_fence(), finished = 1
#define JOIN() __CPROVER_assume(finished)

/* ------------------------------------------- set_max against try_charge */

static struct pcbatch_page_counter pages;
static uint64_t granted;

static void charge(uint64_t n)
{
	if (pcbatch_page_counter_try_charge(&pages, n, NULL) == 0)
		granted = n;
}

void limit(void)
{
	uint64_t n = nondet_u64(), max = nondet_u64(), old = nondet_u64();
	int err;

	__CPROVER_assume(n <= 4 && max <= 4 && old <= 4);
	pages.max = old;
	IN_A_THREAD(charge(n));
	err = pcbatch_page_counter_set_max(&pages, (int64_t)max);
	JOIN();
	assert(granted <= old || granted <= max);
	assert(err != 0 || granted <= max);
	assert(pages.usage == granted);
}

/* -------------------------------------------------- two folds of one cell */

static struct {
	struct pcbatch_priv_counter_global shared;
	char rest[PCBATCH_PRIV_REGION - sizeof(struct pcbatch_priv_counter_global)];
	struct pcbatch_priv_cell cell;
} memory;
static struct pcbatch_counter counter;

static void add_and_fold(void)
{
	(void)pcbatch_priv_fetch_add(&memory.cell.total, 3);
	pcbatch_priv_counter_fold(&counter, &memory.cell);
}

void folds(void)
{
	counter.cells = (char *)&memory.cell;
	memory.cell.total = 5;
	IN_A_THREAD(add_and_fold());
	pcbatch_priv_counter_fold(&counter, &memory.cell);
	JOIN();
	assert(memory.cell.total == 8 && memory.cell.folded == 8 && memory.shared.value == 8);
}

/* ------------------------------------ a refill's swap against who takes the word */

static struct pcbatch_priv_line line;
static uint64_t put;

static void refill(void)
{
	struct pcbatch_slot_step step;
	uint64_t word = pcbatch_priv_load(&line.slot[1]);

	if (pcbatch_slot_owner(word) != 7)
		return;
	pcbatch_slot_refill(word, 2, 0, 64, 128, 64, &step);
	if (pcbatch_priv_cas(&line.slot[1], word, step.word))
		put = 2;
}

void take(void)
{
	uint64_t word;

	line.slot[1] = pcbatch_slot_pack(7, 3, 0);
	IN_A_THREAD(refill());
	word = pcbatch_priv_stock_take_back(&line, 7, 1);
	JOIN();
	assert(pcbatch_slot_pages(word) + pcbatch_slot_pages(line.slot[1]) == 3 + put);
	assert(line.slot[1] == 0 || pcbatch_slot_owner(line.slot[1]) == 7);
}

/* --------------------------- two that give one owner a slot each (generic backend) */

static struct pcbatch_domain dom;
static struct pcbatch_priv_stock_block block;

static void give(uint32_t slot)
{
	if (!pcbatch_priv_cas(&block.page.slot[slot], 0, pcbatch_slot_pack(7, 1, 0)))
		return;
	if (!pcbatch_priv_stock_stays(&dom, 0, &block.page, 7, slot, true, 0))
		(void)pcbatch_priv_stock_take_back(&block.page, 7, slot);
}

void two_slots(void)
{
	dom.backend = PCBATCH_BACKEND_GENERIC;
	dom.stock_base = (char *)&block;
	IN_A_THREAD(give(2));
	give(0);
	JOIN();
	assert(block.page.slot[0] == 0 || block.page.slot[2] == 0);
}
