/* SPDX-License-Identifier: BSD-2-Clause */
/* The one-line description of packets: each kind once, broken ones, too small buffers. */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/rng.h"
#include "wire/arp.h"
#include "wire/dump.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"
#include "wire/udp.h"

static const struct mac us = { { 2, 0, 0, 0, 0, 1 } };
static const struct mac them = { { 2, 0, 0, 0, 0, 2 } };
static uint8_t frame[256];

/* Ethernet and IPv4 headers 10.0.0.1 > 10.0.0.2 in front of l4_bytes; returns where they go. */
static uint8_t *
begin_ip4(uint8_t proto, size_t l4_bytes)
{
	struct ip4_view v = { .src = be32_from_cpu(0x0a000001), .dst = be32_from_cpu(0x0a000002),
		.total_bytes = (uint16_t)(IP4_HDR_BYTES + l4_bytes), .ttl = 64, .proto = proto };

	memset(frame, 0, sizeof(frame));
	ether_emit(frame, &them, &us, ETHER_TYPE_IP4);
	ip4_emit(frame + ETHER_HDR_BYTES, &v);
	return frame + ETHER_HDR_BYTES + IP4_HDR_BYTES;
}

static void
expect(size_t len, const char *want)
{
	char line[DUMP_LINE_MAX_BYTES];
	int n = dump_packet(frame, len, true, line, sizeof(line));

	assert_string_equal(line, want);
	assert_int_equal(n, strlen(want));
}

static void
syn_shows_flags_and_options(void **state)
{
	struct tcp_opts o = { .has_mss = true, .mss = 1460, .sack_ok = true, .has_ts = true,
		.tsval = 5, .has_wscale = true, .wscale = 7 };
	struct tcp_view v = { .sport = 1024, .dport = 80, .seq = 100, .flags = TH_SYN,
		.wnd = 65535, .hdr_bytes = 40 };
	uint8_t *p = begin_ip4(IP_PROTO_TCP, 40);

	(void)state;
	tcp_emit(p, &v);
	tcp_opts_emit(p + 20, &o, true);
	expect(74, "IP 10.0.0.1.1024 > 10.0.0.2.80: Flags [S], seq 100, win 65535, "
	    "options [mss 1460,sackOK,TS val 5 ecr 0,wscale 7], length 0");
}

static void
data_shows_its_range_and_sack_blocks(void **state)
{
	struct tcp_opts o = { .sack_count = 1, .sack = { { 7, 9 } } };
	struct tcp_view v = { .sport = 80, .dport = 1024, .seq = 4294967295u, .ack = 3,
		.flags = TH_ACK | TH_PUSH, .wnd = 10, .hdr_bytes = 32 };
	uint8_t *p = begin_ip4(IP_PROTO_TCP, 42);

	(void)state;
	tcp_emit(p, &v);
	tcp_opts_emit(p + 20, &o, false);
	expect(76, "IP 10.0.0.1.80 > 10.0.0.2.1024: Flags [P.], seq 4294967295:9, ack 3, win 10, "
	    "options [sack {7:9}], length 10");
}

static void
packet_cut_short_says_what_is_missing(void **state)
{
	struct tcp_view v = { .sport = 80, .dport = 1024, .seq = 1, .flags = TH_RST,
		.hdr_bytes = 20 };

	(void)state;
	tcp_emit(begin_ip4(IP_PROTO_TCP, 120), &v);
	expect(54, "IP 10.0.0.1.80 > 10.0.0.2.1024: Flags [R], seq 1:101, win 0, length 100, "
	    "100 bytes missing");
	expect(40, "IP 10.0.0.1 > 10.0.0.2: TCP malformed, length 120, 114 bytes missing");
}

static void
datagram_shows_ports_and_length(void **state)
{
	(void)state;
	udp_emit(begin_ip4(IP_PROTO_UDP, 12), 53, 4000, 4, 0);
	expect(46, "IP 10.0.0.1.53 > 10.0.0.2.4000: UDP, length 4");
	frame[14 + 20 + 5] = 13;
	expect(46, "IP 10.0.0.1.53 > 10.0.0.2.4000: UDP, length field bad (13 of 12)");
	frame[14 + 10] ^= 1;
	frame[14 + 20 + 5] = 12;
	expect(46, "IP 10.0.0.1.53 > 10.0.0.2.4000: UDP, length 4, bad IP cksum");
}

