/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of UDP sockets. A pending error is told first, once (udp_recvmsg() of Linux); a datagram is
 * whole or, when the buffer is too small, cut with its true length told. An empty datagram is a
 * datagram.
 *
 * A datagram in one piece is copied straight between the ring and the application; one in several
 * pieces goes through a buffer.
 */
#include <errno.h>
#include <stdlib.h>

#include "socket/sock.h"

#define RECV_FLAGS \
	(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_TRUNC | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM | MSG_EOR)

/* The caller's one piece, or a buffer of `bytes` in its place; NULL without memory. */
static void *
one_piece(const struct sock_io *io, size_t bytes, void **ret_to_free)
{
	*ret_to_free = NULL;
	if (io->n_iov == 1)
		return io->iov[0].iov_base;
	*ret_to_free = malloc(max_u64(bytes, 1));
	return *ret_to_free;
}

/*
 * Waits for a datagram and takes it. Bytes copied or negative errno; 0 with rec->port 0 after
 * shutdown.
 */
static int64_t
take_datagram(struct sock *so, struct sock_io *io, void *buf, uint32_t len, struct dgram_rec *rec)
{
	struct sock_patience p = sock_patience(so, io->flags,
	    atomic_load_explicit(&so->rcvtimeo_us, memory_order_relaxed));

	for (;;) {
		uint32_t seen = waitword_seq(&so->half.news);
		uint32_t st = sockhalf_state(&so->half);
		int64_t n = sock_take_error(so);
		int err;

		if (n == 0)
			n = dgramq_get(&so->half, buf, len, (io->flags & MSG_PEEK) != 0, rec);
		if (n != -EAGAIN)
			return n;
		if (st & SH_SHUT_RD) {
			rec->port = 0;
			rec->len_bytes = 0;
			return 0;
		}
		err = sock_io_wait(so, io, seen, &p);
		if (err < 0)
			return err;
	}
}

int64_t
dgram_recv(struct sock *so, struct sock_io *io)
{
	int64_t total = iov_bytes(io->iov, io->n_iov), n;
	struct dgram_rec rec = { 0 };
	void *buf, *to_free;
	uint32_t len;

	if (total < 0)
		return total;
	if (io->flags & MSG_ERRQUEUE)
		return -EAGAIN;
	if (io->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (io->flags & ~RECV_FLAGS)
		return -EOPNOTSUPP;
	if (total == 0 && io->is_read_call)
		return 0;
	len = (uint32_t)min_u64((uint64_t)total, DGRAM_MAX_BYTES);
	buf = one_piece(io, len, &to_free);
	if (io->n_iov != 1 && buf == NULL)
		return -ENOMEM;
	n = take_datagram(so, io, buf, len, &rec);
	if (n > 0 && to_free != NULL)
		iov_scatter(io->iov, io->n_iov, buf, (size_t)n);
	free(to_free);
	if (n < 0)
		return n;
	if (io->ret_from != NULL && rec.port != 0)
		*io->ret_from = (struct endpoint){ rec.addr, rec.port };
	if (rec.len_bytes > (uint32_t)n)
		io->ret_flags |= MSG_TRUNC;
	return io->flags & MSG_TRUNC ? (int64_t)rec.len_bytes : n;
}

static int
send_now(struct sock *so, struct sock_io *io, const void *buf, uint32_t len)
{
	const struct endpoint *to = io->to;
	struct dgram_rec rec = { .len_bytes = len };
	int err = udp_check_send(&so->half, to, len);

	if (err < 0)
		/* no port is left: waiting would not help */
		return err == -EAGAIN ? -EADDRNOTAVAIL : err;
	if (to == NULL)
		to = &so->half.peer;
	rec.addr = to->addr;
	rec.port = to->port;
	return dgramq_send(&so->half, &rec, buf);
}

static int64_t
put_datagram(struct sock *so, struct sock_io *io, const void *buf, uint32_t len)
{
	struct sock_patience p = sock_patience(so, io->flags,
	    atomic_load_explicit(&so->sndtimeo_us, memory_order_relaxed));

	for (;;) {
		uint32_t seen = waitword_seq(&so->half.news);
		int err;

		if (sockhalf_state(&so->half) & SH_SHUT_WR)
			return -EPIPE;
		err = send_now(so, io, buf, len);
		if (err == -EAGAIN) {
			sockhalf_set(&so->half, SH_TX_WANT, 0);
			err = send_now(so, io, buf, len);
		}
		if (err == 0) {
			sockhalf_post(&so->half, SOCK_OP_SEND);
			return len;
		}
		if (err == -EAGAIN)
			err = sock_io_wait(so, io, seen, &p);
		if (err < 0)
			return err;
	}
}

int64_t
dgram_send(struct sock *so, struct sock_io *io)
{
	int64_t total = iov_bytes(io->iov, io->n_iov), n;
	void *buf, *to_free;

	if (total < 0)
		return total;
	if (io->flags & ~SEND_FLAGS)
		return -EOPNOTSUPP;
	if (total > DGRAM_MAX_BYTES)
		return -EMSGSIZE;
	buf = one_piece(io, (size_t)total, &to_free);
	if (io->n_iov != 1 && buf == NULL)
		return -ENOMEM;
	if (to_free != NULL)
		iov_gather(io->iov, io->n_iov, buf, (size_t)total);
	n = put_datagram(so, io, buf, (uint32_t)total);
	free(to_free);
	return n;
}
