/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers.c - runs the peers against each other and checks their totals.
 *
 * Eight threads live through the whole run, four a CPU on two CPUs; a sample uses the
 * first 1, 2 or 8 of them and is CPU time per operation. Rounds go over all cells in
 * turn. A sample during which other programs had a tenth of the CPUs it used, or in
 * which the threads did not run side by side, is taken again up to three times; noisy
 * ones count only where a cell has fewer than three quiet ones. A figure is the median
 * over placements of each placement's median.
 */
#include "peers_run.h"

#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 8
#define QUIET 0.9 /* of its CPUs a sample must have had */

const unsigned int peers_threads[PEERS_COUNTS] = { 1, 2, THREADS_MAX };
struct peers_entry peers_entry[PEERS_MAX];
unsigned int peers_count;
char peers_note[PEERS_NOTES_MAX][160];
unsigned int peers_notes;

struct worker {
	pthread_t id;
	unsigned int cpu;
	sem_t go;
	long granted;
	double start, end, ns;
};

static struct worker workers[THREADS_MAX];
static sem_t finished;
static unsigned int cpus; /* that workers run on */
static struct {
	enum { JOB_LOOP, JOB_GRAB, JOB_GIVE, JOB_EXIT } what;
	const struct peer *peer;
	void (*loop)(long n);
	long n;
	unsigned int threads, arrived;
} job;

static void die(const char *what)
{
	fprintf(stderr, "peers: %s\n", what);
	exit(2);
}

void *peers_zalloc(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (p == NULL)
		die("out of memory");
	memset(p, 0, (size + 63) & ~(size_t)63);
	return p;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	if (peers_notes == PEERS_NOTES_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(peers_note[peers_notes++], sizeof(peers_note[0]), format, args);
	va_end(args);
}

void peers_skip(const char *what, const char *why)
{
	note("skipped: %s (%s)", what, why);
}

void peers_add(const struct peer *p)
{
	if (peers_count == PEERS_MAX)
		die("too many peers");
	peers_entry[peers_count++].peer = p;
}

/* ---- threads ---- */

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(unsigned int nth)
{
	cpu_set_t may, set;
	size_t cpu, mine = CPU_SETSIZE;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(may), &may) != 0)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && nth-- == 0)
			mine = cpu;
	if (mine == CPU_SETSIZE)
		return;
	CPU_SET(mine, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void run_loop(struct worker *w)
{
	double cpu;

	/* All start together: where each has a CPU they spin for each other. */
	__atomic_add_fetch(&job.arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&job.arrived, __ATOMIC_ACQUIRE) < job.threads)
		if (job.threads > cpus)
			(void)sched_yield();
	w->start = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	job.loop(job.n);
	w->ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	w->end = now(CLOCK_MONOTONIC);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int more = 1;

	pin(w->cpu);
	while (more) {
		while (sem_wait(&w->go) != 0)
			;
		if (job.what == JOB_LOOP)
			run_loop(w);
		else if (job.what == JOB_GRAB)
			w->granted = job.peer->grab();
		else if (job.what == JOB_GIVE)
			job.peer->give(w->granted);
		else
			more = 0;
		(void)sem_post(&finished);
	}
	return NULL;
}

static void run_job(unsigned int threads)
{
	unsigned int i;

	job.threads = threads;
	job.arrived = 0;
	for (i = 0; i < threads; i++)
		(void)sem_post(&workers[i].go);
	for (i = 0; i < threads; i++)
		while (sem_wait(&finished) != 0)
			;
}

