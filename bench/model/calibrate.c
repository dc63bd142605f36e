/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calibrate.c - measures what the prediction needs, with loops that have nothing to do
 * with the variants. Output: NAME VALUE, and "rmw INSTRUCTIONS ADD CAS XCHG" lines; see
 * struct costs of replay.h.
 *
 *	calibrate SAMPLES
 */
#include "measure.h"

#include <string.h>

struct padded {
	uint64_t v;
	struct padded *next;
	char pad[112];
} __attribute__((aligned(128)));

/* ------------------------------------------- locked instructions among others */

/*
 * Sixteen instructions as compilers emit them: five loads (the first of which is the
 * address for the others, as when a function begins with its argument's pointer), two
 * stores, two branches that are not taken, arithmetic. And a call of a small function,
 * which comes with every second piece.
 */
#define PIECE                                                                                                             \
	"movq 48(%[b]), %[p]\n\tmovq (%[p]), %%r8\n\tmovq 8(%[p]), %%r9\n\tleaq 1(%%r8), %%r10\n\tcmpq %%r9, %%r10\n\t"      \
	"je 1f\n1:\n\tmovq 16(%[p]), %%r11\n\taddq %%r10, %%r11\n\tmovq %%r11, 24(%[p])\n\tshrq $3, %%r9\n\t"              \
	"andq $7, %%r9\n\ttestq %%r9, %%r9\n\tjs 2f\n2:\n\tmovq 32(%[p]), %%r8\n\tmovq %%r9, 40(%[p])\n\txorq %%r9, %%r8\n\t"
#define CALL "call model_leaf\n\t"
#define PIECES_0 ""
#define PIECES_C CALL
#define PIECES_1 PIECE
#define PIECES_2 PIECE CALL PIECE
#define PIECES_4 PIECES_2 PIECES_2
#define PIECES_8 PIECES_4 PIECES_4
#define PIECES_16 PIECES_8 PIECES_8

#define ADD "lock; xaddq %%rax, (%[w])\n\t"
#define CAS "movq (%[w]), %%rax\n\tleaq 1(%%rax), %%rdx\n\tlock; cmpxchgq %%rdx, (%[w])\n\t"
#define XCHG "movl $1, %%eax\n\txchgq %%rax, (%[w])\n\t"

