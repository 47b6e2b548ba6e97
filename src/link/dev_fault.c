/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault injector: a device that wraps another and drops, doubles, corrupts, reorders, delays
 * and slows down its frames, by probability, by count, or as a test's rule says. What can be said
 * is in dev_fault.h.
 *
 * Frames that must wait sit in a fault queue (fault_queue.h), one for each queue and direction; the
 * queue's holder releases them when it polls. Time is the stack's clock, so under a fake clock
 * everything repeats exactly. A reordered frame waits until one to three later frames have passed,
 * or reorder_us.
 *
 * Corruption flips one bit and must be detectable: a checksum that was left to the device, or that
 * the device has vouched for, is computed into the frame first, and the flags that would hide the
 * damage are cleared. Other frames keep their offloads. TSO is not offered: faults hit frames as
 * they are on the wire.
 *
 * Queue q's state belongs to the holder of netisr q.
 */
#include "link/dev_fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/csum.h"
#include "link/dev.h"
#include "link/fault_queue.h"
#include "link/link_priv.h"
#include "link/offload.h"
#include "runtime/config.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#define FULL_FRAME_BYTES 1514
#define REORDER_MAX	3	/* frames that overtake a reordered one */

struct fault {
	struct dev inner;
	struct fault_spec spec;
	fault_rule_fn *rule;
	void *rule_arg;
	struct fault_queue *queues;	/* [q * 2 + dir] */
};

static struct fault_queue *
queue_of(const struct fault *f, unsigned q, enum fault_dir dir)
{
	return &f->queues[q * 2 + (unsigned)dir];
}

static bool
chance(struct fault_queue *fq, double probability)
{
	/* 53 bits, exactly representable */
	return probability > 0.0 && (double)(rng_u64(&fq->rng) >> 11) * 0x1p-53 < probability;
}

static enum fault_verdict
decide(const struct fault *f, enum fault_dir dir, struct fault_queue *fq, const struct pkt *p,
    uint64_t *ret_delay_us)
{
	const struct fault_spec *s = &f->spec;
	enum fault_verdict v = FAULT_AS_CONFIGURED;

	if (f->rule != NULL)
		v = f->rule(f->rule_arg, dir, fq->nth, p, ret_delay_us);
	if (v != FAULT_AS_CONFIGURED)
		return v;
	if (!s->applies[dir])
		return FAULT_PASS;
	if (s->drop_nth != 0 && fq->nth % s->drop_nth == 0)
		return FAULT_DROP;
	if (chance(fq, s->drop))
		return FAULT_DROP;
	if (chance(fq, s->corrupt))
		return FAULT_CORRUPT;
	if (chance(fq, s->dup))
		return FAULT_DUP;
	if (chance(fq, s->reorder))
		return FAULT_REORDER;
	return FAULT_AS_CONFIGURED;
}

/*
 * Computes into the frame the checksums that were left to a device or that a device has vouched
 * for.
 */
static void
make_csums_real(struct pkt *p, const struct ether_view *e, const struct ip4_view *v)
{
	uint32_t good = PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_GOOD;

	p->l2_len = e->hdr_bytes;
	p->l3_len = v->hdr_bytes;
	if (p->flags & (PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM | PKT_TX_UDP_CSUM))
		offload_fill_csums(p);
	else if (p->flags & good)
		offload_refill_csums(p, v, (p->flags & PKT_RX_L4_CSUM_GOOD) != 0);
	p->flags &= ~good;
}

/*
 * Flips one bit of the IP packet. False for what no checksum of ours protects: there the link's own
 * catches damage.
 */
static bool
corrupt_frame(struct fault_queue *fq, struct pkt *p)
{
	struct ether_view e;
	struct ip4_view v;
	uint32_t bytes, bit;

	if (ether_parse(p->data, p->len, &e) != WIRE_OK || e.type != ETHER_TYPE_IP4 ||
	    p->len < e.hdr_bytes + IP4_HDR_BYTES ||
	    ip4_parse(p->data + e.hdr_bytes, p->total_len - (size_t)e.hdr_bytes, &v) != WIRE_OK ||
	    (uint32_t)e.hdr_bytes + v.hdr_bytes > p->len)
		return false;
	make_csums_real(p, &e, &v);
	bytes = min_u32(v.total_bytes, p->len - (uint32_t)e.hdr_bytes);
	bit = rng_below(&fq->rng, bytes * 8);
	p->data[e.hdr_bytes + bit / 8] ^= (uint8_t)(1u << (bit % 8));
	fq->stats.corrupted++;
	return true;
}

