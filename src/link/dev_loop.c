/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopback device: what is sent comes back to this stack, to the netisr that owns it as a
 * received packet.
 *
 * Packets for the sending netisr itself wait in its private queue until the next poll (never
 * handled inside the call that sent them: no recursion); others go through the steering ring. Full
 * queues push back: the frame stays in the transmit array. No header of a link, no checksum work:
 * PKT_RX_LOOP says that the packet never left memory.
 *
 * The MTU is what fits a packet's room in one segment, so the receiving side never meets a chain;
 * TSO packets are cut by the link layer as for any device without it. Queue q is netisr q's, which
 * alone touches it.
 */
#include "link/dev.h"
#include "link/link_priv.h"
#include "wire/ether.h"

#define LOOP_MTU_BYTES 2000	/* of PKT_ROOM_BYTES */

STATIC_ASSERT(LOOP_MTU_BYTES <= PKT_ROOM_BYTES, "a packet of the loopback is one segment");

static int
loop_open(struct dev *d, const struct config_port *cfg UNUSED, char *err UNUSED,
    size_t err_size UNUSED)
{
	d->is_loop = true;
	d->has_ether = false;
	d->vlan = 0;
	d->mtu = LOOP_MTU_BYTES;
	d->n_queues = (uint16_t)d->stack->n_netisrs;
	d->caps = DEV_CAP_RX_IP_CSUM | DEV_CAP_RX_L4_CSUM | DEV_CAP_TX_IP_CSUM | DEV_CAP_TX_L4_CSUM;
	return 0;
}

static unsigned
loop_rx(struct dev *d UNUSED, struct netisr *n, unsigned q UNUSED, struct pkt **pkts, unsigned max)
{
	struct link_netisr *ln = n->link;
	unsigned count = 0;

	while (count < max && ln->loop_head != NULL) {
		struct pkt *p = ln->loop_head;

		ln->loop_head = p->next;
		p->next = NULL;
		pkts[count++] = p;
	}
	if (ln->loop_head == NULL)
		ln->loop_tail = &ln->loop_head;
	ln->n_loop -= count;
	return count;
}

/* False when there is no room for p on its way. */
static bool
loop_back(struct dev *d, struct netisr *n, struct pkt *p)
{
	struct darter_stack *s = n->stack;
	struct link_netisr *ln = n->link;
	enum steer_cause cause;
	unsigned owner = n->id;

	if (s->n_netisrs > 1)
		owner = steer_owner(s, d, p, ETHER_TYPE_IP4, n->id, &cause);
	p->flags = PKT_RX_LOOP | PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_GOOD;
	p->dev = d->index;
	p->l2_len = 0;
	if (owner != n->id) {
		if (!steer_push(n, owner, p, STEER_RX))
			return false;
		NETISR_COUNT(n, CTR_steered_pkts);
		NETISR_COUNT(n, CTR_steered_loopback);
		return true;
	}
	if (ln->n_loop == LINK_LOOPQ_PKTS)
		return false;
	p->next = NULL;
	*ln->loop_tail = p;
	ln->loop_tail = &p->next;
	ln->n_loop++;
	return true;
}

static unsigned
loop_tx(struct dev *d, struct netisr *n, unsigned q UNUSED, struct pkt **pkts, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (!loop_back(d, n, pkts[i]))
			break;
	}
	return i;
}

static bool
loop_is_up(struct dev *d UNUSED)
{
	return true;
}

static void
loop_close(struct dev *d UNUSED)
{
}

const struct dev_ops dev_loop_ops = {
	.name = "loop",
	.open = loop_open,
	.rx = loop_rx,
	.tx = loop_tx,
	.link_is_up = loop_is_up,
	.close = loop_close,
};
