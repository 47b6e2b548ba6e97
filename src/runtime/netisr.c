/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding a netisr and running its rounds. The role word (msgport.h) is the only lock. A round is:
 * receive, messages, timers, one action a touched flow, transmit. Whoever pushes to an idle netisr
 * borrows it for a bounded time if he may, else rings its keeper.
 */
#include "runtime/netisr.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/netisr_priv.h"
#include "runtime/publish.h"
#include "runtime/stack.h"

/* rounds run for late messages before the keeper is rung instead */
#define GIVE_ROUNDS_MAX		64
#define REAP_EVERY_ROUNDS	1024
#define NICE_REFRESH_BORROWS	4096
#define LONG_HOLD_US		1000
#define CALL_AGAIN_US		10000
#define LONG_HOLD_RESTS		8	/* so many times as long its borrower keeps away */

void (*netisr_role_enter)(struct netisr *n);
void (*netisr_role_leave)(struct netisr *n);

static __thread struct netisr *held;

/* When this thread may borrow from `stack` again. */
static __thread struct {
	struct darter_stack *stack;
	struct time until;
} rest;

struct netisr *
netisr_current(void)
{
	return held;
}

int
netisr_cpu(const struct netisr *n)
{
	const struct darter_stack *s = n->stack;

	if (s->n_keeper_cpus != 0 && !atomic_load_explicit(&n->is_attached, memory_order_relaxed))
		return s->keeper_cpu[n->id % s->n_keeper_cpus];
	return atomic_load_explicit(&n->last_cpu, memory_order_relaxed);
}

bool
netisr_may_wait(const struct darter_stack *s)
{
	return !s->is_manual &&
	    (held == NULL || atomic_load_explicit(&held->is_attached, memory_order_relaxed));
}

static void
become_holder(struct netisr *n)
{
	held = n;
	if (netisr_role_enter != NULL)
		netisr_role_enter(n);
}

/*
 * How long a borrower has kept the others waiting; a keeper may hold as long as there is work. The
 * clock is read again: it is the thread that lost its CPU in the middle of a round that shows here.
 * It would lose it again, and who calls in a loop leaves the keeper next to no moment to take over:
 * so it leaves the work to the keeper for a while, and holds up a netisr for a ninth of the time at
 * most.
 */
static void
note_hold(struct netisr *n)
{
	uint64_t us, longest;

	if (!n->is_borrowed)
		return;
	us = time_since_us(stack_now(n->stack), n->held_since);
	if (us < LONG_HOLD_US)
		return;
	if (!n->is_long_hold)
		NETISR_COUNT(n, CTR_holds_over_1ms);
	n->is_long_hold = true;
	rest.stack = n->stack;
	rest.until = time_add_us(n->held_since, us * (LONG_HOLD_RESTS + 1));
	longest = atomic_load_explicit(&n->longest_hold_us, memory_order_relaxed);
	if (us > longest)
		atomic_store_explicit(&n->longest_hold_us, us, memory_order_relaxed);
}

static void
stop_being_holder(void)
{
	if (netisr_role_leave != NULL)
		netisr_role_leave(held);
	held = NULL;
}

bool
netisr_take(struct netisr *n)
{
	assert(held == NULL);
	if (!msgport_take(&n->port))
		return false;
	become_holder(n);
	n->now = stack_now(n->stack);
	n->held_since = n->now;
	n->is_borrowed = n->is_long_hold = false;
	return true;
}

/* If the keeper sleeps past what this hold has armed, its timer is moved. */
static void
move_keepers_timer(struct netisr *n)
{
	struct time next;

	if (n->timer_fd < 0 || !atomic_load_explicit(&n->keeper_asleep, memory_order_acquire))
		return;
	next = netisr_next_deadline(n);
	if (next.us < atomic_load_explicit(&n->nap_until_us, memory_order_relaxed))
		netisr_set_timer(n, next);
}

void
netisr_give(struct netisr *n)
{
	unsigned i;

	assert(held == n);
	for (i = 0; i < GIVE_ROUNDS_MAX; i++) {
		while (n->backlog != NULL)
			netisr_round(n);
		move_keepers_timer(n);
		note_hold(n);
		/*
		 * the identity goes first: after the word is free another thread may already be the
		 * holder
		 */
		stop_being_holder();
		if (msgport_give(&n->port))
			return;
		become_holder(n);
		netisr_round(n);
	}
	stop_being_holder();
	msgport_give_with_debt(&n->port);
	netisr_doorbell(n);
}

void
netisr_hold_quietly(struct netisr *n)
{
	while (!msgport_take(&n->port))
		cpu_relax();
	become_holder(n);
	n->now = stack_now(n->stack);
	n->held_since = n->now;
}

