/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bare loop over a device's receive and transmit calls.
 *
 * Frames have the least length of Ethernet and the EtherType that IEEE 802 (2014, 9.2.3.1) sets
 * aside for experiments inside one's own network, so no other host takes them for anything; they go
 * to the broadcast address, because no neighbour has been asked for its own. Buffers come from the
 * stack's pool and go back to it, as in the stack's own use: what is left out is everything above
 * the driver.
 *
 * The loop holds the netisr, which does nothing else meanwhile: that is why it is bounded.
 */
#include <string.h>

#include "link/link_priv.h"
#include "link/linkrate.h"
#include "wire/ether.h"

#define CLOCK_EVERY	16	/* bursts between two looks at the clock */

struct rate {
	struct netisr *n;
	struct dev *d;
	uint64_t pkts;
	struct time first;	/* burst */
	struct time last;
	struct pkt *kept[DEV_BURST_PKTS];	/* made, but not taken by the device yet */
	unsigned n_kept;
};

static void
fill_frame(const struct dev *d, struct pkt *p)
{
	const struct mac all = MAC_BROADCAST;
	struct mac own;
	uint8_t *frame = pkt_put(p, ETHER_MIN_FRAME_BYTES);

	memcpy(own.b, d->mac, sizeof(own.b));
	memset(frame, 0, ETHER_MIN_FRAME_BYTES);
	ether_emit(frame, &all, &own, ETHER_TYPE_EXPERIMENT);
}

/* One burst out. Frames that were taken. */
static unsigned
send_burst(struct rate *r)
{
	unsigned taken;

	while (r->n_kept < DEV_BURST_PKTS) {
		struct pkt *p = pkt_alloc(r->n);

		if (p == NULL)
			break;
		fill_frame(r->d, p);
		r->kept[r->n_kept++] = p;
	}
	taken = r->d->ops->tx(r->d, r->n, r->n->id, r->kept, r->n_kept);
	r->n_kept -= taken;
	memmove(r->kept, r->kept + taken, r->n_kept * sizeof(struct pkt *));
	return taken;
}

static bool
is_ours(const struct pkt *p)
{
	struct ether_view eth;

	return ether_parse(p->data, p->len, &eth) == WIRE_OK && eth.type == ETHER_TYPE_EXPERIMENT;
}

/* One burst in; frames of other kinds take their usual way. Frames of ours. */
static unsigned
take_burst(struct rate *r)
{
	struct pkt *pkts[DEV_BURST_PKTS];
	unsigned i, n_others = 0;
	unsigned count = r->d->ops->rx(r->d, r->n, r->n->id, pkts, DEV_BURST_PKTS);

	for (i = 0; i < count; i++) {
		if (is_ours(pkts[i]))
			pkt_free(r->n, pkts[i]);
		else
			pkts[n_others++] = pkts[i];
	}
	if (n_others != 0)
		ether_input(r->n, r->d, pkts, n_others);
	return count - n_others;
}

void
linkrate_run(struct netisr *n, struct dev *d, bool sends, unsigned ms, uint64_t *ret_pkts,
    uint64_t *ret_us)
{
	struct rate r = { .n = n, .d = d };
	struct clock *clock = n->stack->clock;
	struct time end = time_add_us(clock_now(clock), min_u64(ms, LINKRATE_MAX_MS) * 1000);
	struct time now = TIME_ZERO;
	unsigned i, done;

	do {
		for (i = 0, done = 0; i < CLOCK_EVERY; i++) {
			/* A sender looks in too: some drivers move their rings only then. */
			unsigned came = take_burst(&r);

			done += sends ? send_burst(&r) : came;
		}
		now = clock_now(clock);
		if (done != 0 && r.pkts == 0)
			r.first = now;
		if (done != 0)
			r.last = now;
		r.pkts += done;
	} while (time_before(now, end));
	for (i = 0; i < r.n_kept; i++)
		pkt_free(n, r.kept[i]);
	*ret_pkts = r.pkts;
	*ret_us = r.pkts != 0 ? time_since_us(r.last, r.first) : 0;
}
