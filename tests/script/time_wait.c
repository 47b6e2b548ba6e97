/* SPDX-License-Identifier: BSD-2-Clause */
/* TIME-WAIT (RFC 9293 3.6.1, 3.10.7.4; RFC 1337; RFC 6191; cases S09 d, S21 b). */
#include "support/script.h"

/* Gets connection 0 there: our FIN is 1, the peer's is 1; both acknowledged. */
static void
to_time_wait(struct script *s, bool ts)
{
	established(s, .ts = ts);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* RFC 9293 3.6.1, MUST-13: 2 MSL, here 60 s */
SCRIPT(time_wait_lasts_two_msl)
{
	to_time_wait(s, false);
	stack_silent_ms(s, 59000);
	state_is(s, TCP_TIME_WAIT);
	stack_silent_ms(s, 3000);
	state_is(s, TCP_CLOSED);
}

/*
 * Case S21 b; RFC 9293 3.10.7.4, fifth, TIME-WAIT: "acknowledge it, and restart the 2 MSL timeout"
 */
SCRIPT(repeated_fin_is_acknowledged_and_restarts_the_timer)
{
	int i;

	to_time_wait(s, false);
	for (i = 0; i < 3; i++) {
		stack_silent_ms(s, 40000);
		peer_sends(s, FIN(1, .ack = 2));
		stack_sends(s, ACK(2, .seq = 2));
	}
	stack_silent_ms(s, 50000);
	state_is(s, TCP_TIME_WAIT);
	stack_silent_ms(s, 12000);
	state_is(s, TCP_CLOSED);
}

/* RFC 1337: a RST does not end it */
SCRIPT(rst_does_not_end_time_wait)
{
	to_time_wait(s, false);
	peer_sends(s, RST(2), RSTACK(2, 2));
	stack_silent(s);
	state_is(s, TCP_TIME_WAIT);
}

/* Old data is answered with an ACK */
SCRIPT(old_data_in_time_wait_is_acknowledged)
{
	to_time_wait(s, false);
	peer_sends(s, DATA(-99, 1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* Case S09 d; RFC 9293 3.6.1 MAY-2: a SYN above the last number opens a new connection */
SCRIPT(higher_syn_opens_a_new_connection)
{
	to_time_wait(s, false);
	s->c->iss_known = false;
	peer_sends(s, SYN(.seq = 10002));
	s->c->irs += 10002;
	s->c->snd_nxt = 1;
	s->c->rcv_nxt = 0;
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
}

/*
 * RFC 9293 3.6.1: the new ISN must be above the old connection's numbers, which RFC 6528's clock
 * may not give
 */
SCRIPT(new_incarnation_starts_above_the_old_numbers)
{
	uint32_t old_iss;

	to_time_wait(s, false);
	old_iss = s->c->iss;
	advance_ms(s, 2000);
	s->c->iss_known = false;
	peer_sends(s, SYN(.seq = 10002));
	s->c->irs += 10002;
	stack_sends(s, SYNACK());
	assert_true((int32_t)(s->c->iss - (old_iss + 2)) > 0);
}

/* Case S09 d: a lower one is answered with an ACK */
SCRIPT(lower_syn_is_acknowledged_and_stays)
{
	to_time_wait(s, false);
	peer_sends(s, SYN(.seq = -1000));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* Case S09 d, RFC 6191 2: timestamps: a newer one opens though the number is lower */
SCRIPT(syn_with_newer_timestamp_opens)
{
	to_time_wait(s, true);
	advance_ms(s, 2000);
	s->c->iss_known = false;
	peer_sends(s, SYN(.seq = -1000));
	s->c->irs -= 1000;
	s->c->snd_nxt = 1;
	s->c->rcv_nxt = 0;
	stack_sends(s, SYNACK(.ts = 1));
	peer_sends(s, ACK(1));
	app_accepts(s);
	counter_is(s, "tcp_timewait_reused", 1);
}

/* RFC 6191 2: an older one does not */
SCRIPT(syn_with_older_timestamp_does_not_open)
{
	to_time_wait(s, true);
	advance_ms(s, 2000);
	peer_sends(s, SYN(.seq = -1000, .tsval = s->c->ts_val - 5000));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* No listener: the SYN meets TIME-WAIT, not a closed port */
SCRIPT(syn_without_listener_does_not_open)
{
	to_time_wait(s, false);
	app_closes_listener(s);
	peer_sends(s, SYN(.seq = -1000));
	stack_sends(s, ACK(2, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* The passive closer keeps no TIME-WAIT */
SCRIPT(passive_closer_has_no_time_wait)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, ACK(2));
	state_is(s, TCP_CLOSED);
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, RST(2));
}

/* The knob bounds the table: the oldest goes first (DESIGN: bounded, counted) */
SCRIPT_ON(time_wait_table_is_bounded, .netisrs = 1, .sysctls = { "net.inet.tcp.max_timewait=1024" })
{
	uint32_t pcbs, half_open, timewait;
	int i;

	app_listens(s);
	for (i = 0; i < 1100; i++) {
		use_conn(s, 1);
		s->c->fport = (uint16_t)(2000 + i);
		s->c->irs = 1000;
		s->c->iss_known = false;
		s->c->snd_nxt = 0;
		s->c->rcv_nxt = 0;
		peer_sends(s, SYN());
		stack_sends(s, SYNACK());
		peer_sends(s, ACK(1));
		app_accepts(s);
		app_closes(s);
		stack_sends(s, FIN(1));
		peer_sends(s, FIN(1, .ack = 2));
		stack_sends(s, ACK(2));
	}
	tcp_counts(s->ts.s->netisr[0], &pcbs, &half_open, &timewait);
	assert_int_equal(timewait, 1024);
	counter_is(s, "tcp_timewait_evicted", 1100 - 1024);
}
