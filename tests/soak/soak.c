/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The long storm. Every few seconds a new domain on the other backend, with another tree and
 * another mix of disturbances; at the end of each such round everything stops and is audited to the
 * page, the byte and the unit (stress_settle), before and after draining. One difference anywhere fails
 * the whole. What T rounds without a failure say about the rate: below 3/T at 95 % confidence.
 */
#include "../stress.h"

#define WORKERS 4
#define LIMITED 3 /* groups with a limit */

struct totals {
	uint64_t rounds[2], ops, refused, faults[STRESS_FAULTS];
	uint64_t start_ns, audits;
	bool json, tty;
};

static const char *const fault_name[STRESS_FAULTS] = { "drains",  "flushes", "limit moves", "batch changes", "thread exits",
						       "signals", "migrations", "group lives", "forks" };
static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);
static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* ---------------------------------------------------------------- disturbers */

/* A group that lives for a few charges, taken offline while all CPUs may hold something for it. */
static void one_life(struct stress *s, uint64_t r)
{
	struct pcbatch_group *g = NULL;
	int64_t live = 0, stat = 0;
	int i, err;

	if (pcbatch_group_create(&s->dom, s->group[r % (uint64_t)s->groups], NULL, &g) != 0)
		return;
	for (i = 0; i < 40; i++) {
		stress_pin((int)(r >> (i % 8)) & 0xff);
		err = pcbatch_group_charge_stat(g, (r >> i & 15) + 1, 1);
		STRESS_CHECK(err == 0 || err == -ENOMEM, err, i);
		live += err == 0 ? (int64_t)(r >> i & 15) + 1 : 0;
		stat += err == 0;
		if (i == 20 && (r & 1) != 0)
			STRESS_EQUAL(pcbatch_group_offline(g), 0);
	}
	STRESS_CHECK(live == 0 || pcbatch_group_destroy(g) == -EBUSY, live, 0);
	STRESS_EQUAL(pcbatch_group_uncharge_stat(g, (uint64_t)live, stat), 0);
	do {
		err = pcbatch_group_destroy(g);
		/* Somebody may be handing back what it evicted. */
		STRESS_CHECK(err == 0 || err == -EBUSY, err, 0);
	} while (err == -EBUSY && !interrupted);
	stress_did(s, STRESS_DID_GROUP);
}

static void *lives(void *arg)
{
	struct stress *s = (struct stress *)arg;
	uint64_t rng = 4711;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		one_life(s, stress_random(&rng));
		(void)usleep(500);
	}
	return NULL;
}

/* The child's domain works at once, whatever the others were in the middle of, and is exact for what is its own. */
static int child(struct stress *s)
{
	struct pcbatch_group *g = NULL;
	int64_t bytes = -1;

	if (pcbatch_group_create(&s->dom, NULL, NULL, &g) != 0)
		return 3;
	if (pcbatch_group_charge_stat(g, 100, 7) != 0 || pcbatch_group_charge_bytes(g, 5000) != 0)
		return 4;
	if (pcbatch_stock_drain_all(&s->dom) != 0)
		return 5;
	if (pcbatch_group_bytes(g, &bytes) != 0 || bytes != 100 * STRESS_PAGE + 5000)
		return 6;
	if (pcbatch_group_uncharge_bytes(g, 5000) != 0 || pcbatch_group_uncharge_stat(g, 100, 7) != 0)
		return 7;
	if (pcbatch_group_destroy(g) != 0)
		return 8;
	pcbatch_counter_add(&s->counter, 1);
	return pcbatch_stats_flush(&s->dom, NULL) == 0 ? 0 : 9;
}

static void *forks(void *arg)
{
	struct stress *s = (struct stress *)arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(child(s));
		status = pid < 0 ? -1 : stress_wait(pid);
		STRESS_EQUAL(status, 0);
		stress_did(s, STRESS_DID_FORK);
		(void)usleep(20000);
	}
	return NULL;
}

/* -------------------------------------------------------------------- rounds */

static void round_set_up(uint64_t number, enum pcbatch_backend backend, double seconds)
{
	static const unsigned int timer[] = { 0, 300, 1000, 5000 };
	struct pcbatch_domain_attr attr;
	int i;

	(void)pcbatch_domain_attr_init(&attr);
	attr.backend = backend;
	attr.stock_batch = number % 5 == 4 ? 256 : 0;
	stress_init(&storm, 3 + (int)(number * 7 % 18), &attr);
	storm.bytes = number % 2 == 0;
	storm.hop_every = number % 3 == 0 ? 128 : 1024;
	storm.timer_us = timer[number / 2 % 4];
	/* A round in eight is left nearly alone: undisturbed hits can be wrong too. */
	storm.disturbers = number % 8 == 7 ? STRESS_FLUSH : STRESS_ALL;
	storm.track = number % 4 == 1;
	for (i = 0; i < LIMITED && number % 8 != 7; i++)
		stress_limit(&storm, i, 2000 + 500 * i);
	storm.deadline = stress_now_ns() + (uint64_t)(seconds * 1e9);
}

static void one_round(uint64_t number, enum pcbatch_backend backend, double seconds)
{
	void *(*const own[])(void *) = { lives, forks };
	pthread_t thread[2];
	unsigned int i;

	round_set_up(number, backend, seconds);
	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, own[i], &storm) != 0) {
			perror("soak: pthread_create");
			exit(1);
		}
	storm.joined = thread;
	storm.joined_count = 2;
	stress_run(&storm, NULL, WORKERS, 0);
}

