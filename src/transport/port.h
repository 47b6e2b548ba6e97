/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local ports: the choice of one for an outgoing connection (port.c says how), how many TCP
 * connections of each netisr use a port (port_count.c), and what the choice must hear of
 * connections that end (port_hot.c).
 */
#ifndef TRANSPORT_PORT_H
#define TRANSPORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "runtime/sockhalf.h"

struct darter_stack;
struct netisr;

/* What a netisr's own tables say of a tuple. */
enum port_use {
	PORT_FREE,
	PORT_TAKEN,		/* until port_freed() says otherwise */
	PORT_RESTS,		/* TIME_WAIT with timestamps, not yet 1 s old (RFC 6191) */
	PORT_REUSABLE,		/* … and 1 s old */
};

/*
 * What the owner of a port lets others share: options of its socket, as they were when the port was
 * taken. Two users of a port share it when they have one of them in common (Linux's rule; a
 * listener's is in demux.c).
 */
#define PORT_SHARE_ADDR	1u	/* SO_REUSEADDR */
#define PORT_SHARE_PORT	2u	/* SO_REUSEPORT */
#define PORT_SHARES	4u

static inline uint8_t
port_share_of(const struct sockhalf *sh)
{
	return (uint8_t)((atomic_load_explicit(&sh->opts.reuseaddr, memory_order_relaxed) ?
	    PORT_SHARE_ADDR : 0) | (atomic_load_explicit(&sh->opts.reuseport,
	    memory_order_relaxed) ? PORT_SHARE_PORT : 0));
}

/* A netisr's wish for a port. */
struct port_ask {
	struct tuple t;		/* lport 0; on return the port, 0: none was drawn here */
	uint8_t share;		/* PORT_SHARE_ of the socket */
	uint8_t hops;		/* netisrs that this connect has been sent on by */
	uint64_t tried;		/* bit i: the share of netisr i is spent for this destination */
	uint32_t range;		/* IP_LOCAL_PORT_RANGE of the socket: first | last << 16, 0: none */
	enum port_use (*use)(struct netisr *n, const struct tuple *t);
};

/*
 * Draws a port for a->t. 0 with *ret_owner == n: a->t.lport is drawn and claimed, and its tuple
 * leads home to n. 0 with another owner: the connect is to be sent there; lport is either drawn and
 * not claimed (portalgo hash) or 0 (the own share is spent, or empty: the owner draws from its).
 * -EADDRNOTAVAIL: every share is spent. Holder of n.
 */
int port_choose(struct netisr *n, struct port_ask *a, struct netisr **ret_owner);

/*
 * Claims a drawn port on its owner: counts it, and only then looks whether somebody has bound it
 * (port_count.c). False: bound or reserved, and not counted. Holder of n.
 */
bool port_claim(struct netisr *n, const struct tuple *t, uint8_t share);

/*
 * A TCP connection or TIME_WAIT record of n begins / ends to use the local end of t. Every raise
 * and claim is followed by one lower with the same share. Holder of n.
 */
void port_raise(struct netisr *n, const struct tuple *t, uint8_t share);
void port_lower(struct netisr *n, const struct tuple *t, uint8_t share);

/*
 * Do connections of any netisr use (addr, port) in a way that does not share with `share`? addr may
 * be any. Any thread; to be asked after the bind is published.
 */
bool port_has_conns(struct darter_stack *s, const struct ipaddr *addr, uint16_t port,
    uint8_t share);

/*
 * Hints for hot destinations: t's connection has ended, or went to TIME_WAIT (has_ts: with
 * timestamps, so that it may be taken over). A hint too many does no harm. Holder of n.
 */
void port_freed(struct netisr *n, const struct tuple *t);
void port_rests(struct netisr *n, const struct tuple *t, bool has_ts);

/*
 * Ports that nobody is given unasked: knobs net.inet.ip.portrange.reserved_first / _last (0: none).
 * Any thread.
 */
bool port_is_reserved(const struct darter_stack *s, uint16_t port);

/* Ephemeral range, knobs net.inet.ip.portrange.first / last (32768–60999 as on Linux). */
void port_range(const struct darter_stack *s, uint16_t *ret_first, uint16_t *ret_last);

/*
 * The same narrowed by a socket's IP_LOCAL_PORT_RANGE (first | last << 16, either 0: not narrowed
 * on that side); a bound outside of the ephemeral range does not count, as on Linux.
 */
void port_range_of(const struct darter_stack *s, uint32_t range, uint16_t *ret_first,
    uint16_t *ret_last);

/*
 * A stride that visits all of `count` ports: a number drawn from `random`, coprime with count.
 * Pure.
 */
uint32_t port_stride(uint32_t random, uint32_t count);

/*
 * Makes the tables of permuted ports anew, after the range or the stack's hash has changed. 0 or
 * -ENOMEM (the old ones stay). Without the control mutex.
 */
int port_rebuild(struct darter_stack *s);

/* Adds the knobs and makes the tables (demux's init does). 0 or a negative errno. */
int port_init(struct darter_stack *s);
void port_fini(struct darter_stack *s);

#endif
