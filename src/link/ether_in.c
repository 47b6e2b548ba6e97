/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet in: each frame of a receive burst is checked, stripped of its header and handed to the
 * protocol, here or at the netisr that owns it.
 *
 * Accepted are frames to our address, broadcast, and IPv4 multicast (01:00:5e, RFC 1112 6.4; which
 * groups, IP decides). VLANs (802.1Q): an untagged port takes untagged and priority-tagged frames
 * (VID 0), a tagged one its own VID only. Frames shorter than the Ethernet minimum are fine,
 * padding is cut by the protocol that knows its length. 802.3 length fields and foreign types are
 * dropped by name.
 *
 * After this file p->data is at the network header and p->l2_len says how many bytes of link header
 * lie in front of it. ARP is handled where it arrives and copied to the other netisrs (arp.c).
 */
#include <string.h>

#include "link/capture.h"
#include "link/link_priv.h"
#include "link/rss_check.h"
#include "wire/ether.h"

#define PREFETCH_AHEAD 4

static void
drop(struct netisr *n, struct pkt *p, enum counter reason)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
}

void
ether_register(struct darter_stack *s, uint16_t ethertype, ether_input_fn *fn)
{
	struct link_stack *l = s->link;
	unsigned i;

	for (i = 0; i < l->n_protos; i++) {
		if (l->proto[i].ethertype == ethertype)
			break;
	}
	if (i == LINK_ETHERTYPES)
		return;
	l->proto[i] = (struct link_proto){ ethertype, fn };
	if (i == l->n_protos)
		l->n_protos++;
}

/*
 * The type of a packet whose link header, if any, lies in front of it: the tag, if any, comes
 * before the type.
 */
static uint16_t
type_of(const struct pkt *p)
{
	if (p->l2_len != 0)
		return load_be16(p->data - 2);
	return p->len > 0 && p->data[0] >> 4 == 6 ? ETHER_TYPE_IP6 : ETHER_TYPE_IP4;
}

static void
deliver(struct netisr *n, struct dev *d, struct pkt *p, uint16_t type)
{
	struct link_stack *l = n->stack->link;
	unsigned i;

	for (i = 0; i < l->n_protos; i++) {
		if (l->proto[i].ethertype == type) {
			l->proto[i].input(n, d, p);
			return;
		}
	}
	drop(n, p, CTR_drop_ether_proto);
}

void
ether_deliver(struct netisr *n, struct dev *d, struct pkt *p)
{
	deliver(n, d, p, type_of(p));
}

static bool
is_for_us(const struct dev *d, struct pkt *p, const struct ether_view *e)
{
	static const uint8_t ip4_group[3] = { 0x01, 0x00, 0x5e };

	if (memcmp(e->dst.b, d->mac, ETHER_ADDR_BYTES) == 0)
		return true;
	if (!mac_is_broadcast(&e->dst) && memcmp(e->dst.b, ip4_group, sizeof(ip4_group)) != 0)
		return false;
	p->flags |= PKT_RX_GROUP;
	return true;
}

static bool
is_our_vlan(const struct dev *d, const struct pkt *p, const struct ether_view *e)
{
	uint16_t vid = 0;

	if (e->has_vlan)
		vid = e->vlan_tci & VLAN_ID_MASK;
	else if (p->flags & PKT_RX_VLAN)
		vid = p->vlan_tci & VLAN_ID_MASK;
	return vid == d->vlan;
}

/* Checks and strips the header. CTR_MAX when the frame is good, else the reason to drop it. */
static enum counter
strip_header(const struct dev *d, struct pkt *p)
{
	struct ether_view e;

	if (ether_parse(p->data, p->len, &e) != WIRE_OK)
		return CTR_drop_ether_short;
	if (mac_is_group(&e.src))
		return CTR_drop_ether_src;
	if (!is_our_vlan(d, p, &e))
		return CTR_drop_vlan;
	if (!is_for_us(d, p, &e))
		return CTR_drop_ether_dst;
	p->l2_len = e.hdr_bytes;
	pkt_pull(p, e.hdr_bytes);
	return CTR_MAX;
}

static void
count_steered(struct netisr *n, const struct dev *d, const struct pkt *p, enum steer_cause cause)
{
	NETISR_COUNT(n, CTR_steered_pkts);
	if (cause == STEER_CAUSE_QUOTE)
		NETISR_COUNT(n, CTR_steered_icmp);
	else if (dev_hashes(d) && (p->flags & PKT_RX_RSS_HASH))
		NETISR_COUNT(n, CTR_steered_reta);
	else
		NETISR_COUNT(n, CTR_steered_no_rss);
}

static void
steer_or_deliver(struct netisr *n, struct dev *d, struct pkt *p)
{
	uint16_t type = type_of(p);
	enum steer_cause cause;
	unsigned owner;

	if (n->stack->n_netisrs == 1) {
		deliver(n, d, p, type);
		return;
	}
	rss_check_some(n, d, p, type);
	owner = steer_owner(n->stack, d, p, type, n->id, &cause);
	if (owner == n->id) {
		deliver(n, d, p, type);
		return;
	}
	p->owner = (uint8_t)owner;
	if (!steer_push(n, owner, p, STEER_RX)) {
		drop(n, p, CTR_drop_steer_full);
		return;
	}
	count_steered(n, d, p, cause);
}

static void
input_one(struct netisr *n, struct dev *d, struct pkt *p, struct capture *cap)
{
	enum counter reason;

	p->dev = d->index;
	p->next = NULL;
	if (d->is_loop) {
		deliver(n, d, p, type_of(p));
		return;
	}
	if (unlikely(cap != NULL))
		capture_frame(cap, n, p);
	p->l2_len = 0;
	if (d->has_ether) {
		reason = strip_header(d, p);
		if (reason != CTR_MAX) {
			drop(n, p, reason);
			return;
		}
	}
	steer_or_deliver(n, d, p);
}

void
ether_input(struct netisr *n, struct dev *d, struct pkt **pkts, unsigned count)
{
	struct capture *cap = published_load(&d->capture);
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < count && i < PREFETCH_AHEAD; i++)
		prefetch(pkts[i]->data);
	for (i = 0; i < count; i++) {
		if (i + PREFETCH_AHEAD < count)
			prefetch(pkts[i + PREFETCH_AHEAD]->data);
		bytes += pkts[i]->total_len;
		input_one(n, d, pkts[i], cap);
	}
	netisr_count(n, CTR_rx_pkts, count);
	netisr_count(n, CTR_rx_bytes, bytes);
}
