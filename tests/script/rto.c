/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The retransmission timer (RFC 6298, RFC 9293 3.8.1 to 3.8.3, Karn; case S23). The smallest RTO is
 * 200 ms.
 */
#include "support/script.h"

/* RFC 6298 2.3, 2.4: RTT 0 in the script: the minimum */
SCRIPT(unacknowledged_data_is_sent_again_after_rto)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_sends(s, DATA(1, 101, .after_ms = 200, .tol_ms = 3));
	peer_sends(s, ACK(101));
	stack_silent_ms(s, 5000);
	counter_is(s, "tcp_rto", 1);
}

/* RFC 6298 5.5, RFC 9293 MUST-18: doubling */
SCRIPT(rto_doubles_at_each_timeout)
{
	int64_t ms = 200;
	int i;

	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	for (i = 0; i < 8; i++, ms *= 2)
		stack_sends(s, DATA(1, 101, .after_ms = ms, .tol_ms = ms / 50 + 3));
	peer_sends(s, ACK(101));
	stack_silent_ms(s, 60000);
}

/* RFC 6298 2.5, case S23 b: the interval has a cap of at least 60 s */
SCRIPT(rto_backoff_is_capped_at_a_minute_or_more)
{
	struct seg got;
	int i;

	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	for (i = 0; i < 10; i++)
		got = script_take(s, 200000);
	for (i = 0; i < 3; i++) {
		uint64_t before = s->mark_us;

		got = script_take(s, 200000);
		assert_int_equal(got.seq, 1);
		assert_in_range((s->mark_us - before) / 1000, 59000, 121000);
	}
}

/* RFC 6298 2.2: the RTO follows the round trip: first sample R: SRTT = R, RTTVAR = R/2, RTO = 3R */
SCRIPT(rto_follows_the_round_trip_time)
{
	struct tcp_conn_info i;

	established(s, .rtt_ms = 300);
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.srtt_us, 290000, 310000);
	assert_in_range(i.rto_us, 850000, 950000);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_sends(s, DATA(1, 101, .after_ms = 900, .tol_ms = 40));
}

/* RFC 6298 5.3: an ACK of new data restarts the timer (case S23 h) */
SCRIPT(ack_of_new_data_restarts_the_timer)
{
	established(s, .mss = 1000);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 1001), DATA(1001, 2001), DATA(2001, 3001));
	stack_silent_ms(s, 150);
	peer_sends(s, ACK(1001));
	stack_silent_ms(s, 150);
	peer_sends(s, ACK(2001));
	stack_silent_ms(s, 150);
	stack_sends(s, DATA(2001, 3001, .after_ms = 200, .tol_ms = 60));
}

/* RFC 6298 5.2: all acknowledged: the timer stops */
SCRIPT(timer_stops_when_all_is_acknowledged)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_silent_ms(s, 100);
	peer_sends(s, ACK(101));
	stack_silent_ms(s, 60000);
}

/*
 * Case S23 a; RFC 5681 3.1, 4.3: ten lost segments: one timeout, then slow start without further
 * ones
 */
SCRIPT(lost_flight_costs_one_timeout)
{
	int64_t acked = 1;
	int rounds = 0;

	established(s, .mss = 1000, .cwnd_segs = 10);
	app_writes(s, 10000);
	assert_int_equal(stack_sends_anything(s), 10);
	s->c->rcv_nxt = 1;	/* none of them arrived */
	stack_sends(s, DATA(1, 1001, .after_ms = 200, .tol_ms = 3));
	while (acked < 10001 && rounds++ < 20) {
		advance_ms(s, 10);
		acked = s->c->rcv_nxt;
		peer_sends(s, ACK(acked));
		if (acked < 10001)
			assert_true(stack_sends_anything(s) > 0);
	}
	assert_int_equal(acked, 10001);
	assert_in_range(rounds, 2, 5);
	counter_is(s, "tcp_rto", 1);
	stack_silent_ms(s, 2000);
}

/* RFC 5681 3.1: after a timeout one segment, ssthresh half the flight */
SCRIPT(timeout_shrinks_cwnd_to_one_segment)
{
	struct tcp_conn_info i;

	established(s, .mss = 1000, .cwnd_segs = 10);
	app_writes(s, 10000);
	stack_sends_anything(s);
	stack_sends(s, DATA(1, 1001, .after_ms = 200, .tol_ms = 3));
	stack_silent_ms(s, 50);
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.cwnd_bytes, 1000, 2000);
	assert_in_range(i.ssthresh_bytes, 2000, 7000);
}

