/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The test device behind "wire:N".
 *
 * A queue is a linked list of heap frames; in[] is filled by wire_dev_inject() and emptied by rx(),
 * out is filled by tx() and emptied by wire_dev_take(). Every transmitted packet is flattened and
 * freed at once, so the packet pool shows leaks of the stack and not of the test. The objects are
 * static: a stack finds wire N by the number in its device string.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/dev.h"
#include "runtime/config.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/stack.h"
#include "wire/ether.h"

#include "support/cmocka_all.h"
#include "support/wire_dev.h"

static struct wire_dev wires[WIRE_DEV_MAX];

static void
queue_init(struct wire_queue *q)
{
	q->first = NULL;
	q->last = &q->first;
	q->count = 0;
}

static void
queue_put(struct wire_queue *q, struct wire_frame *f)
{
	f->next = NULL;
	*q->last = f;
	q->last = &f->next;
	q->count++;
}

static struct wire_frame *
queue_take(struct wire_queue *q)
{
	struct wire_frame *f = q->first;

	if (f == NULL)
		return NULL;
	q->first = f->next;
	if (q->first == NULL)
		q->last = &q->first;
	q->count--;
	return f;
}

static void
queue_clear(struct wire_queue *q)
{
	struct wire_frame *f;

	while ((f = queue_take(q)) != NULL)
		free(f);
}

static struct wire_frame *
frame_new(uint32_t len)
{
	struct wire_frame *f = malloc(sizeof(*f) + len);

	if (f == NULL)
		abort();
	f->next = NULL;
	f->at = TIME_ZERO;
	f->len = len;
	return f;
}

static int
wire_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	unsigned n = (unsigned)atoi(cfg->device + strlen("wire:"));
	struct wire_dev *w;

	if (n >= WIRE_DEV_MAX || wires[n].dev != NULL) {
		snprintf(err, err_size, "%s: no such wire, or in use", cfg->device);
		return -ENODEV;
	}
	w = &wires[n];
	w->dev = d;
	d->priv = w;
	d->mtu = (uint16_t)(cfg->mtu != 0 ? cfg->mtu : 1500);
	d->n_queues = (uint16_t)(cfg->queues != 0 ? cfg->queues : w->queues);
	d->caps = 0;
	d->has_ether = true;
	memcpy(d->mac, "\x02\x00\x00\x00\x00\x01", sizeof(d->mac));
	return 0;
}

static int
wire_start(struct dev *d, char *err, size_t err_size)
{
	(void)d;
	(void)err;
	(void)err_size;
	return 0;
}

/*
 * Copies bytes into a packet of as many segments as they need, cut where the wire says; NULL when
 * the pool is empty.
 */
static struct pkt *
pkt_from_bytes(struct netisr *n, const struct wire_dev *w, const uint8_t *bytes, uint32_t len)
{
	struct pkt *head = NULL, **link = &head;
	uint32_t off = 0, room, i = 0;

	do {
		uint16_t part;
		struct pkt *p = pkt_alloc(n);

		room = i < 2 && w->cuts[i] != 0 ? w->cuts[i] : PKT_ROOM_BYTES;
		part = (uint16_t)min_u32(len - off, room);
		i++;

		if (p == NULL) {
			if (head != NULL)
				pkt_free(n, head);
			return NULL;
		}
		memcpy(p->data, bytes + off, part);
		p->len = part;
		p->total_len = part;
		*link = p;
		link = &p->seg;
		off += part;
	} while (off < len);
	head->total_len = len;
	return head;
}

/* The tag of the other end, on the frame or beside it. */
static struct pkt *
pkt_from_frame(struct netisr *n, const struct wire_dev *w, const struct wire_frame *f)
{
	uint8_t tagged[WIRE_FRAME_MAX_BYTES + ETHER_VLAN_BYTES];
	bool has_tag = w->vlan != 0 && f->len >= 2 * ETHER_ADDR_BYTES &&
	    f->len <= WIRE_FRAME_MAX_BYTES;
	struct pkt *p;

	if (has_tag && !w->strips_vlan) {
		memcpy(tagged, f->bytes, 2 * ETHER_ADDR_BYTES);
		store_be16(tagged + 2 * ETHER_ADDR_BYTES, ETHER_TYPE_VLAN);
		store_be16(tagged + 2 * ETHER_ADDR_BYTES + 2, w->vlan);
		memcpy(tagged + 2 * ETHER_ADDR_BYTES + ETHER_VLAN_BYTES,
		    f->bytes + 2 * ETHER_ADDR_BYTES, f->len - 2 * ETHER_ADDR_BYTES);
		p = pkt_from_bytes(n, w, tagged, f->len + ETHER_VLAN_BYTES);
	} else {
		p = pkt_from_bytes(n, w, f->bytes, f->len);
	}
	if (p == NULL)
		return NULL;
	p->flags |= w->rx_flags;
	if (has_tag && w->strips_vlan) {
		p->flags |= PKT_RX_VLAN;
		p->vlan_tci = w->vlan;
	}
	return p;
}

