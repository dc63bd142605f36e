/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a debug build stops at misuse with a message that names it, and at nothing
 * else: each case runs in a child process, whose last words and signal are looked at.
 */
#define PCBATCH_DEBUG 1
#include "util.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#define GROUP "pcbatch: group is NULL, not created or destroyed\n"
#define DOMAIN "pcbatch: domain is NULL, not initialised or destroyed\n"
#define COUNTER "pcbatch: counter is NULL, not initialised or destroyed\n"
#define COUNTER_ADD "pcbatch: counter is not initialised or destroyed\n"
#define UNDERFLOW "pcbatch: page counter underflow: more was uncharged than charged\n"

static struct box *box;
static struct pcbatch_group *none, *dead, *g;
static struct pcbatch_domain *no_domain;
static struct pcbatch_counter *no_counter, gone, counter;
static struct pcbatch_page_counter pages;

static int set_up(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	box = box_open(attr);
	g = group_new(box, NULL);
	dead = group_new(box, NULL);
	assert_int_equal(pcbatch_group_destroy(dead), 0);
	assert_int_equal(pcbatch_counter_init(&counter, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_init(&gone, &box->dom, 0), 0);
	assert_int_equal(pcbatch_counter_destroy(&gone), 0);
	assert_int_equal(pcbatch_page_counter_init(&pages, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(pcbatch_group_destroy(g), 0);
	assert_int_equal(pcbatch_counter_destroy(&counter), 0);
	box_close(box);
	return 0;
}

/* Takes out what a checker (lines with its mark) or an emulator says of the same: not ours. */
static void only_our_words(char *words)
{
	char *line = words, *next, *ours = strstr(words, "pcbatch: ");

	/* A sanitizer has several lines to say first about a child on a stack of its own. */
	if (strncmp(words, "==", 2) == 0 && ours != NULL)
		memmove(words, ours, strlen(ours) + 1);
	while (*line != '\0') {
		next = strchr(line, '\n');
		next = next == NULL ? line + strlen(line) : next + 1;
		if (strncmp(line, "==", 2) == 0 || strncmp(line, "qemu: ", 6) == 0)
			memmove(line, next, strlen(next) + 1);
		else
			line = next;
	}
}

/* Runs one case in a child; returns its wait status, and what it said. */
static int last_words(void (*fn)(void), char *words, size_t size)
{
	struct rlimit no_core = { 0, 0 };
	int fds[2], status = -1;
	size_t length = 0;
	ssize_t got;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)dup2(fds[1], 2);
		fn();
		_exit(0);
	}
	assert_true(child > 0);
	(void)close(fds[1]);
	while (length < size - 1 && (got = read(fds[0], words + length, size - 1 - length)) > 0)
		length += (size_t)got;
	words[length] = '\0';
	only_our_words(words);
	(void)close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void charge_null(void) { (void)pcbatch_group_charge(none, 1); }
static void uncharge_null(void) { (void)pcbatch_group_uncharge(none, 1); }
static void charge_bytes_null(void) { (void)pcbatch_group_charge_bytes(none, 1); }
static void charge_direct_null(void) { (void)pcbatch_group_charge_direct(none, 1); }
static void set_max_null(void) { (void)pcbatch_group_set_max(none, 1); }
static void drain_null(void) { (void)pcbatch_group_drain(none); }
static void offline_null(void) { (void)pcbatch_group_offline(none); }
static void destroy_null(void) { (void)pcbatch_group_destroy(none); }
static void destroy_dead(void) { (void)pcbatch_group_destroy(dead); }
static void charge_dead(void) { (void)pcbatch_group_charge(dead, 1); }
static void uncharge_dead(void) { (void)pcbatch_group_uncharge_stat(dead, 1, 1); }
static void domain_destroy_null(void) { (void)pcbatch_domain_destroy(no_domain); }
static void create_in_null(void) { (void)pcbatch_group_create(no_domain, NULL, NULL, &none); }
static void drain_all_null(void) { (void)pcbatch_stock_drain_all(no_domain); }
static void flush_null(void) { (void)pcbatch_stats_flush(no_domain, NULL); }
static void counter_destroy_null(void) { (void)pcbatch_counter_destroy(no_counter); }
static void counter_destroy_twice(void) { (void)pcbatch_counter_destroy(&gone); }
static void counter_add_gone(void) { pcbatch_counter_add(&gone, 1); }

static void domain_destroy_twice(void)
{
	(void)pcbatch_group_destroy(g);
	(void)pcbatch_counter_destroy(&counter);
	if (pcbatch_domain_destroy(&box->dom) == 0)
		(void)pcbatch_domain_destroy(&box->dom);
}

static void page_counter_underflow(void)
{
	(void)pcbatch_page_counter_charge(&pages, 5);
	(void)pcbatch_page_counter_uncharge(&pages, 6);
}

static void over_uncharge_seen_by_drain(void)
{
	(void)pcbatch_group_charge(g, 1);
	(void)pcbatch_group_uncharge(g, 2);
	(void)pcbatch_group_drain(g);
}

static void over_uncharge_seen_by_destroy(void)
{
	(void)pcbatch_group_charge(g, 1);
	(void)pcbatch_group_uncharge(g, 2);
	(void)pcbatch_group_destroy(g);
}

#define SHARED "pcbatch: domain used by a child that shares its parent's memory (vfork)\n"

/* What a vfork child may not do, and one made by clone neither: its parent's memory, but not its CPU number. */
static int shared_charge(void *arg) { (void)arg; return pcbatch_group_charge(g, 1); }
static int shared_uncharge(void *arg) { (void)arg; return pcbatch_group_uncharge(g, 1); }
static int shared_bytes(void *arg) { (void)arg; return pcbatch_group_charge_bytes(g, 10); }
static int shared_unbytes(void *arg) { (void)arg; return pcbatch_group_uncharge_bytes(g, 10); }
static int shared_mod(void *arg) { (void)arg; return pcbatch_group_stat_mod(g, 0, 1); }

static int shared_add(void *arg)
{
	(void)arg;
	pcbatch_counter_add(&counter, 1);
	return 0;
}

/* Exit status: no memory is shared here; valgrind makes a plain fork of it. */
#define NOT_SHARED 4

static volatile int shared_seen;

/* arg: the function to call. */
static int in_child(void *arg)
{
	shared_seen = 1;
	return (*(int (**)(void *))arg)(NULL);
}

static void in_shared_child(int (*fn)(void *))
{
	static char stack[65536] PCBATCH_ALIGNED(16);
	int status = 0;
	pid_t child;

	/* A page and some bytes, so that each of the calls is a hit. */
	(void)pcbatch_group_charge(g, 5);
	(void)pcbatch_group_charge_bytes(g, 100);
	child = clone(in_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)&fn);
	if (child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
		(void)kill(getpid(), SIGABRT);
	_exit(child > 0 && !shared_seen ? NOT_SHARED : 3);
}

static void vfork_charge(void) { in_shared_child(shared_charge); }
static void vfork_uncharge(void) { in_shared_child(shared_uncharge); }
static void vfork_bytes(void) { in_shared_child(shared_bytes); }
static void vfork_unbytes(void) { in_shared_child(shared_unbytes); }
static void vfork_mod(void) { in_shared_child(shared_mod); }
static void vfork_add(void) { in_shared_child(shared_add); }

static void misuse_stops_a_debug_build(void **state)
{
	static const struct {
		void (*fn)(void);
		const char *words;
	} cases[] = {
		{ charge_null, GROUP },
		{ uncharge_null, GROUP },
		{ charge_bytes_null, GROUP },
		{ charge_direct_null, GROUP },
		{ set_max_null, GROUP },
		{ drain_null, GROUP },
		{ offline_null, GROUP },
		{ destroy_null, GROUP },
		{ destroy_dead, GROUP },
		{ charge_dead, GROUP },
		{ uncharge_dead, GROUP },
		{ domain_destroy_null, DOMAIN },
		{ domain_destroy_twice, DOMAIN },
		{ create_in_null, DOMAIN },
		{ drain_all_null, DOMAIN },
		{ flush_null, DOMAIN },
		{ counter_destroy_null, COUNTER },
		{ counter_destroy_twice, COUNTER },
		{ counter_add_gone, COUNTER_ADD },
		{ page_counter_underflow, UNDERFLOW },
		{ over_uncharge_seen_by_drain, UNDERFLOW },
		{ over_uncharge_seen_by_destroy, UNDERFLOW },
		{ vfork_charge, SHARED },
		{ vfork_uncharge, SHARED },
		{ vfork_bytes, SHARED },
		{ vfork_unbytes, SHARED },
		{ vfork_mod, SHARED },
		{ vfork_add, SHARED },
	};
	char words[2048];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(cases); i++) {
		bool shared = strcmp(cases[i].words, SHARED) == 0;
		int status;

		/* An emulator, or a kernel before 4.14. */
		if (shared && box->dom.process == NULL)
			continue;
		status = last_words(cases[i].fn, words, sizeof(words));
		if (shared && WIFEXITED(status) && WEXITSTATUS(status) == NOT_SHARED)
			continue;

		/* The whole message, and no byte more. */
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strcmp(words, cases[i].words) != 0)
			fail_msg("case %zu: status %#x, said \"%s\"", i, (unsigned int)status, words);
	}
}

