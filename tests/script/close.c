/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing from either side, FIN in every state (RFC 9293 3.6, 3.10.4, 3.10.7.4 fifth and eighth;
 * case S21).
 */
#include "support/script.h"

/* RFC 9293 figure 12: ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, TIME-WAIT, CLOSED after 2 MSL */
SCRIPT(active_close_goes_through_all_states)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 1));
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, ACK(2));
	stack_silent(s);
	state_is(s, TCP_FIN_WAIT_2);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
	stack_silent_ms(s, 59000);
	state_is(s, TCP_TIME_WAIT);
	stack_silent_ms(s, 3000);
	state_is(s, TCP_CLOSED);
}

/* RFC 9293 figure 12, the other side: CLOSE-WAIT, LAST-ACK, CLOSED */
SCRIPT(passive_close_goes_through_all_states)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2, .seq = 1));
	state_is(s, TCP_CLOSE_WAIT);
	app_reads_eof(s);
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 2));
	state_is(s, TCP_LAST_ACK);
	peer_sends(s, ACK(2));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/* RFC 9293 figure 13: both at once: CLOSING */
SCRIPT(simultaneous_close_goes_through_closing)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 1));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_CLOSING);
	peer_sends(s, ACK(2));
	stack_silent(s);
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 9293 3.10.7.4, eighth, FIN-WAIT-1: FIN that acknowledges ours: TIME-WAIT at once */
SCRIPT(fin_that_acknowledges_ours_enters_time_wait)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 9293 3.10.4: queued data goes first, the FIN behind it */
SCRIPT(close_sends_queued_data_before_the_fin)
{
	established(s, .mss = 1000, .wnd = 2000);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 1001), DATA(1001, 2001));
	app_closes(s);
	stack_silent(s);
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, ACK(2001));
	stack_sends(s, DATA_FIN(2001, 3001, .push = 1));
	peer_sends(s, ACK(3002), FIN(1));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 9293 3.7.4 does not hold a FIN: small data and FIN leave though something is in flight */
SCRIPT(nagle_does_not_hold_data_before_a_fin)
{
	established(s);
	app_writes(s, 50);
	stack_sends(s, DATA(1, 51));
	app_writes(s, 50);
	stack_silent(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, DATA_FIN(51, 101));
}

/* Case S21 a: our FIN is lost: repeated with back-off, same number */
SCRIPT(lost_fin_is_repeated)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	stack_sends(s, FIN(1, .after_ms = 200, .tol_ms = 3), FIN(1, .after_ms = 400, .tol_ms = 10));
	peer_sends(s, ACK(2));
	stack_silent_ms(s, 2000);
	state_is(s, TCP_FIN_WAIT_2);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
}

/* The same in LAST-ACK, and its end by timeout (case S21 e) */
SCRIPT(last_ack_ends_by_timeout)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	app_closes(s);
	stack_sends(s, FIN(1));
	stack_sends(s, FIN(1, .after_ms = 200, .tol_ms = 3));
	advance_ms(s, 2 * 3600 * 1000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
}

/* The peer's FIN comes again because our ACK was lost: every state acknowledges it */
SCRIPT(repeated_fin_is_acknowledged_in_close_wait)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2, .seq = 1));
	state_is(s, TCP_CLOSE_WAIT);
}

SCRIPT(repeated_fin_is_acknowledged_in_closing)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 1));
	stack_sends(s, ACK(2));
	peer_sends(s, FIN(1, .ack = 1));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_CLOSING);
}

SCRIPT(repeated_fin_is_acknowledged_in_last_ack)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 1));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_LAST_ACK);
	/* RFC 9293 3.10.7.4, first: all of it is old, so its ACK does not count either */
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_LAST_ACK);
	peer_sends(s, ACK(2));
	state_is(s, TCP_CLOSED);
}

