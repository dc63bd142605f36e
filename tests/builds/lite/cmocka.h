/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for <cmocka.h> with what the tests here use of it, in one header: so they
 * also run where there is no library of it (other architectures, musl), or where it
 * would have to be built in the same way (MemorySanitizer, static-pie, C++). As in
 * cmocka, assertions are for the main thread of a test: a failed one ends the test.
 */
#ifndef TESTS_LITE_CMOCKA_H
#define TESTS_LITE_CMOCKA_H

#include <fnmatch.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LITE static __attribute__((unused))

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
	const char *name;
	CMUnitTestFunction test_func;
	CMFixtureFunction setup_func;
	CMFixtureFunction teardown_func;
	void *initial_state;
};

#define cmocka_unit_test(f) { #f, f, NULL, NULL, NULL }
#define cmocka_unit_test_setup(f, setup) { #f, f, setup, NULL, NULL }
#define cmocka_unit_test_teardown(f, teardown) { #f, f, NULL, teardown, NULL }
#define cmocka_unit_test_setup_teardown(f, setup, teardown) { #f, f, setup, teardown, NULL }

enum lite_verdict { LITE_PASSED, LITE_FAILED, LITE_SKIPPED };

static jmp_buf lite_out;
static unsigned long lite_checks;
static const char *lite_filter;

LITE __attribute__((noreturn)) void lite_leave(enum lite_verdict verdict, const char *file, int line)
{
	printf("%s:%d: %s\n", file, line, verdict == LITE_SKIPPED ? "skipped" : "failed");
	(void)fflush(stdout);
	longjmp(lite_out, (int)verdict);
}

LITE void lite_true(int is, const char *text, const char *file, int line)
{
	lite_checks++;
	if (is)
		return;
	printf("not so: %s\n", text);
	lite_leave(LITE_FAILED, file, line);
}

LITE void lite_int(int wanted, uintmax_t a, uintmax_t b, const char *file, int line)
{
	lite_checks++;
	if ((a == b) == wanted)
		return;
	printf("%#jx %s %#jx\n", a, wanted ? "!=" : "==", b);
	lite_leave(LITE_FAILED, file, line);
}

LITE void lite_range(uintmax_t v, uintmax_t low, uintmax_t high, const char *file, int line)
{
	lite_checks++;
	if (v >= low && v <= high)
		return;
	printf("%ju is not in %ju to %ju\n", v, low, high);
	lite_leave(LITE_FAILED, file, line);
}

LITE void lite_string(const char *a, const char *b, const char *file, int line)
{
	lite_checks++;
	if (strcmp(a, b) == 0)
		return;
	printf("\"%s\" != \"%s\"\n", a, b);
	lite_leave(LITE_FAILED, file, line);
}

#define LITE_HERE __FILE__, __LINE__
#define assert_true(c) lite_true(!!(c), #c, LITE_HERE)
#define assert_false(c) lite_true(!(c), "not " #c, LITE_HERE)
#define assert_null(p) lite_true((p) == NULL, #p " is NULL", LITE_HERE)
#define assert_non_null(p) lite_true((p) != NULL, #p " is not NULL", LITE_HERE)
#define assert_int_equal(a, b) lite_int(1, (uintmax_t)(a), (uintmax_t)(b), LITE_HERE)
#define assert_int_not_equal(a, b) lite_int(0, (uintmax_t)(a), (uintmax_t)(b), LITE_HERE)
#define assert_ptr_equal(a, b) lite_int(1, (uintptr_t)(a), (uintptr_t)(b), LITE_HERE)
#define assert_ptr_not_equal(a, b) lite_int(0, (uintptr_t)(a), (uintptr_t)(b), LITE_HERE)
#define assert_string_equal(a, b) lite_string(a, b, LITE_HERE)
#define assert_memory_equal(a, b, size) lite_true(memcmp(a, b, size) == 0, #a " is " #b, LITE_HERE)
#define assert_in_range(v, low, high) lite_range((uintmax_t)(v), (uintmax_t)(low), (uintmax_t)(high), LITE_HERE)
#define fail() lite_leave(LITE_FAILED, LITE_HERE)
#define skip() lite_leave(LITE_SKIPPED, LITE_HERE)
#define fail_msg(...) (printf(__VA_ARGS__), printf("\n"), lite_leave(LITE_FAILED, LITE_HERE))

LITE void cmocka_set_test_filter(const char *pattern)
{
	lite_filter = pattern;
}

/* Everything that may end a test by lite_leave, under one setjmp. */
LITE enum lite_verdict lite_run(const struct CMUnitTest *test, void **state)
{
	int verdict = setjmp(lite_out);

	if (verdict != 0)
		return (enum lite_verdict)verdict;
	if (test->setup_func != NULL && test->setup_func(state) != 0)
		return LITE_FAILED;
	test->test_func(state);
	if (test->teardown_func != NULL && test->teardown_func(state) != 0)
		return LITE_FAILED;
	return LITE_PASSED;
}

LITE int lite_run_all(const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	static const char *const words[] = { "[       OK ] %s\n", "[  FAILED  ] %s\n", "[  SKIPPED ] %s\n" };
	int count[3] = { 0, 0, 0 };
	void *group = NULL;
	size_t i;

	if (setup != NULL && setup(&group) != 0) {
		printf("[  FAILED  ] group setup\n");
		return 1;
	}
	for (i = 0; i < n; i++) {
		void *state = tests[i].initial_state != NULL ? tests[i].initial_state : group;
		enum lite_verdict verdict;

		if (lite_filter != NULL && fnmatch(lite_filter, tests[i].name, 0) != 0)
			continue;
		printf("[ RUN      ] %s\n", tests[i].name);
		(void)fflush(stdout);
		verdict = lite_run(&tests[i], &state);
		count[verdict]++;
		printf(words[verdict], tests[i].name);
	}
	printf("[==========] %d test(s) run.\n[  PASSED  ] %d test(s).\n", count[0] + count[1] + count[2], count[0]);
	if (count[LITE_SKIPPED] != 0)
		printf("[  SKIPPED ] %d test(s).\n", count[LITE_SKIPPED]);
	if (count[LITE_FAILED] != 0)
		printf("[  FAILED  ] %d test(s).\n", count[LITE_FAILED]);
	printf("[  CHECKS  ] %lu assertion(s) held.\n", lite_checks - (unsigned long)count[LITE_FAILED]);
	(void)fflush(stdout);
	if (teardown != NULL && teardown(&group) != 0)
		return count[LITE_FAILED] + 1;
	return count[LITE_FAILED];
}

#define cmocka_run_group_tests(tests, setup, teardown) \
	lite_run_all(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#endif /* TESTS_LITE_CMOCKA_H */
