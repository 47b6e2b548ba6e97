/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet out: next hop to link address, header, software offloads, and an array of frames per
 * (netisr, device) that goes to the device once a round (or earlier, when it is a burst full).
 *
 * A netisr without a transmit queue of its own (id >= n_queues) hands its frames to netisr id %
 * n_queues. What a device refuses stays in the array and is offered again each round; new frames
 * are dropped when the array is full (drop_tx_ring_full), all of it when the device has taken
 * nothing for LINK_TX_STALL_US, so a dead device keeps neither packets nor a core.
 *
 * Link addresses of groups are mapped (RFC 1112 6.4); the network layer names 255.255.255.255 as
 * the next hop of every broadcast.
 */
#include <string.h>

#include "base/bytes.h"
#include "link/capture.h"
#include "link/link_priv.h"
#include "link/offload.h"
#include "wire/ether.h"

static void
drop(struct netisr *n, struct pkt *p, enum counter reason)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
}

static void
drop_queue(struct netisr *n, struct link_txq *q, enum counter reason)
{
	unsigned i;

	for (i = 0; i < q->count; i++)
		drop(n, q->pkts[i], reason);
	q->count = 0;
	q->stuck_since = TIME_NEVER;
}

static uint64_t
bytes_of(struct pkt *const *pkts, unsigned count)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		bytes += pkts[i]->total_len;
	return bytes;
}

/* Offers the array to the device; keeps what it refuses, oldest first. */
static void
flush_queue(struct netisr *n, struct dev *d, struct link_txq *q)
{
	unsigned offered = q->count, taken;
	uint64_t bytes = bytes_of(q->pkts, offered);

	taken = d->ops->tx(d, n, n->id, q->pkts, offered);
	if (taken < offered) {
		bytes -= bytes_of(q->pkts + taken, offered - taken);
		memmove(q->pkts, q->pkts + taken, (offered - taken) * sizeof(q->pkts[0]));
	}
	q->count = offered - taken;
	if (!d->is_loop) {
		netisr_count(n, CTR_tx_pkts, taken);
		netisr_count(n, CTR_tx_bytes, bytes);
	}
	if (taken != 0 || q->count == 0)
		q->stuck_since = TIME_NEVER;
	else if (time_is_never(q->stuck_since))
		q->stuck_since = n->now;
	else if (time_since_us(n->now, q->stuck_since) >= LINK_TX_STALL_US)
		drop_queue(n, q, CTR_drop_tx_dev);
}

void
ether_flush(struct netisr *n)
{
	uint32_t pending = n->link->tx_pending;

	while (pending != 0) {
		unsigned i = (unsigned)__builtin_ctz(pending);
		struct link_txq *q = &n->link->txq[i];

		pending &= pending - 1;
		flush_queue(n, n->stack->link->dev[i], q);
		if (q->count == 0)
			n->link->tx_pending &= ~(1u << i);
	}
}

void
ether_enqueue(struct netisr *n, struct dev *d, struct pkt *p)
{
	struct link_txq *q = &n->link->txq[d->index];

	if (n->id >= d->n_queues) {
		p->dev = d->index;
		if (!steer_push(n, n->id % d->n_queues, p, STEER_TX))
			drop(n, p, CTR_drop_steer_full);
		return;
	}
	if (q->count == LINK_TXQ_PKTS) {
		drop(n, p, CTR_drop_tx_ring_full);
		return;
	}
	q->pkts[q->count++] = p;
	n->link->tx_pending |= 1u << d->index;
	/* a device that is stuck is asked once a round, not once a frame */
	if (q->count >= LINK_TX_FLUSH_PKTS && time_is_never(q->stuck_since))
		flush_queue(n, d, q);
}

static void
transmit(struct netisr *n, struct dev *d, struct pkt *p)
{
	struct capture *cap = published_load(&d->capture);

	p->next = NULL;
	if (unlikely(cap != NULL))
		capture_frame(cap, n, p);
	offload_transmit(n, d, p, ether_enqueue);
}

void
ether_output_frame(struct netisr *n, struct dev *d, struct pkt *p)
{
	if (p->total_len < ETHER_HDR_BYTES || p->len < ETHER_HDR_BYTES) {
		drop(n, p, CTR_drop_ether_short);
		return;
	}
	p->l2_len = ETHER_HDR_BYTES;
	transmit(n, d, p);
}

void
ether_encap(struct netisr *n, struct dev *d, struct pkt *p, const uint8_t dst_mac[6],
    uint16_t ethertype)
{
	struct mac dst, src;
	uint8_t *hdr = pkt_push(p, ETHER_HDR_BYTES);

	if (hdr == NULL) {
		drop(n, p, CTR_drop_pkt_too_long);
		return;
	}
	memcpy(dst.b, dst_mac, sizeof(dst.b));
	memcpy(src.b, d->mac, sizeof(src.b));
	ether_emit(hdr, &dst, &src, ethertype);
	p->l2_len = ETHER_HDR_BYTES;
	transmit(n, d, p);
}

/* Link address of a group; false for a unicast address. */
static bool
group_mac(const struct ipaddr *a, uint8_t mac[6])
{
	if (!ipaddr_is_v4(a) || a->b[12] < 224)
		return false;
	if (a->v4.raw == UINT32_MAX) {
		memset(mac, 0xff, ETHER_ADDR_BYTES);
		return true;
	}
	/* the low 23 bits of the group (RFC 1112 6.4) */
	memcpy(mac, ((const uint8_t[]){ 0x01, 0x00, 0x5e, a->b[13] & 0x7f, a->b[14], a->b[15] }),
	    ETHER_ADDR_BYTES);
	return true;
}

void
ether_output(struct netisr *n, struct dev *d, struct pkt *p, const struct ipaddr *next_hop)
{
	uint8_t mac[ETHER_ADDR_BYTES];

	if (p->total_len > d->mtu && !(p->flags & PKT_TX_TSO)) {
		drop(n, p, CTR_drop_tx_mtu);
		return;
	}
	if (!d->has_ether) {
		p->l2_len = 0;
		transmit(n, d, p);
		return;
	}
	if (!group_mac(next_hop, mac) && !neigh_resolve(n, d, next_hop, p, mac))
		return;
	ether_encap(n, d, p, mac, ipaddr_is_v4(next_hop) ? ETHER_TYPE_IP4 : ETHER_TYPE_IP6);
}