/* Case S21 c: after close FIN-WAIT-2 has an end */
SCRIPT(fin_wait_2_after_close_ends)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2));
	state_is(s, TCP_FIN_WAIT_2);
	stack_silent_ms(s, 50000);
	state_is(s, TCP_FIN_WAIT_2);
	advance_ms(s, 150000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
}

/* Case S21 d: after shutdown it has none: data for ten minutes, then end of file, no RST */
SCRIPT(half_closed_connection_receives_for_long)
{
	int i;

	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2));
	for (i = 0; i < 10; i++) {
		int64_t at = s->c->snd_nxt;

		stack_silent_ms(s, 60000);
		peer_sends(s, DATA(at, at + 1000));
		stack_acks(s, at + 1000);
		app_reads(s, 1000);
		state_is(s, TCP_FIN_WAIT_2);
	}
	peer_sends(s, FIN(s->c->snd_nxt));
	stack_sends_anything(s);
	app_reads_eof(s);
	state_is(s, TCP_TIME_WAIT);
	counter_is(s, "tcp_resets_sent", 0);
}

/* Data arrives in FIN-WAIT-1 too (RFC 9293 3.10.7.4 seventh) */
SCRIPT(data_in_fin_wait_1_is_delivered)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, DATA(1, 101, .ack = 1));
	app_reads(s, 100);
	stack_acks(s, 101);
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, ACK(2));
	state_is(s, TCP_FIN_WAIT_2);
}

/* Case S21 e: the other half-close: we send long after the peer's FIN */
SCRIPT(close_wait_sends_for_long)
{
	int i;

	established(s, .nodelay = true);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	stack_silent_ms(s, 300000);
	for (i = 0; i < 10; i++) {
		app_writes(s, 1000);
		stack_sends(s, DATA(1 + 1000 * i, 1001 + 1000 * i, .ack = 2));
		peer_sends(s, ACK(1001 + 1000 * i));
	}
	app_closes(s);
	stack_sends(s, FIN(10001));
	peer_sends(s, ACK(10002));
	state_is(s, TCP_CLOSED);
}

/* shutdown twice, and writes after it */
SCRIPT(write_after_shutdown_is_a_broken_pipe)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	app_write_fails(s, EPIPE);
	app_shutdown(s, SHUT_WR);
	stack_silent(s);
}

/* shutdown(SHUT_RDWR) sends a FIN; close adds nothing */
SCRIPT(close_after_shutdown_sends_nothing_more)
{
	established(s);
	app_shutdown(s, SHUT_RDWR);
	stack_sends(s, FIN(1));
	app_reads_eof(s);
	app_closes(s);
	stack_silent(s);
	peer_sends(s, ACK(2), FIN(1));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 9293 3.10.7.4, fifth, CLOSING and LAST-ACK: only the ACK of our FIN counts */
SCRIPT(old_ack_in_last_ack_does_not_close)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	peer_sends(s, FIN(1, .ack = 1));
	stack_sends(s, ACK(2));
	app_closes(s);
	stack_sends(s, FIN(101));
	peer_sends(s, ACK(101));
	state_is(s, TCP_LAST_ACK);
	peer_sends(s, ACK(102));
	state_is(s, TCP_CLOSED);
}

/* The FIN takes a number: an ACK of the data alone leaves FIN-WAIT-1 */
SCRIPT(ack_of_data_alone_stays_in_fin_wait_1)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	app_closes(s);
	stack_sends(s, FIN(101));
	peer_sends(s, ACK(101));
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, ACK(102));
	state_is(s, TCP_FIN_WAIT_2);
}

/* FIN and data retransmit together after an RTO */
SCRIPT(lost_data_and_fin_are_repeated)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	app_closes(s);
	stack_sends(s, FIN(101));
	stack_sends(s, DATA_FIN(1, 101, .after_ms = 200, .tol_ms = 3));
	peer_sends(s, ACK(102));
	stack_silent_ms(s, 2000);
	state_is(s, TCP_FIN_WAIT_2);
}
