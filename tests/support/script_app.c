/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application of a script: calls of the public library on non-blocking sockets. On a manual
 * stack a call is made while holding netisr 0, so what it asks for happens at once or in the rounds
 * that follow; nothing here can sleep.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "runtime/netisr.h"

#include "fuzz/fuzz_ops.h"
#include "support/record.h"
#include "support/script.h"
#include "support/script_priv.h"

#define IO_MAX_BYTES (8 << 20)

static struct sockaddr_in
make_addr(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(addr),
	};
}

static void
enter(struct teststack *ts)
{
	assert_true(netisr_take(ts->s->netisr[0]));
}

/* Lets go and runs what the call has started; errno survives. */
static void
leave(struct teststack *ts)
{
	int saved = errno;

	netisr_give(ts->s->netisr[0]);
	teststack_run(ts);
	errno = saved;
}

static void
begin(struct script *s, struct place at)
{
	s->place = at;
	script_mark(s);
	enter(&s->ts);
}

static void
end(struct script *s)
{
	leave(&s->ts);
}

static const char *
error_name(int e)
{
	return e == 0 ? "success" : strerrorname_np(e);
}

/* rc and errno of a call against the errno that the script wants; 0 wants success. */
static void
check_result(struct script *s, const char *call, int64_t rc, int got_errno, int want_errno)
{
	if (rc >= 0)
		got_errno = 0;
	if (got_errno != want_errno)
		script_fail(s, "%s: wanted %s\n   got %s", call, error_name(want_errno),
		    error_name(got_errno));
}

/* ---- on any test stack ---- */

int
script_socket(struct teststack *ts, int type)
{
	int fd;

	enter(ts);
	fd = darter_socket(AF_INET, type | SOCK_NONBLOCK, 0);
	leave(ts);
	if (fd < 0)
		fail_msg("darter_socket: %s", strerror(errno));
	return fd;
}

int
script_listen_on(struct teststack *ts, uint16_t port)
{
	struct sockaddr_in a = make_addr(INADDR_ANY, port);
	int fd = script_socket(ts, SOCK_STREAM), rc;

	enter(ts);
	rc = darter_bind(fd, (const struct sockaddr *)&a, sizeof(a));
	if (rc == 0)
		rc = darter_listen(fd, 128);
	leave(ts);
	if (rc != 0)
		fail_msg("bind and listen on port %u: %s", port, strerror(errno));
	return fd;
}

int
script_connect_on(struct teststack *ts, int fd, uint16_t lport, uint32_t addr, uint16_t fport)
{
	struct sockaddr_in local = make_addr(INADDR_ANY, lport), peer = make_addr(addr, fport);
	int rc = 0;

	enter(ts);
	if (lport != 0)
		rc = darter_bind(fd, (const struct sockaddr *)&local, sizeof(local));
	if (rc == 0)
		rc = darter_connect(fd, (const struct sockaddr *)&peer, sizeof(peer));
	leave(ts);
	return rc == 0 ? 0 : errno;
}

void
script_close_fd(struct teststack *ts, int fd)
{
	enter(ts);
	darter_close(fd);
	leave(ts);
}

/* ---- opening ---- */

void
script_app_listens(struct script *s, struct place at, int backlog, int rcvbuf)
{
	struct sockaddr_in a = make_addr(INADDR_ANY, SCRIPT_LISTEN_PORT);
	int fd, rc, on = 1;

	s->place = at;
	script_aim_isn(s, false);
	fd = script_socket(&s->ts, SOCK_STREAM);
	begin(s, at);
	darter_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (rcvbuf != 0)
		darter_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	rc = darter_bind(fd, (const struct sockaddr *)&a, sizeof(a));
	if (rc == 0)
		rc = darter_listen(fd, backlog);
	end(s);
	check_result(s, "bind and listen", rc, errno, 0);
	s->lfd = fd;
}

