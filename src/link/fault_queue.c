/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap and the late frame of a fault queue; see fault_queue.h. Frames of equal due time come
 * out as they came in, since the arrival breaks the tie. Pure but for the drops that it counts.
 */
#include "link/fault_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/netisr.h"
#include "runtime/pkt.h"

#define HELD_MAX_PKTS	4096

int
fault_queue_init(struct fault_queue *fq, uint64_t seed)
{
	rng_init(&fq->rng, seed);
	fq->heap = calloc(HELD_MAX_PKTS, sizeof(struct held));
	return fq->heap == NULL ? -ENOMEM : 0;
}

void
fault_queue_fini(struct fault_queue *fq)
{
	free(fq->heap);
}

static bool
is_before(const struct held *a, const struct held *b)
{
	return a->due.us < b->due.us || (a->due.us == b->due.us && a->seq < b->seq);
}

static void
swap_held(struct held *a, struct held *b)
{
	struct held c = *a;

	*a = *b;
	*b = c;
}

static void
sift_up(struct fault_queue *fq, uint32_t i)
{
	for (; i > 0 && is_before(&fq->heap[i], &fq->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap_held(&fq->heap[i], &fq->heap[(i - 1) / 2]);
}

static void
sift_down(struct fault_queue *fq, uint32_t i)
{
	for (;;) {
		uint32_t least = i, child = 2 * i + 1;

		if (child < fq->n_heap && is_before(&fq->heap[child], &fq->heap[least]))
			least = child;
		if (child + 1 < fq->n_heap && is_before(&fq->heap[child + 1], &fq->heap[least]))
			least = child + 1;
		if (least == i)
			return;
		swap_held(&fq->heap[i], &fq->heap[least]);
		i = least;
	}
}

void
fault_drop(struct netisr *n, struct pkt *p)
{
	NETISR_COUNT(n, CTR_drop_fault);
	pkt_free(n, p);
}

void
fault_queue_hold(struct netisr *n, struct fault_queue *fq, struct pkt *p, struct time due)
{
	if (fq->n_heap == HELD_MAX_PKTS) {
		fq->stats.overflowed++;
		fault_drop(n, p);
		return;
	}
	fq->heap[fq->n_heap] = (struct held){ .p = p, .due = due, .seq = fq->arrivals++ };
	sift_up(fq, fq->n_heap++);
}

void
fault_queue_passed(struct netisr *n, struct fault_queue *fq, struct time due)
{
	struct pkt *p = fq->late;

	if (p == NULL || --fq->late_after > 0)
		return;
	fq->late = NULL;
	fault_queue_hold(n, fq, p, due);
}

static void
release_late_when_due(struct netisr *n, struct fault_queue *fq)
{
	struct pkt *p = fq->late;

	if (p == NULL || !time_reached(n->now, fq->late_due))
		return;
	fq->late = NULL;
	fault_queue_hold(n, fq, p, n->now);
}

bool
fault_queue_take(struct netisr *n, struct fault_queue *fq, struct held *ret)
{
	release_late_when_due(n, fq);
	if (fq->n_heap == 0 || !time_reached(n->now, fq->heap[0].due))
		return false;
	*ret = fq->heap[0];
	fq->heap[0] = fq->heap[--fq->n_heap];
	sift_down(fq, 0);
	return true;
}

void
fault_queue_put_back(struct fault_queue *fq, const struct held *h)
{
	fq->heap[fq->n_heap] = *h;
	sift_up(fq, fq->n_heap++);
}

struct time
fault_queue_deadline(const struct fault_queue *fq)
{
	struct time next = fq->n_heap != 0 ? fq->heap[0].due : TIME_NEVER;

	return fq->late != NULL ? time_min(next, fq->late_due) : next;
}
