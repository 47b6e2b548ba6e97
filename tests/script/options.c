/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP options and flag combinations (RFC 9293 3.1, 3.7.1; RFC 7323; cases S13, S14). */
#include "base/rng.h"
#include "support/script.h"

/* RFC 9293 3.7.1, SHLD-5, MUST-14: both sides' MSS bounds what is sent */
SCRIPT(segments_are_no_longer_than_the_peers_mss)
{
	established(s, .mss = 500, .nodelay = true);
	app_writes(s, 1200);
	stack_sends(s, DATA(1, 501), DATA(501, 1001), DATA(1001, 1201));
}

/* RFC 9293 3.7.1, MUST-15: no MSS option: 536 */
SCRIPT(without_mss_option_536_is_assumed)
{
	established(s, .mss = SEG_NONE, .nodelay = true);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 537), DATA(537, 1001));
}

/* RFC 9293 3.7.1: a peer's MSS above what our link carries is no reason to send more */
SCRIPT(mss_above_the_links_is_cut)
{
	established(s, .mss = 9000, .nodelay = true);
	app_writes(s, 2000);
	stack_sends(s, DATA(1, 1461), DATA(1461, 2001));
}

/* An MSS of zero or nearly so buys no flood of headers, and no division by zero */
SCRIPT(tiny_mss_is_raised)
{
	int64_t before;

	established(s, .mss = 1);
	before = (int64_t)script_counter(s, "tcp_segs_sent");
	app_writes(s, 400);
	assert_in_range(stack_sends_anything(s), 1, 10);
	assert_in_range((int64_t)script_counter(s, "tcp_segs_sent") - before, 1, 10);
}

/* RFC 7323 2.2: the shift is offered only in answer to an offer */
SCRIPT(window_scale_is_offered_only_to_who_offers_it)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.wscale = SEG_NONE));
	use_conn(s, 1);
	s->c->wscale = 5;
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	assert_int_not_equal(s->c->stack_wscale, SEG_NONE);
}

/* RFC 7323 2.3: the peer's windows are scaled, but not the one in its SYN */
SCRIPT(scaled_window_limits_what_is_sent)
{
	struct tcp_conn_info i;

	established(s, .wscale = 2, .wnd = 100);
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wnd_bytes, 400);
	app_writes(s, 1000);
	/* 400 of 1000 bytes fit: sent at once or after the SWS override (RFC 9293 3.8.6.2.1) */
	stack_sends(s, DATA(1, 401, .after_ms = 500, .tol_ms = 500));
	stack_silent_ms(s, 100);
}

/* RFC 7323 2.3; case S14 c: a shift above 14 counts as 14 */
SCRIPT(shift_above_fourteen_is_fourteen)
{
	static const int shifts[] = { 14, 15, 31, 32, 255 };
	struct tcp_conn_info info;
	unsigned i;

	app_listens(s);
	for (i = 0; i < ARRAY_LEN(shifts); i++) {
		use_conn(s, i);
		s->c->wscale = shifts[i];
		peer_sends(s, SYN());
		stack_sends(s, SYNACK());
		peer_sends(s, ACK(1, .wnd = 2));
		app_accepts(s);
		assert_true(script_conn_info(s, &info));
		assert_int_equal(info.snd_wscale, 14);
		assert_int_equal(info.snd_wnd_bytes, 2 << 14);
	}
}

/* RFC 7323 2.2; case S14 e: our offer was not taken: no scaling in either direction */
SCRIPT(unanswered_offer_means_no_scaling)
{
	struct tcp_conn_info i;

	s->c->wscale = SEG_NONE;
	established(s, .active = true, .wnd = 1000);
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wscale, 0);
	assert_int_equal(i.rcv_wscale, 0);
	assert_int_equal(i.snd_wnd_bytes, 1000);
}

