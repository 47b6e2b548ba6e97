/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: one bounded ring for each ordered pair of netisrs. A packet that came in at the wrong
 * netisr goes to its owner through it (law 1), and so do frames for a device that has no transmit
 * queue for their netisr.
 *
 * The holder of `from` is the only producer, the holder of `to` the only consumer. A message
 * (MSG_STEER) announces packets only when none is on its way already, so a stream of bursts between
 * two busy netisrs costs one message a drain.
 */
#ifndef LINK_STEER_H
#define LINK_STEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runtime/msgport.h"

struct darter_stack;
struct dev;
struct netisr;
struct pkt;

#define STEER_RING_PKTS		512
#define STEER_BUDGET_PKTS	128	/* taken from the rings in one round or by one message */

enum steer_kind {
	STEER_RX,	/* data at the network header: goes to the protocol */
	STEER_TX,	/* a frame to be sent by the netisr that feeds the device */
	STEER_ARP,	/* a copy of an ARP packet, for the neighbour table only */
};

struct steer_ring {
	_Atomic uint32_t tail CACHE_ALIGNED;	/* next slot to fill; wraps freely */
	uint32_t head_seen;			/* producer's copy of head */
	_Atomic uint32_t head CACHE_ALIGNED;	/* next slot to take */
	_Atomic uint32_t announced CACHE_ALIGNED;	/* a message is on its way */
	struct msg_node node;
	uint8_t from;
	uintptr_t slot[STEER_RING_PKTS] CACHE_ALIGNED;	/* packet pointer | enum steer_kind */
};

/* Rings of all pairs; none when there is one netisr. 0 or -ENOMEM. */
int steer_init(struct darter_stack *s);
void steer_fini(struct darter_stack *s);

/*
 * Queues p for netisr `to` (not the caller's own). False when the ring is full: the caller keeps p.
 * The consumer is told by the next steer_kick(). Holder of n.
 */
bool steer_push(struct netisr *n, unsigned to, struct pkt *p, enum steer_kind kind);

/* Announces what was pushed since the last kick. Holder of n. */
void steer_kick(struct netisr *n);

/*
 * Takes what waits in the announced rings, within the budget. Returns packets taken. Holder of n.
 */
unsigned steer_drain(struct netisr *n);

/* Handler of MSG_STEER. */
void steer_on_message(struct netisr *n, struct msg_node *m);

/* Why a packet's owner was what it is; the counter of a packet that has to move. */
enum steer_cause {
	STEER_CAUSE_FLOW,	/* transport 4-tuple */
	STEER_CAUSE_ADDRS,	/* the two addresses: fragments, ICMP echo, other protocols */
	STEER_CAUSE_QUOTE,	/* ICMP error: the flow that it quotes */
	STEER_CAUSE_NONE,	/* nothing to go by: stays where it is */
};

/*
 * The netisr that owns a received packet (data at the network header). A pure function of the
 * bytes, the stack's key and, when the device hashes by the stack's key, its hash. n_netisrs == 1
 * needs no call.
 */
unsigned steer_owner(const struct darter_stack *s, const struct dev *d, const struct pkt *p,
    uint16_t ethertype, unsigned here, enum steer_cause *ret_cause);

/*
 * The hash that a device with the stack's key gives to this IPv4 packet: over the 4-tuple of
 * unfragmented TCP and UDP; false for the rest, which devices hash as they like.
 */
bool steer_hash(const struct darter_stack *s, const uint8_t *ip, size_t len, uint32_t *ret_hash);

#endif