void
script_app_accepts(struct script *s, struct place at, int want_errno)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);
	int fd;

	record_call(s, FUZZ_ACCEPT, 0);
	begin(s, at);
	fd = darter_accept4(s->lfd, (struct sockaddr *)&a, &len, SOCK_NONBLOCK);
	end(s);
	if (fd >= 0)
		s->c->fd = fd;
	check_result(s, "accept", fd, errno, want_errno);
	if (fd >= 0 &&
	    (ntohl(a.sin_addr.s_addr) != s->c->faddr || ntohs(a.sin_port) != s->c->fport))
		script_fail(s,
		    "accept: wanted the connection from port %u\n   got the one from port %u",
		    s->c->fport, ntohs(a.sin_port));
}

void
script_app_connects(struct script *s, struct place at, uint32_t addr, int want_errno)
{
	struct conn *c = s->c;
	unsigned i = (unsigned)(c - s->conns);
	bool is_new = c->fd < 0;
	int rc;

	s->place = at;
	if (is_new) {
		script_aim_isn(s, true);
		c->fd = script_socket(&s->ts, SOCK_STREAM);
		c->lport = (uint16_t)(SCRIPT_ACTIVE_LPORT + i);
		c->fport = (uint16_t)(SCRIPT_ACTIVE_FPORT + i);
		c->faddr = addr;
	}
	record_call(s, FUZZ_CONNECT, 0);
	script_mark(s);
	rc = script_connect_on(&s->ts, c->fd, is_new ? c->lport : 0, addr, c->fport);
	check_result(s, "connect", rc == 0 ? 0 : -1, rc, want_errno);
}

/* ---- data ---- */

void
script_app_writes(struct script *s, struct place at, int64_t bytes, int flags)
{
	struct conn *c = s->c;
	uint8_t *buf;
	int64_t i;
	ssize_t rc;

	assert_true(bytes > 0 && bytes <= IO_MAX_BYTES);
	buf = malloc((size_t)bytes);
	assert_non_null(buf);
	for (i = 0; i < bytes; i++)
		buf[i] = script_pattern(1, c->app_wr + i);
	record_call(s, FUZZ_WRITE, (unsigned)bytes);
	begin(s, at);
	rc = darter_send(c->fd, buf, (size_t)bytes, MSG_NOSIGNAL | flags);
	end(s);
	free(buf);
	check_result(s, "send", rc, errno, 0);
	if (rc != bytes)
		script_fail(s, "send: wanted %" PRId64 " bytes taken\n   got %zd", bytes, rc);
	c->app_wr += rc;
}

void
script_app_write_fails(struct script *s, struct place at, int want_errno)
{
	ssize_t rc;

	begin(s, at);
	rc = darter_send(s->c->fd, "x", 1, MSG_NOSIGNAL);
	end(s);
	check_result(s, "send", rc, errno, want_errno);
}

void
script_app_reads(struct script *s, struct place at, int64_t bytes)
{
	struct conn *c = s->c;
	uint8_t *buf;
	int64_t i;
	ssize_t rc;

	assert_true(bytes > 0 && bytes <= IO_MAX_BYTES);
	buf = malloc((size_t)bytes);
	assert_non_null(buf);
	record_call(s, FUZZ_READ, (unsigned)bytes);
	begin(s, at);
	rc = darter_recv(c->fd, buf, (size_t)bytes, 0);
	end(s);
	if (rc >= 0 && rc != bytes)
		script_fail(s, "recv: wanted %" PRId64 " bytes\n   got %zd", bytes, rc);
	check_result(s, "recv", rc, errno, 0);
	for (i = 0; i < bytes; i++)
		if (buf[i] != script_pattern(0, c->app_rd + i))
			script_fail(s,
			    "recv: wrong byte at stream position %" PRId64
			    ": wanted 0x%02x, got 0x%02x",
			    c->app_rd + i, script_pattern(0, c->app_rd + i), buf[i]);
	c->app_rd += bytes;
	free(buf);
}

