/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where frames wait inside a fault device: one queue for each queue and direction of the device.
 *
 * A heap ordered by (due time, arrival), bounded, and beside it the reordered frame, at most one at
 * a time, which waits until some later frames have passed or its own time has come. Belongs to the
 * holder of the netisr that feeds the device's queue; time is what the caller says.
 */
#ifndef LINK_FAULT_QUEUE_H
#define LINK_FAULT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "base/time.h"
#include "link/dev_fault.h"

struct netisr;
struct pkt;

struct held {
	struct pkt *p;
	struct time due;
	uint64_t seq;		/* arrival: breaks ties */
};

struct fault_queue {
	struct rng rng;
	uint64_t nth;
	struct held *heap;	/* smallest (due, seq) first */
	uint32_t n_heap;
	struct pkt *late;	/* the reordered frame */
	struct time late_due;
	unsigned late_after;	/* frames that it still lets pass */
	struct time last_due;	/* fifo */
	uint64_t wire_free_ns;	/* rate: when the last frame has left */
	uint64_t arrivals;	/* into the heap */
	struct fault_stats stats;
} CACHE_ALIGNED;

/* All zero before. 0 or -ENOMEM. */
int fault_queue_init(struct fault_queue *fq, uint64_t seed);

/* Frames that still wait are not freed: they go back with their pool. */
void fault_queue_fini(struct fault_queue *fq);

/* Drops p, counted as the operator's wish. Takes p. */
void fault_drop(struct netisr *n, struct pkt *p);

/* Takes p, which comes out at `due`; a full heap drops it. */
void fault_queue_hold(struct netisr *n, struct fault_queue *fq, struct pkt *p, struct time due);

/* A frame that comes out at `due` has passed: the reordered one's turn may have come. */
void fault_queue_passed(struct netisr *n, struct fault_queue *fq, struct time due);

/* The first frame, if it is due, the reordered one among them; false: none is. */
bool fault_queue_take(struct netisr *n, struct fault_queue *fq, struct held *ret);

/* One that was just taken and could not be used: where it was. */
void fault_queue_put_back(struct fault_queue *fq, const struct held *h);

/* When the first frame is due, TIME_NEVER: none waits. */
struct time fault_queue_deadline(const struct fault_queue *fq);

#endif
