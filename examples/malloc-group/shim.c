/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* shim.c - the malloc family: calls the real one, charges what it gave, remembers whom. */
#include <errno.h>
#include <string.h>

#include "shim.h"
#include "tag.h"

#define HOT static inline __attribute__((always_inline))

/* Growth from which a realloc first sees whether there is such an amount of address space: see grow_real. */
#define SHIM_HUGE ((size_t)1 << 30)

static uint64_t foreign_frees, early;

uint64_t shim_foreign_frees(void)
{
	return __atomic_load_n(&foreign_frees, __ATOMIC_RELAXED);
}

uint64_t shim_early(void)
{
	return __atomic_load_n(&early, __ATOMIC_RELAXED);
}

HOT size_t at_least(size_t n)
{
	return n < SHIM_GRANULE ? SHIM_GRANULE : n;
}

/* --------------------------------------------------------------- accounting */

/* Takes the block back, and what was held for it. */
static SHIM_COLD void *refuse(uint32_t id, void *p, size_t held)
{
	size_t size = shim_real.usable(p);

	shim_real.free(p);
	if (held != 0)
		(void)pcbatch_group_uncharge_bytes(shim_group[id], held);
	shim_refused(id, size);
	errno = ENOMEM;
	return NULL;
}

static SHIM_COLD void *tag_first(uint32_t id, void *p)
{
	uint16_t *tag = tag_new(p);

	if (tag == NULL)
		return refuse(id, p, shim_real.usable(p));
	tag_store(tag, id + 1);
	return p;
}

/* The usable size of the block that malloc(n) gave, n from SHIM_GRANULE on. Asking costs as much as charging. */
HOT size_t size_of(void *p, size_t n)
{
	return n <= shim_classed ? shim_class[(n + SHIM_GRANULE - 1) / SHIM_GRANULE] : shim_real.usable(p);
}

/* Charges the block, of that usable size, less what is held already, and tags it. */
HOT void *account(struct pcbatch_group *g, uint32_t id, void *p, size_t size, size_t held)
{
	uint16_t *tag;

	if (PCBATCH_UNLIKELY(pcbatch_group_try_charge_bytes(g, size - held) != 0))
		return refuse(id, p, held);
	tag = tag_of(p);
	if (PCBATCH_UNLIKELY(tag == NULL))
		return tag_first(id, p);
	tag_store(tag, id + 1);
	return p;
}

