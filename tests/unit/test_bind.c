/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may bind a port that somebody has, on darter's sockets and on the kernel's (case S05): every
 * pair of addresses and options, ports of outgoing connections, drawn ports. The kernel's answer to
 * each cell is the one that is wanted.
 */
#include <stdbool.h>

#include "unit/both_nets.h"

#define ANY	INADDR_ANY
#define ONE	INADDR_LOOPBACK
#define TWO	(INADDR_LOOPBACK + 1)	/* 127.0.0.2: this host's as well */

#define REUSEADDR 1u
#define REUSEPORT 2u

static const char *const opt_name[] = { "none", "addr", "port", "both" };

static int
socket_with(struct net *n, int type, unsigned opts)
{
	int fd = n->socket(AF_INET, type, 0);

	assert_true(fd >= 0);
	if (opts & REUSEADDR)
		set_int(n, fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (opts & REUSEPORT)
		set_int(n, fd, SOL_SOCKET, SO_REUSEPORT, 1);
	return fd;
}

static int
bind_to(struct net *n, int fd, uint32_t addr, uint16_t port)
{
	struct sockaddr_in a = loopback(port);

	a.sin_addr.s_addr = htonl(addr);
	return n->bind(fd, (struct sockaddr *)&a, sizeof(a));
}

/* A port below the drawn ones that nobody has: the next one at each call. */
static uint16_t
unused_port(struct net *n, int type)
{
	static uint16_t next = 21000;

	for (;;) {
		int fd = n->socket(AF_INET, type, 0), rc = bind_to(n, fd, ANY, ++next);

		assert_true(next < 31000);
		n->close(fd);
		if (rc == 0)
			return next;
	}
}

static const char *
outcome(int rc)
{
	return rc == 0 ? "ok" : strerrorname_np(errno);
}

/* ---- d: the matrix ---- */

static const struct {
	const char *name;
	uint32_t first, second;
} pairs[] = {
	{ "same specific", TWO, TWO },
	{ "specific, any", TWO, ANY },
	{ "any, specific", ANY, TWO },
	{ "any, any", ANY, ANY },
	{ "two specific", TWO, ONE },
};

static void
one_cell(struct net *n, int type, unsigned pair, unsigned o1, unsigned o2, bool is_listening)
{
	uint16_t port = unused_port(n, type);
	int a = socket_with(n, type, o1), b = socket_with(n, type, o2), rc;

	assert_int_equal(bind_to(n, a, pairs[pair].first, port), 0);
	if (is_listening)
		assert_int_equal(n->listen(a, 1), 0);
	rc = bind_to(n, b, pairs[pair].second, port);
	say(n, "%s/%s: %s", opt_name[o1], opt_name[o2], outcome(rc));
	if (rc == 0 && type == SOCK_STREAM)
		say(n, ", listen %s", outcome(n->listen(b, 1)));
	say(n, "\n");
	n->close(a);
	n->close(b);
}

static void
matrix_of(struct net *n, int type, bool is_listening)
{
	unsigned i, o1, o2;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		say(n, "%s\n", pairs[i].name);
		for (o1 = 0; o1 < 4; o1++)
			for (o2 = 0; o2 < 4; o2++)
				one_cell(n, type, i, o1, o2, is_listening);
	}
}

static void
tcp_bound(struct net *n)
{
	matrix_of(n, SOCK_STREAM, false);
}

static void
tcp_listening(struct net *n)
{
	matrix_of(n, SOCK_STREAM, true);
}

static void
udp_bound(struct net *n)
{
	matrix_of(n, SOCK_DGRAM, false);
}

/* ---- c: the port of an outgoing connection ---- */

static void
try_port(struct net *n, const char *what, uint32_t addr, uint16_t port, unsigned opts)
{
	int fd = socket_with(n, SOCK_STREAM, opts);

	say(n, "%s, %s: %s\n", what, opt_name[opts], outcome(bind_to(n, fd, addr, port)));
	n->close(fd);
}

static void
try_port_of(struct net *n, int fd)
{
	uint16_t port = port_of(n, fd);
	unsigned opts;

	for (opts = 0; opts < 4; opts++) {
		try_port(n, "its address", ONE, port, opts);
		try_port(n, "any", ANY, port, opts);
		try_port(n, "another", TWO, port, opts);
	}
}

/* Connected from where `opts` and the address say; the port is drawn when addr is 0. */
static void
connection_with(struct net *n, uint32_t addr, unsigned opts)
{
	int l = listener(n, 4), c = socket_with(n, SOCK_STREAM, opts), d;

	say(n, "connected, %s %s\n", addr == 0 ? "drawn" : "bound", opt_name[opts]);
	if (addr != 0)
		assert_int_equal(bind_to(n, c, addr, unused_port(n, SOCK_STREAM)), 0);
	assert_int_equal(connect_to(n, c, port_of(n, l)), 0);
	d = n->accept4(l, NULL, NULL, 0);
	try_port_of(n, c);
	/* the client's end goes last, so that no TIME_WAIT of its port is left */
	n->close(d);
	await(n, c, POLLIN);
	n->close(c);
	n->close(l);
}

static void
outgoing(struct net *n)
{
	unsigned opts;

	for (opts = 0; opts < 4; opts++) {
		connection_with(n, 0, opts);
		connection_with(n, ONE, opts);
	}
}

