/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library knows of a calling thread: whether it is inside a call (a signal handler may
 * have interrupted it), whether a handler has run, which stack it uses. And of the process: which
 * stacks are open, whether it is a forked child.
 */
#ifndef SOCKET_CALL_H
#define SOCKET_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/waitword.h"

struct darter_stack;
struct netisr;

/*
 * Begins a call of the API: 0, -ENOTSUP in a forked child, or -EDEADLK from a signal handler that
 * interrupted the library at work on this thread (it may call while the thread only sleeps).
 * call_leave ends it. Between them the thread can't be cancelled, but for call_wait.
 * call_enter_cancel begins a call that is a cancellation point even if it never sleeps: a request
 * that is pending acts before anything is done.
 */
int call_enter(void);
int call_enter_cancel(void);
void call_leave(void);

/* Number of signal handlers that have noted themselves on this thread; see call_wait. */
uint32_t call_signals(void);

/* darter_signal_note. Async-signal-safe. */
void call_signal_note(void);

/*
 * wait_until that does not lose a signal: -EINTR also when a handler has noted itself since the
 * caller took `signals` (call_signals() at the start of the call). The caller holds no lock and no
 * BUSY bit. With an undo the sleep is a cancellation point: undo(arg) runs then, and the call has
 * ended.
 */
struct call_wait {
	struct darter_stack *stack;
	struct netisr *owner;		/* NULL: any */
	struct waitword *word;
	uint32_t seen;
	struct time deadline;
	int extra_fd;			/* -1: none */
	uint32_t signals;
	void (*undo)(void *arg);
	void *arg;
};
int call_wait(const struct call_wait *w);

/* ---- stacks ---- */

/* A stack becomes visible to calls / stops being. -EMFILE when too many are open. */
int stacks_add(struct darter_stack *s);
void stacks_remove(struct darter_stack *s);

/* The calling thread's stack: what stacks_use set, else the first one still open, else NULL. */
struct darter_stack *stacks_current(void);
void stacks_use(struct darter_stack *s);

/* The i-th open stack, oldest first; NULL past the last. */
struct darter_stack *stacks_get(unsigned i);

/* True in a child of a process that had open stacks when it forked. */
bool stacks_are_lost(void);

#endif
