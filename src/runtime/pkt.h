/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet: one cache line of description in front of (heap) or inside the private area of (DPDK
 * mbuf) its buffer.
 *
 * Protocols see only this struct; pkt_heap.c and pkt_dpdk.c provide the memory. A packet belongs to
 * the stack whose pool it came from and is allocated and freed only while holding a netisr of that
 * stack (the pools' caches are per netisr). `data`/`len` describe this segment; a packet of several
 * segments is linked by `seg`, and `total_len` of the first one counts all of them. `next` is free
 * for whoever queues the packet.
 */
#ifndef RUNTIME_PKT_H
#define RUNTIME_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct netisr;
struct darter_stack;

#define PKT_HEADROOM_BYTES	128	/* in front of data after pkt_alloc */
#define PKT_ROOM_BYTES		2048	/* from data after pkt_alloc to the buffer's end */

enum pkt_flag {
	/* set by devices on receive */
	PKT_RX_IP_CSUM_GOOD = 1 << 0,
	PKT_RX_IP_CSUM_BAD = 1 << 1,
	PKT_RX_L4_CSUM_GOOD = 1 << 2,
	PKT_RX_L4_CSUM_BAD = 1 << 3,
	PKT_RX_RSS_HASH = 1 << 4,	/* rss_hash is valid */
	PKT_RX_VLAN = 1 << 5,		/* vlan_tci was stripped off the frame */
	PKT_RX_LOOP = 1 << 6,		/* came from this stack itself: checksums need no check */
	/* set by the link layer: the frame went to a group address */
	PKT_RX_GROUP = 1 << 7,
	/* asked of devices on transmit; the link layer does in software what the device can't */
	PKT_TX_IP_CSUM = 1 << 8,	/* IPv4 header checksum to be filled in (field is 0) */
	/* TCP checksum to be filled in (field holds the folded pseudo-header sum) */
	PKT_TX_TCP_CSUM = 1 << 9,
	PKT_TX_UDP_CSUM = 1 << 10,
	PKT_TX_TSO = 1 << 11,		/* cut into tso_mss pieces; l2/l3/l4_len set */
	PKT_TX_IPV6 = 1 << 12,
};

struct pkt {
	struct pkt *next;	/* queue link, owner's use */
	struct pkt *seg;	/* next segment of the same packet */
	uint8_t *data;
	uint8_t *buf;		/* first usable byte of the buffer */
	uint32_t total_len;	/* bytes of all segments (first segment only) */
	uint16_t len;		/* bytes of this segment */
	uint16_t buf_bytes;	/* from buf to the end of the buffer */
	uint32_t flags;		/* enum pkt_flag */
	uint32_t rss_hash;
	uint16_t l2_len;
	uint16_t l3_len;
	uint16_t l4_len;
	uint16_t tso_mss;
	uint16_t vlan_tci;
	uint8_t dev;		/* receiving device's index */
	uint8_t owner;		/* netisr that the packet is steered to */
} CACHE_ALIGNED;

STATIC_ASSERT(sizeof(struct pkt) == 64, "a packet's description is one cache line");

/* Memory back end, one a stack. All calls hold `n`. */
struct pkt_pool_ops {
	const char *name;
	struct pkt *(*alloc)(struct netisr *n);			/* NULL when exhausted */
	void (*free)(struct netisr *n, struct pkt *p);		/* one segment */
	void (*fini)(struct darter_stack *s);
	uint32_t (*available)(const struct darter_stack *s);	/* packets left, roughly */
};

/*
 * A packet with PKT_HEADROOM_BYTES in front, len 0 and all metadata zero; NULL when the pool is
 * empty (the caller drops with drop_pkt_nomem). Holder of n only.
 */
struct pkt *pkt_alloc(struct netisr *n);

/* Frees all segments. Holder of n only. */
void pkt_free(struct netisr *n, struct pkt *p);

static inline uint32_t
pkt_headroom_bytes(const struct pkt *p)
{
	return (uint32_t)(p->data - p->buf);
}

static inline uint32_t
pkt_tailroom_bytes(const struct pkt *p)
{
	return (uint32_t)p->buf_bytes - pkt_headroom_bytes(p) - p->len;
}

/* Makes room for a header in front; NULL if there is not enough. First segment only. */
static inline uint8_t *
pkt_push(struct pkt *p, uint16_t n_bytes)
{
	if (pkt_headroom_bytes(p) < n_bytes)
		return NULL;
	p->data -= n_bytes;
	p->len = (uint16_t)(p->len + n_bytes);
	p->total_len += n_bytes;
	return p->data;
}

/* Takes a header off the front; the caller has checked len. */
static inline void
pkt_pull(struct pkt *p, uint16_t n_bytes)
{
	p->data += n_bytes;
	p->len = (uint16_t)(p->len - n_bytes);
	p->total_len -= n_bytes;
}

/* Extends the (single-segment) packet at its end; NULL if there is not enough room. */
static inline uint8_t *
pkt_put(struct pkt *p, uint16_t n_bytes)
{
	uint8_t *end = p->data + p->len;

	if (pkt_tailroom_bytes(p) < n_bytes)
		return NULL;
	p->len = (uint16_t)(p->len + n_bytes);
	p->total_len += n_bytes;
	return end;
}

/* Cuts trailing bytes off (Ethernet padding); all segments counted. */
void pkt_trim(struct netisr *n, struct pkt *p, uint32_t new_total_bytes);

/* Copies out bytes [off, off+len) across segments; returns bytes copied. */
uint32_t pkt_copy_out(const struct pkt *p, uint32_t off, void *dst, uint32_t len);

/*
 * A single-segment copy with headroom (metadata except rx flags included); NULL when out of packets
 * or too long.
 */
struct pkt *pkt_clone(struct netisr *n, const struct pkt *p);

/*
 * Heap back end: `count` packets for stack s. Returns 0 or -ENOMEM. No packet is allocated later.
 */
int pkt_heap_init(struct darter_stack *s, uint32_t count);

/*
 * DPDK back end (pkt_dpdk.c): the same memory as mbufs; EAL must be up. Returns 0, or a negative
 * errno and one line in err.
 */
int pkt_dpdk_init(struct darter_stack *s, uint32_t count, char *err, size_t err_size);

#endif