/* ---- e: bind twice, bind after connect ---- */

static void
rebind(struct net *n)
{
	int l = listener(n, 1), s, types[] = { SOCK_STREAM, SOCK_DGRAM };
	unsigned i;

	for (i = 0; i < 2; i++) {
		s = n->socket(AF_INET, types[i], 0);
		say_ok(n, "bind", bind_to(n, s, ONE, 0));
		say_ok(n, "again", bind_to(n, s, ONE, 0));
		say_ok(n, "elsewhere", bind_to(n, s, ANY, unused_port(n, types[i])));
		n->close(s);
		s = n->socket(AF_INET, types[i], 0);
		say_ok(n, "connect", connect_to(n, s, port_of(n, l)));
		say_ok(n, "bind after", bind_to(n, s, ANY, 0));
		say_ok(n, "named after", bind_to(n, s, ONE, unused_port(n, types[i])));
		n->close(s);
	}
	n->close(l);
}

/* ---- a: drawn ports; the range is darter's own ---- */

#define FIRST	50000u
#define COUNT	10u

static void
set_range(const char *first, const char *last)
{
	assert_int_equal(darter_sysctl_set(the_stack, "net.inet.ip.portrange.first", first, NULL,
	    0), 0);
	assert_int_equal(darter_sysctl_set(the_stack, "net.inet.ip.portrange.last", last, NULL, 0),
	    0);
}

/* Case S05 a: what has an owner is not drawn, whatever the options say; spent: EADDRINUSE */
static void
port_that_is_taken_is_never_drawn(void **state)
{
	struct net *n = &darter_net;
	int taken = socket_with(n, SOCK_STREAM, REUSEADDR), fd[COUNT], rc;
	unsigned i, seen = 0;

	(void)state;
	set_range("50000", "50009");
	assert_int_equal(bind_to(n, taken, ONE, FIRST + 3), 0);
	for (i = 0; i < COUNT; i++) {
		fd[i] = socket_with(n, SOCK_STREAM, REUSEADDR);
		rc = bind_to(n, fd[i], ANY, 0);
		if (i == COUNT - 1)
			break;
		assert_int_equal(rc, 0);
		assert_in_range(port_of(n, fd[i]), FIRST, FIRST + COUNT - 1);
		assert_int_not_equal(port_of(n, fd[i]), FIRST + 3);
		assert_false(seen & (1u << (port_of(n, fd[i]) - FIRST)));
		seen |= 1u << (port_of(n, fd[i]) - FIRST);
	}
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EADDRINUSE);
	for (i = 0; i < COUNT; i++)
		n->close(fd[i]);
	n->close(taken);
	set_range("32768", "60999");
}

/* Case S05 a, the kindred report: ports of outgoing connections are not drawn by bind either */
static void
port_of_a_connection_is_never_drawn(void **state)
{
	struct net *n = &darter_net;
	int l = listener(n, 16), c[5], d[5], b[5], late;
	unsigned i, seen = 0;

	(void)state;
	set_range("50000", "50009");
	for (i = 0; i < 5; i++) {
		c[i] = n->socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect_to(n, c[i], port_of(n, l)), 0);
		d[i] = n->accept4(l, NULL, NULL, 0);
		seen |= 1u << (port_of(n, c[i]) - FIRST);
	}
	for (i = 0; i < 5; i++) {
		b[i] = socket_with(n, SOCK_STREAM, REUSEADDR);
		assert_int_equal(bind_to(n, b[i], ANY, 0), 0);
		assert_false(seen & (1u << (port_of(n, b[i]) - FIRST)));
		seen |= 1u << (port_of(n, b[i]) - FIRST);
	}
	assert_int_equal(seen, (1u << COUNT) - 1);
	late = socket_with(n, SOCK_STREAM, REUSEADDR);
	assert_int_equal(bind_to(n, late, ANY, 0), -1);
	assert_int_equal(errno, EADDRINUSE);
	n->close(late);
	for (i = 0; i < 5; i++) {
		reset_close(n, d[i]);
		n->close(c[i]);
		n->close(b[i]);
	}
	n->close(l);
	set_range("32768", "60999");
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

/* Case S05 d */
BOTH(second_tcp_bind_has_the_kernels_answer, tcp_bound)
BOTH(second_bind_beside_a_listener_has_the_kernels_answer, tcp_listening)
BOTH(second_udp_bind_has_the_kernels_answer, udp_bound)
/* Case S05 c */
BOTH(bind_to_the_port_of_a_connection_has_the_kernels_answer, outgoing)
/* Case S05 e */
BOTH(second_name_for_a_socket_has_the_kernels_answer, rebind)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_tcp_bind_has_the_kernels_answer),
		cmocka_unit_test(second_bind_beside_a_listener_has_the_kernels_answer),
		cmocka_unit_test(second_udp_bind_has_the_kernels_answer),
		cmocka_unit_test(bind_to_the_port_of_a_connection_has_the_kernels_answer),
		cmocka_unit_test(second_name_for_a_socket_has_the_kernels_answer),
		cmocka_unit_test(port_that_is_taken_is_never_drawn),
		cmocka_unit_test(port_of_a_connection_is_never_drawn),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
