/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of every protocol, as the wire and as the port tell of them, and a packet pool that is
 * whole afterwards (RFC 791, RFC 768, RFC 9293 3.1, RFC 792; case S27).
 *
 * A port says of each packet "good", "bad", "unknown" (looked at, could not tell) or nothing. The
 * last two are one to the stack: the device layer sets no flag, and the sum is computed here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "runtime/pkt.h"
#include "support/script.h"
#include "support/script_priv.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/udp.h"

#define BAD_FRAMES	100000u	/* of each kind */
#define BURST		64u	/* frames put on the wire at a time */
#define L4_AT		(ETHER_HDR_BYTES + IP4_HDR_BYTES)

/* The same frame again and again; no answer, each counted once, the pool whole. */
static void
repeat_frame(struct script *s, const uint8_t *frame, uint32_t len, const char *counter)
{
	uint64_t before = script_counter(s, counter);
	unsigned i;

	for (i = 0; i < BAD_FRAMES; i++) {
		wire_dev_inject(s->ts.wire, 0, frame, len);
		if (i % BURST == BURST - 1)
			teststack_run(&s->ts);
	}
	teststack_run(&s->ts);
	stack_silent_ms(s, 50);
	assert_int_equal(script_counter(s, counter) - before, BAD_FRAMES);
	teststack_expect_no_leak(&s->ts);
}

/* Case S27 a: each of four checksums wrong, looked at in software */
SCRIPT(bad_tcp_checksums_leave_no_trace)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 101, .bad_csum = 1), frame, sizeof(frame));
	repeat_frame(s, frame, len, "drop_tcp_csum");
	app_reads_nothing(s);
}

SCRIPT(bad_ip_checksums_leave_no_trace)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 101, .ip_bad_csum = 1), frame, sizeof(frame));
	repeat_frame(s, frame, len, "drop_ip_csum");
	app_reads_nothing(s);
}

/* A datagram or an echo of 10 bytes with a sum that is wrong. */
static uint32_t
bad_datagram(uint8_t *frame, uint8_t proto)
{
	static const uint8_t data[10];
	struct icmp4_view echo = { .type = ICMP4_ECHO, .id = 1, .data = data,
		.data_bytes = sizeof(data) };
	struct ip4_view ip = { .src = be32_from_cpu(TEST_PEER_IP),
		.dst = be32_from_cpu(TEST_STACK_IP), .ttl = 64, .proto = proto,
		.total_bytes = IP4_HDR_BYTES + 8 + sizeof(data) };
	struct mac to, from;

	memset(frame, 0, ETHER_MIN_FRAME_BYTES);
	teststack_mac(1, to.b);
	teststack_mac(2, from.b);
	ether_emit(frame, &to, &from, ETHER_TYPE_IP4);
	ip4_emit(frame + ETHER_HDR_BYTES, &ip);
	if (proto == IP_PROTO_ICMP) {
		icmp4_emit(frame + L4_AT, &echo);
		frame[L4_AT + 2] ^= 0x55;
	} else {
		udp_emit(frame + L4_AT, 5000, 6000, sizeof(data), 0);
		store_be16(frame + L4_AT + 6, 0x1234);
	}
	return ETHER_MIN_FRAME_BYTES;
}

SCRIPT(bad_udp_checksums_leave_no_trace)
{
	uint8_t frame[ETHER_MIN_FRAME_BYTES];

	app_udp_binds(s, 6000);
	repeat_frame(s, frame, bad_datagram(frame, IP_PROTO_UDP), "drop_udp_csum");
	app_udp_read_fails(s, EAGAIN);
}

SCRIPT(bad_icmp_checksums_leave_no_trace)
{
	uint8_t frame[ETHER_MIN_FRAME_BYTES];

	repeat_frame(s, frame, bad_datagram(frame, IP_PROTO_ICMP), "drop_icmp_csum");
}

/* Case S27 a: the port has found them bad: dropped, whatever the sum is */
SCRIPT(checksums_that_the_port_calls_bad_are_dropped)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 101), frame, sizeof(frame));
	s->ts.wire->rx_flags = PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_BAD;
	repeat_frame(s, frame, len, "drop_tcp_csum");
	s->ts.wire->rx_flags = PKT_RX_IP_CSUM_BAD;
	repeat_frame(s, frame, len, "drop_rx_csum_hw");
	app_reads_nothing(s);
	s->ts.wire->rx_flags = 0;
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
}

