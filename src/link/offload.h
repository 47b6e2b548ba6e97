/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In software, what a packet asks of its device on transmit and the device can't: checksums,
 * cutting a large TCP segment (TSO), one contiguous buffer; and what no device is asked for: the
 * VLAN tag and padding. Pure but for packet memory; holder of n.
 */
#ifndef LINK_OFFLOAD_H
#define LINK_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct dev;
struct ip4_view;
struct netisr;
struct pkt;

typedef void offload_emit_fn(struct netisr *n, struct dev *d, struct pkt *p);

/*
 * Makes p (l2_len, l3_len, with TSO l4_len set) fit for d and passes each resulting frame to emit,
 * which owns it. What cannot be done for lack of memory or room is dropped and counted. Takes p.
 */
void offload_transmit(struct netisr *n, struct dev *d, struct pkt *p, offload_emit_fn *emit);

/*
 * Fills in the checksums that p's PKT_TX_*_CSUM flags ask for and clears those flags. l2_len and
 * l3_len must be set and the headers lie in the first segment.
 */
void offload_fill_csums(struct pkt *p);

/*
 * Computes the checksums of the IPv4 packet `v` at p->data + p->l2_len afresh, whatever its fields
 * hold: the header's, and TCP's or UDP's when has_l4 (not of fragments). l2_len and l3_len must be
 * set.
 */
void offload_refill_csums(struct pkt *p, const struct ip4_view *v, bool has_l4);

/*
 * One's-complement sum over bytes [off, off + len) of a packet of any number of segments, added to
 * `sum`: see base/csum.h for its form. off lies in the first segment.
 */
uint32_t offload_sum(const struct pkt *p, uint32_t off, uint32_t len, uint32_t sum);

#endif
