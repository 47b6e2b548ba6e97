/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making, finding and pinning sockets, and the layer that the others call back.
 *
 * Memory comes from one pool a stack (type-stable, bounded by kern.ipc.maxsockets); a netisr keeps
 * a few socks at hand for the connections it accepts, so that it seldom takes the pool's mutex. A
 * sock at rest has USER_CLOSING set, which keeps stale descriptors out; its generation is raised
 * before it is opened again.
 *
 * Finding: read the entry, pin what it names, then look whether the entry and the generation are
 * still those. The pin keeps the object from being reused, so after the second look the answer
 * stands.
 */
#define _GNU_SOURCE 1
#include "socket/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/knob.h"
#include "socket/call.h"
#include "socket/evq.h"
#include "transport/ulp.h"

#define BIT_SPINS	64	/* looks at a BUSY bit before sleeping on it: its holder copies */

/* An idle connection: pcb (384), socket, an epoll item, its descriptor, a place in a hash table. */
STATIC_ASSERT(384 + sizeof(struct sock) + sizeof(struct evq_item) + sizeof(struct fd_entry) + 24 <=
    1024, "an idle connection takes a kilobyte at most");

static const char *const initport_names[] = { "near", "random", "zero", NULL };

/* ---- memory ---- */

/* The pool's lock is held. */
static struct sock *
pool_alloc(struct darter_stack *s)
{
	struct slab *pool = &s->sock->pool;
	uint32_t blocks = pool->block_count;
	struct sock *so = slab_alloc(pool);

	if (unlikely(pool->block_count != blocks))
		netisr_count_any(s->netisr[0], CTR_conn_allocs);
	return so;
}

static void
pool_put(struct sock_stack *ss, struct sock *so)
{
	pthread_mutex_lock(&ss->lock);
	slab_free(&ss->pool, so);
	pthread_mutex_unlock(&ss->lock);
}

static struct sock *
cache_get(struct netisr *n)
{
	struct sock_stack *ss = n->stack->sock;
	struct sock_netisr *sn = n->sock;
	struct sock *so;

	if (sn->free == NULL) {
		pthread_mutex_lock(&ss->lock);
		while (sn->n_free < SOCK_CACHE_STEP && (so = pool_alloc(n->stack)) != NULL) {
			so->next_free = sn->free;
			sn->free = so;
			sn->n_free++;
		}
		pthread_mutex_unlock(&ss->lock);
	}
	so = sn->free;
	if (so != NULL) {
		sn->free = so->next_free;
		sn->n_free--;
	}
	return so;
}

static struct sock *
pool_get(struct darter_stack *s)
{
	struct netisr *n = netisr_current();
	struct sock *so;

	/* an attached thread has what its netisr has laid by */
	if (n != NULL && n->stack == s)
		return cache_get(n);
	pthread_mutex_lock(&s->sock->lock);
	so = pool_alloc(s);
	pthread_mutex_unlock(&s->sock->lock);
	return so;
}

static void
cache_shrink(struct netisr *n, uint32_t keep)
{
	struct sock_stack *ss = n->stack->sock;
	struct sock_netisr *sn = n->sock;

	pthread_mutex_lock(&ss->lock);
	while (sn->n_free > keep) {
		struct sock *so = sn->free;

		sn->free = so->next_free;
		sn->n_free--;
		slab_free(&ss->pool, so);
	}
	pthread_mutex_unlock(&ss->lock);
}

static void
cache_put(struct netisr *n, struct sock *so)
{
	struct sock_netisr *sn = n->sock;

	so->next_free = sn->free;
	sn->free = so;
	if (++sn->n_free > SOCK_CACHE_MAX)
		cache_shrink(n, SOCK_CACHE_STEP);
}

/*
 * Everything but the waitword, whose count goes on. The user word stays at rest until sock_publish.
 */
