/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/* config.c - PCBATCH_MALLOC_* of the environment. Runs inside the first malloc, so it uses no stdio and no memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

#define PREFIX "PCBATCH_MALLOC_"
#define SIZE_TOP (UINT64_C(4096) << 40)
#define KNOWN "AUDIT, BATCH, GROUP, HIGH, MAX, SIGNAL or STAT"

static __attribute__((noreturn)) void refuse(const char *name, const char *value, const char *allowed)
{
	char full[64];
	size_t length = strlen(name);

	length = length > 40 ? 40 : length;
	memcpy(full, PREFIX, sizeof(PREFIX) - 1);
	memcpy(full + sizeof(PREFIX) - 1, name, length);
	memcpy(full + sizeof(PREFIX) - 1 + length, "=", 2);
	shim_die(full, value, ": must be ", allowed);
}

static bool parse_number(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t n = 0;
	size_t i = 0;

	for (; text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			return false;
	if (i == 0)
		return false;
	if (text[i] != '\0') {
		unit = strchr(units, text[i] & ~0x20);
		if (unit == NULL || text[i + 1] != '\0' || n > SIZE_TOP >> (10 * (unit - units + 1)))
			return false;
		n <<= 10 * (unit - units + 1);
	}
	*value = n;
	return true;
}

static void read_size(const char *name, const char *text, uint64_t low, uint64_t top, bool max, const char *allowed,
		      uint64_t *value)
{
	if (max && strcmp(text, "max") == 0)
		*value = UINT64_MAX;
	else if (!parse_number(text, value) || *value < low || *value > top)
		refuse(name, text, allowed);
}

static void read_stat(const char *text, struct shim_config *c)
{
	static const char allowed[] = "stderr or a file that can be written (%p: the process id), at most 400 bytes with its directory";
	size_t length;
	int fd;

	c->stat[0] = '\0';
	if (text[0] != '/' && strcmp(text, "stderr") != 0) {
		/* The program may change its directory. */
		if (text[0] == '\0' || getcwd(c->stat, 400) == NULL)
			refuse("STAT", text, allowed);
		length = strlen(c->stat);
		memcpy(c->stat + length, "/", 2);
	}
	length = strlen(c->stat);
	if (length + strlen(text) > 400)
		refuse("STAT", text, allowed);
	memcpy(c->stat + length, text, strlen(text) + 1);
	if (strcmp(text, "stderr") == 0 || strstr(text, "%p") != NULL)
		return;
	fd = open(c->stat, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		refuse("STAT", text, allowed);
	(void)close(fd);
}

static void read_signal(const char *text, struct shim_config *c)
{
	static const struct { const char *name; int number; } known[] = {
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP },
		{ "WINCH", SIGWINCH }, { "URG", SIGURG }, { "PWR", SIGPWR },
	};
	uint64_t number = 0;
	size_t i;

	if (strncmp(text, "SIG", 3) == 0 && text[3] >= 'A')
		text += 3;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(text, known[i].name) == 0)
			number = (uint64_t)known[i].number;
	if (number == 0 && (!parse_number(text, &number) || number < 34 || number > 64))
		refuse("SIGNAL", text, "USR1, USR2, HUP, WINCH, URG, PWR or 34 to 64");
	c->signal = (int)number;
}

bool shim_name_valid(const char *name)
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++)
		if (i >= SHIM_NAME - 1 || strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-", name[i]) == NULL)
			return false;
	return i > 0;
}

static void read_one(const char *name, const char *value, struct shim_config *c)
{
	static const char limit[] = "4K to 4096T (bytes, or with K, M, G, T), or max";

	if (strcmp(name, "MAX") == 0) {
		read_size(name, value, SHIM_PAGE, SIZE_TOP, true, limit, &c->max);
	} else if (strcmp(name, "HIGH") == 0) {
		read_size(name, value, SHIM_PAGE, SIZE_TOP, true, limit, &c->high);
	} else if (strcmp(name, "BATCH") == 0) {
		read_size(name, value, SHIM_PAGE, PCBATCH_STOCK_BATCH_MAX * SHIM_PAGE, false, "4K to 16M (bytes, or with K, M)",
			  &c->batch);
	} else if (strcmp(name, "GROUP") == 0) {
		if (!shim_name_valid(value))
			refuse(name, value, "1 to 47 of letters, digits and . _ : -");
		memcpy(c->group, value, strlen(value) + 1);
	} else if (strcmp(name, "STAT") == 0) {
		read_stat(value, c);
	} else if (strcmp(name, "SIGNAL") == 0) {
		read_signal(value, c);
	} else if (strcmp(name, "AUDIT") == 0) {
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			refuse(name, value, "yes or no");
		c->audit = value[0] == 'y';
	} else {
		shim_die(PREFIX, name, ": no such variable; there are " PREFIX, KNOWN);
	}
}

void shim_config_read(char **env, struct shim_config *c)
{
	char name[64];

	c->max = c->high = UINT64_MAX;
	c->batch = 64 * SHIM_PAGE;
	c->audit = true;
	for (; *env != NULL; env++) {
		const char *text = *env, *equals = strchr(text, '=');
		size_t length;

		if (strncmp(text, PREFIX, sizeof(PREFIX) - 1) != 0 || equals == NULL)
			continue;
		text += sizeof(PREFIX) - 1;
		length = (size_t)(equals - text);
		length = length < sizeof(name) ? length : sizeof(name) - 1;
		memcpy(name, text, length);
		name[length] = '\0';
		read_one(name, equals + 1, c);
	}
	if (c->signal != 0 && c->stat[0] == '\0')
		memcpy(c->stat, "stderr", sizeof("stderr"));
}
