/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * init.c - from the first call, which comes before main and before most constructors,
 * to accounting: finds the real allocator, reads the environment, makes the domain.
 *
 * What is called before the C library knows its environment (by the dynamic linker) goes
 * to the real allocator unaccounted; what dlsym itself asks for comes from a static
 * buffer. Such blocks have no tag, so a later free knows them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"
#include "tag.h"

enum { STATE_NEW, STATE_REAL, STATE_READY };

struct shim_real shim_real;
uint16_t shim_class[SHIM_CLASSES + 1];
size_t shim_classed;
struct pcbatch_group *shim_group[SHIM_GROUPS];
__thread uint32_t shim_here __attribute__((tls_model("initial-exec")));
struct shim_name shim_names[SHIM_GROUPS];
int32_t shim_parent[SHIM_GROUPS];
uint32_t shim_groups;
struct pcbatch_domain shim_domain;
struct shim_config shim_config;
uintptr_t tag_top[TAG_LEAVES];

static int state;
static uintptr_t builder; /* the thread that sets up */

/* ------------------------------------------------------------- static buffer */

char shim_boot[SHIM_BOOT_BYTES] __attribute__((aligned(4096)));
static size_t boot_used;

/* Zeroed; each block has its size in front. */
void *shim_boot_alloc(size_t size, size_t align)
{
	size_t used = __atomic_load_n(&boot_used, __ATOMIC_RELAXED), at;

	if (align < SHIM_GRANULE)
		align = SHIM_GRANULE;
	do {
		at = (used + sizeof(size) + align - 1) & ~(align - 1);
		if (at > SHIM_BOOT_BYTES || size > SHIM_BOOT_BYTES - at) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&boot_used, &used, at + size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(shim_boot + at - sizeof(size), &size, sizeof(size));
	return shim_boot + at;
}

size_t shim_boot_size(const void *p)
{
	size_t size;

	if (!shim_boot_has(p))
		return 0;
	memcpy(&size, (const char *)p - sizeof(size), sizeof(size));
	return size;
}

/* ------------------------------------------------------------ memory of ours */

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *map_aligned(void *ctx, size_t size, size_t align)
{
	char *raw, *p;

	(void)ctx;
	size = (size + SHIM_PAGE - 1) & ~(SHIM_PAGE - 1);
	if (align <= SHIM_PAGE)
		return map(size);
	raw = (char *)map(size + align);
	if (raw == NULL)
		return NULL;
	p = raw + ((align - ((uintptr_t)raw & (align - 1))) & (align - 1));
	if (p > raw)
		(void)munmap(raw, (size_t)(p - raw));
	if (raw + align > p)
		(void)munmap(p + size, (size_t)(raw + align - p));
	return p;
}

static void unmap(void *ctx, void *p, size_t size, size_t align)
{
	(void)ctx, (void)align;
	(void)munmap(p, (size + SHIM_PAGE - 1) & ~(SHIM_PAGE - 1));
}

uint16_t *tag_new(const void *p)
{
	uintptr_t address = (uintptr_t)p, none = 0, first = address >> TAG_LEAF_SHIFT << TAG_LEAF_SHIFT, leaf;
	int saved = errno;
	void *memory;

	if (address >> TAG_ADDRESS_BITS != 0)
		return NULL;
	memory = map(TAG_LEAF_BYTES);
	if (memory == NULL)
		return NULL;
	/* Mostly untouched: huge pages would make it real. */
	(void)madvise(memory, TAG_LEAF_BYTES, MADV_NOHUGEPAGE);
	leaf = (uintptr_t)memory - first / SHIM_GRANULE * sizeof(uint16_t);
	if (!__atomic_compare_exchange_n(&tag_top[address >> TAG_LEAF_SHIFT], &none, leaf, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		(void)munmap(memory, TAG_LEAF_BYTES);
	errno = saved;
	return tag_of(p);
}

/* ------------------------------------------------------------ real allocator */

static void *real_memalign(size_t align, size_t n)
{
	void *p = NULL;
	int err = shim_real.posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, n);

	if (err != 0)
		errno = err;
	return err == 0 ? p : NULL;
}

static void *real_valloc(size_t n)
{
	return shim_real.memalign(SHIM_PAGE, n);
}

static void *real_pvalloc(size_t n)
{
	if (n > SIZE_MAX - SHIM_PAGE) {
		errno = ENOMEM;
		return NULL;
	}
	return shim_real.memalign(SHIM_PAGE, (n + SHIM_PAGE - 1) & ~(SHIM_PAGE - 1));
}

/* glibc: a header, 16-byte steps, up to 16 bytes that are too little for a chunk; whole pages when mapped. */
static size_t glibc_good_size(size_t n)
{
	return n < SHIM_LARGE ? ((n + 8 + 15) & ~(size_t)15) + 8 : n + SHIM_PAGE + 32;
}

static size_t other_good_size(size_t n)
{
	return n + n / 4 + SHIM_PAGE;
}

static size_t (*nallocx_real)(size_t, int);

static size_t jemalloc_good_size(size_t n)
{
	size_t size = nallocx_real(n, 0);

	return size == 0 ? n : size;
}

/* The next object's function, if it is the one that has malloc: two allocators must not be mixed. */
static void *next_of(const char *name, const void *base)
{
	void *f = dlsym(RTLD_NEXT, name);
	Dl_info info;

	if (f == NULL || (base != NULL && (dladdr(f, &info) == 0 || info.dli_fbase != base)))
		return NULL;
	return f;
}

#define FIND(field, name, base)                        \
	do {                                           \
		void *found = next_of(name, base);     \
		memcpy(&field, &found, sizeof(found)); \
	} while (0)

/* As classes grow with sizes, those from one multiple of the granule to the next are of one class if the ends are. */
static void find_classes(void)
{
	size_t i;

	for (i = 1; i <= SHIM_CLASSES; i++) {
		size_t n = i * SHIM_GRANULE, size = nallocx_real(n, 0);

		if (size > UINT16_MAX || (i > 1 && nallocx_real(n - SHIM_GRANULE + 1, 0) != size))
			return;
		shim_class[i] = (uint16_t)size;
	}
	shim_classed = SHIM_CLASSES * SHIM_GRANULE;
}

static void find_sizes(const void *base)
{
	void *libc = dlsym(RTLD_NEXT, "gnu_get_libc_version");
	Dl_info info;

	FIND(nallocx_real, "nallocx", base);
	FIND(shim_real.good_size, "mi_good_size", base);
	if (nallocx_real != NULL) {
		shim_real.good_size = jemalloc_good_size;
		find_classes();
	} else if (shim_real.good_size == NULL)
		shim_real.good_size = libc != NULL && dladdr(libc, &info) != 0 && info.dli_fbase == base ? glibc_good_size
												    : other_good_size;
}

static void find_real(void)
{
	struct shim_real r;
	const void *base;
	Dl_info info;

	memset(&r, 0, sizeof(r));
	FIND(r.malloc, "malloc", NULL);
	if (r.malloc == NULL || dladdr((void *)(uintptr_t)r.malloc, &info) == 0)
		shim_die("there is no malloc behind this shared object", "", "", "");
	base = info.dli_fbase;
	r.path = info.dli_fname;
	FIND(r.free, "free", base);
	FIND(r.usable, "malloc_usable_size", base);
	FIND(r.calloc, "calloc", base);
	FIND(r.realloc, "realloc", base);
	FIND(r.posix_memalign, "posix_memalign", base);
	FIND(r.aligned_alloc, "aligned_alloc", base);
	FIND(r.memalign, "memalign", base);
	FIND(r.valloc, "valloc", base);
	FIND(r.pvalloc, "pvalloc", base);
	if (r.free == NULL || r.usable == NULL || r.calloc == NULL || r.realloc == NULL || r.posix_memalign == NULL)
		shim_die("the allocator in ", r.path, " lacks one of free, malloc_usable_size, calloc, realloc, posix_memalign", "");
	if (r.memalign == NULL)
		r.memalign = real_memalign;
	if (r.aligned_alloc == NULL)
		r.aligned_alloc = real_memalign;
	if (r.valloc == NULL)
		r.valloc = real_valloc;
	if (r.pvalloc == NULL)
		r.pvalloc = real_pvalloc;
	shim_real = r;
	find_sizes(base);
}

/* -------------------------------------------------------------------- set up */

/* Two blocks in one granule would share a tag. */
static void check_granule(void)
{
	void *block[8];
	uintptr_t bits = 0;
	int i;

	for (i = 0; i < 8; i++) {
		block[i] = shim_real.malloc(SHIM_GRANULE);
		bits |= (uintptr_t)block[i];
	}
	for (i = 0; i < 8; i++)
		shim_real.free(block[i]);
	if ((bits & (SHIM_GRANULE - 1)) != 0)
		shim_die("blocks of the allocator in ", shim_real.path, " are not 16 bytes apart", "");
}

static int make_domain(void)
{
	const struct shim_config *c = &shim_config;
	struct pcbatch_domain_attr attr;
	uint64_t pages = c->batch / SHIM_PAGE;

	(void)pcbatch_domain_attr_init(&attr);
	attr.zalloc = map_aligned;
	attr.free = unmap;
	attr.page_size = (uint32_t)SHIM_PAGE;
	attr.stock_batch = (uint32_t)pages;
	if (2 * pages > PCBATCH_STOCK_HIGH_MAX)
		attr.stock_high = PCBATCH_STOCK_HIGH_MAX;
	if (c->batch < 16 * SHIM_PAGE)
		attr.obj_high = (uint32_t)c->batch;
	return pcbatch_domain_init(&shim_domain, &attr);
}

static void set_up(void)
{
	int err;

	check_granule();
	shim_config_read(environ, &shim_config);
	err = make_domain();
	if (err == -EINVAL && getenv("PCBATCH_BACKEND") != NULL)
		shim_die("PCBATCH_BACKEND=", getenv("PCBATCH_BACKEND"), ": must be rseq or generic", "");
	if (err != 0)
		shim_die("the accounting can't be set up: ", err == -ENOTSUP ? "rseq does not work here" : "no memory", "", "");
	if (shim_root_add() != 0)
		shim_die("no memory for the root group", "", "", "");
	shim_signal_start();
}

bool shim_real_now(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_NEW || shim_ready() ||
	       __atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_NEW;
}

bool shim_ready(void)
{
	uintptr_t self = pcbatch_priv_thread_pointer(), nobody = 0;
	int saved = errno;

	/* A call from within the set-up, or from a signal handler that interrupts it, does without. */
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_READY) {
		if (__atomic_load_n(&builder, __ATOMIC_ACQUIRE) == self)
			return false;
		nobody = 0;
		if (!__atomic_compare_exchange_n(&builder, &nobody, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			(void)sched_yield();
			continue;
		}
		if (state == STATE_NEW) {
			find_real();
			__atomic_store_n(&state, STATE_REAL, __ATOMIC_RELEASE);
		}
		if (state == STATE_REAL && environ != NULL) {
			set_up();
			__atomic_store_n(&state, STATE_READY, __ATOMIC_RELEASE);
		}
		__atomic_store_n(&builder, 0, __ATOMIC_RELEASE);
		if (state == STATE_REAL)
			break;
	}
	errno = saved;
	return state == STATE_READY;
}

/* ------------------------------------------------------------------- freezing */

static struct shim_real thawed;
static uintptr_t freezer;
static uint64_t freezer_pid;

/* A child forked meanwhile has no freezer to wait for. */
static void wait_thaw(void)
{
	while (__atomic_load_n(&freezer, __ATOMIC_ACQUIRE) != 0 && freezer != pcbatch_priv_thread_pointer()) {
		if (freezer_pid != (uint64_t)getpid())
			shim_thaw();
		(void)sched_yield();
	}
}

static void *wait_malloc(size_t n) { wait_thaw(); return thawed.malloc(n); }
static void wait_free(void *p) { wait_thaw(); thawed.free(p); }
static void *wait_calloc(size_t n, size_t m) { wait_thaw(); return thawed.calloc(n, m); }
static void *wait_realloc(void *p, size_t n) { wait_thaw(); return thawed.realloc(p, n); }
static int wait_posix_memalign(void **out, size_t a, size_t n) { wait_thaw(); return thawed.posix_memalign(out, a, n); }
static void *wait_aligned_alloc(size_t a, size_t n) { wait_thaw(); return thawed.aligned_alloc(a, n); }
static void *wait_memalign(size_t a, size_t n) { wait_thaw(); return thawed.memalign(a, n); }
static void *wait_valloc(size_t n) { wait_thaw(); return thawed.valloc(n); }
static void *wait_pvalloc(size_t n) { wait_thaw(); return thawed.pvalloc(n); }

/*
 * A block is untagged before the real free is looked up. So after this fence, whoever
 * looked up the old one has untagged its block for us to see, and everybody else waits
 * with a block that is still there: every tagged block may be asked for its size.
 */
int shim_freeze(void)
{
	thawed = shim_real;
	freezer_pid = (uint64_t)getpid();
	__atomic_store_n(&freezer, pcbatch_priv_thread_pointer(), __ATOMIC_RELEASE);
	shim_real.malloc = wait_malloc;
	shim_real.free = wait_free;
	shim_real.calloc = wait_calloc;
	shim_real.realloc = wait_realloc;
	shim_real.posix_memalign = wait_posix_memalign;
	shim_real.aligned_alloc = wait_aligned_alloc;
	shim_real.memalign = wait_memalign;
	shim_real.valloc = wait_valloc;
	shim_real.pvalloc = wait_pvalloc;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* MEMBARRIER_CMD_GLOBAL: needs no registration. */
	if (syscall(SYS_membarrier, 1, 0, 0) != 0) {
		shim_thaw();
		return -ENOSYS;
	}
	return 0;
}

void shim_thaw(void)
{
	shim_real = thawed;
	__atomic_store_n(&freezer, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------- start and the end */

static __attribute__((constructor)) void shim_start(void)
{
	(void)shim_ready();
}

static __attribute__((destructor)) void shim_end(void)
{
	if (state == STATE_READY)
		shim_report("exit", true);
}
