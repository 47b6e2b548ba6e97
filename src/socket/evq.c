/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: making, closing, epoll_ctl. See evq.h.
 *
 * An item is named by (descriptor, socket): a duplicate descriptor may have an item of its own, and
 * one that was closed while a duplicate lives keeps it, as on Linux. Items of kernel descriptors
 * are not kept here but in an inner epoll of the kernel's, which does everything for them.
 *
 * Removal: under evq->lock, an item is first taken off its socket's list (from then on nobody
 * pushes it), then off the ready stack or the queue, then freed. Queues are type-stable: they go
 * back to a list of the process, never to the heap.
 */
#define _GNU_SOURCE 1
#include "socket/evq.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "socket/sock.h"

#define BUCKETS_MIN	64u
#define EVENTS_ALWAYS	((uint32_t)(EPOLLERR | EPOLLHUP))

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct evq *free_list;

/* ---- life ---- */

static struct evq *
take_free(void)
{
	struct evq *q;

	pthread_mutex_lock(&free_lock);
	q = free_list;
	if (q != NULL)
		free_list = q->next_free;
	pthread_mutex_unlock(&free_lock);
	if (q != NULL)
		return q;
	q = calloc(1, sizeof(*q));
	if (q != NULL) {
		atomic_init(&q->user, USER_CLOSING);
		pthread_mutex_init(&q->lock, NULL);
	}
	return q;
}

static void
put_free(struct evq *q)
{
	pthread_mutex_lock(&free_lock);
	q->next_free = free_list;
	free_list = q;
	pthread_mutex_unlock(&free_lock);
}

static void
close_fd(_Atomic int *fd)
{
	int old = atomic_exchange(fd, -1);

	if (old >= 0)
		close(old);
}

static void
remove_all(struct evq *q)
{
	uint32_t i;

	pthread_mutex_lock(&q->lock);
	for (i = 0; i < q->n_buckets; i++) {
		while (q->bucket[i] != NULL)
			evq_item_remove(q, q->bucket[i]);
	}
	pthread_mutex_unlock(&q->lock);
}

/* The last one out of a closing queue. */
static void
finish(struct evq *q)
{
	remove_all(q);
	if (q->out_ep >= 0)
		close(q->out_ep);
	q->out_ep = -1;
	close_fd(&q->out_event);
	close_fd(&q->kernel_ep);
	free(q->bucket);
	q->bucket = NULL;
	put_free(q);
}

int
evq_new(struct darter_stack *s, bool is_cloexec)
{
	int fd = fdtab_reserve(0);
	struct evq *q;

	if (fd < 0)
		return fd;
	q = take_free();
	if (q != NULL)
		q->bucket = calloc(BUCKETS_MIN, sizeof(struct evq_item *));
	if (q == NULL || q->bucket == NULL) {
		if (q != NULL)
			put_free(q);
		fdtab_unreserve(fd);
		return -ENOMEM;
	}
	q->n_buckets = BUCKETS_MIN;
	q->n_items = q->n_queued = 0;
	q->generation++;
	q->fd = (struct fd_object){ .kind = FD_EVQ };
	q->stack = s;
	TAILQ_INIT(&q->queue);
	atomic_store(&q->pushed, NULL);
	atomic_store(&q->kernel_ep, -1);
	atomic_store(&q->n_kernel, 0);
	atomic_store(&q->out_event, -1);
	atomic_store(&q->is_out_set, false);
	q->out_ep = -1;
	pin_open(&q->user);
	fdtab_install(fd, &q->fd, q->generation, is_cloexec);
	return fd;
}

void
evq_unpin(struct evq *q)
{
	if (pin_leave(&q->user, 0) == PIN_LEFT_LAST)
		finish(q);
}

void
evq_close(struct evq *q)
{
	pin_close(&q->user);
	waitword_post(&q->news);	/* waiters leave with EBADF */
	remove_all(q);
	evq_unpin(q);
}

int
evq_pin(int fd, struct evq **ret_evq)
{
	struct fd_entry *e = fdtab_entry(fd);

	if (e == NULL)
		return -EBADF;
	for (;;) {
		uintptr_t word = atomic_load_explicit(&e->object, memory_order_acquire);
		struct evq *q;
		int err;

		if (word == 0)
			return -EBADF;
		if (fdtab_kind(word) != FD_EVQ)
			return -EINVAL;
		q = evq_of_fd_object(fdtab_object(word));
		err = pin_enter(&q->user, 0);
		if (err == 0) {
			if (atomic_load_explicit(&e->generation,
			    memory_order_relaxed) == q->generation &&
			    atomic_load_explicit(&e->object, memory_order_acquire) == word) {
				*ret_evq = q;
				return 0;
			}
			evq_unpin(q);
		} else if (atomic_load_explicit(&e->object, memory_order_acquire) == word) {
			return -EBADF;
		}
	}
}

/* ---- items; evq->lock ---- */

