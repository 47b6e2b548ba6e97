/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte ring of chunks: one producer, one consumer, any two threads. It has memory only while it
 * holds bytes (and until the next idle sweep). Positions are 32-bit and wrap; capacity is below
 * 2^31.
 *
 *   tail (consumer moves)            head (producer)        bytes written ahead (out of order)
 *     |====== readable ===============|..........####....##..............|  tail + cap
 *
 * The producer allocates, links and reclaims chunks; the consumer only moves `tail` and its own
 * chunk cursor. A chunk is reclaimed only when the tail is *past* its end, since a consumer that
 * stands exactly at the end still holds the cursor on it. The last chunk is never reclaimed but by
 * ring_release, which needs both sides still.
 *
 * A consumer that keeps bytes until they are acknowledged (TCP's sender) reads ahead of the tail
 * with ring_copy_out.
 */
#ifndef RUNTIME_RING_H
#define RUNTIME_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runtime/chunk.h"

struct ring {
	/* producer's line */
	_Atomic uint32_t head;
	_Atomic uint32_t cap_bytes;
	struct chunk *_Atomic first;
	struct chunk *last;
	struct chunk *write;	/* chunk that head is in, or at the end of */
	/* consumer's part */
	_Atomic uint32_t tail;
	/* end position of `ahead`: it is still there while that is not below tail */
	uint32_t ahead_end;
	struct chunk *cur;		/* chunk that holds tail, NULL before the first read */
	struct chunk *ahead;		/* chunk last read by ring_copy_out */
};

void ring_init(struct ring *r, uint32_t cap_bytes);

/* Readable bytes. Exact for the consumer; a lower bound for the producer's own use. */
static inline uint32_t
ring_used_bytes(const struct ring *r)
{
	/* tail first: a reader on another thread then never sees more than cap */
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return atomic_load_explicit(&r->head, memory_order_acquire) - tail;
}

/* Bytes that the producer may still write ahead of head. 0 when a shrunken capacity is exceeded. */
static inline uint32_t
ring_space_bytes(const struct ring *r)
{
	uint32_t used = ring_used_bytes(r);
	uint32_t cap = atomic_load_explicit(&r->cap_bytes, memory_order_relaxed);

	return used < cap ? cap - used : 0;
}

static inline bool
ring_is_empty(const struct ring *r)
{
	return ring_used_bytes(r) == 0;
}

/* ---- producer ---- */

/*
 * Appends up to len bytes and publishes them; returns how many (less when full or out of chunks).
 */
uint32_t ring_write(struct ring *r, struct chunk_cache *c, const void *src, uint32_t len);

/*
 * Writes at head + off without publishing. All or nothing: false when chunks ran out. off + len <=
 * space.
 */
bool ring_write_at(struct ring *r, struct chunk_cache *c, uint32_t off, const void *src,
    uint32_t len);

/* Publishes n_bytes that ring_write_at has put at head. */
void ring_advance(struct ring *r, uint32_t n_bytes);

/* ---- consumer ---- */

/* Copies out up to len bytes from the tail and (unless peek) consumes them; returns how many. */
uint32_t ring_read(struct ring *r, void *dst, uint32_t len, bool peek);

/* Consumes n_bytes (<= used) without copying. */
void ring_discard(struct ring *r, uint32_t n_bytes);

/*
 * Copies [tail + off, +len) without consuming; off + len <= used. Sequential calls are O(1) a
 * chunk.
 */
void ring_copy_out(struct ring *r, uint32_t off, void *dst, uint32_t len);

/* ---- both sides still (the caller holds both BUSY bits, or is the only user) ---- */

/*
 * Gives all memory of an empty ring back; returns false when it still holds bytes. Bytes ahead of
 * head are lost.
 */
bool ring_release(struct ring *r, struct chunk_cache *c);

/* Frees everything, whatever it holds. */
void ring_fini(struct ring *r, struct chunk_cache *c);

#endif
