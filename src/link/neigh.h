/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour table: next hop → link address, with the states of RFC 4861 7.3.2 used for ARP too
 * (INCOMPLETE, REACHABLE, STALE, DELAY, PROBE, FAILED). Each netisr has its own table, so a lookup
 * is a private probe; ARP packets are broadcast to all netisrs' tables by message or learned by
 * each from its own exchanges (see neigh.c for which and why). A bounded queue of packets waits for
 * an answer; past it the oldest is dropped (drop_neigh_queue_full).
 */
#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"

struct darter_stack;
struct dev;
struct netisr;
struct pkt;

enum neigh_state {
	NEIGH_NONE,
	NEIGH_INCOMPLETE,
	NEIGH_REACHABLE,
	NEIGH_STALE,
	NEIGH_DELAY,
	NEIGH_PROBE,
	NEIGH_FAILED,
	NEIGH_STATIC
};

/*
 * Link address of next_hop on d. True: mac filled in. False: p was queued (or dropped and counted)
 * and resolution is under way; the packet is sent by itself when the answer comes. Holder of n.
 */
bool neigh_resolve(struct netisr *n, struct dev *d, const struct ipaddr *next_hop, struct pkt *p,
    uint8_t ret_mac[6]);

/*
 * A confirmation from above: the peer has acknowledged new data (RFC 4861 7.3.1). Cheap. Holder of
 * n.
 */
void neigh_confirm(struct netisr *n, struct dev *d, const struct ipaddr *next_hop);

/* Announces an address (gratuitous ARP, RFC 5227 3) on d. Holder of n. */
void neigh_announce(struct netisr *n, struct dev *d, const struct ipaddr *addr);

/*
 * Told by inet: is this one of our addresses on d, and which address of d to ask with. Registered
 * at set-up.
 */
struct neigh_addr_ops {
	bool (*is_own)(struct netisr *n, struct dev *d, const struct ipaddr *a);
	bool (*source_for)(struct netisr *n, struct dev *d, const struct ipaddr *target,
	    struct ipaddr *ret_src);
	/*
	 * resolution failed: the queued packet is handed back to make a host unreachable of; takes
	 * p
	 */
	void (*unreachable)(struct netisr *n, struct dev *d, struct pkt *p);
};

void neigh_register(struct darter_stack *s, const struct neigh_addr_ops *ops);

/*
 * Sets an entry by hand: never asked about, never changed by what is heard, never evicted. 0, or
 * -ENOBUFS when the table is full. Holder of n, for n's table only.
 */
int neigh_set_static(struct netisr *n, struct dev *d, const struct ipaddr *addr,
    const uint8_t mac[6]);

/* For tools: visits the entries. Holder of n. */
void neigh_visit(struct netisr *n, void (*fn)(void *arg, const struct dev *d,
    const struct ipaddr *a, enum neigh_state state, const uint8_t mac[6]), void *arg);

#endif