void
script_app_reads_eof(struct script *s, struct place at)
{
	uint8_t b;
	ssize_t rc;

	record_call(s, FUZZ_READ, 1);
	begin(s, at);
	rc = darter_recv(s->c->fd, &b, 1, 0);
	end(s);
	if (rc > 0)
		script_fail(s, "recv: wanted the end of the stream\n   got a byte more");
	check_result(s, "recv", rc, errno, 0);
}

void
script_app_read_fails(struct script *s, struct place at, int want_errno)
{
	uint8_t b;
	ssize_t rc;

	begin(s, at);
	rc = darter_recv(s->c->fd, &b, 1, 0);
	end(s);
	if (rc >= 0)
		script_fail(s, "recv: wanted %s\n   got %zd bytes", error_name(want_errno), rc);
	check_result(s, "recv", rc, errno, want_errno);
}

int
script_queued_out(struct script *s)
{
	int queued = -1;

	enter(&s->ts);
	if (darter_ioctl(s->c->fd, TIOCOUTQ, &queued) != 0)
		queued = -1;
	leave(&s->ts);
	return queued;
}

/* ---- closing, options, readiness ---- */

void
script_app_closes(struct script *s, struct place at)
{
	int rc;

	record_call(s, FUZZ_CLOSE, 0);
	begin(s, at);
	rc = darter_close(s->c->fd);
	end(s);
	s->c->fd = -1;
	check_result(s, "close", rc, errno, 0);
}

void
script_app_dups(struct script *s, struct place at)
{
	begin(s, at);
	s->dup_fd = darter_dup(s->c->fd);
	end(s);
	check_result(s, "dup", s->dup_fd, errno, 0);
}

void
script_app_takes_dup(struct script *s, struct place at)
{
	s->place = at;
	assert_true(s->c->fd < 0 && s->dup_fd >= 0);
	s->c->fd = s->dup_fd;
	s->dup_fd = -1;
}

void
script_app_closes_listener(struct script *s, struct place at)
{
	int rc;

	begin(s, at);
	rc = darter_close(s->lfd);
	end(s);
	s->lfd = -1;
	check_result(s, "close of the listener", rc, errno, 0);
}

void
script_app_shutdown(struct script *s, struct place at, int how, int want_errno)
{
	int rc;

	record_call(s, FUZZ_SHUTDOWN, (unsigned)how);
	begin(s, at);
	rc = darter_shutdown(s->c->fd, how);
	end(s);
	check_result(s, "shutdown", rc, errno, want_errno);
}

void
script_app_sets(
    struct script *s, struct place at, int level, int name, const void *val, socklen_t len)
{
	int rc;

	record_option(s, level, name, *(const int *)val);
	begin(s, at);
	rc = darter_setsockopt(s->c->fd >= 0 ? s->c->fd : s->lfd, level, name, val, len);
	end(s);
	check_result(s, "setsockopt", rc, errno, 0);
}

void
script_app_so_error(struct script *s, struct place at, int want)
{
	socklen_t len = sizeof(int);
	int e = -1, rc;

	begin(s, at);
	rc = darter_getsockopt(s->c->fd >= 0 ? s->c->fd : s->ufd, SOL_SOCKET, SO_ERROR, &e, &len);
	end(s);
	check_result(s, "getsockopt SO_ERROR", rc, errno, 0);
	if (e != want)
		script_fail(s, "SO_ERROR: wanted %s\n   got %s", error_name(want), error_name(e));
}

void
script_app_polls(struct script *s, struct place at, int want_events)
{
	struct pollfd p = { .events = POLLIN | POLLOUT | POLLRDHUP };
	int rc;

	p.fd = s->c->fd >= 0 ? s->c->fd : s->ufd >= 0 ? s->ufd : s->lfd;
	begin(s, at);
	rc = darter_poll(&p, 1, 0);
	end(s);
	check_result(s, "poll", rc, errno, 0);
	if (p.revents != want_events)
		script_fail(s, "poll: wanted events 0x%x\n   got 0x%x", want_events, p.revents);
}

