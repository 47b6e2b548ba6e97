/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of fixed size between the conductor and its workers, the clock and the pinning. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

uint64_t
bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int
bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

int
bench_msg_send(int fd, const void *msg, size_t len)
{
	const char *p = msg;
	ssize_t n;

	while (len > 0) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
bench_msg_recv(int fd, void *msg, size_t len, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t end = bench_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000;
	char *p = msg;
	ssize_t n;

	while (len > 0) {
		uint64_t now = bench_now_ns();
		int left = timeout_ms < 0 ? -1 : now >= end ? 0 : (int)((end - now) / 1000000) + 1;
		int rc = poll(&pfd, 1, left);

		if (rc < 0 && errno == EINTR)
			return -EINTR;	/* the conductor was asked to stop */
		if (rc <= 0)
			return rc == 0 ? -ETIMEDOUT : -errno;
		n = recv(fd, p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? -EPIPE : -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
