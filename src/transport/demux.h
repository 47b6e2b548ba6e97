/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is shared between netisrs to find a socket: explicit binds, listeners and datagram sockets,
 * published in a hash table with lock-free readers (netisr holders) and writers under the control
 * mutex; and the local port draw. Connected TCP pcbs are not here: they live in their owner's
 * private table.
 */
#ifndef TRANSPORT_DEMUX_H
#define TRANSPORT_DEMUX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"
#include "runtime/publish.h"

struct darter_stack;
struct netisr;
struct sockhalf;

/*
 * One entry a bound socket and protocol. local.addr may be any; foreign.port 0: not connected. `sh`
 * is NULL after removal, so a holder that still sees the entry within its round delivers nowhere.
 */
struct bind_entry {
	struct bind_entry *_Atomic next;
	struct sockhalf *_Atomic sh;
	struct endpoint local;
	struct endpoint foreign;
	uint8_t proto;
	_Atomic bool is_listener;
	bool is_reuseport;		/* SO_REUSEPORT at bind: member of a group */
	bool is_connected;		/* hangs in the 4-tuple table, else in the port table */
	struct bind_entry *port_next;	/* all entries of (proto, port); control mutex */
	struct retired retired;
};

/*
 * Binds sh to `local` (port 0: draws a free one from the ephemeral range) and inserts the entry,
 * applying Linux's conflict rules for SO_REUSEADDR/SO_REUSEPORT (wildcard against specific
 * included). Control mutex held. 0, -EADDRINUSE, -ENOMEM.
 */
int demux_bind(struct darter_stack *s, struct sockhalf *sh, uint8_t proto,
    const struct endpoint *local, struct endpoint *ret_local, struct bind_entry **ret_entry);

/*
 * Marks as listener (-EADDRINUSE: another listener has the port, as Linux finds out in listen) /
 * sets the foreign end, port 0 for none (a fresh entry replaces the old one; -ENOMEM leaves it as
 * it was). Control mutex held.
 */
int demux_set_listener(struct darter_stack *s, struct bind_entry *e);
int demux_set_foreign(struct darter_stack *s, struct bind_entry **e, const struct endpoint *local,
    const struct endpoint *foreign);

/*
 * Removes and retires. After return no *new* lookup finds it; those within a round see sh == NULL
 * or a socket that is not freed before the grace period ends. Control mutex held.
 */
void demux_unbind(struct darter_stack *s, struct bind_entry *e);

/*
 * Best match for a packet: connected, then specific address, then wildcard; SO_REUSEPORT members by
 * hash. Holder of any netisr, result valid until the end of the round. NULL: none.
 */
struct sockhalf *demux_lookup_listener(struct darter_stack *s, const struct tuple *t);
struct sockhalf *demux_lookup_dgram(struct darter_stack *s, const struct tuple *t);

/* The datagram socket connected to exactly t, for ICMP errors. Same rule. */
struct sockhalf *demux_lookup_connected(struct darter_stack *s, const struct tuple *t);

/* Broadcast/multicast datagrams go to every matching socket: calls fn for each. */
void demux_visit_dgram(struct darter_stack *s, const struct tuple *t,
    void (*fn)(void *arg, struct sockhalf *sh), void *arg);

/*
 * Is (proto, addr, port) taken by an explicit bind that forbids use as an ephemeral port? Holder or
 * control mutex.
 */
bool demux_port_is_bound(struct darter_stack *s, uint8_t proto, const struct ipaddr *addr,
    uint16_t port);

/* ---- port.c: local port of an outgoing connection ---- */

/*
 * Draws lport for {local, foreign, fport} so that the answer hashes to n (law 2): keyed start per
 * destination and a random odd stride (RFC 6056 3.3.4 flavour), skipping bound ports, tuples that
 * `in_use` reports, and lport == fport with local == foreign. t->lport is set. 0 or -EADDRNOTAVAIL
 * when the range is spent. Holder of n.
 */
int port_choose(struct netisr *n, struct tuple *t, uint8_t proto,
    bool (*in_use)(struct netisr *n, const struct tuple *t));

/*
 * Ports that nobody is given unasked: knobs net.inet.ip.portrange.reserved_first / _last (0: none).
 * Any thread.
 */
bool port_is_reserved(const struct darter_stack *s, uint16_t port);

/* Adds the knobs of this file (demux's init does). 0 or a negative errno. */
int port_init(struct darter_stack *s);
void port_fini(struct darter_stack *s);

/*
 * A stride that visits all of `count` ports: a number drawn from `random`, coprime with count.
 * Pure.
 */
uint32_t port_stride(uint32_t random, uint32_t count);

/* Ephemeral range, knobs net.inet.ip.portrange.first / last (32768–60999 as on Linux). */
void port_range(const struct darter_stack *s, uint16_t *ret_first, uint16_t *ret_last);

#endif
