/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - statistics as text, "key value" a line like memory.stat: at exit, on the
 * signal, and when the first request is refused. No stdio and no memory: all but the
 * heap walk and the allocator's own figures may run in a signal handler.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

/* One write for a whole report, so that processes that share the file don't mix; more only when there are many groups. */
static char text[65536];
static size_t length;
static int out_fd;
static int busy;
static uint64_t refusals;
static size_t refused_bytes;

static void flush(void)
{
	size_t done = 0;
	ssize_t n;

	while (done < length) {
		n = write(out_fd, text + done, length - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	length = 0;
}

static void put(const char *s)
{
	size_t n = strlen(s);

	if (n > sizeof(text) - length)
		flush();
	memcpy(text + length, s, n);
	length += n;
}

static char *digits(uint64_t value, char *end)
{
	*--end = '\0';
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	return end;
}

static void put_number(uint64_t value)
{
	char number[24];

	put(digits(value, number + sizeof(number)));
}

static void line(const char *key, uint64_t value)
{
	put(key);
	put(" ");
	put_number(value);
	put("\n");
}

static void line_signed(const char *key, int64_t value)
{
	put(key);
	put(value < 0 ? " -" : " ");
	put_number(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
	put("\n");
}

static void line_limit(const char *key, size_t value)
{
	if (value != MALLOC_GROUP_NO_LIMIT) {
		line(key, value);
		return;
	}
	put(key);
	put(" max\n");
}

void shim_die(const char *a, const char *b, const char *c, const char *d)
{
	const char *part[] = { "pcbatch-malloc: ", a, b, c, d, "\n" };
	size_t i, n;

	out_fd = 2;
	length = 0;
	for (i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		n = strlen(part[i]);
		n = n > 512 ? 512 : n;
		memcpy(text + length, part[i], n);
		length += n;
	}
	flush();
	_exit(2);
}

/* ------------------------------------------------------------------- contents */

static void put_comm(void)
{
	char comm[64];
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, comm, sizeof(comm) - 1);

	if (fd >= 0)
		(void)close(fd);
	while (n > 0 && comm[n - 1] == '\n')
		n--;
	comm[n > 0 ? n : 0] = '\0';
	put(comm[0] != '\0' ? comm : "-");
}

/* What the allocator says it has handed out: glibc counts its headers and what threads' caches keep, too. */
static void put_allocator(void)
{
	int (*ctl)(const char *, void *, size_t *, void *, size_t);
	struct mallinfo2 (*info)(void);
	void *f = dlsym(RTLD_NEXT, "mallctl"), *g = dlsym(RTLD_NEXT, "mallinfo2");
	uint64_t epoch = 1;
	size_t bytes = 0, size = sizeof(bytes);
	struct mallinfo2 m;

	memcpy(&ctl, &f, sizeof(f));
	memcpy(&info, &g, sizeof(g));
	if (strstr(shim_real.path, "jemalloc") != NULL && ctl != NULL) {
		(void)ctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
		if (ctl("stats.allocated", &bytes, &size, NULL, 0) == 0)
			line("allocator.allocated", bytes);
	} else if (strstr(shim_real.path, "libc.so") != NULL && info != NULL) {
		m = info();
		line("allocator.uordblks", m.uordblks);
		line("allocator.hblkhd", m.hblkhd);
		line("allocator.hblks", m.hblks);
	}
}

static void put_process(const char *why)
{
	struct pcbatch_stock_info info;

	put("pcbatch-malloc ");
	put_number((uint64_t)getpid());
	put(" ");
	put_comm();
	put(" ");
	put(why);
	put("\nallocator ");
	put(shim_real.path);
	put("\nbackend ");
	put(pcbatch_backend_name(pcbatch_domain_backend(&shim_domain)));
	put("\n");
	line("cpus", pcbatch_domain_cpus(&shim_domain));
	line("bound", shim_bound());
	(void)pcbatch_stock_info_read(&shim_domain, &info);
	line("hits", info.hits);
	line("misses", info.misses);
	line("evictions", info.evictions);
	line("direct", info.direct);
	line("drains", info.drains);
	line("trims", info.trims);
	line("aborts", info.aborts);
	line("early", shim_early());
	line("foreign_frees", shim_foreign_frees());
	line("refused_calls", __atomic_load_n(&refusals, __ATOMIC_RELAXED));
	line("refused_bytes", refused_bytes);
}

static struct shim_tally tally[SHIM_GROUPS];

static void put_group(uint32_t id)
{
	struct malloc_group_info info;
	struct pcbatch_group *g = shim_group[id];

	if (shim_group_info((int)id, &info) != 0)
		return;
	put("group ");
	put(info.name);
	put(" ");
	put(info.parent < 0 ? "-" : shim_names[info.parent].text);
	put("\n");
	line("bytes", info.bytes > tally[id].rest ? info.bytes - tally[id].rest : 0);
	line("peak", info.peak);
	line_limit("max", info.max);
	line_limit("high", info.high);
	line("events.high", info.events_high);
	line("events.max", info.events_max);
	line("events.refused", info.refused);
	line("events.forced", pcbatch_group_event(g, PCBATCH_EVENT_FORCED));
	line("failcnt", info.failcnt);
	line("underflow", pcbatch_group_underflow(g));
}

static bool put_audited(uint32_t id, const struct malloc_group_found *a, void *ctx)
{
	(void)ctx;
	if (id == 0)
		shim_tally(tally);
	if (id == 1 && shim_group[1] == shim_group[0])
		return true;
	put_group(id);
	line("blocks", a->blocks);
	line("blocks.bytes", a->bytes);
	line_signed("audit.difference", a->difference);
	return true;
}

static void put_groups(bool walk)
{
	uint32_t i;

	if (walk && shim_config.audit && shim_audit_all(put_audited, NULL) == 0)
		return;
	(void)pcbatch_stock_drain_all(&shim_domain);
	shim_tally(tally);
	for (i = 0; i < shim_groups; i++)
		if (shim_group[i] != NULL && !(i == 1 && shim_group[1] == shim_group[0]))
			put_group(i);
}

/* ------------------------------------------------------------------ when, where */

static int open_stat(void)
{
	char path[512], number[24];
	const char *mark = strstr(shim_config.stat, "%p"), *pid = digits((uint64_t)getpid(), number + sizeof(number));

	if (strcmp(shim_config.stat, "stderr") == 0)
		return 2;
	if (mark == NULL)
		return open(shim_config.stat, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	memcpy(path, shim_config.stat, (size_t)(mark - shim_config.stat));
	path[mark - shim_config.stat] = '\0';
	strcat(strcat(path, pid), mark + 2);
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

void shim_report(const char *why, bool walk)
{
	int saved = errno, expected = 0;

	if (shim_config.stat[0] == '\0')
		return;
	/* Whom a signal handler interrupts, or another thread, is just writing: theirs will do. At the end it has to wait. */
	while (!__atomic_compare_exchange_n(&busy, &expected, (int)getpid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (!walk && expected == (int)getpid())
			return;
		if (expected != (int)getpid()) /* forked in the middle of it */
			__atomic_store_n(&busy, 0, __ATOMIC_RELAXED);
		expected = 0;
	}
	out_fd = open_stat();
	if (out_fd >= 0) {
		length = 0;
		put_process(why);
		if (walk)
			put_allocator();
		put_groups(walk);
		put("\n");
		flush();
		if (out_fd != 2)
			(void)close(out_fd);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	errno = saved;
}

void shim_refused(uint32_t id, size_t bytes)
{
	(void)id;
	if (__atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED) != 0)
		return;
	refused_bytes = bytes;
	shim_report("refusal", false);
}

static void on_signal(int number)
{
	(void)number;
	shim_report("signal", false);
}

void shim_signal_start(void)
{
	struct sigaction action;

	if (shim_config.signal == 0)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART | SA_ONSTACK;
	(void)sigaction(shim_config.signal, &action, NULL);
}
