/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sets of socket calls that a worker runs the same program on. The spinning kernel set
 * never sleeps in recv and epoll_wait: what is left is the kernel's path without wake-ups, for who
 * wants to see how much of a difference these make.
 */
#include <errno.h>
#include <unistd.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "bench.h"

const struct bench_net bench_net_darter = {
	.name = "darter",
	.socket = darter_socket,
	.bind = darter_bind,
	.listen = darter_listen,
	.accept4 = darter_accept4,
	.connect = darter_connect,
	.send = darter_send,
	.recv = darter_recv,
	.getsockopt = darter_getsockopt,
	.setsockopt = darter_setsockopt,
	.close = darter_close,
	.epoll_create1 = darter_epoll_create1,
	.epoll_ctl = darter_epoll_ctl,
	.epoll_wait = darter_epoll_wait,
};

const struct bench_net bench_net_kernel = {
	.name = "kernel",
	.socket = socket,
	.bind = bind,
	.listen = listen,
	.accept4 = accept4,
	.connect = connect,
	.send = send,
	.recv = recv,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.close = close,
	.epoll_create1 = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
};

#define SPIN_MAX_NS	UINT64_C(1000000000)	/* longer than any answer takes */

static ssize_t
spin_recv(int fd, void *buf, size_t len, int flags)
{
	uint64_t start = 0;
	unsigned i;
	ssize_t n;

	for (i = 0;; i++) {
		n = recv(fd, buf, len, flags | MSG_DONTWAIT);
		if (n >= 0 || errno != EAGAIN || (flags & MSG_DONTWAIT))
			return n;
		if (i % 1024 != 0)
			continue;
		if (start == 0)
			start = bench_now_ns();
		else if (bench_now_ns() - start > SPIN_MAX_NS)
			return n;
	}
}

static int
spin_epoll_wait(int ep, struct epoll_event *evs, int max, int timeout_ms)
{
	uint64_t end = bench_now_ns() + (uint64_t)(timeout_ms < 0 ? 1000 : timeout_ms) * 1000000;
	int n;

	do {
		n = epoll_wait(ep, evs, max, 0);
	} while (n == 0 && bench_now_ns() < end);
	return n;
}

const struct bench_net bench_net_kernel_spin = {
	.name = "kernel",
	.socket = socket,
	.bind = bind,
	.listen = listen,
	.accept4 = accept4,
	.connect = connect,
	.send = send,
	.recv = spin_recv,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.close = close,
	.epoll_create1 = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = spin_epoll_wait,
};
