/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h: epoll, poll and select. select is poll with sets in front: bits become pollfds and back,
 * by Linux's rule of which poll events count for which set.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <darter/event.h>

#include "api/api.h"
#include "base/time.h"
#include "socket/evq.h"
#include "socket/fdtab.h"
#include "socket/poll.h"

/* ---- epoll ---- */

int
darter_epoll_create1(int flags)
{
	struct darter_stack *s;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	s = stacks_current();
	if (s == NULL)
		rc = -ENETDOWN;
	else if (flags & ~EPOLL_CLOEXEC)
		rc = -EINVAL;
	else
		rc = evq_new(s, (flags & EPOLL_CLOEXEC) != 0);
	return (int)api_return(rc);
}

int
darter_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct evq *q;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = evq_pin(epfd, &q);
	if (rc == 0) {
		rc = evq_ctl(q, op, fd, ev);
		evq_unpin(q);
	}
	return (int)api_return(rc);
}

static int64_t
ms_to_us(int ms)
{
	return ms < 0 ? -1 : (int64_t)ms * (int64_t)US_PER_MS;
}

int
darter_epoll_wait(int epfd, struct epoll_event *evs, int max, int timeout_ms)
{
	struct evq *q;
	int rc = call_enter_cancel();

	if (rc < 0)
		return api_refuse(rc);
	rc = evq_pin(epfd, &q);
	if (rc == 0) {
		rc = evq_wait(q, evs, max, ms_to_us(timeout_ms));
		evq_unpin(q);
	}
	return (int)api_return(rc);
}

int
darter_epoll_pwait(int epfd, struct epoll_event *evs, int max, int timeout_ms,
    const sigset_t *sigmask)
{
	sigset_t old;
	int rc;

	if (sigmask != NULL)
		pthread_sigmask(SIG_SETMASK, sigmask, &old);
	rc = darter_epoll_wait(epfd, evs, max, timeout_ms);
	if (sigmask != NULL) {
		int err = errno;

		pthread_sigmask(SIG_SETMASK, &old, NULL);
		errno = err;
	}
	return rc;
}

int
darter_epoll_fd(int epfd)
{
	struct evq *q;
	int rc = call_enter();

	if (rc < 0)
		return api_refuse(rc);
	rc = evq_pin(epfd, &q);
	if (rc == 0) {
		rc = evq_out_fd(q);
		evq_unpin(q);
	}
	return (int)api_return(rc);
}

/* ---- poll ---- */

static int
poll_us(struct pollfd *fds, nfds_t n, int64_t timeout_us)
{
	struct darter_stack *s = stacks_current();
	struct timespec ts = { .tv_sec = (time_t)(timeout_us / (int64_t)US_PER_SEC),
		.tv_nsec = (long)(timeout_us % (int64_t)US_PER_SEC) * 1000 };
	int rc;

	/* without a stack there are only the kernel's descriptors */
	if (s == NULL)
		return ppoll(fds, n, timeout_us < 0 ? NULL : &ts, NULL);
	rc = call_enter_cancel();
	if (rc < 0)
		return api_refuse(rc);
	return (int)api_return(sock_poll(s, fds, n, timeout_us));
}

int
darter_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return poll_us(fds, n, ms_to_us(timeout_ms));
}

int
darter_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *sigmask)
{
	int64_t us = -1;
	sigset_t old;
	int rc, err;

	if (timeout != NULL) {
		if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000000000L)
			return api_refuse(-EINVAL);
		us = timeout->tv_sec > UINT32_MAX ? -1 :
		    (int64_t)timeout->tv_sec * (int64_t)US_PER_SEC + (timeout->tv_nsec +
		    999) / 1000;
	}
	if (sigmask != NULL)
		pthread_sigmask(SIG_SETMASK, sigmask, &old);
	rc = poll_us(fds, n, us);
	err = errno;
	if (sigmask != NULL)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = err;
	return rc;
}

/* ---- select ---- */

#define SEL_READ	(POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR)
#define SEL_WRITE	(POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR)
#define SEL_EXCEPT	POLLPRI

static bool
is_in_set(int fd)
{
	int base = atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);

	if (fd >= 0 && fd < FD_SETSIZE && (base == 0 || fd < base))
		return true;
	return base != 0 && fd >= base && fd - base < DARTER_FD_SETSIZE;
}

/* The word and bit of one of darter's descriptors, or NULL for the kernel's. */
static uint64_t *
darter_word(int fd, struct darter_fd_set *set, uint64_t *ret_bit)
{
	int base = atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);

	if (base == 0 || fd < base)
		return NULL;
	*ret_bit = UINT64_C(1) << ((fd - base) % 64);
	return &set->darter[(fd - base) / 64];
}

