/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: load memcached PORT CONNECTIONS REQUESTS VALUE_BYTES
 *        load http PORT CONNECTIONS REQUESTS PATH
 *        load cpu FILE COMMAND...
 * Loads a server on loopback: a request on every connection, then every reply. Prints what came back in one line, with a
 * hash that is the same whenever the replies are. cpu runs a command and writes its CPU time, children included, in ns.
 * Exit status: 0, also when the server answered with errors; 1 when it hung up or does not answer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 500
#define KEYS 200 /* of a connection */
#define BUFFER (1 << 20)

struct conn {
	int fd;
	size_t have, used; /* bytes in in[], and of those given out */
	char in[65536];
};

static struct conn *conns;
static char out[BUFFER];
static uint64_t hash = 14695981039346656037u, errors, bytes;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void hash_in(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)p[i]) * 1099511628211u;
	bytes += n;
}

static void open_conn(struct conn *c, int port)
{
	struct sockaddr_in to;

	memset(&to, 0, sizeof(to));
	to.sin_family = AF_INET;
	to.sin_port = htons((uint16_t)port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		die("load: connect");
}

static void send_all(struct conn *c, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = send(c->fd, p, n, MSG_NOSIGNAL);

		if (done <= 0)
			die("load: send");
		p += done;
		n -= (size_t)done;
	}
}

static void fill(struct conn *c)
{
	ssize_t n;

	if (c->used < c->have)
		return;
	c->used = c->have = 0;
	n = recv(c->fd, c->in, sizeof(c->in), 0);
	if (n <= 0)
		die("load: the server hung up");
	c->have = (size_t)n;
}

static void get_line(struct conn *c, char *line, size_t size)
{
	size_t n = 0;

	do {
		fill(c);
		line[n++] = c->in[c->used++];
	} while (line[n - 1] != '\n' && n < size - 1);
	line[n] = '\0';
}

static void get_bytes(struct conn *c, size_t n)
{
	while (n > 0) {
		size_t part;

		fill(c);
		part = c->have - c->used < n ? c->have - c->used : n;
		hash_in(c->in + c->used, part);
		c->used += part;
		n -= part;
	}
}

/* ------------------------------------------------------------------ protocols */

/* Each connection has keys of its own, so that replies don't depend on the server's order. One set to three gets. */
static void memcached_ask(int number, long request, size_t size)
{
	int key = (int)((request / 4) % KEYS), n;

	if (request % 4 != 0) {
		n = snprintf(out, sizeof(out), "get k%d-%d\r\n", number, key);
	} else {
		n = snprintf(out, sizeof(out), "set k%d-%d 0 0 %zu\r\n", number, key, size);
		memset(out + n, 'a' + (int)(request / 4 % 26), size);
		memcpy(out + n + size, "\r\n", 2);
		n += (int)size + 2;
	}
	send_all(&conns[number], out, (size_t)n);
}

static void memcached_reply(int number)
{
	char line[256];
	size_t size;

	get_line(&conns[number], line, sizeof(line));
	if (sscanf(line, "VALUE %*s %*u %zu", &size) == 1) {
		get_bytes(&conns[number], size + 2);
		get_line(&conns[number], line, sizeof(line));
	}
	if (strstr(line, "ERROR") != NULL)
		errors++;
	hash_in(line, strlen(line));
}

static void http_ask(int number, const char *path)
{
	int n = snprintf(out, sizeof(out), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);

	send_all(&conns[number], out, (size_t)n);
}

static void http_reply(int number)
{
	char line[1024];
	size_t size = 0;
	int status = 0;

	do {
		get_line(&conns[number], line, sizeof(line));
		(void)sscanf(line, "HTTP/1.1 %d", &status);
		(void)sscanf(line, "Content-Length: %zu", &size);
	} while (strcmp(line, "\r\n") != 0);
	if (status != 200)
		errors++;
	get_bytes(&conns[number], size);
}

static int cpu(const char *file, char **command)
{
	struct rusage r;
	int status = 0;
	FILE *f;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || getrusage(RUSAGE_CHILDREN, &r) != 0)
		die("load: cpu");
	f = fopen(file, "w");
	if (f == NULL)
		die(file);
	fprintf(f, "%lld\n", ((long long)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000);
	fclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int memcached = argc == 6 && strcmp(argv[1], "memcached") == 0, http = argc == 6 && strcmp(argv[1], "http") == 0;
	int n = argc == 6 ? atoi(argv[3]) : 0;
	long requests = argc == 6 ? atol(argv[4]) : 0;
	size_t size = memcached ? (size_t)atol(argv[5]) : 0;

	if (argc >= 4 && strcmp(argv[1], "cpu") == 0)
		return cpu(argv[2], argv + 3);
	if ((!memcached && !http) || n < 1 || n > CONNECTIONS_MAX || requests < 1 || size > BUFFER / 2) {
		fprintf(stderr, "usage: load memcached|http PORT CONNECTIONS REQUESTS BYTES|PATH\n       load cpu FILE COMMAND...\n");
		return 2;
	}
	conns = calloc((size_t)n, sizeof(*conns));
	if (conns == NULL)
		die("load");
	for (int i = 0; i < n; i++)
		open_conn(&conns[i], atoi(argv[2]));
	for (long r = 0; r * n < requests; r++) {
		for (int i = 0; i < n; i++) {
			if (memcached)
				memcached_ask(i, r, size);
			else
				http_ask(i, argv[5]);
		}
		for (int i = 0; i < n; i++) {
			if (memcached)
				memcached_reply(i);
			else
				http_reply(i);
		}
	}
	printf("%ld requests, %llu bytes, %llu errors, hash %016llx\n", (requests + n - 1) / n * n, (unsigned long long)bytes,
	       (unsigned long long)errors, (unsigned long long)hash);
	return 0;
}
