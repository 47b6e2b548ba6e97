/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line a packet, in tcpdump's words, so that eyes and scripts used to it read ours.
 *
 * Works on whatever bytes come: each layer is parsed with the parsers of this folder, and where one
 * refuses, the line says which and ends. Sequence numbers are absolute, since there is no state.
 * IPv4 packets cut short by a capture are described as far as they go. Pure.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ipaddr.h"
#include "wire/arp.h"
#include "wire/dump.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"
#include "wire/udp.h"

struct line {
	char *buf;
	size_t size;
	size_t len;		/* always below size */
};

/* Source and destination, kept until the ports are known. */
struct ends {
	char src[IPADDR_STR_MAX];
	char dst[IPADDR_STR_MAX];
};

static void add(struct line *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
add(struct line *l, const char *fmt, ...)
{
	size_t room = l->size - l->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += min_size((size_t)n, room - 1);
}

static void
add_arp(struct line *l, const uint8_t *p, size_t len)
{
	char target[IPADDR_STR_MAX], sender[IPADDR_STR_MAX], mac[MAC_STR_MAX];
	struct ipaddr addr;
	struct arp_view v;

	if (arp_parse(p, len, &v) != WIRE_OK) {
		add(l, "ARP malformed, length %zu", len);
		return;
	}
	addr = ipaddr_v4(v.target_ip);
	ipaddr_format(&addr, target, sizeof(target));
	addr = ipaddr_v4(v.sender_ip);
	ipaddr_format(&addr, sender, sizeof(sender));
	if (v.op == ARP_OP_REQUEST)
		add(l, "ARP, Request who-has %s tell %s", target, sender);
	else
		add(l, "ARP, Reply %s is-at %s", sender,
		    mac_format(&v.sender_mac, mac, sizeof(mac)));
}

static void
add_tcp_option(struct line *l, const char **sep, const char *text)
{
	add(l, "%s%s", *sep, text);
	*sep = ",";
}

static void
add_tcp_options(struct line *l, const struct tcp_view *v)
{
	const char *sep = ", options [";
	struct tcp_opts o;
	char text[64];
	int err, i;

	err = tcp_opts_parse(v->opts, v->opts_bytes, (v->flags & TH_SYN) != 0, &o);
	if (o.has_mss) {
		snprintf(text, sizeof(text), "mss %u", o.mss);
		add_tcp_option(l, &sep, text);
	}
	if (o.sack_ok)
		add_tcp_option(l, &sep, "sackOK");
	if (o.has_ts) {
		snprintf(text, sizeof(text), "TS val %u ecr %u", o.tsval, o.tsecr);
		add_tcp_option(l, &sep, text);
	}
	if (o.has_wscale) {
		snprintf(text, sizeof(text), "wscale %u", o.wscale);
		add_tcp_option(l, &sep, text);
	}
	for (i = 0; i < o.sack_count; i++) {
		snprintf(text, sizeof(text), "sack {%u:%u}", o.sack[i].start, o.sack[i].end);
		add_tcp_option(l, &sep, text);
	}
	if (err != 0)
		add_tcp_option(l, &sep, "malformed");
	if (sep[1] == '\0')
		add(l, "]");
}

/* l4_bytes is the length the IP header claims, `len` what is there. */
static void
add_tcp(struct line *l, const struct ends *e, const uint8_t *p, size_t len, size_t l4_bytes)
{
	struct tcp_view v;
	char flags[10];
	size_t payload_bytes;

	if (tcp_parse(p, len, &v) != WIRE_OK) {
		add(l, "%s > %s: TCP malformed, length %zu", e->src, e->dst, l4_bytes);
		return;
	}
	payload_bytes = l4_bytes - v.hdr_bytes;
	add(l, "%s.%u > %s.%u: Flags [%s]", e->src, v.sport, e->dst, v.dport,
	    tcp_flags_format(v.flags, flags, sizeof(flags)));
	if (payload_bytes > 0)
		add(l, ", seq %u:%u", v.seq, v.seq + (uint32_t)payload_bytes);
	else
		add(l, ", seq %u", v.seq);
	if (v.flags & TH_ACK)
		add(l, ", ack %u", v.ack);
	add(l, ", win %u", v.wnd);
	if (v.flags & TH_URG)
		add(l, ", urg %u", v.urg);
	add_tcp_options(l, &v);
	add(l, ", length %zu", payload_bytes);
}

static void
add_udp(struct line *l, const struct ends *e, const uint8_t *p, size_t len, size_t l4_bytes)
{
	struct udp_hdr h;
	unsigned total;

	if (len < UDP_HDR_BYTES) {
		add(l, "%s > %s: UDP malformed, length %zu", e->src, e->dst, l4_bytes);
		return;
	}
	memcpy(&h, p, sizeof(h));
	total = be16_to_cpu(h.len);
	add(l, "%s.%u > %s.%u: UDP, length ", e->src, be16_to_cpu(h.sport), e->dst,
	    be16_to_cpu(h.dport));
	if (total < UDP_HDR_BYTES || total > l4_bytes)
		add(l, "field bad (%u of %zu)", total, l4_bytes);
	else
		add(l, "%u", total - UDP_HDR_BYTES);
}

static const char *
icmp4_error_name(const struct icmp4_view *v)
{
	static const char *const unreach[] = {
		"net unreachable", "host unreachable", "protocol unreachable", "port unreachable",
		"unreachable - need to frag", "source route failed",
	};

	switch (v->type) {
	case ICMP4_UNREACH:
		return v->code < ARRAY_LEN(unreach) ? unreach[v->code] : "unreachable";
	case ICMP4_TIME_EXCEEDED:
		return "time exceeded";
	case ICMP4_PARAM_PROBLEM:
		return "parameter problem";
	case ICMP4_REDIRECT:
		return "redirect";
	default:
		return "source quench";
	}
}

/* Addresses, protocol and ports of the packet an error quotes; never deeper. */
static void
add_quote(struct line *l, const uint8_t *p, size_t len)
{
	char src[IPADDR_STR_MAX], dst[IPADDR_STR_MAX];
	struct ipaddr addr;
	struct ip4_view v;

	if (ip4_parse_quote(p, len, &v) != WIRE_OK)
		return;
	addr = ipaddr_v4(v.src);
	ipaddr_format(&addr, src, sizeof(src));
	addr = ipaddr_v4(v.dst);
	ipaddr_format(&addr, dst, sizeof(dst));
	if ((v.proto == IP_PROTO_TCP || v.proto == IP_PROTO_UDP) && v.payload_bytes >= 4)
		add(l, " (%s %s.%u > %s.%u)", v.proto == IP_PROTO_TCP ? "TCP" : "UDP", src,
		    load_be16(v.payload), dst, load_be16(v.payload + 2));
	else
		add(l, " (%s > %s, proto %u)", src, dst, v.proto);
}

static void
add_icmp4(struct line *l, const struct ends *e, const uint8_t *p, size_t len, size_t l4_bytes)
{
	struct icmp4_view v;

	add(l, "%s > %s: ICMP ", e->src, e->dst);
	if (icmp4_parse(p, len, &v) != WIRE_OK) {
		add(l, "malformed, length %zu", l4_bytes);
		return;
	}
	if (v.type == ICMP4_ECHO || v.type == ICMP4_ECHO_REPLY) {
		add(l, "echo %s, id %u, seq %u", v.type == ICMP4_ECHO ? "request" : "reply", v.id,
		    v.seq);
	} else if (icmp4_is_error(v.type)) {
		add(l, "%s", icmp4_error_name(&v));
		if (v.next_mtu_bytes != 0)
			add(l, " (mtu %u)", v.next_mtu_bytes);
		add_quote(l, v.data, v.data_bytes);
	} else {
		add(l, "type %u code %u", v.type, v.code);
	}
	add(l, ", length %zu", l4_bytes);
}

static void
add_transport(struct line *l, const struct ends *e, uint8_t proto, const uint8_t *p, size_t len,
    size_t l4_bytes)
{
	switch (proto) {
	case IP_PROTO_TCP:
		add_tcp(l, e, p, len, l4_bytes);
		break;
	case IP_PROTO_UDP:
		add_udp(l, e, p, len, l4_bytes);
		break;
	case IP_PROTO_ICMP:
		add_icmp4(l, e, p, len, l4_bytes);
		break;
	default:
		add(l, "%s > %s: proto %u, length %zu", e->src, e->dst, proto, l4_bytes);
		break;
	}
}

static void
add_ip4(struct line *l, const uint8_t *p, size_t len)
{
	struct ipaddr addr;
	struct ip4_view v;
	struct ends e;

	add(l, "IP ");
	if (ip4_parse_quote(p, len, &v) != WIRE_OK) {
		add(l, "malformed, length %zu", len);
		return;
	}
	addr = ipaddr_v4(v.src);
	ipaddr_format(&addr, e.src, sizeof(e.src));
	addr = ipaddr_v4(v.dst);
	ipaddr_format(&addr, e.dst, sizeof(e.dst));
	if (ip4_is_fragment(&v))
		add(l, "%s > %s: frag (id %u, offset %u%s), proto %u, length %u", e.src, e.dst,
		    v.id, v.frag_offset_bytes, v.has_mf ? "+" : "", v.proto, v.payload_bytes);
	else
		add_transport(l, &e, v.proto, v.payload, v.payload_bytes,
		    (size_t)v.total_bytes - v.hdr_bytes);
	if (!ip4_csum_ok(p, v.hdr_bytes))
		add(l, ", bad IP cksum");
	if (v.total_bytes > len)
		add(l, ", %zu bytes missing", v.total_bytes - len);
}

static void
add_ip6(struct line *l, const uint8_t *p, size_t len)
{
	struct ip6_view v;
	struct ends e;

	add(l, "IP6 ");
	if (ip6_parse(p, len, &v) != WIRE_OK) {
		add(l, "malformed, length %zu", len);
		return;
	}
	ipaddr_format(&v.src, e.src, sizeof(e.src));
	ipaddr_format(&v.dst, e.dst, sizeof(e.dst));
	add_transport(l, &e, v.next, v.payload, v.payload_bytes, v.payload_bytes);
}

static void
add_ip(struct line *l, const uint8_t *p, size_t len)
{
	if (len > 0 && p[0] >> 4 == 6)
		add_ip6(l, p, len);
	else
		add_ip4(l, p, len);
}

static void
add_ether(struct line *l, const uint8_t *frame, size_t len)
{
	char src[MAC_STR_MAX], dst[MAC_STR_MAX];
	struct ether_view v;

	if (ether_parse(frame, len, &v) != WIRE_OK) {
		add(l, "Ethernet malformed, length %zu", len);
		return;
	}
	if (v.has_vlan)
		add(l, "vlan %u, ", v.vlan_tci & VLAN_ID_MASK);
	frame += v.hdr_bytes;
	len -= v.hdr_bytes;
	switch (v.type) {
	case ETHER_TYPE_IP4:
		add_ip4(l, frame, len);
		break;
	case ETHER_TYPE_IP6:
		add_ip6(l, frame, len);
		break;
	case ETHER_TYPE_ARP:
		add_arp(l, frame, len);
		break;
	default:
		add(l, "%s > %s, ethertype 0x%04x, length %zu",
		    mac_format(&v.src, src, sizeof(src)), mac_format(&v.dst, dst, sizeof(dst)),
		    v.type, len);
		break;
	}
}

int
dump_packet(const uint8_t *frame, size_t len, bool has_ether, char *buf, size_t size)
{
	struct line l = { .buf = buf, .size = size };

	if (size == 0)
		return 0;
	buf[0] = '\0';
	if (has_ether)
		add_ether(&l, frame, len);
	else
		add_ip(&l, frame, len);
	return (int)l.len;
}
