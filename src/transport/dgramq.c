/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram queues: records in byte rings, each a struct dgram_rec and its payload, published
 * together.
 *
 * Receive: one ring a netisr, so that any core delivers without a lock and a flow, which always
 * comes by the same core, stays in order. The limit is SO_RCVBUF over all lanes: a producer adds to
 * rx_bytes first and takes it back if the sum was above; rx_count is raised before the record is
 * published, so it is never below what the lanes hold (a reader that sees it above zero may for a
 * moment find nothing). Records cost their header too, so that empty datagrams are bounded.
 *
 * The reader takes from the lanes in turn, one datagram each. A peek does not move on, so the next
 * read meets the same datagram.
 *
 * Send: the socket's tx ring; its capacity is SO_SNDBUF, and a datagram that could never fit is
 * EMSGSIZE.
 */
#include "transport/dgramq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/netisr.h"
#include "runtime/sockhalf.h"
#include "runtime/stack.h"

/* SO_RCVBUF is the limit; a ring only needs to be larger than any of its values. */
#define LANE_CAP_BYTES	(UINT32_C(1) << 30)

struct dgramq *
dgramq_new(struct darter_stack *s)
{
	struct dgramq *q = calloc(1, sizeof(*q) + s->n_netisrs * sizeof(q->lane[0]));
	unsigned i;

	if (q == NULL)
		return NULL;
	q->n_lanes = s->n_netisrs;
	for (i = 0; i < q->n_lanes; i++)
		ring_init(&q->lane[i], LANE_CAP_BYTES);
	return q;
}

void
dgramq_free(struct darter_stack *s, struct dgramq *q)
{
	unsigned i;

	if (q == NULL)
		return;
	for (i = 0; i < q->n_lanes; i++)
		ring_fini(&q->lane[i], &s->shared_chunks);
	free(q);
}

static bool
write_record(struct ring *r, struct chunk_cache *c, const struct dgram_rec *rec,
    const void *payload)
{
	return ring_write_at(r, c, 0, rec, sizeof(*rec)) &&
	    ring_write_at(r, c, sizeof(*rec), payload, rec->len_bytes);
}

static bool
charge(struct dgramq *q, const struct sockhalf *sh, const struct ring *r, uint32_t cost)
{
	uint32_t limit = min_u32(atomic_load_explicit(&sh->opts.rcvbuf_bytes, memory_order_relaxed),
	    LANE_CAP_BYTES / 2);
	uint32_t queued = atomic_fetch_add_explicit(&q->rx_bytes, cost, memory_order_acq_rel);

	if (queued <= limit && ring_space_bytes(r) >= cost)
		return true;
	atomic_fetch_sub_explicit(&q->rx_bytes, cost, memory_order_acq_rel);
	return false;
}

static bool
drop(struct netisr *n, struct dgramq *q, enum counter why)
{
	NETISR_COUNT(n, why);
	atomic_fetch_add_explicit(&q->drops, 1, memory_order_relaxed);
	return false;
}

bool
dgramq_put(struct netisr *n, struct sockhalf *sh, const struct dgram_rec *rec, const void *payload)
{
	struct dgramq *q = atomic_load_explicit(&sh->dgramq, memory_order_acquire);
	struct ring *r = &q->lane[n->id];
	uint32_t cost = (uint32_t)sizeof(*rec) + rec->len_bytes;

	if (!charge(q, sh, r, cost))
		return drop(n, q, CTR_drop_udp_rcvq_full);
	if (!write_record(r, &n->chunks, rec, payload)) {
		atomic_fetch_sub_explicit(&q->rx_bytes, cost, memory_order_acq_rel);
		return drop(n, q, CTR_drop_udp_nomem);
	}
	atomic_fetch_add_explicit(&q->rx_count, 1, memory_order_acq_rel);
	ring_advance(r, cost);
	return true;
}

/* The next lane with a datagram, in turn; NULL when all are empty. */
static struct ring *
next_lane(struct dgramq *q)
{
	uint32_t i, lane;

	for (i = 0; i < q->n_lanes; i++) {
		lane = (q->next_lane + i) % q->n_lanes;
		if (ring_is_empty(&q->lane[lane]))
			continue;
		q->cur_lane = lane;
		q->next_lane = lane;
		return &q->lane[lane];
	}
	return NULL;
}

int64_t
dgramq_get(struct sockhalf *sh, void *dst, uint32_t len, bool peek, struct dgram_rec *ret_rec)
{
	struct dgramq *q = atomic_load_explicit(&sh->dgramq, memory_order_acquire);
	struct ring *r = next_lane(q);
	uint32_t cost;

	if (r == NULL)
		return -EAGAIN;
	ring_copy_out(r, 0, ret_rec, sizeof(*ret_rec));
	len = min_u32(len, ret_rec->len_bytes);
	ring_copy_out(r, sizeof(*ret_rec), dst, len);
	if (peek)
		return len;
	cost = (uint32_t)sizeof(*ret_rec) + ret_rec->len_bytes;
	ring_discard(r, cost);
	q->next_lane = (q->cur_lane + 1) % q->n_lanes;
	atomic_fetch_sub_explicit(&q->rx_count, 1, memory_order_acq_rel);
	atomic_fetch_sub_explicit(&q->rx_bytes, cost, memory_order_acq_rel);
	return len;
}

int
dgramq_send(struct sockhalf *sh, const struct dgram_rec *rec, const void *payload)
{
	struct netisr *n = netisr_current();
	struct chunk_cache *c = n != NULL && n->stack == sh->stack &&
	    !chunk_depot_is_short(&sh->stack->depot) ? &n->chunks : &sh->stack->shared_chunks;
	uint32_t cost = (uint32_t)sizeof(*rec) + rec->len_bytes;

	if (rec->len_bytes > DGRAM_MAX_BYTES ||
	    cost > atomic_load_explicit(&sh->tx.cap_bytes, memory_order_relaxed))
		return -EMSGSIZE;
	if (ring_space_bytes(&sh->tx) < cost)
		return -EAGAIN;
	/* Out of chunks is out of room: they come back as queued datagrams go out. */
	if (!write_record(&sh->tx, c, rec, payload)) {
		netisr_count_any(sh->stack->netisr[0], CTR_snd_nomem);
		return -EAGAIN;
	}
	ring_advance(&sh->tx, cost);
	return 0;
}
