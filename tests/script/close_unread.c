/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * close() with unread data, data after close(), SO_LINGER (RFC 9293 3.6.1 SHLD-3, RFC 2525 2.17;
 * cases S22, S12 e, f).
 */
#include "support/script.h"

/* Case S22 a: RST at once, no FIN, no TIME-WAIT */
SCRIPT(close_with_unread_data_resets)
{
	established(s);
	peer_sends(s, DATA(1, 1001));
	stack_acks(s, 1001);
	app_reads(s, 400);
	app_closes(s);
	stack_sends(s, SEG(.flags = TH_RST | TH_ACK, .seq = 1, .ack = 1001));
	stack_silent_ms(s, 2000);
	state_is(s, TCP_CLOSED);
}

/* Case S22 c: though the FIN has come */
SCRIPT(close_with_unread_data_after_fin_resets)
{
	established(s);
	peer_sends(s, DATA_FIN(1, 1001));
	stack_sends(s, ACK(1002));
	app_reads(s, 400);
	app_closes(s);
	stack_sends(s, SEG(.flags = TH_RST | TH_ACK, .seq = 1));
	state_is(s, TCP_CLOSED);
}

/* All was read: an orderly close */
SCRIPT(close_after_reading_everything_sends_fin)
{
	established(s);
	peer_sends(s, DATA(1, 1001));
	stack_acks(s, 1001);
	app_reads(s, 1000);
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 1001));
}

/* Case S22 e: data after close(), our FIN not acknowledged: RST, gone */
SCRIPT(data_after_close_resets)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, DATA(1, 101, .ack = 1));
	stack_sends(s, SEG(.flags = TH_RST, .seq = 1));
	stack_silent_ms(s, 5000);
	state_is(s, TCP_CLOSED);
}

/* Case S22 d: the same after it is acknowledged */
SCRIPT(data_after_acknowledged_close_resets)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2));
	state_is(s, TCP_FIN_WAIT_2);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, SEG(.flags = TH_RST, .seq = 2));
	stack_silent_ms(s, 5000);
	state_is(s, TCP_CLOSED);
}

/*
 * Case S22 f: after shutdown(SHUT_RD) data is taken and thrown away, as on Linux; end of file is
 * read
 */
SCRIPT(data_after_shutdown_for_reading_resets_nothing)
{
	established(s);
	app_shutdown(s, SHUT_RD);
	stack_silent(s);
	app_reads_eof(s);
	peer_sends(s, DATA(1, 101));
	advance_ms(s, 100);
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	counter_is(s, "tcp_resets_sent", 0);
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11));
}

/* Case S12 e: linger 0: one RST with ACK at SND.NXT, queued data is dropped, no TIME-WAIT */
SCRIPT(linger_of_zero_resets)
{
	established(s, .mss = 1000, .wnd = 1000);
	app_writes(s, 5000);
	stack_sends(s, DATA(1, 1001));
	app_sets_linger(s, 0);
	app_closes(s);
	stack_sends(s, SEG(.flags = TH_RST | TH_ACK, .seq = 1001, .ack = 1));
	stack_silent_ms(s, 5000);
	state_is(s, TCP_CLOSED);
}

/* linger n on a non-blocking socket: close returns at once, data still goes out */
SCRIPT(linger_does_not_block_a_nonblocking_close)
{
	established(s, .mss = 1000, .wnd = 1000);
	app_writes(s, 2000);
	stack_sends(s, DATA(1, 1001));
	app_sets_linger(s, 5);
	app_closes(s);
	peer_sends(s, ACK(1001));
	stack_sends(s, DATA_FIN(1001, 2001));
	peer_sends(s, ACK(2002), FIN(1));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
}

/*
 * Case S22 b: only data beyond a hole: unread in no sense of the queue; an orderly close or a
 * reset, nothing hangs
 */
SCRIPT(close_with_data_beyond_a_hole_ends)
{
	struct seg got;

	established(s);
	peer_sends(s, DATA(101, 201));
	stack_sends(s, ACK(1));
	app_closes(s);
	got = script_take(s, 0);
	assert_true((got.flags & (TH_FIN | TH_RST)) != 0);
	advance_ms(s, 10);
	stack_sends_anything(s);
}

/* Case S22 g: a duplicate still holds the socket: nothing on the wire */
SCRIPT(close_of_one_of_two_descriptors_sends_nothing)
{
	established(s);
	script_app_dups(s, HERE);
	app_closes(s);
	stack_silent_ms(s, 1000);
	state_is(s, TCP_ESTABLISHED);
	script_app_takes_dup(s, HERE);
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
	app_closes(s);
	stack_sends(s, FIN(1));
}

/* An abort while connecting, by linger 0: nothing to reset yet (RFC 9293 3.10.5, SYN-SENT) */
SCRIPT(linger_of_zero_while_connecting_is_silent)
{
	app_connects(s);
	stack_sends(s, SYN());
	app_sets_linger(s, 0);
	app_closes(s);
	stack_silent_ms(s, 3000);
	state_is(s, TCP_CLOSED);
}
