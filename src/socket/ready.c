/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readiness, computed from state bits and rings each time it is asked for, by the rules of Linux's
 * tcp_poll() and datagram_poll() which programs depend on: what a fresh, a refused, a half-closed
 * and a reset socket report.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include "socket/sock.h"
#include "transport/acceptq.h"
#include "transport/dgramq.h"

#define READABLE ((uint32_t)(EPOLLIN | EPOLLRDNORM))
#define WRITABLE ((uint32_t)(EPOLLOUT | EPOLLWRNORM))

bool
sock_has_room(struct sock *so)
{
	struct ring *tx = &so->half.tx;
	uint32_t used = ring_used_bytes(tx);
	uint32_t cap = atomic_load_explicit(&tx->cap_bytes, memory_order_relaxed);

	/* datagrams: any of them fits, so that "writable" is never followed by EAGAIN */
	if (so->type == SOCK_DGRAM)
		return used < cap && cap - used >= DGRAM_RECORD_MAX_BYTES;
	return used < cap && cap - used >= used / 2;
}

/*
 * Is there room, and if not, will there be an event when there is? The wish is written before the
 * second look, and the protocol looks at it after it has made room (both read-modify-writes of one
 * word), so one of the two sees the other.
 */
static bool
room_or_wish(struct sock *so, uint32_t want)
{
	if (sock_has_room(so))
		return true;
	if (!(want & WRITABLE))
		return false;
	sockhalf_set(&so->half, SH_TX_WANT, 0);
	return sock_has_room(so);
}

static bool
is_readable(const struct sock *so)
{
	uint32_t used = ring_used_bytes(&so->half.rx);
	uint32_t lowat = atomic_load_explicit(&so->half.opts.rcvlowat_bytes, memory_order_relaxed);
	uint32_t cap = atomic_load_explicit(&so->half.rx.cap_bytes, memory_order_relaxed);

	/* a full buffer is readable whatever the low-water mark: nothing more would ever come */
	return used != 0 && used >= min_u32(lowat, cap);
}

static uint32_t
listener_ready(struct sock *so, uint32_t st)
{
	struct acceptq *q = atomic_load_explicit(&so->half.acceptq, memory_order_acquire);

	if (st & SH_SHUT_RD)
		return EPOLLHUP | EPOLLRDHUP | READABLE;
	return q != NULL && acceptq_count(q) != 0 ? READABLE : 0;
}

static uint32_t
stream_ready(struct sock *so, uint32_t want)
{
	uint32_t st = sockhalf_state(&so->half), ready = 0;
	bool is_gone = (st & SH_DEAD) != 0;
	bool no_rd = is_gone || (st & (SH_RX_EOF | SH_SHUT_RD)) != 0;
	bool no_wr = is_gone || (st & SH_SHUT_WR) != 0;

	if (st & SH_LISTENING)
		return listener_ready(so, st);
	/* an attempt that shutdown(2) ended: as if it had never begun */
	if (is_gone && !(st & (SH_CONNECTED | SH_WAS_RESET)))
		return EPOLLHUP | WRITABLE;
	if ((no_rd && no_wr) || !(st & (SH_CONNECTING | SH_CONNECTED)))
		ready |= EPOLLHUP;
	if (no_rd)
		ready |= READABLE | EPOLLRDHUP;
	if (!(st & SH_CONNECTING)) {
		if (is_readable(so))
			ready |= READABLE;
		if (no_wr || room_or_wish(so, want))
			ready |= WRITABLE;
	}
	return ready;
}

static uint32_t
dgram_ready(struct sock *so, uint32_t want)
{
	uint32_t st = sockhalf_state(&so->half), ready = 0;
	struct dgramq *q = atomic_load_explicit(&so->half.dgramq, memory_order_acquire);

	if (q != NULL && atomic_load_explicit(&q->rx_count, memory_order_acquire) != 0)
		ready |= READABLE;
	if (st & SH_SHUT_RD)
		ready |= READABLE | EPOLLRDHUP;
	if ((st & SH_SHUT_RD) && (st & SH_SHUT_WR))
		ready |= EPOLLHUP;
	if (room_or_wish(so, want))
		ready |= WRITABLE | EPOLLWRBAND;
	return ready;
}

uint32_t
sock_ready(struct sock *so, uint32_t want)
{
	uint32_t ready = so->half.proto == IPPROTO_TCP ? stream_ready(so, want) : dgram_ready(so,
	    want);

	if (atomic_load_explicit(&so->half.so_error, memory_order_acquire) != 0)
		ready |= EPOLLERR;
	return ready;
}
