/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends open at once (RFC 9293 3.5 figure 8, MUST-10; 3.10.7.3 fourth; case S10). */
#include "support/script.h"

/* Case S10 a: SYN crosses SYN; the SYN-ACKs cross too */
SCRIPT(crossing_syns_establish_by_syn_ack)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	state_is(s, TCP_SYN_RCVD);
	peer_sends(s, SYNACK());
	stack_sends_anything(s);	/* an ACK of the SYN-ACK is allowed, not asked for */
	state_is(s, TCP_ESTABLISHED);
	app_polls(s, POLLOUT);
	app_so_error_is(s, 0);
	/* the success is told once */
	app_connect_gives(s, 0);
	app_connect_gives(s, EISCONN);
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11, .ack = 1));
}

/* Case S10 b: a plain ACK does as well */
SCRIPT(crossing_syns_establish_by_ack)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1, .seq = 1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	app_polls(s, POLLOUT);
}

/* Case S10 c: options are those of the peer's SYN */
SCRIPT(crossing_syns_agree_on_options)
{
	struct tcp_conn_info i;

	s->c->mss = 536;
	s->c->wscale = 7;
	s->c->ts = true;
	s->c->sack_ok = true;
	app_connects(s);
	stack_sends(s, SYN(.ts = 1, .sack_ok = 1));
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.ts = 1, .sack_ok = 1));
	peer_sends(s, ACK(1, .seq = 1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	assert_true(script_conn_info(s, &i));
	assert_true(i.has_ts);
	assert_true(i.has_sack);
	assert_int_equal(i.snd_wscale, 7);
	app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 525), DATA(525, 1001));	/* 536 less 12 of timestamps */
}

/* Case S10 a, b: a listener that is there as well hears nothing of it */
SCRIPT(crossing_syns_are_no_accept_event)
{
	struct conn *active;

	app_listens(s);
	app_connects(s);
	active = s->c;
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1, .seq = 1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	use_conn(s, 5);
	app_accept_fails(s, EAGAIN);
	s->c = active;
	app_polls(s, POLLOUT);
	app_connect_gives(s, 0);
	app_connect_gives(s, EISCONN);
}

/*
 * Case S10 d; RFC 9293 3.10.7.4 second, SYN-RECEIVED of an active open: refused, not back to LISTEN
 */
SCRIPT(rst_after_crossing_syns_refuses)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_so_error_is(s, ECONNREFUSED);
}

/* Case S10 e: our SYN-ACK was lost; the peer repeats its SYN */
SCRIPT(repeated_crossing_syn_repeats_the_syn_ack)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	state_is(s, TCP_SYN_RCVD);
	peer_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}

/* The SYN-ACK is repeated by timer as well */
SCRIPT(syn_ack_of_simultaneous_open_is_repeated)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	stack_sends(s, SYNACK(.after_ms = 1000, .tol_ms = 20));
	peer_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
	stack_silent_ms(s, 5000);
}

/*
 * RFC 9293 3.10.4: close in SYN-RECEIVED sends a FIN once it is established; nothing is queued: at
 * once
 */
SCRIPT(close_in_syn_received_sends_fin)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	app_closes(s);
	peer_sends(s, ACK(1, .seq = 1));
	advance_ms(s, 10);
	assert_true(stack_sends_anything(s) >= 1);
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}
