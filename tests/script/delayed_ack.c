/* SPDX-License-Identifier: BSD-2-Clause */
/* When data are acknowledged (RFC 9293 3.8.6.3, SHLD-18, SHLD-19, MUST-58; RFC 5681 4.2). */
#include "support/script.h"

/* RFC 9293 3.8.6.3: less than 0.5 s; here 40 ms */
SCRIPT(single_small_segment_is_acknowledged_after_40_ms)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101, .after_ms = 40, .tol_ms = 2));
	app_reads(s, 100);
	stack_silent_ms(s, 200);
}

/* The knob says how long */
SCRIPT_ON(delayed_ack_follows_its_knob, .sysctls = { "net.inet.tcp.delack_ms=100" })
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101, .after_ms = 100, .tol_ms = 2));
}

/* RFC 5681 4.2, RFC 9293 SHLD-19: at the latest for every second full-sized segment */
SCRIPT(every_second_full_segment_is_acknowledged_at_once)
{
	int i;

	established(s);
	for (i = 0; i < 40; i++) {
		int64_t at = s->c->snd_nxt;

		peer_sends(s, DATA(at, at + 1460), DATA(at + 1460, at + 2920));
		stack_sends(s, ACK(at + 2920));
		app_reads(s, 2920);
		stack_sends_anything(s);
	}
}

/* The same when the two come in two bursts */
SCRIPT(second_full_segment_in_another_burst_is_acknowledged_at_once)
{
	int i;

	established(s);
	for (i = 0; i < 20; i++) {
		int64_t at = s->c->snd_nxt;
		unsigned sent;

		peer_sends(s, DATA(at, at + 1460));
		sent = stack_sends_anything(s);		/* at once at the start of a connection */
		peer_sends(s, DATA(at + 1460, at + 2920));
		sent += stack_sends_anything(s);
		assert_in_range(sent, 1, 2);
		assert_int_equal(s->c->stack_edge >= at + 2920, 1);
		app_reads(s, 2920);
		stack_sends_anything(s);
	}
}

/* Case S08 g: a burst is worked off before ACKs go out */
SCRIPT(burst_of_32_segments_gets_few_acks)
{
	struct seg g[32];
	unsigned i, acks;

	established(s);
	for (i = 0; i < 32; i++)
		g[i] = DATA(1 + 1460 * i, 1 + 1460 * (i + 1));
	script_peer_sends(s, HERE, g, 32);
	acks = stack_sends_anything(s);
	assert_in_range(acks, 1, 16);
	app_reads(s, 32 * 1460);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/* RFC 9293 3.8.6.3: an ACK that waits rides on data */
SCRIPT(delayed_ack_rides_on_data)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_silent_ms(s, 10);
	app_writes(s, 50);
	stack_sends(s, DATA(1, 51, .ack = 101));
	peer_sends(s, ACK(51));
	stack_silent_ms(s, 500);
	app_reads(s, 100);
}

/* RFC 5681 4.2: out of order: at once */
SCRIPT(out_of_order_segment_is_acknowledged_at_once)
{
	established(s);
	peer_sends(s, DATA(101, 201));
	stack_sends(s, ACK(1));
	counter_is(s, "tcp_dup_acks_sent", 1);
}

/* RFC 5681 4.2: what fills a gap, wholly or in part: at once */
SCRIPT(segment_that_fills_a_gap_is_acknowledged_at_once)
{
	established(s);
	peer_sends(s, DATA(101, 201), DATA(301, 401));
	stack_sends(s, ACK(1), ACK(1));
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(201));
	peer_sends(s, DATA(201, 301));
	stack_sends(s, ACK(401));
	app_reads(s, 400);
}

/*
 * Peer without SACK: every segment out of order gets its own duplicate ACK, though all came in one
 * burst
 */
SCRIPT(three_segments_out_of_order_in_one_burst_get_three_duplicate_acks)
{
	established(s);
	peer_sends(s, DATA(1461, 2921), DATA(2921, 4381), DATA(4381, 5841));
	stack_sends(s, ACK(1, .seq = 1), ACK(1, .seq = 1), ACK(1, .seq = 1));
	stack_silent(s);
	peer_sends(s, DATA(1, 1461));
	stack_sends(s, ACK(5841));
	app_reads(s, 5840);
}

/* RFC 5681 2: a duplicate ACK has the same window as the one before */
SCRIPT(duplicate_acks_repeat_the_window)
{
	int64_t wnd;

	established(s);
	peer_sends(s, DATA(101, 201));
	stack_sends(s, ACK(1));
	wnd = s->c->stack_edge - 1;
	peer_sends(s, DATA(201, 301), DATA(301, 401));
	stack_sends(s, ACK(1, .wnd = wnd), ACK(1, .wnd = wnd));
}

/* TCP_QUICKACK: no delay */
SCRIPT(quickack_acknowledges_at_once)
{
	established(s);
	app_sets_int(s, IPPROTO_TCP, TCP_QUICKACK, 1);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101));
}

/* A FIN is acknowledged at once */
SCRIPT(fin_is_acknowledged_at_once)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
}

/* RFC 9293 3.10.7.4 table 6: pure ACKs draw no ACK, however many */
SCRIPT(pure_acks_draw_no_answer)
{
	int i;

	established(s);
	for (i = 0; i < 20; i++)
		peer_sends(s, ACK(1, .wnd = 30000 + i));
	stack_silent_ms(s, 500);
}
