/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded single-producer single-consumer ring of frames, one direction of a pair of queues of
 * the memory cable (dev_pair.c). Frames are copied in and out, so that no buffer ever belongs to
 * two stacks.
 *
 * The holder of the sender's netisr puts, the holder of the receiver's takes.
 */
#ifndef LINK_PAIR_RING_H
#define LINK_PAIR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct netisr;
struct pkt;

#define PAIR_SLOT_BYTES		2048
#define PAIR_SLOT_HDR_BYTES	16
#define PAIR_FRAME_MAX_BYTES	(PAIR_SLOT_BYTES - PAIR_SLOT_HDR_BYTES)

struct pair_ring {
	_Atomic uint32_t tail CACHE_ALIGNED;	/* sender */
	uint32_t head_seen;
	_Atomic uint32_t head CACHE_ALIGNED;	/* receiver */
	uint32_t mask;
	uint8_t *slots;
};

/* count empty rings of `slots` frames each, a power of two; NULL: no memory. */
struct pair_ring *pair_rings_new(unsigned count, uint32_t slots);
void pair_rings_free(struct pair_ring *rings, unsigned count);

/*
 * Copies p, of at most PAIR_FRAME_MAX_BYTES, and publishes it, with the hash and the flags of a
 * received packet that the device adds; false when the ring is full.
 */
bool pair_ring_put(struct pair_ring *r, const struct pkt *p, uint32_t hash, uint32_t flags);

/*
 * Up to max frames as packets of n's pool, received from device number `dev`. A frame that finds no
 * packet is lost and counted (drop_pkt_nomem).
 */
unsigned pair_ring_take(struct pair_ring *r, struct netisr *n, uint8_t dev, struct pkt **pkts,
    unsigned max);

/* Does a frame wait? The receiver. */
static inline bool
pair_ring_has_frames(struct pair_ring *r)
{
	return atomic_load_explicit(&r->tail, memory_order_acquire) !=
	    atomic_load_explicit(&r->head, memory_order_relaxed);
}

#endif
