/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the parsers of src/wire. The first byte chooses one, the rest is its input. Beside memory
 * safety: a view never points outside its input, and what was parsed, emitted and parsed again is
 * the same.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "wire/arp.h"
#include "wire/dump.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"
#include "wire/udp.h"

static void
must_lie_within(const uint8_t *p, size_t len, const uint8_t *part, size_t part_len)
{
	MUST(part >= p && part <= p + len && part_len <= (size_t)(p + len - part));
}

static void
fuzz_ether(const uint8_t *p, size_t len)
{
	struct ether_view v;
	uint8_t buf[18];
	size_t n;

	if (ether_parse(p, len, &v) != WIRE_OK)
		return;
	MUST(v.hdr_bytes <= len);
	if (v.has_vlan)
		n = ether_emit_vlan(buf, &v.dst, &v.src, v.vlan_tci, v.type);
	else
		n = ether_emit(buf, &v.dst, &v.src, v.type);
	MUST(n == v.hdr_bytes && memcmp(buf, p, n) == 0);
}

static void
fuzz_arp(const uint8_t *p, size_t len)
{
	uint8_t buf[ARP_BYTES];
	struct arp_view v;

	if (arp_parse(p, len, &v) != WIRE_OK)
		return;
	MUST(arp_emit(buf, &v) == ARP_BYTES && memcmp(buf, p, ARP_BYTES) == 0);
}

static void
fuzz_ip4(const uint8_t *p, size_t len)
{
	struct ip4_view v, again;
	uint8_t buf[IP4_HDR_BYTES];
	struct ip4_opts o;

	if (ip4_parse_quote(p, len, &v) == WIRE_OK)
		must_lie_within(p, len, v.payload, v.payload_bytes);
	if (ip4_parse(p, len, &v) != WIRE_OK)
		return;
	must_lie_within(p, len, v.payload, v.payload_bytes);
	must_lie_within(p, len, v.opts, v.opts_bytes);
	ip4_opts_parse(v.opts, v.opts_bytes, &o);
	ip4_csum_ok(p, v.hdr_bytes);
	v.total_bytes = IP4_HDR_BYTES;
	ip4_emit(buf, &v);
	MUST(ip4_csum_ok(buf, sizeof(buf)));
	MUST(ip4_parse(buf, sizeof(buf), &again) == WIRE_OK);
	MUST(again.frag_offset_bytes == v.frag_offset_bytes && again.has_mf == v.has_mf);
	MUST(again.src.raw == v.src.raw && again.dst.raw == v.dst.raw && again.ttl == v.ttl);
}

static void
fuzz_ip6(const uint8_t *p, size_t len)
{
	uint8_t buf[IP6_HDR_BYTES];
	struct ip6_view v;

	if (ip6_parse(p, len, &v) != WIRE_OK)
		return;
	must_lie_within(p, len, v.payload, v.payload_bytes);
	ip6_emit(buf, &v);
	MUST(memcmp(buf, p, sizeof(buf)) == 0);
}

static void
fuzz_icmp4(const uint8_t *p, size_t len)
{
	static uint8_t buf[8192];
	struct icmp4_view v, again;
	size_t n;

	if (icmp4_parse(p, len, &v) != WIRE_OK || len > sizeof(buf))
		return;
	must_lie_within(p, len, v.data, v.data_bytes);
	n = icmp4_emit(buf, &v);
	MUST(n == len && icmp4_csum_ok(buf, n));
	MUST(icmp4_parse(buf, n, &again) == WIRE_OK);
	MUST(again.type == v.type && again.id == v.id && again.seq == v.seq);
	MUST(again.next_mtu_bytes == v.next_mtu_bytes);
}

static void
fuzz_udp(const uint8_t *p, size_t len)
{
	uint8_t buf[UDP_HDR_BYTES];
	struct udp_view v;

	if (udp_parse(p, len, &v) != WIRE_OK)
		return;
	must_lie_within(p, len, v.payload, v.payload_bytes);
	udp_emit(buf, v.sport, v.dport, v.payload_bytes, v.csum_raw);
	MUST(memcmp(buf, p, sizeof(buf)) == 0);
}

static void
fuzz_tcp(const uint8_t *p, size_t len)
{
	struct tcp_view v, again;
	uint8_t buf[TCP_HDR_MAX_BYTES];

	if (tcp_parse(p, len, &v) != WIRE_OK)
		return;
	must_lie_within(p, len, v.payload, v.payload_bytes);
	must_lie_within(p, len, v.opts, v.opts_bytes);
	tcp_emit(buf, &v);
	memcpy(buf + TCP_HDR_BYTES, v.opts, v.opts_bytes);
	MUST(tcp_parse(buf, v.hdr_bytes, &again) == WIRE_OK);
	MUST(again.seq == v.seq && again.ack == v.ack && again.flags == v.flags);
	MUST(again.hdr_bytes == v.hdr_bytes && again.payload_bytes == 0);
}

static void
fuzz_tcp_opts(const uint8_t *p, size_t len, bool is_syn)
{
	struct tcp_opts o, again;
	uint8_t buf[TCP_OPTS_MAX_BYTES];
	size_t n;

	tcp_opts_parse(p, len, is_syn, &o);
	MUST(o.sack_count <= TCP_SACK_MAX && o.wscale <= TCP_WSCALE_MAX);
	if (o.has_ts && o.sack_count == TCP_SACK_MAX)
		o.sack_count--;		/* only so many fit; more than 40 bytes may have come in */
	n = tcp_opts_emit(buf, &o, is_syn);
	MUST(n <= sizeof(buf) && n % 4 == 0);
	MUST(tcp_opts_parse(buf, n, is_syn, &again) == 0);
	MUST(again.has_ts == o.has_ts && again.tsval == o.tsval && again.tsecr == o.tsecr);
	MUST(again.has_mss == o.has_mss && again.mss == o.mss && again.sack_ok == o.sack_ok);
	MUST(again.has_wscale == o.has_wscale && again.wscale == o.wscale);
	MUST(again.sack_count == o.sack_count);
	MUST(memcmp(again.sack, o.sack, o.sack_count * sizeof(o.sack[0])) == 0);
}

static void
fuzz_dump(const uint8_t *p, size_t len, bool has_ether)
{
	char line[DUMP_LINE_MAX_BYTES];
	int n = dump_packet(p, len, has_ether, line, sizeof(line));

	MUST(n > 0 && (size_t)n < sizeof(line) && strlen(line) == (size_t)n);
	MUST(dump_packet(p, len, has_ether, line, 8) == (n < 7 ? n : 7));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (data[0] % 11) {
	case 0: fuzz_ether(data + 1, len - 1); break;
	case 1: fuzz_arp(data + 1, len - 1); break;
	case 2: fuzz_ip4(data + 1, len - 1); break;
	case 3: fuzz_ip6(data + 1, len - 1); break;
	case 4: fuzz_icmp4(data + 1, len - 1); break;
	case 5: fuzz_udp(data + 1, len - 1); break;
	case 6: fuzz_tcp(data + 1, len - 1); break;
	case 7: fuzz_tcp_opts(data + 1, len - 1, true); break;
	case 8: fuzz_tcp_opts(data + 1, len - 1, false); break;
	case 9: fuzz_dump(data + 1, len - 1, true); break;
	default: fuzz_dump(data + 1, len - 1, false); break;
	}
	return 0;
}
