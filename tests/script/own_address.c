/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Client and server in one process: the own address, 127/8, 0.0.0.0, a socket connected to itself
 * (RFC 1122 3.2.1.3(g), RFC 9293 3.5; case S04). The device of the scene sees all that leaves: each
 * script ends with the harness's look at it, so nothing may.
 *
 * The virtual clock stands still in a bulk transfer: whatever waits for a timer there, a delayed
 * ACK or a window update that does not come by itself, is a stall and shows as one.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <darter/socket.h>

#include "runtime/netisr.h"
#include "support/script.h"

#define LOCAL_IP	UINT32_C(0x7f000001)
#define LOCAL_IP_2	UINT32_C(0x7f010203)	/* 127.1.2.3 */

static struct sockaddr_in
at(uint32_t ip, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(ip) };
}

static void
hold(struct script *s)
{
	assert_true(netisr_take(s->ts.s->netisr[0]));
}

/*
 * A call made while holding may leave its packet to the next round, which finds no work but puts
 * the packet on the loopback: one more until nothing is left to do.
 */
static void
settle(struct script *s)
{
	while (teststack_run(&s->ts) > 0 || teststack_run(&s->ts) > 0)
		;
}

static void
let_go(struct script *s)
{
	int saved = errno;

	netisr_give(s->ts.s->netisr[0]);
	settle(s);
	errno = saved;
}

static void
close_fd(struct script *s, int fd)
{
	script_close_fd(&s->ts, fd);
	settle(s);
}

static int
bound_to(struct script *s, int type, uint32_t ip, uint16_t port)
{
	struct sockaddr_in a = at(ip, port);
	int fd = script_socket(&s->ts, type), rc;

	hold(s);
	rc = darter_bind(fd, (struct sockaddr *)&a, sizeof(a));
	let_go(s);
	assert_int_equal(rc, 0);
	return fd;
}

static int
listener_on(struct script *s, uint32_t ip, uint16_t port)
{
	int fd = bound_to(s, SOCK_STREAM, ip, port), rc;

	hold(s);
	rc = darter_listen(fd, 16);
	let_go(s);
	assert_int_equal(rc, 0);
	return fd;
}

static int
so_error_of(struct script *s, int fd)
{
	socklen_t len = sizeof(int);
	int e = -1;

	hold(s);
	assert_int_equal(darter_getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len), 0);
	let_go(s);
	return e;
}

static ssize_t
put(struct script *s, int fd, const void *bytes, size_t len)
{
	ssize_t rc;

	hold(s);
	rc = darter_send(fd, bytes, len, MSG_NOSIGNAL);
	let_go(s);
	return rc;
}

static ssize_t
get(struct script *s, int fd, void *bytes, size_t len)
{
	ssize_t rc;

	hold(s);
	rc = darter_recv(fd, bytes, len, 0);
	let_go(s);
	return rc;
}

/* Connects fd[0], a fresh socket when negative, to a listener and accepts fd[1]. */
static void
connect_pair(struct script *s, int lfd, uint32_t to, uint16_t port, int fd[2])
{
	if (fd[0] < 0)
		fd[0] = script_socket(&s->ts, SOCK_STREAM);
	assert_int_equal(script_connect_on(&s->ts, fd[0], 0, to, port), EINPROGRESS);
	settle(s);
	assert_int_equal(so_error_of(s, fd[0]), 0);
	hold(s);
	fd[1] = darter_accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
	let_go(s);
	assert_true(fd[1] >= 0);
}

/* Both names of a descriptor: what the other end sees as its peer. */
static void
expect_names(struct script *s, const int fd[2], uint32_t server, uint16_t port)
{
	struct sockaddr_in name[2], peer[2];
	socklen_t len = sizeof(name[0]);
	unsigned i;

	hold(s);
	for (i = 0; i < 2; i++) {
		assert_int_equal(darter_getsockname(fd[i], (struct sockaddr *)&name[i], &len), 0);
		assert_int_equal(darter_getpeername(fd[i], (struct sockaddr *)&peer[i], &len), 0);
	}
	let_go(s);
	assert_int_equal(ntohl(peer[0].sin_addr.s_addr), server);
	assert_int_equal(ntohs(peer[0].sin_port), port);
	for (i = 0; i < 2; i++) {
		assert_int_equal(name[i].sin_addr.s_addr, peer[1 - i].sin_addr.s_addr);
		assert_int_equal(name[i].sin_port, peer[1 - i].sin_port);
	}
}

