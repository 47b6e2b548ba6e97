/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets as the application's threads see them: struct sock is the shared half
 * (runtime/sockhalf.h) and what only this layer needs. Objects are type-stable: their memory
 * belongs to the stack's pool for good and keeps its generation.
 *
 * Life: sock_new (or child_new on a netisr) … descriptors come and go (fdtab.h) … the last one is
 * closed, the last call leaves (pin.h), ulp->close is called, the protocol ends the connection in
 * its own time … sockhalf_ops.free.
 *
 * Functions here return 0, a count, or a negative errno, never touch errno, and are called between
 * call_enter and call_leave unless they say otherwise. `so` is pinned by the caller.
 */
#ifndef SOCKET_SOCK_H
#define SOCKET_SOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/slab.h"
#include "runtime/stack.h"
#include "socket/fdtab.h"
#include "socket/pin.h"
#include "transport/dgramq.h"

struct evq_item;

/* Where connect(2) stands, which is not where the connection stands: Linux tells a success once. */
enum sock_conn {
	SOCK_UNCONNECTED,
	SOCK_CONNECTING,	/* begun, outcome not yet told */
	SOCK_CONNECTED
};

#define SOCK_TIMEO_NONE UINT64_MAX

struct sock {
	struct sockhalf half;			/* first */

	struct evq_item *_Atomic items;		/* who wants to know of events; ev_word's lock */
	_Atomic uint32_t ev_word;		/* evq.h */
	struct fd_object fd;
	_Atomic uint64_t rcvtimeo_us;		/* SOCK_TIMEO_NONE: for ever */
	_Atomic uint64_t sndtimeo_us;
	_Atomic uint32_t priority;		/* SO_PRIORITY, kept only */
	_Atomic uint8_t is_nonblock;
	uint8_t type;				/* SOCK_STREAM, SOCK_DGRAM */
	_Atomic uint8_t conn;			/* enum sock_conn; written with TX_BUSY */
	struct sock *next_free;			/* a netisr's cache */
};

/* The layer's state of a stack. */
struct sock_stack {
	pthread_mutex_t lock;			/* pool */
	struct slab pool;
	_Atomic uint32_t n_socks;		/* made and not yet freed */
	_Atomic int64_t maxsockbuf;
	_Atomic int64_t somaxconn;
	_Atomic int64_t tcp_sendspace;
	_Atomic int64_t tcp_recvspace;
	_Atomic int64_t udp_sendspace;
	_Atomic int64_t udp_recvspace;
};

#define SOCK_CACHE_MAX	64u
#define SOCK_CACHE_STEP	32u

/* … and of a netisr: socks for accepted connections, without the pool's lock. Holder only. */
struct sock_netisr {
	struct sock *free;
	uint32_t n_free;
	struct waitword run_word;	/* posted at events while darter_run waits */
	_Atomic bool is_run_waiting;
};

extern const struct layer sock_layer;

static inline struct sock *
sock_of(struct sockhalf *sh)
{
	return (struct sock *)(void *)sh;
}

static inline struct sock *
sock_of_fd_object(struct fd_object *o)
{
	return container_of(o, struct sock, fd);
}

/* ---- sock.c: making, finding, pinning ---- */

/* A socket with its protocol attached, no descriptor yet. -ENOMEM, -ENOBUFS or the protocol's. */
int sock_new(struct darter_stack *s, int family, int type, uint8_t proto, struct sock **ret_sock);

/*
 * The socket of fd, pinned, with `bits` of the user word. -EBADF, -ENOTSOCK. Waits shortly for
 * bits.
 */
int sock_pin(int fd, uint32_t bits, struct sock **ret_sock);

/* Leaves; the last one out of a closing socket finishes it. */
void sock_unpin(struct sock *so, uint32_t bits);

/*
 * Pinned already: takes bits, waiting shortly for whoever has them, or gives them back. -EBADF when
 * closing.
 */
int sock_take(struct sock *so, uint32_t bits);
void sock_give(struct sock *so, uint32_t bits);

/* ---- home.c: where a connection begins ---- */

/* Makes the protocol's part of a fresh socket. 0, or a negative errno. */
int sock_attach(struct sockhalf *sh);

/*
 * The netisr nearest to this thread: the one it holds, else the one that stack.cpus pins to this
 * thread's CPU, else CPU modulo netisrs.
 */
struct netisr *sock_near(const struct darter_stack *s);

/* The netisr for a connection that this thread begins: kern.ipc.rand_initport. */
struct netisr *sock_home(struct darter_stack *s);

/* The chunk cache that this thread may use for s's rings. */
static inline struct chunk_cache *
sock_chunks(struct darter_stack *s)
{
	struct netisr *n = netisr_current();

	/* what the netisr may have for received bytes is not for those to be sent */
	if (n == NULL || n->stack != s || chunk_depot_is_short(&s->depot))
		return &s->shared_chunks;
	return &n->chunks;
}

/*
 * Puts so (not yet open) under a new descriptor and lets calls in. -EMFILE, -ENOMEM: so is closed.
 */
int sock_publish(struct sock *so, bool is_cloexec);

/* Reported once: negative errno or 0. */
static inline int
sock_take_error(struct sock *so)
{
	if (likely(atomic_load_explicit(&so->half.so_error, memory_order_acquire) == 0))
		return 0;
	return -atomic_exchange_explicit(&so->half.so_error, 0, memory_order_acq_rel);
}

/* ---- waiting ---- */

/* A blocking call's patience: when it began, until when, how many signals the thread had seen. */
struct sock_patience {
	struct time deadline;
	uint32_t signals;
	bool is_nonblock;
};