static void add_up(struct totals *t, enum pcbatch_backend backend)
{
	int i;

	t->rounds[backend == PCBATCH_BACKEND_RSEQ ? 0 : 1]++;
	t->ops += storm.total_ops;
	t->refused += storm.done.refused;
	for (i = 0; i < STRESS_FAULTS; i++)
		t->faults[i] += storm.faults[i];
}

/* ----------------------------------------------------------------- what it says */

static uint64_t all_faults(const struct totals *t)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < STRESS_FAULTS; i++)
		sum += t->faults[i];
	return sum;
}

static double elapsed(const struct totals *t)
{
	return (double)(stress_now_ns() - t->start_ns) / 1e9;
}

static void show(const struct totals *t, bool always)
{
	uint64_t rounds = t->rounds[0] + t->rounds[1];

	if (t->json || (!t->tty && !always && rounds % 10 != 0))
		return;
	printf("%s%6.0f s  %" PRIu64 " operations, %" PRIu64 " faults, %" PRIu64 " audits: %s%s", t->tty ? "\r" : "", elapsed(t), t->ops,
	       all_faults(t), rounds, stress_failures == 0 ? "exact" : "WRONG", t->tty ? "" : "\n");
	(void)fflush(stdout);
}

static void summary(const struct totals *t)
{
	uint64_t rounds = t->rounds[0] + t->rounds[1];
	double seconds = elapsed(t);
	int i;

	if (t->json) {
		printf("{\"seconds\":%.1f,\"operations\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"audits_rseq\":%" PRIu64
		       ",\"audits_generic\":%" PRIu64 ",\"failures\":%" PRIu64,
		       seconds, t->ops, t->refused, t->rounds[0], t->rounds[1], stress_failures);
		for (i = 0; i < STRESS_FAULTS; i++)
			printf(",\"%s\":%" PRIu64, fault_name[i], t->faults[i]);
		printf("}\n");
		return;
	}
	printf("%s%" PRIu64 " operations (%" PRIu64 " refused) in %.0f s, %.2f million a second\n", t->tty ? "\n" : "", t->ops, t->refused,
	       seconds, (double)t->ops / seconds / 1e6);
	printf("audits: %" PRIu64 " with restartable sequences, %" PRIu64 " generic\nfaults:", t->rounds[0], t->rounds[1]);
	for (i = 0; i < STRESS_FAULTS; i++)
		printf("%s %" PRIu64 " %s", i == 0 ? "" : ",", t->faults[i], fault_name[i]);
	if (stress_failures == 0)
		printf("\nno failure: at 95 %% fewer than one in %.3g hours, one in %.3g operations, one in %.3g faults\n",
		       seconds / 3 / 3600, (double)t->ops / 3, (double)all_faults(t) / 3);
	else
		printf("\n%" PRIu64 " FAILURES\n", stress_failures);
	/* The line that counts. */
	printf("soak: %" PRIu64 " passed, %d failed\n", stress_failures == 0 ? rounds : rounds - 1, stress_failures != 0);
}

static bool number(const char *text, double min, double max, double *out)
{
	char *end = NULL;
	double value = text == NULL ? 0 : strtod(text, &end);

	if (end == NULL || end == text || *end != '\0' || !(value >= min && value <= max))
		return false;
	*out = value;
	return true;
}

static int usage(void)
{
	fprintf(stderr, "usage: soak [--minutes 0.01..100000] [--round 0.1..3600 (seconds)] [--json]\n"
			"Storms for 10 minutes unless told otherwise, auditing after each round of 3 seconds. Ctrl-C ends it in order.\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct totals t;
	struct pcbatch_domain probe;
	double minutes = 10, seconds = 3;
	enum pcbatch_backend backend[2] = { PCBATCH_BACKEND_RSEQ, PCBATCH_BACKEND_GENERIC };
	uint64_t n;
	int i;

	memset(&t, 0, sizeof(t));
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			t.json = true;
		else if (strcmp(argv[i], "--minutes") == 0 && number(argv[i + 1], 0.01, 100000, &minutes))
			i++;
		else if (strcmp(argv[i], "--round") == 0 && number(argv[i + 1], 0.1, 3600, &seconds))
			i++;
		else
			return usage();
	}
	if (pcbatch_domain_init(&probe, NULL) != 0)
		return 1;
	if (pcbatch_domain_backend(&probe) != PCBATCH_BACKEND_RSEQ) {
		backend[0] = PCBATCH_BACKEND_GENERIC;
		if (!t.json)
			printf("no usable restartable sequences here: generic backend only\n");
	}
	(void)pcbatch_domain_destroy(&probe);
	(void)signal(SIGINT, on_interrupt);
	(void)signal(SIGTERM, on_interrupt);
	t.tty = isatty(1) != 0 && !t.json;
	t.start_ns = stress_now_ns();
	for (n = 0; elapsed(&t) < minutes * 60 && stress_failures == 0 && !interrupted; n++) {
		/* Pairs of rounds: the same mix on each backend. */
		one_round(n / 2, backend[n % 2], seconds);
		add_up(&t, backend[n % 2]);
		show(&t, false);
	}
	if (t.tty || (t.rounds[0] + t.rounds[1]) % 10 != 0)
		show(&t, true);
	summary(&t);
	return stress_failures == 0 ? 0 : 1;
}
