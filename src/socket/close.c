/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of descriptors, sockets and stacks.
 *
 * close: the entry goes first, so nobody finds the object any more; if it was the last one, CLOSING
 * is set and sleepers are woken (EBADF); the last call out asks the protocol to close. SO_LINGER
 * waits in between, while the closer is still inside: it sends the FIN and waits until the peer has
 * acknowledged all bytes, or the time is up.
 */
#include <errno.h>
#include <sched.h>

#include "runtime/knob.h"
#include "socket/call.h"
#include "socket/evq.h"
#include "socket/sock.h"
#include "transport/tcp/tcp.h"
#include "transport/ulp.h"

#define LINGER_LOOK_US	5000
#define DRAIN_LOOK_US	2000
/* what an attached thread gets to answer at the end; it may be at work elsewhere for good */
#define ATTACHED_LOOK_US	20000
#define ATTACHED_ABORT_US	1000000

/* ---- sockets ---- */

void
sock_finish(struct sock *so)
{
	evq_forget(so);		/* items that a call added while it was the last one inside */
	so->half.ulp->close(&so->half);
}

/*
 * Sends the FIN behind the last byte; calls that are still inside leave first, or at least are not
 * half way.
 */
static void
send_fin(struct sock *so)
{
	while (pin_take(&so->half.user, USER_TX_BUSY, false) != 0)
		sched_yield();
	sockhalf_set(&so->half, SH_SHUT_WR, 0);
	sockhalf_post(&so->half, SOCK_OP_SHUTDOWN);
	sock_give(so, USER_TX_BUSY);
}

static bool
is_delivered(struct sock *so)
{
	return (sockhalf_state(&so->half) & SH_DEAD) != 0 || ring_is_empty(&so->half.tx);
}

static void
linger(struct sock *so)
{
	int32_t linger_s = atomic_load_explicit(&so->half.opts.linger_s, memory_order_relaxed);
	uint32_t st = sockhalf_state(&so->half);
	struct call_wait w = { .stack = so->half.stack, .word = &so->half.news, .extra_fd = -1,
		.owner = atomic_load_explicit(&so->half.owner, memory_order_acquire),
		.signals = call_signals() };
	struct time until;
	int err = 0;

	/* unread bytes: the connection is reset, there is nothing to wait for */
	if (so->type != SOCK_STREAM || linger_s <= 0 || !(st & SH_CONNECTED) || (st & SH_DEAD) ||
	    !ring_is_empty(&so->half.rx))
		return;
	send_fin(so);
	until = time_add_us(stack_now(w.stack), (uint64_t)linger_s * US_PER_SEC);
	while (!is_delivered(so) && err != -EINTR && err != -EDEADLK) {
		struct time now = stack_now(w.stack);

		if (time_reached(now, until))
			return;
		w.seen = waitword_seq(w.word);
		sockhalf_set(&so->half, SH_TX_WANT, 0);
		w.deadline = time_min(until, time_add_us(now, LINGER_LOOK_US));
		err = call_wait(&w);
	}
}

static void
sock_close(struct sock *so)
{
	pin_close(&so->half.user);
	waitword_post(&so->half.news);
	evq_forget(so);
	linger(so);
	sock_unpin(so, 0);
}

/* ---- descriptors ---- */

void
fd_close_removed(const struct fd_removed *r)
{
	if (!r->was_last)
		return;
	if (r->object->kind == FD_EVQ)
		evq_close(evq_of_fd_object(r->object));
	else
		sock_close(sock_of_fd_object(r->object));
}

int
fd_close(int fd)
{
	struct fd_removed r;
	int err = fdtab_remove(fd, &r);

	if (err == 0)
		fd_close_removed(&r);
	return err;
}

int
fd_dup_to(int fd, int to, bool is_cloexec)
{
	struct fd_removed r;
	int rc = fdtab_dup_to(fd, to, is_cloexec, &r);

	if (rc >= 0)
		fd_close_removed(&r);
	return rc;
}

/* ---- stacks ---- */

static struct darter_stack *
stack_of(struct fd_object *o)
{
	return o->kind == FD_EVQ ? evq_of_fd_object(o)->stack : sock_of_fd_object(o)->half.stack;
}

void
fd_close_stack(struct darter_stack *s)
{
	struct fd_object *o;
	uint32_t cursor = 0;
	int fd;

	while (fdtab_next(&cursor, &fd, &o)) {
		if (stack_of(o) == s)
			fd_close(fd);
	}
}

/* Does the peer of this connection still miss something of ours? */
static void
count_undelivered(void *arg, const struct tcp_conn_info *i)
{
	unsigned *undelivered = arg;

	switch (i->state) {
	case TCP_ESTABLISHED:
	case TCP_FIN_WAIT_1:
	case TCP_CLOSE_WAIT:
	case TCP_CLOSING:
	case TCP_LAST_ACK:
		(*undelivered)++;
		break;
	default:
		break;
	}
}

static void
look_at(struct netisr *n, void *arg)
{
	tcp_visit(n, count_undelivered, arg);
}

/* The connections of a netisr that does not answer are only counted. */
static unsigned
undelivered_on(struct netisr *n)
{
	struct time until = time_add_us(stack_now(n->stack), ATTACHED_LOOK_US);
	uint32_t pcbs, half_open, timewait;
	unsigned undelivered = 0;

	if (netisr_call_by(n, look_at, &undelivered, until) == 0)
		return undelivered;
	tcp_counts(n, &pcbs, &half_open, &timewait);
	return pcbs;
}

bool
sock_drain(struct darter_stack *s, unsigned linger_ms)
{
	struct time until = time_add_us(stack_now(s), linger_ms * US_PER_MS);
	struct waitword never = { 0 };
	bool is_first = true;

	for (;;) {
		struct time now = stack_now(s);
		unsigned undelivered = 0, i;

		for (i = 0; i < s->n_netisrs; i++)
			undelivered += undelivered_on(s->netisr[i]);
		/* the first look also made the netisrs handle what was posted before it */
		if (undelivered == 0 && !is_first)
			return true;
		if (!is_first && time_reached(now, until))
			return false;
		is_first = false;
		if (undelivered != 0)
			wait_until(s, NULL, &never, 0, time_add_us(now, DRAIN_LOOK_US), -1);
	}
}

static void
abort_on(struct netisr *n, void *arg UNUSED)
{
	tcp_abort_all(n);
}

void
sock_abort_all(struct darter_stack *s)
{
	struct time until = time_add_us(stack_now(s), ATTACHED_ABORT_US);
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++)
		netisr_call_by(s->netisr[i], abort_on, NULL, until);
}
