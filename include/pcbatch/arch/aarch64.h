/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/arch/aarch64.h - the commit contract of percpu.h as rseq assembly.
 *
 * A conditional branch reaches 1 MiB only, and neither another section nor a label of
 * asm goto (in a function that the compiler split) need be that near. So a check that
 * fails branches to the end of its own statement, label 5, and the status register t
 * tells: 0 after a commit; else what was compared last or, before the first comparison,
 * the descriptor's address. Only the kernel goes to the abort handlers, and they come
 * back by a branch that reaches 128 MiB, or further by a linker's veneer, which may use
 * x16 and x17.
 *
 * Loads are reordered here, so gate, chk and armed are loaded with acquire. The commit
 * is a plain store all the same: who must see it fences first.
 */
#ifndef PCBATCH_ARCH_AARCH64_H
#define PCBATCH_ARCH_AARCH64_H

#ifndef PCBATCH_PRIV_ARCH_INSIDE
#error "include <pcbatch/percpu.h> instead"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_PRIV_HAVE_SECTIONS 1

#define PCBATCH_PRIV_STR1(x) #x
#define PCBATCH_PRIV_STR(x) PCBATCH_PRIV_STR1(x)

/*
 * The descriptor (label 3) of the section from label 1 to label 2 with abort
 * handler 4. "?" puts it in the group of the function it belongs to, so that an
 * inline C++ function that the linker discards takes its descriptor along.
 */
#define PCBATCH_PRIV_SECTION_TABLE            \
	".pushsection __rseq_cs, \"aw?\"\n\t" \
	".balign 32\n"                        \
	"3:\n\t"                              \
	".long 0, 0\n\t"                      \
	".quad 1f, 2f - 1f, 4f\n\t"           \
	".popsection\n\t"

/* Label 4, out of line, behind the signature that the kernel looks for (a brk). `fail` sets the results. */
#define PCBATCH_PRIV_ABORT(fail)                   \
	".pushsection __rseq_failure, \"ax?\"\n\t" \
	".balign 4\n\t"                            \
	".inst 0xd428bc00\n"                       \
	"4:\n\t" fail                              \
	"b 5b\n\t"                                 \
	".popsection\n\t"

/* What every section clobbers. */
#define PCBATCH_PRIV_CLOBBERS "x16", "x17", "memory", "cc"

/* Arms the section: from label 1 on the kernel restarts us at label 4. */
#define PCBATCH_PRIV_ARM(tmp)                \
	"adrp " tmp ", 3b\n\t"               \
	"add " tmp ", " tmp ", :lo12:3b\n\t" \
	"str " tmp ", [%[area], #8]\n"       \
	"1:\n\t"

#define PCBATCH_PRIV_LSL_REGION "lsl #" PCBATCH_PRIV_STR(PCBATCH_REGION_SHIFT)

/* reg becomes this CPU's number; on to label 5 when it is out of bounds. */
#define PCBATCH_PRIV_CPU(reg, tmp)                                         \
	"ldr %w" reg ", [%[area], #4]\n\t"                                 \
	"ldr %w" tmp ", %[bound]\n\t"                                      \
	"cmp %w" tmp ", %w" reg ", " PCBATCH_PRIV_LSL_REGION "\n\t"        \
	"b.ls 5f\n\t"

/* part: the address of that CPU's part of what begins at `from` for CPU 0. */
#define PCBATCH_PRIV_CPU_PART(part, from, reg, tmp)                        \
	"ldr %" tmp ", %" from "\n\t"                                      \
	"add %" part ", %" tmp ", %" reg ", " PCBATCH_PRIV_LSL_REGION "\n\t"

PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_rseq_area, cpu_id) == 4 && offsetof(struct pcbatch_rseq_area, rseq_cs) == 8,
		      "offsets in the rseq area");
