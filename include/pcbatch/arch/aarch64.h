/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/arch/aarch64.h - the commit contract of percpu.h as rseq assembly.
 *
 * A conditional branch reaches 1 MiB only, and neither the abort handlers' section nor
 * a label of asm goto (in a function that the compiler split) need be that near. So a
 * check that fails branches to the end of its own statement, label 5, with the status
 * register not zero: it holds what was just compared or, before the first comparison,
 * the descriptor's address. A commit leaves it zero. Only the kernel goes to the
 * handlers, and they come back by an unconditional branch, 128 MiB or by a linker's
 * veneer, which may use x16 and x17.
 *
 * Loads are reordered here: gate, chk and armed are loaded with acquire. The commit
 * is a plain store: the drainer's fence is what makes it visible in time.
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

/* Label 4, out of line, behind the signature that the kernel looks for (a brk); `restore` makes it a failure. */
#define PCBATCH_PRIV_ABORT(restore)                \
	".pushsection __rseq_failure, \"ax?\"\n\t" \
	".balign 4\n\t"                            \
	".inst 0xd428bc00\n"                       \
	"4:\n\t" restore                           \
	"b 5b\n\t"                                 \
	".popsection\n\t"

/* Arms the section: from label 1 on the kernel restarts us at label 4. */
#define PCBATCH_PRIV_ARM(tmp)               \
	"adrp " tmp ", 3b\n\t"              \
	"add " tmp ", " tmp ", :lo12:3b\n\t" \
	"str " tmp ", [%[area], #8]\n"      \
	"1:\n\t"

/* cpu: this CPU's number, and on to label 5 with unchanged registers when it is out of bounds. */
#define PCBATCH_PRIV_CPU_BOUND                                                               \
	"ldr %w[cpu], [%[area], #4]\n\t"                                                     \
	"ldr %w[t], %[bound]\n\t"                                                            \
	"cmp %w[t], %w[cpu], lsl #" PCBATCH_PRIV_STR(PCBATCH_REGION_SHIFT) "\n\t"            \
	"b.ls 5f\n\t"