/* ---- UDP ---- */

static void
udp_open(struct script *s)
{
	if (s->ufd < 0)
		s->ufd = script_socket(&s->ts, SOCK_DGRAM);
}

void
script_app_udp_bind(struct script *s, struct place at, uint16_t port)
{
	struct sockaddr_in a = make_addr(INADDR_ANY, port);
	int rc;

	udp_open(s);
	begin(s, at);
	rc = darter_bind(s->ufd, (const struct sockaddr *)&a, sizeof(a));
	end(s);
	check_result(s, "bind", rc, errno, 0);
}

void
script_app_udp_connect(
    struct script *s, struct place at, uint32_t addr, uint16_t port, int want_errno)
{
	struct sockaddr_in a = make_addr(addr, port);
	int rc;

	udp_open(s);
	begin(s, at);
	rc = darter_connect(s->ufd, (const struct sockaddr *)&a, sizeof(a));
	end(s);
	check_result(s, "connect", rc, errno, want_errno);
}

void
script_app_udp_sends(
    struct script *s, struct place at, uint32_t addr, uint16_t port, int64_t len, int want_errno)
{
	struct sockaddr_in a = make_addr(addr, port);
	uint8_t *buf = malloc((size_t)len + 1);
	int64_t i;
	ssize_t rc;

	assert_non_null(buf);
	udp_open(s);
	for (i = 0; i < len; i++)
		buf[i] = script_pattern(1, i);
	record_call(s, FUZZ_UDP_SEND, (unsigned)len);
	begin(s, at);
	rc = darter_sendto(s->ufd, buf, (size_t)len, MSG_NOSIGNAL,
	    addr != 0 ? (const struct sockaddr *)&a : NULL, addr != 0 ? sizeof(a) : 0);
	end(s);
	free(buf);
	check_result(s, "sendto", rc, errno, want_errno);
	if (rc >= 0 && rc != len)
		script_fail(s, "sendto: wanted %" PRId64 "\n   got %zd", len, rc);
}

void
script_app_udp_reads(struct script *s, struct place at, int64_t want_len)
{
	static uint8_t buf[65536];
	ssize_t rc;
	int64_t i;

	record_call(s, FUZZ_UDP_READ, 0);
	begin(s, at);
	rc = darter_recv(s->ufd, buf, sizeof(buf), 0);
	end(s);
	check_result(s, "recv", rc, errno, 0);
	if (rc != want_len)
		script_fail(
		    s, "recv: wanted a datagram of %" PRId64 " bytes\n   got %zd", want_len, rc);
	for (i = 0; i < rc; i++)
		if (buf[i] != script_pattern(0, i))
			script_fail(s, "recv: wrong byte at %" PRId64 " of the datagram", i);
}

void
script_app_udp_read_fails(struct script *s, struct place at, int want_errno)
{
	uint8_t b[16];
	ssize_t rc;

	begin(s, at);
	rc = darter_recv(s->ufd, b, sizeof(b), 0);
	end(s);
	if (rc >= 0)
		script_fail(s, "recv: wanted %s\n   got %zd bytes", error_name(want_errno), rc);
	check_result(s, "recv", rc, errno, want_errno);
}

void
script_app_udp_rcvbuf(struct script *s, struct place at, int bytes)
{
	int rc;

	begin(s, at);
	rc = darter_setsockopt(s->ufd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	end(s);
	check_result(s, "setsockopt SO_RCVBUF", rc, errno, 0);
}

void
script_udp_send_on(struct script *s, uint32_t addr, uint16_t port, uint32_t len)
{
	static uint8_t buf[65536];
	struct sockaddr_in a = make_addr(addr, port);

	enter(&s->ts);
	darter_sendto(s->ufd, buf, len, MSG_NOSIGNAL, (const struct sockaddr *)&a, sizeof(a));
	leave(&s->ts);
}
