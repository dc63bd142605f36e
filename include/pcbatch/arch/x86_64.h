/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/arch/x86_64.h - the commit contract of percpu.h as rseq assembly.
 *
 * Each operation forms the address in a register before the access: on the cores
 * measured, base + index addressing on the committing store costs four times as
 * much, because such stores are not forwarded to the next load. imul reads the
 * CPU number and scales it in one instruction. Loads are not reordered on x86,
 * so the gate needs no barrier.
 */
#ifndef PCBATCH_ARCH_X86_64_H
#define PCBATCH_ARCH_X86_64_H

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
#define PCBATCH_PRIV_SECTION_TABLE              \
	".pushsection __rseq_cs, \"aw?\"\n\t"   \
	".balign 32\n"                          \
	"3:\n\t"                                \
	".long 0, 0\n\t"                        \
	".quad 1f, 2f - 1f, 4f\n\t"             \
	".popsection\n\t"

/* Label 4, out of line, behind the signature that the kernel looks for (as the operand of a ud1). */
#define PCBATCH_PRIV_ABORT_BEGIN                       \
	".pushsection __rseq_failure, \"ax?\"\n\t"     \
	".byte 0x0f, 0xb9, 0x3d\n\t"                   \
	".long 0x53053053\n"                           \
	"4:\n\t"
#define PCBATCH_PRIV_ABORT_END ".popsection\n\t"

/* Arms the section: from label 1 on the kernel restarts us at label 4. */
#define PCBATCH_PRIV_ARM(tmp)                   \
	"leaq 3b(%%rip), " tmp "\n\t"           \
	"movq " tmp ", %%fs:8(%[off])\n"        \
	"1:\n\t"

#define PCBATCH_PRIV_CPU_SCALED(reg32)                                                         \
	"imull $(1 << " PCBATCH_PRIV_STR(PCBATCH_REGION_SHIFT) "), %%fs:4(%[off]), " reg32 "\n\t" \
	"cmpl " reg32 ", %[bound]\n\t"                                                          \
	"jbe 4f\n\t"

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_cell *pcbatch_priv_section_add(intptr_t off, const uint32_t *bound,
									   char *const *base, int64_t delta, uint64_t *crossed)
{
	struct pcbatch_priv_cell *cell;
	uint64_t old, x;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[cell]")
			     PCBATCH_INJECT_ASM(1)
			     PCBATCH_PRIV_CPU_SCALED("%k[cell]")
			     PCBATCH_INJECT_ASM(2)
			     "addq %[base], %[cell]\n\t"
			     "movq (%[cell]), %[old]\n\t"
			     "leaq (%[old],%[delta]), %[x]\n\t"
			     PCBATCH_INJECT_ASM(3)
			     "movq %[x], (%[cell])\n"
			     "2:\n\t"
			     "xorq %[old], %[x]\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT_BEGIN
			     "xorl %k[cell], %k[cell]\n\t"
			     "movq $-1, %[x]\n\t"
			     "jmp 5b\n\t"
			     PCBATCH_PRIV_ABORT_END
			     : [cell] "=&r"(cell), [old] "=&r"(old), [x] "=&r"(x)
			     : [off] "r"(off), [bound] "m"(*bound), [base] "m"(*base), [delta] "r"(delta)
			     : "memory", "cc");
	*crossed = x;
	return cell;
}

#if PCBATCH_COUNT_HITS
#define PCBATCH_PRIV_COUNT_HIT "incq 64(%%rax)\n\t"
#else
#define PCBATCH_PRIV_COUNT_HIT
#endif

/*
 * mask_imm is an assembler immediate, sign-extended to 64 bits: owner id and guard bits
 * are tested by one instruction because they stand where a 32-bit immediate reaches.
 */
