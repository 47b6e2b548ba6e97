/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll(2). First everything is looked at once, without registering anywhere. Only if nothing is
 * ready and the caller wants to wait, each socket is pinned and gets an item that posts one
 * waitword of this call; kernel descriptors go into an epoll of the kernel's for the duration.
 * After each wake-up everything is looked at again, so a wake-up is only a hint.
 */
#include "socket/poll.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "socket/call.h"
#include "socket/evq.h"
#include "socket/sock.h"

#define POLL_MAX	(1u << 20)
#define ALWAYS		((uint32_t)(EPOLLERR | EPOLLHUP))

struct poller {
	struct darter_stack *stack;
	struct pollfd *fds;
	nfds_t n;
	struct waitword word;
	struct evq_item *items;		/* one a descriptor; sock NULL: not one of ours */
	int kernel_ep;			/* -1: none */
	bool has_kernel;
};

/* ---- looking ---- */

static short
look_at_sock(int fd, short events)
{
	uint32_t want = (uint32_t)(uint16_t)events;
	struct sock *so;
	uint32_t ready;

	if (sock_pin(fd, 0, &so) < 0)
		return POLLNVAL;
	/* the poll and epoll bits are the same numbers */
	ready = sock_ready(so, want) & (want | ALWAYS);
	sock_unpin(so, 0);
	return (short)ready;
}

/* An epoll of ours is readable while events wait. */
static short
look_at_evq(int fd, short events)
{
	struct pollfd p = { .events = events };
	struct evq *q;

	if (evq_pin(fd, &q) < 0)
		return POLLNVAL;
	p.fd = evq_out_fd(q);
	if (p.fd >= 0)
		poll(&p, 1, 0);
	evq_unpin(q);
	return p.revents;
}

static short
look_at_kernel(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static bool
is_evq(int fd)
{
	struct fd_entry *e = fdtab_entry(fd);
	uintptr_t word = e == NULL ? 0 : atomic_load_explicit(&e->object, memory_order_acquire);

	return word != 0 && fdtab_kind(word) == FD_EVQ;
}

static int
look(struct poller *p)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < p->n; i++) {
		struct pollfd *f = &p->fds[i];

		if (f->fd < 0)
			f->revents = 0;
		else if (!fdtab_is_in_range(f->fd))
			f->revents = look_at_kernel(f->fd, f->events);
		else if (is_evq(f->fd))
			f->revents = look_at_evq(f->fd, f->events);
		else
			f->revents = look_at_sock(f->fd, f->events);
		ready += f->revents != 0;
	}
	return ready;
}

/* ---- registering ---- */

static int
watch_kernel(struct poller *p, int fd, short events)
{
	struct epoll_event ev = { .events = (uint32_t)(uint16_t)events };

	if (p->kernel_ep < 0)
		p->kernel_ep = epoll_create1(EPOLL_CLOEXEC);
	if (p->kernel_ep < 0)
		return -errno;
	p->has_kernel = true;
	if (epoll_ctl(p->kernel_ep, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* the same descriptor twice: wake for any event of it */
	ev.events |= EPOLLIN | EPOLLOUT | EPOLLPRI;
	return epoll_ctl(p->kernel_ep, EPOLL_CTL_MOD, fd, &ev) < 0 ? -errno : 0;
}

static int
watch_evq(struct poller *p, int fd)
{
	struct evq *q;
	int out, err = evq_pin(fd, &q);

	if (err < 0)
		return err;
	out = evq_out_fd(q);
	err = out < 0 ? out : watch_kernel(p, out, POLLIN);
	evq_unpin(q);
	return err;
}

static int
watch_sock(struct poller *p, struct evq_item *it, int fd, short events)
{
	int err = sock_pin(fd, 0, &it->sock);

	if (err < 0) {
		it->sock = NULL;
		return err;
	}
	it->word = &p->word;
	atomic_init(&it->events, (uint32_t)(uint16_t)events | ALWAYS);
	evq_list_lock(it->sock);
	evq_list_add(it->sock, it);
	evq_list_unlock(it->sock);
	return 0;
}

/* A descriptor that can't be watched has an answer at once: the next look finds it. */
static int
watch(struct poller *p)
{
	nfds_t i;

	p->items = calloc(p->n, sizeof(*p->items));
	if (p->items == NULL && p->n > 0)
		return -ENOMEM;
	for (i = 0; i < p->n; i++) {
		const struct pollfd *f = &p->fds[i];
		int err = 0;

		if (f->fd < 0)
			continue;
		if (!fdtab_is_in_range(f->fd))
			err = watch_kernel(p, f->fd, f->events);
		else if (is_evq(f->fd))
			err = watch_evq(p, f->fd);
		else
			err = watch_sock(p, &p->items[i], f->fd, f->events);
		if (err < 0 && err != -EBADF && err != -EPERM)
			return err;
	}
	return 0;
}

static void
unwatch(void *arg)
{
	struct poller *p = arg;
	nfds_t i;

	for (i = 0; p->items != NULL && i < p->n; i++) {
		struct evq_item *it = &p->items[i];

		if (it->sock == NULL)
			continue;
		evq_list_lock(it->sock);
		evq_list_remove(it->sock, it);
		evq_list_unlock(it->sock);
		sock_unpin(it->sock, 0);
	}
	free(p->items);
	if (p->kernel_ep >= 0)
		close(p->kernel_ep);
}

/* ---- waiting ---- */

static int
wait_and_look(struct poller *p, struct call_wait *w)
{
	int err = 0, n;

	for (;;) {
		w->seen = waitword_seq(&p->word);
		n = look(p);
		if (n != 0)
			return n;
		if (err < 0)
			return err == -ETIMEDOUT ? 0 : err;
		err = call_wait(w);
	}
}

int
sock_poll(struct darter_stack *s, struct pollfd *fds, nfds_t n, int64_t timeout_us)
{
	struct poller p = { .stack = s, .fds = fds, .n = n, .kernel_ep = -1 };
	struct call_wait w = { .stack = s, .word = &p.word, .deadline = TIME_NEVER, .extra_fd = -1,
		.signals = call_signals(), .undo = unwatch, .arg = &p };
	struct netisr *own = netisr_current();
	int rc;

	if (n > POLL_MAX)
		return -EINVAL;
	if (own != NULL)
		netisr_round(own);
	rc = look(&p);
	if (rc != 0 || timeout_us == 0)
		return rc;
	if (timeout_us > 0)
		w.deadline = time_add_us(stack_now(s), (uint64_t)timeout_us);
	rc = watch(&p);
	if (rc == 0) {
		w.extra_fd = p.kernel_ep;
		rc = wait_and_look(&p, &w);
	}
	unwatch(&p);
	return rc;
}
