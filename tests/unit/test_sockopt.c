/* SPDX-License-Identifier: BSD-2-Clause */
/* socket/sockopt.c: what options take, keep and refuse is what the kernel's do. */
#include <limits.h>
#include <sys/time.h>

#include "unit/both_nets.h"

static void
get(struct net *n, int fd, int level, int name)
{
	int v = -77;
	socklen_t len = sizeof(v);
	int rc = n->getsockopt(fd, level, name, &v, &len);

	if (rc < 0)
		say(n, " get %s", strerrorname_np(errno));
	else
		say(n, " = %d (%u)", v, len);
}

/* Sets each value and reads it back. */
static void
try_values(struct net *n, int fd, const char *what, int level, int name, const int *v, size_t count)
{
	size_t i;

	say(n, "%s:", what);
	for (i = 0; i < count; i++) {
		if (n->setsockopt(fd, level, name, &v[i], sizeof(v[i])) < 0)
			say(n, " set(%d) %s", v[i], strerrorname_np(errno));
		get(n, fd, level, name);
	}
	say(n, "\n");
}

#define TRY(n, fd, level, name, ...) \
	try_values((n), (fd), #name, (level), (name), (const int[]){ __VA_ARGS__ }, \
	    sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static void
flags(struct net *n)
{
	int fd = n->socket(AF_INET, SOCK_STREAM, 0);

	TRY(n, fd, SOL_SOCKET, SO_REUSEADDR, 1, 5, 0, -1);
	TRY(n, fd, SOL_SOCKET, SO_REUSEPORT, 1, 5, 0);
	TRY(n, fd, SOL_SOCKET, SO_KEEPALIVE, 1, 5, 0);
	TRY(n, fd, SOL_SOCKET, SO_BROADCAST, 1, 5, 0);
	TRY(n, fd, SOL_SOCKET, SO_OOBINLINE, 1, 0);
	TRY(n, fd, SOL_SOCKET, SO_DONTROUTE, 1, 0);
	TRY(n, fd, SOL_SOCKET, SO_PRIORITY, 3, 0);
	TRY(n, fd, SOL_SOCKET, SO_RCVLOWAT, 0, 7, 1);
	TRY(n, fd, IPPROTO_TCP, TCP_NODELAY, 1, 9, 0);
	TRY(n, fd, IPPROTO_TCP, TCP_CORK, 1, 9, 0);
	n->close(fd);
}

static void
numbers(struct net *n)
{
	int fd = n->socket(AF_INET, SOCK_STREAM, 0);

	TRY(n, fd, SOL_SOCKET, SO_SNDBUF, 0, 1, 4000, 65536);
	TRY(n, fd, SOL_SOCKET, SO_RCVBUF, 0, 1, 4000, 65536);
	TRY(n, fd, IPPROTO_TCP, TCP_KEEPIDLE, 0, 1, 32767, 32768, -1);
	TRY(n, fd, IPPROTO_TCP, TCP_KEEPINTVL, 0, 1, 32767, 32768);
	TRY(n, fd, IPPROTO_TCP, TCP_KEEPCNT, 0, 1, 127, 128);
	TRY(n, fd, IPPROTO_TCP, TCP_SYNCNT, 0, 1, 127, 128);
	TRY(n, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 5000, -1);
	TRY(n, fd, IPPROTO_TCP, TCP_MAXSEG, 87, 88, 1000, 32767, 32768);
	TRY(n, fd, IPPROTO_IP, IP_TTL, 0, 1, 255, 256, -1);
	TRY(n, fd, IPPROTO_IP, IP_TOS, 0x10, 0x13, 0);
	n->close(fd);
	fd = n->socket(AF_INET, SOCK_DGRAM, 0);
	TRY(n, fd, IPPROTO_IP, IP_TOS, 0x13, 0);
	TRY(n, fd, SOL_SOCKET, SO_SNDBUF, 0, 4000, 65536);
	TRY(n, fd, SOL_SOCKET, SO_RCVBUF, 0, 4000, 65536);
	n->close(fd);
}

static void
what_it_is(struct net *n)
{
	int fd = n->socket(AF_INET, SOCK_STREAM, 0), u = n->socket(AF_INET, SOCK_DGRAM, 0), l =
	    listener(n, 1);
	static const int names[] = { SO_TYPE, SO_PROTOCOL, SO_DOMAIN, SO_ACCEPTCONN, SO_ERROR,
	    SO_SNDLOWAT };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		get(n, fd, SOL_SOCKET, names[i]);
		get(n, u, SOL_SOCKET, names[i]);
		get(n, l, SOL_SOCKET, names[i]);
		say(n, "\n");
		TRY(n, fd, SOL_SOCKET, names[i], 1);
	}
	TRY(n, u, IPPROTO_TCP, TCP_NODELAY, 1);
	TRY(n, fd, 12345, 1, 1);
	TRY(n, fd, SOL_SOCKET, 9999, 1);
	TRY(n, fd, IPPROTO_TCP, 9999, 1);
	n->close(fd);
	n->close(u);
	n->close(l);
}

