/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A SYN that meets TIME-WAIT, at the exact numbers of case S09 d (RFC 9293 3.6.1 MAY-2, SHLD-4; RFC
 * 6191 2): RCV.NXT is 6001 there, TS.Recent 1000. Here RCV.NXT is 1002, at a distance of its own.
 */
#include "support/script.h"

#define RCV_NXT	1002

/* Our FIN is 1, the peer's is 1001. */
static void
to_time_wait(struct script *s, bool ts)
{
	established(s, .ts = ts);
	peer_sends(s, DATA(1, 1001));
	app_reads(s, 1000);
	stack_acks(s, 1001);
	app_closes(s);
	stack_sends(s, FIN(1));
	peer_sends(s, FIN(1001, .ack = 2, .tsval = ts ? 1000 : SEG_ANY));
	stack_sends(s, ACK(RCV_NXT, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* A SYN that opens the connection anew, with this number. */
static void
opens(struct script *s, int64_t seq, int64_t tsval)
{
	uint32_t old_iss = s->c->iss;

	s->c->iss_known = false;
	peer_sends(s, SYN(.seq = seq, .tsval = tsval));
	s->c->irs += (uint32_t)seq;
	s->c->snd_nxt = 1;
	s->c->rcv_nxt = 0;
	s->c->app_rd = s->c->app_wr = 1;
	stack_sends(s, SYNACK(.tsecr = tsval));
	/* SHLD-4 is about old duplicates: our new numbers lie above the old ones */
	assert_true((int32_t)(s->c->iss - (old_iss + 2)) > 0);
	peer_sends(s, ACK(1));
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
	counter_is(s, "tcp_timewait_reused", 1);
}

/* A SYN that does not: an ACK, and nothing has changed. */
static void
is_acknowledged(struct script *s, int64_t seq, int64_t tsval)
{
	peer_sends(s, SYN(.seq = seq, .tsval = tsval));
	stack_sends(s, ACK(RCV_NXT, .seq = 2));
	state_is(s, TCP_TIME_WAIT);
}

/* Case S09 d: one above what we expect: a new connection */
SCRIPT(syn_just_above_the_old_numbers_opens)
{
	to_time_wait(s, false);
	opens(s, RCV_NXT + 1, SEG_ANY);
}

/* Case S09 d: 1,001 below, just below, and half the sequence space away: stay */
SCRIPT(syn_at_or_below_the_old_numbers_is_acknowledged)
{
	to_time_wait(s, false);
	is_acknowledged(s, RCV_NXT - 1001, SEG_ANY);
	is_acknowledged(s, RCV_NXT - 1, SEG_ANY);
	is_acknowledged(s, RCV_NXT + INT64_C(0x80000001), SEG_ANY);
	/* and the next one above opens all the same */
	opens(s, RCV_NXT + 1, SEG_ANY);
}

/* Case S09 d: TSval 2000 opens although the number is lower */
SCRIPT(syn_with_a_newer_timestamp_and_a_lower_number_opens)
{
	to_time_wait(s, true);
	s->c->ts_val = 3000;
	opens(s, RCV_NXT - 902, 2000);
}

/* Case S09 d: TSval 900 does not, whatever the number (PAWS) */
SCRIPT(syn_with_an_older_timestamp_does_not_open)
{
	to_time_wait(s, true);
	is_acknowledged(s, RCV_NXT - 902, 900);
	is_acknowledged(s, RCV_NXT + 1, 900);
	state_is(s, TCP_TIME_WAIT);
	counter_is(s, "tcp_timewait_reused", 0);
}

/* RFC 6191 2: the same TSval: then the numbers decide */
SCRIPT(syn_with_the_same_timestamp_is_judged_by_its_number)
{
	to_time_wait(s, true);
	is_acknowledged(s, RCV_NXT - 902, 1000);
	s->c->ts_val = 3000;
	opens(s, RCV_NXT + 1, 1000);
}
