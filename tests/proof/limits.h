/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of the programs that test limits, on one stack's loopback. */
#ifndef TEST_PROOF_LIMITS_H
#define TEST_PROOF_LIMITS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/socket.h>

#include "support/cmocka_all.h"
#include "support/teststack.h"

static inline struct sockaddr_in
here(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static inline int
listen_on(uint16_t port, int backlog)
{
	struct sockaddr_in a = here(port);
	int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	a.sin_addr.s_addr = htonl(INADDR_ANY);
	assert_true(fd >= 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(fd, backlog), 0);
	return fd;
}

static inline int
connect_here(struct teststack *ts, uint16_t port)
{
	struct sockaddr_in a = here(port);
	int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(darter_connect(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, EINPROGRESS);
	teststack_run(ts);
	return fd;
}

static inline void
reset_close(int fd)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(darter_setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	assert_int_equal(darter_close(fd), 0);
}

#endif
