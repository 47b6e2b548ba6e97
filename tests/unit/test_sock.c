/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket/{conn,stream,dgram,poll}.c and the public calls, end to end over the stack's own loopback:
 * what the kernel's calls return is what ours return.
 */
#include <linux/sockios.h>
#include <sys/time.h>

#include "unit/both_nets.h"

/* ---- names ---- */

static void
names(struct net *n)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = n->socket(AF_INET, SOCK_STREAM, 0), l, c;

	say_result(n, "name of fresh", n->getsockname(fd, (struct sockaddr *)&a, &len));
	say(n, "port %u addr %x len %u\n", ntohs(a.sin_port), ntohl(a.sin_addr.s_addr), len);
	say_result(n, "peer of fresh", n->getpeername(fd, (struct sockaddr *)&a, &len));
	a = loopback(0);
	say_result(n, "short", n->bind(fd, (struct sockaddr *)&a, 8));
	a.sin_family = AF_INET6;
	say_result(n, "wrong family", n->bind(fd, (struct sockaddr *)&a, sizeof(a)));
	a = loopback(0);
	a.sin_addr.s_addr = htonl(0xc0000201);
	say_result(n, "not ours", n->bind(fd, (struct sockaddr *)&a, sizeof(a)));
	a = loopback(0);
	say_result(n, "bind", n->bind(fd, (struct sockaddr *)&a, sizeof(a)));
	say_result(n, "bind again", n->bind(fd, (struct sockaddr *)&a, sizeof(a)));
	l = n->socket(AF_INET, SOCK_STREAM, 0);
	a = loopback(port_of(n, fd));
	say_result(n, "taken", n->bind(l, (struct sockaddr *)&a, sizeof(a)));
	say_result(n, "listen", n->listen(fd, 1));
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	say_result(n, "connect", connect_to(n, c, port_of(n, fd)));
	len = 4;
	memset(&a, 0xff, sizeof(a));
	say_result(n, "cut", n->getpeername(c, (struct sockaddr *)&a, &len));
	say(n, "len %u family %u port ok %d rest %x\n", len, a.sin_family,
	    ntohs(a.sin_port) == port_of(n, fd),
	    a.sin_addr.s_addr);
	say_result(n, "connect listener", connect_to(n, fd, port_of(n, c)));
	say_result(n, "listen on connected", n->listen(c, 1));
	n->close(c);
	n->close(l);
	n->close(fd);
	say_ok(n, "bad domain", n->socket(AF_UNIX + 200, SOCK_STREAM, 0));
	say_ok(n, "bad protocol", n->socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
}

/* ---- connect ---- */

static void
connect_steps(struct net *n)
{
	int l = listener(n, 4), c = n->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), d;
	char buf[4];

	say_result(n, "recv before", n->recv(c, buf, 1, 0));
	say_result(n, "send before", n->send(c, buf, 1, MSG_NOSIGNAL));
	say_result(n, "connect", connect_to(n, c, port_of(n, l)));
	say(n, "named %d\n", port_of(n, c) != 0);
	await(n, c, POLLOUT);
	say_result(n, "told once", connect_to(n, c, port_of(n, l)));
	say_result(n, "again", connect_to(n, c, port_of(n, l)));
	say_result(n, "recv", n->recv(c, buf, 1, 0));
	d = n->accept4(l, NULL, NULL, 0);
	n->close(d);
	n->close(c);
	n->close(l);
}

static void
refused_then_elsewhere(struct net *n)
{
	int none = bound(n, SOCK_STREAM), l = listener(n, 4), c = n->socket(AF_INET, SOCK_STREAM,
	    0), d;

	say_result(n, "refused", connect_to(n, c, port_of(n, none)));
	say(n, "error %d\n", so_error(n, c));
	say_result(n, "elsewhere", connect_to(n, c, port_of(n, l)));
	say_result(n, "send", n->send(c, "x", 1, 0));
	d = n->accept4(l, NULL, NULL, 0);
	n->close(d);
	n->close(c);
	c = n->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	say_result(n, "refused", connect_to(n, c, port_of(n, none)));
	await(n, c, POLLERR);
	say(n, "error %s\n", strerrorname_np(so_error(n, c)));
	say_result(n, "told already", connect_to(n, c, port_of(n, l)));
	say_result(n, "elsewhere", connect_to(n, c, port_of(n, l)));
	await(n, c, POLLOUT);
	say(n, "error %d\n", so_error(n, c));
	d = n->accept4(l, NULL, NULL, 0);
	n->close(d);
	n->close(c);
	n->close(l);
	n->close(none);
}

