/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory cable: two devices of one process that open the same name are connected, whatever
 * stacks and threads they belong to. "pair:NAME[,queues=N][,slots=N][,csum=off][,rss=on]".
 *
 * Frames are copied into bounded rings (pair_ring.h), and from there into a packet of the receiving
 * stack's pool: no buffer ever belongs to two stacks. There is a
 * ring for each (sender's queue, receiver's queue); queue q of the sender fills the ring to queue q
 * % (receiver's queues), or, with rss=on, the one that the receiving stack's own hash names (the
 * cable then plays a NIC with receive-side scaling).
 *
 * Checksums: the device offers all transmit checksums and computes none, as frames don't leave
 * memory; a frame whose sender left a checksum to it arrives as "good", every other one is for the
 * receiver to check. So a fault device that corrupts frames stays detectable. csum=off offers none:
 * all checksums are real.
 *
 * Life: the first opener waits, the second connects: it makes the rings (`struct wire`) and
 * publishes them to both ends. A closing end takes them away again and waits until no queue of
 * either end is inside rx or tx: each (end, queue) has a `busy` word, set before the wire is read
 * and cleared after use, all sequentially consistent, so either the closer sees the user or the
 * user sees no wire. The peer may be opened again; what was in the rings is lost, as in a pulled
 * cable. With nobody at the other end frames are dropped (drop_dev_down), not kept.
 *
 * No descriptor and no polling nap: the sender rings the peer's netisr, whose keeper looks at the
 * rings (next_deadline) after it has said that it is about to sleep. Both sides do a
 * read-modify-write on that word, so no frame is slept over.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "link/dev.h"
#include "link/link_priv.h"
#include "link/pair_ring.h"
#include "runtime/config.h"
#include "wire/ether.h"

#define NAME_MAX_BYTES	32
#define CABLES_MAX	64
#define SLOTS_DFLT	512
#define MTU_MAX		(2000 - ETHER_HDR_BYTES - ETHER_VLAN_BYTES)

/*
 * The rings of a connected cable. ring[dir][sq * n_queues of the receiver + rq]; dir is the sending
 * end.
 */
struct wire {
	struct pair_ring *ring[2];
	unsigned n_queues[2];
	struct dev *dev[2];
};

struct queue_guard {
	_Atomic uint32_t busy;
} CACHE_ALIGNED;

struct end {
	struct cable *cable;
	struct dev *dev;	/* NULL: not open */
	unsigned n_queues;
	bool has_csum_offload;
	bool hashes;
	unsigned side;		/* 0 or 1 */
	struct queue_guard guard[NETISR_MAX];
};

struct cable {
	char name[NAME_MAX_BYTES];
	uint32_t slots;
	struct end end[2];
	struct wire *_Atomic wire;	/* NULL: not connected */
};

/* All cables of the process. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cable *registry[CABLES_MAX];

static void
cable_name(const char *device, char name[NAME_MAX_BYTES])
{
	const char *p = strchr(device, ':') + 1;
	size_t len = min_size(strcspn(p, ","), NAME_MAX_BYTES - 1);

	memcpy(name, p, len);
	name[len] = '\0';
}

/* Mutex held. The cable of that name, new if need be; NULL: no room or no memory. */
static struct cable *
find_cable(const char *name)
{
	struct cable *c, **empty = NULL;
	unsigned i;

	for (i = 0; i < CABLES_MAX; i++) {
		if (registry[i] != NULL && strcmp(registry[i]->name, name) == 0)
			return registry[i];
		if (registry[i] == NULL && empty == NULL)
			empty = &registry[i];
	}
	if (empty == NULL)
		return NULL;
	c = aligned_alloc(CACHELINE_BYTES, sizeof(*c));
	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%s", name);
	*empty = c;
	return c;
}

/* Mutex held. */
static void
forget_cable_if_unused(struct cable *c)
{
	unsigned i;

	if (c->end[0].dev != NULL || c->end[1].dev != NULL)
		return;
	for (i = 0; i < CABLES_MAX; i++) {
		if (registry[i] == c)
			registry[i] = NULL;
	}
	free(c);
}

static void
free_wire(struct wire *w)
{
	if (w == NULL)
		return;
	pair_rings_free(w->ring[0], w->n_queues[0] * w->n_queues[1]);
	pair_rings_free(w->ring[1], w->n_queues[0] * w->n_queues[1]);
	free(w);
}

/* Mutex held, both ends open. */
static int
connect_ends(struct cable *c)
{
	struct wire *w = calloc(1, sizeof(*w));
	unsigned i;

	if (w == NULL)
		return -ENOMEM;
	for (i = 0; i < 2; i++) {
		w->n_queues[i] = c->end[i].n_queues;
		w->dev[i] = c->end[i].dev;
	}
	for (i = 0; i < 2; i++) {
		w->ring[i] = pair_rings_new(w->n_queues[0] * w->n_queues[1], c->slots);
		if (w->ring[i] == NULL) {
			free_wire(w);
			return -ENOMEM;
		}
	}
	atomic_store(&c->wire, w);
	return 0;
}

/* Mutex held. Waits until nobody is inside; holders are inside for a burst at most. */
static void
disconnect(struct cable *c)
{
	struct wire *w = atomic_exchange(&c->wire, NULL);
	unsigned i, q;

	for (i = 0; i < 2; i++) {
		for (q = 0; q < c->end[i].n_queues; q++) {
			while (atomic_load(&c->end[i].guard[q].busy) != 0)
				cpu_relax();
		}
	}
	free_wire(w);
}

/* The wire, until leave(); NULL when nothing is connected. */
static struct wire *
enter(struct end *e, unsigned q)
{
	atomic_exchange(&e->guard[q].busy, 1);
	return atomic_load(&e->cable->wire);
}

static void
leave(struct end *e, unsigned q)
{
	atomic_store_explicit(&e->guard[q].busy, 0, memory_order_release);
}

static bool
option_is(const char *device, const char *key, const char *value)
{
	char text[16];

	return dev_option(device, key, text, sizeof(text)) && strcmp(text, value) == 0;
}

/* Locally administered, the same in every run: 02:64 and the cable's name and side. */
static void
default_mac(const struct cable *c, unsigned side, uint8_t mac[6])
{
	static const struct siphash_key no_secret;
	uint64_t h = siphash(&no_secret, c->name, strlen(c->name));

	memcpy(mac, ((const uint8_t[]){ 0x02, 0x64, (uint8_t)h, (uint8_t)(h >> 8),
	    (uint8_t)(h >> 16), (uint8_t)(side + 1) }), ETHER_ADDR_BYTES);
}

static void
set_up_end(struct cable *c, unsigned side, struct dev *d, const struct config_port *cfg,
    unsigned queues)
{
	struct end *e = &c->end[side];

	e->cable = c;
	e->dev = d;
	e->side = side;
	e->n_queues = queues;
	e->has_csum_offload = !option_is(cfg->device, "csum", "off");
	e->hashes = option_is(cfg->device, "rss", "on");
	d->priv = e;
	d->n_queues = (uint16_t)queues;
	d->caps = DEV_CAP_MULTISEG;
	if (e->has_csum_offload)
		d->caps |= DEV_CAP_RX_IP_CSUM | DEV_CAP_RX_L4_CSUM | DEV_CAP_TX_IP_CSUM |
		    DEV_CAP_TX_L4_CSUM;
	if (e->hashes)
		d->caps |= DEV_CAP_RSS;
	if (!cfg->has_mac)
		default_mac(c, side, d->mac);
}

static int
check_port(const struct dev *d, const char *name, char *err, size_t err_size)
{
	if (name[0] == '\0') {
		snprintf(err, err_size, "pair: the device string needs a name, e.g. pair:cable0");
		return -EINVAL;
	}
	if (d->mtu > MTU_MAX) {
		snprintf(err, err_size, "pair:%s: mtu %u is above the cable's %d", name, d->mtu,
		    MTU_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Mutex held. */
static int
plug_in(struct dev *d, const struct config_port *cfg, const char *name, unsigned queues,
    uint32_t slots, char *err, size_t err_size)
{
	struct cable *c = find_cable(name);
	unsigned side;

	if (c == NULL) {
		snprintf(err, err_size, "pair:%s: no memory, or more than %d cables", name,
		    CABLES_MAX);
		return -ENOMEM;
	}
	side = c->end[0].dev == NULL ? 0 : 1;
	if (c->end[side].dev != NULL) {
		snprintf(err, err_size,
		    "pair:%s: both ends of this cable are taken; use another name", name);
		return -EBUSY;
	}
	if (c->end[1 - side].dev == NULL)
		c->slots = slots;
	set_up_end(c, side, d, cfg, queues);
	if (c->end[1 - side].dev != NULL && connect_ends(c) < 0) {
		c->end[side].dev = NULL;
		snprintf(err, err_size, "pair:%s: no memory for the rings", name);
		return -ENOMEM;
	}
	return 0;
}

static int
pair_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	unsigned max_queues = d->stack->n_netisrs;
	uint32_t queues, slots;
	char name[NAME_MAX_BYTES];
	int r;

	cable_name(cfg->device, name);
	r = check_port(d, name, err, err_size);
	if (r == 0)
		r = dev_option_u32(cfg->device, "queues", cfg->queues, 0, NETISR_MAX, &queues, err,
		    err_size);
	if (r == 0)
		r = dev_option_u32(cfg->device, "slots", SLOTS_DFLT, 2, 65536, &slots, err,
		    err_size);
	if (r < 0)
		return r;
	if (slots & (slots - 1)) {
		snprintf(err, err_size, "pair:%s: slots must be a power of two, not %u", name,
		    slots);
		return -EINVAL;
	}
	queues = queues == 0 ? max_queues : min_u32(queues, max_queues);
	pthread_mutex_lock(&registry_mutex);
	r = plug_in(d, cfg, name, queues, slots, err, err_size);
	pthread_mutex_unlock(&registry_mutex);
	return r;
}

static void
pair_close(struct dev *d)
{
	struct end *e = d->priv;
	struct cable *c = e->cable;

	pthread_mutex_lock(&registry_mutex);
	disconnect(c);
	e->dev = NULL;
	forget_cable_if_unused(c);
	pthread_mutex_unlock(&registry_mutex);
}

/*
 * The hash that the receiving stack's key gives to an unfragmented TCP or UDP packet; false for the
 * rest.
 */
static bool
hash_frame(const struct darter_stack *s, const struct pkt *p, uint32_t *ret_hash)
{
	struct ether_view e;

	return ether_parse(p->data, p->len, &e) == WIRE_OK && e.type == ETHER_TYPE_IP4 &&
	    steer_hash(s, p->data + e.hdr_bytes, p->len - (size_t)e.hdr_bytes, ret_hash);
}

/* Where one frame goes. */
struct choice {
	unsigned rq;
	uint32_t hash;
	uint32_t flags;
};

static struct choice
choose_queue(const struct wire *w, const struct end *from, unsigned q, const struct pkt *p)
{
	const struct dev *to = w->dev[1 - from->side];
	const struct end *to_end = &from->cable->end[1 - from->side];
	unsigned n_rq = w->n_queues[1 - from->side];
	struct choice c = { .rq = q % n_rq };

	if (to_end->hashes && hash_frame(to->stack, p, &c.hash)) {
		c.flags = PKT_RX_RSS_HASH;
		c.rq = to->stack->reta[c.hash & (to->stack->reta_size - 1u)] % n_rq;
	}
	return c;
}

static void
ring_doorbell(const struct wire *w, unsigned to_side, unsigned rq)
{
	struct netisr *n = w->dev[to_side]->stack->netisr[rq];

	/* NULL: the peer's stack is still being made */
	if (n != NULL)
		netisr_doorbell(n);
}

static unsigned
send_burst(struct wire *w, struct end *e, struct netisr *n, unsigned q, struct pkt **pkts,
    unsigned count)
{
	unsigned n_rq = w->n_queues[1 - e->side];
	uint64_t told = 0;
	unsigned i;

	for (i = 0; i < count; i++) {
		struct choice c = choose_queue(w, e, q, pkts[i]);
		struct pair_ring *r = &w->ring[e->side][q * n_rq + c.rq];

		if (pkts[i]->total_len > PAIR_FRAME_MAX_BYTES) {
			NETISR_COUNT(n, CTR_drop_tx_mtu);
		} else {
			if (!pair_ring_put(r, pkts[i], c.hash, c.flags))
				break;
			told |= UINT64_C(1) << c.rq;
		}
		pkt_free(n, pkts[i]);
	}
	for (; told != 0; told &= told - 1)
		ring_doorbell(w, 1 - e->side, (unsigned)__builtin_ctzll(told));
	return i;
}

static unsigned
pair_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	struct end *e = d->priv;
	struct wire *w = enter(e, q);
	unsigned done, i;

	if (w != NULL) {
		done = send_burst(w, e, n, q, pkts, count);
		leave(e, q);
		return done;
	}
	leave(e, q);
	for (i = 0; i < count; i++)
		pkt_free(n, pkts[i]);
	netisr_count(n, CTR_drop_dev_down, count);
	return count;
}

static unsigned
pair_rx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned max)
{
	struct end *e = d->priv;
	struct wire *w = enter(e, q);
	unsigned sq, got = 0;

	if (w != NULL) {
		unsigned n_rq = w->n_queues[e->side];

		for (sq = 0; sq < w->n_queues[1 - e->side] && got < max; sq++)
			got += pair_ring_take(&w->ring[1 - e->side][sq * n_rq + q], n, d->index,
			    pkts + got, max - got);
	}
	leave(e, q);
	return got;
}

static struct time
pair_next_deadline(struct dev *d, struct netisr *n)
{
	struct end *e = d->priv;
	struct wire *w = enter(e, n->id);
	struct time next = TIME_NEVER;
	unsigned sq;

	for (sq = 0; w != NULL && sq < w->n_queues[1 - e->side]; sq++) {
		struct pair_ring *r = &w->ring[1 - e->side][sq * w->n_queues[e->side] + n->id];

		if (pair_ring_has_frames(r))
			next = n->now;
	}
	leave(e, n->id);
	return next;
}

static bool
pair_is_up(struct dev *d)
{
	struct end *e = d->priv;

	return atomic_load(&e->cable->wire) != NULL;
}

static int
pair_rx_fd(struct dev *d UNUSED, unsigned q UNUSED)
{
	return -1;
}

const struct dev_ops dev_pair_ops = {
	.name = "pair",
	.open = pair_open,
	.rx = pair_rx,
	.tx = pair_tx,
	.rx_fd = pair_rx_fd,
	.link_is_up = pair_is_up,
	.next_deadline = pair_next_deadline,
	.close = pair_close,
};
