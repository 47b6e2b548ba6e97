/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network layer as a layer of the stack: set-up, knobs, what the link layer asks of it, and the
 * gratuitous ARPs of our addresses.
 *
 * Announcements (RFC 5227 2.3): after start, and when an address is added, each address of a device
 * is announced net.inet.announce_count times, two seconds apart, by netisr 0. A device whose link
 * is down is waited for, a minute at most.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "inet/inet_priv.h"
#include "link/ether.h"
#include "link/neigh.h"
#include "runtime/knob.h"
#include "wire/ether.h"

#define ANNOUNCE_INTERVAL_US	(2 * US_PER_SEC)
#define ANNOUNCE_RETRY_US	(1 * US_PER_SEC)
#define ANNOUNCE_WAITS_MAX	60
#define KEY_OF_IDS		2	/* index into stack.secret */

void
ip_register(struct darter_stack *s, uint8_t proto, const struct ip_proto *ops)
{
	s->inet->proto[proto] = ops;
}

static bool
on_is_own(struct netisr *n, struct dev *d, const struct ipaddr *a)
{
	const struct inet_addr *own;

	/* 127/8 is ours, but nobody on a link may ask for it */
	if (!ipaddr_is_v4(a) || a->b[12] == 127)
		return false;
	own = inet_find_addr(inet_world(n->stack), be32_to_cpu(a->v4));
	/*
	 * addresses of the loopback are on no link and answered for on all; those of other devices
	 * are not
	 */
	return own != NULL && (own->dev == d || own->dev->is_loop);
}

static bool
on_source_for(struct netisr *n, struct dev *d, const struct ipaddr *target, struct ipaddr *ret_src)
{
	uint32_t src;

	if (!ipaddr_is_v4(target) ||
	    !inet_source_on_link(inet_world(n->stack), d, be32_to_cpu(target->v4), &src))
		return false;
	*ret_src = ipaddr_v4_cpu(src);
	return true;
}

/*
 * A packet of ours whose next hop does not answer: its transport hears what an ICMP from a router
 * would say.
 */
static void
on_unreachable(struct netisr *n, struct dev *d, struct pkt *p)
{
	struct ip_error e = { .err = EHOSTUNREACH, .is_soft = true };
	struct ip4_view v;

	if (ip4_parse_quote(p->data, p->len, &v) == WIRE_OK && v.payload_bytes >= 8)
		icmp4_tell_transport(n, d, &v, &e);
	pkt_free(n, p);
}

static const struct neigh_addr_ops neigh_ops = {
	.is_own = on_is_own,
	.source_for = on_source_for,
	.unreachable = on_unreachable,
};

static void
announce_device(struct netisr *n, struct dev *d)
{
	const struct inet_world *w = inet_world(n->stack);
	unsigned i;

	for (i = 0; i < w->n_addrs; i++) {
		struct ipaddr a = ipaddr_v4_cpu(w->addrs[i].addr);

		if (w->addrs[i].dev == d)
			neigh_announce(n, d, &a);
	}
}

static void
on_announce_timer(struct netisr *n, struct timer *t)
{
	struct inet_netisr *in = n->inet;
	bool waits = false, owes = false;
	unsigned i;

	for (i = 0; i < dev_count(n->stack); i++) {
		struct dev *d = dev_get(n->stack, i);

		if (in->announcements[i] == 0)
			continue;
		if (d->ops->link_is_up != NULL && !d->ops->link_is_up(d)) {
			waits = true;
			continue;
		}
		announce_device(n, d);
		in->announcements[i]--;
		owes |= in->announcements[i] != 0;
	}
	if (waits && ++in->announce_waits < ANNOUNCE_WAITS_MAX)
		timer_arm(&n->wheel, t, time_add_us(n->now, ANNOUNCE_RETRY_US));
	else if (owes)
		timer_arm(&n->wheel, t, time_add_us(n->now, ANNOUNCE_INTERVAL_US));
}