static void
icmp_shows_echo_and_what_an_error_quotes(void **state)
{
	struct icmp4_view echo = { .type = ICMP4_ECHO, .id = 3, .seq = 4 };
	struct icmp4_view err = { .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG,
		.next_mtu_bytes = 1400 };
	uint8_t quote[28];

	(void)state;
	udp_emit(begin_ip4(IP_PROTO_UDP, 100), 1000, 2000, 92, 0);
	memcpy(quote, frame + ETHER_HDR_BYTES, sizeof(quote));
	icmp4_emit(begin_ip4(IP_PROTO_ICMP, 8), &echo);
	expect(42, "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 3, seq 4, length 8");
	err.data = quote;
	err.data_bytes = sizeof(quote);
	icmp4_emit(begin_ip4(IP_PROTO_ICMP, 36), &err);
	expect(70, "IP 10.0.0.1 > 10.0.0.2: ICMP unreachable - need to frag (mtu 1400) "
	    "(UDP 10.0.0.1.1000 > 10.0.0.2.2000), length 36");
}

static void
arp_shows_question_and_answer(void **state)
{
	struct arp_view v = { .op = ARP_OP_REQUEST, .sender_mac = us,
		.sender_ip = be32_from_cpu(0x0a000001), .target_ip = be32_from_cpu(0x0a000002) };

	(void)state;
	ether_emit_vlan(frame, &MAC_BROADCAST, &us, 12, ETHER_TYPE_ARP);
	arp_emit(frame + 18, &v);
	expect(46, "vlan 12, ARP, Request who-has 10.0.0.2 tell 10.0.0.1");
	v.op = ARP_OP_REPLY;
	ether_emit(frame, &them, &us, ETHER_TYPE_ARP);
	arp_emit(frame + 14, &v);
	expect(42, "ARP, Reply 10.0.0.1 is-at 02:00:00:00:00:01");
}

static void
fragment_shows_its_place(void **state)
{
	struct ip4_view v = { .src = be32_from_cpu(0x0a000001), .dst = be32_from_cpu(0x0a000002),
		.total_bytes = 28, .id = 9, .frag_offset_bytes = 16, .has_mf = true, .proto = 17 };

	(void)state;
	ether_emit(frame, &them, &us, ETHER_TYPE_IP4);
	ip4_emit(frame + 14, &v);
	expect(42, "IP 10.0.0.1 > 10.0.0.2: frag (id 9, offset 16+), proto 17, length 8");
}

static void
ipv6_segment_without_ethernet_is_shown(void **state)
{
	struct ip6_view ip = { .next = IP_PROTO_TCP, .payload_bytes = 20 };
	struct tcp_view v = { .sport = 1, .dport = 2, .seq = 3, .ack = 4, .flags = TH_ACK,
		.wnd = 5, .hdr_bytes = 20 };
	char line[DUMP_LINE_MAX_BYTES];

	(void)state;
	assert_int_equal(ipaddr_parse("fe80::1", &ip.src), 0);
	assert_int_equal(ipaddr_parse("fe80::2", &ip.dst), 0);
	ip6_emit(frame, &ip);
	tcp_emit(frame + 40, &v);
	dump_packet(frame, 60, false, line, sizeof(line));
	assert_string_equal(line, "IP6 fe80::1.1 > fe80::2.2: Flags [.], seq 3, ack 4, win 5, "
	    "length 0");
}

static void
small_buffer_is_filled_and_terminated(void **state)
{
	char line[DUMP_LINE_MAX_BYTES];
	size_t size;

	(void)state;
	udp_emit(begin_ip4(IP_PROTO_UDP, 12), 53, 4000, 4, 0);
	for (size = 1; size < 46; size++) {
		memset(line, 'x', sizeof(line));
		assert_int_equal(dump_packet(frame, 46, true, line, size), size - 1);
		assert_int_equal(strlen(line), size - 1);
		assert_int_equal(line[size], 'x');
	}
	assert_int_equal(dump_packet(frame, 46, true, NULL, 0), 0);
}

static void
random_bytes_are_described_somehow(void **state)
{
	char line[DUMP_LINE_MAX_BYTES];
	struct rng r;
	size_t len, k;
	int i;

	(void)state;
	rng_init(&r, 10);
	for (i = 0; i < 50000; i++) {
		begin_ip4((uint8_t)(rng_below(&r, 2) ? 6 : rng_below(&r, 20)), 100);
		len = rng_below(&r, 140);
		for (k = rng_below(&r, 40); k < len; k++)
			frame[k] = (uint8_t)rng_u32(&r);
		assert_true(dump_packet(frame, len, i & 1, line, sizeof(line)) > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syn_shows_flags_and_options),
		cmocka_unit_test(data_shows_its_range_and_sack_blocks),
		cmocka_unit_test(packet_cut_short_says_what_is_missing),
		cmocka_unit_test(datagram_shows_ports_and_length),
		cmocka_unit_test(icmp_shows_echo_and_what_an_error_quotes),
		cmocka_unit_test(arp_shows_question_and_answer),
		cmocka_unit_test(fragment_shows_its_place),
		cmocka_unit_test(ipv6_segment_without_ethernet_is_shown),
		cmocka_unit_test(small_buffer_is_filled_and_terminated),
		cmocka_unit_test(random_bytes_are_described_somehow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
