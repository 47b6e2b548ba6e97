/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire of a script, without connections: UDP, ICMP, ARP. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "wire/arp.h"
#include "wire/dump.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/udp.h"

#include "support/script.h"
#include "support/script_priv.h"

#define L4_AT		(ETHER_HDR_BYTES + IP4_HDR_BYTES)
#define QUOTE_MAX_BYTES	64

static uint32_t
addr_or(int64_t addr, uint32_t dflt)
{
	return addr != 0 ? (uint32_t)addr : dflt;
}

/* ---- the peer ---- */

/*
 * The packet of ours that an error quotes: IP header and the first bytes of its transport header.
 */
static size_t
build_quote(struct script *s, const struct icmp_quote *q, uint8_t *p)
{
	uint16_t lport = q->lport != 0 ? q->lport : s->c->lport;
	uint16_t fport = q->fport != 0 ? q->fport : s->c->fport;
	int64_t l4 = q->quote_bytes != 0 ? q->quote_bytes : 8;
	struct ip4_view ip = {
		.src = be32_from_cpu(addr_or(q->inner_src, TEST_STACK_IP)),
		.dst = be32_from_cpu(s->c->faddr),
		.total_bytes = 1500,
		.id = 7,
		.has_df = true,
		.ttl = 60,
		.proto = (uint8_t)(q->proto != 0 ? q->proto : IP_PROTO_TCP),
	};

	assert_true(l4 <= QUOTE_MAX_BYTES - IP4_HDR_BYTES);
	memset(p, 0, QUOTE_MAX_BYTES);
	ip4_emit(p, &ip);
	store_be16(p + 20, lport);
	store_be16(p + 22, fport);
	if (ip.proto == IP_PROTO_TCP)
		store_be32(p + 24, s->c->iss + (uint32_t)q->seq);
	else
		store_be16(p + 24, 100);
	return l4 < 0 ? 0 : IP4_HDR_BYTES + (size_t)l4;
}

void
script_peer_icmp(struct script *s, struct place at, const struct icmp_quote *q)
{
	uint8_t frame[256] = { 0 }, quote[QUOTE_MAX_BYTES];
	struct icmp4_view v = {
		.type = (uint8_t)q->type,
		.code = (uint8_t)q->code,
		.next_mtu_bytes = (uint16_t)q->mtu,
		.data = quote,
		.data_bytes = build_quote(s, q, quote),
	};
	size_t len;

	s->place = at;
	len = icmp4_emit(frame + L4_AT, &v);
	if (q->bad_csum)
		frame[L4_AT + 2] ^= 0x55;
	peer_sends_raw(s, frame,
	    script_wrap_ip(frame, IP_PROTO_ICMP, addr_or(q->from, TEST_PEER_IP), TEST_STACK_IP,
		(uint32_t)len));
}

void
script_peer_echo(
    struct script *s, struct place at, uint16_t id, uint16_t seq, uint32_t len, bool bad_csum)
{
	uint8_t frame[2048] = { 0 }, data[1500];
	struct icmp4_view v = {
		.type = ICMP4_ECHO, .id = id, .seq = seq, .data = data, .data_bytes = len
	};
	uint32_t i;
	size_t n;

	assert_true(len <= sizeof(data));
	s->place = at;
	for (i = 0; i < len; i++)
		data[i] = script_pattern(0, i);
	n = icmp4_emit(frame + L4_AT, &v);
	if (bad_csum)
		frame[L4_AT + 2] ^= 0x55;
	peer_sends_raw(s, frame,
	    script_wrap_ip(frame, IP_PROTO_ICMP, TEST_PEER_IP, TEST_STACK_IP, (uint32_t)n));
}

static void
finish_udp_csum(
    const struct udp_spec *u, uint32_t src_ip, uint32_t dst_ip, uint8_t *p, uint32_t len)
{
	struct ipaddr src = ipaddr_v4_cpu(src_ip), dst = ipaddr_v4_cpu(dst_ip);
	uint16_t sum;

	if (u->csum == 2)
		return;
	sum = udp_csum_finish(csum_partial(p, len, csum_pseudo(&src, &dst, IP_PROTO_UDP, len)));
	if (u->csum == 1)
		sum = (uint16_t)(sum ^ 0x5555);
	memcpy(p + 6, &sum, sizeof(sum));
}

void
script_peer_udp(struct script *s, struct place at, const struct udp_spec *u)
{
	static uint8_t frame[2048 + L4_AT];
	uint32_t src = addr_or(u->src, TEST_PEER_IP), dst = addr_or(u->dst, TEST_STACK_IP);
	uint32_t ip_len = (uint32_t)(u->ip_len != 0 ? u->ip_len : UDP_HDR_BYTES + u->len);
	uint32_t field = (uint32_t)(u->udp_len != 0 ? u->udp_len : UDP_HDR_BYTES + u->len);
	uint8_t *p = frame + L4_AT;
	uint32_t len;
	int64_t i;

	assert_true(ip_len + L4_AT < sizeof(frame));
	s->place = at;
	memset(frame, 0, sizeof(frame));
	udp_emit(p, u->sport, u->dport, 0, 0);
	store_be16(p + 4, (uint16_t)field);
	for (i = 0; i + UDP_HDR_BYTES < ip_len; i++)
		p[UDP_HDR_BYTES + i] = script_pattern(0, i);
	finish_udp_csum(u, src, dst, p, field <= ip_len ? field : ip_len);
	len = script_wrap_ip(frame, IP_PROTO_UDP, src, dst, ip_len);
	if (u->dst_mac_broadcast)
		memset(frame, 0xff, ETHER_ADDR_BYTES);
	peer_sends_raw(s, frame, len);
}

