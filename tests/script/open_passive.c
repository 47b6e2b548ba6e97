/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LISTEN and SYN-RECEIVED: how a connection is opened by the peer (RFC 9293 3.10.7.2, 3.10.7.4;
 * cases S11, S07).
 */
#include "support/script.h"

/* RFC 9293 3.10.7.2, third: "send <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK>", state SYN-RECEIVED */
SCRIPT(syn_to_listener_is_answered_with_syn_ack)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.mss = 1460, .wscale = SEG_NONE, .ts = 0, .sack_ok = 0));
	state_is(s, TCP_SYN_RCVD);
	app_accept_fails(s, EAGAIN);
}

/*
 * The harness's own promise: the ISN really sits below the wrap (RFC 6528's clock is what moves it
 * there).
 */
SCRIPT(isn_of_passive_open_is_just_below_the_wrap)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	assert_in_range(s->c->iss, s->isn_base - 50, s->isn_base + 50);
}

/* RFC 9293 3.10.7.4, fifth, SYN-RECEIVED: an acceptable ACK establishes */
SCRIPT(ack_of_syn_ack_establishes_and_accept_returns_it)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
	app_reads_nothing(s);
	app_accept_fails(s, EAGAIN);
}

/* RFC 9293 3.10.7.2, second: "any acknowledgment is bad … <SEQ=SEG.ACK><CTL=RST>" */
SCRIPT(ack_to_listener_is_answered_with_rst)
{
	app_listens(s);
	peer_sends(s, ACK(500, .seq = 7));
	stack_sends(s, RST(500));
	state_is(s, TCP_CLOSED);
}

/* RFC 9293 3.10.7.2, first: "an incoming RST should be ignored" */
SCRIPT(rst_to_listener_is_ignored)
{
	app_listens(s);
	peer_sends(s, RST(1), RSTACK(1, 1));
	stack_silent(s);
}

/* RFC 9293 3.10.7.2, fourth: anything without SYN, ACK and RST is dropped */
SCRIPT(data_or_fin_without_ack_to_listener_is_dropped)
{
	app_listens(s);
	peer_sends(s, SEG(.flags = TH_FIN, .seq = 1), SEG(.flags = 0, .seq = 1, .len = 10));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/* RFC 9293 3.10.7.1: no ACK: <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK> */
SCRIPT(syn_to_closed_port_is_reset)
{
	s->c->lport = 81;
	peer_sends(s, SYN());
	stack_sends(s, RSTACK(0, 1));
	peer_sends(s, SEG(.flags = TH_SYN, .seq = 0, .len = 20));
	stack_sends(s, RSTACK(0, 21));
	peer_sends(s, SEG(.flags = TH_FIN, .seq = 5));
	stack_sends(s, RSTACK(0, 6));
}

/* RFC 9293 3.10.7.1: with ACK: <SEQ=SEG.ACK><CTL=RST> */
SCRIPT(ack_to_closed_port_is_reset_at_its_ack)
{
	s->c->lport = 81;
	peer_sends(s, ACK(777, .seq = 3));
	stack_sends(s, RST(777));
	peer_sends(s, DATA(1, 101, .ack = 888));
	stack_sends(s, RST(888));
	peer_sends(s, SYNACK(.ack = 999));
	stack_sends(s, RST(999));
}

/* RFC 9293 3.10.7.1: "an incoming segment containing a RST is discarded" */
SCRIPT(rst_to_closed_port_is_dropped)
{
	s->c->lport = 81;
	peer_sends(s, RST(1), RSTACK(1, 1), SEG(.flags = TH_RST | TH_SYN, .seq = 0));
	stack_silent(s);
}

/* RFC 9293 3.8.1, RFC 6298 5: the SYN-ACK is sent again with back-off (case S11 g) */
SCRIPT(syn_ack_is_repeated_with_backoff)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	stack_sends(s, SYNACK(.after_ms = 1000));
	stack_sends(s, SYNACK(.after_ms = 2000));
	stack_sends(s, SYNACK(.after_ms = 4000));
	peer_sends(s, ACK(1));
	app_accepts(s);
	stack_silent_ms(s, 10000);
}

/* Case S11 g: with the last of synack_retries spent it is given up, silently */
SCRIPT_ON(syn_ack_is_given_up, .sysctls = { "net.inet.tcp.synack_retries=4" })
{
	int i;

	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	for (i = 0; i < 4; i++)
		stack_sends(s, SYNACK(.after_ms = 1000 << i));
	state_is(s, TCP_SYN_RCVD);
	stack_silent_ms(s, 15900);
	state_is(s, TCP_SYN_RCVD);
	stack_silent_ms(s, 200);
	state_is(s, TCP_CLOSED);
	/* what comes now meets a listener that knows nothing of it (RFC 9293 3.10.7.2) */
	peer_sends(s, ACK(1));
	stack_sends(s, RST(1));
}

/* Case S07 e: a half-open entry that nobody completes goes away */
SCRIPT(half_open_connection_is_given_up)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	advance_ms(s, 300000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
	app_accept_fails(s, EAGAIN);
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
}

/* Case S11 a: each SYN-ACK has the same sequence number */
SCRIPT(repeated_syn_is_answered_with_the_same_syn_ack)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	advance_ms(s, 500);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	/* after a second the timer speaks too, with the same number */
	stack_sends(s, SYNACK(.after_ms = 500));
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
	state_is(s, TCP_ESTABLISHED);
}

