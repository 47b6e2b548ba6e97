/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accept queues: one single-producer single-consumer array a netisr, so that a handshake that ends
 * there puts its child in without a lock, and the acceptor takes the children of its own netisr
 * first and, when it has none, the oldest of the longest of the other lanes.
 *
 * `total` is raised before a child is put and lowered after one is taken, so it is never below what
 * the lanes hold: the limit holds over all lanes. A consumer that sees total above zero may for a
 * moment find every lane empty.
 *
 * A lane can hold the whole backlog the queue was made with. If listen(2) raises the backlog later,
 * a lane's size bounds it.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/acceptq.h"

static uint32_t
round_up_pow2(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

struct acceptq *
acceptq_new(unsigned n_netisrs, uint32_t backlog)
{
	size_t bytes = sizeof(struct acceptq) + n_netisrs * sizeof(struct acceptq_lane);
	struct acceptq *q;
	unsigned i;

	bytes = (bytes + CACHELINE_BYTES - 1) & ~(size_t)(CACHELINE_BYTES - 1);
	q = aligned_alloc(CACHELINE_BYTES, bytes);
	if (q == NULL)
		return NULL;
	memset(q, 0, bytes);
	backlog = min_u32(backlog, ACCEPTQ_MAX);
	q->n_lanes = n_netisrs;
	q->lane_size = round_up_pow2(backlog + 1);	/* n + 1 are queued, as on Linux */
	atomic_init(&q->backlog, backlog);
	for (i = 0; i < n_netisrs; i++) {
		q->lane[i].slot = calloc(q->lane_size, sizeof(*q->lane[i].slot));
		if (q->lane[i].slot == NULL) {
			acceptq_free(q);
			return NULL;
		}
	}
	return q;
}

void
acceptq_free(struct acceptq *q)
{
	unsigned i;

	if (q == NULL)
		return;
	for (i = 0; i < q->n_lanes; i++)
		free(q->lane[i].slot);
	free(q);
}

bool
acceptq_put(struct acceptq *q, unsigned lane, struct sockhalf *sh)
{
	struct acceptq_lane *l = &q->lane[lane];
	uint32_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&l->tail, memory_order_acquire);
	uint32_t queued = atomic_fetch_add_explicit(&q->total, 1, memory_order_acq_rel);

	if (queued > atomic_load_explicit(&q->backlog, memory_order_relaxed) ||
	    head - tail >= q->lane_size) {
		atomic_fetch_sub_explicit(&q->total, 1, memory_order_acq_rel);
		return false;
	}
	atomic_store_explicit(&l->slot[head & (q->lane_size - 1)], sh, memory_order_relaxed);
	atomic_store_explicit(&l->head, head + 1, memory_order_release);
	return true;
}

static struct sockhalf *
lane_get(struct acceptq *q, struct acceptq_lane *l)
{
	uint32_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
	struct sockhalf *sh;

	if (atomic_load_explicit(&l->head, memory_order_acquire) == tail)
		return NULL;
	sh = atomic_load_explicit(&l->slot[tail & (q->lane_size - 1)], memory_order_relaxed);
	atomic_store_explicit(&l->tail, tail + 1, memory_order_release);
	atomic_fetch_sub_explicit(&q->total, 1, memory_order_acq_rel);
	return sh;
}

static uint32_t
lane_count(const struct acceptq_lane *l)
{
	return atomic_load_explicit(&l->head, memory_order_relaxed) -
	    atomic_load_explicit(&l->tail, memory_order_relaxed);
}

/* Lanes of one length are taken in turn, so that none waits for ever. */
static uint32_t
longest_lane(struct acceptq *q)
{
	uint32_t i, lane, count, longest = q->next_lane, most = 0;

	for (i = 0; i < q->n_lanes; i++) {
		lane = q->next_lane + i;
		if (lane >= q->n_lanes)
			lane -= q->n_lanes;
		count = lane_count(&q->lane[lane]);
		if (count > most) {
			most = count;
			longest = lane;
		}
	}
	return longest;
}

struct sockhalf *
acceptq_get(struct acceptq *q, unsigned prefer)
{
	struct sockhalf *sh;
	uint32_t lane;

	if (prefer < q->n_lanes) {
		sh = lane_get(q, &q->lane[prefer]);
		if (sh != NULL)
			return sh;
	}
	lane = longest_lane(q);
	sh = lane_get(q, &q->lane[lane]);
	if (sh != NULL)
		q->next_lane = lane + 1 < q->n_lanes ? lane + 1 : 0;
	return sh;
}

struct sockhalf *
acceptq_get_own(struct acceptq *q, unsigned lane)
{
	return lane_get(q, &q->lane[lane]);
}