void
darter_fd_zero(struct darter_fd_set *set)
{
	memset(set, 0, sizeof(*set));
}

bool
darter_fd_set(int fd, struct darter_fd_set *set)
{
	uint64_t *word, bit;

	if (!is_in_set(fd))
		return false;
	word = darter_word(fd, set, &bit);
	if (word != NULL)
		*word |= bit;
	else
		FD_SET(fd, &set->kernel);
	return true;
}

void
darter_fd_clr(int fd, struct darter_fd_set *set)
{
	uint64_t *word, bit;

	if (!is_in_set(fd))
		return;
	word = darter_word(fd, set, &bit);
	if (word != NULL)
		*word &= ~bit;
	else
		FD_CLR(fd, &set->kernel);
}

bool
darter_fd_isset(int fd, const struct darter_fd_set *set)
{
	int base = atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);

	if (!is_in_set(fd))
		return false;
	if (base == 0 || fd < base)
		return FD_ISSET(fd, &set->kernel);
	return (set->darter[(fd - base) / 64] >> ((fd - base) % 64)) & 1;
}

/* The poll events that stand for fd's bits in the three sets. */
static short
wanted(int fd, struct darter_fd_set *const sets[3])
{
	static const short events[3] = { POLLIN | POLLRDNORM | POLLRDBAND, POLLOUT | POLLWRNORM,
	    POLLPRI };
	short want = 0;
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (sets[i] != NULL && darter_fd_isset(fd, sets[i]))
			want |= events[i];
	}
	return want;
}

/* Adds [from, to) to fds; returns the new count. */
static nfds_t
add_range(struct pollfd *fds, nfds_t n, int from, int to, struct darter_fd_set *const sets[3])
{
	int fd;

	for (fd = from; fd < to; fd++) {
		short want = wanted(fd, sets);

		if (want != 0)
			fds[n++] = (struct pollfd){ .fd = fd, .events = want };
	}
	return n;
}

static int
tell_sets(const struct pollfd *fds, nfds_t n, struct darter_fd_set *const sets[3])
{
	static const short counts[3] = { SEL_READ, SEL_WRITE, SEL_EXCEPT };
	struct darter_fd_set out[3];
	int bits = 0;
	unsigned i;
	nfds_t k;

	memset(out, 0, sizeof(out));
	for (k = 0; k < n; k++) {
		if (fds[k].revents & POLLNVAL)
			return api_refuse(-EBADF);
		for (i = 0; i < 3; i++) {
			if (sets[i] == NULL || !darter_fd_isset(fds[k].fd, sets[i]) ||
			    !(fds[k].revents & counts[i]))
				continue;
			darter_fd_set(fds[k].fd, &out[i]);
			bits++;
		}
	}
	for (i = 0; i < 3; i++) {
		if (sets[i] != NULL)
			*sets[i] = out[i];
	}
	return bits;
}

int
darter_select(int nfds, struct darter_fd_set *rd, struct darter_fd_set *wr,
    struct darter_fd_set *ex,
    const struct timeval *timeout)
{
	struct darter_fd_set *const sets[3] = { rd, wr, ex };
	int base = atomic_load_explicit(&fdtab_first_fd, memory_order_relaxed);
	int64_t us = -1;
	struct pollfd *fds;
	nfds_t n;
	int rc;

	if (nfds < 0 || (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0 ||
	    timeout->tv_usec >= (suseconds_t)US_PER_SEC)))
		return api_refuse(-EINVAL);
	if (timeout != NULL && timeout->tv_sec <= UINT32_MAX)
		us = (int64_t)timeout->tv_sec * (int64_t)US_PER_SEC + timeout->tv_usec;
	fds = malloc((FD_SETSIZE + DARTER_FD_SETSIZE) * sizeof(*fds));
	if (fds == NULL)
		return api_refuse(-ENOMEM);
	n = add_range(fds, 0, 0, nfds < FD_SETSIZE ? nfds : FD_SETSIZE, sets);
	if (base != 0 && nfds > base)
		n = add_range(fds, n, base < FD_SETSIZE ? FD_SETSIZE : base,
		    nfds - base < DARTER_FD_SETSIZE ? nfds : base + DARTER_FD_SETSIZE, sets);
	rc = poll_us(fds, n, us);
	if (rc >= 0)
		rc = tell_sets(fds, n, sets);
	free(fds);
	return rc;
}
