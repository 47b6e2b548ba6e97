/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of a socket's event items; see evq.h.
 *
 * ev_word: LOCKED, and above it the events that are still to be delivered. A netisr sets its events
 * and LOCKED in one read-modify-write: if LOCKED was clear it has the lock, else whoever has it
 * will find the events when it tries to let go, since letting go is a compare-and-swap from
 * "locked, nothing pending". So an event is delivered exactly by one of the two, and a netisr never
 * waits for an application thread.
 *
 * Locks of application threads are taken in the order evq->lock, ev_word.
 */
#include <sched.h>

#include "socket/evq.h"
#include "socket/sock.h"

#define EV_LOCKED	UINT32_C(1)
#define EV_SHIFT	8
#define EV_ALL (SOCK_EV_IN | SOCK_EV_OUT | SOCK_EV_RDHUP | SOCK_EV_HUP | SOCK_EV_ERR)

static uint32_t
epoll_bits(uint32_t events)
{
	uint32_t bits = 0;

	if (events & SOCK_EV_IN)
		bits |= EPOLLIN | EPOLLRDNORM;
	if (events & SOCK_EV_OUT)
		bits |= EPOLLOUT | EPOLLWRNORM;
	if (events & SOCK_EV_RDHUP)
		bits |= EPOLLRDHUP;
	if (events & SOCK_EV_HUP)
		bits |= EPOLLHUP;
	if (events & SOCK_EV_ERR)
		bits |= EPOLLERR;
	return bits;
}

void
evq_push(struct evq_item *it)
{
	struct evq *q = it->evq;
	struct evq_item *old;

	if (atomic_exchange_explicit(&it->is_queued, true, memory_order_acq_rel))
		return;
	old = atomic_load_explicit(&q->pushed, memory_order_relaxed);
	do {
		it->pushed_next = old;
	} while (!atomic_compare_exchange_weak_explicit(&q->pushed, &old, it, memory_order_acq_rel,
	    memory_order_relaxed));
	/* not the first: whoever pushed that one wakes, and the stack is taken whole */
	if (old != NULL)
		return;
	waitword_post(&q->news);
	evq_signal_out(q);
}

/* With the lock. */
static void
deliver(struct sock *so, uint32_t events)
{
	uint32_t bits = epoll_bits(events);
	struct evq_item *it = atomic_load_explicit(&so->items, memory_order_relaxed);

	for (; it != NULL; it = atomic_load_explicit(&it->sock_next, memory_order_relaxed)) {
		if (!(atomic_load_explicit(&it->events, memory_order_relaxed) & bits))
			continue;
		if (it->evq != NULL)
			evq_push(it);
		else
			waitword_post(it->word);
	}
}

void
evq_list_unlock(struct sock *so)
{
	uint32_t locked;

	do {
		uint32_t events = atomic_fetch_and_explicit(&so->ev_word, EV_LOCKED,
		    memory_order_acq_rel) >> EV_SHIFT;

		if (events != 0)
			deliver(so, events);
		locked = EV_LOCKED;
	} while (!atomic_compare_exchange_strong_explicit(&so->ev_word, &locked, 0,
	    memory_order_acq_rel, memory_order_relaxed));
}

void
evq_list_lock(struct sock *so)
{
	unsigned spins = 0;

	while (atomic_fetch_or_explicit(&so->ev_word, EV_LOCKED,
	    memory_order_acq_rel) & EV_LOCKED) {
		if (++spins % 64 == 0)
			sched_yield();
		else
			cpu_relax();
	}
}

void
evq_notify(struct sock *so, uint32_t events)
{
	uint32_t old = atomic_fetch_or_explicit(&so->ev_word, EV_LOCKED | events << EV_SHIFT,
	    memory_order_acq_rel);

	if (!(old & EV_LOCKED))
		evq_list_unlock(so);
}

void
evq_list_add(struct sock *so, struct evq_item *it)
{
	atomic_store_explicit(&it->sock_next,
	    atomic_load_explicit(&so->items, memory_order_relaxed), memory_order_relaxed);
	/* an RMW, since the caller looks at the socket's state next: see on_event in sock.c */
	atomic_exchange_explicit(&so->items, it, memory_order_seq_cst);
}

void
evq_list_remove(struct sock *so, struct evq_item *it)
{
	struct evq_item *_Atomic *at = &so->items;
	struct evq_item *i;

	while ((i = atomic_load_explicit(at, memory_order_relaxed)) != it)
		at = &i->sock_next;
	atomic_store_explicit(at, atomic_load_explicit(&it->sock_next, memory_order_relaxed),
	    memory_order_relaxed);
}

/* With the lock: the first item of an epoll, NULL when there are only pollers. */
static struct evq_item *
first_of_epoll(struct sock *so)
{
	struct evq_item *it = atomic_load_explicit(&so->items, memory_order_relaxed);

	while (it != NULL && it->evq == NULL)
		it = atomic_load_explicit(&it->sock_next, memory_order_relaxed);
	return it;
}

/* One item less. False when there is none left. */
static bool
forget_one(struct sock *so)
{
	struct evq_item *it;
	struct evq *q = NULL;
	bool is_pinned = false;

	evq_list_lock(so);
	it = first_of_epoll(so);
	if (it != NULL) {
		q = it->evq;
		is_pinned = pin_enter(&q->user, 0) == 0;
	}
	evq_list_unlock(so);
	if (it == NULL)
		return false;
	if (!is_pinned) {
		/* the queue is closing too, and its closer is about to remove the item */
		sched_yield();
		return true;
	}
	pthread_mutex_lock(&q->lock);
	evq_list_lock(so);
	/* only a holder of q->lock removes q's items: what is still the first can't go away now */
	if (first_of_epoll(so) != it || it->evq != q)
		it = NULL;
	evq_list_unlock(so);
	if (it != NULL)
		evq_item_remove(q, it);
	pthread_mutex_unlock(&q->lock);
	evq_unpin(q);
	return true;
}

void
evq_forget(struct sock *so)
{
	if (atomic_load_explicit(&so->items, memory_order_acquire) == NULL)
		return;
	while (forget_one(so))
		;
	evq_notify(so, EV_ALL);	/* pollers look again and find the descriptor closed */
}
