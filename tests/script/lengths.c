/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Length fields that disagree, and wrong checksums (RFC 791, RFC 894, RFC 1122 3.2.1; cases S26,
 * S27).
 */
#include <stdlib.h>
#include <string.h>

#include "support/script.h"

/* Case S26 a: FIN+ACK padded to 60 bytes: end of file, no data */
SCRIPT(padding_of_a_fin_is_no_data)
{
	established(s);
	peer_sends(s, FIN(1, .frame_bytes = 60));
	stack_sends(s, ACK(2));
	app_reads_eof(s);
}

/* Case S26 b: one byte of payload */
SCRIPT(padding_behind_one_byte_is_no_data)
{
	established(s);
	peer_sends(s, DATA(1, 2, .frame_bytes = 60));
	app_reads(s, 1);
	app_reads_nothing(s);
	stack_acks(s, 2);
}

/* Case S26 c: an ACK with much behind it */
SCRIPT(trailing_bytes_of_an_ack_are_no_data)
{
	established(s);
	peer_sends(s, ACK(1, .frame_bytes = 60), ACK(1, .frame_bytes = 1054));
	stack_silent_ms(s, 200);
	app_reads_nothing(s);
}

/* Case S26 e: total length beyond the frame, below the header; IHL 4; IHL 15 in a short packet */
SCRIPT(lying_ip_lengths_are_dropped)
{
	established(s);
	peer_sends(s, DATA(1, 11, .ip_total = 1500), DATA(1, 11, .ip_total = 19),
	    DATA(1, 11, .ip_total = 0));
	peer_sends(s, DATA(1, 11, .ip_hlen_words = 4), DATA(1, 11, .ip_hlen_words = 0));
	peer_sends(s, ACK(1, .ip_hlen_words = 15));
	stack_silent_ms(s, 200);
	app_reads_nothing(s);
	assert_int_equal(script_counter(s, "drop_ip_len") + script_counter(s, "drop_ip_hlen") +
	    script_counter(s, "drop_ip_short"), 6);
	s->c->snd_nxt = 1;
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
}

/* Case S26 i: runts */
SCRIPT(runt_frames_are_dropped)
{
	uint8_t frame[256];
	uint32_t cut;

	established(s);
	script_build(s, &DATA(1, 11), frame, sizeof(frame));
	for (cut = 0; cut < 54; cut++)
		peer_sends_raw(s, frame, cut);
	stack_silent_ms(s, 100);
	app_reads_nothing(s);
}

/* Case S26 f; RFC 1122 3.2.1.8: options are skipped */
SCRIPT(ip_options_are_skipped)
{
	established(s);
	peer_sends(s, DATA(1, 11, .ip_opts = BYTES(1, 1, 1, 0)));
	app_reads(s, 10);
	peer_sends(s, DATA(11, 21, .ip_opts = BYTES(7, 7, 4, 0, 0, 0, 0, 0)));
	app_reads(s, 10);
	peer_sends(s, DATA(21, 31, .ip_opts = BYTES(0x5e, 4, 9, 9)));
	app_reads(s, 10);
	stack_acks(s, 31);
}

/* Case S26 f: impossible lengths, and source routes (RFC 7126 4.3) */
SCRIPT(bad_ip_options_are_dropped)
{
	established(s);
	peer_sends(s, DATA(1, 11, .ip_opts = BYTES(0x5e, 0, 1, 1)),
	    DATA(1, 11, .ip_opts = BYTES(0x5e, 1, 1, 1)));
	peer_sends(s, DATA(1, 11, .ip_opts = BYTES(0x83, 7, 4, 192, 0, 2, 3, 0)));
	advance_ms(s, 100);
	wire_dev_clear(s->ts.wire);	/* a Parameter Problem is allowed */
	app_reads_nothing(s);
	counter_is(s, "drop_ip_options_bad", 2);
	counter_is(s, "drop_ip_options_route", 1);
	state_is(s, TCP_ESTABLISHED);
}

/* Case S27 a: each dropped once, no answer, the pool intact (script_end looks at it) */
SCRIPT(wrong_checksums_are_counted_and_leak_nothing)
{
	unsigned i;

	established(s);
	for (i = 0; i < 2000; i++) {
		peer_sends(s, DATA(1, 101, .bad_csum = 1), DATA(1, 101, .ip_bad_csum = 1));
		s->c->snd_nxt = 1;
	}
	stack_silent(s);
	counter_is(s, "drop_tcp_csum", 2000);
	counter_is(s, "drop_ip_csum", 2000);
	teststack_expect_no_leak(&s->ts);
}