static void
reset(struct sock *so, struct darter_stack *s, int family, int type, uint8_t proto)
{
	struct sockhalf *sh = &so->half;

	sh->stack = s;
	sh->ulp = proto == IPPROTO_TCP ? &tcp_ulp : &udp_ulp;
	atomic_store_explicit(&sh->owner, NULL, memory_order_relaxed);
	atomic_store_explicit(&sh->pcb, NULL, memory_order_relaxed);
	atomic_store_explicit(&sh->acceptq, NULL, memory_order_relaxed);
	atomic_store_explicit(&sh->dgramq, NULL, memory_order_relaxed);
	sh->proto = proto;
	sh->family = (uint8_t)family;
	sh->generation++;
	atomic_store_explicit(&sh->ops, 0, memory_order_relaxed);
	sh->node = (struct msg_node){ .kind = MSG_SOCKET };
	atomic_store_explicit(&sh->state, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->so_error, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->rx_adv, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->rx_wnd_step, 0, memory_order_relaxed);
	sh->bind = NULL;
	memset(&sh->local, 0, sizeof(sh->local));
	memset(&sh->peer, 0, sizeof(sh->peer));
	atomic_store_explicit(&sh->user, USER_CLOSING, memory_order_relaxed);
	so->fd = (struct fd_object){ .kind = FD_SOCK };
	so->type = (uint8_t)type;
	atomic_store_explicit(&so->conn, SOCK_UNCONNECTED, memory_order_relaxed);
	atomic_store_explicit(&so->is_nonblock, 0, memory_order_relaxed);
	atomic_store_explicit(&so->items, NULL, memory_order_relaxed);
	atomic_store_explicit(&so->ev_word, 0, memory_order_relaxed);
}

static void
init_rings(struct sockhalf *sh)
{
	uint32_t tx_bytes = atomic_load_explicit(&sh->opts.sndbuf_bytes, memory_order_relaxed);

	ring_init(&sh->tx, sh->proto == IPPROTO_UDP ? max_u32(tx_bytes, DGRAM_RECORD_MAX_BYTES) :
	    tx_bytes);
	ring_init(&sh->rx, atomic_load_explicit(&sh->opts.rcvbuf_bytes, memory_order_relaxed));
}

int
sock_new(struct darter_stack *s, int family, int type, uint8_t proto, struct sock **ret_sock)
{
	struct sock_stack *ss = s->sock;
	struct sock *so = pool_get(s);
	int err;

	if (so == NULL)
		return -ENOBUFS;
	reset(so, s, family, type, proto);
	sock_opts_init(so);
	init_rings(&so->half);
	err = sock_attach(&so->half);
	if (err < 0) {
		pool_put(ss, so);
		return err;
	}
	atomic_fetch_add_explicit(&ss->n_socks, 1, memory_order_relaxed);
	*ret_sock = so;
	return 0;
}

/* ---- what the layers below call; they hold a netisr ---- */

