/* SPDX-License-Identifier: BSD-2-Clause */
/* The two tables of socket calls. */
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "calls.h"

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
	.bind = bind,
	.listen = listen,
	.accept4 = accept4,
	.connect = connect,
	.send = send,
	.sendto = sendto,
	.recv = recv,
	.recvfrom = recvfrom,
	.sendfile = sendfile,
	.shutdown = shutdown,
	.close = close,
	.getsockopt = getsockopt,
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
	.getsockopt = darter_getsockopt,
	.setsockopt = darter_setsockopt,
	.set_nonblock = set_nonblock,
	.epoll_create1 = darter_epoll_create1,
	.epoll_ctl = darter_epoll_ctl,
	.epoll_wait = darter_epoll_wait,
};