void
netisr_release_quietly(struct netisr *n)
{
	stop_being_holder();
	msgport_give_with_debt(&n->port);
	netisr_doorbell(n);
}

static unsigned
handle_messages(struct netisr *n)
{
	struct darter_stack *s = n->stack;
	unsigned done = 0, of_sockets = 0;

	if (n->backlog == NULL)
		n->backlog = msgport_take_all(&n->port);
	while (n->backlog != NULL && done < NETISR_MSG_BUDGET) {
		struct msg_node *m = n->backlog;

		n->backlog = m->next;	/* unlinked: it may be pushed again from here on */
		assert(m->kind < MSG_KINDS && s->on_message[m->kind] != NULL);
		of_sockets += m->kind == MSG_SOCKET;
		s->on_message[m->kind](n, m);
		done++;
	}
	if (done != 0) {
		netisr_count(n, CTR_msgs, done);
		netisr_count(n, CTR_msgs_socket, of_sockets);
	}
	return done;
}

unsigned
netisr_round(struct netisr *n)
{
	const struct layer *const *l;
	struct darter_stack *s = n->stack;
	uint64_t rounds;
	unsigned work = 0, fired;

	n->now = stack_now(s);
	atomic_store_explicit(&n->last_cpu, sched_getcpu(), memory_order_relaxed);
	for (l = s->layers; *l != NULL; l++) {
		if ((*l)->poll != NULL)
			work += (*l)->poll(n);
	}
	work += handle_messages(n);
	fired = wheel_advance(&n->wheel, n, n->now, NETISR_TIMER_BUDGET);
	work += fired;
	for (l = s->layers; *l != NULL; l++) {
		if ((*l)->rollup != NULL)
			(*l)->rollup(n);
	}
	for (l = s->layers; *l != NULL; l++) {
		if ((*l)->flush != NULL)
			(*l)->flush(n);
	}
	if (work != 0) {
		NETISR_COUNT(n, CTR_rounds_busy);
		netisr_count(n, CTR_timers_fired, fired);
	}
	/*
	 * an RMW: what the next round loads must not overtake it, or publish.c would free it under
	 * this holder
	 */
	rounds = atomic_fetch_add_explicit(&n->rounds, 1, memory_order_acq_rel) + 1;
	if (rounds % REAP_EVERY_ROUNDS == 0)
		publish_reap(s);
	return work;
}

struct time
netisr_next_deadline(struct netisr *n)
{
	struct time next = wheel_next(&n->wheel);
	const struct layer *const *l;

	if (n->backlog != NULL)
		return TIME_ZERO;
	for (l = n->stack->layers; *l != NULL; l++) {
		if ((*l)->next_deadline != NULL)
			next = time_min(next, (*l)->next_deadline(n));
	}
	return next;
}

/*
 * A thread that the scheduler prefers less than the keeper would hold up the core while it waits
 * for its turn.
 */
static bool
has_keepers_priority(struct netisr *n)
{
	static __thread int nice_value;
	static __thread unsigned countdown;

	if (countdown == 0) {
		nice_value = getpriority(PRIO_PROCESS, 0);
		countdown = NICE_REFRESH_BORROWS;
	}
	countdown--;
	return nice_value <= n->keeper_nice;
}

static bool
is_resting(struct darter_stack *s)
{
	if (likely(rest.stack != s))
		return false;
	if (!time_reached(stack_now(s), rest.until))
		return true;
	rest.stack = NULL;
	return false;
}

bool
netisr_can_borrow(struct netisr *n)
{
	struct darter_stack *s = n->stack;

	return held == NULL && !s->is_manual &&
	    atomic_load_explicit(&s->borrow, memory_order_relaxed) > 0 &&
	    !atomic_load_explicit(&n->is_attached, memory_order_relaxed) &&
	    has_keepers_priority(n) && !is_resting(s);
}

/*
 * Holder by borrowing: runs while there is work, within the bound, then lets go; what is left is
 * the keeper's.
 */
void
netisr_run_borrowed(struct netisr *n, struct waitword *w, uint32_t seen)
{
	struct time until = time_add_us(n->now, NETISR_BORROW_US);
	unsigned i, work = 0;

	n->is_borrowed = true;
	NETISR_COUNT(n, CTR_borrows);
	for (i = 0; i < NETISR_BORROW_ROUNDS; i++) {
		work = netisr_round(n);
		if (work == 0 || time_reached(n->now, until))
			break;
		if (w != NULL && waitword_seq(w) != seen)
			break;
	}
	netisr_give(n);
	if (work != 0)
		netisr_doorbell(n);
}

void
netisr_send(struct netisr *n, struct msg_node *m)
{
	if (msgport_push(&n->port, m) != MSGPORT_FOUND_IDLE)
		return;
	if (netisr_can_borrow(n) && netisr_take(n))
		netisr_run_borrowed(n, NULL, 0);
	else
		netisr_doorbell(n);
}