SCRIPT(datagrams_that_the_port_calls_bad_are_dropped)
{
	app_udp_binds(s, 6000);
	s->ts.wire->rx_flags = PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_BAD;
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10);
	app_udp_read_fails(s, EAGAIN);
	counter_is(s, "drop_udp_csum", 1);
	/* without a checksum there was nothing that the port could have looked at */
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .csum = 2);
	app_udp_reads(s, 10);
}

/* Case S27 a: the port has found them good: believed, so that nothing is computed twice */
SCRIPT(checksums_that_the_port_calls_good_are_believed)
{
	established(s);
	s->ts.wire->rx_flags = PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_GOOD;
	peer_sends(s, DATA(1, 101, .bad_csum = 1, .seq = 1));
	app_reads(s, 100);
	counter_is(s, "drop_tcp_csum", 0);
	stack_acks(s, 101);
}

/* Case S27 a: one half good says nothing of the other */
SCRIPT(checksum_of_which_the_port_says_nothing_is_computed)
{
	established(s);
	s->ts.wire->rx_flags = PKT_RX_IP_CSUM_GOOD;
	peer_sends(s, DATA(1, 101, .bad_csum = 1));
	counter_is(s, "drop_tcp_csum", 1);
	s->ts.wire->rx_flags = PKT_RX_L4_CSUM_GOOD;
	peer_sends(s, DATA(1, 101, .ip_bad_csum = 1, .seq = 1));
	counter_is(s, "drop_ip_csum", 1);
	app_reads_nothing(s);
	stack_silent(s);
}

/* ---- sums that look like nothing ---- */

/*
 * Two bytes of payload at frame[at] that make the TCP checksum field `field`; the pseudo-header and
 * the field count as written.
 */
static void
steer_sum(uint8_t *frame, uint32_t at, uint16_t field)
{
	struct ip4_view ip;
	struct ipaddr src, dst;
	uint32_t l4_bytes;
	uint16_t sum;

	assert_int_equal(ip4_parse(frame + ETHER_HDR_BYTES, 1500, &ip), WIRE_OK);
	l4_bytes = (uint32_t)ip.payload_bytes;
	src = ipaddr_v4(ip.src);
	dst = ipaddr_v4(ip.dst);
	store_be16(frame + at, 0);
	store_be16(frame + L4_AT + 16, field);
	sum = csum_fold(csum_partial(frame + L4_AT, l4_bytes,
	    csum_pseudo(&src, &dst, IP_PROTO_TCP, l4_bytes)));
	memcpy(frame + at, &sum, sizeof(sum));
}

static void
expect_sum_accepted(struct script *s, uint16_t field)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 11), frame, sizeof(frame));
	steer_sum(frame, L4_AT + 20 + 8, field);
	peer_sends_raw(s, frame, len);
	counter_is(s, "drop_tcp_csum", 0);
	app_polls(s, POLLIN | POLLOUT);
	s->c->snd_nxt = 11;
	stack_acks(s, 11);
}

/* Case S27 e; RFC 1071: 0xFFFF and 0x0000 are the same sum, and TCP has no "no checksum" */
SCRIPT(tcp_checksum_of_all_ones_is_accepted) { expect_sum_accepted(s, 0xffff); }
SCRIPT(tcp_checksum_of_zero_is_accepted) { expect_sum_accepted(s, 0x0000); }

/* Case S27 e: zero is no excuse either */
SCRIPT(tcp_checksum_of_zero_that_is_wrong_is_dropped)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 11), frame, sizeof(frame));
	memset(frame + L4_AT + 16, 0, 2);
	peer_sends_raw(s, frame, len);
	counter_is(s, "drop_tcp_csum", 1);
	app_reads_nothing(s);
	stack_silent(s);
}