/* The group of this thread, or NULL: no accounting yet, and the caller counts itself early. */
static SHIM_COLD struct pcbatch_group *group_slow(uint32_t *id)
{
	if (!shim_ready()) {
		(void)__atomic_fetch_add(&early, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (shim_group[shim_here] == NULL)
		shim_here = MALLOC_GROUP_PROCESS; /* destroyed with this thread in it */
	*id = shim_here;
	return shim_group[*id];
}

HOT struct pcbatch_group *group_now(uint32_t *id)
{
	struct pcbatch_group *g;

	*id = shim_here;
	g = shim_group[*id];
	return PCBATCH_LIKELY(g != NULL) ? g : group_slow(id);
}

/*
 * Before a large request goes to the allocator: near a limit, holds it. Not always:
 * one that the system refuses anyway would move the peak. Returns false when refused.
 */
static bool hold(struct pcbatch_group *g, uint32_t id, size_t n, size_t *held)
{
	*held = 0;
	if (n <= SHIM_LARGE || (int64_t)(n / SHIM_PAGE) < pcbatch_page_counter_margin(&g->owner.pages))
		return true;
	if (pcbatch_group_try_charge_bytes(g, n) != 0) {
		shim_refused(id, n);
		errno = ENOMEM;
		return false;
	}
	*held = n;
	return true;
}

/* Accounts what the real allocator answered. */
static void *settle(struct pcbatch_group *g, uint32_t id, void *p, size_t held)
{
	if (p != NULL)
		return account(g, id, p, shim_real.usable(p), held);
	if (held != 0)
		(void)pcbatch_group_uncharge_bytes(g, held);
	return NULL;
}

/* jemalloc and mimalloc forget errno in places. */
static void *or_enomem(void *p)
{
	if (p == NULL)
		errno = ENOMEM;
	return p;
}

/* ---------------------------------------------------------------- the family */

static SHIM_COLD void *malloc_slow(size_t n)
{
	struct pcbatch_group *g;
	size_t held;
	uint32_t id;

	g = group_now(&id);
	if (g == NULL)
		return shim_real_now() ? shim_real.malloc(n) : shim_boot_alloc(n, SHIM_GRANULE);
	return hold(g, id, n, &held) ? settle(g, id, or_enomem(shim_real.malloc(n)), held) : NULL;
}

SHIM_EXPORT void *malloc(size_t n)
{
	uint32_t id = shim_here;
	struct pcbatch_group *g = shim_group[id];
	void *p;

	n = at_least(n);
	if (PCBATCH_UNLIKELY(g == NULL || n > SHIM_LARGE))
		return malloc_slow(n);
	p = shim_real.malloc(n);
	return PCBATCH_LIKELY(p != NULL) ? account(g, id, p, size_of(p, n), 0) : NULL;
}

static SHIM_COLD void free_other(void *p)
{
	if (p == NULL || shim_boot_size(p) != 0 || !shim_real_now())
		return;
	(void)__atomic_fetch_add(&foreign_frees, 1, __ATOMIC_RELAXED);
	shim_real.free(p);
}

SHIM_EXPORT void free(void *p)
{
	uint16_t *tag = tag_of(p);
	uint32_t id;

	if (PCBATCH_UNLIKELY(tag == NULL))
		goto other;
	id = tag_load(tag);
	if (PCBATCH_UNLIKELY(id == 0))
		goto other;
	/* First of all: once the block is free it may be somebody else's. */
	tag_store(tag, 0);
	(void)pcbatch_group_uncharge_bytes(shim_group[id - 1], shim_real.usable(p));
	shim_real.free(p);
	return;
other:
	free_other(p);
}

static SHIM_COLD void *calloc_slow(size_t total)
{
	struct pcbatch_group *g;
	size_t held;
	uint32_t id;

	g = group_now(&id);
	if (g == NULL)
		return shim_real_now() ? shim_real.calloc(1, total) : shim_boot_alloc(total, SHIM_GRANULE);
	return hold(g, id, total, &held) ? settle(g, id, or_enomem(shim_real.calloc(1, total)), held) : NULL;
}

SHIM_EXPORT void *calloc(size_t count, size_t size)
{
	uint32_t id = shim_here;
	struct pcbatch_group *g = shim_group[id];
	size_t total;
	void *p;

	if (PCBATCH_UNLIKELY(__builtin_mul_overflow(count, size, &total))) {
		errno = ENOMEM;
		return NULL;
	}
	total = at_least(total);
	if (PCBATCH_UNLIKELY(g == NULL || total > SHIM_LARGE))
		return calloc_slow(total);
	p = shim_real.calloc(1, total);
	return PCBATCH_LIKELY(p != NULL) ? account(g, id, p, size_of(p, total), 0) : NULL;
}

/* The rest of a realloc: the block is at q now, `charged` bytes are charged for it, and nothing is tagged. */
HOT void *moved(struct pcbatch_group *g, uint32_t id, void *q, size_t charged)
{
	size_t now = shim_real.usable(q);
	uint16_t *tag = tag_of(q);

	if (now < charged)
		(void)pcbatch_group_uncharge_bytes(g, charged - now);
	else if (PCBATCH_UNLIKELY(now > charged)) /* good_size was wrong: there is no way back, and it is counted */
		(void)pcbatch_group_charge_bytes_force(g, now - charged);
	if (PCBATCH_UNLIKELY(tag == NULL))
		tag = tag_new(q);
	if (PCBATCH_LIKELY(tag != NULL))
		tag_store(tag, id + 1);
	else /* no memory for the tag: from here on it is no block of ours */
		(void)pcbatch_group_uncharge_bytes(g, now);
	return q;
}

/* Near the limit: a new block, whose size is known before the old one is given up. So a refusal leaves the old one. */
static SHIM_COLD void *realloc_by_hand(uint32_t id, uint16_t *tag, void *p, size_t old, size_t n)
{
	struct pcbatch_group *g = shim_group[id];
	void *q = shim_real.malloc(n);
	size_t now;

	if (q == NULL)
		return NULL;
	now = shim_real.usable(q);
	if (now > old && pcbatch_group_try_charge_bytes(g, now - old) != 0)
		return refuse(id, q, 0);
	memcpy(q, p, old < n ? old : n);
	tag_store(tag, 0);
	shim_real.free(p);
	return moved(g, id, q, now > old ? now : old);
}

/* A growth that the system refuses should not be charged even for a moment: the peak would show it. */
static bool grow_real(size_t n)
{
	void *probe = shim_real.malloc(n);

	shim_real.free(probe);
	return probe != NULL;
}

/* C leaves realloc(p, 0) to the implementation, so it is left to the real one. */
static SHIM_COLD void *realloc_zero(struct pcbatch_group *g, uint32_t id, uint16_t *tag, void *p, size_t old)
{
	void *q;

	tag_store(tag, 0);
	q = shim_real.realloc(p, 0);
	if (q == NULL) {
		(void)pcbatch_group_uncharge_bytes(g, old);
		return NULL;
	}
	/* Might be of less than a granule, next to another such. */
	if (shim_real.usable(q) < SHIM_GRANULE) {
		void *wide = shim_real.realloc(q, SHIM_GRANULE);

		if (wide == NULL) {
			(void)pcbatch_group_uncharge_bytes(g, old);
			return q;
		}
		q = wide;
	}
	return moved(g, id, q, old);
}

/* What is not tagged stays so; the static buffer's blocks move to the heap. */
static SHIM_COLD void *realloc_other(void *p, size_t n)
{
	size_t boot = p == NULL ? 0 : shim_boot_size(p);
	void *q;

	if (p != NULL && boot == 0)
		return shim_real_now() ? shim_real.realloc(p, n) : NULL;
	q = malloc(n);
	if (q != NULL && boot != 0)
		memcpy(q, p, boot < n ? boot : n);
	return q;
}

SHIM_EXPORT void *realloc(void *p, size_t n)
{
	uint16_t *tag = tag_of(p);
	struct pcbatch_group *g;
	size_t old, want, grow;
	uint32_t id;
	void *q;

	if (PCBATCH_UNLIKELY(tag == NULL || tag_load(tag) == 0))
		return realloc_other(p, n);
	id = tag_load(tag) - 1u;
	g = shim_group[id];
	old = shim_real.usable(p);
	if (PCBATCH_UNLIKELY(n == 0))
		return realloc_zero(g, id, tag, p, old);
	n = at_least(n);
	want = n > PTRDIFF_MAX ? n : shim_real.good_size(n);
	grow = want > old ? want - old : 0;
	if (PCBATCH_UNLIKELY(grow >= SHIM_HUGE) && (n > PTRDIFF_MAX || !grow_real(n))) {
		errno = ENOMEM;
		return NULL;
	}
	if (PCBATCH_UNLIKELY(grow != 0 && pcbatch_group_try_charge_bytes(g, grow) != 0))
		return realloc_by_hand(id, tag, p, old, n);
	tag_store(tag, 0);
	q = shim_real.realloc(p, n);
	if (PCBATCH_UNLIKELY(q == NULL)) {
		tag_store(tag, id + 1);
		(void)pcbatch_group_uncharge_bytes(g, grow);
		return or_enomem(NULL);
	}
	return moved(g, id, q, old + grow);
}

SHIM_EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, total);
}

