/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP (RFC 826) with the care of RFC 5227.
 *
 * In: requests for our addresses are answered by the netisr that receives them. What the packet
 * says of its sender goes to the neighbour table: an answer to us confirms, a request for us makes
 * an entry, anything else only updates one. Packets that concern us (and announcements, whose
 * sender names itself as the target) are also copied to the other netisrs, whose tables are their
 * own; requests between others are not, lest a storm of broadcasts be multiplied by the netisrs. A
 * moved host that goes unnoticed there is found out by the probe of its stale entry.
 *
 * A sender that claims an address of ours is counted and, at most once in 10 s a netisr, answered
 * with an announcement (RFC 5227 2.4 b); we never give an address up, it was configured. Probes
 * (sender 0.0.0.0) are answered, not learned.
 */
#include <string.h>

#include "link/link_priv.h"
#include "wire/arp.h"
#include "wire/ether.h"

#define DEFEND_INTERVAL_US (10 * US_PER_SEC)

static void
drop(struct netisr *n, struct pkt *p, enum counter reason)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
}

/* Sends one ARP packet; silently not, when no buffer is free (counted). */
static void
send_arp(struct netisr *n, struct dev *d, const struct arp_view *a, const struct mac *dst)
{
	struct pkt *p = pkt_alloc(n);

	if (p == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	arp_emit(pkt_put(p, ARP_BYTES), a);
	NETISR_COUNT(n, a->op == ARP_OP_REPLY ? CTR_arp_replies_sent : CTR_arp_requests_sent);
	ether_encap(n, d, p, dst->b, ETHER_TYPE_ARP);
}

static struct mac
own_mac(const struct dev *d)
{
	struct mac m;

	memcpy(m.b, d->mac, sizeof(m.b));
	return m;
}

void
arp_request(struct netisr *n, struct dev *d, const struct ipaddr *target, const uint8_t *mac)
{
	const struct neigh_addr_ops *ops = n->stack->link->addr_ops;
	struct arp_view a = { .op = ARP_OP_REQUEST, .sender_mac = own_mac(d),
	    .target_ip = target->v4 };
	struct mac dst = MAC_BROADCAST;
	struct ipaddr src;

	if (ops == NULL || !ops->source_for(n, d, target, &src))
		return;
	a.sender_ip = src.v4;
	if (mac != NULL)
		memcpy(dst.b, mac, sizeof(dst.b));
	send_arp(n, d, &a, &dst);
}

void
neigh_announce(struct netisr *n, struct dev *d, const struct ipaddr *addr)
{
	struct arp_view a = { .op = ARP_OP_REQUEST, .sender_mac = own_mac(d) };

	if (!d->has_ether || !ipaddr_is_v4(addr))
		return;
	a.sender_ip = a.target_ip = addr->v4;
	send_arp(n, d, &a, &MAC_BROADCAST);
}

static void
answer(struct netisr *n, struct dev *d, const struct arp_view *q)
{
	struct arp_view a = {
		.op = ARP_OP_REPLY,
		.sender_mac = own_mac(d),
		.sender_ip = q->target_ip,
		.target_mac = q->sender_mac,
		.target_ip = q->sender_ip,
	};

	send_arp(n, d, &a, &q->sender_mac);
}

static bool
is_own(struct netisr *n, struct dev *d, struct be32 ip)
{
	const struct neigh_addr_ops *ops = n->stack->link->addr_ops;
	struct ipaddr a = ipaddr_v4(ip);

	return ops != NULL && ops->is_own(n, d, &a);
}

/* Senders that can be a neighbour: on one of our networks there, and an address of one host. */
static bool
can_be_neighbour(struct netisr *n, struct dev *d, struct be32 ip)
{
	const struct neigh_addr_ops *ops = n->stack->link->addr_ops;
	struct ipaddr a = ipaddr_v4(ip), src;

	return a.b[12] != 0 && a.b[12] != 127 && a.b[12] < 224 && ops != NULL &&
	    ops->source_for(n, d, &a, &src);
}

static void
defend(struct netisr *n, struct dev *d, struct be32 ip)
{
	struct ipaddr a = ipaddr_v4(ip);

	NETISR_COUNT(n, CTR_arp_addr_conflicts);
	if (n->link->has_defended &&
	    time_since_us(n->now, n->link->defended_at) < DEFEND_INTERVAL_US)
		return;
	n->link->has_defended = true;
	n->link->defended_at = n->now;
	neigh_announce(n, d, &a);
}

static void
learn(struct netisr *n, struct dev *d, const struct arp_view *a, bool is_for_us)
{
	struct ipaddr sender = ipaddr_v4(a->sender_ip);
	enum neigh_news news = NEIGH_NEWS_HEARD;

	if (!can_be_neighbour(n, d, a->sender_ip))
		return;
	if (is_for_us)
		news = a->op == ARP_OP_REPLY ? NEIGH_NEWS_ANSWERED : NEIGH_NEWS_ASKED_US;
	neigh_learn(n, d, &sender, a->sender_mac.b, news);
}

static void
copy_to_others(struct netisr *n, struct dev *d, const struct pkt *p)
{
	unsigned i;

	for (i = 0; i < n->stack->n_netisrs; i++) {
		struct pkt *copy;

		if (i == n->id)
			continue;
		copy = pkt_clone(n, p);
		if (copy == NULL) {
			NETISR_COUNT(n, CTR_drop_pkt_nomem);
			return;
		}
		copy->dev = d->index;
		if (!steer_push(n, i, copy, STEER_ARP))
			drop(n, copy, CTR_drop_steer_full);
	}
}

static bool
is_sane(const struct arp_view *a)
{
	return !mac_is_group(&a->sender_mac) && !mac_is_zero(&a->sender_mac);
}

void
arp_input(struct netisr *n, struct dev *d, struct pkt *p)
{
	struct mac own = own_mac(d);
	struct arp_view a;
	bool is_for_us, is_announcement;

	NETISR_COUNT(n, CTR_arp_rcvd);
	if (arp_parse(p->data, p->len, &a) != WIRE_OK || !is_sane(&a)) {
		drop(n, p, CTR_drop_arp_bad);
		return;
	}
	if (is_own(n, d, a.sender_ip)) {
		/* Our own words, reflected, or somebody who has our address. */
		if (!mac_eq(&a.sender_mac, &own))
			defend(n, d, a.sender_ip);
		drop(n, p, CTR_drop_arp_not_ours);
		return;
	}
	is_for_us = is_own(n, d, a.target_ip);
	is_announcement = be32_eq(a.sender_ip, a.target_ip);
	learn(n, d, &a, is_for_us);
	if (n->stack->n_netisrs > 1 && (is_for_us || is_announcement))
		copy_to_others(n, d, p);
	if (is_for_us && a.op == ARP_OP_REQUEST)
		answer(n, d, &a);
	if (is_for_us || is_announcement)
		pkt_free(n, p);
	else
		drop(n, p, CTR_drop_arp_not_ours);
}

void
arp_input_copy(struct netisr *n, struct dev *d, struct pkt *p)
{
	struct arp_view a;

	if (arp_parse(p->data, p->len, &a) == WIRE_OK)
		learn(n, d, &a, is_own(n, d, a.target_ip));
	pkt_free(n, p);
}