static uint32_t
bucket_of(const struct evq *q, int fd, const struct sock *so)
{
	uint64_t h = ((uint64_t)(uintptr_t)so >> 6) + (uint32_t)fd;

	return (uint32_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (q->n_buckets - 1);
}

static struct evq_item *
lookup(const struct evq *q, int fd, const struct sock *so)
{
	struct evq_item *it = q->bucket[bucket_of(q, fd, so)];

	while (it != NULL && (it->fd != fd || it->sock != so))
		it = it->hash_next;
	return it;
}

/* Doubles the table when it is full; without memory the chains just grow. */
static void
grow(struct evq *q)
{
	struct evq_item **old = q->bucket;
	uint32_t n_old = q->n_buckets, i;
	struct evq_item **fresh;

	if (q->n_items < n_old)
		return;
	fresh = calloc(n_old * 2, sizeof(struct evq_item *));
	if (fresh == NULL)
		return;
	q->bucket = fresh;
	q->n_buckets = n_old * 2;
	for (i = 0; i < n_old; i++) {
		while (old[i] != NULL) {
			struct evq_item *it = old[i];
			uint32_t b = bucket_of(q, it->fd, it->sock);

			old[i] = it->hash_next;
			it->hash_next = fresh[b];
			fresh[b] = it;
		}
	}
	free(old);
}

void
evq_item_remove(struct evq *q, struct evq_item *it)
{
	struct evq_item **at = &q->bucket[bucket_of(q, it->fd, it->sock)];

	evq_list_lock(it->sock);
	evq_list_remove(it->sock, it);
	evq_list_unlock(it->sock);
	if (atomic_load_explicit(&it->is_queued, memory_order_acquire)) {
		evq_absorb(q);
		if (it->is_in_queue) {
			TAILQ_REMOVE(&q->queue, it, at);
			q->n_queued--;
		}
	}
	while (*at != it)
		at = &(*at)->hash_next;
	*at = it->hash_next;
	q->n_items--;
	free(it);
}

/* What holds already is an event too. */
static void
check_now(struct evq *q, struct evq_item *it)
{
	uint32_t want = atomic_load_explicit(&it->events, memory_order_relaxed);

	if (!(sock_ready(it->sock, want) & want))
		return;
	if (atomic_exchange_explicit(&it->is_queued, true, memory_order_acq_rel))
		return;
	evq_enqueue(q, it);
	waitword_post(&q->news);
	evq_signal_out(q);
}

static int
item_add(struct evq *q, int fd, struct sock *so, const struct epoll_event *ev)
{
	struct evq_item *it;
	uint32_t b;

	if (lookup(q, fd, so) != NULL)
		return -EEXIST;
	it = calloc(1, sizeof(*it));
	if (it == NULL)
		return -ENOMEM;
	grow(q);
	it->evq = q;
	it->sock = so;
	it->fd = fd;
	it->data = ev->data.u64;
	atomic_init(&it->events, ev->events | EVENTS_ALWAYS);
	b = bucket_of(q, fd, so);
	it->hash_next = q->bucket[b];
	q->bucket[b] = it;
	q->n_items++;
	evq_list_lock(so);
	evq_list_add(so, it);
	evq_list_unlock(so);
	check_now(q, it);
	return 0;
}

static int
ctl_sock(struct evq *q, int op, int fd, struct sock *so, const struct epoll_event *ev)
{
	struct evq_item *it;

	if (op == EPOLL_CTL_ADD)
		return item_add(q, fd, so, ev);
	it = lookup(q, fd, so);
	if (it == NULL)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL) {
		evq_item_remove(q, it);
		return 0;
	}
	it->data = ev->data.u64;
	/* an RMW: an event that this mask hides from the deliverer is seen by check_now */
	atomic_exchange_explicit(&it->events, ev->events | EVENTS_ALWAYS, memory_order_seq_cst);
	check_now(q, it);
	return 0;
}

/* ---- kernel descriptors; evq->lock ---- */

static int
ctl_kernel(struct evq *q, int op, int fd, const struct epoll_event *ev)
{
	int ep = atomic_load(&q->kernel_ep);
	struct epoll_event copy = ev != NULL ? *ev : (struct epoll_event){ 0 };

	if (ep < 0) {
		ep = epoll_create1(EPOLL_CLOEXEC);
		if (ep < 0)
			return -errno;
		if (q->out_ep >= 0) {
			struct epoll_event in = { .events = EPOLLIN };

			epoll_ctl(q->out_ep, EPOLL_CTL_ADD, ep, &in);
		}
		atomic_store(&q->kernel_ep, ep);
	}
	if (epoll_ctl(ep, op, fd, &copy) < 0)
		return -errno;
	if (op == EPOLL_CTL_DEL)
		atomic_fetch_sub(&q->n_kernel, 1);
	/* waiters that did not watch the inner epoll yet look again */
	if (op == EPOLL_CTL_ADD && atomic_fetch_add(&q->n_kernel, 1) == 0)
		waitword_post(&q->news);
	return 0;
}

int
evq_ctl(struct evq *q, int op, int fd, const struct epoll_event *ev)
{
	struct sock *so = NULL;
	int err;

	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	if (op != EPOLL_CTL_DEL && ev == NULL)
		return -EFAULT;
	if (op != EPOLL_CTL_DEL && (ev->events & EPOLLEXCLUSIVE))
		return -EINVAL;
	if (fdtab_is_in_range(fd)) {
		err = sock_pin(fd, 0, &so);
		if (err < 0)
			return err == -ENOTSOCK ? -EINVAL : err;
	}
	pthread_mutex_lock(&q->lock);
	err = so != NULL ? ctl_sock(q, op, fd, so, ev) : ctl_kernel(q, op, fd, ev);
	pthread_mutex_unlock(&q->lock);
	if (so != NULL)
		sock_unpin(so, 0);
	return err;
}
