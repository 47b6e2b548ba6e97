/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket/{stream,dgram}.c: flags and sizes of receiving, and what time-outs do to them, on darter's
 * sockets and on the kernel's (recv(2), socket(7), POSIX recvmsg; case S29 a to f; letter g, the
 * signals, is in tests/proof/interrupted.c).
 */
#include <sys/time.h>
#include <time.h>

#include "unit/both_nets.h"

#define WAITALL_MS	500
#define TIMEOUT_MS	200

struct ends {
	int rx;
	int tx;		/* connected to rx */
};

static struct ends
datagram_ends(struct net *n)
{
	struct ends e = { bound(n, SOCK_DGRAM), n->socket(AF_INET, SOCK_DGRAM, 0) };

	assert_int_equal(connect_to(n, e.tx, port_of(n, e.rx)), 0);
	return e;
}

static void
close_ends(struct net *n, struct ends e)
{
	n->close(e.rx);
	n->close(e.tx);
}

static void
set_rcvtimeo(struct net *n, int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	assert_int_equal(n->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

static int64_t
clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Not early, and not so late that something else must have ended it. */
static void
say_waited(struct net *n, int64_t since_ms, int wanted_ms)
{
	int64_t took_ms = clock_ms() - since_ms;

	say(n, "waited %s\n", took_ms < wanted_ms - 10 ? "too short" :
	    took_ms > wanted_ms + SOON_MS ? "too long" : "as asked");
}

static void
say_recvmsg(struct net *n, const char *what, int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_flags = -1 };

	say_result(n, what, n->recvmsg(fd, &m, flags | MSG_DONTWAIT));
	say(n, "  truncated %d\n", (m.msg_flags & MSG_TRUNC) != 0);
}

/* Case S29 a: the size of a datagram without taking it; what a short buffer leaves is lost */
static void
size_of_a_datagram(struct net *n)
{
	struct ends e = datagram_ends(n);
	char buf[2000] = { 0 };
	struct msghdr none = { .msg_iov = NULL, .msg_iovlen = 0 };

	n->send(e.tx, buf, 1028, 0);
	await(n, e.rx, POLLIN);
	say_recvmsg(n, "peek, no room", e.rx, buf, 0, MSG_PEEK | MSG_TRUNC);
	say_recvmsg(n, "again", e.rx, buf, 0, MSG_PEEK | MSG_TRUNC);
	say_result(n, "no vector", n->recvmsg(e.rx, &none, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT));
	say_result(n, "recv of 100", n->recv(e.rx, buf, 100, MSG_DONTWAIT));
	say_result(n, "the rest", n->recv(e.rx, buf, 2000, MSG_DONTWAIT));
	close_ends(n, e);
}

/* Case S29 b: 100 bytes into 10, the mark is set whoever asks for the length */
static void
truncation_is_marked(struct net *n)
{
	struct ends e = datagram_ends(n);
	char out[100], buf[10];
	unsigned i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = (char)('0' + i % 10);
	for (i = 0; i < 3; i++)
		n->send(e.tx, out, sizeof(out), 0);
	await(n, e.rx, POLLIN);
	say_recvmsg(n, "plain", e.rx, buf, sizeof(buf), 0);
	say(n, "%.10s\n", buf);
	await(n, e.rx, POLLIN);
	say_recvmsg(n, "with MSG_TRUNC", e.rx, buf, sizeof(buf), MSG_TRUNC);
	say(n, "%.10s\n", buf);
	await(n, e.rx, POLLIN);
	say_result(n, "recv with MSG_TRUNC", n->recv(e.rx, buf, sizeof(buf), MSG_TRUNC));
	n->send(e.tx, out, sizeof(buf), 0);
	await(n, e.rx, POLLIN);
	say_recvmsg(n, "one that fits", e.rx, buf, sizeof(buf), MSG_TRUNC);
	close_ends(n, e);
}

/* Case S29 c: an empty datagram is one: readable, in its place, and no end of file */
static void
empty_datagram(struct net *n)
{
	struct ends e = datagram_ends(n);
	struct pollfd p = { .fd = e.rx, .events = POLLIN };
	char buf[16];
	int i;

	n->send(e.tx, "", 0, 0);
	say_result(n, "poll", n->poll(&p, 1, SOON_MS));
	say_result(n, "alone", n->recv(e.rx, buf, sizeof(buf), MSG_DONTWAIT));
	n->send(e.tx, "12345", 5, 0);
	n->send(e.tx, "", 0, 0);
	n->send(e.tx, "54321", 5, 0);
	for (i = 0; i < 3; i++) {
		say_result(n, "poll", n->poll(&p, 1, SOON_MS));
		say_result(n, "recv", n->recv(e.rx, buf, sizeof(buf), 0));
	}
	say_result(n, "recv", n->recv(e.rx, buf, sizeof(buf), MSG_DONTWAIT));
	close_ends(n, e);
}

/*
 * Case S29 d: sizes of sending. 65,507 bytes leave in fragments, which wait for those: here what
 * is refused and what is small.
 */
static void
sizes_of_sending(struct net *n)
{
	struct ends e = datagram_ends(n);
	static char big[65536];
	static struct iovec many[1025];
	char buf[64];
	struct iovec iov[3] = { { big, 10 }, { big, 0 }, { big, 20 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 3 };
	int fd[2];

	say_result(n, "65508", n->send(e.tx, big, 65508, 0));
	say_result(n, "65536", n->send(e.tx, big, 65536, 0));
	say_result(n, "none", n->send(e.tx, big, 0, 0));
	await(n, e.rx, POLLIN);
	say_result(n, "recv", n->recv(e.rx, buf, sizeof(buf), 0));
	say_result(n, "three pieces", n->sendmsg(e.tx, &m, 0));
	await(n, e.rx, POLLIN);
	say_result(n, "recv", n->recv(e.rx, buf, sizeof(buf), 0));
	m.msg_iov = many;
	m.msg_iovlen = 1025;
	say_result(n, "1025 pieces", n->sendmsg(e.tx, &m, 0));
	say_result(n, "into 1025", n->recvmsg(e.rx, &m, MSG_DONTWAIT));
	m.msg_iovlen = 1024;
	say_result(n, "1024 empty ones", n->sendmsg(e.tx, &m, 0));
	connected_pair(n, fd);
	m.msg_iovlen = 1025;
	say_result(n, "1025 of a stream", n->sendmsg(fd[0], &m, 0));
	n->close(fd[0]);
	n->close(fd[1]);
	close_ends(n, e);
}

/* Puts n bytes where fd reads them, and waits until they are all there. */
static void
fill(struct net *n, int tx, int rx, size_t bytes)
{
	static char out[1000];
	int there = 0, i;

	assert_int_equal(n->send(tx, out, bytes, 0), (int)bytes);
	for (i = 0; i < SOON_MS && there < (int)bytes; i++) {
		assert_int_equal(n->ioctl(rx, FIONREAD, &there), 0);
		if (there < (int)bytes)
			usleep(1000);
	}
	assert_int_equal(there, (int)bytes);
}

/* Case S29 e: MSG_WAITALL with less than asked for: what ends the wait, and what is returned */
static void
waiting_for_all(struct net *n)
{
	static char buf[1000];
	int64_t since;
	int fd[2];

	connected_pair(n, fd);
	set_rcvtimeo(n, fd[1], WAITALL_MS);
	fill(n, fd[0], fd[1], 100);
	since = clock_ms();
	say_result(n, "time-out", n->recv(fd[1], buf, 1000, MSG_WAITALL));
	say_waited(n, since, WAITALL_MS);
	fill(n, fd[0], fd[1], 100);
	since = clock_ms();
	say_result(n, "without waiting", n->recv(fd[1], buf, 1000, MSG_WAITALL | MSG_DONTWAIT));
	say_waited(n, since, 0);
	fill(n, fd[0], fd[1], 100);
	say_result(n, "peek", n->recv(fd[1], buf, 100, MSG_PEEK | MSG_WAITALL));
	say_result(n, "peek for more", n->recv(fd[1], buf, 1000, MSG_PEEK | MSG_WAITALL));
	n->shutdown(fd[0], SHUT_WR);
	since = clock_ms();
	say_result(n, "end of file", n->recv(fd[1], buf, 1000, MSG_WAITALL));
	say_result(n, "behind it", n->recv(fd[1], buf, 1000, MSG_WAITALL));
	say_waited(n, since, 0);
	n->close(fd[0]);
	n->close(fd[1]);
}

/* Case S29 f: nothing comes within SO_RCVTIMEO */
static void
nothing_in_time(struct net *n)
{
	struct ends e = datagram_ends(n);
	int l = listener(n, 1), fd[2];
	int64_t since;
	char buf[8];

	connected_pair(n, fd);
	set_rcvtimeo(n, fd[1], TIMEOUT_MS);
	set_rcvtimeo(n, e.rx, TIMEOUT_MS);
	set_rcvtimeo(n, l, TIMEOUT_MS);
	since = clock_ms();
	say_result(n, "stream", n->recv(fd[1], buf, 8, 0));
	say_waited(n, since, TIMEOUT_MS);
	since = clock_ms();
	say_result(n, "datagrams", n->recv(e.rx, buf, 8, 0));
	say_waited(n, since, TIMEOUT_MS);
	since = clock_ms();
	say_result(n, "all of a datagram", n->recv(e.rx, buf, 8, MSG_WAITALL));
	say_waited(n, since, TIMEOUT_MS);
	since = clock_ms();
	say_ok(n, "accept", n->accept4(l, NULL, NULL, 0));
	say_waited(n, since, TIMEOUT_MS);
	n->close(l);
	n->close(fd[0]);
	n->close(fd[1]);
	close_ends(n, e);
}

/* Case S22 c, oracle: unread bytes and the peer's end are there, close resets all the same */
static void
close_with_unread_bytes_and_end(struct net *n)
{
	char buf[400];
	int fd[2];

	connected_pair(n, fd);
	fill(n, fd[0], fd[1], 1000);
	n->shutdown(fd[0], SHUT_WR);
	await(n, fd[1], POLLRDHUP);
	say_result(n, "recv", n->recv(fd[1], buf, 400, 0));
	n->close(fd[1]);
	await(n, fd[0], POLLHUP);
	say(n, "error %s\n", strerrorname_np(so_error(n, fd[0])));
	n->close(fd[0]);
}

/* Case S22 f, oracle: what comes behind shutdown(SHUT_RD) is taken without a reset */
static void
data_behind_shutdown(struct net *n)
{
	char buf[400] = { 0 };
	int fd[2];

	connected_pair(n, fd);
	say_ok(n, "shutdown", n->shutdown(fd[1], SHUT_RD));
	say_result(n, "end", n->recv(fd[1], buf, 400, 0));
	say_result(n, "send", n->send(fd[0], buf, 100, 0));
	usleep(NEVER_MS * 1000);
	say_result(n, "send", n->send(fd[0], buf, 100, 0));
	say(n, "error %d\n", so_error(n, fd[0]));
	say_result(n, "the other way", n->send(fd[1], buf, 100, 0));
	await(n, fd[0], POLLIN);
	say_result(n, "recv", n->recv(fd[0], buf, 400, 0));
	n->close(fd[0]);
	n->close(fd[1]);
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

BOTH(size_of_a_datagram_can_be_asked_for, size_of_a_datagram)
BOTH(truncation_is_marked_with_and_without_msg_trunc, truncation_is_marked)
BOTH(empty_datagrams_keep_their_place, empty_datagram)
BOTH(sizes_of_sending_are_the_kernels, sizes_of_sending)
BOTH(waitall_returns_what_there_is_when_the_wait_ends, waiting_for_all)
BOTH(receive_time_out_is_eagain, nothing_in_time)
BOTH(close_with_unread_bytes_resets_behind_the_end_too, close_with_unread_bytes_and_end)
BOTH(data_behind_shutdown_for_reading_resets_nothing, data_behind_shutdown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_of_a_datagram_can_be_asked_for),
		cmocka_unit_test(truncation_is_marked_with_and_without_msg_trunc),
		cmocka_unit_test(empty_datagrams_keep_their_place),
		cmocka_unit_test(sizes_of_sending_are_the_kernels),
		cmocka_unit_test(waitall_returns_what_there_is_when_the_wait_ends),
		cmocka_unit_test(receive_time_out_is_eagain),
		cmocka_unit_test(close_with_unread_bytes_resets_behind_the_end_too),
		cmocka_unit_test(data_behind_shutdown_for_reading_resets_nothing),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