/* flags: MSG_DONTWAIT counts. timeo_us: SO_RCVTIMEO or SO_SNDTIMEO. */
struct sock_patience sock_patience(struct sock *so, int flags, uint64_t timeo_us);

/*
 * Sleeps until so->half.news has moved from `seen`. The caller is pinned and holds no bit. 0 look
 * again; -EAGAIN (non-blocking, or the time is up); -EINTR; -EBADF (closed meanwhile); -EDEADLK.
 */
int sock_wait(struct sock *so, uint32_t seen, const struct sock_patience *p);

/* ---- ready.c ---- */

/*
 * EPOLL* bits that hold now (tcp_poll(), datagram_poll() of Linux). `want` with EPOLLOUT: asks for
 * an event when room comes.
 */
uint32_t sock_ready(struct sock *so, uint32_t want);

/* The largest datagram with its record; no send buffer is smaller. */
#define DGRAM_RECORD_MAX_BYTES (DGRAM_MAX_BYTES + (uint32_t)sizeof(struct dgram_rec))

/*
 * Streams: half of what is queued is free, Linux's rule for "writable", which keeps wake-ups few.
 */
bool sock_has_room(struct sock *so);

/* ---- iov.c, stream.c, dgram.c: io on sockets pinned with the side's BUSY bit (io->held) ---- */

struct sock_io {
	const struct iovec *iov;
	size_t n_iov;
	int flags;			/* MSG_* of the caller */
	int ret_flags;			/* msg_flags */
	const struct endpoint *to;	/* NULL: connected peer */
	struct endpoint *ret_from;	/* may be NULL */
	bool is_read_call;		/* read(2): an empty buffer returns at once */
	uint32_t held;			/* BUSY bits: given and told back; 0 after EBADF */
};

int64_t stream_recv(struct sock *so, struct sock_io *io);
int64_t stream_send(struct sock *so, struct sock_io *io);
int64_t dgram_recv(struct sock *so, struct sock_io *io);
int64_t dgram_send(struct sock *so, struct sock_io *io);
int64_t sock_sendfile(struct sock *so, struct sock_io *io, int in_fd, off_t *off, size_t count);

/* A place in a list of pieces. */
struct iov_at {
	const struct iovec *iov;
	size_t n_iov;
	size_t off;		/* into *iov */
};

/* Sum of the pieces, or -EINVAL when it does not fit ssize_t. */
int64_t iov_bytes(const struct iovec *iov, size_t n_iov);
/*
 * The next part in one piece, at most `max` bytes, and moves on; NULL with *ret_len 0 at the end.
 */
void *iov_next(struct iov_at *at, size_t max, size_t *ret_len);
/* Copies bytes into / out of the pieces, as far as they reach. */
void iov_scatter(const struct iovec *iov, size_t n_iov, const void *src, size_t len);
void iov_gather(const struct iovec *iov, size_t n_iov, void *dst, size_t len);

/*
 * Blocks in the middle of io: gives the bits back, sleeps until news has moved from `seen`, takes
 * them again. 0, or sock_wait's errors; io->held tells which bits are held.
 */
int sock_io_wait(struct sock *so, struct sock_io *io, uint32_t seen, const struct sock_patience *p);

/* ---- conn.c ---- */

int sock_bind(struct sock *so, const struct sockaddr *addr, socklen_t len);
int sock_listen(struct sock *so, int backlog);
/* TX_BUSY held; *ret_held tells whether it still is. */
int sock_connect(struct sock *so, const struct sockaddr *addr, socklen_t len, uint32_t *ret_held);
/* The new descriptor. RX_BUSY held; likewise. */
int sock_accept(struct sock *so, struct sockaddr *addr, socklen_t *len, int flags,
    uint32_t *ret_held);
/* TX_BUSY held. */
int sock_shutdown(struct sock *so, int how);
int sock_name(struct sock *so, bool is_peer, struct sockaddr *addr, socklen_t *len);

/* ---- close.c ---- */

/* Closes a descriptor of any kind. */
int fd_close(int fd);
/* dup2, dup3. */
int fd_dup_to(int fd, int to, bool is_cloexec);
/* What fdtab_remove left to do. */
void fd_close_removed(const struct fd_removed *r);
/* PIN_LEFT_LAST of a socket. */
void sock_finish(struct sock *so);
/* Closes all descriptors of s. */
void fd_close_stack(struct darter_stack *s);
/*
 * Waits until no connection of s has data or a FIN to deliver, at most linger_ms; true when so.
 * Outside of call_enter.
 */
bool sock_drain(struct darter_stack *s, unsigned linger_ms);
/* Resets what sock_drain has left. */
void sock_abort_all(struct darter_stack *s);

/* ---- sockopt.c ---- */

int sock_setopt(struct sock *so, int level, int name, const void *val, socklen_t len);
int sock_getopt(struct sock *so, int level, int name, void *val, socklen_t *len);
void sock_opts_init(struct sock *so);
/* ---- ioctl.c: FIONREAD, FIONBIO, SIOCOUTQ ---- */

int sock_ioctl(struct sock *so, unsigned long request, void *arg);

/* ---- addr.c ---- */

/* -EINVAL (length), -EAFNOSUPPORT. */
int sock_addr_in(const struct sockaddr *addr, socklen_t len, struct endpoint *ret);
/* Writes at most *len bytes and sets *len to the full length. addr NULL: nothing. */
void sock_addr_out(int family, const struct endpoint *e, struct sockaddr *addr, socklen_t *len);

#endif
