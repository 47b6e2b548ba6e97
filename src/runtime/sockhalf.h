/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of a socket that the application's threads and the owning netisr share: words, rings,
 * indexes. No fds, no protocol. transport/ hangs its pcb on it; socket/ embeds it as the first
 * member of struct sock.
 *
 * Who writes what:
 *   ops       any thread ORs bits in; the poster that found 0 pushes the node; the holder empties
 *   user      calls in progress: the rules are in socket/pin.h
 *   state     the holder (shutdown and close for their own bits): SH_* flags, what readiness is
 *             computed from
 *   news      bumped at each event; threads sleep on it
 *   so_error  the holder sets, whoever reports it swaps it to 0
 *   rx, tx    rings: producer/consumer are the holder and the thread with RX_BUSY/TX_BUSY
 */
#ifndef RUNTIME_SOCKHALF_H
#define RUNTIME_SOCKHALF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "runtime/msgport.h"
#include "runtime/ring.h"
#include "runtime/waitword.h"

struct netisr;
struct darter_stack;
struct sockhalf;

/* Op bits, handled in this order. */
enum sock_op {
	SOCK_OP_CONNECT = 1 << 0,	/* `peer` (and `local` if bound) are set */
	SOCK_OP_SEND = 1 << 1,		/* bytes or datagrams were put into tx */
	SOCK_OP_WINDOW = 1 << 2,	/* the reader has made room */
	SOCK_OP_OPTION = 1 << 3,	/* an option that the protocol caches has changed */
	SOCK_OP_SHUTDOWN = 1 << 4,	/* state has SH_SHUT_WR and/or SH_SHUT_RD */
	/* last: no user is left, the protocol may free it when done */
	SOCK_OP_CLOSE = 1 << 5,
};

/* State bits. */
enum sock_state {
	SH_BOUND = 1 << 0,
	SH_LISTENING = 1 << 1,
	/* set by connect, cleared together with CONNECTED or on failure */
	SH_CONNECTING = 1 << 2,
	SH_CONNECTED = 1 << 3,		/* data may be sent */
	SH_NAMED = 1 << 4,		/* `local` is valid (port drawn) */
	SH_RX_EOF = 1 << 5,		/* the peer's FIN is reached: rx holds the last bytes */
	SH_SHUT_RD = 1 << 6,		/* this side: no more reads */
	SH_SHUT_WR = 1 << 7,		/* this side: no more writes (FIN queued behind tx) */
	/* the connection is gone (reset, timed out, closed): nothing moves any more */
	SH_DEAD = 1 << 8,
	/* a writer or poller found tx full and wants SOCK_EV_OUT when there is room */
	SH_TX_WANT = 1 << 9,
	SH_WAS_RESET = 1 << 10,		/* DEAD because of an RST or an abort (HUP) */
	SH_FIN_SENT = 1 << 11,
};

/*
 * Events, posted by the holder through sockhalf_ops.event; the socket layer makes EPOLL* of them.
 */
enum sock_event {
	SOCK_EV_IN = 1 << 0,		/* new bytes, datagram, connection to accept, or EOF */
	SOCK_EV_OUT = 1 << 1,		/* room, or connected */
	SOCK_EV_RDHUP = 1 << 2,
	SOCK_EV_HUP = 1 << 3,
	SOCK_EV_ERR = 1 << 4,
};

/*
 * User word: the right to be *the* consumer or producer, closing, and the number of calls inside.
 */
#define USER_RX_BUSY	(UINT32_C(1) << 31)
#define USER_TX_BUSY	(UINT32_C(1) << 30)
#define USER_CLOSING	(UINT32_C(1) << 29)
#define USER_COUNT_MASK	((UINT32_C(1) << 24) - 1)

/* Options that protocols read (relaxed); sockopt.c writes them. Sized and defaulted by socket/. */
struct sock_opts {
	_Atomic uint32_t sndbuf_bytes;
	_Atomic uint32_t rcvbuf_bytes;
	_Atomic uint32_t rcvlowat_bytes;
	_Atomic int32_t linger_s;	/* -1: off */
	_Atomic uint32_t user_timeout_ms;	/* TCP_USER_TIMEOUT, 0: default */
	_Atomic uint16_t keepidle_s;
	_Atomic uint16_t keepintvl_s;
	_Atomic uint16_t keepcnt;
	_Atomic uint16_t maxseg;	/* TCP_MAXSEG, 0: from the route */
	_Atomic uint32_t port_range;	/* IP_LOCAL_PORT_RANGE: first | last << 16, 0: none */
	_Atomic uint16_t incoming_cpu;	/* SO_INCOMING_CPU plus 1, 0: not set */
	_Atomic uint8_t nodelay;
	_Atomic uint8_t cork;
	_Atomic uint8_t quickack;
	_Atomic uint8_t keepalive;
	_Atomic uint8_t reuseaddr;
	_Atomic uint8_t reuseport;
	_Atomic uint8_t broadcast;
	_Atomic uint8_t ttl;		/* 0: default */
	_Atomic uint8_t tos;
	_Atomic uint8_t v6only;
	_Atomic uint8_t defer_accept;
	_Atomic uint8_t syncnt;		/* TCP_SYNCNT, 0: default */
	_Atomic uint8_t dontroute;
	_Atomic uint8_t oobinline;
	_Atomic uint8_t bind_no_port;	/* IP_BIND_ADDRESS_NO_PORT */
};

