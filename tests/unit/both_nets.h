/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same case on darter's sockets and on the kernel's: a case is written against a table of calls
 * and writes down what it saw; the two transcripts must be equal. The kernel is the oracle, over
 * its own loopback.
 */
#ifndef TEST_UNIT_BOTH_NETS_H
#define TEST_UNIT_BOTH_NETS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <darter/darter.h>
#include <darter/event.h>
#include <darter/socket.h>
#include <darter/stats.h>

#include "support/cmocka_all.h"

#define SOON_MS		5000	/* what must happen; never reached when it does */
#define NEVER_MS	20	/* what must not happen */

struct net {
	const char *name;
	char said[16384];
	size_t len;
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*shutdown)(int, int);
	int (*close)(int);
	int (*dup)(int);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*sendfile)(int, int, off_t *, size_t);
	int (*fcntl)(int, int, ...);
	int (*ioctl)(int, unsigned long, ...);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*epoll_create1)(int);
	int (*epoll_ctl)(int, int, int, struct epoll_event *);
	int (*epoll_wait)(int, struct epoll_event *, int, int);
};

static int
kernel_accept4(int fd, struct sockaddr *a, socklen_t *l, int flags)
{
	return accept4(fd, a, l, flags);
}

static int
kernel_bind(int fd, const struct sockaddr *a, socklen_t l)
{
	return bind(fd, a, l);
}

static int
kernel_connect(int fd, const struct sockaddr *a, socklen_t l)
{
	return connect(fd, a, l);
}

static int
kernel_getsockname(int fd, struct sockaddr *a, socklen_t *l)
{
	return getsockname(fd, a, l);
}

static int
kernel_getpeername(int fd, struct sockaddr *a, socklen_t *l)
{
	return getpeername(fd, a, l);
}

static ssize_t
kernel_sendto(int fd, const void *b, size_t n, int flags, const struct sockaddr *a, socklen_t l)
{
	return sendto(fd, b, n, flags, a, l);
}

static ssize_t
kernel_recvfrom(int fd, void *b, size_t n, int flags, struct sockaddr *a, socklen_t *l)
{
	return recvfrom(fd, b, n, flags, a, l);
}

static struct net darter_net = {
	.name = "darter", .socket = darter_socket, .bind = darter_bind, .listen = darter_listen,
	.accept4 = darter_accept4, .connect = darter_connect, .shutdown = darter_shutdown,
	.close = darter_close, .dup = darter_dup, .getsockname = darter_getsockname,
	.getpeername = darter_getpeername, .getsockopt = darter_getsockopt,
	.setsockopt = darter_setsockopt, .send = darter_send, .sendto = darter_sendto,
	.sendmsg = darter_sendmsg, .recv = darter_recv, .recvfrom = darter_recvfrom,
	.recvmsg = darter_recvmsg, .read = darter_read, .write = darter_write, .readv =
	    darter_readv,
	.writev = darter_writev, .sendfile = darter_sendfile, .fcntl = darter_fcntl,
	.ioctl = darter_ioctl, .poll = darter_poll, .epoll_create1 = darter_epoll_create1,
	.epoll_ctl = darter_epoll_ctl, .epoll_wait = darter_epoll_wait,
};

static struct net kernel_net = {
	.name = "kernel", .socket = socket, .bind = kernel_bind, .listen = listen,
	.accept4 = kernel_accept4, .connect = kernel_connect, .shutdown = shutdown, .close = close,
	.dup = dup, .getsockname = kernel_getsockname, .getpeername = kernel_getpeername,
	.getsockopt = getsockopt, .setsockopt = setsockopt, .send = send, .sendto = kernel_sendto,
	.sendmsg = sendmsg, .recv = recv, .recvfrom = kernel_recvfrom, .recvmsg = recvmsg, .read =
	    read,
	.write = write, .readv = readv, .writev = writev, .sendfile = sendfile, .fcntl = fcntl,
	.ioctl = ioctl, .poll = poll, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};

/* ---- transcripts ---- */

static void say(struct net *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct net *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	n->len += (size_t)vsnprintf(n->said + n->len, sizeof(n->said) - n->len, fmt, ap);
	va_end(ap);
	assert_true(n->len < sizeof(n->said));
}

