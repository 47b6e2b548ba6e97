/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for many descriptors: epoll, poll and select over darter's sockets and the kernel's
 * descriptors alike.
 *
 * epoll behaves as Linux's does (epoll(7)): level items are checked again when they are collected,
 * an EPOLLET item is reported once for each arrival (not only when a buffer turns from empty to
 * non-empty), EPOLLONESHOT disarms, EPOLLHUP and EPOLLERR are always reported, several threads may
 * wait on one epoll descriptor and an edge event is given to one of them. An item belongs to the
 * descriptor's open socket: it goes away when the last duplicate is closed. Not supported:
 * EPOLLEXCLUSIVE and epoll descriptors of darter inside one another (EINVAL).
 *
 * To embed darter in an event loop of the kernel's (libuv, libevent, a GUI), put darter_epoll_fd()
 * into that loop.
 */
#ifndef DARTER_EVENT_H
#define DARTER_EVENT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include <darter/darter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A darter descriptor, in the calling thread's stack; closed with darter_close. flags:
 * EPOLL_CLOEXEC. errno: EINVAL, EMFILE, ENOMEM, ENETDOWN (no open stack).
 */
DARTER_API int darter_epoll_create1(int flags);

/*
 * EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL for a darter socket or a kernel descriptor `fd`. A
 * condition that holds already is reported by the next wait, EPOLLET included. errno: EEXIST,
 * ENOENT, EINVAL (EPOLLEXCLUSIVE, fd is an epoll of darter's or epfd is none), EBADF, ENOMEM, EPERM
 * (a kernel file that can't be polled).
 */
DARTER_API int darter_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);

/*
 * Waits for events, at most `max`; timeout in milliseconds, -1 for ever, 0 not at all. An attached
 * thread runs its netisr meanwhile. epoll_pwait exchanges the signal mask around the wait. Returns
 * the number of events, 0 at the timeout. errno: EINTR, EINVAL (max < 1), EBADF (also when epfd is
 * closed meanwhile).
 */
DARTER_API int darter_epoll_wait(int epfd, struct epoll_event *evs, int max, int timeout_ms);
DARTER_API int darter_epoll_pwait(int epfd, struct epoll_event *evs, int max, int timeout_ms,
    const sigset_t *sigmask);

/*
 * A kernel descriptor that is readable while darter_epoll_wait(epfd, …, 0) would return events (it
 * may be readable once for nothing). It belongs to the epoll and must not be read or closed. With
 * an attached thread, the netisr does not run while that thread sleeps elsewhere: use background
 * threads with it. errno: EBADF, EINVAL, EMFILE.
 */
DARTER_API int darter_epoll_fd(int epfd);

/*
 * poll(2) over both kinds of descriptors. A negative fd is skipped; one that is not open reports
 * POLLNVAL. errno: EINTR, EINVAL (n too large), ENOMEM. ppoll takes a timespec (NULL: for ever) and
 * a mask.
 */
DARTER_API int darter_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
DARTER_API int darter_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *sigmask);

/*
 * select(2) over both kinds. fd_set can't hold darter's large numbers, hence a set of its own: the
 * kernel's descriptors below FD_SETSIZE, and the first DARTER_FD_SETSIZE of darter's.
 */
#define DARTER_FD_SETSIZE 4096

struct darter_fd_set {
	fd_set kernel;
	uint64_t darter[DARTER_FD_SETSIZE / 64];	/* bit i: darter_fd_base() + i */
};

/* Empties a set. */
DARTER_API void darter_fd_zero(struct darter_fd_set *set);
/* False when fd does not fit into a set. */
DARTER_API bool darter_fd_set(int fd, struct darter_fd_set *set);
DARTER_API void darter_fd_clr(int fd, struct darter_fd_set *set);
DARTER_API bool darter_fd_isset(int fd, const struct darter_fd_set *set);

/*
 * nfds is the highest descriptor of any set plus one. Sets are NULL or are replaced by those that
 * are ready (at an error they stay as they were). timeout NULL: for ever; unlike Linux's, it is not
 * changed. Returns the number of bits set. errno: EBADF, EINTR, EINVAL, ENOMEM.
 */
DARTER_API int darter_select(int nfds, struct darter_fd_set *rd, struct darter_fd_set *wr,
    struct darter_fd_set *ex, const struct timeval *timeout);

#ifdef __cplusplus
}
#endif

#endif