static unsigned
wire_rx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned max)
{
	struct wire_dev *w = d->priv;
	unsigned count = 0;

	while (count < max && w->in[q].first != NULL) {
		struct wire_frame *f = queue_take(&w->in[q]);
		struct pkt *p = pkt_from_frame(n, w, f);

		free(f);
		if (p == NULL) {
			NETISR_COUNT(n, CTR_drop_pkt_nomem);
			continue;
		}
		p->dev = d->index;
		pkts[count++] = p;
	}
	return count;
}

static unsigned
wire_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	struct wire_dev *w = d->priv;
	unsigned i;

	(void)q;
	for (i = 0; i < count && w->tx_room > 0; i++) {
		struct wire_frame *f = frame_new(pkts[i]->total_len);

		pkt_copy_out(pkts[i], 0, f->bytes, f->len);
		f->at = stack_now(d->stack);
		if (pkts[i]->flags & PKT_TX_TSO) {
			w->tso.l2_len = pkts[i]->l2_len;
			w->tso.l3_len = pkts[i]->l3_len;
			w->tso.l4_len = pkts[i]->l4_len;
			w->tso.mss = pkts[i]->tso_mss;
		}
		pkt_free(n, pkts[i]);
		if (w->tx_room != UINT32_MAX)
			w->tx_room--;
		if (w->on_tx != NULL && w->on_tx(w->on_tx_arg, f->bytes, f->len)) {
			free(f);
			continue;
		}
		if (w->out.count >= WIRE_FRAMES_MAX) {
			fprintf(stderr, "wire: %u frames sent and nobody looks\n", w->out.count);
			abort();
		}
		queue_put(&w->out, f);
	}
	return i;
}

static int
wire_rx_fd(struct dev *d, unsigned q)
{
	(void)d;
	(void)q;
	return -1;
}

static bool
wire_link_is_up(struct dev *d)
{
	const struct wire_dev *w = d->priv;

	return !w->link_down;
}

static void
wire_stop(struct dev *d)
{
	(void)d;
}

static void
wire_close(struct dev *d)
{
	struct wire_dev *w = d->priv;

	wire_dev_clear(w);
	w->dev = NULL;
	d->priv = NULL;
}

static const struct dev_ops wire_ops = {
	.name = "wire",
	.open = wire_open,
	.start = wire_start,
	.rx = wire_rx,
	.tx = wire_tx,
	.rx_fd = wire_rx_fd,
	.link_is_up = wire_link_is_up,
	.stop = wire_stop,
	.close = wire_close,
};

void
wire_dev_register(void)
{
	static bool is_done;

	if (is_done)
		return;
	is_done = true;
	if (dev_backend_add("wire:", &wire_ops) != 0)
		fail_msg("%s", "the link layer refused the wire: back end");
}

struct wire_dev *
wire_dev_reset(unsigned n)
{
	struct wire_dev *w = &wires[n];
	unsigned q;

	assert_true(n < WIRE_DEV_MAX);
	if (w->out.last != NULL)
		wire_dev_clear(w);
	for (q = 0; q < WIRE_DEV_QUEUES; q++)
		queue_init(&w->in[q]);
	queue_init(&w->out);
	w->dev = NULL;
	w->queues = 1;
	w->tx_room = UINT32_MAX;
	w->link_down = false;
	w->vlan = 0;
	w->strips_vlan = false;
	w->rx_flags = 0;
	memset(w->cuts, 0, sizeof(w->cuts));
	memset(&w->tso, 0, sizeof(w->tso));
	w->on_tx = NULL;
	w->on_tx_arg = NULL;
	return w;
}

void
wire_dev_inject(struct wire_dev *w, unsigned queue, const void *frame, uint32_t len)
{
	struct wire_frame *f = frame_new(len);

	if (len > 0)
		memcpy(f->bytes, frame, len);
	queue_put(&w->in[queue], f);
}

struct wire_frame *
wire_dev_take(struct wire_dev *w)
{
	return queue_take(&w->out);
}

void
wire_dev_clear(struct wire_dev *w)
{
	unsigned q;

	for (q = 0; q < WIRE_DEV_QUEUES; q++)
		queue_clear(&w->in[q]);
	queue_clear(&w->out);
}
