/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A netisr: the owner of the flows that hash to it. It is a role, not a thread: one thread at a
 * time holds it (attached, background or borrower), and only the holder touches what hangs off it.
 */
#ifndef RUNTIME_NETISR_H
#define RUNTIME_NETISR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/counter.h"
#include "base/rng.h"
#include "base/time.h"
#include "runtime/chunk.h"
#include "runtime/msgport.h"
#include "runtime/waitword.h"
#include "runtime/wheel.h"

#define NETISR_MAX		64
#define NETISR_BORROW_ROUNDS	32
#define NETISR_BORROW_US	50
#define NETISR_MSG_BUDGET	256
#define NETISR_TIMER_BUDGET	1024
#define NETISR_PKT_CACHE	512

struct darter_stack;
struct pkt;
struct link_netisr;
struct inet_netisr;
struct udp_netisr;
struct tcp_netisr;
struct sock_netisr;

/*
 * Receive memory that a netisr may promise to its peers (DESIGN.md 3, "windows are grants"). Holder
 * only.
 */
struct grant_budget {
	uint64_t limit_bytes;
	uint64_t used_bytes;
	uint64_t ooo_limit_bytes;	/* out-of-order chunks, a quarter of the limit */
	uint64_t ooo_used_bytes;
};

struct netisr {
	/* written by everybody who sends a message */
	struct msgport port CACHE_ALIGNED;

	/* holder's */
	struct darter_stack *stack CACHE_ALIGNED;
	unsigned id;
	struct time now;		/* read once a round */
	_Atomic uint64_t rounds;	/* rounds ended, for grace periods (publish.c) */
	_Atomic int last_cpu;		/* on which the last round ran, -1: none yet */
	struct msg_node *backlog;	/* messages taken but not handled in this round */
	struct wheel wheel;
	struct chunk_cache chunks;
	struct grant_budget rcv_budget;
	struct rng rng;			/* jitter only, never secrets */
	/* heap back end's; mbufs have DPDK's per-lcore cache */
	struct pkt *pkt_cache[NETISR_PKT_CACHE];
	uint32_t n_pkt_cache;
	unsigned lcore;			/* DPDK identity of the role */
	struct time held_since;
	bool is_borrowed;		/* by a thread that runs it for a bounded time */
	bool is_long_hold;		/* this hold is counted as one */

	/* layers' state */
	struct link_netisr *link;
	struct inet_netisr *inet;
	struct udp_netisr *udp;
	struct tcp_netisr *tcp;
	struct sock_netisr *sock;

	/*
	 * Read by anybody (relaxed); written by the holder, but for the few that netisr_count_any
	 * counts, which the holder leaves alone.
	 */
	_Atomic uint64_t counters[CTR_MAX] CACHE_ALIGNED;

	/* the sleeping keeper: a background thread or the attached one */
	pthread_t keeper;
	bool has_keeper;		/* a background thread exists */
	int keeper_nice;		/* its niceness: threads of lower priority do not borrow */
	_Atomic bool is_attached;	/* an application thread is the keeper */
	_Atomic bool is_parked;		/* the background thread waits in `parking` */
	struct waitword parking;	/* where the background thread waits while one is */
	_Atomic bool keeper_asleep;
	_Atomic bool stop;
	_Atomic uint64_t nap_until_us;	/* deadline that the sleeping keeper has set */
	int doorbell_fd;		/* eventfd */
	int timer_fd;			/* timerfd, CLOCK_MONOTONIC */
	int epoll_fd;			/* over doorbell, timer and the devices' rx fds */
	_Atomic uint64_t longest_hold_us;
};

/* Counters: holder only writes, so a plain add without a locked instruction. */
static inline void
netisr_count(struct netisr *n, enum counter c, uint64_t v)
{
	atomic_store_explicit(&n->counters[c],
	    atomic_load_explicit(&n->counters[c], memory_order_relaxed) + v, memory_order_relaxed);
}

#define NETISR_COUNT(n, c) netisr_count((n), (c), 1)

/*
 * Counters of rare events that threads without the hold see: doorbells, calls that sleep, memory
 * taken, connections stolen. Any thread, signal handlers too.
 */
static inline void
netisr_count_any(struct netisr *n, enum counter c)
{
	atomic_fetch_add_explicit(&n->counters[c], 1, memory_order_relaxed);
}

/*
 * Set by eal_dpdk.c: puts DPDK's identity (lcore id) of the role on the calling thread, and takes
 * it off again.
 */
extern void (*netisr_role_enter)(struct netisr *n);
extern void (*netisr_role_leave)(struct netisr *n);

/* The netisr that this thread holds, or NULL. */
struct netisr *netisr_current(void);

/*
 * The CPU where n's connections are worked on: the one its background thread is pinned to
 * (stack.cpus), unless an application thread is attached; else the one where its last round ran,
 * -1 before the first. Any thread.
 */
int netisr_cpu(const struct netisr *n);

/*
 * May the calling thread wait until another netisr has acted? Not while it runs a netisr as a
 * borrower or for a test (a netisr never waits for another); an attached thread may, since it runs
 * its own meanwhile.
 */
bool netisr_may_wait(const struct darter_stack *s);

/* Holds n if it is free. A thread holds at most one; asserts that it holds none. */
bool netisr_take(struct netisr *n);

/*
 * Lets go, after handling what came in meanwhile; moves the keeper's timer if this hold made the
 * deadline earlier.
 */
void netisr_give(struct netisr *n);

/*
 * One round: receive bursts, messages, timers, roll-ups, transmit. Returns the amount of work done,
 * 0 when idle.
 */
unsigned netisr_round(struct netisr *n);

/* Sends a message to n and sees to its progress (runs it by borrowing, or rings). Any thread. */
void netisr_send(struct netisr *n, struct msg_node *m);

/* Wakes n's keeper if it sleeps. Any thread, signal handlers too. */
void netisr_doorbell(struct netisr *n);

/*
 * Adds a device's receive descriptor to what the keeper sleeps on. At set-up. Returns 0 or a
 * negative errno.
 */
int netisr_add_fd(struct netisr *n, int fd);

/*
 * First moment at which n has something to do by itself (timers, devices that must be polled).
 * Holder only.
 */
struct time netisr_next_deadline(struct netisr *n);

/*
 * Runs fn(arg) as the holder of n and waits for it: directly when this thread holds n, by
 * borrowing, or by message. For control operations; the caller must not hold the control mutex
 * unless it holds n itself.
 */
void netisr_call(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg);

/*
 * The same where another thread may be attached to n and never wait again: 0 when fn has run;
 * -ETIMEDOUT (after the deadline, and only if such a thread is there) or -ENOMEM: it never will.
 */
int netisr_call_by(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg,
    struct time deadline);

/*
 * Attach makes the calling thread the keeper of n until detach. 0, -EBUSY (has an attached thread),
 * -EDEADLK.
 */
int netisr_attach(struct netisr *n);
int netisr_detach(struct netisr *n);

/* Background threads of a stack (config.threads != manual). */
int netisr_start_keepers(struct darter_stack *s);
void netisr_stop_keepers(struct darter_stack *s);

#endif