/* ---- streams ---- */

static void
stream_flags(struct net *n)
{
	struct timeval tv = { .tv_usec = 100000 };
	char buf[256] = { 0 };
	int fd[2];

	connected_pair(n, fd);
	set_nonblock(n, fd[1]);
	say_result(n, "empty", n->recv(fd[1], buf, 10, 0));
	say_result(n, "no length", n->recv(fd[1], buf, 0, 0));
	say_result(n, "read of nothing", n->read(fd[1], buf, 0));
	n->send(fd[0], "0123456789", 10, 0);
	await(n, fd[1], POLLIN);
	say_result(n, "no length, data there", n->recv(fd[1], buf, 0, 0));
	say_result(n, "peek", n->recv(fd[1], buf, 4, MSG_PEEK));
	say_result(n, "peek", n->recv(fd[1], buf, 100, MSG_PEEK));
	say(n, "%.10s\n", buf);
	say_result(n, "discard", n->recv(fd[1], NULL, 3, MSG_TRUNC));
	say_result(n, "waitall, dontwait", n->recv(fd[1], buf, 100, MSG_WAITALL | MSG_DONTWAIT));
	say(n, "%.7s\n", buf);
	say_result(n, "oob", n->recv(fd[1], buf, 1, MSG_OOB));
	assert_int_equal(n->fcntl(fd[1], F_SETFL, 0), 0);
	n->setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	say_result(n, "timeout", n->recv(fd[1], buf, 10, 0));
	n->send(fd[0], "abc", 3, 0);
	say_result(n, "waitall, timeout", n->recv(fd[1], buf, 100, MSG_WAITALL));
	n->send(fd[0], "abcd", 4, 0);
	await(n, fd[1], POLLIN);
	say_result(n, "peek, waitall", n->recv(fd[1], buf, 100, MSG_PEEK | MSG_WAITALL));
	n->shutdown(fd[0], SHUT_WR);
	say_result(n, "waitall, end", n->recv(fd[1], buf, 100, MSG_WAITALL));
	say_result(n, "end", n->recv(fd[1], buf, 100, 0));
	say_result(n, "end again", n->recv(fd[1], buf, 100, 0));
	n->close(fd[0]);
	n->close(fd[1]);
}

static void
stream_ends(struct net *n)
{
	char buf[16];
	int fd[2];

	connected_pair(n, fd);
	say_ok(n, "bad how", n->shutdown(fd[0], 7));
	say_ok(n, "shut rd", n->shutdown(fd[1], SHUT_RD));
	say_result(n, "recv", n->recv(fd[1], buf, 4, 0));
	say_ok(n, "shut wr", n->shutdown(fd[0], SHUT_WR));
	say_result(n, "send", n->send(fd[0], buf, 1, MSG_NOSIGNAL));
	say_result(n, "other way", n->send(fd[1], "xyz", 3, 0));
	say_result(n, "recv", n->recv(fd[0], buf, 16, 0));
	n->close(fd[0]);
	n->close(fd[1]);
	fd[0] = n->socket(AF_INET, SOCK_STREAM, 0);
	say_ok(n, "shutdown of fresh", n->shutdown(fd[0], SHUT_RDWR));
	n->close(fd[0]);
}

