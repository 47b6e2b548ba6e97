/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and connections: bind, listen, connect, accept, shutdown, getsockname, getpeername.
 *
 * connect(2) has a state of its own (so->conn), as in Linux's inet_stream_connect(): a success is
 * told once by the call that asks for it, then EISCONN; a failure is told once and leaves the
 * socket free for another attempt. It changes under TX_BUSY.
 *
 * What decides is the state word, never a message back: a sleeping connect is woken by the socket's
 * news like any other call, and a time-out or a signal leaves the attempt running.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "runtime/knob.h"
#include "socket/call.h"
#include "socket/evq.h"
#include "socket/sock.h"
#include "transport/acceptq.h"
#include "transport/ulp.h"

#define ACCEPT_FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)

/* Of an earlier attempt on this socket. */
#define STALE_STATE \
	((uint32_t)(SH_DEAD | SH_WAS_RESET | SH_RX_EOF | SH_SHUT_RD | SH_SHUT_WR | \
	SH_FIN_SENT | SH_NAMED))

static bool
is_stream(const struct sock *so)
{
	return so->half.proto == IPPROTO_TCP;
}

/* ---- bind, listen ---- */

int
sock_bind(struct sock *so, const struct sockaddr *addr, socklen_t len)
{
	struct endpoint local;
	struct sockaddr_in in;
	uint32_t st;
	int err;

	if (addr != NULL && len >= sizeof(in)) {
		/* Linux: AF_UNSPEC with the any address stands for AF_INET */
		memcpy(&in, addr, sizeof(in));
		if (in.sin_family == AF_UNSPEC && in.sin_addr.s_addr == INADDR_ANY) {
			in.sin_family = AF_INET;
			addr = (const struct sockaddr *)&in;
		}
	}
	err = sock_addr_in(addr, len, &local);
	if (err < 0)
		return err;
	st = sockhalf_state(&so->half);
	/* who is bound to an address alone may bind again (Linux) */
	if ((st & (SH_CONNECTED | SH_CONNECTING)) || ((st & SH_BOUND) && so->half.local.port != 0))
		return -EINVAL;
	return so->half.ulp->bind(&so->half, &local);
}

int
sock_listen(struct sock *so, int backlog)
{
	uint32_t st = sockhalf_state(&so->half);
	uint32_t max = (uint32_t)knob_get(&so->half.stack->sock->somaxconn);

	if (!is_stream(so))
		return -EOPNOTSUPP;
	if (st & (SH_CONNECTED | SH_CONNECTING))
		return -EINVAL;
	/* negative ones are huge, as on Linux */
	return so->half.ulp->listen(&so->half, min_u32((uint32_t)backlog, max));
}

/* ---- connect ---- */

/* TX_BUSY: the attempt has ended. */
static int
tell_outcome(struct sock *so, uint32_t st)
{
	int err;

	if (st & SH_CONNECTED && !(st & SH_DEAD)) {
		atomic_store_explicit(&so->conn, SOCK_CONNECTED, memory_order_relaxed);
		return 0;
	}
	err = sock_take_error(so);
	atomic_store_explicit(&so->conn, SOCK_UNCONNECTED, memory_order_relaxed);
	return err < 0 ? err : -ECONNABORTED;
}

/* TX_BUSY held, and held again at return unless *ret_held becomes 0. */
static int
await_outcome(struct sock *so, int err_pending, uint32_t *ret_held)
{
	struct sock_io io = { .held = USER_TX_BUSY };
	struct sock_patience p = sock_patience(so, 0,
	    atomic_load_explicit(&so->sndtimeo_us, memory_order_relaxed));
	int err = 0;

	while (err == 0) {
		uint32_t seen = waitword_seq(&so->half.news);
		uint32_t st = sockhalf_state(&so->half);

		if (atomic_load_explicit(&so->conn, memory_order_relaxed) != SOCK_CONNECTING) {
			/* another thread's connect was told first */
			err = st & SH_CONNECTED ? -EISCONN : -ECONNABORTED;
			break;
		}
		if (!(st & SH_CONNECTING))
			return tell_outcome(so, st);
		err = sock_io_wait(so, &io, seen, &p);
	}
	*ret_held = io.held;
	return err == -EAGAIN ? err_pending : err;
}

