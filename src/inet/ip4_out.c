/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 out: the header in front of a transport's packet, and off along a route that the transport
 * has looked up.
 *
 * The identification field (RFC 6864): 0 in datagrams that may not be fragmented, where it means
 * nothing; else from a counter chosen by a keyed hash of source, destination and protocol, started
 * at random, in steps of the number of netisrs so that two of them never use the same value for one
 * pair. An observer can't tell our traffic to others from it.
 *
 * Nothing is fragmented here: what is longer than the route's MTU is refused with EMSGSIZE, and
 * large TCP segments (TSO) are cut by the device or the link layer. Packets to a group are not
 * looped back to this host.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/csum.h"
#include "inet/inet_priv.h"
#include "link/ether.h"
#include "runtime/knob.h"

#define MULTICAST_TTL 1	/* by default not past the link (RFC 1112 6.1) */

static int
refuse(struct netisr *n, struct pkt *p, enum counter reason, int err)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
	return err;
}

static uint16_t
next_id(struct netisr *n, const struct ip_out *o)
{
	struct {
		struct be32 src;
		struct be32 dst;
		uint64_t proto;
	} key = { o->src.v4, o->dst.v4, o->proto };
	uint64_t h = siphash(&n->stack->inet->id_key, &key, sizeof(key));
	uint16_t *counter = &n->inet->ids[h % INET_IDS];

	*counter = (uint16_t)(*counter + 1);
	return (uint16_t)(*counter * n->stack->n_netisrs + n->id + (h >> 48));
}

static uint8_t
ttl_of(struct netisr *n, const struct ip_out *o)
{
	if (o->ttl != 0)
		return o->ttl;
	if (ip4_is_multicast(be32_to_cpu(o->dst.v4)))
		return MULTICAST_TTL;
	return (uint8_t)knob_get(&n->stack->inet->ttl);
}

static void
write_header(struct netisr *n, struct pkt *p, const struct ip_route *r, const struct ip_out *o,
    uint8_t *hdr)
{
	struct ip4_hdr h = {
		.ver_hlen = 0x45,
		.tos = o->tos,
		.total_len = be16_from_cpu((uint16_t)p->total_len),
		.frag = be16_from_cpu(o->dont_fragment ? IP4_DF : 0),
		.ttl = ttl_of(n, o),
		.proto = o->proto,
		.src = o->src.v4,
		.dst = o->dst.v4,
	};

	if (!o->dont_fragment)
		h.id = be16_from_cpu(next_id(n, o));
	/*
	 * twenty bytes are summed faster than a device is asked, unless it is asked for the
	 * payload's sum anyway
	 */
	if (r->dev->caps & DEV_CAP_TX_IP_CSUM)
		p->flags |= PKT_TX_IP_CSUM;
	else
		h.csum.raw = csum_fold(csum_partial(&h, sizeof(h), 0));
	memcpy(hdr, &h, sizeof(h));
	p->l3_len = IP4_HDR_BYTES;
}

int
ip_output(struct netisr *n, struct pkt *p, const struct ip_route *r, const struct ip_out *o)
{
	uint32_t total_bytes = p->total_len + IP4_HDR_BYTES;
	uint8_t *hdr;

	if (!ipaddr_is_v4(&o->src) || !ipaddr_is_v4(&o->dst))
		return refuse(n, p, CTR_drop_ip_no_route, -EAFNOSUPPORT);
	if (total_bytes > IP4_MAX_BYTES || (total_bytes > r->mtu && !(p->flags & PKT_TX_TSO)))
		return refuse(n, p, CTR_drop_ip_needs_frag, -EMSGSIZE);
	hdr = pkt_push(p, IP4_HDR_BYTES);
	if (hdr == NULL)
		return refuse(n, p, CTR_drop_pkt_too_long, -ENOBUFS);
	write_header(n, p, r, o, hdr);
	NETISR_COUNT(n, CTR_ip_sent);
	ether_output(n, r->dev, p, &r->next_hop);
	return 0;
}