/*
 * Knobs kern.ipc.*, registered by socket/: where a connection begins, and which operations of the
 * application do not wait for the owner. Those are all on by default; off is for comparison with a
 * stack whose calls wait for an answer.
 */
enum initport {
	INITPORT_NEAR,
	INITPORT_RANDOM,
	INITPORT_ZERO,		/* attach and the first half of every connect are netisr 0's */
};

struct op_knobs {
	_Atomic int64_t initport;	/* kern.ipc.rand_initport, enum initport */
	_Atomic int64_t connect_async;
	_Atomic int64_t send_async;
	_Atomic int64_t close_fast;
	_Atomic int64_t rcvd_coalesce;	/* read by stream.c, which posts less often when it is on */
};

struct acceptq;		/* transport/acceptq.h */
struct bind_entry;	/* transport/demux.h */
struct dgramq;		/* transport/dgramq.h */

struct sockhalf {
	/* read-mostly */
	struct darter_stack *stack CACHE_ALIGNED;
	const struct ulp_ops *ulp;		/* transport/ulp.h */
	/*
	 * written before the first message, NULL before; changes while a connect is sent on to the
	 * netisr of its port, and never once there is a pcb
	 */
	struct netisr *_Atomic owner;
	void *_Atomic pcb;			/* the protocol's; touched by the owner only */
	struct acceptq *_Atomic acceptq;	/* listeners */
	struct dgramq *_Atomic dgramq;		/* datagram sockets */
	uint8_t proto;				/* IPPROTO_TCP, IPPROTO_UDP */
	uint8_t family;				/* AF_INET, AF_INET6 */
	/* bumped when the object is reused; read after the pin */
	uint32_t generation;

	/* application → netisr */
	_Atomic uint32_t ops CACHE_ALIGNED;
	_Atomic uint32_t user;
	struct msg_node node;
	struct ring tx;

	/* netisr → application */
	_Atomic uint32_t state CACHE_ALIGNED;
	_Atomic int32_t so_error;		/* positive errno, 0: none */
	struct waitword news;
	/* rx position up to which a window is promised (TCP) */
	_Atomic uint32_t rx_adv;
	/* post WINDOW when tail + cap - rx_adv reaches this many bytes */
	_Atomic uint32_t rx_wnd_step;
	struct ring rx;

	/* names: written before the state bit that makes them valid */
	struct endpoint local;			/* SH_BOUND or SH_NAMED */
	struct endpoint peer;			/* SH_CONNECTING, SH_CONNECTED */
	struct bind_entry *bind;		/* explicit bind, NULL: none; control mutex */
	/* a connect under way between netisrs; goes with SOCK_OP_CONNECT */
	uint64_t connect_tried;			/* netisrs without a port for it, a bit each */
	uint16_t connect_port;			/* drawn by the netisr that sent it on, 0: not */
	uint8_t connect_hops;
	struct sock_opts opts;
};

/* What the socket layer registers for the layers below. All calls hold a netisr of the stack. */
struct sockhalf_ops {
	/*
	 * A connected child of `listener` (options inherited), owner = n; NULL when out of memory.
	 */
	struct sockhalf *(*child_new)(struct netisr *n, struct sockhalf *listener);
	/* sock_event bits: wake sleepers and epoll items. `state` and rings are already updated. */
	void (*event)(struct sockhalf *sh, uint32_t events);
	/*
	 * Gives the memory of empty rings back unless a call is inside; the protocol has nothing
	 * out of order in rx.
	 */
	void (*release_idle)(struct netisr *n, struct sockhalf *sh);
	/*
	 * The protocol has finished with sh for good (after SOCK_OP_CLOSE, or a child never
	 * accepted).
	 */
	void (*free)(struct netisr *n, struct sockhalf *sh);
};

/*
 * Posts op bits: directly handled when this thread holds the owner, else by message (at most one
 * queued a socket).
 */
void sockhalf_post(struct sockhalf *sh, uint32_t ops);

/*
 * … and returns when the owner has handled them: one message with an answer. Not for holders at
 * work; the owner may have freed sh by then. Does not wait (and is sockhalf_post) where the caller
 * may not, or where an application thread has attached itself to the owner: that one may never
 * wait again.
 */
void sockhalf_post_wait(struct sockhalf *sh, uint32_t ops);

/* A call of the application posts one op: SOCK_OP_CONNECT, _SEND, _CLOSE wait as the knobs say. */
void sockhalf_post_app(struct sockhalf *sh, uint32_t op);

static inline uint32_t
sockhalf_state(const struct sockhalf *sh)
{
	return atomic_load_explicit(&sh->state, memory_order_acquire);
}

/*
 * In one step: a connect that waits must not see a moment between CONNECTING and CONNECTED that is
 * neither.
 */
static inline void
sockhalf_set(struct sockhalf *sh, uint32_t set, uint32_t clear)
{
	uint32_t old = atomic_load_explicit(&sh->state, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&sh->state, &old, (old & ~clear) | set,
	    memory_order_acq_rel, memory_order_relaxed))
		;
}

/* Holder: records an error (the first one wins until it is reported). */
void sockhalf_set_error(struct sockhalf *sh, int err);

#endif