/* A request, an answer, the ends, over `to`, which is `server` to who asks. */
static void
talk(struct script *s, uint32_t listen_ip, uint32_t to, uint32_t server, uint16_t port)
{
	int lfd = listener_on(s, listen_ip, port), fd[2] = { -1, -1 };
	char buf[8];

	connect_pair(s, lfd, to, port, fd);
	expect_names(s, fd, server, port);
	assert_int_equal(put(s, fd[0], "hello", 5), 5);
	assert_int_equal(get(s, fd[1], buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(put(s, fd[1], "thanks", 6), 6);
	assert_int_equal(get(s, fd[0], buf, sizeof(buf)), 6);
	close_fd(s, fd[0]);
	assert_int_equal(get(s, fd[1], buf, sizeof(buf)), 0);
	close_fd(s, fd[1]);
	close_fd(s, lfd);
	stack_silent_ms(s, 1000);
}

/* Case S04 a: the interface's own address, and no ARP for it */
SCRIPT(own_address_is_reached_inside)
{
	talk(s, TEST_STACK_IP, TEST_STACK_IP, TEST_STACK_IP, 7000);
}

/* Case S04 b */
SCRIPT(loopback_address_is_reached_inside) { talk(s, LOCAL_IP, LOCAL_IP, LOCAL_IP, 7001); }

/* Case S04 c: 0.0.0.0 as destination is this host, as on Linux and BSD */
SCRIPT(connect_to_the_any_address_reaches_the_local_listener)
{
	talk(s, INADDR_ANY, INADDR_ANY, LOCAL_IP, 7002);
}

/* Case S04 c: the wildcard listener is there for each of our addresses */
SCRIPT(wildcard_listener_serves_every_own_address)
{
	talk(s, INADDR_ANY, TEST_STACK_IP, TEST_STACK_IP, 7002);
	talk(s, INADDR_ANY, LOCAL_IP_2, LOCAL_IP_2, 7003);
}

/*
 * Case S04 i: on whichever netisr a connection lives (a bound port decides by its hash). The other
 * half of it, the bypass on and off, waits for the bypass.
 */
SCRIPT_ON(connections_inside_live_on_every_netisr, .netisrs = 2)
{
	int lfd = listener_on(s, LOCAL_IP, 7100), fd[2];
	unsigned i, k;
	char buf[8];

	for (i = 0; i < 16; i++) {
		fd[0] = bound_to(s, SOCK_STREAM, LOCAL_IP, (uint16_t)(45100 + i));
		connect_pair(s, lfd, LOCAL_IP, 7100, fd);
		assert_int_equal(put(s, fd[0], "hello", 5), 5);
		assert_int_equal(get(s, fd[1], buf, sizeof(buf)), 5);
		close_fd(s, fd[1]);
		close_fd(s, fd[0]);
	}
	close_fd(s, lfd);
	for (k = 0; k < 2; k++)
		assert_true(atomic_load(&s->ts.s->netisr[k]->counters[CTR_tcp_segs_rcvd]) > 5);
	stack_silent_ms(s, 1000);
}

/* Case S04 e: a pair of datagram sockets on 127.0.0.1 and 127.1.2.3 */
SCRIPT(datagrams_between_loopback_addresses)
{
	int a = bound_to(s, SOCK_DGRAM, LOCAL_IP, 6001);
	int b = bound_to(s, SOCK_DGRAM, LOCAL_IP_2, 6002);
	struct sockaddr_in to = at(LOCAL_IP_2, 6002), from;
	socklen_t len = sizeof(from);
	char buf[100] = { 0 };

	hold(s);
	assert_int_equal(darter_sendto(a, buf, 64, 0, (struct sockaddr *)&to, sizeof(to)), 64);
	let_go(s);
	hold(s);
	assert_int_equal(darter_recvfrom(b, buf, 100, 0, (struct sockaddr *)&from, &len), 64);
	assert_int_equal(ntohl(from.sin_addr.s_addr), LOCAL_IP);
	assert_int_equal(ntohs(from.sin_port), 6001);
	assert_int_equal(darter_sendto(b, buf, 32, 0, (struct sockaddr *)&from, len), 32);
	let_go(s);
	hold(s);
	assert_int_equal(darter_recvfrom(a, buf, 100, 0, (struct sockaddr *)&from, &len), 32);
	assert_int_equal(ntohl(from.sin_addr.s_addr), LOCAL_IP_2);
	let_go(s);
	close_fd(s, a);
	close_fd(s, b);
	stack_silent_ms(s, 100);
}

/* ---- bulk ---- */

#if defined(__SANITIZE_ADDRESS__)
#define BULK_BYTES	(UINT64_C(1) << 27)
#else
#define BULK_BYTES	(UINT64_C(1) << 30)
#endif
#define PIECE_BYTES	65536

struct bulk {
	int fd[2];
	uint64_t sent;
	uint64_t read;
	uint64_t stalls;	/* nobody could go on without the clock */
	uint64_t bad_bytes;
	uint8_t out[PIECE_BYTES];
	uint8_t in[PIECE_BYTES];
};

static bool
bulk_write(struct script *s, struct bulk *b)
{
	uint64_t left = BULK_BYTES - b->sent;
	ssize_t rc;

	if (left == 0)
		return false;
	rc = put(s, b->fd[0], b->out, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
	if (rc < 0)
		assert_int_equal(errno, EAGAIN);
	b->sent += rc > 0 ? (uint64_t)rc : 0;
	return rc > 0;
}

static bool
bulk_read(struct script *s, struct bulk *b)
{
	ssize_t rc = get(s, b->fd[1], b->in, PIECE_BYTES);

	if (rc < 0)
		assert_int_equal(errno, EAGAIN);
	if (rc <= 0)
		return false;
	/* every byte of the stream is its position's low byte */
	if (b->in[0] != (uint8_t)b->read || b->in[rc - 1] != (uint8_t)(b->read + (uint64_t)rc - 1))
		b->bad_bytes++;
	b->read += (uint64_t)rc;
	return true;
}

/* Case S04 f: 1 GiB in writes of 64 KiB with buffers of 64 KiB */
SCRIPT_ON(bulk_inside_waits_for_no_timer, .netisrs = 1)
{
	struct bulk *b = calloc(1, sizeof(*b));
	int lfd, size = PIECE_BYTES, i;
	uint64_t start_us;

	assert_non_null(b);
	/* out repeats every 256 bytes, so that a short write only moves the phase */
	lfd = bound_to(s, SOCK_STREAM, LOCAL_IP, 7005);
	hold(s);
	darter_setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(darter_listen(lfd, 1), 0);
	let_go(s);
	b->fd[0] = -1;
	connect_pair(s, lfd, LOCAL_IP, 7005, b->fd);
	hold(s);
	darter_setsockopt(b->fd[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	let_go(s);
	start_us = teststack_now(&s->ts).us;
	while (b->read < BULK_BYTES) {
		bool has_moved;

		for (i = 0; i < PIECE_BYTES; i++)
			b->out[i] = (uint8_t)(b->sent + (unsigned)i);
		has_moved = bulk_write(s, b);
		has_moved |= bulk_read(s, b);
		if (has_moved)
			continue;
		b->stalls++;
		advance_ms(s, 1);
		assert_true(teststack_now(&s->ts).us - start_us < 60 * US_PER_SEC);
	}
	assert_int_equal(b->sent, BULK_BYTES);
	assert_int_equal(b->bad_bytes, 0);
	assert_int_equal(b->stalls, 0);
	counter_is(s, "tcp_retransmits", 0);
	close_fd(s, b->fd[0]);
	close_fd(s, b->fd[1]);
	close_fd(s, lfd);
	free(b);
	stack_silent_ms(s, 100);
}

/* ---- oneself ---- */

/* Case S04 g; RFC 9293 3.5, MUST-10: a simultaneous open with oneself; the bytes come back */
SCRIPT(socket_connects_to_itself)
{
	int fd = bound_to(s, SOCK_STREAM, LOCAL_IP, 45000), rc;
	struct sockaddr_in a = at(LOCAL_IP, 45000), peer;
	socklen_t len = sizeof(peer);
	char buf[8];

	hold(s);
	rc = darter_connect(fd, (struct sockaddr *)&a, sizeof(a));
	let_go(s);
	assert_true(rc == 0 || errno == EINPROGRESS);
	advance_ms(s, 10);
	assert_int_equal(so_error_of(s, fd), 0);
	hold(s);
	assert_int_equal(darter_getpeername(fd, (struct sockaddr *)&peer, &len), 0);
	let_go(s);
	assert_int_equal(ntohs(peer.sin_port), 45000);
	assert_int_equal(put(s, fd, "12345", 5), 5);
	assert_int_equal(get(s, fd, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "12345", 5);
	hold(s);
	assert_int_equal(darter_shutdown(fd, SHUT_WR), 0);
	let_go(s);
	assert_int_equal(get(s, fd, buf, sizeof(buf)), 0);
	close_fd(s, fd);
	stack_silent_ms(s, 1000);
}

#define CONNECTS	50000u
#define CLOSED_PORT	50005

/*
 * Case S04 h: fifty thousand attempts at a closed port of the range that ports are drawn from: all
 * are refused, none meets itself
 */
SCRIPT_ON(connects_to_a_closed_port_in_the_ephemeral_range_never_meet_themselves,
    .sysctls = { "net.inet.ip.portrange.first=50000", "net.inet.ip.portrange.last=50015" })
{
	unsigned i;

	for (i = 0; i < CONNECTS; i++) {
		int fd = script_socket(&s->ts, SOCK_STREAM), e;

		assert_int_equal(
		    script_connect_on(&s->ts, fd, 0, LOCAL_IP, CLOSED_PORT), EINPROGRESS);
		settle(s);
		e = so_error_of(s, fd);
		if (e != ECONNREFUSED)
			fail_msg("attempt %u: %s", i, strerrorname_np(e));
		close_fd(s, fd);
	}
	stack_silent(s);
}
