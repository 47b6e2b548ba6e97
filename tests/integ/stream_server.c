/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams over darter whose every byte is accounted for: the peer sends one command line, then
 *
 *	sink		the peer writes until its end of stream; answer: "BYTES SHA256\n"
 *	source N SEED	N bytes of the generator, then "SHA256\n"
 *	echo		every byte comes back until the peer's end of stream; then "SHA256\n"
 *
 * A thread a connection, blocking calls: what most programs do. The listener is closed by the main
 * thread to end the accepting one, which darter_close() promises to wake.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <darter/socket.h>

#include "prog.h"
#include "sha256.h"

#define BUF_BYTES	(128u << 10)
#define LINE_BYTES	128

static atomic_uint n_accepted, n_served, n_failed, n_open;

/* xorshift64*: cheap, and no two places of a stream alike. */
static void
fill(uint8_t *buf, size_t len, uint64_t *state)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v;

		*state ^= *state >> 12;
		*state ^= *state << 25;
		*state ^= *state >> 27;
		v = *state * UINT64_C(0x2545f4914f6cdd1d);
		memcpy(buf + i, &v, len - i < 8 ? len - i : 8);
	}
}

static bool
send_all(int fd, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = darter_send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool
read_line(int fd, char line[LINE_BYTES])
{
	for (size_t n = 0; n < LINE_BYTES; n++) {
		if (darter_recv(fd, line + n, 1, 0) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

/* Reads to the end of the stream, sends everything back when asked to. */
static bool
drain(int fd, uint8_t *buf, bool is_echo)
{
	struct sha256 sha;
	char hex[SHA256_HEX_SIZE], answer[LINE_BYTES];
	uint64_t total = 0;
	ssize_t n;

	sha256_init(&sha);
	while ((n = darter_recv(fd, buf, BUF_BYTES, 0)) > 0) {
		sha256_add(&sha, buf, (size_t)n);
		total += (uint64_t)n;
		if (is_echo && !send_all(fd, buf, (size_t)n))
			return false;
	}
	if (n < 0)
		return false;
	sha256_hex(&sha, hex);
	if (is_echo)
		snprintf(answer, sizeof(answer), "%s\n", hex);
	else
		snprintf(answer, sizeof(answer), "%llu %s\n", (unsigned long long)total, hex);
	return send_all(fd, answer, strlen(answer));
}

static bool
produce(int fd, uint8_t *buf, uint64_t total, uint64_t seed)
{
	struct sha256 sha;
	char hex[SHA256_HEX_SIZE + 1];
	uint64_t state = seed;

	sha256_init(&sha);
	while (total > 0) {
		size_t n = total < BUF_BYTES ? (size_t)total : BUF_BYTES;

		fill(buf, n, &state);
		sha256_add(&sha, buf, n);
		if (!send_all(fd, buf, n))
			return false;
		total -= n;
	}
	sha256_hex(&sha, hex);
	strcat(hex, "\n");
	return send_all(fd, hex, strlen(hex));
}

static bool
serve(int fd, uint8_t *buf)
{
	char line[LINE_BYTES];
	unsigned long long total, seed;

	if (!read_line(fd, line))
		return false;
	if (strcmp(line, "sink") == 0 || strcmp(line, "echo") == 0)
		return drain(fd, buf, line[0] == 'e');
	if (sscanf(line, "source %llu %llu", &total, &seed) == 2 && seed != 0)
		return produce(fd, buf, total, seed);
	return false;
}

static void *
connection_main(void *arg)
{
	int fd = (int)(intptr_t)arg;
	uint8_t *buf = malloc(BUF_BYTES);

	if (buf != NULL && serve(fd, buf)) {
		atomic_fetch_add(&n_served, 1);
	} else {
		warn("connection");
		atomic_fetch_add(&n_failed, 1);
	}
	free(buf);
	darter_close(fd);
	atomic_fetch_sub(&n_open, 1);
	return NULL;
}

static void *
accept_main(void *arg)
{
	int listener = *(int *)arg;
	pthread_t thread;
	int fd;

	while ((fd = darter_accept(listener, NULL, NULL)) >= 0) {
		atomic_fetch_add(&n_accepted, 1);
		atomic_fetch_add(&n_open, 1);
		if (pthread_create(&thread, NULL, connection_main, (void *)(intptr_t)fd) != 0)
			errx(1, "no thread for a connection");
		pthread_detach(thread);
	}
	if (errno != EBADF)
		warn("accept ended");
	return NULL;
}

static void
report(FILE *out)
{
	fprintf(out, "report accepted %u\nreport served %u\nreport failed %u\nreport open %u\n",
	    n_accepted, n_served, n_failed, n_open);
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	int listener;

	prog_parse(argc, argv);
	prog.report = report;
	prog_open();
	listener = prog_listen(128);
	if (pthread_create(&thread, NULL, accept_main, &listener) != 0)
		errx(1, "no thread");
	printf("listening on port %u\n", prog.port);
	prog_wait();
	darter_close(listener);
	pthread_join(thread, NULL);
	for (int i = 0; i < 200 && n_open > 0; i++)
		usleep(10000);
	prog_close();
	return n_failed == 0 ? 0 : 1;
}