static int
begin(struct sock *so, const struct endpoint *peer)
{
	int err;

	if (sockhalf_state(&so->half) & SH_LISTENING)
		return -EISCONN;
	sockhalf_set(&so->half, 0, STALE_STATE);
	err = so->half.ulp->connect(&so->half, peer, sock_home(so->half.stack));
	if (err < 0)
		return err;
	atomic_store_explicit(&so->conn, SOCK_CONNECTING, memory_order_relaxed);
	return -EINPROGRESS;
}

static int
connect_stream(struct sock *so, const struct endpoint *peer, uint32_t *ret_held)
{
	uint32_t st;
	int err;

	switch (atomic_load_explicit(&so->conn, memory_order_relaxed)) {
	case SOCK_CONNECTED:
		return -EISCONN;
	case SOCK_CONNECTING:
		err = -EALREADY;
		break;
	default:
		err = begin(so, peer);
		if (err != -EINPROGRESS)
			return err;
		/*
		 * Linux tells the outcome of a non-blocking attempt later, even when it is known by
		 * now; but what ended without a SYN (no port was left) now.
		 */
		st = sockhalf_state(&so->half);
		if (!(st & (SH_CONNECTING | SH_CONNECTED | SH_NAMED)))
			return tell_outcome(so, st);
		if (atomic_load_explicit(&so->is_nonblock, memory_order_relaxed))
			return err;
	}
	return await_outcome(so, err, ret_held);
}

static int
disconnect(struct sock *so)
{
	if (so->half.ulp->disconnect != NULL)
		return so->half.ulp->disconnect(&so->half);
	return sockhalf_state(&so->half) & (SH_CONNECTED | SH_CONNECTING) ? -EAFNOSUPPORT : 0;
}

int
sock_connect(struct sock *so, const struct sockaddr *addr, socklen_t len, uint32_t *ret_held)
{
	struct endpoint peer;
	int err;

	if (addr == NULL)
		return -EFAULT;
	if (len < sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family == AF_UNSPEC)
		return disconnect(so);
	err = sock_addr_in(addr, len, &peer);
	if (err < 0)
		return err;
	if (is_stream(so))
		return connect_stream(so, &peer, ret_held);
	return so->half.ulp->connect(&so->half, &peer, sock_home(so->half.stack));
}

/* ---- accept ---- */

/* RX_BUSY: a child under a new descriptor. -EAGAIN: none waits. */
static int
take_child(struct sock *so, int flags, struct endpoint *ret_peer)
{
	struct acceptq *q = atomic_load_explicit(&so->half.acceptq, memory_order_acquire);
	struct netisr *near = sock_near(so->half.stack);
	struct sockhalf *child;
	int fd;

	if (q == NULL || acceptq_count(q) == 0)
		return -EAGAIN;
	/* the descriptor first: without one the connection stays in the queue */
	fd = fdtab_reserve(0);
	if (fd < 0)
		return fd;
	child = acceptq_get(q, near->id);
	if (child == NULL) {
		fdtab_unreserve(fd);
		return -EAGAIN;
	}
	if (atomic_load_explicit(&child->owner, memory_order_relaxed) != near)
		netisr_count_any(near, CTR_accept_steals);
	*ret_peer = child->peer;
	atomic_store_explicit(&sock_of(child)->is_nonblock, (flags & SOCK_NONBLOCK) != 0,
	    memory_order_relaxed);
	pin_open(&child->user);
	fdtab_install(fd, &sock_of(child)->fd, child->generation, (flags & SOCK_CLOEXEC) != 0);
	return fd;
}