/* ------------------------------------------------------------------- aligned */

enum aligned_call { CALL_MEMALIGN, CALL_ALIGNED_ALLOC, CALL_VALLOC, CALL_PVALLOC };

static void *aligned_real(enum aligned_call call, size_t align, size_t n)
{
	switch (call) {
	case CALL_MEMALIGN:
		return shim_real.memalign(align, n);
	case CALL_ALIGNED_ALLOC:
		return shim_real.aligned_alloc(align, n);
	case CALL_VALLOC:
		return shim_real.valloc(n);
	default:
		return shim_real.pvalloc(n);
	}
}

static void *aligned(enum aligned_call call, size_t align, size_t n)
{
	struct pcbatch_group *g;
	size_t held;
	uint32_t id;

	n = at_least(n);
	g = group_now(&id);
	if (PCBATCH_UNLIKELY(g == NULL))
		return shim_real_now() ? aligned_real(call, align, n) : shim_boot_alloc(n, align > 4096 ? 4096 : align);
	return hold(g, id, n, &held) ? settle(g, id, aligned_real(call, align, n), held) : NULL;
}

SHIM_EXPORT void *memalign(size_t align, size_t n)
{
	return aligned(CALL_MEMALIGN, align, n);
}

SHIM_EXPORT void *aligned_alloc(size_t align, size_t n)
{
	return aligned(CALL_ALIGNED_ALLOC, align, n);
}

SHIM_EXPORT void *valloc(size_t n)
{
	return aligned(CALL_VALLOC, SHIM_PAGE, n);
}

SHIM_EXPORT void *pvalloc(size_t n)
{
	return aligned(CALL_PVALLOC, SHIM_PAGE, n);
}

/* Returns the error instead of setting errno, and leaves *out alone then. */
SHIM_EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
	struct pcbatch_group *g;
	int saved = errno, err;
	void *p = NULL;
	size_t held = 0;
	uint32_t id;

	n = at_least(n);
	g = group_now(&id);
	if (PCBATCH_UNLIKELY(g == NULL)) {
		if (shim_real_now())
			return shim_real.posix_memalign(out, align, n);
		p = shim_boot_alloc(n, align > 4096 ? 4096 : align);
	} else {
		if (!hold(g, id, n, &held)) {
			errno = saved;
			return ENOMEM;
		}
		err = shim_real.posix_memalign(&p, align, n);
		if (err != 0) {
			if (held != 0)
				(void)pcbatch_group_uncharge_bytes(g, held);
			errno = saved;
			return err;
		}
		p = account(g, id, p, shim_real.usable(p), held);
	}
	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*out = p;
	return 0;
}

/* ---------------------------------------------------------------- the others */

static SHIM_COLD size_t usable_slow(void *p)
{
	if (p == NULL)
		return 0;
	if (shim_boot_has(p))
		return shim_boot_size(p);
	return shim_real_now() ? shim_real.usable(p) : 0;
}

/* Some call it for every block, as Redis does. */
SHIM_EXPORT size_t malloc_usable_size(void *p)
{
	if (PCBATCH_UNLIKELY(shim_group[MALLOC_GROUP_PROCESS] == NULL || shim_boot_has(p)))
		return usable_slow(p);
	return shim_real.usable(p);
}

void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size);
void cfree(void *p);

SHIM_EXPORT void free_sized(void *p, size_t size)
{
	(void)size;
	free(p);
}

SHIM_EXPORT void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align, (void)size;
	free(p);
}

SHIM_EXPORT void cfree(void *p)
{
	free(p);
}
