/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is shared between netisrs to find a socket: explicit binds, listeners and datagram sockets,
 * published in a hash table with lock-free readers (netisr holders) and writers under the control
 * mutex. Connected TCP pcbs are not here: they live in their owner's private table; what bind must
 * know of them are the counts of port.h.
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
	uint16_t member;		/* place in the group, kept for life (group.h) */
	struct bind_entry *port_next;	/* all entries of (proto, port); control mutex */
	struct retired retired;
};

/*
 * Binds sh to `local` (port 0: draws a free one from the ephemeral range) and inserts the entry,
 * applying Linux's conflict rules for SO_REUSEADDR/SO_REUSEPORT (wildcard against specific
 * included), and for TCP to connections and TIME_WAIT that use the port. Control mutex held. 0,
 * -EADDRINUSE, -ENOMEM.
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
 * Best match for a packet: connected, then specific address, then wildcard; among SO_REUSEPORT
 * members those whose SO_INCOMING_CPU is this netisr's CPU, then by hash (group.h). Holder of any
 * netisr, result valid until the end of the round. NULL: none.
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

#endif
