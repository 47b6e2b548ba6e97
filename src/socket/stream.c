/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of TCP sockets: between the application's buffers and the rings. What is returned when
 * follows Linux's tcp_recvmsg() and tcp_sendmsg(): data first, then the pending error (once), then
 * the end of the stream.
 *
 * The reader looks at the state *before* it looks into the ring: the protocol fills the ring before
 * it says "end", so an end that was seen before an empty ring is the end.
 *
 * After reading, the protocol is told (SOCK_OP_WINDOW) only when it could promise a whole step more
 * than it has promised (rx_adv, rx_wnd_step), so a reader of small pieces does not send a message
 * for each. With kern.ipc.sorcvd_coalesce off each read that takes bytes is one, with its answer.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "socket/sock.h"

#define RECV_FLAGS \
	(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_TRUNC | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CONFIRM | MSG_EOR)
#define NOMEM_NAP_US	5000		/* the chunk depot is empty: nobody tells when it is not */
#define SENDFILE_BYTES	(64u * 1024u)
#define CORK_MORE	2		/* in opts.cork, beside TCP_CORK's 1 */
#define MOVE_MAX	(UINT32_C(1) << 30)	/* ring arithmetic is in 32 bits */
#define PIECE_MAX	65536u	/* written before the state of memory is looked at again */

/* ---- receive ---- */

struct recv_job {
	struct iov_at at;
	uint64_t total;
	uint64_t target;	/* enough to return with */
	uint64_t got;
	uint64_t told;		/* of `got` when the window was last looked at */
	bool is_peek;
	bool is_discard;	/* MSG_TRUNC: the bytes go nowhere */
};

/*
 * A read-modify-write after the tail has moved: the owner exchanges rx_wnd_step before it looks at
 * the tail (tell_reader in tcp_rcv.c), so one of the two sees that an update is due.
 */
static void
open_window(struct sockhalf *sh)
{
	uint32_t step = atomic_fetch_or_explicit(&sh->rx_wnd_step, 0, memory_order_seq_cst);
	uint32_t edge = atomic_load_explicit(&sh->rx.tail, memory_order_relaxed) +
	    atomic_load_explicit(&sh->rx.cap_bytes, memory_order_relaxed);

	if (step == 0 || (sockhalf_state(sh) & (SH_DEAD | SH_RX_EOF)))
		return;
	if ((int32_t)(edge - atomic_load_explicit(&sh->rx_adv,
	    memory_order_acquire)) >= (int32_t)step)
		sockhalf_post(sh, SOCK_OP_WINDOW);
}

/* Bytes were taken, or the call is about to sleep. */
static void
look_at_window(struct sockhalf *sh, struct recv_job *j)
{
	if (j->is_peek)
		return;
	if (likely(knob_get(&sh->stack->op_knobs.rcvd_coalesce)))
		open_window(sh);
	else if (j->got > j->told && !(sockhalf_state(sh) & (SH_DEAD | SH_RX_EOF)))
		sockhalf_post_wait(sh, SOCK_OP_WINDOW);
	j->told = j->got;
}

/* Moves what is there. RX_BUSY. */
static void
take_bytes(struct ring *rx, struct recv_job *j)
{
	uint32_t skip = j->is_peek ? (uint32_t)j->got : 0;
	uint32_t avail = ring_used_bytes(rx) - skip;

	avail = (uint32_t)min_u64(avail, j->total - j->got);
	if (j->is_discard) {
		if (!j->is_peek)
			ring_discard(rx, avail);
		j->got += avail;
		return;
	}
	while (avail > 0) {
		size_t part;
		void *dst = iov_next(&j->at, avail, &part);

		if (j->is_peek)
			ring_copy_out(rx, skip, dst, (uint32_t)part);
		else
			ring_read(rx, dst, (uint32_t)part, false);
		skip += (uint32_t)part;
		avail -= (uint32_t)part;
		j->got += part;
	}
}

/*
 * Nothing is there: 0 at the end of the stream, -EAGAIN when there may be more, else why not. `st`:
 * before the look.
 */
static int
why_empty(struct sock *so, uint32_t st)
{
	int err = sock_take_error(so);

	if (err < 0)
		return err;
	if (st & (SH_RX_EOF | SH_SHUT_RD | SH_DEAD))
		return 0;
	if (!(st & (SH_CONNECTED | SH_CONNECTING)))
		return -ENOTCONN;
	return -EAGAIN;
}

static bool
is_over(struct sock *so, uint32_t st)
{
	return (st & (SH_RX_EOF | SH_SHUT_RD | SH_DEAD)) != 0 ||
	    atomic_load_explicit(&so->half.so_error, memory_order_relaxed) != 0;
}