#define LOOP(name, rmw, pieces, last)                                                                                           \
	static __attribute__((noinline)) void name(void *arg, unsigned int id, uint64_t first, uint64_t n)                    \
	{                                                                                                                  \
		void **p = (void **)((char *)arg + 1024 * id), **b = p, *w = (char *)arg + 1024 * id + 512;                             \
                                                                                                                           \
		(void)first;                                                                                               \
		p[6] = p;                                                                                                  \
		while (n-- > 0)                                                                                            \
			__asm__ __volatile__(rmw pieces last : [p] "+D"(p) : [w] "r"(w), [b] "r"(b)                                              \
					     : "rax", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");                         \
	}
#define LOOPS(pieces)                                                                                                      \
	LOOP(add_##pieces, ADD, PIECES_##pieces, "")                                                                         \
	LOOP(cas_##pieces, CAS, PIECES_##pieces, "")                                                                         \
	LOOP(xchg_##pieces, XCHG, PIECES_##pieces, "movq $0, (%[w])\n\t")

LOOPS(0)
LOOPS(C)
LOOPS(1)
LOOPS(2)
LOOPS(4)
LOOPS(8)
LOOPS(16)

/* instructions: besides the locked one; the loop's own two, and what prepares it. */
static const struct {
	unsigned int instructions;
	measure_fn fn[3];
} grid[] = {
	{ 3, { add_0, cas_0, xchg_0 } },	{ 6, { add_C, cas_C, xchg_C } },	{ 19, { add_1, cas_1, xchg_1 } },
	{ 38, { add_2, cas_2, xchg_2 } },	{ 73, { add_4, cas_4, xchg_4 } },	{ 143, { add_8, cas_8, xchg_8 } },
	{ 283, { add_16, cas_16, xchg_16 } },
};

__asm__(".text\n\t.p2align 4\nmodel_leaf:\n\tmovq 56(%rdi), %r9\n\tret\n");

static char field[4096] __attribute__((aligned(4096)));

static void locked(unsigned int samples)
{
	unsigned int i, k;

	for (i = 0; i < sizeof(grid) / sizeof(grid[0]); i++) {
		printf("rmw %u", grid[i].instructions);
		for (k = 0; k < 3; k++)
			printf(" %.3f", measure(grid[i].fn[k], field, 1, samples, 3e5).min);
		printf("\n");
		fflush(stdout);
	}
}

/* -------------------------------------------------- one line that two CPUs want */

static struct padded wanted;
static uint64_t changes[2];

static void want(void *arg, unsigned int id, uint64_t first, uint64_t n)
{
	uint64_t v, last = UINT64_MAX - 1, seen = 0;

	(void)arg;
	while (n-- > 0) {
		v = __atomic_fetch_add(&wanted.v, 1, __ATOMIC_SEQ_CST);
		seen += v != last + 1;
		last = v;
	}
	changes[id] = (first == 0 ? 0 : changes[id]) + seen;
}

static double burst_v[MEASURE_SAMPLES_MAX], period_v[MEASURE_SAMPLES_MAX];

static void contended(unsigned int samples)
{
	unsigned int i, n = 0;
	uint64_t before;
	double ns;

	for (i = 0; n < samples && i < 6 * samples; i++) {
		before = wanted.v;
		ns = measure_once(want, NULL, 2, 1e6);
		if (ns < 0)
			continue;
		burst_v[n] = (double)(wanted.v - before) / (double)(changes[0] + changes[1]);
		period_v[n] = ns / 2 * burst_v[n];
		n++;
	}
	if (n == 0)
		return;
	qsort(burst_v, n, sizeof(burst_v[0]), measure_compare);
	qsort(period_v, n, sizeof(period_v[0]), measure_compare);
	printf("period %.3f\nburst %.3f\n", period_v[n / 2], burst_v[n / 2]);
	printf("alone %.3f\n", measure(want, NULL, 1, samples, 3e5).min);
	fflush(stdout);
}

/* --------------------------------------------------------- the other CPU's lines */

#define LINES 64
static struct padded lines[LINES];
static int order[LINES];
static volatile int turn;

enum { NOTHING, DIRTY, READ, QUIT };

/* Prepares the lines on the other CPU: writes them, or reads them. */
static void *other(void *arg)
{
	cpu_set_t set;
	int i, what;

	(void)arg;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	while ((what = turn) != QUIT) {
		for (i = 0; what != NOTHING && i < LINES; i++) {
			if (what == DIRTY)
				(void)__atomic_fetch_add(&lines[i].v, 1, __ATOMIC_SEQ_CST);
			else
				(void)*(volatile uint64_t *)&lines[i].v;
		}
		__asm__ __volatile__("mfence" ::: "memory");
		if (what != NOTHING)
			turn = NOTHING;
	}
	return NULL;
}

static void let_other(int what)
{
	turn = what;
	while (what != QUIT && turn != NOTHING)
		;
}

static double chase(void)
{
	struct padded *p = &lines[order[0]];
	double start = measure_clock(CLOCK_MONOTONIC);
	int i;

	for (i = 0; i < LINES; i++)
		p = *(struct padded *volatile *)&p->next;
	return (measure_clock(CLOCK_MONOTONIC) - start) / LINES;
}

/* chained: the next address depends on what the one before returned. */
static double write_all(int chained)
{
	struct padded *p = &lines[order[0]];
	double start = measure_clock(CLOCK_MONOTONIC);
	int i;

	for (i = 0; i < LINES; i++) {
		if (chained) {
			uint64_t v = __atomic_fetch_add(&p->v, 2, __ATOMIC_SEQ_CST);

			p = (struct padded *)((uintptr_t)p->next + (v == UINT64_MAX)); /* never */
		} else {
			(void)__atomic_fetch_add(&lines[order[i]].v, 2, __ATOMIC_SEQ_CST);
		}
	}
	return (measure_clock(CLOCK_MONOTONIC) - start) / LINES;
}

#define LINE_SAMPLES 4000
static double line_v[6][LINE_SAMPLES];

static double median(int which, unsigned int n)
{
	qsort(line_v[which], n, sizeof(double), measure_compare);
	return line_v[which][n / 2];
}

static void transfers(unsigned int n)
{
	enum { READ_DIRTY, READ_HIT, WRITE_READ, WRITE_SHARED, WRITE_HIT, WRITE_PIPED };
	double read, hit;
	pthread_t id;
	unsigned int r;
	cpu_set_t set;
	int i, j, k;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	for (i = 0; i < LINES; i++)
		order[i] = i;
	srand(1);
	for (i = LINES - 1; i > 0; i--) {
		j = rand() % (i + 1);
		k = order[i];
		order[i] = order[j];
		order[j] = k;
	}
	for (i = 0; i < LINES; i++)
		lines[order[i]].next = &lines[order[(i + 1) % LINES]];
	n = n > LINE_SAMPLES ? LINE_SAMPLES : n;
	if (pthread_create(&id, NULL, other, NULL) != 0)
		exit(1);
	for (r = 0; r < n; r++) {
		let_other(DIRTY);
		line_v[READ_DIRTY][r] = chase();
		line_v[READ_HIT][r] = chase();
		line_v[WRITE_READ][r] = write_all(1); /* was dirty elsewhere, was read here */
		let_other(DIRTY);
		(void)chase();
		let_other(READ);
		line_v[WRITE_SHARED][r] = write_all(1); /* both have read it */
		line_v[WRITE_HIT][r] = write_all(1);
		let_other(DIRTY);
		line_v[WRITE_PIPED][r] = write_all(0); /* dirty elsewhere, any number under way */
	}
	let_other(QUIT);
	(void)pthread_join(id, NULL);
	read = median(READ_DIRTY, n) - median(READ_HIT, n);
	hit = median(WRITE_HIT, n);
	printf("read_dirty %.3f\n", read);
	printf("upgrade %.3f\n", median(WRITE_SHARED, n) > hit ? median(WRITE_SHARED, n) - hit : 0);
	printf("migratory %d\n", median(WRITE_READ, n) - hit < read / 2);
	printf("overlap %.3f\n", read / median(WRITE_PIPED, n) > 1 ? read / median(WRITE_PIPED, n) : 1);
}

int main(int argc, char **argv)
{
	unsigned int samples = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;

	if (samples < 1 || samples > MEASURE_SAMPLES_MAX) {
		fprintf(stderr, "usage: calibrate SAMPLES (1 to %d)\n", MEASURE_SAMPLES_MAX);
		return 2;
	}
	locked(samples);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return 0;
	contended(samples);
	transfers(20 * samples);
	return 0;
}
