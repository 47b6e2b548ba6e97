/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as mbufs, for DPDK devices (dev_dpdk.c). struct pkt is the private area of its mbuf, so
 * that going from one to the other is an addition. While darter holds a packet, struct pkt is what
 * counts; the mbuf's own fields are written when it goes to a device and read when it comes from
 * one. No rte_*.h here.
 */
#ifndef RUNTIME_PKT_DPDK_H
#define RUNTIME_PKT_DPDK_H

#include <stdint.h>

struct darter_stack;
struct netisr;
struct pkt;
struct rte_mbuf;
struct rte_mempool;

/* The stack's pool; NULL when its packets are not mbufs. */
struct rte_mempool *pkt_dpdk_pool(const struct darter_stack *s);

/* Packets that devices have not reserved for their queues and netisrs do not need themselves. At
 * set-up. */
uint32_t pkt_dpdk_unreserved(const struct darter_stack *s);

/* Sets `count` packets aside for a device's queues; unreserve gives them back. 0 or -ENOBUFS. At
 * set-up. */
int pkt_dpdk_reserve(struct darter_stack *s, uint32_t count);
void pkt_dpdk_unreserve(struct darter_stack *s, uint32_t count);

/*
 * Received mbufs become packets of n's stack. mbufs of another pool (a ring between two stacks,
 * say) are copied and freed; what finds no memory is dropped and counted. Returns the number of
 * packets. Holder of n.
 */
unsigned pkt_dpdk_from_mbufs(struct netisr *n, struct rte_mbuf *const *mbufs, struct pkt **pkts,
    unsigned count, uint8_t dev);

/*
 * Writes what the packets say into their mbufs: segments, lengths, offload requests. With TSO the
 * TCP checksum field gets the pseudo-header sum without the length, as devices want it. Returns
 * true when any packet asks for an offload. Holder.
 */
_Bool pkt_dpdk_to_mbufs(struct pkt *const *pkts, struct rte_mbuf **mbufs, unsigned count);

/* The packet of an mbuf that pkt_dpdk_to_mbufs gave. */
struct pkt *pkt_dpdk_of(struct rte_mbuf *m);

#endif
