/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues (epoll), and the list on each socket of who wants to hear of its events.
 *
 * An item is one (epoll, descriptor, socket). An event on a socket, told by whoever holds its
 * netisr, puts the items that are interested on the ready stack of their queue: no lock, one
 * exchange for an item that is on it already. Whoever waits takes the stack, looks at each socket
 * again (level), and reports what still holds.
 *
 * The list of a socket's items is guarded by `ev_word`, a lock for which a netisr never waits: it
 * leaves its event bits in the word, and the thread that has the lock delivers them before it lets
 * go.
 */
#ifndef SOCKET_EVQ_H
#define SOCKET_EVQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "runtime/waitword.h"
#include "socket/fdtab.h"

struct darter_stack;
struct evq;
struct sock;

struct evq_item {
	struct evq *evq;			/* NULL: a poll(2)'s */
	struct waitword *word;			/* poll's: posted at an event */
	struct sock *sock;
	struct evq_item *_Atomic sock_next;	/* ev_word's lock */
	struct evq_item *hash_next;		/* evq->lock, as all below */
	/* whoever has set is_queued, until the stack is taken */
	struct evq_item *pushed_next;
	TAILQ_ENTRY(evq_item) at;
	uint64_t data;
	/* interest; without any condition: disarmed (ONESHOT) */
	_Atomic uint32_t events;
	_Atomic bool is_queued;			/* on the ready stack or in the queue */
	bool is_in_queue;
	int fd;
};

TAILQ_HEAD(evq_queue, evq_item);

struct evq {
	_Atomic uint32_t user;			/* pin.h, count and CLOSING only */
	uint32_t generation;
	struct fd_object fd;
	struct darter_stack *stack;
	struct waitword news;
	struct evq_item *_Atomic pushed;	/* ready stack: last event first */
	pthread_mutex_t lock;
	struct evq_queue queue;			/* ready, in the order of events */
	struct evq_item **bucket;		/* by fd and sock */
	uint32_t n_buckets;			/* power of two */
	uint32_t n_items;
	uint32_t n_queued;
	_Atomic bool is_kernels_turn;		/* when both kinds are ready for the last place */
	/* inner epoll of kernel descriptors, -1: none yet */
	_Atomic int kernel_ep;
	/* added and not deleted; closing one goes unnoticed */
	_Atomic uint32_t n_kernel;
	/* darter_epoll_fd: over out_event and kernel_ep; -1: none */
	int out_ep;
	_Atomic int out_event;			/* eventfd, readable while events wait */
	_Atomic bool is_out_set;
	struct evq *next_free;
};

/* ---- evq_list.c: a socket's list ---- */

/*
 * Whoever holds a netisr (or the socket's last user): tells the items. sock_event bits. Never
 * waits.
 */
void evq_notify(struct sock *so, uint32_t events);

/* Application threads: the list's lock. Unlocking delivers what came in meanwhile. */
void evq_list_lock(struct sock *so);
void evq_list_unlock(struct sock *so);

/* With the lock. */
void evq_list_add(struct sock *so, struct evq_item *it);
void evq_list_remove(struct sock *so, struct evq_item *it);

/* Puts an item on its queue's ready stack and wakes waiters. */
void evq_push(struct evq_item *it);

/* The socket is closing: removes its items from their queues, and wakes its pollers. */
void evq_forget(struct sock *so);

/* ---- evq.c; calls are between call_enter and call_leave, results 0 or negative errno ---- */

/* A queue under a new descriptor, which is returned. */
int evq_new(struct darter_stack *s, bool is_cloexec);
/* The queue of an epoll descriptor, pinned. -EBADF, -EINVAL (not an epoll). */
int evq_pin(int fd, struct evq **ret_evq);
void evq_unpin(struct evq *q);
/* The last descriptor is gone. */
void evq_close(struct evq *q);
int evq_ctl(struct evq *q, int op, int fd, const struct epoll_event *ev);
/* With evq->lock: takes an item out of everything and frees it. */
void evq_item_remove(struct evq *q, struct evq_item *it);

/* ---- evq_wait.c ---- */

int evq_wait(struct evq *q, struct epoll_event *evs, int max, int64_t timeout_us);
/* The kernel descriptor that is readable while events wait. */
int evq_out_fd(struct evq *q);
/* With evq->lock: moves the ready stack into the queue. */
void evq_absorb(struct evq *q);
/* Appends to the queue unless it waits there already. With evq->lock. */
void evq_enqueue(struct evq *q, struct evq_item *it);
/* Makes out_event readable, if there is one. */
void evq_signal_out(struct evq *q);

static inline struct evq *
evq_of_fd_object(struct fd_object *o)
{
	return container_of(o, struct evq, fd);
}

#endif