/* What is allowed, or refused by an errno alone, says nothing. */
static void right_use(void)
{
	struct pcbatch_group *child = NULL;
	int64_t value;
	int i, wrong = 0;

	/* Forked twice over: neither shares memory with its parent. */
	if (fork() > 0) {
		(void)wait(&wrong);
		_exit(WIFEXITED(wrong) ? WEXITSTATUS(wrong) : 1);
	}
	wrong |= pcbatch_group_set_max(g, 100);
	wrong |= pcbatch_group_create(&box->dom, g, NULL, &child);
	for (i = 0; i < 200; i++) {
		wrong |= pcbatch_group_charge_stat(child, 3, 1);
		wrong |= pcbatch_group_charge_bytes(child, 5000);
		wrong |= pcbatch_group_uncharge_bytes(child, 5000);
		wrong |= pcbatch_group_uncharge_stat(child, 3, 1);
		pcbatch_counter_add(&counter, 7);
	}
	wrong |= pcbatch_group_charge(child, 101) != -ENOMEM;
	wrong |= pcbatch_group_destroy(g) != -EBUSY;
	wrong |= pcbatch_stock_drain_all(&box->dom) | pcbatch_stats_flush(&box->dom, NULL);
	wrong |= pcbatch_counter_sum_fenced(&counter, &value) | (value != 1400);
	wrong |= pcbatch_group_destroy(child) | pcbatch_group_destroy(g) | pcbatch_counter_destroy(&counter);
	wrong |= pcbatch_domain_destroy(&box->dom);
	_exit(wrong == 0 ? 7 : 1);
}

static void right_use_does_not(void **state)
{
	char words[2048];
	int status = last_words(right_use, words, sizeof(words));

	(void)state;
	assert_string_equal(words, "");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(misuse_stops_a_debug_build, set_up, tear_down),
		cmocka_unit_test_setup_teardown(right_use_does_not, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, pin_tests, NULL);
}