static uint64_t
frame_ns(const struct fault_spec *s, uint32_t bytes)
{
	return (uint64_t)bytes * 8 * 1000000 / s->rate_kbps;
}

static struct time
delayed_until(const struct fault_spec *s, struct fault_queue *fq, struct time now)
{
	uint64_t range = s->delay_max_us - s->delay_min_us;
	struct time due = time_add_us(now, s->delay_min_us);

	if (range != 0)
		due = time_add_us(due, rng_below(&fq->rng, (uint32_t)range + 1));
	if (s->is_fifo && time_before(due, fq->last_due))
		due = fq->last_due;
	fq->last_due = due;
	return due;
}

/*
 * When a frame that leaves as fast as the rate allows has left; TIME_NEVER: the queue in front is
 * full.
 */
static struct time
paced_until(const struct fault_spec *s, struct fault_queue *fq, const struct pkt *p,
    struct time now)
{
	uint64_t now_ns = now.us * 1000;
	uint64_t limit_ns = s->queue_pkts * frame_ns(s, FULL_FRAME_BYTES);

	if (fq->wire_free_ns < now_ns)
		fq->wire_free_ns = now_ns;
	if (fq->wire_free_ns - now_ns >= limit_ns)
		return TIME_NEVER;
	fq->wire_free_ns += frame_ns(s, p->total_len);
	return (struct time){ fq->wire_free_ns / 1000 };
}

static void
duplicate(struct netisr *n, struct fault_queue *fq, const struct pkt *p, struct time due)
{
	struct pkt *copy = pkt_clone(n, p);

	if (copy == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	copy->flags = p->flags;
	fq->stats.duplicated++;
	fault_queue_hold(n, fq, copy, due);
}

/* Puts p into the heap with the delay that is its lot. Takes p. */
static void
schedule(struct netisr *n, const struct fault *f, enum fault_dir dir, struct fault_queue *fq,
    struct pkt *p, enum fault_verdict v, uint64_t delay_us)
{
	const struct fault_spec *s = &f->spec;
	struct time due = n->now;

	if (v == FAULT_DELAY) {
		due = time_add_us(due, delay_us);
	} else if (v != FAULT_PASS && s->applies[dir]) {
		if (s->rate_kbps != 0)
			due = paced_until(s, fq, p, due);
		if (time_is_never(due)) {
			fq->stats.overflowed++;
			fault_drop(n, p);
			return;
		}
		due = delayed_until(s, fq, due);
	}
	if (time_before(n->now, due))
		fq->stats.delayed++;
	if (v == FAULT_DUP)
		duplicate(n, fq, p, due);
	fault_queue_hold(n, fq, p, due);
	fault_queue_passed(n, fq, due);
}

/* Lets the next few frames overtake p; false when another is late already. */
static bool
hold_late(struct netisr *n, const struct fault *f, struct fault_queue *fq, struct pkt *p)
{
	if (fq->late != NULL)
		return false;
	fq->stats.reordered++;
	fq->late = p;
	fq->late_due = time_add_us(n->now, f->spec.reorder_us);
	fq->late_after = 1 + rng_below(&fq->rng, REORDER_MAX);
	return true;
}

/* One frame meets its fate. Takes p. */
static void
pass_frame(struct netisr *n, const struct fault *f, enum fault_dir dir, struct fault_queue *fq,
    struct pkt *p)
{
	uint64_t delay_us = 0;
	enum fault_verdict v;

	fq->nth++;
	fq->stats.seen++;
	v = decide(f, dir, fq, p, &delay_us);
	switch (v) {
	case FAULT_DROP:
		fq->stats.dropped++;
		fault_drop(n, p);
		return;
	case FAULT_REORDER:
		if (hold_late(n, f, fq, p))
			return;
		break;	/* one at a time: this one passes in order */
	case FAULT_CORRUPT:
		if (corrupt_frame(fq, p))
			break;
		fq->stats.dropped++;
		fault_drop(n, p);
		return;
	default:
		break;
	}
	schedule(n, f, dir, fq, p, v, delay_us);
}

static unsigned
take_all_due(struct netisr *n, struct fault_queue *fq, struct pkt **pkts, unsigned max)
{
	unsigned count = 0;
	struct held h;

	while (count < max && fault_queue_take(n, fq, &h))
		pkts[count++] = h.p;
	return count;
}

/* Sends what is due; what the inner device refuses is due again at once, in the same order. */
static void
release_tx(struct fault *f, struct netisr *n, unsigned q)
{
	struct fault_queue *fq = queue_of(f, q, FAULT_TX);
	struct pkt *pkts[DEV_BURST_PKTS];
	struct held held[DEV_BURST_PKTS];
	unsigned count, taken, i;

	do {
		for (count = 0; count < DEV_BURST_PKTS; count++) {
			if (!fault_queue_take(n, fq, &held[count]))
				break;
			pkts[count] = held[count].p;
		}
		taken = count == 0 ? 0 : f->inner.ops->tx(&f->inner, n, q, pkts, count);
		for (i = taken; i < count; i++)
			fault_queue_put_back(fq, &held[i]);
	} while (taken == DEV_BURST_PKTS);
}

static unsigned
fault_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	struct fault *f = d->priv;
	unsigned i;

	for (i = 0; i < count; i++)
		pass_frame(n, f, FAULT_TX, queue_of(f, q, FAULT_TX), pkts[i]);
	release_tx(f, n, q);
	return count;
}