static int64_t
run_recv(struct sock *so, struct sock_io *io, struct recv_job *j)
{
	struct sock_patience p = sock_patience(so, io->flags,
	    atomic_load_explicit(&so->rcvtimeo_us, memory_order_relaxed));

	for (;;) {
		uint32_t seen = waitword_seq(&so->half.news);
		uint32_t st = sockhalf_state(&so->half);
		int err;

		take_bytes(&so->half.rx, j);
		if (j->got >= j->target || (j->got > 0 && is_over(so, st)))
			return (int64_t)j->got;
		if (j->got == 0) {
			/* bytes of no length were asked for and are there */
			if (j->total == 0 && !ring_is_empty(&so->half.rx))
				return 0;
			err = why_empty(so, st);
			if (err != -EAGAIN)
				return err;
		}
		look_at_window(&so->half, j);
		err = sock_io_wait(so, io, seen, &p);
		if (err < 0)
			return j->got > 0 ? (int64_t)j->got : err;
	}
}

int64_t
stream_recv(struct sock *so, struct sock_io *io)
{
	int64_t total = iov_bytes(io->iov, io->n_iov), n;
	uint32_t lowat = atomic_load_explicit(&so->half.opts.rcvlowat_bytes, memory_order_relaxed);
	struct recv_job j = { .at = { .iov = io->iov, .n_iov = io->n_iov } };

	if (total < 0)
		return total;
	if (io->flags & MSG_ERRQUEUE)
		return -EAGAIN;
	if (io->flags & MSG_OOB)
		return -EINVAL;
	if (io->flags & ~RECV_FLAGS)
		return -EOPNOTSUPP;
	if (sockhalf_state(&so->half) & SH_LISTENING)
		return -ENOTCONN;
	if (total == 0 && io->is_read_call)
		return 0;
	j.total = min_u64((uint64_t)total, MOVE_MAX);
	j.target = io->flags & MSG_WAITALL ? j.total : min_u64(lowat, j.total);
	j.target = max_u64(j.target, 1);
	j.is_peek = (io->flags & MSG_PEEK) != 0;
	j.is_discard = (io->flags & MSG_TRUNC) != 0;
	n = run_recv(so, io, &j);
	if (n > 0 && !pin_is_closing(&so->half.user))
		look_at_window(&so->half, &j);
	return n;
}

/* ---- send ---- */

/* 0: bytes may be written; -EAGAIN: not connected yet; else why never. */
static int
may_send(struct sock *so)
{
	uint32_t st = sockhalf_state(&so->half);
	int err = sock_take_error(so);

	if (err < 0)
		return err;
	if (st & (SH_SHUT_WR | SH_DEAD))
		return -EPIPE;
	if (st & SH_CONNECTED)
		return 0;
	return st & SH_CONNECTING ? -EAGAIN : -EPIPE;
}

/* Copies as much as fits. TX_BUSY. */
static size_t
put_bytes(struct sock *so, struct iov_at *at, size_t left)
{
	struct ring *tx = &so->half.tx;
	size_t done = 0;

	while (done < left) {
		struct chunk_cache *c = sock_chunks(so->half.stack);
		struct iov_at before = *at;
		size_t part;
		const void *src = iov_next(at, min_size(left - done, PIECE_MAX), &part);
		uint32_t room = ring_space_bytes(tx);
		uint32_t n = ring_write(tx, c, src, (uint32_t)part);

		done += n;
		if (n == part)
			continue;
		if (n < room)
			netisr_count_any(so->half.stack->netisr[0], CTR_snd_nomem);
		*at = before;
		iov_next(at, n, &part);
		break;
	}
	return done;
}

/*
 * The ring is full, or memory is short, or the connection is not there yet: waits for a change.
 * Room that is seen here may have come since the caller looked: he looks once more before it counts
 * as room for which there is no memory. *saw_room remembers that.
 */
static int
wait_to_send(struct sock *so, struct sock_io *io, uint32_t seen, const struct sock_patience *p,
    bool *saw_room)
{
	struct sock_patience nap = *p;
	struct time now;
	int err;

	if (p->is_nonblock)
		return -EAGAIN;
	sockhalf_set(&so->half, SH_TX_WANT, 0);
	if (!(sockhalf_state(&so->half) & SH_CONNECTED) || ring_space_bytes(&so->half.tx) == 0) {
		*saw_room = false;
		return sock_io_wait(so, io, seen, p);
	}
	if (!*saw_room) {
		*saw_room = true;
		return 0;
	}
	/* room but no chunk */
	now = stack_now(so->half.stack);
	nap.deadline = time_min(p->deadline, time_add_us(now, NOMEM_NAP_US));
	err = sock_io_wait(so, io, seen, &nap);
	if (err == -EAGAIN && !time_reached(stack_now(so->half.stack), p->deadline)) {
		err = sock_take(so, USER_TX_BUSY);
		io->held = err == 0 ? USER_TX_BUSY : 0;
	}
	return err;
}