void
netisr_doorbell(struct netisr *n)
{
	uint64_t one = 1;
	ssize_t ignored;

	if (n->doorbell_fd < 0 ||
	    !atomic_exchange_explicit(&n->keeper_asleep, false, memory_order_acq_rel))
		return;
	netisr_count_any(n, CTR_doorbells);
	/* a full eventfd is a rung one */
	ignored = write(n->doorbell_fd, &one, sizeof(one));
	(void)ignored;
}

void
netisr_set_timer(struct netisr *n, struct time deadline)
{
	struct itimerspec its = { 0 };

	atomic_store_explicit(&n->nap_until_us, deadline.us, memory_order_relaxed);
	if (!time_is_never(deadline)) {
		uint64_t us = time_since_us(deadline, stack_now(n->stack));

		its.it_value.tv_sec = (time_t)(us / US_PER_SEC);
		its.it_value.tv_nsec = (long)(us % US_PER_SEC) * 1000 + 1;	/* 0 would disarm */
	}
	timerfd_settime(n->timer_fd, 0, &its, NULL);
}

int
netisr_add_fd(struct netisr *n, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (n->epoll_fd < 0)
		return 0;
	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* A control operation on its way to the holder. */
struct msg_call {
	struct msg_node node;
	void (*fn)(struct netisr *n, void *arg);
	void *arg;
	struct waitword done;
	_Atomic bool is_over;		/* the holder's last access to this object */
	bool can_expire;		/* whoever takes it first: the holder or the deadline */
	_Atomic bool is_taken;
};

void
netisr_on_call(struct netisr *n, struct msg_node *m)
{
	struct msg_call *c = container_of(m, struct msg_call, node);

	if (c->can_expire &&
	    atomic_exchange_explicit(&c->is_taken, true, memory_order_acq_rel)) {
		free(c);	/* its caller has gone */
		return;
	}
	c->fn(n, c->arg);
	waitword_post(&c->done);
	atomic_store_explicit(&c->is_over, true, memory_order_release);
}

/* Without a message, if this thread holds n or nobody does. */
static bool
call_here(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg)
{
	if (held == n) {
		fn(n, arg);
		return true;
	}
	if (held != NULL || !netisr_take(n))
		return false;
	NETISR_COUNT(n, CTR_msgs);	/* one that need not be sent */
	fn(n, arg);
	netisr_round(n);
	netisr_give(n);
	return true;
}

static void
call_uncancelled(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg)
{
	struct msg_call c = { .node.kind = MSG_CALL, .fn = fn, .arg = arg };

	if (call_here(n, fn, arg))
		return;
	netisr_send(n, &c.node);
	/*
	 * c lives on this stack: only its completion ends the wait, and not before the holder has
	 * let go of it
	 */
	while (waitword_seq(&c.done) == 0)
		wait_until(n->stack, n, &c.done, 0, TIME_NEVER, -1);
	while (!atomic_load_explicit(&c.is_over, memory_order_acquire))
		cpu_relax();
}

void
netisr_call(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg)
{
	int old;

	/* the devices' system calls are cancellation points, and the message is on this stack */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	call_uncancelled(n, fn, arg);
	pthread_setcancelstate(old, NULL);
}

/* The message outlives this function if need be. -ENOMEM; -ETIMEDOUT: fn will never run. */
static int
call_expirable(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg,
    struct time deadline)
{
	struct msg_call *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->node.kind = MSG_CALL;
	c->fn = fn;
	c->arg = arg;
	c->can_expire = true;
	netisr_send(n, &c->node);
	while (waitword_seq(&c->done) == 0) {
		/* the holder frees a message that has expired, should there ever be one */
		if (wait_until(n->stack, n, &c->done, 0, deadline, -1) == -ETIMEDOUT &&
		    !atomic_exchange_explicit(&c->is_taken, true, memory_order_acq_rel))
			return -ETIMEDOUT;
	}
	while (!atomic_load_explicit(&c->is_over, memory_order_acquire))
		cpu_relax();
	free(c);
	return 0;
}

int
netisr_call_by(struct netisr *n, void (*fn)(struct netisr *n, void *arg), void *arg,
    struct time deadline)
{
	int err, old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	for (;;) {
		err = call_here(n, fn, arg) ? 0 : call_expirable(n, fn, arg, deadline);
		if (err != -ETIMEDOUT ||
		    atomic_load_explicit(&n->is_attached, memory_order_acquire))
			break;
		/* a background thread comes in the end */
		deadline = time_add_us(stack_now(n->stack), CALL_AGAIN_US);
	}
	pthread_setcancelstate(old, NULL);
	return err;
}
