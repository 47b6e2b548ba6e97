/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet in and out. In: burst by burst from the devices, steered to the owner, demultiplexed by
 * EtherType to handlers that upper layers register. Out: neighbour resolution, header, VLAN tag,
 * missing offloads in software, a transmit array per (netisr, device) that is handed to the device
 * once a round.
 */
#ifndef LINK_ETHER_H
#define LINK_ETHER_H

#include <stdint.h>

#include "base/ipaddr.h"

struct darter_stack;
struct dev;
struct netisr;
struct pkt;

/*
 * A packet whose data starts at the network header, padding not yet cut. The handler owns it.
 * Holder of n, the owner.
 */
typedef void ether_input_fn(struct netisr *n, struct dev *d, struct pkt *p);

/* Registers the handler of an EtherType (at most 8). At set-up. */
void ether_register(struct darter_stack *s, uint16_t ethertype, ether_input_fn *fn);

/*
 * Sends an IP packet (data at the IP header, PKT_TX_* flags set) to next_hop on d: unicast is
 * resolved through the neighbour table (the packet waits there if need be), multicast and broadcast
 * are mapped. Takes p in every case. On the loopback device the packet comes back to the owner of
 * its tuple.
 */
void ether_output(struct netisr *n, struct dev *d, struct pkt *p, const struct ipaddr *next_hop);

/* Sends a frame as it is: data at the Ethernet header of an untagged frame. Takes p. */
void ether_output_frame(struct netisr *n, struct dev *d, struct pkt *p);

#endif