static void start_workers(void)
{
	cpu_set_t may;
	unsigned int i;

	cpus = sched_getaffinity(0, sizeof(may), &may) == 0 ? (unsigned int)CPU_COUNT(&may) : 1;
	(void)sem_init(&finished, 0, 0);
	for (i = 0; i < THREADS_MAX; i++) {
		workers[i].cpu = (cpus - 1 + i) % cpus;
		if (sem_init(&workers[i].go, 0, 0) != 0 || pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
			die("can't start a thread");
	}
}

static void stop_workers(void)
{
	unsigned int i;

	job.what = JOB_EXIT;
	run_job(THREADS_MAX);
	for (i = 0; i < THREADS_MAX; i++)
		(void)pthread_join(workers[i].id, NULL);
}

/* ---- checks ---- */

static void check(struct peers_entry *e, const char *when, int64_t want)
{
	int64_t got = e->peer->total();

	if (got == want)
		return;
	e->wrong = 1;
	note("WRONG: %s: %s the total is %lld instead of %lld", e->peer->name, when, (long long)got, (long long)want);
}

/* All threads take what they get: never more than the limit, and not much less. */
static void check_limit(struct peers_entry *e)
{
	long sum = 0;
	unsigned int i;

	job.peer = e->peer;
	job.what = JOB_GRAB;
	run_job(THREADS_MAX);
	for (i = 0; i < THREADS_MAX; i++)
		sum += workers[i].granted;
	check(e, "with all taken", sum);
	if (sum > PEER_LIMIT || sum < PEER_LIMIT - THREADS_MAX * PEER_BATCH) {
		e->wrong = 1;
		note("WRONG: %s: granted %ld of %d", e->peer->name, sum, PEER_LIMIT);
	}
	job.what = JOB_GIVE;
	run_job(THREADS_MAX);
	check(e, "with all given back", 0);
}

/* ---- samples ---- */

/* CPU ns an operation; share: how much of its CPUs the sample had from first start to last end. */
static double sample(struct peers_entry *e, int many, unsigned int threads, unsigned int place, long n, double *share)
{
	double first, last, sum = 0;
	unsigned int i;

	job.what = JOB_LOOP;
	job.loop = many ? e->peer->many[place] : e->peer->one[place];
	job.n = n;
	run_job(threads);
	if (e->peer->depth == 0)
		e->adds += n * (int64_t)threads;
	first = workers[0].start;
	last = workers[0].end;
	for (i = 0; i < threads; i++) {
		sum += workers[i].ns;
		first = workers[i].start < first ? workers[i].start : first;
		last = workers[i].end > last ? workers[i].end : last;
	}
	*share = sum / ((last - first) * (threads < cpus ? threads : cpus));
	return sum / ((double)n * threads);
}

/* So many operations that a thread's sample takes target ns. */
static void calibrate(struct peers_entry *e, int many, unsigned int c, double target)
{
	double share, ns;
	long n = 500;

	do {
		n *= 2;
		ns = sample(e, many, peers_threads[c], 0, n, &share);
	} while (ns * (double)n < target / 8);
	e->cell[many][c].n = 1 + (long)(target / ns);
}

static void take(struct peers_entry *e, int many, unsigned int c)
{
	struct peers_cell *cell = &e->cell[many][c];
	unsigned int p, tries;
	double share, ns;

	for (p = 0; p < PEER_PLACES; p++) {
		tries = 0;
		do
			ns = sample(e, many, peers_threads[c], p, cell->n, &share);
		while (share < QUIET && ++tries < 3);
		if (share < QUIET)
			cell->noisy[p][cell->noisies[p]++] = ns;
		else
			cell->quiet[p][cell->quiets[p]++] = ns;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare);
	return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Returns how many noisy samples the figure had to use. */
static unsigned int figure(struct peers_cell *cell)
{
	double of_place[PEER_PLACES], *v;
	unsigned int p, n, places = 0, quiets = 0;

	for (p = 0; p < PEER_PLACES; p++)
		quiets += cell->quiets[p];
	for (p = 0; p < PEER_PLACES; p++) {
		v = quiets >= 3 ? cell->quiet[p] : cell->noisy[p];
		n = quiets >= 3 ? cell->quiets[p] : cell->noisies[p];
		if (n == 0)
			continue;
		of_place[places++] = median(v, n);
		if (cell->samples == 0 || v[0] < cell->min)
			cell->min = v[0];
		cell->samples += n;
	}
	cell->median = median(of_place, places);
	return quiets >= 3 ? 0 : cell->samples;
}

static void measure(unsigned int rounds, double target)
{
	unsigned int r, i, c, used = 0;
	int many;

	for (r = 0; r <= rounds; r++) { /* the first is for calibration */
		if (isatty(2))
			fprintf(stderr, "\rround %u of %u ", r, rounds);
		for (i = 0; i < peers_count; i++)
			for (many = 0; many <= (peers_entry[i].peer->depth == 0); many++)
				for (c = 0; c < PEERS_COUNTS; c++)
					if (r == 0)
						calibrate(&peers_entry[i], many, c, target);
					else
						take(&peers_entry[i], many, c);
	}
	if (isatty(2))
		fprintf(stderr, "\r%20s\r", "");
	for (i = 0; i < peers_count; i++)
		for (many = 0; many <= (peers_entry[i].peer->depth == 0); many++)
			for (c = 0; c < PEERS_COUNTS; c++)
				used += figure(&peers_entry[i].cell[many][c]);
	if (used > 0)
		note("the machine was busy: %u samples are noisy ones", used);
}

unsigned int peers_run(unsigned int rounds, double target)
{
	unsigned int i, wrong = 0;

	start_workers();
	for (i = 0; i < peers_count; i++)
		if (peers_entry[i].peer->depth > 0)
			check_limit(&peers_entry[i]);
	measure(rounds, target);
	for (i = 0; i < peers_count; i++)
		check(&peers_entry[i], "with its threads alive", peers_entry[i].adds);
	stop_workers();
	for (i = 0; i < peers_count; i++) {
		check(&peers_entry[i], "with its threads gone", peers_entry[i].adds);
		wrong += peers_entry[i].wrong != 0;
	}
	return wrong;
}