PCBATCH_STATIC_ASSERT(offsetof(struct pcbatch_priv_stats_block, cpu) == 24 &&
			      offsetof(struct pcbatch_priv_stats_block, armed) == 28,
		      "offsets in a block of statistics");

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_cell *pcbatch_priv_section_add(intptr_t off, const uint32_t *bound,
									   char *const *base, int64_t delta, uint64_t *crossed)
{
	/* What they are when the CPU is out of bounds. */
	struct pcbatch_priv_cell *cell = NULL;
	uint64_t x = UINT64_MAX;
	uint64_t old, cpu;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[old]")
			     PCBATCH_INJECT_ASM(1)
			     PCBATCH_PRIV_CPU("[cpu]", "[old]")
			     PCBATCH_INJECT_ASM(2)
			     PCBATCH_PRIV_CPU_PART("[cell]", "[base]", "[cpu]", "[old]")
			     "ldr %[old], [%[cell]]\n\t"
			     "add %[x], %[old], %[delta]\n\t"
			     PCBATCH_INJECT_ASM(3)
			     "str %[x], [%[cell]]\n"
			     "2:\n\t"
			     "eor %[x], %[x], %[old]\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT("mov %[cell], xzr\n\t"
						"mov %[x], #-1\n\t")
			     : [cell] "+&r"(cell), [x] "+&r"(x), [old] "=&r"(old), [cpu] "=&r"(cpu)
			     : [area] "r"(pcbatch_priv_rseq_area(off)), [bound] "m"(*bound), [base] "m"(*base), [delta] "rI"(delta)
			     : PCBATCH_PRIV_CLOBBERS);
	*crossed = x;
	return cell;
}

#if PCBATCH_COUNT_HITS
#define PCBATCH_PRIV_COUNT_HIT           \
	"ldr %[x], [%[slot], #64]\n\t"   \
	"add %[x], %[x], #1\n\t"         \
	"str %[x], [%[slot], #64]\n\t"
#else
#define PCBATCH_PRIV_COUNT_HIT
#endif

/* test makes t 0 when no bit of the mask is set in it. */
#define PCBATCH_PRIV_DEFINE_SECTION_SLOT(name, test)                                                                \
	PCBATCH_ALWAYS_INLINE bool name(intptr_t off, const uint32_t *bound, char *const *line,                     \
					const uint64_t *slot_off, uint64_t check, uint64_t delta)                   \
	{                                                                                                           \
		uint64_t t, slot, w, x;                                                                             \
														    \
		__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE                                                     \
				     PCBATCH_PRIV_ARM("%[t]")                                                       \
				     PCBATCH_INJECT_ASM(4)                                                          \
				     PCBATCH_PRIV_CPU("[slot]", "[x]")                                              \
				     PCBATCH_PRIV_CPU_PART("[slot]", "[line]", "[slot]", "[x]")                     \
				     PCBATCH_INJECT_ASM(5)                                                          \
				     "ldar %[t], [%[slot]]\n\t"                                                     \
				     "cbnz %[t], 5f\n\t"                                                            \
				     "ldr %[x], %[slot_off]\n\t"                                                    \
				     "add %[slot], %[slot], %[x]\n\t"                                               \
				     PCBATCH_INJECT_ASM(6)                                                          \
				     "ldr %[w], [%[slot]]\n\t"                                                      \
				     PCBATCH_INJECT_ASM(7)                                                          \
				     "add %[t], %[w], %[check]\n\t"                                                 \
				     test                                                                           \
				     "cbnz %[t], 5f\n\t"                                                            \
				     PCBATCH_PRIV_COUNT_HIT                                                         \
				     "add %[w], %[w], %[delta]\n\t"                                                 \
				     PCBATCH_INJECT_ASM(8)                                                          \
				     "str %[w], [%[slot]]\n"                                                        \
				     "2:\n"                                                                         \
				     "5:\n\t"                                                                       \
				     PCBATCH_PRIV_ABORT("mov %[t], #1\n\t")                                         \
				     : [t] "=&r"(t), [slot] "=&r"(slot), [w] "=&r"(w), [x] "=&r"(x)                 \
				     : [area] "r"(pcbatch_priv_rseq_area(off)), [bound] "m"(*bound),                \
				       [line] "m"(*line), [slot_off] "m"(*slot_off), [check] "r"(check),            \
				       [delta] "rI"(delta)                                                          \
				     : PCBATCH_PRIV_CLOBBERS);                                                      \
		return t == 0;                                                                                      \
	}