static void
vectors(struct net *n)
{
	char a[3], b[5], c[8];
	struct iovec out[3] = { { "ab", 2 }, { NULL, 0 }, { "cdefg", 5 } };
	struct iovec in[3] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	struct msghdr m = { .msg_iov = in, .msg_iovlen = 3 };
	static struct iovec many[1025];
	int fd[2];

	connected_pair(n, fd);
	say_result(n, "writev", n->writev(fd[0], out, 3));
	await(n, fd[1], POLLIN);
	say_result(n, "readv", n->readv(fd[1], in, 3));
	say(n, "%.3s %.4s\n", a, b);
	n->send(fd[0], "12345678", 8, 0);
	await(n, fd[1], POLLIN);
	say_result(n, "recvmsg peek", n->recvmsg(fd[1], &m, MSG_PEEK));
	say(n, "%.3s %.5s flags %d\n", a, b, m.msg_flags);
	say_result(n, "recv", n->recv(fd[1], c, 8, 0));
	say(n, "%.8s\n", c);
	say_result(n, "too many", n->writev(fd[0], many, 1025));
	m.msg_iov = many;
	m.msg_iovlen = 1025;
	say_result(n, "too many", n->sendmsg(fd[0], &m, 0));
	say_result(n, "negative", n->readv(fd[0], many, -1));
	n->close(fd[0]);
	n->close(fd[1]);
}

static void
unread_data_resets(struct net *n)
{
	char buf[16];
	int fd[2];

	connected_pair(n, fd);
	n->send(fd[0], "0123456789", 10, 0);
	await(n, fd[1], POLLIN);
	n->recv(fd[1], buf, 4, 0);
	n->close(fd[1]);
	await(n, fd[0], POLLIN);
	say_result(n, "recv", n->recv(fd[0], buf, 4, 0));
	say_result(n, "recv", n->recv(fd[0], buf, 4, 0));
	n->close(fd[0]);
}

static void
accept_after_reset(struct net *n)
{
	int l = listener(n, 8), c = n->socket(AF_INET, SOCK_STREAM, 0), d, i, unacked = 1;
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char buf[16];

	assert_int_equal(connect_to(n, c, port_of(n, l)), 0);
	n->send(c, "0123456789", 10, 0);
	/* a reset discards what has not been sent */
	for (i = 0; i < SOON_MS && unacked != 0; i++) {
		assert_int_equal(n->ioctl(c, SIOCOUTQ, &unacked), 0);
		usleep(1000);
	}
	reset_close(n, c);
	usleep(20000);
	d = say_ok(n, "accept", n->accept4(l, (struct sockaddr *)&a, &len, SOCK_CLOEXEC));
	say(n, "len %u family %u\n", len, a.sin_family);
	say_result(n, "recv", n->recv(d, buf, 16, 0));
	say_result(n, "recv", n->recv(d, buf, 16, 0));
	say_result(n, "recv", n->recv(d, buf, 16, 0));
	n->close(d);
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect_to(n, c, port_of(n, l)), 0);
	n->send(c, "0123456789", 10, 0);
	n->close(c);
	d = say_ok(n, "accept of closed", n->accept4(l, NULL, NULL, 0));
	say_result(n, "recv", n->recv(d, buf, 16, 0));
	say_result(n, "recv", n->recv(d, buf, 16, 0));
	n->close(d);
	say_ok(n, "bad flags", n->accept4(l, NULL, NULL, 1));
	c = n->socket(AF_INET, SOCK_DGRAM, 0);
	say_ok(n, "accept udp", n->accept4(c, NULL, NULL, 0));
	say_ok(n, "listen udp", n->listen(c, 1));
	n->close(c);
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	say_ok(n, "accept fresh", n->accept4(c, NULL, NULL, 0));
	n->close(c);
	n->close(l);
}

