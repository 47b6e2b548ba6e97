/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss repaired by duplicate ACKs (RFC 5681 3.2, RFC 6582; RFC 2018 and RFC 6675 where SACK is
 * agreed; case S24).
 */
#include "support/script.h"

/* Sends `segs` segments of 1000 bytes, all in flight. */
static void
fly(struct script *s, int segs)
{
	int i;

	app_writes(s, 1000 * segs);
	for (i = 0; i < segs; i++)
		stack_sends(s, DATA(1 + 1000 * i, 1001 + 1000 * i));
	stack_silent(s);
}

/* RFC 5681 3.2: the third duplicate ACK */
SCRIPT(third_duplicate_ack_retransmits_first_segment)
{
	established(s, .mss = 1000, .cwnd_segs = 4);
	fly(s, 4);
	peer_sends(s, ACK(1), ACK(1));
	stack_silent(s);
	peer_sends(s, ACK(1));
	stack_sends(s, DATA(1, 1001));
	stack_silent(s);
	peer_sends(s, ACK(4001));
	stack_silent_ms(s, 3000);
	counter_is(s, "tcp_fast_retransmits", 1);
}

/* With SACK, the three ACKs that say what came */
SCRIPT(third_sack_retransmits_first_segment)
{
	established(s, .mss = 1000, .cwnd_segs = 4, .sack = true);
	fly(s, 4);
	peer_sends(s, ACK(1, .sack = SACK(1001, 2001)), ACK(1, .sack = SACK(1001, 3001)));
	stack_silent(s);
	peer_sends(s, ACK(1, .sack = SACK(1001, 4001)));
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(4001));
	stack_silent_ms(s, 3000);
}

/* All three in one burst count as three */
SCRIPT(three_duplicate_acks_in_one_burst_retransmit)
{
	established(s, .mss = 1000, .cwnd_segs = 4);
	fly(s, 4);
	peer_sends(s, ACK(1), ACK(1), ACK(1));
	stack_sends(s, DATA(1, 1001));
	stack_silent(s);
}

/* RFC 5681 2: with data, or a new window, it is no duplicate ACK */
SCRIPT(segments_with_data_or_window_are_no_duplicate_acks)
{
	established(s, .mss = 1000, .cwnd_segs = 4);
	fly(s, 4);
	peer_sends(s, DATA(1, 11, .ack = 1), DATA(11, 21, .ack = 1), DATA(21, 31, .ack = 1));
	stack_silent(s);
	peer_sends(s, ACK(1, .wnd = 60000), ACK(1, .wnd = 50000), ACK(1, .wnd = 40000));
	stack_silent(s);
	counter_is(s, "tcp_fast_retransmits", 0);
	app_reads(s, 30);
	stack_acks(s, 31);
}

/* RFC 2883 4: what reports a copy too many tells of no hole */
SCRIPT(dsacks_are_no_duplicate_acks)
{
	established(s, .mss = 1000, .cwnd_segs = 4, .sack = true);
	fly(s, 1);
	peer_sends(s, ACK(1001));
	app_writes(s, 2000);
	stack_sends(s, DATA(1001, 2001), DATA(2001, 3001));
	peer_sends(s, ACK(1001, .sack = SACK(1, 1001)), ACK(1001, .sack = SACK(1, 1001)),
	    ACK(1001, .sack = SACK(1, 1001)));
	stack_silent(s);
	peer_sends(s, ACK(3001));
	stack_silent_ms(s, 3000);
	counter_is(s, "tcp_fast_retransmits", 0);
}

/* RFC 6582 3.2 step 3: a partial ACK: the next hole at once */
SCRIPT(partial_ack_retransmits_the_next_hole)
{
	established(s, .mss = 1000, .cwnd_segs = 6);
	fly(s, 6);
	peer_sends(s, ACK(1), ACK(1), ACK(1));
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(2001));
	stack_sends(s, DATA(2001, 3001));
	peer_sends(s, ACK(6001));
	stack_silent_ms(s, 3000);
	counter_is(s, "tcp_fast_retransmits", 1);
}

/* RFC 5681 3.2 step 3, 6: half of what was in flight */
SCRIPT(recovery_halves_the_window)
{
	struct tcp_conn_info i;

	established(s, .mss = 1000, .cwnd_segs = 10);
	fly(s, 10);
	peer_sends(s, ACK(1), ACK(1), ACK(1));
	stack_sends(s, DATA(1, 1001));
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.ssthresh_bytes, 4000, 7000);	/* a half, or CUBIC's 0.7 */
	peer_sends(s, ACK(10001));
	stack_silent(s);
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.cwnd_bytes, 1000, 8000);
}

/*
 * RFC 5681 3.2 step 4, 5: each further duplicate ACK lets a segment out once half the flight has
 * been heard of
 */
SCRIPT(duplicate_acks_inflate_the_window)
{
	unsigned sent;

	established(s, .mss = 1000, .cwnd_segs = 10);
	app_writes(s, 20000);
	assert_true(stack_sends_anything(s) == 10);
	peer_sends(s, ACK(1), ACK(1), ACK(1));
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(1), ACK(1), ACK(1), ACK(1), ACK(1), ACK(1));
	sent = stack_sends_anything(s);
	assert_in_range(sent, 2, 6);
	peer_sends(s, ACK(10001 + 1000 * sent));
	stack_sends_anything(s);
}

