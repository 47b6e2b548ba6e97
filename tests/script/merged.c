/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that are more than one: large segments that the device is to cut, and what it is told of
 * them; frames longer than a buffer, cut by the device wherever it likes; segments that it has put
 * together out of several (case S08 a to f).
 */
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>

#include "base/csum.h"
#include "link/dev.h"
#include "runtime/netisr.h"
#include "support/script.h"
#include "wire/ether.h"
#include "wire/ip4.h"
#include "wire/udp.h"

#define L4_AT		(ETHER_HDR_BYTES + IP4_HDR_BYTES)
#define FRAME_BYTES	5014u
#define PAYLOAD_BYTES	(FRAME_BYTES - L4_AT - UDP_HDR_BYTES)

/* Twelve option bytes for timestamps: 1,448 bytes a segment, 1,448 + 1,448 + 1,104 in all. */
static void
send_4000(struct script *s, bool device_cuts, uint16_t l2_bytes)
{
	if (device_cuts)
		s->ts.wire->dev->caps |= DEV_CAP_TSO | DEV_CAP_MULTISEG;
	established(s, .ts = true, .nodelay = true);
	app_writes(s, 4000);
	if (!device_cuts) {
		stack_sends(s, DATA(1, 1449, .ts = 1), DATA(1449, 2897, .ts = 1),
		    DATA(2897, 4001, .ts = 1, .push = 1));
		assert_int_equal(s->ts.wire->tso.mss, 0);
	} else {
		/* whole segments in one; the rest is none that is to be cut */
		stack_sends(s, DATA(1, 2897, .ts = 1), DATA(2897, 4001, .ts = 1, .push = 1));
		assert_int_equal(s->ts.wire->tso.l2_len, l2_bytes);
		assert_int_equal(s->ts.wire->tso.l3_len, IP4_HDR_BYTES);
		assert_int_equal(s->ts.wire->tso.l4_len, TCP_HDR_BYTES + 12);
		assert_int_equal(s->ts.wire->tso.mss, 1448);
	}
	peer_sends(s, ACK(4001));
}

/* Case S08 a: the options count as header, so that nothing slides into them from the second on */
SCRIPT(device_is_told_of_the_options_of_a_large_segment)
{
	send_4000(s, true, ETHER_HDR_BYTES);
}

/* Case S08 b: with a tag */
SCRIPT_ON(device_is_told_of_the_tag_of_a_large_segment, .vlan = 2002)
{
	send_4000(s, true, ETHER_HDR_BYTES + ETHER_VLAN_BYTES);
}

/* Case S08 c: a port that can't: segments and their checksums are made here */
SCRIPT(segments_are_cut_here_for_a_device_that_does_not)
{
	send_4000(s, false, 0);
}

/* One datagram in a frame of 5,014 bytes, and what is read of it. */
static void
jumbo_datagram(struct script *s)
{
	static uint8_t frame[FRAME_BYTES], got[FRAME_BYTES];
	struct ipaddr src = ipaddr_v4_cpu(TEST_PEER_IP), dst = ipaddr_v4_cpu(TEST_STACK_IP);
	struct ip4_view ip = { .src = be32_from_cpu(TEST_PEER_IP),
		.dst = be32_from_cpu(TEST_STACK_IP), .ttl = 64, .proto = IP_PROTO_UDP,
		.total_bytes = FRAME_BYTES - ETHER_HDR_BYTES };
	uint8_t *p = frame + L4_AT;
	struct mac to, from;
	uint32_t i;
	uint16_t sum;
	ssize_t n;

	teststack_mac(1, to.b);
	teststack_mac(2, from.b);
	ether_emit(frame, &to, &from, ETHER_TYPE_IP4);
	ip4_emit(frame + ETHER_HDR_BYTES, &ip);
	udp_emit(p, 5000, 6000, PAYLOAD_BYTES, 0);
	for (i = 0; i < PAYLOAD_BYTES; i++)
		p[UDP_HDR_BYTES + i] = script_pattern(0, i);
	sum = udp_csum_finish(csum_partial(p, FRAME_BYTES - L4_AT,
	    csum_pseudo(&src, &dst, IP_PROTO_UDP, FRAME_BYTES - L4_AT)));
	memcpy(p + 6, &sum, sizeof(sum));
	peer_sends_raw(s, frame, FRAME_BYTES);
	assert_true(netisr_take(s->ts.s->netisr[0]));
	n = darter_recv(s->ufd, got, sizeof(got), 0);
	netisr_give(s->ts.s->netisr[0]);
	assert_int_equal(n, PAYLOAD_BYTES);
	assert_memory_equal(got, p + UDP_HDR_BYTES, PAYLOAD_BYTES);
}

