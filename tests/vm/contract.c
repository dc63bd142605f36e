/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls each operation of percpu.h on the rseq backend with words of its own: what it returns and changes when it commits,
 * when each of its checks fails, and (AArch64) when it is interrupted at each injection point: a trap there leads to a
 * signal, whose handler does the same operation, and the interrupted one must report a failure and have changed nothing.
 * Exit status: 0 passed; 1 failed; 77 no rseq here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#if defined(__aarch64__)
/* x16 and x17 are every section's to clobber, and so are the flags at these points. */
#define PCBATCH_INJECT_ASM(n)             \
	"adrp x16, trap_at\n\t"           \
	"ldr w16, [x16, :lo12:trap_at]\n\t" \
	"cmp w16, #" #n "\n\t"            \
	"b.ne 76f\n\t"                    \
	"brk #" #n "\n"                   \
	"76:\n\t"
#endif

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcbatch.h>

#define REGION ((size_t)1 << PCBATCH_REGION_SHIFT)
#define OWNER UINT64_C(0x1234567)

uint32_t trap_at; /* the assembly above reads it */

struct words {
	uint64_t gate;
	uint64_t slot[7];
	uint64_t hits[8]; /* hits[0] counts installs */
	struct pcbatch_priv_stats_block block;
	struct pcbatch_priv_cell item[2];
	struct pcbatch_priv_cell cell;
	uint64_t chk;
	uint64_t word;
};

static intptr_t off;
static uint32_t cpu, bound;
static char *base;
static struct words *w;
static uint64_t slot_off;
static int failures, checks;
static uint32_t traps;

static void expect(const char *what, uint32_t point, uint64_t is, uint64_t should)
{
	checks++;
	if (is == should)
		return;
	failures++;
	printf("FAILED %s (point %" PRIu32 "): %#" PRIx64 ", should be %#" PRIx64 "\n", what, point, is, should);
}

static void reset(void)
{
	memset(w, 0, sizeof(*w));
	bound = (cpu + 1) << PCBATCH_REGION_SHIFT;
	w->slot[2] = pcbatch_slot_pack((uint32_t)OWNER, 10, 5);
	w->slot[3] = pcbatch_slot_obj_pack((uint32_t)OWNER, 1000);
	w->block.cpu = cpu;
	w->block.armed = PCBATCH_PRIV_STATS_ARMED;
	w->block.updates = 50;
	w->item[1].total = 7;
	w->cell.total = 100;
	w->chk = 77;
	w->word = 1234;
}

/* ------------------------------------------------------- one call of each */

static char *part(const void *field)
{
	return base + ((const char *)field - (const char *)w);
}

static bool do_add(void)
{
	char *cells = part(&w->cell);
	uint64_t crossed = 42, before = w->cell.total;
	struct pcbatch_priv_cell *cell = pcbatch_priv_section_add(off, &bound, &cells, -3, &crossed);

	expect("add: cell", trap_at, (uintptr_t)cell, cell == NULL ? 0 : (uintptr_t)&w->cell);
	expect("add: crossed", trap_at, crossed, cell == NULL ? UINT64_MAX : before ^ (before - 3));
	return cell != NULL;
}

static bool do_slot(void)
{
	uint64_t delta = pcbatch_slot_delta(-4, 2);

	slot_off = offsetof(struct words, slot[2]);
	return pcbatch_priv_section_slot(off, &bound, &base, &slot_off,
					 pcbatch_slot_check_consume((uint32_t)OWNER, 64) + delta, delta);
}

static bool do_obj(void)
{
	slot_off = offsetof(struct words, slot[3]);
	return pcbatch_priv_section_obj(off, &bound, &base, &slot_off, pcbatch_slot_obj_check_consume((uint32_t)OWNER) - 300,
					0 - UINT64_C(300));
}

static bool do_cmp_store(void)
{
	return pcbatch_priv_section_cmp_store(off, cpu, &w->gate, &w->chk, 77, &w->word, w->word, w->word + 10);
}

static bool do_install(void)
{
	return pcbatch_priv_section_install(off, cpu, &w->gate, w->hits[0], &w->chk, 77, &w->word, w->word, w->word + 10);
}

