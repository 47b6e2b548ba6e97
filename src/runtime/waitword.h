/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word that threads sleep on: `seq` is bumped by whoever makes news, then the sleepers that have
 * announced themselves are woken. Announcing and bumping are read-modify-writes, so either the
 * sleeper sees the new value or the waker sees the sleeper (Dekker), and no wake-up is lost.
 */
#ifndef RUNTIME_WAITWORD_H
#define RUNTIME_WAITWORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/time.h"

struct netisr;
struct darter_stack;

struct napper;

struct waitword {
	_Atomic uint32_t seq;		/* futex word */
	_Atomic uint32_t sleepers;	/* threads in futex_wait on seq */
	/* one thread that sleeps in poll (attached, or with an extra fd) instead */
	struct napper *_Atomic napper;
};

/* News: bump and wake all. Any thread; a signal handler too. */
void waitword_post(struct waitword *w);

static inline uint32_t
waitword_seq(struct waitword *w)
{
	return atomic_load_explicit(&w->seq, memory_order_acquire);
}

/*
 * The one way in which a call waits. Returns 0 when w->seq != seen, -ETIMEDOUT at the deadline (of
 * the stack's clock), -EINTR when a signal handler ran during the sleep. Meanwhile it makes
 * progress: an attached thread runs its netisr; any other one borrows `owner` (or, with owner NULL,
 * the stack's netisrs in turn) when that is free and the knob allows it, spins shortly, then
 * sleeps. extra_fd >= 0: a kernel descriptor (an epoll's) whose readability also ends the wait,
 * with
 * 0. The caller has cancellation disabled; see wait_set_cancel. Calls from a handler while holding
 * a netisr return -EDEADLK.
 */
int wait_until(struct darter_stack *s, struct netisr *owner, struct waitword *w, uint32_t seen,
    struct time deadline, int extra_fd);

/*
 * The cancel state (PTHREAD_CANCEL_ENABLE, _DISABLE) in which this thread's sleeps in wait_until
 * are spent; _DISABLE at first. Who allows it has cleanup handlers that undo what he holds; the
 * wait undoes its own part: a thread that is cancelled in the nap of its attached netisr is
 * detached. Returns what it was.
 */
int wait_set_cancel(int state);

/*
 * A plain futex sleep without making progress, for the runtime's own threads. timeout_us
 * UINT64_MAX: none.
 */
void waitword_sleep(struct waitword *w, uint32_t seen, uint64_t timeout_us);

/*
 * Called by (a wrapper of) the application's signal handlers: the call that this thread is in, or
 * about to sleep in, returns EINTR. Async-signal-safe.
 */
void wait_signal_note(void);

#endif