#define PCBATCH_PRIV_DEFINE_SECTION_SLOT(name, mask_imm)                                                     \
	PCBATCH_ALWAYS_INLINE bool name(intptr_t off, const uint32_t *bound, char *const *line,              \
					const uint64_t *slot_off, uint64_t check, uint64_t delta)            \
	{                                                                                                    \
		__asm__ __volatile__ goto(PCBATCH_PRIV_SECTION_TABLE                                         \
					  PCBATCH_PRIV_ARM("%%rax")                                          \
					  PCBATCH_INJECT_ASM(4)                                              \
					  PCBATCH_PRIV_CPU_SCALED("%%eax")                                   \
					  "addq %[line], %%rax\n\t"                                          \
					  PCBATCH_INJECT_ASM(5)                                              \
					  "cmpq $0, (%%rax)\n\t"                                             \
					  "jne 4f\n\t"                                                       \
					  "addq %[slot_off], %%rax\n\t"                                      \
					  PCBATCH_INJECT_ASM(6)                                              \
					  "movq (%%rax), %%rcx\n\t"                                          \
					  PCBATCH_INJECT_ASM(7)                                              \
					  "leaq (%%rcx,%[check]), %%rdx\n\t"                                 \
					  "testq $" mask_imm ", %%rdx\n\t"                                   \
					  "jnz 4f\n\t"                                                       \
					  PCBATCH_PRIV_COUNT_HIT                                             \
					  "addq %[delta], %%rcx\n\t"                                         \
					  PCBATCH_INJECT_ASM(8)                                              \
					  "movq %%rcx, (%%rax)\n"                                            \
					  "2:\n\t"                                                           \
					  PCBATCH_PRIV_ABORT_BEGIN                                           \
					  "jmp %l[fail]\n\t"                                                 \
					  PCBATCH_PRIV_ABORT_END                                             \
					  : /* no outputs: older compilers know asm goto without them */     \
					  : [off] "r"(off), [bound] "m"(*bound), [line] "m"(*line),          \
					    [slot_off] "m"(*slot_off), [check] "r"(check), [delta] "er"(delta) \
					  : "rax", "rcx", "rdx", "memory", "cc"                              \
					  : fail);                                                           \
		return true;                                                                                 \
	fail:                                                                                                \
		return false;                                                                                \
	}

PCBATCH_PRIV_DEFINE_SECTION_SLOT(pcbatch_priv_section_slot, "-0x7fff8000") /* ...80008000: two guards */
PCBATCH_PRIV_DEFINE_SECTION_SLOT(pcbatch_priv_section_obj, "-0x80000000")  /* ...80000000: one guard */
#undef PCBATCH_PRIV_DEFINE_SECTION_SLOT
#undef PCBATCH_PRIV_COUNT_HIT

PCBATCH_INLINE bool pcbatch_priv_section_cmp_store(intptr_t off, uint32_t cpu, const uint64_t *gate, const uint64_t *chk,
						   uint64_t chkval, uint64_t *word, uint64_t old, uint64_t desired)
{
	__asm__ __volatile__ goto(PCBATCH_PRIV_SECTION_TABLE
				  PCBATCH_PRIV_ARM("%%rax")
				  PCBATCH_INJECT_ASM(9)
				  "cmpl %[cpu], %%fs:4(%[off])\n\t"
				  "jne 4f\n\t"
				  "cmpq $0, %[gate]\n\t"
				  "jne 4f\n\t"
				  PCBATCH_INJECT_ASM(10)
				  "cmpq %[chkval], %[chk]\n\t"
				  "jne 4f\n\t"
				  PCBATCH_INJECT_ASM(11)
				  "cmpq %[old], %[word]\n\t"
				  "jne 4f\n\t"
				  PCBATCH_INJECT_ASM(12)
				  "movq %[desired], %[word]\n"
				  "2:\n\t"
				  PCBATCH_PRIV_ABORT_BEGIN
				  "jmp %l[fail]\n\t"
				  PCBATCH_PRIV_ABORT_END
				  : /* no outputs */
				  : [off] "r"(off), [cpu] "r"(cpu), [gate] "m"(*gate), [chk] "m"(*chk), [chkval] "r"(chkval),
				    [word] "m"(*word), [old] "r"(old), [desired] "r"(desired)
				  : "rax", "memory", "cc"
				  : fail);
	return true;
fail:
	return false;
}

