/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 in: every packet is proved to be well-formed and meant for us before a protocol sees it (RFC
 * 791 3.1, RFC 1122 3.2.1).
 *
 * In order: version and lengths; header checksum, unless the device has checked it; padding cut;
 * time to live; source and destination that may be on a wire; options; is it ours; fragments;
 * protocol. Each failure is a named drop, silent on the wire but for an unknown protocol (ICMP
 * protocol unreachable, RFC 1122 3.2.2.1).
 *
 * Decisions:
 * - A time to live of 0 is dropped ("must be destroyed", RFC 791 3.1); 1 is delivered, as RFC 1122
 *   3.2.1.7 demands of hosts. No host sends 0.
 * - Source routes are refused (RFC 7126 4.3, 4.4); other options are checked for form and ignored.
 *   No Parameter Problem is sent: it helps nobody but a scanner.
 * - Our own addresses as source from outside are martians, beside those of RFC 1122 3.2.1.3.
 * - A unicast packet in a broadcast frame is dropped (RFC 1122 3.3.6).
 * - Groups: 224.0.0.1 only; nothing can be joined in this version.
 * - Fragments are counted and dropped: no reassembly in this version. TCP never sends them and path
 *   MTU discovery avoids them.
 */
#include "inet/inet_priv.h"

#include "base/bytes.h"

/* What a packet is to us. */
enum ip4_fate {
	FATE_UNICAST,
	FATE_GROUP,
	FATE_DROP
};

static void
drop(struct netisr *n, struct pkt *p, enum counter reason)
{
	NETISR_COUNT(n, reason);
	pkt_free(n, p);
}

static enum counter
reason_of_parse_error(int err)
{
	switch (err) {
	case WIRE_ERR_SHORT:
		return CTR_drop_ip_short;
	case WIRE_ERR_VERSION:
		return CTR_drop_ip_version;
	case WIRE_ERR_HLEN:
		return CTR_drop_ip_hlen;
	default:
		return CTR_drop_ip_len;
	}
}

/* Version, lengths, checksum. CTR_MAX when the header can be believed. */
static enum counter
check_header(const struct pkt *p, struct ip4_view *v)
{
	int err;

	/* the first segment must hold the header; the packet may go on in others */
	if (p->len < IP4_HDR_BYTES)
		return CTR_drop_ip_short;
	err = ip4_parse(p->data, p->total_len, v);
	if (err != WIRE_OK)
		return reason_of_parse_error(err);
	if (v->hdr_bytes > p->len)
		return CTR_drop_ip_hlen;
	if (p->flags & PKT_RX_IP_CSUM_BAD)
		return CTR_drop_rx_csum_hw;
	if (!(p->flags & (PKT_RX_IP_CSUM_GOOD | PKT_RX_LOOP)) &&
	    !ip4_csum_ok(p->data, v->hdr_bytes))
		return CTR_drop_ip_csum;
	if (v->ttl == 0)
		return CTR_drop_ip_ttl;
	return CTR_MAX;
}

/* Sources that no honest packet has (RFC 1122 3.2.1.3; RFC 1812 5.3.7). */
static bool
is_martian_source(const struct inet_world *w, const struct dev *d, uint32_t src)
{
	if (d->is_loop)
		return false;
	return ip4_is_reserved(src) || ip4_is_loopback(src) || ip4_is_multicast(src) ||
	    src == IP4_LIMITED_BROADCAST || inet_find_addr(w, src) != NULL ||
	    inet_find_bcast(w, src) != NULL;
}

static bool
is_martian_destination(const struct dev *d, uint32_t dst)
{
	return ip4_is_reserved(dst) || (ip4_is_loopback(dst) && !d->is_loop);
}

static enum counter
check_options(const struct ip4_view *v)
{
	struct ip4_opts o;

	if (v->opts_bytes == 0)
		return CTR_MAX;
	if (ip4_opts_parse(v->opts, v->opts_bytes, &o) != WIRE_OK)
		return CTR_drop_ip_options_bad;
	return o.has_source_route ? CTR_drop_ip_options_route : CTR_MAX;
}

static enum ip4_fate
whose(const struct inet_world *w, const struct dev *d, const struct pkt *p, uint32_t dst,
    enum counter *ret_reason)
{
	if (inet_find_addr(w, dst) != NULL || (d->is_loop && ip4_is_loopback(dst))) {
		*ret_reason = CTR_drop_ip_bcast;
		return p->flags & PKT_RX_GROUP ? FATE_DROP : FATE_UNICAST;
	}
	if (dst == IP4_LIMITED_BROADCAST || dst == IP4_ALL_HOSTS || inet_find_bcast(w, dst) != NULL)
		return FATE_GROUP;
	*ret_reason = ip4_is_multicast(dst) ? CTR_drop_ip_bcast : CTR_drop_ip_dst_not_ours;
	return FATE_DROP;
}

static void
deliver(struct netisr *n, struct dev *d, struct pkt *p, const struct ip4_view *v, bool is_group)
{
	const struct ip_proto *ops = n->stack->inet->proto[v->proto];
	struct ip_meta meta = {
		.src = ipaddr_v4(v->src),
		.dst = ipaddr_v4(v->dst),
		.dev = d,
		.proto = v->proto,
		.ttl = v->ttl,
		.tos = v->tos,
		.is_broadcast = is_group,
		.ip_hlen = v->hdr_bytes,
	};

	p->l3_len = v->hdr_bytes;
	pkt_pull(p, v->hdr_bytes);
	if (ops != NULL && ops->input != NULL) {
		ops->input(n, p, &meta);
		return;
	}
	icmp_send_unreach(n, p, &meta, IP_UNREACH_PROTO);
	drop(n, p, CTR_drop_ip_proto);
}

void
ip4_input(struct netisr *n, struct dev *d, struct pkt *p)
{
	const struct inet_world *w = inet_world(n->stack);
	struct ip4_view v;
	enum counter reason;
	enum ip4_fate fate;

	NETISR_COUNT(n, CTR_ip_rcvd);
	reason = check_header(p, &v);
	if (reason == CTR_MAX && is_martian_source(w, d, be32_to_cpu(v.src)))
		reason = CTR_drop_ip_src_martian;
	if (reason == CTR_MAX && is_martian_destination(d, be32_to_cpu(v.dst)))
		reason = CTR_drop_ip_dst_martian;
	if (reason == CTR_MAX)
		reason = check_options(&v);
	if (reason != CTR_MAX) {
		drop(n, p, reason);
		return;
	}
	fate = whose(w, d, p, be32_to_cpu(v.dst), &reason);
	if (fate == FATE_DROP) {
		drop(n, p, reason);
		return;
	}
	if (ip4_is_fragment(&v)) {
		NETISR_COUNT(n, CTR_ip_frags_rcvd);
		drop(n, p, CTR_drop_ip_fragment);
		return;
	}
	pkt_trim(n, p, v.total_bytes);
	deliver(n, d, p, &v, fate == FATE_GROUP);
}
