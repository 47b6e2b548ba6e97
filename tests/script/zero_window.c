/* SPDX-License-Identifier: BSD-2-Clause */
/* Probing a closed window, and answering probes (RFC 9293 3.8.6.1, MUST-36, MUST-37; case S18). */
#include "support/script.h"

/*
 * The stack probes within [from_ms, to_ms]: a byte at `una`, or nothing new just below it. Either
 * draws an ACK.
 */
static void
expect_probe(struct script *s, struct place at, int64_t una, int64_t from_ms, int64_t to_ms)
{
	uint64_t start_us = s->mark_us, took_ms;
	struct seg got;

	s->place = at;
	got = script_take(s, to_ms);
	took_ms = (s->mark_us - start_us) / US_PER_MS;
	if (got.flags != TH_ACK ||
	    !((got.seq == una && got.len == 1) || (got.seq == una - 1 && got.len <= 1)))
		script_fail(s, "wanted a window probe at %lld\n   got seq %lld, %lld bytes",
		    (long long)una, (long long)got.seq, (long long)got.len);
	if ((int64_t)took_ms < from_ms)
		script_fail(s, "the probe came after %llu ms, wanted %lld to %lld",
		    (unsigned long long)took_ms, (long long)from_ms, (long long)to_ms);
}

#define stack_probes(s, una, from_ms, to_ms) expect_probe(s, HERE, una, from_ms, to_ms)

/*
 * Case S18 a: the first probe about an RTO after the window closed, then at doubling intervals;
 * open as long as P answers
 */
SCRIPT(closed_window_is_probed_with_backoff)
{
	int64_t gap = 200;
	int i;

	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 5000);
	stack_silent(s);
	stack_probes(s, 1, 180, 1100);
	peer_sends(s, ACK(1, .wnd = 0));
	for (i = 0; i < 6; i++) {
		stack_probes(s, 1, gap, 4 * gap + 2000);
		peer_sends(s, ACK(1, .wnd = 0));
		gap *= 2;
	}
	state_is(s, TCP_ESTABLISHED);
}

/* Case S18 a: half an hour of answered probes does not end the connection */
SCRIPT(answered_probes_keep_the_connection)
{
	uint64_t probes;
	int i;

	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 5000);
	for (i = 0; i < 180; i++) {
		advance_ms(s, 10000);
		if (stack_sends_anything(s) > 0)
			peer_sends(s, ACK(1, .wnd = 0));
	}
	state_is(s, TCP_ESTABLISHED);
	probes = script_counter(s, "tcp_zero_window_probes");
	assert_in_range(probes, 15, 200);	/* capped back-off: at least one in two minutes */
	app_so_error_is(s, 0);
}

/* Case S18 b: the update resumes at once */
SCRIPT(window_update_resumes_sending)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 5000);
	stack_silent(s);
	peer_sends(s, ACK(1, .wnd = 4000));
	stack_sends(s, DATA(1, 1461), DATA(1461, 2921));
	stack_sends_anything(s);
}

/* Case S18 c: the update is lost, the answer to a probe tells it */
SCRIPT(probe_answer_with_window_resumes_sending)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 3000);
	stack_probes(s, 1, 180, 1100);
	peer_sends(s, ACK(1, .wnd = 10000));
	stack_sends(s, DATA(1, 1461), DATA(1461, 2921));
	stack_sends_anything(s);
}

/* Case S18 d: nobody answers: ETIMEDOUT in the end */
SCRIPT(unanswered_probes_time_out)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 5000);
	advance_ms(s, 2 * 3600 * 1000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
	app_so_error_is(s, ETIMEDOUT);
}

/* Case S18 e: the probe's byte was taken: the next probe is one further */
SCRIPT(accepted_probe_byte_moves_the_probe)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 5000);
	stack_probes(s, 1, 180, 1100);
	peer_sends(s, ACK(1, .wnd = 0));
	assert_in_range(script_queued_out(s), 4999, 5000);
	stack_probes(s, 1, 180, 3000);
}