/* badhash: what a device that claims DEV_CAP_RSS writes beside a received frame. */
static void
write_hash(const struct fault *f, struct netisr *n, struct fault_queue *fq, struct pkt *p)
{
	struct ether_view e;

	if (ether_parse(p->data, p->len, &e) != WIRE_OK || e.type != ETHER_TYPE_IP4 ||
	    !steer_hash(n->stack, p->data + e.hdr_bytes, p->len - (size_t)e.hdr_bytes,
	    &p->rss_hash))
		return;
	p->flags |= PKT_RX_RSS_HASH;
	if (!chance(fq, f->spec.badhash))
		return;
	p->rss_hash ^= 1 + rng_below(&fq->rng, UINT32_MAX);
	fq->stats.misshashed++;
}

static unsigned
fault_rx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned max)
{
	struct fault *f = d->priv;
	struct fault_queue *fq = queue_of(f, q, FAULT_RX);
	unsigned i, got;

	release_tx(f, n, q);
	got = f->inner.ops->rx(&f->inner, n, q, pkts, max);
	for (i = 0; i < got; i++) {
		if (f->spec.claims_hash)
			write_hash(f, n, fq, pkts[i]);
		pass_frame(n, f, FAULT_RX, fq, pkts[i]);
	}
	return take_all_due(n, fq, pkts, max);
}

static struct time
fault_next_deadline(struct dev *d, struct netisr *n)
{
	struct fault *f = d->priv;
	struct time tx = fault_queue_deadline(queue_of(f, n->id, FAULT_TX));
	struct time next = fault_queue_deadline(queue_of(f, n->id, FAULT_RX));

	/* due already and still here: the inner device is full */
	if (time_reached(n->now, tx))
		tx = time_add_us(n->now, LINK_TX_RETRY_US);
	next = time_min(next, tx);
	if (f->inner.ops->next_deadline != NULL)
		next = time_min(next, f->inner.ops->next_deadline(&f->inner, n));
	return next;
}

