/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of the memory cable; see pair_ring.h. The tail is stored after the frame was copied in,
 * the head after it was copied out; the sender looks at the head only when its copy of it says that
 * the ring is full.
 */
#include "link/pair_ring.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/netisr.h"
#include "runtime/pkt.h"

struct slot {
	uint32_t len;
	uint32_t rx_flags;	/* PKT_RX_* that the receiver sets */
	uint32_t rss_hash;
	uint32_t pad;
	uint8_t frame[];
};

STATIC_ASSERT(sizeof(struct slot) == PAIR_SLOT_HDR_BYTES, "what is left is the frame's");

void
pair_rings_free(struct pair_ring *rings, unsigned count)
{
	unsigned i;

	for (i = 0; rings != NULL && i < count; i++)
		free(rings[i].slots);
	free(rings);
}

struct pair_ring *
pair_rings_new(unsigned count, uint32_t slots)
{
	struct pair_ring *rings = aligned_alloc(CACHELINE_BYTES, count * sizeof(*rings));
	unsigned i;

	if (rings == NULL)
		return NULL;
	memset(rings, 0, count * sizeof(*rings));
	for (i = 0; i < count; i++) {
		rings[i].mask = slots - 1;
		/* not touched yet: pages come as the ring fills */
		rings[i].slots = calloc(slots, PAIR_SLOT_BYTES);
		if (rings[i].slots == NULL) {
			pair_rings_free(rings, count);
			return NULL;
		}
	}
	return rings;
}

static struct slot *
slot_at(const struct pair_ring *r, uint32_t index)
{
	return (struct slot *)(void *)(r->slots + (size_t)(index & r->mask) * PAIR_SLOT_BYTES);
}

static uint32_t
rx_flags_of(const struct pkt *p)
{
	uint32_t flags = 0;

	if (p->flags & PKT_TX_IP_CSUM)
		flags |= PKT_RX_IP_CSUM_GOOD;
	/*
	 * who leaves the transport's checksum to the cable has left, or filled in, the header's too
	 */
	if (p->flags & (PKT_TX_TCP_CSUM | PKT_TX_UDP_CSUM))
		flags |= PKT_RX_L4_CSUM_GOOD;
	return flags;
}

bool
pair_ring_put(struct pair_ring *r, const struct pkt *p, uint32_t hash, uint32_t flags)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct slot *s;

	if (tail - r->head_seen > r->mask) {
		r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail - r->head_seen > r->mask)
			return false;
	}
	s = slot_at(r, tail);
	s->len = p->total_len;
	s->rx_flags = rx_flags_of(p) | flags;
	s->rss_hash = hash;
	if (p->seg == NULL)
		memcpy(s->frame, p->data, p->len);
	else
		pkt_copy_out(p, 0, s->frame, p->total_len);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

/* A packet of the receiving pool with the slot's frame; NULL when there is none (counted). */
static struct pkt *
take_frame(struct netisr *n, uint8_t dev, const struct slot *s)
{
	struct pkt *p = pkt_alloc(n);

	if (p == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return NULL;
	}
	memcpy(pkt_put(p, (uint16_t)s->len), s->frame, s->len);
	p->flags = s->rx_flags;
	p->rss_hash = s->rss_hash;
	p->dev = dev;
	return p;
}

unsigned
pair_ring_take(struct pair_ring *r, struct netisr *n, uint8_t dev, struct pkt **pkts, unsigned max)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	unsigned got = 0;

	for (; head != tail && got < max; head++) {
		struct pkt *p = take_frame(n, dev, slot_at(r, head));

		if (p != NULL)
			pkts[got++] = p;
	}
	atomic_store_explicit(&r->head, head, memory_order_release);
	return got;
}