/* Case S18 f: close with the window closed: probes go on; data, then FIN when it opens */
SCRIPT(close_at_a_closed_window_still_delivers)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 1000);
	app_closes(s);
	stack_probes(s, 1, 180, 1100);
	peer_sends(s, ACK(1, .wnd = 0));
	stack_probes(s, 1, 180, 3000);
	peer_sends(s, ACK(1, .wnd = 10000));
	stack_sends(s, DATA_FIN(1, 1001));
	peer_sends(s, ACK(1002), FIN(1));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
}

/* Case S18 f: SO_LINGER on a non-blocking socket changes nothing of that */
SCRIPT(lingering_close_at_a_closed_window_still_delivers)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 0));
	app_writes(s, 1000);
	app_sets_linger(s, 5);
	app_closes(s);
	stack_probes(s, 1, 180, 1100);
	peer_sends(s, ACK(1, .wnd = 0));
	advance_ms(s, 20000);
	assert_true(stack_sends_anything(s) > 1);
	peer_sends(s, ACK(1, .wnd = 10000));
	stack_sends(s, DATA_FIN(1, 1001));
	peer_sends(s, ACK(1002), FIN(1));
	stack_sends(s, ACK(2));
	state_is(s, TCP_TIME_WAIT);
}

/* The window closes behind what is in flight: probing starts when all of it is acknowledged */
SCRIPT(window_that_closes_behind_data_is_probed)
{
	established(s, .mss = 1000, .wnd = 3000);
	app_writes(s, 5000);
	stack_sends(s, DATA(1, 1001), DATA(1001, 2001), DATA(2001, 3001));
	peer_sends(s, ACK(3001, .wnd = 0));
	stack_silent_ms(s, 100);
	stack_probes(s, 3001, 80, 1100);
	peer_sends(s, ACK(3001, .wnd = 5000));
	stack_sends(s, DATA(3001, 4001), DATA(4001, 5001));
}

static void
fill_window(struct script *s)
{
	while (s->c->snd_nxt < s->c->stack_edge) {
		int64_t from = s->c->snd_nxt, to = from + 1000;

		peer_sends(s, DATA(from, to < s->c->stack_edge ? to : s->c->stack_edge));
		advance_ms(s, 50);
		stack_sends_anything(s);
	}
}

/* Case S18 g: our window is 0: a byte at RCV.NXT is answered and not delivered */
SCRIPT(probe_with_a_byte_is_answered_and_not_delivered)
{
	int64_t full;

	established(s, .rcvbuf = 4096);
	fill_window(s);
	full = s->c->snd_nxt;
	peer_sends(s, DATA(full, full + 1));
	stack_sends(s, ACK(full, .wnd = 0));
	app_reads(s, full - 1);
	app_reads_nothing(s);
	stack_sends_anything(s);
	peer_sends(s, DATA(full, full + 1));
	app_reads(s, 1);
	stack_acks(s, full + 1);
}

/* Case S18 g: and a segment without data at RCV.NXT - 1 */
SCRIPT(probe_without_data_is_answered)
{
	int64_t full;

	established(s, .rcvbuf = 4096);
	fill_window(s);
	full = s->c->snd_nxt;
	peer_sends(s, ACK(1, .seq = full - 1));
	stack_sends(s, ACK(full, .wnd = 0));
}

/* RFC 9293 3.8.6.1: the ACK and window of a segment at a closed window count */
SCRIPT(window_update_at_our_closed_window_counts)
{
	struct tcp_conn_info i;

	established(s, .rcvbuf = 4096);
	fill_window(s);
	peer_sends(s, ACK(1, .wnd = 12345));
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wnd_bytes, 12345);
	stack_sends_anything(s);
}

/*
 * A FIN needs no room (RFC 9293 3.10.7.4), so it is taken with the window shut; what the peer sends
 * from behind it, its ACKs of our data, counts as ever.
 */
SCRIPT(ack_from_behind_a_fin_at_our_closed_window_counts)
{
	int64_t full;

	established(s, .rcvbuf = 4096);
	fill_window(s);
	full = s->c->snd_nxt;
	peer_sends(s, FIN(full));
	stack_sends(s, ACK(full + 1, .wnd = 0));
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(1001));
	stack_silent_ms(s, 5000);
	counter_is(s, "tcp_retransmits", 0);
	counter_is(s, "drop_tcp_window", 0);
	app_reads(s, full - 1);
}
