/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accept queues of a listener: one bounded single-producer single-consumer array per netisr.
 * Producer: the netisr on which the handshake ended. Consumer: the thread with the listener's
 * RX_BUSY bit. The limit is the backlog over all of them, counted in one word that a producer
 * raises before it puts.
 */
#ifndef TRANSPORT_ACCEPTQ_H
#define TRANSPORT_ACCEPTQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct sockhalf;

#define ACCEPTQ_MAX	65535	/* largest backlog; larger is clamped (as SOMAXCONN does) */

struct acceptq_lane {
	_Atomic uint32_t head CACHE_ALIGNED;	/* producer */
	_Atomic uint32_t tail CACHE_ALIGNED;	/* consumer */
	struct sockhalf *_Atomic *slot;		/* lane_size entries */
};

struct acceptq {
	uint32_t n_lanes;
	uint32_t lane_size;			/* power of two >= backlog at creation */
	_Atomic uint32_t backlog;
	_Atomic uint32_t total;			/* queued on all lanes */
	uint32_t next_lane;			/* consumer: of lanes of one length */
	struct acceptq_lane lane[];
};

/* NULL when out of memory. */
struct acceptq *acceptq_new(unsigned n_netisrs, uint32_t backlog);
void acceptq_free(struct acceptq *q);

static inline bool
acceptq_is_full(struct acceptq *q)
{
	/* Linux: "more than", so a backlog of n queues n + 1 connections */
	return atomic_load_explicit(&q->total, memory_order_relaxed) >
	    atomic_load_explicit(&q->backlog, memory_order_relaxed);
}

/* Producer on netisr `lane`; false when full. */
bool acceptq_put(struct acceptq *q, unsigned lane, struct sockhalf *sh);

/*
 * Consumer: own lane first (`prefer`), then the longest of the others; lanes of one length in turn.
 * NULL when empty.
 */
struct sockhalf *acceptq_get(struct acceptq *q, unsigned prefer);

/*
 * When nobody accepts any more: each netisr, as producer of `lane`, takes its own children out.
 * NULL when the lane is empty.
 */
struct sockhalf *acceptq_get_own(struct acceptq *q, unsigned lane);

static inline uint32_t
acceptq_count(struct acceptq *q)
{
	return atomic_load_explicit(&q->total, memory_order_acquire);
}

#endif