/* Case S08 d: 2,048 + 2,048 + 918 bytes */
SCRIPT_ON(jumbo_datagram_of_three_buffers_is_whole, .mtu = 9000)
{
	app_udp_binds(s, 6000);
	jumbo_datagram(s);
	teststack_run(&s->ts);
	stack_silent(s);
}

/*
 * Case S08 e: the device cuts inside the headers. The rule (inet/ip4_in.c): a header lies in the
 * first buffer or the frame is dropped by name; nothing is read behind a buffer's end.
 */
SCRIPT_ON(frame_cut_inside_its_headers_is_dropped_or_whole, .mtu = 9000)
{
	static const uint16_t cuts[][2] = { { 20, 30 }, { 1, 13 }, { 13, 1 }, { 14, 20 }, { 34, 4 },
		{ 40, 1 }, { 33, 1 } };
	unsigned i;

	app_udp_binds(s, 6000);
	for (i = 0; i < ARRAY_LEN(cuts); i++) {
		uint64_t dropped = script_counter(s, "drop_ether_short") +
		    script_counter(s, "drop_ip_short") + script_counter(s, "drop_udp_short");

		memcpy(s->ts.wire->cuts, cuts[i], sizeof(cuts[i]));
		peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 1000);
		dropped = script_counter(s, "drop_ether_short") +
		    script_counter(s, "drop_ip_short") + script_counter(s, "drop_udp_short") -
		    dropped;
		if (dropped == 0)
			app_udp_reads(s, 1000);
		else
			assert_int_equal(dropped, 1);
		app_udp_read_fails(s, EAGAIN);
	}
	memset(s->ts.wire->cuts, 0, sizeof(s->ts.wire->cuts));
	jumbo_datagram(s);
}

/* A cut behind the headers is none of the stack's business */
SCRIPT_ON(frame_cut_behind_its_headers_is_whole, .mtu = 9000)
{
	uint16_t cut;

	app_udp_binds(s, 6000);
	for (cut = L4_AT + UDP_HDR_BYTES; cut < L4_AT + UDP_HDR_BYTES + 5; cut++) {
		s->ts.wire->cuts[0] = cut;
		s->ts.wire->cuts[1] = 3;
		jumbo_datagram(s);
	}
}

/* Case S08 f: five segments that the device has made one: longer than the MSS, ACKed at once */
SCRIPT(coalesced_segment_is_taken_and_acknowledged_at_once)
{
	established(s);
	peer_sends(s, DATA(1, 1 + 5 * 1448));
	stack_sends(s, ACK(1 + 5 * 1448));
	app_reads(s, 5 * 1448);
	peer_sends(s, DATA(1 + 5 * 1448, 1 + 6 * 1448));
	app_reads(s, 1448);
	stack_acks(s, 1 + 6 * 1448);
}

/* The same beyond a hole: kept, and one duplicate ACK */
SCRIPT(coalesced_segment_beyond_a_hole_is_kept)
{
	established(s);
	peer_sends(s, DATA(1449, 1 + 5 * 1448));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1, 1449));
	stack_sends(s, ACK(1 + 5 * 1448));
	app_reads(s, 5 * 1448);
}