/* RFC 3042: limited transmit: the first two duplicate ACKs may let new data out, never old */
SCRIPT(first_two_duplicate_acks_send_nothing_old)
{
	struct seg got;
	int i;

	established(s, .mss = 1000, .cwnd_segs = 10);
	app_writes(s, 15000);
	assert_true(stack_sends_anything(s) == 10);
	peer_sends(s, ACK(1), ACK(1));
	for (i = 0; i < 2 && s->ts.wire->out.first != NULL; i++) {
		got = script_take(s, 0);
		assert_true(got.seq >= 10001);
	}
	stack_silent(s);
}

/* RFC 6582 3.2 step 1: old duplicate ACKs after recovery start no second one for the same data */
SCRIPT(late_duplicate_acks_do_not_retransmit_again)
{
	established(s, .mss = 1000, .cwnd_segs = 6);
	fly(s, 6);
	peer_sends(s, ACK(1), ACK(1), ACK(1));
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(6001));
	stack_silent(s);
	peer_sends(s, ACK(6001), ACK(6001), ACK(6001), ACK(6001));
	stack_silent_ms(s, 2000);
}

/* Our side of SACK (RFC 2018 4): first block is the one that holds the newest segment */
SCRIPT(sack_blocks_tell_what_is_there_newest_first)
{
	established(s, .sack = true);
	peer_sends(s, DATA(101, 201));
	stack_sends(s, ACK(1, .sack = SACK(101, 201)));
	peer_sends(s, DATA(301, 401));
	stack_sends(s, ACK(1, .sack = SACK(301, 401, 101, 201)));
	peer_sends(s, DATA(501, 601));
	stack_sends(s, ACK(1, .sack = SACK(501, 601, 301, 401, 101, 201)));
	peer_sends(s, DATA(201, 301));
	stack_sends(s, ACK(1, .sack = SACK(101, 401, 501, 601)));
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(401, .sack = SACK(501, 601)));
	peer_sends(s, DATA(401, 501));
	stack_sends(s, ACK(601, .sack = NO_SACK));
	app_reads(s, 600);
}

/* RFC 2883 4: a segment that came twice is told as first block */
SCRIPT(duplicate_segment_is_reported_as_dsack)
{
	established(s, .sack = true);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101, .sack = SACK(1, 101)));
	app_reads(s, 100);
}

/* Case S24 a, b, c, f, h: broken blocks: nothing breaks, the ACK number still counts */
SCRIPT(broken_sack_blocks_do_no_harm)
{
	established(s, .mss = 1000, .cwnd_segs = 10, .sack = true);
	fly(s, 10);
	peer_sends(s, ACK(1, .sack = SACK(10001 + 0x40000000LL, 10001 + 0xa0000000LL)));
	peer_sends(s, ACK(1, .sack = SACK(2001, 2001)));
	peer_sends(s, ACK(1001, .sack = SACK(4001, 3001)));
	stack_sends_anything(s);
	peer_sends(s, ACK(1001, .sack = SACK(2001, 12001)));
	peer_sends(s, ACK(1001, .opts = BYTES(1, 5, 2, 1)),
	    ACK(1001, .opts = BYTES(5, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)));
	peer_sends(s, ACK(1001, .opts = BYTES(1, 1, 5, 42)));
	advance_ms(s, 1);
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, ACK(10001));
	stack_silent_ms(s, 2000);
	assert_int_equal(script_queued_out(s), 0);
}

/*
 * Case S24 e; RFC 2018 8: what was SACKed is kept until it is acknowledged, and sent again after a
 * timeout
 */
SCRIPT(reneged_data_is_sent_again_after_timeout)
{
	int64_t top = 0;
	int i;

	established(s, .mss = 1000, .cwnd_segs = 5, .sack = true);
	fly(s, 5);
	peer_sends(s, ACK(1, .sack = SACK(1001, 5001)));
	advance_ms(s, 1);
	stack_sends_anything(s);
	assert_int_equal(script_queued_out(s), 5000);
	/* the peer has thrown it away; it acknowledges one by one what comes again */
	s->c->rcv_nxt = 1;
	for (i = 0; i < 40 && s->c->rcv_nxt < 5001; i++) {
		advance_ms(s, 500);
		if (stack_sends_anything(s) > 0)
			peer_sends(s, ACK(s->c->rcv_nxt));
		top = s->c->rcv_nxt;
	}
	assert_int_equal(top, 5001);
	advance_ms(s, 10);
	stack_sends_anything(s);
}

/* Case S24 j: blocks that were not agreed are ignored */
SCRIPT(sack_blocks_without_agreement_are_ignored)
{
	established(s, .mss = 1000, .cwnd_segs = 4);
	fly(s, 4);
	peer_sends(s, ACK(1, .sack = SACK(1001, 4001)));
	stack_silent(s);
	peer_sends(s, ACK(4001));
	stack_silent_ms(s, 2000);
}

/* Case S24 g: hundreds of one-byte blocks: bounded, and the connection goes on */
SCRIPT(many_tiny_sack_blocks_do_no_harm)
{
	int i;

	established(s, .mss = 1000, .cwnd_segs = 10, .sack = true);
	fly(s, 10);
	for (i = 0; i < 500; i++)
		peer_sends(s,
		    ACK(1, .sack = SACK(1001 + 7 * i, 1002 + 7 * i, 5001 + 3 * i, 5002 + 3 * i)));
	stack_sends_anything(s);
	peer_sends(s, ACK(10001));
	stack_silent_ms(s, 2000);
	assert_int_equal(script_queued_out(s), 0);
}