/* Karn (RFC 6298 3, RFC 9293 MUST-18; case S23 d): no sample from what was sent twice */
SCRIPT(retransmitted_segment_gives_no_sample)
{
	struct tcp_conn_info before, after;

	established(s, .rtt_ms = 100);
	assert_true(script_conn_info(s, &before));
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_sends(s, DATA(1, 101, .after_ms = 300, .tol_ms = 20));
	advance_ms(s, 5);
	peer_sends(s, ACK(101));
	assert_true(script_conn_info(s, &after));
	assert_int_equal(before.srtt_us, after.srtt_us);
}

/*
 * RFC 6298 5 (note), case S23 b: the backed-off RTO stays until new data is acknowledged without
 * retransmission
 */
SCRIPT(backed_off_rto_stays_after_an_ambiguous_ack)
{
	established(s, .mss = 1000);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_sends(s, DATA(1, 101, .after_ms = 200, .tol_ms = 3),
	    DATA(1, 101, .after_ms = 400, .tol_ms = 10));
	stack_sends(s, DATA(1, 101, .after_ms = 800, .tol_ms = 20));
	peer_sends(s, ACK(101));
	app_writes(s, 100);
	stack_sends(s, DATA(101, 201));
	/*
	 * kept, or computed afresh since the ACK was of new data (RFC 6298 5.7 leaves both): never
	 * below the minimum
	 */
	stack_silent_ms(s, 195);
	peer_sends(s, ACK(201));
	stack_silent_ms(s, 5000);
}

/* With timestamps an ACK of a retransmission does give a sample (RFC 7323 4.1; case S23 c) */
SCRIPT(timestamps_give_samples_despite_retransmission)
{
	struct tcp_conn_info i;

	established(s, .rtt_ms = 100, .ts = true);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	stack_sends(s, DATA(1, 101, .after_ms = 300, .tol_ms = 20));
	advance_ms(s, 100);
	peer_sends(s, ACK(101));
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.srtt_us, 90000, 130000);
}

/* RFC 9293 3.8.3, MUST-20: given up after R2: ETIMEDOUT, seen by poll, read and SO_ERROR */
SCRIPT_ON(dead_peer_times_out, .sysctls = { "net.inet.tcp.data_retries=5" })
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	advance_ms(s, 60000);
	assert_int_equal(stack_sends_anything(s), 5);
	state_is(s, TCP_CLOSED);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	app_read_fails(s, ETIMEDOUT);
	app_write_fails(s, EPIPE);
}

/* By default R2 is at least 100 s (RFC 9293 3.8.3, SHLD-11) */
SCRIPT(default_give_up_takes_at_least_100_seconds)
{
	established(s);
	app_writes(s, 100);
	advance_ms(s, 100000);
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	advance_ms(s, 3600 * 1000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
	app_so_error_is(s, ETIMEDOUT);
}

/* TCP_USER_TIMEOUT (RFC 5482's idea, as on Linux) */
SCRIPT(user_timeout_bounds_the_wait)
{
	established(s);
	app_sets_int(s, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
	app_writes(s, 100);
	advance_ms(s, 2500);
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	advance_ms(s, 6000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
	app_read_fails(s, ETIMEDOUT);
}

/* RFC 5681 4.1; case S23 g: after a long idle time not the old window at once */
SCRIPT(idle_connection_restarts_slowly)
{
	int i;
	unsigned burst;

	established(s, .mss = 1000, .cwnd_segs = 10);
	for (i = 0; i < 6; i++) {
		app_writes(s, 60000);
		while (s->c->rcv_nxt < 1 + 60000 * (i + 1)) {
			stack_sends_anything(s);
			peer_sends(s, ACK(s->c->rcv_nxt));
		}
	}
	advance_ms(s, 60000);
	stack_silent(s);
	app_writes(s, 60000);
	burst = stack_sends_anything(s);
	assert_in_range(burst, 1, 10);
}

/* RFC 5681 3.1: slow start doubles a round; a short peer window bounds the growth (case S14 h) */
SCRIPT(cwnd_does_not_grow_while_the_window_limits)
{
	struct tcp_conn_info i;
	int k;

	established(s, .mss = 1000, .wnd = 5000);
	for (k = 0; k < 200; k++) {
		app_writes(s, 5000);
		stack_sends_anything(s);
		peer_sends(s, ACK(s->c->rcv_nxt));
		stack_sends_anything(s);
		peer_sends(s, ACK(s->c->rcv_nxt));
	}
	assert_true(script_conn_info(s, &i));
	assert_in_range(i.cwnd_bytes, 5000, 40000);
}
