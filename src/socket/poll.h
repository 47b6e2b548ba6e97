/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2) over sockets of darter and descriptors of the kernel. */
#ifndef SOCKET_POLL_H
#define SOCKET_POLL_H

#include <poll.h>
#include <stdint.h>

struct darter_stack;

/*
 * timeout_us < 0: for ever. Number of descriptors with revents, 0 at the time-out, or -EINTR,
 * -EINVAL (too many), -ENOMEM. `s`: whose clock and netisrs serve the wait. Between call_enter and
 * call_leave.
 */
int sock_poll(struct darter_stack *s, struct pollfd *fds, nfds_t n, int64_t timeout_us);

#endif