/*
 * RFC 9293 3.10.7.4, second, SYN-RECEIVED: a passive open returns to LISTEN, the user need not know
 */
SCRIPT(rst_in_syn_received_returns_to_listen)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, RST(1));
	stack_silent_ms(s, 5000);
	state_is(s, TCP_CLOSED);
	app_accept_fails(s, EAGAIN);
	use_conn(s, 1);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
}

/*
 * RFC 9293 3.10.7.4, fifth, SYN-RECEIVED: an ACK out of range is answered with
 * <SEQ=SEG.ACK><CTL=RST>
 */
SCRIPT(bad_ack_in_syn_received_is_reset_and_the_entry_stays)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(555));
	stack_sends(s, RST(555));
	state_is(s, TCP_SYN_RCVD);
	peer_sends(s, ACK(1));
	app_accepts(s);
}

/* Case S11 c: data on the third segment of the handshake is taken */
SCRIPT(data_on_the_handshake_ack_is_delivered)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, DATA(1, 201, .ack = 1));
	app_accepts(s);
	app_reads(s, 200);
	stack_acks(s, 201);
}

/* Case S11 f: the third segment is lost, data comes instead */
SCRIPT(data_after_a_lost_handshake_ack_establishes)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, DATA(1, 101, .ack = 1), DATA(101, 201, .ack = 1));
	app_accepts(s);
	app_reads(s, 200);
	stack_acks(s, 201);
}

/*
 * Case S11 e; RFC 9293 3.10.7.4, eighth: a FIN in SYN-RECEIVED leads to CLOSE-WAIT once the ACK has
 * established
 */
SCRIPT(fin_on_the_handshake_ack_is_end_of_file)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, FIN(1, .ack = 1));
	stack_acks(s, 2);
	state_is(s, TCP_CLOSE_WAIT);
	app_accepts(s);
	app_reads_eof(s);
}

/*
 * Case S11 d; RFC 9293 3.10.7.2: data on a SYN reaches the application exactly once, whichever part
 * was acknowledged
 */
SCRIPT(data_on_a_syn_is_read_once)
{
	app_listens(s);
	peer_sends(s, SEG(.flags = TH_SYN, .seq = 0, .len = 64));
	stack_sends(s, SEG(.flags = TH_SYN | TH_ACK, .seq = 0));
	peer_sends(s, DATA(1, 65, .ack = 1));
	stack_sends_anything(s);
	app_accepts(s);
	app_reads(s, 64);
	app_reads_nothing(s);
	peer_sends(s, DATA(65, 75, .ack = 1));
	app_reads(s, 10);
	stack_acks(s, 75);
}

/*
 * Case S11 d, the other run: the peer takes its 64 bytes for acknowledged and goes on behind them;
 * only the SYN was (a choice), so it has to send them again
 */
SCRIPT(data_on_a_syn_that_was_not_acknowledged_comes_again)
{
	app_listens(s);
	peer_sends(s, SEG(.flags = TH_SYN, .seq = 0, .len = 64));
	stack_sends(s, SYNACK(.ack = 1));
	peer_sends(s, ACK(1, .seq = 65));
	stack_sends_anything(s);
	app_accepts(s);
	app_reads_nothing(s);
	peer_sends(s, DATA(65, 75, .ack = 1));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1, 65, .ack = 1));
	stack_sends(s, ACK(75));
	app_reads(s, 74);
	app_reads_nothing(s);
}

/* Case S11 b: SYN-ACKs are never repeated once the peer has answered, whatever is written */
SCRIPT(lost_first_data_is_repeated_without_a_syn)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	stack_sends(s, SYNACK(.after_ms = 1000));
	peer_sends(s, ACK(1));
	app_accepts(s);
	app_writes(s, 72);
	stack_sends(s, DATA(1, 73, .ack = 1));
	/* RFC 6298 5.7: the SYN-ACK had to be repeated */
	stack_sends(s, DATA(1, 73, .ack = 1, .after_ms = 3000, .tol_ms = 50));
	peer_sends(s, ACK(73));
	stack_silent_ms(s, 5000);
}

/*
 * Case S11 b: what the application writes right after accept starts at 1 and rides on no repeated
 * SYN-ACK
 */
SCRIPT(first_write_after_accept_starts_at_one)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
	app_writes(s, 72);
	stack_sends(s, DATA(1, 73, .ack = 1));
	/* the peer repeats its SYN: a challenge ACK, not a SYN-ACK with payload (RFC 5961 4.2) */
	peer_sends(s, SYN());
	stack_sends(s, ACK(1, .seq = 73));
	peer_sends(s, ACK(73));
	stack_silent_ms(s, 3000);
}

/* A handshake ACK that comes twice is an ordinary duplicate: nothing is sent */
SCRIPT(repeated_handshake_ack_is_silent)
{
	established(s);
	peer_sends(s, ACK(1), ACK(1));
	stack_silent(s);
}

/* RFC 9293 3.10.7.4, first: an unacceptable segment in SYN-RECEIVED never establishes */
SCRIPT(segment_outside_the_window_in_syn_received_does_not_establish)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, DATA(10000000, 10000100, .ack = 1));
	stack_sends_anything(s);
	state_is(s, TCP_SYN_RCVD);
	peer_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
}