void
script_peer_arp(struct script *s, struct place at, const struct arp_spec *a)
{
	uint8_t frame[ETHER_MIN_FRAME_BYTES] = { 0 };
	struct arp_view v = {
		.op = (uint16_t)a->op,
		.sender_ip = be32_from_cpu(addr_or(a->sender_ip, TEST_PEER_IP)),
		.target_ip = be32_from_cpu(addr_or(a->target_ip, TEST_STACK_IP)),
	};
	uint8_t host = (uint8_t)(a->sender_host != 0 ? a->sender_host : 2);

	s->place = at;
	teststack_mac(host, v.sender_mac.b);
	if (a->op == ARP_OP_REPLY)
		teststack_mac(1, v.target_mac.b);
	ether_emit(frame, a->op == ARP_OP_REPLY ? &v.target_mac : &MAC_BROADCAST, &v.sender_mac,
	    ETHER_TYPE_ARP);
	arp_emit(frame + ETHER_HDR_BYTES, &v);
	if (a->hw_kind != 0)
		store_be16(frame + ETHER_HDR_BYTES, (uint16_t)a->hw_kind);
	peer_sends_raw(
	    s, frame, a->cut_bytes != 0 ? ETHER_HDR_BYTES + (uint32_t)a->cut_bytes : sizeof(frame));
}

/* ---- the stack ---- */

static struct wire_frame *
next_or_fail(struct script *s, const char *wanted)
{
	struct wire_frame *f = script_next_frame(s, 0);

	if (f == NULL)
		script_fail(s, "wanted %s\n   got nothing", wanted);
	s->mark_us = f->at.us;
	return f;
}

void
script_stack_udp(struct script *s, struct place at, const struct udp_spec *u)
{
	char line[DUMP_LINE_MAX_BYTES];
	struct ipaddr src, dst;
	struct wire_frame *f;
	struct ip4_view ip;
	struct udp_view v;
	int64_t i;

	s->place = at;
	f = next_or_fail(s, "a UDP datagram");
	ip = script_check_frame(s, f);
	src = ipaddr_v4(ip.src);
	dst = ipaddr_v4(ip.dst);
	script_dump(f, line, sizeof(line));
	if (ip.proto != IP_PROTO_UDP || udp_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK)
		script_fail(s, "wanted a UDP datagram\n   got %s", line);
	if (v.csum_raw == 0 || csum_fold_raw(csum_partial(ip.payload, v.total_bytes,
	    csum_pseudo(&src, &dst, IP_PROTO_UDP, v.total_bytes))) != 0xffff)
		script_fail(s, "UDP checksum is wrong or missing: %s", line);
	if ((u->sport != 0 && v.sport != u->sport) || v.dport != u->dport ||
	    v.payload_bytes != u->len)
		script_fail(s, "wanted UDP port %u to %u, %" PRId64 " bytes\n   got %s", u->sport,
		    u->dport, u->len, line);
	for (i = 0; i < u->len; i++)
		if (v.payload[i] != script_pattern(1, i))
			script_fail(s, "wrong byte at %" PRId64 " of the datagram: %s", i, line);
	free(f);
}

void
script_stack_icmp(struct script *s, struct place at, int type, int code)
{
	char line[DUMP_LINE_MAX_BYTES], wanted[48];
	struct wire_frame *f;
	struct icmp4_view v;
	struct ip4_view ip;

	s->place = at;
	snprintf(wanted, sizeof(wanted), "ICMP type %d code %d", type, code);
	f = next_or_fail(s, wanted);
	ip = script_check_frame(s, f);
	script_dump(f, line, sizeof(line));
	if (ip.proto != IP_PROTO_ICMP || icmp4_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK)
		script_fail(s, "wanted %s\n   got %s", wanted, line);
	if (!icmp4_csum_ok(ip.payload, ip.payload_bytes))
		script_fail(s, "ICMP checksum is wrong: %s", line);
	if (v.type != type || v.code != code)
		script_fail(
		    s, "wanted %s\n   got type %u code %u: %s", wanted, v.type, v.code, line);
	/* RFC 1122 3.2.2: an error quotes at least the IP header and 8 bytes */
	if (icmp4_is_error(v.type) && v.data_bytes < IP4_HDR_BYTES + 8)
		script_fail(s, "the error quotes only %zu bytes: %s", v.data_bytes, line);
	free(f);
}

void
script_stack_arp(struct script *s, struct place at, const struct arp_spec *a)
{
	char line[DUMP_LINE_MAX_BYTES];
	struct wire_frame *f;
	struct ether_view eth;
	struct arp_view v;

	s->place = at;
	f = next_or_fail(s, a->op == ARP_OP_REQUEST ? "an ARP request" : "an ARP reply");
	script_dump(f, line, sizeof(line));
	if (ether_parse(f->bytes, f->len, &eth) != WIRE_OK || eth.type != ETHER_TYPE_ARP ||
	    arp_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &v) != WIRE_OK)
		script_fail(s, "wanted an ARP packet\n   got %s", line);
	if (v.op != a->op || be32_to_cpu(v.sender_ip) != addr_or(a->sender_ip, TEST_STACK_IP) ||
	    be32_to_cpu(v.target_ip) != addr_or(a->target_ip, TEST_PEER_IP))
		script_fail(s, "wanted ARP op %d about %08" PRIx32 "\n   got %s", a->op,
		    addr_or(a->target_ip, TEST_PEER_IP), line);
	free(f);
}