/* Case S14 f: the option off a SYN is ignored */
SCRIPT(window_scale_off_a_syn_is_ignored)
{
	struct tcp_conn_info i;

	established(s, .wnd = 1000);
	peer_sends(s, ACK(1, .opts = BYTES(3, 3, 9, 1), .wnd = 2000));
	stack_silent(s);
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wscale, 0);
	assert_int_equal(i.snd_wnd_bytes, 2000);
}

/*
 * Case S14 a, d: without scaling a large buffer is told as 65535 at most, never as its low 16 bits
 */
SCRIPT(large_buffer_without_scaling_is_told_as_65535)
{
	s->place = HERE;
	script_app_listens(s, HERE, 16, 131072);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	assert_in_range(s->c->stack_edge - 1, 20000, 65535);
	peer_sends(s, ACK(1));
	app_accepts(s);
	peer_sends(s, DATA(1, 1461), DATA(1461, 2921));
	stack_acks(s, 2921);
	assert_in_range(s->c->stack_edge - 2921, 10000, 65535);
}

/* Case S13 e, f; RFC 9293 3.1 MUST-6: unknown options are skipped by their length */
SCRIPT(unknown_options_are_skipped)
{
	app_listens(s);
	peer_sends(s, SYN(.opts = BYTES(0xfe, 4, 0xab, 0xcd)));
	stack_sends(s, SYNACK());
	use_conn(s, 1);
	peer_sends(s, SYN(.opts = BYTES(2, 4, 5, 0xb4, 0xfd, 2, 1, 0)));
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
	app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	app_writes(s, 1500);
	stack_sends(s, DATA(1, 1461), DATA(1461, 1501));
}

/*
 * Case S13 a-d; RFC 9293 3.1 MUST-7: impossible lengths end nothing but the option walk, or the
 * segment
 */
SCRIPT(impossible_option_lengths_do_no_harm)
{
	unsigned i;

	app_listens(s);
	peer_sends(
	    s, SYN(.opts = BYTES(1, 2, 0, 0)), SYN(.opts = BYTES(0x50, 0, 0, 0), .sport = 41001));
	peer_sends(s, SYN(.opts = BYTES(1, 1, 1, 8), .sport = 41002),
	    SYN(.opts = BYTES(8, 10, 0, 0), .sport = 41003));
	wire_dev_clear(s->ts.wire);
	for (i = 1; i < 3; i++) {
		use_conn(s, i);
		peer_sends(s, SYN());
		stack_sends(s, SYNACK());
		peer_sends(s, ACK(1));
		app_accepts(s);
	}
	/* the same on an established connection: nothing breaks */
	peer_sends(
	    s, DATA(1, 11, .opts = BYTES(1, 1, 1, 8)), DATA(1, 11, .opts = BYTES(5, 0, 0, 0)));
	stack_sends_anything(s);
	peer_sends(s, DATA(1, 11));
	advance_ms(s, 100);
	stack_sends_anything(s);
	app_reads(s, 10);
}

/* Case S13 g: a data offset below 5 or past the segment's end */
SCRIPT(lying_data_offset_is_dropped)
{
	app_listens(s);
	peer_sends(s, SYN(.hlen_bytes = 16), SYN(.hlen_bytes = 0),
	    SYN(.hlen_bytes = 60, .opts = BYTES(1, 1, 1, 1)));
	stack_silent(s);
	counter_is(s, "drop_tcp_hlen", 3);
	/* 20 bytes of header and nothing behind it */
	peer_sends(
	    s, SYN(.hlen_bytes = 60, .mss = SEG_NONE), SYN(.hlen_bytes = 24, .mss = SEG_NONE));
	stack_silent(s);
	counter_is(s, "drop_tcp_hlen", 5);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
}

/* Case S13 h; RFC 3168 6.1.1: an ECN-setup SYN is answered without ECE by who does no ECN */
SCRIPT(ecn_setup_syn_is_an_ordinary_syn)
{
	app_listens(s);
	peer_sends(s, SEG(.flags = TH_SYN | TH_ECE | TH_CWR, .seq = 0));
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
}

