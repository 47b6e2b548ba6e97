/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link layer as a layer of the stack: set-up, and its part of a netisr's round.
 *
 * poll: packets that other netisrs have steered here, then a bounded receive burst of each queue
 * that this netisr feeds (queue q of every device belongs to netisr q). flush: what the round has
 * produced goes to the devices, and packets for other netisrs are announced. next_deadline: now
 * while anything waits; a device without a descriptor to sleep on bounds the nap, a quarter of the
 * time since its last frame, between 50 us and net.link.nap_max_us.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link_priv.h"
#include "runtime/config.h"
#include "runtime/knob.h"
#include "wire/ether.h"

#define NAP_MIN_US	50
#define NAP_SHARE	4	/* of the time since the last frame */
#define KEY_OF_TABLES	2	/* index into stack.secret */

static int
register_knobs(struct darter_stack *s)
{
	struct link_stack *l = s->link;
	const struct knob knobs[] = {
		{ .name = "net.link.nap_max_us", .value = &l->nap_max_us,
		    .text = "longest nap beside a device that can only be polled, microseconds",
		    .type = KNOB_INT, .dflt = 2000, .min = NAP_MIN_US, .max = 1000000 },
		{ .name = "net.link.neigh.max_entries", .value = &l->neigh_max,
		    .text = "neighbours a netisr keeps; past it the least recently used goes",
		    .type = KNOB_INT, .dflt = 4096, .min = 16, .max = 65536 },
		{ .name = "net.link.neigh.queue_pkts", .value = &l->neigh_queue_pkts,
		    .text = "packets that wait for one neighbour's answer; then the oldest goes",
		    .type = KNOB_INT, .dflt = 16, .min = 1, .max = 256 },
		{ .name = "net.link.neigh.reachable_ms", .value = &l->neigh_reachable_ms,
		    .text = "time for which a confirmed neighbour is not doubted, milliseconds",
		    .type = KNOB_INT, .dflt = 30000, .min = 100, .max = 86400000 },
		{ .name = "net.link.neigh.delay_ms", .value = &l->neigh_delay_ms,
		    .text = "time before a doubted neighbour in use is probed, milliseconds",
		    .type = KNOB_INT, .dflt = 5000, .min = 1, .max = 600000 },
		{ .name = "net.link.neigh.retrans_ms", .value = &l->neigh_retrans_ms,
		    .text = "time between requests to a neighbour that is silent, milliseconds",
		    .type = KNOB_INT, .dflt = 1000, .min = 1, .max = 600000 },
		{ .name = "net.link.neigh.stale_s", .value = &l->neigh_stale_s,
		    .text = "time after which a neighbour that nobody uses is forgotten, seconds",
		    .type = KNOB_INT, .dflt = 1200, .min = 1, .max = 864000 },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

static void
link_stack_fini(struct darter_stack *s)
{
	unsigned i;

	for (i = 0; i < s->link->n_devs; i++) {
		struct dev *d = s->link->dev[i];

		if (d->ops->stop != NULL)
			d->ops->stop(d);
	}
	dev_close_all(s);
	steer_fini(s);
	free(s->link);
	s->link = NULL;
}

static int
start_devices(struct darter_stack *s, char *err, size_t err_size)
{
	unsigned i;

	for (i = 0; i < s->link->n_devs; i++) {
		struct dev *d = s->link->dev[i];
		int r = d->ops->start != NULL ? d->ops->start(d, err, err_size) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int
link_stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	int r;

	s->link = calloc(1, sizeof(*s->link));
	if (s->link == NULL) {
		snprintf(err, err_size, "link layer: out of memory");
		return -ENOMEM;
	}
	s->link->neigh_key = s->secret[KEY_OF_TABLES];
	ether_register(s, ETHER_TYPE_ARP, arp_input);
	r = register_knobs(s);
	if (r >= 0)
		r = steer_init(s);
	if (r < 0)
		snprintf(err, err_size, "link layer: %s", strerror(-r));
	else
		r = dev_open_all(s, err, err_size);
	if (r >= 0)
		r = start_devices(s, err, err_size);
	if (r < 0)
		link_stack_fini(s);
	return r;
}

static int
link_netisr_init(struct netisr *n, char *err, size_t err_size)
{
	struct link_stack *l = n->stack->link;
	struct link_netisr *ln = aligned_alloc(CACHELINE_BYTES,
	    (sizeof(*ln) + CACHELINE_BYTES - 1) & ~(size_t)(CACHELINE_BYTES - 1));
	unsigned i;

	if (ln == NULL) {
		snprintf(err, err_size, "link layer: out of memory");
		return -ENOMEM;
	}
	memset(ln, 0, sizeof(*ln));
	ln->loop_tail = &ln->loop_head;
	for (i = 0; i < DEV_MAX; i++)
		ln->txq[i].stuck_since = TIME_NEVER;
	n->link = ln;
	if (neigh_netisr_init(n) < 0) {
		snprintf(err, err_size, "link layer: out of memory for the neighbour table");
		free(ln);
		n->link = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < l->n_devs; i++) {
		struct dev *d = l->dev[i];
		int fd = -1;

		if (n->id < d->n_queues && d->ops->rx_fd != NULL)
			fd = d->ops->rx_fd(d, n->id);
		/*
		 * A descriptor that can't be slept on is no reason to fail: the device is polled
		 * instead.
		 */
		if (fd >= 0 && netisr_add_fd(n, fd) < 0)
			d->caps |= DEV_CAP_POLL_ONLY;
	}
	return 0;
}

/*
 * Packets still queued go back with the whole pool, which the runtime takes down after the layers.
 */
static void
link_netisr_fini(struct netisr *n)
{
	neigh_netisr_fini(n);
	free(n->link);
	n->link = NULL;
}

static unsigned
poll_device(struct netisr *n, struct dev *d)
{
	struct pkt *pkts[DEV_BURST_PKTS];
	unsigned i, count, total = 0;

	for (i = 0; i < LINK_RX_BURSTS; i++) {
		count = d->ops->rx(d, n, n->id, pkts, DEV_BURST_PKTS);
		if (count == 0)
			break;
		ether_input(n, d, pkts, count);
		total += count;
		if (count < DEV_BURST_PKTS)
			break;
	}
	if (total != 0 && (d->caps & DEV_CAP_POLL_ONLY))
		n->link->last_rx = n->now;
	return total;
}

static unsigned
link_poll(struct netisr *n)
{
	struct link_stack *l = n->stack->link;
	unsigned i, work = 0;

	if (n->link->steer_ready != 0)
		work += steer_drain(n);
	for (i = 0; i < l->n_devs; i++) {
		if (n->id < l->dev[i]->n_queues)
			work += poll_device(n, l->dev[i]);
	}
	/* Before messages and timers, so that the owners of this burst can begin on it. */
	steer_kick(n);
	return work;
}

static void
link_flush(struct netisr *n)
{
	ether_flush(n);
	steer_kick(n);
}

static uint64_t
nap_us(const struct netisr *n)
{
	uint64_t idle_us = time_since_us(n->now, n->link->last_rx) / NAP_SHARE;
	uint64_t max_us = (uint64_t)knob_get(&n->stack->link->nap_max_us);

	return min_u64(max_u64(idle_us, NAP_MIN_US), max_us);
}

static struct time
link_next_deadline(struct netisr *n)
{
	struct link_stack *l = n->stack->link;
	struct time next = TIME_NEVER;
	unsigned i;

	if (n->link->steer_ready != 0 || n->link->n_loop != 0)
		return n->now;
	if (n->link->tx_pending != 0)
		next = time_add_us(n->now, LINK_TX_RETRY_US);
	for (i = 0; i < l->n_devs; i++) {
		struct dev *d = l->dev[i];

		if (n->id >= d->n_queues)
			continue;
		if (d->caps & DEV_CAP_POLL_ONLY)
			next = time_min(next, time_add_us(n->now, nap_us(n)));
		if (d->ops->next_deadline != NULL)
			next = time_min(next, d->ops->next_deadline(d, n));
	}
	return next;
}

const struct layer link_layer = {
	.name = "link",
	.stack_init = link_stack_init,
	.stack_fini = link_stack_fini,
	.netisr_init = link_netisr_init,
	.netisr_fini = link_netisr_fini,
	.poll = link_poll,
	.flush = link_flush,
	.next_deadline = link_next_deadline,
	.message = { [MSG_STEER] = steer_on_message },
};