/* ...80008000: two guards. The mask is no immediate of this architecture. */
PCBATCH_PRIV_DEFINE_SECTION_SLOT(pcbatch_priv_section_slot,
				 "and %[x], %[t], #0x8000\n\t"
				 "orr %[t], %[x], %[t], lsr #31\n\t")
/* ...80000000: one guard */
PCBATCH_PRIV_DEFINE_SECTION_SLOT(pcbatch_priv_section_obj, "lsr %[t], %[t], #31\n\t")
#undef PCBATCH_PRIV_DEFINE_SECTION_SLOT
#undef PCBATCH_PRIV_COUNT_HIT

PCBATCH_INLINE bool pcbatch_priv_section_cmp_store(intptr_t off, uint32_t cpu, const uint64_t *gate, const uint64_t *chk,
						   uint64_t chkval, uint64_t *word, uint64_t old, uint64_t desired)
{
	uint64_t t, here;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(9)
			     "ldr %w[here], [%[area], #4]\n\t"
			     "cmp %w[here], %w[cpu]\n\t"
			     "b.ne 5f\n\t"
			     "ldar %[t], [%[gate]]\n\t"
			     "cbnz %[t], 5f\n\t"
			     PCBATCH_INJECT_ASM(10)
			     "ldar %[t], [%[chk]]\n\t"
			     "eor %[t], %[t], %[chkval]\n\t"
			     "cbnz %[t], 5f\n\t"
			     PCBATCH_INJECT_ASM(11)
			     "ldr %[t], [%[word]]\n\t"
			     "eor %[t], %[t], %[old]\n\t"
			     "cbnz %[t], 5f\n\t"
			     PCBATCH_INJECT_ASM(12)
			     "str %[desired], [%[word]]\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT("mov %[t], #1\n\t")
			     : [t] "=&r"(t), [here] "=&r"(here)
			     : [area] "r"(pcbatch_priv_rseq_area(off)), [cpu] "r"(cpu), [gate] "r"(gate), [chk] "r"(chk),
			       [chkval] "r"(chkval), [word] "r"(word), [old] "r"(old), [desired] "r"(desired)
			     : PCBATCH_PRIV_CLOBBERS);
	return t == 0;
}

