/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which resets are believed, in every state (RFC 9293 3.5.3, 3.10.7.4 second; RFC 5961 3.2; case
 * S17).
 */
#include "support/script.h"

/*
 * Case S17 a; RFC 5961 3.2: "if the RST bit is set and the sequence number exactly matches": reset,
 * no answer
 */
SCRIPT(exact_rst_resets_the_connection)
{
	established(s);
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	app_read_fails(s, ECONNRESET);
	app_reads_eof(s);
	app_write_fails(s, EPIPE);
	stack_silent(s);
}

/* Case S17 b; RFC 5961 3.2: inside the window but not exact: challenge ACK from our own state */
SCRIPT(rst_inside_window_elicits_challenge_ack)
{
	established(s);
	peer_sends(s, RST(257));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
	counter_is(s, "tcp_challenge_acks", 1);
	peer_sends(s, RST(s->c->stack_edge - 1));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}

/* Case S17 c; RFC 5961 3.2: outside the window: silently dropped */
SCRIPT(rst_outside_window_is_dropped)
{
	established(s);
	peer_sends(s, RST(0), RST(-1), RST(s->c->stack_edge), RST(s->c->stack_edge + 100000));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
}

/* Case S17 d; RFC 5961 7: challenge ACKs are limited, here to about 100 a second */
SCRIPT_ON(challenge_acks_are_limited, .sysctls = { "net.inet.tcp.challenge_per_s=100" })
{
	unsigned i, sent = 0;

	established(s);
	for (i = 0; i < 1000; i++) {
		peer_sends(s, RST(257));
		sent += stack_sends_anything(s);
		if (i % 100 == 99)
			advance_ms(s, 90);
	}
	assert_in_range(sent, 1, 250);
	assert_true(script_counter(s, "tcp_challenge_limited") > 500);
	state_is(s, TCP_ESTABLISHED);
}

/*
 * Case S17 e: the peer answers our challenge with the number it names: one exchange, then the end
 */
SCRIPT(challenged_peer_resets_exactly)
{
	established(s);
	peer_sends(s, RST(257));
	stack_sends(s, ACK(1, .seq = 1));
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_read_fails(s, ECONNRESET);
}

/* Case S17 i: an exact RST with data on it is a RST */
SCRIPT(exact_rst_with_data_resets)
{
	established(s);
	peer_sends(s, SEG(.flags = TH_RST, .seq = 1, .len = 20));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_read_fails(s, ECONNRESET);
}

/* RFC 9293 3.10.7.4, second: the ACK of a RST is not looked at in a synchronized state */
SCRIPT(ack_of_a_rst_does_not_matter)
{
	established(s);
	peer_sends(s, RSTACK(1, 99999));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/*
 * The exact number moves with what was received; bytes that had come are read before the error (as
 * on Linux)
 */
SCRIPT(rst_moves_with_received_data)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, RST(101));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_reads(s, 100);
	app_read_fails(s, ECONNRESET);
}

/* Case S17 f: CLOSE-WAIT */
SCRIPT(exact_rst_in_close_wait_resets)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_acks(s, 2);
	state_is(s, TCP_CLOSE_WAIT);
	peer_sends(s, RST(300));
	stack_sends(s, ACK(2, .seq = 1));
	state_is(s, TCP_CLOSE_WAIT);
	peer_sends(s, RST(2));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_write_fails(s, EPIPE);
}

/* FIN-WAIT-1 */
SCRIPT(exact_rst_in_fin_wait_1_resets)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1, .ack = 1));
	peer_sends(s, RST(50));
	stack_sends(s, ACK(1, .seq = 2));
	state_is(s, TCP_FIN_WAIT_1);
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_read_fails(s, ECONNRESET);
}

/* FIN-WAIT-2 */
SCRIPT(exact_rst_in_fin_wait_2_resets)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2));
	state_is(s, TCP_FIN_WAIT_2);
	peer_sends(s, RST(50));
	stack_sends(s, ACK(1, .seq = 2));
	peer_sends(s, RST(1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_read_fails(s, ECONNRESET);
}

/* CLOSING */
SCRIPT(exact_rst_in_closing_ends_it)
{
	established(s);
	app_shutdown(s, SHUT_WR);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 1));
	stack_acks(s, 2);
	state_is(s, TCP_CLOSING);
	peer_sends(s, RST(2));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/* LAST-ACK */
SCRIPT(exact_rst_in_last_ack_ends_it)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_acks(s, 2);
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 2));
	state_is(s, TCP_LAST_ACK);
	peer_sends(s, RST(2));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/* RFC 1337 section 3, fix 1: RST is ignored in TIME-WAIT */
SCRIPT(rst_in_time_wait_is_ignored)
{
	established(s);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
	peer_sends(s, RST(2));
	stack_silent(s);
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 7323 3.2: a RST needs no timestamp (case S15 d) */
SCRIPT(rst_without_timestamp_is_believed)
{
	established(s, .ts = true);
	peer_sends(s, RST(1, .ts = 0));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
}

/* RFC 5961 3.2 with the window closed: only RCV.NXT is exact */
SCRIPT(rst_at_a_closed_window_must_be_exact)
{
	established(s, .rcvbuf = 4096);
	while (s->c->snd_nxt < s->c->stack_edge) {
		int64_t from = s->c->snd_nxt, to = from + 1460;

		peer_sends(s, DATA(from, to < s->c->stack_edge ? to : s->c->stack_edge));
		advance_ms(s, 100);
		stack_sends_anything(s);
	}
	peer_sends(s, RST(s->c->snd_nxt + 1), RST(s->c->snd_nxt - 1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, RST(s->c->snd_nxt));
	state_is(s, TCP_CLOSED);
}
