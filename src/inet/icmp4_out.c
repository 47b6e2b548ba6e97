/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP for IPv4 out: echo replies and "destination unreachable".
 *
 * An echo reply is the request turned round in its own buffer: the source is the address that was
 * asked (RFC 1122 3.2.2.6), the data is untouched, so the checksum changes by the type alone (RFC
 * 1624). Options of the request are not reflected. One request makes at most one reply of the same
 * size, so there is no amplification to limit.
 *
 * Errors obey RFC 1122 3.2.2: never about an ICMP error, a packet to or from more than one host, a
 * link-layer broadcast, or a fragment but the first (those never get here). They quote as much as
 * fits 576 bytes (RFC 1812 4.3.2.3) and are limited by a token bucket per netisr with a burst of a
 * tenth of a second, at least one (RFC 1812 4.3.2.8).
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/csum.h"
#include "inet/inet_priv.h"
#include "runtime/knob.h"
#include "wire/icmp4.h"

#define ERROR_MAX_BYTES		576
#define BURST_US		(100 * US_PER_MS)
#define TOS_INTERNETWORK	0xc0	/* precedence of ICMP errors (RFC 1812 4.3.2.5) */

bool
icmp4_may_send(struct netisr *n)
{
	struct inet_netisr *in = n->inet;
	uint64_t rate = (uint64_t)knob_get(&n->stack->inet->icmp_rate_pps);
	uint64_t price_us;

	if (rate == 0)
		return false;
	price_us = US_PER_SEC / rate;
	in->icmp_tokens_us += time_since_us(n->now, in->icmp_refilled);
	in->icmp_tokens_us = min_u64(in->icmp_tokens_us, max_u64(BURST_US, price_us));
	in->icmp_refilled = n->now;
	if (in->icmp_tokens_us < price_us)
		return false;
	in->icmp_tokens_us -= price_us;
	return true;
}

/* Sends an ICMP message (data at its header) to `to`. Takes p. */
static void
send_message(struct netisr *n, struct pkt *p, const struct ipaddr *from, const struct ipaddr *to,
    uint8_t tos)
{
	struct ip_out o = { .dst = *to, .proto = IP_PROTO_ICMP, .tos = tos };
	struct ip_route r;

	if (ip_route_lookup(n->stack, to, from, &r) < 0) {
		NETISR_COUNT(n, CTR_drop_ip_no_route);
		pkt_free(n, p);
		return;
	}
	o.src = r.src;
	if (ip_output(n, p, &r, &o) == 0)
		NETISR_COUNT(n, CTR_icmp_sent);
}

void
icmp4_send_echo_reply(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	uint16_t old_word, new_word, csum;

	memcpy(&old_word, p->data, sizeof(old_word));
	p->data[0] = ICMP4_ECHO_REPLY;
	memcpy(&new_word, p->data, sizeof(new_word));
	memcpy(&csum, p->data + 2, sizeof(csum));
	csum = csum_update16(csum, old_word, new_word);
	memcpy(p->data + 2, &csum, sizeof(csum));
	/* what the receiving device said about the request is nothing to the one that sends */
	p->flags = 0;
	p->l2_len = 0;
	NETISR_COUNT(n, CTR_icmp_echo_replies);
	/* asked at a group address, we answer from one of our own */
	send_message(n, p, meta->is_broadcast ? NULL : &meta->dst, &meta->src,
	    meta->tos & (uint8_t)~IP4_ECN_MASK);
}

/* May an error be sent about this packet at all? */
static bool
is_reportable(struct netisr *n, const struct pkt *p, const struct ip_meta *meta)
{
	uint32_t src = be32_to_cpu(meta->src.v4);

	if (meta->is_broadcast || ip4_is_reserved(src) || ip4_is_multicast(src) ||
	    ip_is_broadcast(n->stack, &meta->src) || !ipaddr_is_v4(&meta->src))
		return false;
	return meta->proto != IP_PROTO_ICMP || (p->len > 0 && !icmp4_is_error(p->data[0]));
}

/*
 * The IP header that was stripped and what follows, behind room for the ICMP header. NULL: no
 * packet.
 */
static struct pkt *
quote(struct netisr *n, const struct pkt *p, const struct ip_meta *meta)
{
	uint32_t room = ERROR_MAX_BYTES - IP4_HDR_BYTES - ICMP4_HDR_BYTES - meta->ip_hlen;
	uint32_t body = min_u32(p->total_len, room);
	struct pkt *e = pkt_alloc(n);
	uint8_t *out;

	if (e == NULL)
		return NULL;
	out = pkt_put(e, (uint16_t)(ICMP4_HDR_BYTES + meta->ip_hlen + body));
	memcpy(out + ICMP4_HDR_BYTES, p->data - meta->ip_hlen, meta->ip_hlen);
	pkt_copy_out(p, 0, out + ICMP4_HDR_BYTES + meta->ip_hlen, body);
	return e;
}

void
icmp_send_unreach(struct netisr *n, const struct pkt *p, const struct ip_meta *meta,
    enum ip_unreach code)
{
	struct icmp4_view v = { .type = ICMP4_UNREACH, .code = (uint8_t)code };
	struct pkt *e;

	if (!is_reportable(n, p, meta))
		return;
	if (!icmp4_may_send(n)) {
		NETISR_COUNT(n, CTR_drop_icmp_rate);
		return;
	}
	e = quote(n, p, meta);
	if (e == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	v.data = e->data + ICMP4_HDR_BYTES;
	v.data_bytes = e->len - (size_t)ICMP4_HDR_BYTES;
	icmp4_emit(e->data, &v);
	send_message(n, e, &meta->dst, &meta->src, TOS_INTERNETWORK);
}
