/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry points of the fuzzer. Under libFuzzer and AFL++ LLVMFuzzerTestOneInput is all that is
 * used. As a program of its own it replays files (a folder: all in it) and, with --seconds, makes inputs
 * by chance and by changing and joining the ones it was given.
 */
#include "world.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

#define INPUT_MAX 4096
#define KEPT_MAX 4096

static struct {
	uint8_t *data;
	size_t size;
} kept[KEPT_MAX];

static uint8_t input[INPUT_MAX];
static size_t input_size;
static unsigned int keeps;
static unsigned long long runs;
static uint64_t seed = 1;

static uint32_t chance(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33);
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Keeps the input that is at work, so that a crash can be replayed. */
static void on_abort(int sig)
{
	static const char name[] = "fuzz-crash.bin";
	FILE *f = fopen(name, "wb");

	if (f != NULL && fwrite(input, 1, input_size, f) == input_size)
		(void)fprintf(stderr, "the input is in %s\n", name);
	if (f != NULL)
		(void)fclose(f);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void run(void)
{
	runs++;
	fuzz_one(input, input_size);
}

static bool replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		perror(path);
		return false;
	}
	input_size = fread(input, 1, sizeof(input), f);
	(void)fclose(f);
	if (keeps < KEPT_MAX) {
		kept[keeps].data = (uint8_t *)malloc(input_size + 1);
		if (kept[keeps].data != NULL) {
			memcpy(kept[keeps].data, input, input_size);
			kept[keeps++].size = input_size;
		}
	}
	run();
	return true;
}

static bool replay(const char *path)
{
	struct dirent *entry;
	struct stat st;
	char name[4096];
	DIR *dir;
	bool right = true;

	if (stat(path, &st) != 0) {
		perror(path);
		return false;
	}
	if (!S_ISDIR(st.st_mode))
		return replay_file(path);
	dir = opendir(path);
	while (right && dir != NULL && (entry = readdir(dir)) != NULL) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			right = replay(name);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return right && dir != NULL;
}

/* A piece of a kept input, or noise. */
static void append(void)
{
	size_t room = sizeof(input) - input_size, n, from, i;

	if (keeps != 0 && chance() % 4 != 0) {
		unsigned int k = chance() % keeps;

		from = kept[k].size == 0 ? 0 : chance() % kept[k].size;
		n = kept[k].size - from < room ? kept[k].size - from : room;
		n = n == 0 ? 0 : 1 + chance() % n;
		memcpy(input + input_size, kept[k].data + from, n);
	} else {
		n = 1 + chance() % 64;
		n = n < room ? n : room;
		for (i = 0; i < n; i++)
			input[input_size + i] = (uint8_t)chance();
	}
	input_size += n;
}

static void invent(void)
{
	uint32_t pieces = 1 + chance() % 12, changes = chance() % 8;

	input_size = 0;
	while (pieces-- > 0)
		append();
	while (changes-- > 0 && input_size != 0)
		input[chance() % input_size] = (uint8_t)chance();
	run();
}

static int usage(void)
{
	(void)fprintf(stderr, "usage: fuzz [--seconds 0..1000000] [--seed N] FILE_OR_FOLDER...\n");
	return 2;
}

int main(int argc, char **argv)
{
	double seconds = 0, start = now();
	int i;

	(void)signal(SIGABRT, on_abort);
	(void)signal(SIGSEGV, on_abort);
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		char *end = NULL;
		bool is_seed = strcmp(argv[i], "--seed") == 0;
		double value = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;

		if ((!is_seed && strcmp(argv[i], "--seconds") != 0) || end == NULL || end == argv[i + 1] || *end != '\0' || value < 0 ||
		    value > 1e6)
			return usage();
		if (is_seed)
			seed = (uint64_t)value;
		else
			seconds = value;
		i++;
	}
	if (i == argc && seconds == 0)
		return usage();
	for (; i < argc; i++)
		if (!replay(argv[i]))
			return 1;
	(void)printf("%llu inputs replayed", runs);
	while (now() - start < seconds)
		for (i = 0; i < 50; i++)
			invent();
	(void)printf(", %llu in all, %.0f a second\n", runs, (double)runs / (now() - start));
	return 0;
}

#endif