/* Case S13 i, j, k: combinations that mean nothing */
SCRIPT(senseless_flags_to_a_listener_start_no_war)
{
	app_listens(s);
	peer_sends(s, SEG(.flags = TH_SYN | TH_RST, .seq = 0), SEG(.flags = 0, .seq = 0),
	    SEG(.flags = TH_FIN | TH_SYN | TH_RST | TH_ACK | TH_URG | TH_ECE | TH_CWR, .seq = 0,
		.push = 1));
	stack_silent(s);
	peer_sends(s, SEG(.flags = TH_SYN | TH_FIN, .seq = 0));
	assert_in_range(stack_sends_anything(s), 0, 1);
	app_accept_fails(s, EAGAIN);
	use_conn(s, 1);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
}

/* Case S13 k: the same on an established connection */
SCRIPT(senseless_flags_on_a_connection_do_no_harm)
{
	established(s);
	peer_sends(s, SEG(.flags = 0, .seq = 1, .len = 10));
	stack_silent(s);
	peer_sends(s, SEG(.flags = TH_SYN | TH_FIN | TH_ACK, .seq = 1));
	assert_in_range(stack_sends_anything(s), 0, 1);
	state_is(s, TCP_ESTABLISHED);
	s->c->snd_nxt = 1;
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
}

/* RFC 9293 3.10.7.4, fifth: "if the ACK bit is off, drop the segment and return" */
SCRIPT(data_without_ack_bit_is_dropped)
{
	established(s);
	peer_sends(s, SEG(.flags = 0, .seq = 1, .len = 100));
	stack_silent_ms(s, 500);
	app_reads_nothing(s);
}

/* RFC 9293 3.8.5 (RFC 6093): urgent data are ordinary data in the stream for who does not ask */
SCRIPT(urgent_data_stays_in_line)
{
	established(s);
	peer_sends(s, DATA(1, 11, .urg = 5));
	app_reads(s, 10);
	stack_acks(s, 11);
}

/*
 * Case S13 n: random options, fixed seed, on SYNs and on a connection: both still work afterwards
 */
SCRIPT(random_options_do_no_harm)
{
	struct seg_bytes junk;
	struct rng r;
	unsigned i, k;

	established(s);
	rng_init(&r, 42);
	for (i = 0; i < 100000; i++) {
		junk.count = 4 * (1 + rng_below(&r, 10));
		for (k = 0; k < junk.count; k++)
			junk.b[k] = (uint8_t)rng_below(&r, rng_below(&r, 2) ? 12 : 256);
		if (i % 3 == 0)
			peer_sends(s, SYN(.opts = junk, .sport = 10000 + i % 25000));
		else
			peer_sends(s, ACK(1, .seq = 1, .opts = junk));
		wire_dev_clear(s->ts.wire);
	}
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
	use_conn(s, 1);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	advance_ms(s, 300000);
	wire_dev_clear(s->ts.wire);
}

/* RFC 2018 2, RFC 7323 3.2: what the peer does not offer is not used */
SCRIPT(options_not_offered_are_not_used)
{
	established(s);
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11, .ts = 0, .sack = NO_SACK));
	peer_sends(s, ACK(11), DATA(101, 201));
	stack_sends(s, ACK(1, .ts = 0, .sack = NO_SACK));
}

/* RFC 7323 3.2: once agreed, timestamps are on every segment but RST */
SCRIPT(agreed_timestamps_are_on_every_segment)
{
	established(s, .ts = true, .sack = true, .nodelay = true);
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1449, .ts = 1), DATA(1449, 1461, .ts = 1));
	peer_sends(s, ACK(1461), DATA(1, 11));
	stack_sends(s, ACK(11, .ts = 1, .after_ms = 40, .tol_ms = 40));
}

/* TCP_MAXSEG bounds what we offer and what we send */
SCRIPT(maxseg_option_bounds_segments)
{
	app_listens(s);
	app_sets_int(s, IPPROTO_TCP, TCP_MAXSEG, 700);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.mss = 700));
	peer_sends(s, ACK(1));
	app_accepts(s);
	app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 701), DATA(701, 1001));
}
