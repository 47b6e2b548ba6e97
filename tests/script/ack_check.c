/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which acknowledgments count, and which segments are in the window (RFC 9293 3.10.7.4 first,
 * fifth; RFC 5961 5.2).
 */
#include "support/script.h"

/*
 * RFC 9293 3.10.7.4, fifth: "if the ACK acks something not yet sent … send an ACK, drop the
 * segment" (case S17 h)
 */
SCRIPT(ack_of_data_never_sent_is_answered_and_dropped)
{
	established(s);
	peer_sends(s, ACK(2));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, ACK(1 + 0x7fff0000, .seq = 1));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, DATA(1, 101, .ack = 5));
	stack_sends(s, ACK(1, .seq = 1));
	app_reads_nothing(s);
	state_is(s, TCP_ESTABLISHED);
	s->c->snd_nxt = 1;
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11, .ack = 1));
}

/* RFC 5961 5.2: older than SND.UNA - MAX.SND.WND: challenge; case S17 h */
SCRIPT(ack_older_than_any_window_is_challenged)
{
	established(s);
	peer_sends(s, ACK(1 - 70000));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, DATA(1, 101, .ack = 1 - 70000));
	stack_sends(s, ACK(1, .seq = 1));
	app_reads_nothing(s);
}

/*
 * RFC 9293 3.10.7.4, fifth: "if the ACK is a duplicate, it can be ignored", and data with it is
 * good
 */
SCRIPT(old_ack_with_new_data_delivers_the_data)
{
	established(s);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(1001));
	peer_sends(s, DATA(1, 101, .ack = 1));
	app_reads(s, 100);
	stack_acks(s, 101);
}

/* RFC 9293 3.10.7.4, fifth: SND.UNA moves, what is acknowledged leaves the queue */
SCRIPT(partial_ack_frees_what_it_covers)
{
	established(s);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 1001));
	assert_int_equal(script_queued_out(s), 1000);
	peer_sends(s, ACK(401));
	stack_silent(s);
	assert_int_equal(script_queued_out(s), 600);
	peer_sends(s, ACK(1001));
	assert_int_equal(script_queued_out(s), 0);
}

/*
 * RFC 9293 3.10.7.4 table 6, RCV.WND > 0: the last byte inside is taken, the first outside is not
 */
SCRIPT(data_at_the_right_edge_is_cut_to_the_window)
{
	int64_t edge;

	established(s, .rcvbuf = 8192);
	edge = s->c->stack_edge;
	peer_sends(s, DATA(edge, edge + 100));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(edge - 1, edge + 100));
	stack_sends(s, ACK(1));
	counter_is(s, "tcp_ooo_bytes", 1);
	app_reads_nothing(s);
}

/* RFC 9293 3.10.7.4, first: unacceptable: <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>, dropped */
SCRIPT(data_outside_the_window_is_acknowledged_and_dropped)
{
	established(s);
	peer_sends(s, DATA(s->c->stack_edge + 5000, s->c->stack_edge + 5100));
	stack_sends(s, ACK(1, .seq = 1));
	app_reads_nothing(s);
	counter_is(s, "drop_tcp_window", 1);
}

/* RFC 9293 3.10.7.4, first: data received before: ACK again */
SCRIPT(old_data_is_acknowledged_again)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101));
	app_reads(s, 100);
	app_reads_nothing(s);
}

/* RFC 9293 3.10.7.4, first: "segments … should be trimmed": the part that is new counts */
SCRIPT(overlapping_data_is_trimmed_at_the_left)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	peer_sends(s, DATA(51, 151));
	app_reads(s, 150);
	app_reads_nothing(s);
	stack_acks(s, 151);
}

/* What was received first wins over what a later segment says at the same place */
SCRIPT(first_bytes_received_win)
{
	established(s);
	peer_sends(s, DATA(101, 201));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(101, 201, .fill = 0xee));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 201);
	app_reads(s, 200);
}

/* Case S16 e: half the sequence space away, both sides */
SCRIPT(segments_far_outside_are_dropped)
{
	established(s);
	peer_sends(s, DATA(1 + 0x7fffffffLL, 1 + 0x7fffffffLL + 10));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, DATA(1 + 0x80000000LL, 1 + 0x80000000LL + 10));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, DATA(1 - 0x7fffffffLL, 1 - 0x7fffffffLL + 10));
	stack_sends(s, ACK(1, .seq = 1));
	app_reads_nothing(s);
}

/*
 * RFC 9293 3.10.7.4, fifth: window update rules SND.WL1, SND.WL2: an old segment does not shrink
 * the window
 */
SCRIPT(old_segment_does_not_change_the_send_window)
{
	struct tcp_conn_info i;

	established(s);
	peer_sends(s, DATA(1, 11, .wnd = 5000));
	stack_acks(s, 11);
	peer_sends(s, ACK(1, .seq = 1, .wnd = 100));	/* older SEG.SEQ */
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wnd_bytes, 5000);
	peer_sends(s, ACK(1, .wnd = 7000));
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wnd_bytes, 7000);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/*
 * RFC 9293 3.10.7.4, table 6, RCV.WND = 0: only a segment without data at RCV.NXT is acceptable;
 * its ACK counts
 */
SCRIPT(ack_at_a_closed_window_counts)
{
	established(s, .rcvbuf = 4096);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	while (s->c->snd_nxt < s->c->stack_edge) {
		int64_t from = s->c->snd_nxt, to = from + 1460;

		peer_sends(s, DATA(from, to < s->c->stack_edge ? to : s->c->stack_edge, .ack = 1));
		advance_ms(s, 50);
		stack_sends_anything(s);
	}
	peer_sends(s, ACK(101));
	assert_int_equal(script_queued_out(s), 0);
	app_reads(s, s->c->snd_nxt - 1);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/* Checksums are judged before anything else (case S27 a) */
SCRIPT(bad_checksum_changes_nothing)
{
	established(s);
	peer_sends(s, DATA(1, 101, .bad_csum = 1), RST(1, .bad_csum = 1), SYN(.bad_csum = 1));
	stack_silent_ms(s, 200);
	counter_is(s, "drop_tcp_csum", 3);
	state_is(s, TCP_ESTABLISHED);
	app_reads_nothing(s);
}
