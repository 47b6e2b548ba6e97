/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two tables of socket calls. Linux' prototypes take unions where addresses are expected, hence
 * a line of code for each such call.
 */
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "netrate.h"

const struct net_calls *net;

static int
kernel_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int
kernel_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return accept4(fd, addr, len, flags);
}

static int
kernel_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

static ssize_t
kernel_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
    socklen_t to_len)
{
	return sendto(fd, buf, len, flags, to, to_len);
}

static ssize_t
kernel_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
    socklen_t *from_len)
{
	return recvfrom(fd, buf, len, flags, from, from_len);
}

static int
kernel_set_nonblock(int fd, bool is_on)
{
	int on = is_on;

	return ioctl(fd, FIONBIO, &on);
}

static int
set_nonblock(int fd, bool is_on)
{
	int on = is_on;

	return darter_ioctl(fd, FIONBIO, &on);
}

const struct net_calls net_kernel = {
	.name = "kernel",
	.socket = socket,
	.bind = kernel_bind,
	.listen = listen,
	.accept4 = kernel_accept4,
	.connect = kernel_connect,
	.send = send,
	.sendto = kernel_sendto,
	.recv = recv,
	.recvfrom = kernel_recvfrom,
	.sendfile = sendfile,
	.shutdown = shutdown,
	.close = close,
	.setsockopt = setsockopt,
	.set_nonblock = kernel_set_nonblock,
	.epoll_create1 = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};

const struct net_calls net_darter = {
	.name = "darter",
	.socket = darter_socket,
	.bind = darter_bind,
	.listen = darter_listen,
	.accept4 = darter_accept4,
	.connect = darter_connect,
	.send = darter_send,
	.sendto = darter_sendto,
	.recv = darter_recv,
	.recvfrom = darter_recvfrom,
	.sendfile = darter_sendfile,
	.shutdown = darter_shutdown,
	.close = darter_close,
	.setsockopt = darter_setsockopt,
	.set_nonblock = set_nonblock,
	.epoll_create1 = darter_epoll_create1,
	.epoll_ctl = darter_epoll_ctl,
	.epoll_wait = darter_epoll_wait,
};