static void
descriptor_flags(struct net *n)
{
	int fd[2], v = 1, copy;

	connected_pair(n, fd);
	say(n, "getfl %d\n", n->fcntl(fd[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK));
	say_result(n, "fionbio", n->ioctl(fd[0], FIONBIO, &v));
	say(n, "getfl %d\n", n->fcntl(fd[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK));
	copy = n->dup(fd[0]);
	say(n, "shared %d\n", n->fcntl(copy, F_GETFL) & O_NONBLOCK);
	say_result(n, "getfd", n->fcntl(copy, F_GETFD));
	say_result(n, "setfd", n->fcntl(copy, F_SETFD, FD_CLOEXEC));
	say_result(n, "getfd", n->fcntl(copy, F_GETFD));
	n->send(fd[1], "12345", 5, 0);
	await(n, fd[0], POLLIN);
	say_result(n, "fionread", n->ioctl(fd[0], FIONREAD, &v));
	say(n, "%d\n", v);
	n->close(copy);
	say_result(n, "still open", n->send(fd[0], "x", 1, 0));
	n->close(fd[0]);
	say_result(n, "closed", n->send(fd[0], "x", 1, 0));
	say_result(n, "closed twice", n->close(fd[0]));
	n->close(fd[1]);
}

static void
file_to_socket(struct net *n)
{
	char path[] = "/tmp/darter-test-XXXXXX", buf[64];
	int fd[2], file = mkstemp(path);
	off_t off = 3;

	unlink(path);
	assert_int_equal(write(file, "0123456789", 10), 10);
	lseek(file, 0, SEEK_SET);
	connected_pair(n, fd);
	say_result(n, "sendfile", n->sendfile(fd[0], file, &off, 4));
	say(n, "off %ld pos %ld\n", (long)off, (long)lseek(file, 0, SEEK_CUR));
	say_result(n, "sendfile", n->sendfile(fd[0], file, NULL, 100));
	say(n, "pos %ld\n", (long)lseek(file, 0, SEEK_CUR));
	say_result(n, "at end", n->sendfile(fd[0], file, NULL, 100));
	say_result(n, "recv", n->recv(fd[1], buf, 14, MSG_WAITALL));
	say(n, "%.14s\n", buf);
	close(file);
	n->close(fd[0]);
	n->close(fd[1]);
}

/* ---- datagrams ---- */

static void
datagram_flags(struct net *n)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char buf[2000] = { 0 };
	struct iovec iov[2] = { { buf, 0 }, { buf, 10 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 1 };
	int a = bound(n, SOCK_DGRAM), b = bound(n, SOCK_DGRAM);

	say_result(n, "unconnected send", n->send(b, "x", 1, 0));
	assert_int_equal(connect_to(n, b, port_of(n, a)), 0);
	say_result(n, "send", n->send(b, buf, 1028, 0));
	await(n, a, POLLIN);
	say_result(n, "peek size", n->recvmsg(a, &m, MSG_PEEK | MSG_TRUNC));
	say(n, "trunc %d\n", m.msg_flags & MSG_TRUNC);
	say_result(n, "cut", n->recvfrom(a, buf, 100, 0, (struct sockaddr *)&from, &len));
	say(n, "from %d len %u\n", ntohs(from.sin_port) == port_of(n, b), len);
	say_result(n, "rest is lost", n->recv(a, buf, 100, MSG_DONTWAIT));
	n->send(b, buf, 100, 0);
	m.msg_iovlen = 2;
	say_result(n, "msg", n->recvmsg(a, &m, 0));
	say(n, "trunc %d\n", m.msg_flags & MSG_TRUNC);
	n->send(b, "12345", 5, 0);
	say_result(n, "empty", n->send(b, "", 0, 0));
	n->send(b, "54321", 5, 0);
	say_result(n, "recv", n->recv(a, buf, 100, 0));
	say_result(n, "recv", n->recv(a, buf, 100, 0));
	say_result(n, "recv", n->recv(a, buf, 100, 0));
	say_result(n, "oob", n->send(b, buf, 1, MSG_OOB));
	n->close(a);
	n->close(b);
}

static void
datagram_gathering(struct net *n)
{
	int a = bound(n, SOCK_DGRAM), b = n->socket(AF_INET, SOCK_DGRAM, 0), v;
	struct sockaddr_in to = loopback(port_of(n, a)), zero = loopback(0);
	char x[10], y[1], z[20], buf[64], *big = calloc(1, 70000);
	struct iovec iov[3] = { { x, 10 }, { y, 0 }, { z, 20 } };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov,
	    .msg_iovlen = 3 };

	memset(x, 'x', sizeof(x));
	memset(z, 'z', sizeof(z));
	say_result(n, "sendmsg", n->sendmsg(b, &m, 0));
	await(n, a, POLLIN);
	say_result(n, "fionread", n->ioctl(a, FIONREAD, &v));
	say(n, "%d\n", v);
	say_result(n, "recv", n->recv(a, buf, 64, 0));
	say(n, "%.30s\n", buf);
	say_result(n, "too long", n->sendto(b, big, 65508, 0, (struct sockaddr *)&to, sizeof(to)));
	say_result(n, "far too long", n->sendto(b, big, 70000, 0, (struct sockaddr *)&to,
	    sizeof(to)));
	say_result(n, "port 0", n->sendto(b, big, 1, 0, (struct sockaddr *)&zero, sizeof(zero)));
	say_result(n, "short address", n->sendto(b, big, 1, 0, (struct sockaddr *)&to, 8));
	to.sin_family = AF_INET6;
	say_result(n, "family", n->sendto(b, big, 1, 0, (struct sockaddr *)&to, sizeof(to)));
	say_result(n, "dontwait", n->recv(a, buf, 64, MSG_DONTWAIT));
	free(big);
	n->close(a);
	n->close(b);
}

/* ---- poll ---- */

static void
polls(struct net *n)
{
	struct pollfd p[4];
	int fd[2], gone = n->socket(AF_INET, SOCK_DGRAM, 0), i;

	n->close(gone);
	connected_pair(n, fd);
	p[0] = (struct pollfd){ .fd = fd[0], .events = POLLIN | POLLOUT };
	p[1] = (struct pollfd){ .fd = -5, .events = POLLIN, .revents = 7 };
	p[2] = (struct pollfd){ .fd = gone, .events = POLLIN };
	p[3] = (struct pollfd){ .fd = fd[1], .events = POLLIN };
	say_result(n, "poll", n->poll(p, 4, 0));
	for (i = 0; i < 4; i++)
		say(n, "revents %x\n", (unsigned)p[i].revents);
	say_result(n, "time-out", n->poll(&p[3], 1, NEVER_MS));
	n->send(fd[0], "x", 1, 0);
	say_result(n, "poll", n->poll(&p[3], 1, SOON_MS));
	say(n, "revents %x\n", (unsigned)p[3].revents);
	n->close(fd[0]);
	say_result(n, "nothing", n->poll(NULL, 0, 1));
	n->close(fd[1]);
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

BOTH(names_and_their_errors_are_the_kernels, names)
BOTH(nonblocking_connect_tells_success_once, connect_steps)
BOTH(refused_socket_can_connect_elsewhere, refused_then_elsewhere)
BOTH(stream_receive_flags_are_the_kernels, stream_flags)
BOTH(shutdown_ends_each_side_as_the_kernels, stream_ends)
BOTH(vectors_scatter_and_gather, vectors)
BOTH(close_with_unread_data_resets_the_peer, unread_data_resets)
BOTH(accept_returns_connections_already_reset, accept_after_reset)
BOTH(status_flags_are_shared_by_duplicates, descriptor_flags)
BOTH(sendfile_moves_offset_or_position, file_to_socket)
BOTH(datagram_flags_are_the_kernels, datagram_flags)
BOTH(datagram_errors_are_the_kernels, datagram_gathering)
BOTH(poll_tells_what_the_kernels_tells, polls)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_their_errors_are_the_kernels),
		cmocka_unit_test(nonblocking_connect_tells_success_once),
		cmocka_unit_test(refused_socket_can_connect_elsewhere),
		cmocka_unit_test(stream_receive_flags_are_the_kernels),
		cmocka_unit_test(shutdown_ends_each_side_as_the_kernels),
		cmocka_unit_test(vectors_scatter_and_gather),
		cmocka_unit_test(close_with_unread_data_resets_the_peer),
		cmocka_unit_test(accept_returns_connections_already_reset),
		cmocka_unit_test(status_flags_are_shared_by_duplicates),
		cmocka_unit_test(sendfile_moves_offset_or_position),
		cmocka_unit_test(datagram_flags_are_the_kernels),
		cmocka_unit_test(datagram_errors_are_the_kernels),
		cmocka_unit_test(poll_tells_what_the_kernels_tells),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