PCBATCH_INLINE bool pcbatch_priv_section_install(intptr_t off, uint32_t cpu, uint64_t *gate, uint64_t installs,
						 const uint64_t *chk, uint64_t chkval, uint64_t *word, uint64_t old,
						 uint64_t desired)
{
	uint64_t t, here, n;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(18)
			     "ldr %w[here], [%[area], #4]\n\t"
			     "cmp %w[here], %w[cpu]\n\t"
			     "b.ne 5f\n\t"
			     "ldar %[t], [%[gate]]\n\t"
			     "cbnz %[t], 5f\n\t"
			     "ldr %[n], [%[gate], #64]\n\t"
			     "eor %[t], %[n], %[installs]\n\t"
			     "cbnz %[t], 5f\n\t"
			     PCBATCH_INJECT_ASM(19)
			     "ldar %[t], [%[chk]]\n\t"
			     "eor %[t], %[t], %[chkval]\n\t"
			     "cbnz %[t], 5f\n\t"
			     "ldr %[t], [%[word]]\n\t"
			     "eor %[t], %[t], %[old]\n\t"
			     "cbnz %[t], 5f\n\t"
			     "add %[n], %[n], #1\n\t"
			     "str %[n], [%[gate], #64]\n\t"
			     PCBATCH_INJECT_ASM(20)
			     "str %[desired], [%[word]]\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT("mov %[t], #1\n\t")
			     : [t] "=&r"(t), [here] "=&r"(here), [n] "=&r"(n)
			     : [area] "r"(pcbatch_priv_rseq_area(off)), [cpu] "r"(cpu), [gate] "r"(gate),
			       [installs] "r"(installs), [chk] "r"(chk), [chkval] "r"(chkval), [word] "r"(word), [old] "r"(old),
			       [desired] "r"(desired)
			     : PCBATCH_PRIV_CLOBBERS);
	return t == 0;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_stats_block *pcbatch_priv_section_leaf(intptr_t off, const uint32_t *bound,
										  char *const *base, uint64_t item_off,
										  int64_t delta)
{
	struct pcbatch_priv_stats_block *block;
	uint64_t t, item, v;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(13)
			     PCBATCH_PRIV_CPU("[block]", "[v]")
			     PCBATCH_PRIV_CPU_PART("[block]", "[base]", "[block]", "[v]")
			     PCBATCH_INJECT_ASM(14)
			     "add %[t], %[block], #28\n\t"
			     "ldar %w[t], [%[t]]\n\t"
			     "sub %w[t], %w[t], #" PCBATCH_PRIV_STR(PCBATCH_PRIV_STATS_ARMED) "\n\t"
			     "cbnz %w[t], 5f\n\t"
			     "add %[item], %[block], %[item_off]\n\t"
			     PCBATCH_INJECT_ASM(15)
			     "ldr %[v], [%[item]]\n\t"
			     "add %[v], %[v], %[delta]\n\t"
			     "str %[v], [%[item]]\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT("mov %[t], #1\n\t")
			     : [block] "=&r"(block), [t] "=&r"(t), [item] "=&r"(item), [v] "=&r"(v)
			     : [area] "r"(pcbatch_priv_rseq_area(off)), [bound] "m"(*bound), [base] "m"(*base),
			       [item_off] "rI"(item_off), [delta] "rI"(delta)
			     : PCBATCH_PRIV_CLOBBERS);
	if (t != 0)
		return NULL;
	/* So that the caller's test is this one. */
	if (block == NULL)
		__builtin_unreachable();
	return block;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_section_level(intptr_t off, struct pcbatch_priv_stats_block *block,
						      uint64_t amount, uint64_t threshold, uint64_t *updates)
{
	uint64_t t, sum, next;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(16)
			     "ldr %w[next], [%[area], #4]\n\t"
			     "ldr %w[t], [%[block], #24]\n\t"
			     "sub %w[t], %w[t], %w[next]\n\t"
			     "cbnz %w[t], 5f\n\t"
			     "ldr %[sum], [%[block]]\n\t"
			     "add %[sum], %[sum], %[amount]\n\t"
			     "cmp %[sum], %[threshold]\n\t"
			     "csel %[next], %[sum], xzr, lo\n\t"
			     PCBATCH_INJECT_ASM(17)
			     "str %[next], [%[block]]\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT("mov %[t], #1\n\t")
			     : [t] "=&r"(t), [sum] "=&r"(sum), [next] "=&r"(next)
			     : [area] "r"(pcbatch_priv_rseq_area(off)), [block] "r"(block), [amount] "rI"(amount),
			       [threshold] "r"(threshold)
			     : PCBATCH_PRIV_CLOBBERS);
	*updates = t == 0 ? sum : UINT64_MAX;
	return t == 0;
}

#undef PCBATCH_PRIV_SECTION_TABLE
#undef PCBATCH_PRIV_ABORT
#undef PCBATCH_PRIV_CLOBBERS
#undef PCBATCH_PRIV_ARM
#undef PCBATCH_PRIV_LSL_REGION
#undef PCBATCH_PRIV_CPU
#undef PCBATCH_PRIV_CPU_PART

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_ARCH_AARCH64_H */