static bool do_leaf(void)
{
	char *blocks = part(&w->block);
	struct pcbatch_priv_stats_block *block =
		pcbatch_priv_section_leaf(off, &bound, &blocks, sizeof(w->block) + sizeof(w->item[0]), 9);

	expect("leaf: block", trap_at, (uintptr_t)block, block == NULL ? 0 : (uintptr_t)&w->block);
	return block != NULL;
}

static bool do_level(void)
{
	uint64_t updates = 42, before = w->block.updates;
	bool done = pcbatch_priv_section_level(off, &w->block, 8, 64, &updates);

	if (done)
		expect("level: updates", trap_at, updates, before + 8);
	return done;
}

/* ------------------------------------------------------------ what it does */

static void expect_words(const char *what, uint32_t point, const struct words *should)
{
	size_t i;

	for (i = 0; i < sizeof(*w) / sizeof(uint64_t); i++) {
		uint64_t is, ought;

		memcpy(&is, (const char *)w + i * sizeof(is), sizeof(is));
		memcpy(&ought, (const char *)should + i * sizeof(ought), sizeof(ought));
		if (is != ought)
			printf("word %zu:\n", i);
		expect(what, point, is, ought);
	}
}

/* After n calls that committed. */
static void apply(struct words *should, bool (*call)(void), uint32_t n)
{
	if (call == do_add)
		should->cell.total -= 3 * (uint64_t)n;
	if (call == do_slot) {
		should->slot[2] += n * pcbatch_slot_delta(-4, 2);
		should->hits[2 + 1] += PCBATCH_COUNT_HITS * n;
	}
	if (call == do_obj) {
		should->slot[3] -= 300 * (uint64_t)n;
		should->hits[3 + 1] += PCBATCH_COUNT_HITS * n;
	}
	if (call == do_cmp_store || call == do_install)
		should->word += 10 * (uint64_t)n;
	if (call == do_install)
		should->hits[0] += n;
	if (call == do_leaf)
		should->item[1].total += 9 * (uint64_t)n;
	if (call == do_level)
		should->block.updates = should->block.updates + 8 * n >= 64 ? 0 : should->block.updates + 8 * n;
}

static void commits(const char *name, bool (*call)(void))
{
	struct words should;

	reset();
	should = *w;
	apply(&should, call, 1);
	expect(name, 0, call(), true);
	expect_words(name, 0, &should);
}

/* `spoil` breaks one condition: the call must fail and leave everything as it was. */
static void refuses(const char *name, bool (*call)(void), void (*spoil)(void))
{
	struct words should;

	reset();
	spoil();
	should = *w;
	expect(name, 0, call(), false);
	expect_words(name, 0, &should);
}

static void no_cpu(void) { bound = 0; }
static void bound_is_cpu(void) { bound = cpu << PCBATCH_REGION_SHIFT; }
static void close_gate(void) { w->gate = 1; }
static void close_gate_high(void) { w->gate = UINT64_C(1) << 40; }
static void other_chk(void) { w->chk = 77 + (UINT64_C(1) << 33); }
static void disarm(void) { w->block.armed = PCBATCH_PRIV_STATS_QUEUEING; }
static void other_cpu(void) { w->block.cpu = cpu + 1; }
static void other_owner(void) { w->slot[2] += UINT64_C(1) << 32; w->slot[3] += UINT64_C(1) << 63; }
static void too_few(void) { w->slot[2] -= 7; w->slot[3] -= 800; }
static void stat_full(void) { w->slot[2] += UINT64_C(57) << 16; }

static void level_folds(void)
{
	uint64_t updates = 0;

	reset();
	expect("level at the threshold", 0, pcbatch_priv_section_level(off, &w->block, 14, 64, &updates), true);
	expect("level at the threshold: updates", 0, updates, 64);
	expect("level at the threshold: reset", 0, w->block.updates, 0);
	expect("level below it", 0, pcbatch_priv_section_level(off, &w->block, 63, 64, &updates), true);
	expect("level below it: updates", 0, w->block.updates, 63);
}

