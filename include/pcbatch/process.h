/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcbatch/process.h - debug builds: a domain used by a child that shares its parent's
 * memory (vfork, or clone with CLONE_VM but without CLONE_THREAD). Such a child has its
 * parent's rseq area before it, which the kernel no longer keeps for it: it would
 * write to the slots of a CPU it is not on.
 *
 * A page of the domain's holds the process id, and the kernel clears it for a forked
 * child (Linux 4.14). So another id than one's own, that is not 0, is the parent's.
 */
#ifndef PCBATCH_PROCESS_H
#define PCBATCH_PROCESS_H

#include "memory.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCBATCH_PRIV_WIPE_ON_FORK 18
#define PCBATCH_PRIV_KEEP_ON_FORK 19
#define PCBATCH_PRIV_NO_ADVICE 0x7fff /* an emulator that takes any advice takes none */

PCBATCH_INLINE size_t pcbatch_priv_process_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

#if PCBATCH_DEBUG && defined(__linux__)
/* Without memory, or on an older kernel, the domain does without. */
PCBATCH_COLD void pcbatch_priv_process_mark(struct pcbatch_domain *dom)
{
	size_t bytes = pcbatch_priv_process_bytes();

	dom->process = (uint64_t *)pcbatch_priv_zalloc(dom, bytes, bytes);
	if (dom->process == NULL)
		return;
	if (pcbatch_priv_syscall(SYS_madvise, dom->process, bytes, PCBATCH_PRIV_NO_ADVICE) == 0 ||
	    pcbatch_priv_syscall(SYS_madvise, dom->process, bytes, PCBATCH_PRIV_WIPE_ON_FORK) != 0) {
		pcbatch_priv_free(dom, dom->process, bytes, bytes);
		dom->process = NULL;
		return;
	}
	pcbatch_priv_store(dom->process, (uint64_t)getpid());
}

/* Whether the caller is a child that shares its parent's memory. */
PCBATCH_COLD bool pcbatch_priv_process_shared(const struct pcbatch_domain *dom)
{
	uint64_t pid = (uint64_t)getpid();
	uint64_t owner = dom->process == NULL ? pid : pcbatch_priv_load(dom->process);

	if (owner == 0)
		pcbatch_priv_store(dom->process, pid);
	return owner != 0 && owner != pid;
}

#define PCBATCH_PRIV_CHECK_PROCESS(dom) \
	PCBATCH_PRIV_ASSERT(!pcbatch_priv_process_shared(dom), "domain used by a child that shares its parent's memory (vfork)")
#else
PCBATCH_INLINE void pcbatch_priv_process_mark(struct pcbatch_domain *dom)
{
	(void)dom;
}

#define PCBATCH_PRIV_CHECK_PROCESS(dom) ((void)0)
#endif

/* Also when another unit than the one that made the domain is a debug build. */
PCBATCH_INLINE void pcbatch_priv_process_forget(struct pcbatch_domain *dom)
{
	size_t bytes = pcbatch_priv_process_bytes();

	if (dom->process == NULL)
		return;
#if defined(__linux__)
	/* The memory may be anybody's next. */
	(void)pcbatch_priv_syscall(SYS_madvise, dom->process, bytes, PCBATCH_PRIV_KEEP_ON_FORK);
#endif
	pcbatch_priv_free(dom, dom->process, bytes, bytes);
	dom->process = NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* PCBATCH_PROCESS_H */
