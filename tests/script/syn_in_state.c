/* SPDX-License-Identifier: BSD-2-Clause */
/* A SYN for a connection that exists (RFC 9293 3.10.7.4 fourth; RFC 5961 4.2; case S09). */
#include "support/script.h"

/* Case S09 a: outside the window */
SCRIPT(syn_outside_window_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, SYN(.seq = 77770000));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}

/* Case S09 b: inside the window: no reset either (RFC 5961 4.2) */
SCRIPT(syn_inside_window_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, SYN(.seq = 101));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, SYN(.seq = 1));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}

/* Case S09 e: with data on it: the data do not count */
SCRIPT(syn_with_data_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, SYN(.seq = 1, .len = 100));
	stack_sends(s, ACK(1, .seq = 1));
	app_reads_nothing(s);
}

/* Case S09 c: the rebooted peer answers the challenge with an exact RST, then its SYN gets in */
SCRIPT(rebooted_peer_gets_in_after_the_challenge)
{
	established(s);
	peer_sends(s, SYN(.seq = 77770000));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, RST(1));
	stack_silent(s);
	app_read_fails(s, ECONNRESET);
	app_closes(s);
	s->c->iss_known = false;
	s->c->irs += 77770000;
	s->c->snd_nxt = 0;
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	app_accepts(s);
}

/* The same in the other synchronized states */
SCRIPT(syn_in_close_wait_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_acks(s, 2);
	peer_sends(s, SYN(.seq = 2));
	stack_sends(s, ACK(2, .seq = 1));
	state_is(s, TCP_CLOSE_WAIT);
}

SCRIPT(syn_in_fin_wait_1_elicits_challenge_ack)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, SYN(.seq = 5));
	stack_sends(s, ACK(1, .seq = 2));
	state_is(s, TCP_FIN_WAIT_1);
}

SCRIPT(syn_in_fin_wait_2_elicits_challenge_ack)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2), SYN(.seq = 5));
	stack_sends(s, ACK(1, .seq = 2));
	state_is(s, TCP_FIN_WAIT_2);
}

SCRIPT(syn_in_closing_elicits_challenge_ack)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 1));
	stack_acks(s, 2);
	peer_sends(s, SYN(.seq = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_CLOSING);
}

SCRIPT(syn_in_last_ack_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_acks(s, 2);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, SYN(.seq = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_LAST_ACK);
}

/* SYN-ACK out of nowhere on an established connection: a SYN like another */
SCRIPT(stray_syn_ack_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, SYNACK(.seq = 5000, .ack = 1));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}