int
sock_accept(struct sock *so, struct sockaddr *addr, socklen_t *len, int flags, uint32_t *ret_held)
{
	struct sock_io io = { .held = USER_RX_BUSY };
	struct sock_patience p = sock_patience(so, 0,
	    atomic_load_explicit(&so->rcvtimeo_us, memory_order_relaxed));
	struct endpoint peer;
	int err = 0, fd;

	if (!is_stream(so))
		return -EOPNOTSUPP;
	if (flags & ~ACCEPT_FLAGS)
		return -EINVAL;
	if (addr != NULL && len == NULL)
		return -EFAULT;
	while (err == 0) {
		uint32_t seen = waitword_seq(&so->half.news);
		uint32_t st = sockhalf_state(&so->half);

		if (!(st & SH_LISTENING) || (st & SH_SHUT_RD))
			return -EINVAL;
		fd = take_child(so, flags, &peer);
		if (fd >= 0) {
			sock_addr_out(so->half.family, &peer, addr, len);
			return fd;
		}
		err = fd != -EAGAIN ? fd : sock_io_wait(so, &io, seen, &p);
	}
	*ret_held = io.held;
	return err;
}

/* ---- shutdown ---- */

static uint32_t
shut_bits(int how)
{
	return (how != SHUT_WR ? SH_SHUT_RD : 0) | (how != SHUT_RD ? SH_SHUT_WR : 0);
}

/* Says so to the protocol, and to whoever sleeps or polls. */
static void
announce(struct sock *so)
{
	if (atomic_load_explicit(&so->half.owner, memory_order_acquire) != NULL)
		sockhalf_post(&so->half, SOCK_OP_SHUTDOWN);
	waitword_post(&so->half.news);
	evq_notify(so, SOCK_EV_IN | SOCK_EV_OUT | SOCK_EV_RDHUP | SOCK_EV_HUP);
}

/* TX_BUSY, so that no writer is half way: the FIN goes behind the last byte that was written. */
static int
shutdown_stream(struct sock *so, int how)
{
	uint32_t st = sockhalf_state(&so->half);

	if (st & SH_LISTENING) {
		/*
		 * accepts end with EINVAL from here on and SYNs are refused, until the next listen
		 * (Linux)
		 */
		if (how != SHUT_WR) {
			so->half.ulp->unlisten(&so->half);
			waitword_post(&so->half.news);
			evq_notify(so, SOCK_EV_IN | SOCK_EV_HUP);
		}
		return 0;
	}
	if (!(st & (SH_CONNECTED | SH_CONNECTING)) || (st & SH_DEAD))
		return -ENOTCONN;
	/* an attempt under way ends, whichever side was meant (Linux) */
	sockhalf_set(&so->half, st & SH_CONNECTING ? SH_SHUT_RD | SH_SHUT_WR : shut_bits(how), 0);
	announce(so);
	return 0;
}

int
sock_shutdown(struct sock *so, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (is_stream(so))
		return shutdown_stream(so, how);
	/* Linux: takes effect also without a peer, and says ENOTCONN */
	sockhalf_set(&so->half, shut_bits(how), 0);
	announce(so);
	return sockhalf_state(&so->half) & SH_CONNECTED ? 0 : -ENOTCONN;
}

/* ---- names ---- */

/*
 * The port of a connection that has just begun is drawn by its netisr: waits for that, never for
 * the peer.
 */
static int
await_name(struct sock *so)
{
	struct sock_patience p = { .deadline = TIME_NEVER, .signals = call_signals() };
	int err = 0;

	for (;;) {
		uint32_t seen = waitword_seq(&so->half.news);
		uint32_t st = sockhalf_state(&so->half);

		if ((st & SH_NAMED) || !(st & SH_CONNECTING))
			return 0;
		err = sock_wait(so, seen, &p);
		if (err == -EINTR)
			p.signals = call_signals();
		else if (err < 0)
			return err;
	}
}

int
sock_name(struct sock *so, bool is_peer, struct sockaddr *addr, socklen_t *len)
{
	static const struct endpoint unnamed;
	const struct endpoint *e = &unnamed;
	uint32_t st;
	int err = 0;

	if (addr == NULL || len == NULL)
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	if (!is_peer)
		err = await_name(so);
	if (err < 0)
		return err;
	st = sockhalf_state(&so->half);
	if (is_peer) {
		if (!(st & SH_CONNECTED) || (st & SH_DEAD))
			return -ENOTCONN;
		e = &so->half.peer;
	} else if (st & (SH_BOUND | SH_NAMED)) {
		e = &so->half.local;
	}
	sock_addr_out(so->half.family, e, addr, len);
	return 0;
}