/* RFC 791: not for us */
SCRIPT(packet_for_another_host_is_dropped)
{
	established(s);
	peer_sends(s, DATA(1, 11, .dst = TEST_THIRD_IP));
	stack_silent(s);
	counter_is(s, "drop_ip_dst_not_ours", 1);
}

/* A frame for another MAC is not looked at */
SCRIPT(frame_for_another_mac_is_dropped)
{
	uint8_t frame[256];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 11), frame, sizeof(frame));
	frame[5] = 0x77;
	peer_sends_raw(s, frame, len);
	stack_silent(s);
	counter_is(s, "drop_ether_dst", 1);
	app_reads_nothing(s);
}

/* TCP in a broadcast frame is never answered (RFC 1122 4.2.3.10) */
SCRIPT(tcp_in_a_broadcast_frame_is_ignored)
{
	uint8_t frame[256];
	uint32_t len;

	app_listens(s);
	len = script_build(s, &SYN(), frame, sizeof(frame));
	memset(frame, 0xff, 6);
	peer_sends_raw(s, frame, len);
	stack_silent(s);
}

/* Case S26 d: a tag that is not configured */
SCRIPT(unknown_vlan_is_dropped)
{
	uint8_t frame[256], tagged[260];
	uint32_t len;

	established(s);
	len = script_build(s, &DATA(1, 11), frame, sizeof(frame));
	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, "\x81\x00\x07\xd2", 4);
	memcpy(tagged + 16, frame + 12, len - 12);
	peer_sends_raw(s, tagged, len + 4);
	stack_silent(s);
	counter_is(s, "drop_vlan", 1);
	app_reads_nothing(s);
}

/* Case S27 g: the transmit ring is full for a second: nothing is lost for good */
SCRIPT(full_transmit_ring_delays_and_loses_nothing)
{
	int i;

	established(s, .mss = 1000, .cwnd_segs = 10);
	s->ts.wire->tx_room = 0;
	app_writes(s, 10000);
	stack_silent(s);
	advance_ms(s, 1000);
	s->ts.wire->tx_room = UINT32_MAX;
	for (i = 0; i < 200 && s->c->rcv_nxt < 10001; i++) {
		advance_ms(s, 100);
		if (stack_sends_anything(s) > 0)
			peer_sends(s, ACK(s->c->rcv_nxt));
	}
	assert_int_equal(s->c->rcv_nxt, 10001);
	advance_ms(s, 100);
	stack_sends_anything(s);
	peer_sends(s, ACK(10001));
	stack_silent_ms(s, 3000);
}

/*
 * Case S27 f: a reader that does not read holds its window's worth and no more; then everything
 * comes back
 */
SCRIPT(unread_data_is_bounded_by_the_window)
{
	established(s, .rcvbuf = 16384);
	while (s->c->snd_nxt < s->c->stack_edge) {
		int64_t from = s->c->snd_nxt, to = from + 1460;

		peer_sends(s, DATA(from, to < s->c->stack_edge ? to : s->c->stack_edge));
		advance_ms(s, 50);
		stack_sends_anything(s);
	}
	assert_in_range(s->c->snd_nxt, 8000, 80000);
	app_reads(s, s->c->snd_nxt - 1);
	stack_sends_anything(s);
	peer_sends(s, DATA(s->c->snd_nxt, s->c->snd_nxt + 1000));
	app_reads(s, 1000);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/*
 * Few packets and none of them leaves: the pool runs dry, and all goes on when the device takes
 * packets again
 */
SCRIPT_ON(small_packet_pool_recovers, .netisrs = 1, .packets = 256)
{
	unsigned i;

	established(s, .cwnd_segs = 10);
	s->ts.wire->tx_room = 0;
	for (i = 0; i < 400; i++)
		peer_sends_udp(s, .sport = 5000, .dport = (uint16_t)(1000 + i), .len = 10);
	app_writes(s, 100000);
	for (i = 0; i < 400; i++)
		peer_sends_echo(s, 1, (uint16_t)i, 56);
	teststack_run(&s->ts);
	s->ts.wire->tx_room = UINT32_MAX;
	advance_ms(s, 500);
	wire_dev_clear(s->ts.wire);
	for (i = 0; i < 400 && s->c->rcv_nxt < 100001; i++) {
		advance_ms(s, 100);
		if (stack_sends_anything(s) > 0)
			peer_sends(s, ACK(s->c->rcv_nxt));
	}
	assert_int_equal(s->c->rcv_nxt, 100001);
}
