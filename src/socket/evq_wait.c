/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collecting events and waiting for them; see evq.h.
 *
 * A ready item is taken out of the queue, marked as not queued, and only then its socket is looked
 * at: an event that comes after the look queues it again. What no longer holds is not reported. A
 * level item that holds goes to the end of the queue, so that the next wait looks again and all
 * items get their turn; an edge item waits for its next event; a oneshot item is disarmed.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "socket/call.h"
#include "socket/evq.h"
#include "socket/sock.h"

#define EVENTS_PRIVATE	((uint32_t)(EPOLLONESHOT | EPOLLET | EPOLLWAKEUP))

void
evq_signal_out(struct evq *q)
{
	int fd = atomic_load_explicit(&q->out_event, memory_order_acquire);
	uint64_t one = 1;
	ssize_t ignored;

	if (fd < 0 || atomic_exchange(&q->is_out_set, true))
		return;
	ignored = write(fd, &one, sizeof(one));
	(void)ignored;
}

void
evq_enqueue(struct evq *q, struct evq_item *it)
{
	it->is_in_queue = true;
	TAILQ_INSERT_TAIL(&q->queue, it, at);
	q->n_queued++;
}

void
evq_absorb(struct evq *q)
{
	struct evq_item *it = atomic_exchange_explicit(&q->pushed, NULL, memory_order_acq_rel);
	struct evq_item *in_order = NULL;

	while (it != NULL) {
		struct evq_item *next = it->pushed_next;

		it->pushed_next = in_order;
		in_order = it;
		it = next;
	}
	for (; in_order != NULL; in_order = in_order->pushed_next)
		evq_enqueue(q, in_order);
}

/* One item of the queue; true when it makes an event. With evq->lock. */
static bool
collect_one(struct evq *q, struct epoll_event *ret_ev)
{
	struct evq_item *it = TAILQ_FIRST(&q->queue);
	uint32_t want, ready;

	TAILQ_REMOVE(&q->queue, it, at);
	q->n_queued--;
	it->is_in_queue = false;
	atomic_exchange_explicit(&it->is_queued, false, memory_order_seq_cst);
	want = atomic_load_explicit(&it->events, memory_order_relaxed);
	ready = sock_ready(it->sock, want) & want;
	if (ready == 0)
		return false;
	ret_ev->events = ready;
	ret_ev->data.u64 = it->data;
	if (want & EPOLLONESHOT) {
		atomic_store_explicit(&it->events, want & EVENTS_PRIVATE, memory_order_relaxed);
	} else if (!(want & EPOLLET) &&
	    !atomic_exchange_explicit(&it->is_queued, true, memory_order_acq_rel)) {
		evq_enqueue(q, it);
	}
	return true;
}

/* Events are collected: out_event stays readable only while more may be waiting. With evq->lock. */
static void
settle_out(struct evq *q)
{
	int fd = atomic_load_explicit(&q->out_event, memory_order_relaxed);
	uint64_t v;
	ssize_t ignored;

	if (fd < 0 || q->n_queued != 0)
		return;
	/*
	 * whatever the flag says: a pusher that raised it may write only after an earlier look
	 * cleared it
	 */
	ignored = read(fd, &v, sizeof(v));
	(void)ignored;
	atomic_store(&q->is_out_set, false);
	/* pushed before the store: its pusher may have found the flag still set */
	if (atomic_load(&q->pushed) != NULL)
		evq_signal_out(q);
}

static int
collect_socks(struct evq *q, struct epoll_event *evs, int max)
{
	uint32_t looks;
	int n = 0;

	pthread_mutex_lock(&q->lock);
	evq_absorb(q);
	for (looks = q->n_queued; looks > 0 && n < max; looks--)
		n += collect_one(q, &evs[n]);
	settle_out(q);
	pthread_mutex_unlock(&q->lock);
	return n;
}

static int
collect_kernel(struct evq *q, struct epoll_event *evs, int max)
{
	int ep = atomic_load(&q->kernel_ep), n, old;

	if (ep < 0 || max == 0 || atomic_load(&q->n_kernel) == 0)
		return 0;
	/* a cancellation point, but not one of ours: the queue is pinned */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	n = epoll_wait(ep, evs, max, 0);
	pthread_setcancelstate(old, NULL);
	return n < 0 ? 0 : n;
}

static int
collect(struct evq *q, struct epoll_event *evs, int max)
{
	int n, reserved = 0;
	bool is_kernels_turn;

	if (atomic_load_explicit(&q->n_kernel, memory_order_relaxed) == 0)
		return collect_socks(q, evs, max);
	/*
	 * neither kind may starve the other: the kernel's get a place, with room for one only every
	 * second time
	 */
	is_kernels_turn = !atomic_load_explicit(&q->is_kernels_turn, memory_order_relaxed);
	atomic_store_explicit(&q->is_kernels_turn, is_kernels_turn, memory_order_relaxed);
	if (max > 1 || is_kernels_turn)
		reserved = collect_kernel(q, evs, max > 1 ? max / 2 : 1);
	n = reserved + collect_socks(q, evs + reserved, max - reserved);
	return n + (reserved == 0 ? collect_kernel(q, evs + n, max - n) : 0);
}

/* An attached thread's waits are what runs its netisr: also those that find events at once. */
static void
run_own_netisr(struct darter_stack *s)
{
	struct netisr *n = netisr_current();

	if (n != NULL && n->stack == s)
		netisr_round(n);
}

static void
undo_wait(void *arg)
{
	evq_unpin(arg);
}

int
evq_wait(struct evq *q, struct epoll_event *evs, int max, int64_t timeout_us)
{
	struct call_wait w = { .stack = q->stack, .word = &q->news, .deadline = TIME_NEVER,
		.signals = call_signals(), .undo = undo_wait, .arg = q };
	int err = 0;

	if (max < 1)
		return -EINVAL;
	run_own_netisr(q->stack);
	if (timeout_us > 0)
		w.deadline = time_add_us(stack_now(q->stack), (uint64_t)timeout_us);
	for (;;) {
		int n;

		w.seen = waitword_seq(&q->news);
		n = collect(q, evs, max);
		if (n != 0)
			return n;
		if (pin_is_closing(&q->user))
			return -EBADF;
		if (timeout_us == 0 || err == -ETIMEDOUT)
			return 0;
		if (err < 0)
			return err;
		w.extra_fd = atomic_load(&q->n_kernel) != 0 ? atomic_load(&q->kernel_ep) : -1;
		err = call_wait(&w);
	}
}

/* With evq->lock. */
static int
make_out(struct evq *q)
{
	struct epoll_event in = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), ev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int kernel_ep = atomic_load(&q->kernel_ep);

	if (ep < 0 || ev < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, ev, &in) < 0 ||
	    (kernel_ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, kernel_ep, &in) < 0)) {
		int err = errno;

		if (ep >= 0)
			close(ep);
		if (ev >= 0)
			close(ev);
		return -err;
	}
	q->out_ep = ep;
	atomic_store(&q->is_out_set, false);
	atomic_store(&q->out_event, ev);
	evq_signal_out(q);	/* whatever waits already: at most one call for nothing */
	return ep;
}

int
evq_out_fd(struct evq *q)
{
	int fd;

	pthread_mutex_lock(&q->lock);
	fd = q->out_ep >= 0 ? q->out_ep : make_out(q);
	pthread_mutex_unlock(&q->lock);
	return fd;
}