PCBATCH_INLINE bool pcbatch_priv_section_install(intptr_t off, uint32_t cpu, uint64_t *gate, uint64_t installs,
						 const uint64_t *chk, uint64_t chkval, uint64_t *word, uint64_t old,
						 uint64_t desired)
{
	__asm__ __volatile__ goto(PCBATCH_PRIV_SECTION_TABLE
				  PCBATCH_PRIV_ARM("%%rax")
				  PCBATCH_INJECT_ASM(18)
				  "cmpl %[cpu], %%fs:4(%[off])\n\t"
				  "jne 4f\n\t"
				  "cmpq $0, (%[gate])\n\t"
				  "jne 4f\n\t"
				  "cmpq %[installs], 64(%[gate])\n\t"
				  "jne 4f\n\t"
				  PCBATCH_INJECT_ASM(19)
				  "cmpq %[chkval], %[chk]\n\t"
				  "jne 4f\n\t"
				  "cmpq %[old], %[word]\n\t"
				  "jne 4f\n\t"
				  "incq 64(%[gate])\n\t"
				  PCBATCH_INJECT_ASM(20)
				  "movq %[desired], %[word]\n"
				  "2:\n\t"
				  PCBATCH_PRIV_ABORT_BEGIN
				  "jmp %l[fail]\n\t"
				  PCBATCH_PRIV_ABORT_END
				  : /* no outputs */
				  : [off] "r"(off), [cpu] "r"(cpu), [gate] "r"(gate), [installs] "r"(installs), [chk] "m"(*chk),
				    [chkval] "r"(chkval), [word] "m"(*word), [old] "r"(old), [desired] "r"(desired)
				  : "rax", "memory", "cc"
				  : fail);
	return true;
fail:
	return false;
}

PCBATCH_ALWAYS_INLINE struct pcbatch_priv_stats_block *pcbatch_priv_section_leaf(intptr_t off, const uint32_t *bound,
										  char *const *base, uint64_t item_off,
										  int64_t delta)
{
	struct pcbatch_priv_stats_block *block;
	uint64_t t;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(13)
			     PCBATCH_PRIV_CPU_SCALED("%k[block]")
			     "addq %[base], %[block]\n\t"
			     PCBATCH_INJECT_ASM(14)
			     "cmpl $2, 28(%[block])\n\t"
			     "jne 4f\n\t"
			     "leaq (%[block],%[item]), %[t]\n\t"
			     PCBATCH_INJECT_ASM(15)
			     "addq %[delta], (%[t])\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT_BEGIN
			     "xorl %k[block], %k[block]\n\t"
			     "jmp 5b\n\t"
			     PCBATCH_PRIV_ABORT_END
			     : [block] "=&r"(block), [t] "=&r"(t)
			     : [off] "r"(off), [bound] "m"(*bound), [base] "m"(*base), [item] "r"(item_off), [delta] "er"(delta)
			     : "memory", "cc");
	return block;
}

PCBATCH_ALWAYS_INLINE bool pcbatch_priv_section_level(intptr_t off, struct pcbatch_priv_stats_block *block,
						      uint64_t amount, uint64_t threshold, uint64_t *updates)
{
	uint64_t t, next;

	__asm__ __volatile__(PCBATCH_PRIV_SECTION_TABLE
			     PCBATCH_PRIV_ARM("%[t]")
			     PCBATCH_INJECT_ASM(16)
			     "movl %%fs:4(%[off]), %k[t]\n\t"
			     "cmpl 24(%[block]), %k[t]\n\t"
			     "jne 4f\n\t"
			     "movq (%[block]), %[t]\n\t"
			     "addq %[amount], %[t]\n\t"
			     "xorl %k[next], %k[next]\n\t"
			     "cmpq %[threshold], %[t]\n\t"
			     "cmovbq %[t], %[next]\n\t"
			     PCBATCH_INJECT_ASM(17)
			     "movq %[next], (%[block])\n"
			     "2:\n"
			     "5:\n\t"
			     PCBATCH_PRIV_ABORT_BEGIN
			     "movq $-1, %[t]\n\t"
			     "jmp 5b\n\t"
			     PCBATCH_PRIV_ABORT_END
			     : [t] "=&r"(t), [next] "=&r"(next)
			     : [off] "r"(off), [block] "r"(block), [amount] "r"(amount), [threshold] "rm"(threshold)
			     : "memory", "cc");
	*updates = t;
	return t != UINT64_MAX;
}

#undef PCBATCH_PRIV_SECTION_TABLE
#undef PCBATCH_PRIV_ABORT_BEGIN
#undef PCBATCH_PRIV_ABORT_END
#undef PCBATCH_PRIV_ARM
#undef PCBATCH_PRIV_CPU_SCALED

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_ARCH_X86_64_H */