/* Sends two zero bytes to this port and gives back the checksum field that went out. */
static uint16_t
sent_udp_csum(struct script *s, uint16_t dport)
{
	struct wire_frame *f;
	uint16_t field;

	script_udp_send_on(s, TEST_PEER_IP, dport, 2);
	f = stack_sent_frame(s);
	assert_non_null(f);
	assert_int_equal(f->len, ETHER_MIN_FRAME_BYTES);
	field = load_be16(f->bytes + L4_AT + 6);
	free(f);
	return field;
}

/*
 * Case S27 d; RFC 768: a sum that comes out as 0 is sent as all ones, since 0 says "none". The
 * destination port is what is chosen: with it raised by the field of another datagram all that is
 * summed comes to all ones.
 */
SCRIPT(udp_checksum_of_zero_is_sent_as_ones)
{
	uint32_t dport = 5000;

	app_udp_binds(s, 6000);
	dport += sent_udp_csum(s, 5000);
	dport = (dport & 0xffff) + (dport >> 16);
	assert_int_equal(sent_udp_csum(s, (uint16_t)dport), 0xffff);
	assert_int_not_equal(sent_udp_csum(s, (uint16_t)(dport ^ 1)), 0xffff);
}

/* Case S27 b; RFC 768: 0 on arrival says "none"; c, the same over IPv6, waits for it */
SCRIPT(udp_without_a_checksum_is_delivered)
{
	unsigned i;

	app_udp_binds(s, 6000);
	for (i = 0; i < 3; i++) {
		peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 100 + i, .csum = 2);
		app_udp_reads(s, 100 + i);
	}
	counter_is(s, "drop_udp_csum", 0);
}

/* ---- a wire that does not take what is sent ---- */

/* Case S27 g: the transmit ring is full for a second, ten thousand datagrams are sent meanwhile */
SCRIPT(full_transmit_ring_loses_no_packet_of_the_pool)
{
	uint64_t n_sent = 0, n_dropped;
	struct wire_frame *f;
	unsigned i;

	app_udp_binds(s, 6000);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 10);
	s->ts.wire->tx_room = 0;
	for (i = 0; i < 10000; i++) {
		script_udp_send_on(s, TEST_PEER_IP, 5000, 100);
		if (i % 100 == 99)
			advance_ms(s, 10);
	}
	for (i = 0; i < 20; i++)
		script_udp_send_on(s, TEST_PEER_IP, 5000, 100);
	s->ts.wire->tx_room = UINT32_MAX;
	advance_ms(s, 20);
	while ((f = stack_sent_frame(s)) != NULL) {
		n_sent++;
		free(f);
	}
	n_dropped = script_counter(s, "drop_tx_ring_full") + script_counter(s, "drop_tx_dev") +
	    script_counter(s, "drop_steer_full") + script_counter(s, "drop_pkt_nomem");
	/* what the ring did not take was dropped by name, and nothing else */
	assert_true(n_sent >= 20 && n_dropped > 0);
	assert_int_equal(script_counter(s, "udp_sent") - 1, n_sent + n_dropped);
	assert_int_equal(s->ts.s->pkt_ops->available(s->ts.s), s->ts.packets_idle);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 10);
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	peer_sends(s, ACK(101));
}

/* Case S27 h: the link goes and comes under load: nothing leaks, all of it arrives */
SCRIPT(link_that_goes_and_comes_loses_nothing_for_good)
{
	int64_t total = 200000;
	int i;

	established(s, .mss = 1000, .cwnd_segs = 10);
	app_writes(s, total);
	for (i = 0; i < 4000 && s->c->rcv_nxt < total + 1; i++) {
		s->ts.wire->link_down = i % 40 < 10;
		s->ts.wire->tx_room = s->ts.wire->link_down ? 0 : UINT32_MAX;
		advance_ms(s, 100);
		if (s->ts.wire->link_down || stack_sends_anything(s) == 0)
			continue;
		peer_sends(s, ACK(s->c->rcv_nxt));
	}
	s->ts.wire->link_down = false;
	s->ts.wire->tx_room = UINT32_MAX;
	assert_int_equal(s->c->rcv_nxt, total + 1);
	advance_ms(s, 3000);
	stack_sends_anything(s);
	peer_sends(s, ACK(total + 1));
	advance_ms(s, 3000);
	stack_sends_anything(s);
	teststack_expect_no_leak(&s->ts);
	state_is(s, TCP_ESTABLISHED);
}