static int
make_queues(struct fault *f, unsigned n_queues)
{
	unsigned i;

	f->queues = aligned_alloc(CACHELINE_BYTES, 2 * n_queues * sizeof(*f->queues));
	if (f->queues == NULL)
		return -ENOMEM;
	memset(f->queues, 0, 2 * n_queues * sizeof(*f->queues));
	for (i = 0; i < 2 * n_queues; i++) {
		if (fault_queue_init(&f->queues[i], f->spec.seed * 0x9e3779b97f4a7c15u + i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void
free_fault(struct fault *f)
{
	unsigned i;

	for (i = 0; f->queues != NULL && i < 2u * f->inner.n_queues; i++)
		fault_queue_fini(&f->queues[i]);
	free(f->queues);
	free(f);
}

/* What the inner device is, the wrapper is too. */
static void
copy_face(struct dev *d, const struct fault *f)
{
	const struct dev *inner = &f->inner;

	memcpy(d->mac, inner->mac, sizeof(d->mac));
	d->mtu = inner->mtu;
	d->n_queues = inner->n_queues;
	d->has_ether = inner->has_ether;
	d->caps = inner->caps & ~(uint32_t)DEV_CAP_TSO;
	if (f->spec.claims_hash)
		d->caps |= DEV_CAP_RSS;
}

static int
fault_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	struct fault *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	r = fault_parse(cfg->fault, &f->spec, err, err_size);
	if (r < 0) {
		free(f);
		return r;
	}
	f->inner = *d;
	f->inner.ops = dev_backend(cfg->device);
	r = f->inner.ops->open(&f->inner, cfg, err, err_size);
	if (r < 0) {
		free(f);
		return r;
	}
	if (make_queues(f, f->inner.n_queues) < 0) {
		f->inner.ops->close(&f->inner);
		free_fault(f);
		return -ENOMEM;
	}
	copy_face(d, f);
	d->priv = f;
	return 0;
}

static int
fault_start(struct dev *d, char *err, size_t err_size)
{
	struct fault *f = d->priv;
	int r = 0;

	if (f->inner.ops->start != NULL)
		r = f->inner.ops->start(&f->inner, err, err_size);
	/* some capabilities are known only then: hashing, descriptors to sleep on */
	copy_face(d, f);
	return r;
}

static int
fault_rx_fd(struct dev *d, unsigned q)
{
	struct fault *f = d->priv;

	return f->inner.ops->rx_fd != NULL ? f->inner.ops->rx_fd(&f->inner, q) : -1;
}

static bool
fault_is_up(struct dev *d)
{
	struct fault *f = d->priv;

	return f->inner.ops->link_is_up == NULL || f->inner.ops->link_is_up(&f->inner);
}

static void
fault_stop(struct dev *d)
{
	struct fault *f = d->priv;

	if (f->inner.ops->stop != NULL)
		f->inner.ops->stop(&f->inner);
}

static void
fault_close(struct dev *d)
{
	struct fault *f = d->priv;

	f->inner.ops->close(&f->inner);
	free_fault(f);	/* held packets go back with the pool */
}

int
fault_set_rule(struct dev *d, fault_rule_fn *fn, void *arg)
{
	struct fault *f = d->priv;

	if (d->ops != &dev_fault_ops)
		return -EINVAL;
	f->rule = fn;
	f->rule_arg = arg;
	return 0;
}

int
fault_stats(const struct dev *d, enum fault_dir dir, struct fault_stats *ret)
{
	const struct fault *f = d->priv;
	unsigned q;

	if (d->ops != &dev_fault_ops)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	for (q = 0; q < d->n_queues; q++) {
		const struct fault_stats *s = &queue_of(f, q, dir)->stats;

		ret->seen += s->seen;
		ret->dropped += s->dropped;
		ret->duplicated += s->duplicated;
		ret->corrupted += s->corrupted;
		ret->reordered += s->reordered;
		ret->delayed += s->delayed;
		ret->overflowed += s->overflowed;
		ret->misshashed += s->misshashed;
	}
	return 0;
}

const struct dev_ops dev_fault_ops = {
	.name = "fault",
	.open = fault_open,
	.start = fault_start,
	.rx = fault_rx,
	.tx = fault_tx,
	.rx_fd = fault_rx_fd,
	.link_is_up = fault_is_up,
	.next_deadline = fault_next_deadline,
	.stop = fault_stop,
	.close = fault_close,
};
