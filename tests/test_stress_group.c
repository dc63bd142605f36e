/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves conservation (contract points 1 and 3) under storm: threads that hop CPUs
 * under timer signals charge and uncharge more groups than a CPU has slots, while
 * others drain, flush, move limits, change the batch, come and go. Afterwards every
 * level's usage, statistic and counter is what the threads say, to the unit.
 */
#include "stress.h"

static struct stress storm PCBATCH_ALIGNED(PCBATCH_CACHE_LINE);

/* Hits above all: most of the operations. */
static void calm(void **state)
{
	(void)state;
	stress_init(&storm, 7, NULL);
	storm.hop_every = 4096;
	storm.cap = 1000;
	stress_run(&storm, "calm", 4, 9000000);
	assert_int_equal(stress_failures, 0);
}

static void everything(void **state)
{
	(void)state;
	stress_init(&storm, 20, NULL);
	storm.timer_us = 200;
	storm.bytes = true;
	storm.disturbers = STRESS_ALL & ~(unsigned int)STRESS_MAX;
	stress_run(&storm, "everything", 8, 500000);
	assert_int_equal(stress_failures, 0);
}

/* The same without the batch setter, whose drains keep the slots cold. */
static void drained(void **state)
{
	(void)state;
	stress_init(&storm, 6, NULL);
	storm.timer_us = 200;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH;
	stress_run(&storm, "drained", 8, 500000);
	assert_int_equal(stress_failures, 0);
}

/* Twenty-four owners for seven slots, and nobody to help. */
static void evicted(void **state)
{
	(void)state;
	stress_init(&storm, STRESS_GROUPS, NULL);
	storm.timer_us = 200;
	storm.hop_every = 16;
	storm.bytes = true;
	stress_run(&storm, "evicted", 8, 400000);
	assert_int_equal(stress_failures, 0);
}

/* A batch of one makes nearly every call a slow one. */
static void unbatched(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.stock_batch = 1;
	attr.stock_high = 3;
	attr.stat_batch = 2;
	attr.counter_batch = 3;
	stress_init(&storm, 9, &attr);
	storm.timer_us = 200;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH;
	stress_run(&storm, "unbatched", 8, 200000);
	assert_int_equal(stress_failures, 0);
}

/* CPUs beyond the table go past the slots. */
static void few_cpus(void **state)
{
	struct pcbatch_domain_attr attr;

	(void)state;
	(void)pcbatch_domain_attr_init(&attr);
	attr.cpus = 1;
	stress_init(&storm, 9, &attr);
	storm.hop_every = 8;
	storm.timer_us = 200;
	storm.disturbers = STRESS_DRAIN | STRESS_FLUSH;
	stress_run(&storm, "few_cpus", 8, 100000);
	assert_int_equal(stress_failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stress_test(calm),	   stress_test(everything), stress_test(drained),
		stress_test(evicted), stress_test(unbatched),	 stress_test(few_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
