/* SPDX-License-Identifier: BSD-2-Clause */
/* What netisr.c, keeper.c, waitword.c and stack.c share. */
#ifndef RUNTIME_NETISR_PRIV_H
#define RUNTIME_NETISR_PRIV_H

#include "runtime/netisr.h"
#include "runtime/waitword.h"

/* May the calling thread borrow n now? */
bool netisr_can_borrow(struct netisr *n);

/* Caller holds n by borrowing; runs and gives. Ends early when *w moves on from `seen`. */
void netisr_run_borrowed(struct netisr *n, struct waitword *w, uint32_t seen);

/* Sets the keeper's timerfd and notes the deadline. Holder, or the keeper itself. */
void netisr_set_timer(struct netisr *n, struct time deadline);

/*
 * Around a sleep that may be cancelled if wait_set_cancel has allowed it. Between them is nothing
 * but the system call: one that is no cancellation point by itself is made one by is_async. A
 * cleanup handler that calls wait_cancelled is pushed.
 */
void wait_cancel_open(bool is_async);
void wait_cancel_shut(void);
void wait_cancelled(void);

/* Hold without running rounds, for set-up and tear-down. */
void netisr_hold_quietly(struct netisr *n);
void netisr_release_quietly(struct netisr *n);

/* Handler of MSG_CALL. */
void netisr_on_call(struct netisr *n, struct msg_node *m);

/*
 * The keeper goes to sleep: called as holder, gives the role, sleeps until the doorbell, a device,
 * the timer, `deadline` or one of the two extra descriptors (-1: none), and returns without the
 * role. If w is given the sleep is skipped when *w has moved on from `seen`. Returns 0, or -EINTR.
 * An attached thread that is cancelled in its sleep is detached.
 */
struct nap {
	struct waitword *w;
	uint32_t seen;
	struct time deadline;
	int extra_fd;
	int wake_fd;
};
int keeper_nap(struct netisr *n, const struct nap *nap);

int netisr_init_fds(struct netisr *n);
void netisr_fini_fds(struct netisr *n);

#endif