static void mismatches(void)
{
	reset();
	expect("cmp_store, other CPU", 0, pcbatch_priv_section_cmp_store(off, cpu + 1, &w->gate, &w->chk, 77, &w->word, 1234, 1),
	       false);
	expect("cmp_store, other word", 0, pcbatch_priv_section_cmp_store(off, cpu, &w->gate, &w->chk, 77, &w->word, 1235, 1),
	       false);
	expect("install, other CPU", 0,
	       pcbatch_priv_section_install(off, cpu + 1, &w->gate, 0, &w->chk, 77, &w->word, 1234, 1), false);
	expect("install, other count", 0, pcbatch_priv_section_install(off, cpu, &w->gate, 1, &w->chk, 77, &w->word, 1234, 1),
	       false);
	expect("install, other word", 0, pcbatch_priv_section_install(off, cpu, &w->gate, 0, &w->chk, 77, &w->word, 1235, 1),
	       false);
	expect("word", 0, w->word, 1234);
	expect("installs", 0, w->hits[0], 0);
}

/* -------------------------------------------------------------- interrupted */

#if defined(__aarch64__)

static bool (*nested)(void);

static void on_trap(int signal_number)
{
	(void)signal_number;
	trap_at = 0;
	traps++;
	expect("the same in the handler", traps, nested(), true);
}

static void interrupted(const char *name, bool (*call)(void), uint32_t first, uint32_t last)
{
	struct words should;
	uint32_t point, before;

	for (point = first; point <= last; point++) {
		reset();
		nested = call;
		before = traps;
		trap_at = point;
		should = *w;
		apply(&should, call, 1);
		/* The hit, or the install, that was counted before the abort. */
		if (point == 8 && call != do_add)
			should.hits[call == do_slot ? 3 : 4] += PCBATCH_COUNT_HITS;
		if (point == 20)
			should.hits[0]++;
		expect(name, point, call(), false);
		expect("it was interrupted", point, traps - before, 1);
		expect_words(name, point, &should);
	}
}

#endif

static void all_checks(void)
{
	struct { const char *name; bool (*call)(void); uint32_t first, last; } const all[] = {
		{"add", do_add, 1, 3},           {"slot", do_slot, 4, 8},       {"obj", do_obj, 4, 8},
		{"cmp_store", do_cmp_store, 9, 12}, {"leaf", do_leaf, 13, 15}, {"level", do_level, 16, 17},
		{"install", do_install, 18, 20}};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		commits(all[i].name, all[i].call);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool (*call)(void) = all[i].call;

		if (call == do_add || call == do_slot || call == do_obj || call == do_leaf) {
			refuses("bound 0", call, no_cpu);
			refuses("bound at the CPU", call, bound_is_cpu);
		}
		if (call == do_slot || call == do_obj || call == do_cmp_store || call == do_install) {
			refuses("gate closed", call, close_gate);
			refuses("gate closed, high bits", call, close_gate_high);
		}
		if (call == do_slot || call == do_obj) {
			refuses("other owner", call, other_owner);
			refuses("too few", call, too_few);
		}
		if (call == do_cmp_store || call == do_install)
			refuses("other chk", call, other_chk);
	}
	refuses("statistic at the batch", do_slot, stat_full);
	refuses("not armed", do_leaf, disarm);
	refuses("another CPU's block", do_level, other_cpu);
	level_folds();
	mismatches();
#if defined(__aarch64__)
	(void)signal(SIGTRAP, on_trap);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		interrupted(all[i].name, all[i].call, all[i].first, all[i].last);
#endif
}

/* A machine that is busy elsewhere may take the CPU from a call that is to be left alone; hardly five times. */
int main(void)
{
	cpu_set_t set;
	int try;

	if (!PCBATCH_PRIV_HAVE_SECTIONS || !pcbatch_priv_rseq_libc(&off) || pcbatch_priv_fence_register() != 0) {
		printf("no rseq here\n");
		return 77;
	}
	cpu = pcbatch_cpu_possible() - 1;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		return 1;
	base = (char *)aligned_alloc(64, REGION * (cpu + 2));
	if (base == NULL)
		return 1;
	w = (struct words *)(void *)(base + REGION * cpu);
	for (try = 0; try < 5 && (try == 0 || failures != 0); try++) {
		failures = checks = 0;
		traps = 0;
		all_checks();
	}
	printf("contract: %d checks, %d failed, %" PRIu32 " traps\n", checks, failures, traps);
	return failures != 0;
}