/* "what: 5" or "what: EAGAIN" */
static inline void
say_result(struct net *n, const char *what, long rc)
{
	if (rc < 0)
		say(n, "%s: %s\n", what, strerrorname_np(errno));
	else
		say(n, "%s: %ld\n", what, rc);
}

/* Descriptors differ: only whether the call succeeded. */
static inline int
say_ok(struct net *n, const char *what, int rc)
{
	if (rc < 0)
		say(n, "%s: %s\n", what, strerrorname_np(errno));
	else
		say(n, "%s: ok\n", what);
	return rc;
}

static inline void
say_events(struct net *n, const char *what, uint32_t ev)
{
	say(n, "%s:%s%s%s%s%s%s\n", what, ev & EPOLLIN ? " IN" : "", ev & EPOLLOUT ? " OUT" : "",
	    ev & EPOLLRDHUP ? " RDHUP" : "", ev & EPOLLHUP ? " HUP" : "", ev & EPOLLERR ? " ERR" :
	    "",
	    ev & EPOLLPRI ? " PRI" : "");
}

/* Runs a case on both and compares. */
static inline void
compare(void (*fn)(struct net *n))
{
	darter_net.len = kernel_net.len = 0;
	darter_net.said[0] = kernel_net.said[0] = '\0';
	fn(&kernel_net);
	fn(&darter_net);
	if (strcmp(kernel_net.said, darter_net.said) != 0)
		fprintf(stderr, "---- kernel ----\n%s---- darter ----\n%s", kernel_net.said,
		    darter_net.said);
	assert_string_equal(darter_net.said, kernel_net.said);
}

/* ---- sockets ---- */

static inline struct sockaddr_in
loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static inline uint16_t
port_of(struct net *n, int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	assert_int_equal(n->getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin_port);
}

static inline int
bound(struct net *n, int type)
{
	struct sockaddr_in a = loopback(0);
	int fd = n->socket(AF_INET, type, 0);

	assert_true(fd >= 0);
	assert_int_equal(n->bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline int
listener(struct net *n, int backlog)
{
	int fd = bound(n, SOCK_STREAM);

	assert_int_equal(n->listen(fd, backlog), 0);
	return fd;
}

static inline int
connect_to(struct net *n, int fd, uint16_t port)
{
	struct sockaddr_in a = loopback(port);

	return n->connect(fd, (struct sockaddr *)&a, sizeof(a));
}

/* A TCP connection: [0] connected, [1] accepted. */
static inline void
connected_pair(struct net *n, int fd[2])
{
	int l = listener(n, 1);

	fd[0] = n->socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect_to(n, fd[0], port_of(n, l)), 0);
	fd[1] = n->accept4(l, NULL, NULL, 0);
	assert_true(fd[1] >= 0);
	n->close(l);
}

static inline void
set_nonblock(struct net *n, int fd)
{
	assert_int_equal(n->fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static inline void
set_int(struct net *n, int fd, int level, int name, int v)
{
	assert_int_equal(n->setsockopt(fd, level, name, &v, sizeof(v)), 0);
}

static inline void
reset_close(struct net *n, int fd)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(n->setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	n->close(fd);
}

/* Waits until fd is ready for one of `events`. */
static inline void
await(struct net *n, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(n->poll(&p, 1, SOON_MS), 1);
}

static inline int
so_error(struct net *n, int fd)
{
	socklen_t len = sizeof(int);
	int v = -1;

	assert_int_equal(n->getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	return v;
}

/* ---- the stack of a test program; one a program ---- */

static struct darter_stack *the_stack;

static inline int
open_stack(void **state)
{
	static const char *const over[] = { "stack.netisrs=2", "stack.exit_linger_ms=100", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	char err[DARTER_ERR_MAX];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	the_stack = darter_open(&o, err, sizeof(err));
	if (the_stack == NULL)
		fprintf(stderr, "%s\n", err);
	return the_stack == NULL ? -1 : 0;
}

static inline int
close_stack(void **state)
{
	unsigned open = darter_fd_count();

	(void)state;
	darter_stack_close(the_stack);
	return open == 0 ? 0 : -1;	/* every case closes what it opens */
}

#endif