static void
structs(struct net *n)
{
	int fd = n->socket(AF_INET, SOCK_STREAM, 0), v = 1;
	struct linger l = { 1, 5 };
	struct timeval tv = { 2, 500000 }, odd = { 0, 1000000 }, none = { 0, 0 };
	socklen_t len = sizeof(l);
	char byte = 99;

	say_result(n, "linger", n->setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	memset(&l, 0, sizeof(l));
	say_result(n, "linger", n->getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say(n, "%d %d (%u)\n", l.l_onoff, l.l_linger, len);
	say_result(n, "linger, an int", n->setsockopt(fd, SOL_SOCKET, SO_LINGER, &v, sizeof(v)));
	say_result(n, "rcvtimeo", n->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	memset(&tv, 0, sizeof(tv));
	len = sizeof(tv);
	say_result(n, "rcvtimeo", n->getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	say(n, "%ld.%06ld (%u)\n", (long)tv.tv_sec, (long)tv.tv_usec, len);
	say_result(n, "odd", n->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &odd, sizeof(odd)));
	say_result(n, "short", n->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &odd, 4));
	say_result(n, "none", n->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	len = sizeof(tv);
	say_result(n, "rcvtimeo", n->getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	say(n, "%ld.%06ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
	say_result(n, "short int", n->setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &byte, 1));
	say_result(n, "ttl, a byte", n->setsockopt(fd, IPPROTO_IP, IP_TTL, &byte, 1));
	len = 1;
	byte = 0;
	say_result(n, "ttl, a byte", n->getsockopt(fd, IPPROTO_IP, IP_TTL, &byte, &len));
	say(n, "%d (%u)\n", byte, len);
	len = 2;
	v = 0;
	say_result(n, "two bytes", n->getsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len));
	say(n, "%d (%u)\n", v, len);
	len = (socklen_t)-1;
	say_result(n, "negative", n->getsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len));
	n->close(fd);
}

static void
inherited(struct net *n)
{
	int l = bound(n, SOCK_STREAM), c = n->socket(AF_INET, SOCK_STREAM, 0), d;
	struct timeval tv = { 7, 0 };
	socklen_t len = sizeof(tv);

	set_int(n, l, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(n, l, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(n, l, IPPROTO_TCP, TCP_KEEPIDLE, 77);
	set_int(n, l, IPPROTO_IP, IP_TTL, 33);
	n->setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	set_nonblock(n, l);
	assert_int_equal(n->listen(l, 1), 0);
	assert_int_equal(connect_to(n, c, port_of(n, l)), 0);
	await(n, l, POLLIN);
	d = n->accept4(l, NULL, NULL, 0);
	get(n, d, SOL_SOCKET, SO_KEEPALIVE);
	get(n, d, IPPROTO_TCP, TCP_NODELAY);
	get(n, d, IPPROTO_TCP, TCP_KEEPIDLE);
	get(n, d, IPPROTO_IP, IP_TTL);
	get(n, d, SOL_SOCKET, SO_ACCEPTCONN);
	n->getsockopt(d, SOL_SOCKET, SO_RCVTIMEO, &tv, &len);
	say(n, " timeo %ld nonblock %d\n", (long)tv.tv_sec, n->fcntl(d, F_GETFL) & O_NONBLOCK);
	n->close(c);
	n->close(d);
	n->close(l);
}

static void
tcp_info_state(struct net *n)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int fd[2];

	connected_pair(n, fd);
	memset(&info, 0, sizeof(info));
	say_result(n, "tcp_info", n->getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &info, &len));
	say(n, "state %u mss ok %d\n", info.tcpi_state, info.tcpi_snd_mss > 500);
	n->shutdown(fd[1], SHUT_WR);
	await(n, fd[0], POLLRDHUP);
	len = sizeof(info);
	say_result(n, "tcp_info", n->getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &info, &len));
	say(n, "state %u\n", info.tcpi_state);
	n->close(fd[0]);
	n->close(fd[1]);
}

static void
say_if_cpu(struct net *n, const char *what, int fd)
{
	socklen_t len = sizeof(int);
	int cpu = -2;

	assert_int_equal(n->getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len), 0);
	say(n, "%s: a CPU %d\n", what, cpu >= 0 && cpu < (int)sysconf(_SC_NPROCESSORS_CONF));
}

/* What was set, until there is a connection: then where it is. */
static void
incoming_cpu(struct net *n)
{
	int fd = n->socket(AF_INET, SOCK_STREAM, 0), pair[2];

	say_if_cpu(n, "fresh", fd);
	TRY(n, fd, SOL_SOCKET, SO_INCOMING_CPU, 3, 0, -1);
	n->close(fd);
	connected_pair(n, pair);
	n->send(pair[0], "x", 1, 0);
	await(n, pair[1], POLLIN);
	say_if_cpu(n, "connected", pair[0]);
	say_if_cpu(n, "accepted", pair[1]);
	n->close(pair[0]);
	n->close(pair[1]);
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

BOTH(flags_are_kept_as_the_kernel_keeps_them, flags)
BOTH(numbers_are_checked_and_rounded_as_the_kernel_does, numbers)
BOTH(read_only_and_unknown_options_are_refused, what_it_is)
BOTH(structs_and_odd_lengths_are_the_kernels, structs)
BOTH(accepted_sockets_inherit_options, inherited)
BOTH(tcp_info_tells_the_state, tcp_info_state)
BOTH(incoming_cpu_is_what_was_set_and_then_where_it_is, incoming_cpu)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_are_kept_as_the_kernel_keeps_them),
		cmocka_unit_test(numbers_are_checked_and_rounded_as_the_kernel_does),
		cmocka_unit_test(read_only_and_unknown_options_are_refused),
		cmocka_unit_test(structs_and_odd_lengths_are_the_kernels),
		cmocka_unit_test(accepted_sockets_inherit_options),
		cmocka_unit_test(tcp_info_tells_the_state),
		cmocka_unit_test(incoming_cpu_is_what_was_set_and_then_where_it_is),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