static void
owe_announcements(struct netisr *n, const struct dev *d)
{
	n->inet->announcements[d->index] = (uint8_t)knob_get(&n->stack->inet->announce_count);
	n->inet->announce_waits = 0;
}

void
inet_announce(struct netisr *n, const struct dev *d)
{
	owe_announcements(n, d);
	on_announce_timer(n, &n->inet->announce_timer);
}

/* The first round: knobs have their configured values by now. */
static void
on_first_round(struct netisr *n, struct timer *t)
{
	unsigned i;

	t->fire = on_announce_timer;
	for (i = 0; i < dev_count(n->stack); i++) {
		if (dev_get(n->stack, i)->has_ether)
			owe_announcements(n, dev_get(n->stack, i));
	}
	on_announce_timer(n, t);
}

static int
register_knobs(struct darter_stack *s)
{
	struct inet_stack *in = s->inet;
	const struct knob knobs[] = {
		{ .name = "net.inet.ip.ttl", .value = &in->ttl,
		    .text = "time to live of packets sent, in hops",
		    .type = KNOB_INT, .dflt = 64, .min = 1, .max = 255 },
		{ .name = "net.inet.icmp.bmcastecho", .value = &in->echo_broadcast,
		    .text = "answer echo requests sent to a broadcast or multicast address",
		    .type = KNOB_BOOL, .dflt = 0, .min = 0, .max = 1 },
		{ .name = "net.inet.icmp.rate_pps", .value = &in->icmp_rate_pps,
		    .text = "ICMP errors a second that a netisr sends at most; 0 sends none",
		    .type = KNOB_INT, .dflt = 200, .min = 0, .max = 1000000 },
		{ .name = "net.inet.announce_count", .value = &in->announce_count,
		    .text = "gratuitous ARPs sent for each address, two seconds apart",
		    .type = KNOB_INT, .dflt = 2, .min = 0, .max = 10 },
	};

	return knob_register(s, knobs, ARRAY_LEN(knobs));
}

static int
inet_stack_init(struct darter_stack *s, char *err, size_t err_size)
{
	int r;

	s->inet = calloc(1, sizeof(*s->inet));
	if (s->inet == NULL) {
		snprintf(err, err_size, "network layer: out of memory");
		return -ENOMEM;
	}
	s->inet->id_key = s->secret[KEY_OF_IDS];
	r = register_knobs(s);
	if (r < 0)
		snprintf(err, err_size, "network layer: %s", strerror(-r));
	else
		r = inet_world_init(s, err, err_size);
	if (r < 0) {
		free(s->inet);
		s->inet = NULL;
		return r;
	}
	ip_register(s, IP_PROTO_ICMP, &icmp4_proto);
	ether_register(s, ETHER_TYPE_IP4, ip4_input);
	neigh_register(s, &neigh_ops);
	return 0;
}

static void
inet_stack_fini(struct darter_stack *s)
{
	inet_world_fini(s);
	free(s->inet);
	s->inet = NULL;
}

static int
inet_netisr_init(struct netisr *n, char *err, size_t err_size)
{
	struct inet_netisr *in = calloc(1, sizeof(*in));

	if (in == NULL) {
		snprintf(err, err_size, "network layer: out of memory");
		return -ENOMEM;
	}
	in->netisr = n;
	in->icmp_tokens_us = US_PER_SEC;
	in->icmp_refilled = n->now;
	n->stack->random(n->stack, in->ids, sizeof(in->ids));
	timer_init(&in->announce_timer, on_first_round);
	n->inet = in;
	if (n->id == 0)
		timer_arm(&n->wheel, &in->announce_timer, n->now);
	return 0;
}

static void
inet_netisr_fini(struct netisr *n)
{
	timer_disarm(&n->wheel, &n->inet->announce_timer);
	free(n->inet);
	n->inet = NULL;
}

const struct layer inet_layer = {
	.name = "inet",
	.stack_init = inet_stack_init,
	.stack_fini = inet_stack_fini,
	.netisr_init = inet_netisr_init,
	.netisr_fini = inet_netisr_fini,
};
