/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's calls, but recv and epoll_wait never sleep: what is left is the kernel's path
 * without wake-ups, for who wants to see how much of a difference these make.
 */
#include <errno.h>

#include "bench.h"

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

const struct net_calls *
bench_net_spinning(void)
{
	static struct net_calls spinning;

	spinning = net_kernel;
	spinning.recv = spin_recv;
	spinning.epoll_wait = spin_epoll_wait;
	return &spinning;
}