static struct sockhalf *
child_new(struct netisr *n, struct sockhalf *listener)
{
	struct sock *parent = sock_of(listener), *so = cache_get(n);

	if (so == NULL)
		return NULL;
	reset(so, n->stack, listener->family, parent->type, listener->proto);
	so->half.opts = listener->opts;
	init_rings(&so->half);
	atomic_store_explicit(&so->rcvtimeo_us,
	    atomic_load_explicit(&parent->rcvtimeo_us, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&so->sndtimeo_us,
	    atomic_load_explicit(&parent->sndtimeo_us, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&so->priority,
	    atomic_load_explicit(&parent->priority, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&so->conn, SOCK_CONNECTED, memory_order_relaxed);
	atomic_store_explicit(&so->half.owner, n, memory_order_release);
	atomic_fetch_add_explicit(&n->stack->sock->n_socks, 1, memory_order_relaxed);
	return &so->half;
}

static void
on_event(struct sockhalf *sh, uint32_t events)
{
	struct sock *so = sock_of(sh);
	struct netisr *n = netisr_current();

	/*
	 * an RMW: the list of items is read after it, as ctl reads the state after it has added its
	 * own
	 */
	waitword_post(&sh->news);
	if (atomic_load_explicit(&so->items, memory_order_acquire) != NULL)
		evq_notify(so, events);
	if (n == NULL)
		return;
	NETISR_COUNT(n, CTR_evq_events);
	if (unlikely(atomic_load_explicit(&n->sock->is_run_waiting, memory_order_relaxed)))
		waitword_post(&n->sock->run_word);
}

static void
on_free(struct netisr *n, struct sockhalf *sh)
{
	struct sock *so = sock_of(sh);
	struct darter_stack *s = sh->stack;
	struct chunk_cache *c;

	/*
	 * what never had an owner is freed by an application thread, which may hold another stack's
	 * netisr
	 */
	if (n != NULL && n->stack != s)
		n = NULL;
	c = n != NULL ? &n->chunks : &s->shared_chunks;
	ring_fini(&sh->tx, c);
	ring_fini(&sh->rx, c);
	/* a child that was never accepted has not been open; one that was is closed already */
	atomic_store_explicit(&sh->user, USER_CLOSING, memory_order_release);
	atomic_fetch_sub_explicit(&s->sock->n_socks, 1, memory_order_relaxed);
	if (n != NULL)
		cache_put(n, so);
	else
		pool_put(s->sock, so);
}

static void
release_idle(struct netisr *n, struct sockhalf *sh)
{
	const uint32_t both = USER_RX_BUSY | USER_TX_BUSY;

	/*
	 * The holder does not count as a user: were it the last one out of a socket that is closed
	 * meanwhile, it would close it in the middle of the protocol's sweep.
	 */
	if (!pin_grab_idle(&sh->user, both))
		return;
	ring_release(&sh->tx, &n->chunks);
	ring_release(&sh->rx, &n->chunks);
	if (pin_drop_idle(&sh->user, both))
		waitword_post(&sh->news);
}

static const struct sockhalf_ops half_ops = {
	.child_new = child_new,
	.event = on_event,
	.release_idle = release_idle,
	.free = on_free,
};

/* ---- pinning ---- */

void
sock_unpin(struct sock *so, uint32_t bits)
{
	switch (pin_leave(&so->half.user, bits)) {
	case PIN_LEFT_NOTHING:
		break;
	case PIN_LEFT_WAKE:
		waitword_post(&so->half.news);
		break;
	case PIN_LEFT_LAST:
		sock_finish(so);
		break;
	}
}

void
sock_give(struct sock *so, uint32_t bits)
{
	if (pin_give(&so->half.user, bits) == PIN_LEFT_WAKE)
		waitword_post(&so->half.news);
}

int
sock_take(struct sock *so, uint32_t bits)
{
	struct waitword *w = &so->half.news;
	unsigned spins = 0;

	for (;;) {
		uint32_t seen = waitword_seq(w);
		int err;

		if (pin_is_closing(&so->half.user))
			return -EBADF;
		if (pin_take(&so->half.user, bits, spins >= BIT_SPINS) == 0)
			return 0;
		if (spins++ < BIT_SPINS) {
			cpu_relax();
			continue;
		}
		/* a signal does not end this wait: the bit comes soon */
		err = wait_until(so->half.stack, NULL, w, seen, TIME_NEVER, -1);
		if (err == -EDEADLK)
			return err;
	}
}

/* Why fd is no socket of ours. */
static int
not_a_socket(int fd)
{
	if (fdtab_is_in_range(fd))
		return -EBADF;
	return fcntl(fd, F_GETFD) < 0 ? -EBADF : -ENOTSOCK;
}

static bool
is_still(const struct fd_entry *e, uintptr_t word, const struct sock *so)
{
	return atomic_load_explicit(&e->generation, memory_order_relaxed) == so->half.generation &&
	    atomic_load_explicit(&e->object, memory_order_acquire) == word;
}

/* The bits are taken: enters without them, then waits. */
static int
enter_and_wait(struct sock *so, uint32_t bits)
{
	int err = pin_enter(&so->half.user, 0);

	if (err < 0)
		return err;
	err = sock_take(so, bits);
	if (err < 0)
		sock_unpin(so, 0);
	return err;
}

int
sock_pin(int fd, uint32_t bits, struct sock **ret_sock)
{
	struct fd_entry *e = fdtab_entry(fd);

	if (unlikely(e == NULL))
		return not_a_socket(fd);
	for (;;) {
		uintptr_t word = atomic_load_explicit(&e->object, memory_order_acquire);
		struct sock *so;
		int err;

		if (unlikely(word == 0))
			return -EBADF;
		if (unlikely(fdtab_kind(word) != FD_SOCK))
			return -ENOTSOCK;
		so = sock_of_fd_object(fdtab_object(word));
		err = pin_enter(&so->half.user, bits);
		if (unlikely(err == -EBUSY))
			err = enter_and_wait(so, bits);
		if (likely(err == 0) && likely(is_still(e, word, so))) {
			*ret_sock = so;
			return 0;
		}
		if (err == 0)
			sock_unpin(so, bits);
		else if (err != -EBADF || atomic_load_explicit(&e->object,
		    memory_order_acquire) == word)
			return err;
	}
}

int
sock_publish(struct sock *so, bool is_cloexec)
{
	int fd = fdtab_reserve(0);

	pin_open(&so->half.user);
	if (fd < 0) {
		pin_close(&so->half.user);
		sock_unpin(so, 0);
		return fd;
	}
	fdtab_install(fd, &so->fd, so->half.generation, is_cloexec);
	return fd;
}

/* ---- waiting ---- */

struct sock_patience
sock_patience(struct sock *so, int flags, uint64_t timeo_us)
{
	struct sock_patience p = { .deadline = TIME_NEVER, .signals = call_signals() };

	p.is_nonblock = (flags & MSG_DONTWAIT) != 0 || timeo_us == 0 ||
	    atomic_load_explicit(&so->is_nonblock, memory_order_relaxed);
	/* the clock is read only by calls with a time limit */
	if (!p.is_nonblock && timeo_us != SOCK_TIMEO_NONE)
		p.deadline = time_add_us(stack_now(so->half.stack), timeo_us);
	return p;
}

static void
undo_wait(void *arg)
{
	sock_unpin(arg, 0);
}

int
sock_wait(struct sock *so, uint32_t seen, const struct sock_patience *p)
{
	struct sockhalf *sh = &so->half;
	struct call_wait w = {
		.stack = sh->stack,
		.owner = atomic_load_explicit(&sh->owner, memory_order_acquire),
		.word = &sh->news,
		.seen = seen,
		.deadline = p->deadline,
		.extra_fd = -1,
		.signals = p->signals,
		.undo = undo_wait,
		.arg = so,
	};
	int err;

	if (p->is_nonblock)
		return -EAGAIN;
	err = call_wait(&w);
	if (pin_is_closing(&sh->user))
		return -EBADF;
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* ---- the layer ---- */

static int
register_knobs(struct darter_stack *s, struct sock_stack *ss)
{
	struct op_knobs *k = &s->op_knobs;
	const struct knob knobs[] = {
		{ .name = "kern.ipc.rand_initport", .type = KNOB_ENUM, .dflt = INITPORT_NEAR, .max =
		    INITPORT_ZERO,
		  .names = initport_names, .value = &k->initport,
		  .text = "netisr on which a connection of a thread without one begins; zero: all "
		      "on netisr 0, which socket(2) asks first" },
		{ .name = "kern.ipc.soconnect_async", .type = KNOB_BOOL, .dflt = 1, .max = 1,
		  .value = &k->connect_async,
		  .text = "connect posts its message and goes on; off: waits until the owner has "
		      "acted" },
		{ .name = "kern.ipc.sosend_async", .type = KNOB_BOOL, .dflt = 1, .max = 1,
		  .value = &k->send_async,
		  .text = "send on a stream posts its message and goes on; off: waits until the "
		      "owner has taken it" },
		{ .name = "kern.ipc.soclose_fast", .type = KNOB_BOOL, .dflt = 1, .max = 1,
		  .value = &k->close_fast,
		  .text = "close of a connection is one message; off: waits for the owner's "
		      "answer" },
		{ .name = "kern.ipc.sorcvd_coalesce", .type = KNOB_BOOL, .dflt = 1, .max = 1,
		  .value = &k->rcvd_coalesce,
		  .text = "a reader tells of room when a whole step more can be promised; off: one "
		      "message with an answer for each read" },
		{ .name = "kern.ipc.maxsockbuf", .type = KNOB_INT, .dflt = 16 << 20, .min = 4096,
		  .max = 1 << 30, .value = &ss->maxsockbuf,
		  .text = "largest SO_SNDBUF and SO_RCVBUF, bytes" },
		{ .name = "kern.ipc.somaxconn", .type = KNOB_INT, .dflt = 4096, .min = 1, .max =
		    65535,
		  .value = &ss->somaxconn, .text = "largest backlog of a listener" },
		{ .name = "net.inet.tcp.sendspace", .type = KNOB_INT, .dflt = 256 << 10, .min =
		    4096,
		  .max = 1 << 30, .value = &ss->tcp_sendspace,
		  .text = "send buffer of a new TCP socket, bytes" },
		{ .name = "net.inet.tcp.recvspace", .type = KNOB_INT, .dflt = 4 << 20, .min = 4096,
		  .max = 1 << 30, .value = &ss->tcp_recvspace,
		  .text = "limit to which the receive buffer of a new TCP socket may grow, bytes" },
		{ .name = "net.inet.udp.sendspace", .type = KNOB_INT, .dflt = 208 << 10, .min =
		    4096,
		  .max = 1 << 30, .value = &ss->udp_sendspace,
		  .text = "send buffer of a new UDP socket, bytes" },
		{ .name = "net.inet.udp.recvspace", .type = KNOB_INT, .dflt = 208 << 10, .min =
		    4096,
		  .max = 1 << 30, .value = &ss->udp_recvspace,
		  .text = "receive buffer of a new UDP socket, bytes" },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

static void
stack_fini(struct darter_stack *s)
{
	struct sock_stack *ss = s->sock;

	slab_fini(&ss->pool);
	pthread_mutex_destroy(&ss->lock);
	free(ss);
	s->sock = NULL;
	s->sockhalf_ops = NULL;
}

static int
stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	struct sock_stack *ss = calloc(1, sizeof(*ss));
	pthread_mutexattr_t attr;
	int rc = -ENOMEM;

	if (ss != NULL) {
		/* as the table of descriptors: held too shortly to sleep for */
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
		pthread_mutex_init(&ss->lock, &attr);
		pthread_mutexattr_destroy(&attr);
		rc = slab_init(&ss->pool, sizeof(struct sock), CACHELINE_BYTES, FDTAB_MAX);
	}
	if (rc == 0) {
		s->sock = ss;
		s->sockhalf_ops = &half_ops;
		rc = register_knobs(s, ss);
		if (rc < 0)
			stack_fini(s);
	} else {
		free(ss);
	}
	if (rc < 0)
		snprintf(err, err_size, "socket: set-up: %s; free memory", strerror(-rc));
	return rc;
}

static int
netisr_init(struct netisr *n, char *err, size_t err_size)
{
	n->sock = calloc(1, sizeof(*n->sock));
	if (n->sock != NULL)
		return 0;
	snprintf(err, err_size, "socket: netisr %u: out of memory; free memory", n->id);
	return -ENOMEM;
}

static void
netisr_fini(struct netisr *n)
{
	free(n->sock);
	n->sock = NULL;
}

const struct layer sock_layer = {
	.name = "socket",
	.stack_init = stack_init,
	.stack_fini = stack_fini,
	.netisr_init = netisr_init,
	.netisr_fini = netisr_fini,
};