static int64_t
run_send(struct sock *so, struct sock_io *io, size_t total)
{
	struct sock_patience p = sock_patience(so, io->flags,
	    atomic_load_explicit(&so->sndtimeo_us, memory_order_relaxed));
	struct iov_at at = { .iov = io->iov, .n_iov = io->n_iov };
	bool saw_room = false;
	size_t sent = 0;

	for (;;) {
		uint32_t seen = waitword_seq(&so->half.news);
		size_t n = 0;
		int err = may_send(so);

		if (err == 0) {
			n = put_bytes(so, &at, total - sent);
			sent += n;
			if (n > 0) {
				sockhalf_post_app(&so->half, SOCK_OP_SEND);
				saw_room = false;
			}
			if (sent == total)
				return (int64_t)sent;
		} else if (err != -EAGAIN) {
			return sent > 0 ? (int64_t)sent : err;
		}
		err = wait_to_send(so, io, seen, &p, &saw_room);
		if (err < 0)
			return sent > 0 ? (int64_t)sent : err;
	}
}

int64_t
stream_send(struct sock *so, struct sock_io *io)
{
	int64_t total = iov_bytes(io->iov, io->n_iov);
	_Atomic uint8_t *cork = &so->half.opts.cork;
	uint8_t was = atomic_load_explicit(cork, memory_order_relaxed);

	if (total < 0)
		return total;
	if (io->flags & ~SEND_FLAGS)
		return -EOPNOTSUPP;
	if (io->flags & MSG_MORE)
		atomic_fetch_or_explicit(cork, CORK_MORE, memory_order_relaxed);
	else if (was & CORK_MORE)
		atomic_fetch_and_explicit(cork, (uint8_t)~CORK_MORE, memory_order_relaxed);
	return run_send(so, io, (size_t)total);
}

/* ---- sendfile ---- */

/* One piece of the file at `pos` to the socket. Bytes sent, 0 at the end of the file. */
static int64_t
send_piece(struct sock *so, struct sock_io *io, int in_fd, off_t pos, void *buf, size_t want)
{
	ssize_t got = pread(in_fd, buf, want, pos);
	struct iovec iov = { .iov_base = buf, .iov_len = got > 0 ? (size_t)got : 0 };

	if (got <= 0)
		return got < 0 ? (errno == ESPIPE ? -EINVAL : -errno) : 0;
	io->iov = &iov;
	io->n_iov = 1;
	return stream_send(so, io);
}

/* Pieces of the file from *pos on until `count`, its end or an error. Bytes sent, else why none. */
static int64_t
send_pieces(struct sock *so, struct sock_io *io, int in_fd, off_t *pos, void *buf, size_t count)
{
	int64_t n = 0, done = 0;

	while ((size_t)done < count && io->held != 0) {
		n = send_piece(so, io, in_fd, *pos, buf, min_size(count - (size_t)done,
		    SENDFILE_BYTES));
		if (n <= 0)
			break;
		done += n;
		*pos += n;
	}
	return done == 0 ? n : done;
}

/* The same with a buffer of its own, which a cancelled thread gives back. */
static int64_t
send_from(struct sock *so, struct sock_io *io, int in_fd, off_t *pos, size_t count)
{
	volatile int64_t done;	/* survives the cleanup frame's longjmp */
	void *buf = malloc(SENDFILE_BYTES);

	if (buf == NULL)
		return -ENOMEM;
	pthread_cleanup_push(free, buf);
	done = send_pieces(so, io, in_fd, pos, buf, count);
	pthread_cleanup_pop(1);
	return done;
}

int64_t
sock_sendfile(struct sock *so, struct sock_io *io, int in_fd, off_t *off, size_t count)
{
	off_t pos = off != NULL ? *off : lseek(in_fd, 0, SEEK_CUR);
	int64_t done;

	if (pos < 0)
		return off != NULL ? -EINVAL : (errno == ESPIPE ? -EINVAL : -errno);
	if (so->type != SOCK_STREAM)
		return -EINVAL;
	done = send_from(so, io, in_fd, &pos, count);
	if (done <= 0)
		return done;
	if (off != NULL)
		*off = pos;
	else
		lseek(in_fd, pos, SEEK_SET);
	return done;
}
