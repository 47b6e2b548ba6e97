/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timestamps and PAWS (RFC 7323; case S15). The peer's clock is TSval 1000 here where a script says
 * so.
 */
#include "support/script.h"

/* RFC 7323 4.3: TSecr is the TSval of the segment at the left edge */
SCRIPT(timestamp_of_the_last_in_order_segment_is_echoed)
{
	established(s, .ts = true);
	peer_sends(s, DATA(1, 101, .tsval = 7000));
	stack_sends(s, ACK(101, .tsecr = 7000, .after_ms = 40, .tol_ms = 40));
	app_reads(s, 100);
}

/* RFC 7323 4.3 (2): of a delayed ACK's segments the earliest unacknowledged one is echoed */
SCRIPT(earliest_segment_of_a_delayed_ack_is_echoed)
{
	established(s, .ts = true);
	peer_sends(s, DATA(1, 51, .tsval = 7000));
	stack_silent_ms(s, 5);
	peer_sends(s, DATA(51, 101, .tsval = 7050));
	stack_sends(s, ACK(101, .tsecr = 7000, .after_ms = 35, .tol_ms = 40));
	app_reads(s, 100);
}

/*
 * Case S15 i; RFC 7323 4.3: segments beyond a hole do not move TS.Recent, the one that fills it
 * does
 */
SCRIPT(segment_beyond_a_hole_does_not_move_ts_recent)
{
	established(s, .ts = true);
	peer_sends(s, ACK(1, .tsval = 1000), DATA(101, 201, .tsval = 5000));
	stack_sends(s, ACK(1, .tsecr = 1000));
	peer_sends(s, DATA(1, 101, .tsval = 1001));
	stack_sends(s, ACK(201, .tsecr = 1001));
	app_reads(s, 200);
}

/* Case S15 e; RFC 7323 5.3 R1: older: ACK, drop */
SCRIPT(old_timestamp_is_acknowledged_and_dropped)
{
	established(s, .ts = true);
	peer_sends(s, ACK(1, .tsval = 1000));
	peer_sends(s, DATA(1, 101, .tsval = 999));
	stack_sends(s, ACK(1, .tsecr = 1000));
	app_reads_nothing(s);
	counter_is(s, "drop_tcp_paws", 1);
	s->c->snd_nxt = 1;
	peer_sends(s, DATA(1, 101, .tsval = 1000));
	app_reads(s, 100);
	stack_acks(s, 101);
}

/* Case S15 h: pure ACKs are tested as well */
SCRIPT(old_timestamp_on_a_pure_ack_is_dropped)
{
	established(s, .ts = true);
	peer_sends(s, ACK(1, .tsval = 1000));
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	peer_sends(s, ACK(101, .tsval = 999));
	stack_sends_anything(s);
	assert_int_equal(script_queued_out(s), 100);
	peer_sends(s, ACK(101, .tsval = 1001));
	assert_int_equal(script_queued_out(s), 0);
}

/* Case S15 f; RFC 7323 5.5: after 24 days TS.Recent proves nothing */
SCRIPT(timestamp_is_not_believed_old_after_25_days)
{
	established(s, .ts = true);
	peer_sends(s, ACK(1, .tsval = 1000));
	clock_advance_us(&s->ts.clock, 25ull * 24 * 3600 * 1000000);
	advance_ms(s, 1);
	stack_sends_anything(s);
	peer_sends(s, DATA(1, 101, .tsval = 999));
	app_reads(s, 100);
	stack_acks(s, 101);
}

/* Case S15 g: the timestamp wraps */
SCRIPT(timestamp_wrap_is_newer)
{
	established(s, .ts = true);
	/* the peer's clock starts 1000 below the wrap (script.c): go on from there */
	peer_sends(s, ACK(1, .tsval = 0xfffffff0u));
	peer_sends(s, DATA(1, 101, .tsval = 0x10));
	app_reads(s, 100);
	stack_acks(s, 101);
	peer_sends(s, DATA(101, 201, .tsval = 0xfffffff8u));
	stack_sends(s, ACK(101));
	app_reads_nothing(s);
}

/*
 * Case S15 a; we differ from RFC 7323 3.2, as Linux does: the last ACK of the handshake may lack
 * the option
 */
SCRIPT(handshake_ack_without_timestamp_establishes)
{
	s->c->ts = true;
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.ts = 1));
	peer_sends(s, ACK(1, .ts = 0));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
	/* ours are on every segment all the same (RFC 7323 3.2) */
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101, .ts = 1));
	peer_sends(s, ACK(101, .ts = 0));
	assert_int_equal(script_queued_out(s), 0);
}

/* Case S15 a, whichever way: a half-open entry that nobody completes goes away */
SCRIPT(half_open_connection_with_timestamps_ends)
{
	s->c->ts = true;
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK(.ts = 1));
	advance_ms(s, 300000);
	stack_sends_anything(s);
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
}

/* Case S15 b: data without the option are taken; TS.Recent stays */
SCRIPT(data_without_timestamp_is_taken)
{
	established(s, .ts = true);
	peer_sends(s, ACK(1, .tsval = 1000));
	peer_sends(s, DATA(1, 101, .ts = 0));
	stack_sends(s, ACK(101, .ts = 1, .tsecr = 1000, .after_ms = 40, .tol_ms = 40));
	app_reads(s, 100);
	peer_sends(s, DATA(101, 201, .tsval = 999));
	stack_sends(s, ACK(101, .tsecr = 1000));
	app_reads_nothing(s);
	counter_is(s, "drop_tcp_paws", 1);
}

/* Case S15 c: a keepalive probe without the option is answered, and the connection lives on */
SCRIPT(keepalive_probe_without_timestamp_is_answered)
{
	int i;

	established(s, .ts = true);
	for (i = 0; i < 3; i++) {
		advance_ms(s, 75000);
		peer_sends(s, SEG(.flags = TH_ACK, .seq = 0, .ack = 1, .ts = 0));
		stack_sends(s, ACK(1, .seq = 1, .ts = 1));
	}
	state_is(s, TCP_ESTABLISHED);
	counter_is(s, "drop_tcp_paws", 0);
}

/* Not offered: not sent, and a stray option changes nothing */
SCRIPT(stray_timestamp_is_ignored)
{
	established(s);
	peer_sends(s, DATA(1, 101, .ts = 1, .tsval = 5));
	app_reads(s, 100);
	stack_sends(s, ACK(101, .ts = 0, .after_ms = 40, .tol_ms = 40));
	peer_sends(s, DATA(101, 201, .ts = 1, .tsval = 4));
	app_reads(s, 100);
	stack_acks(s, 201);
}

/* RFC 7323 3.2: TSecr of the SYN-ACK is the SYN's TSval; the SYN has TSecr 0 */
SCRIPT(handshake_echoes_timestamps)
{
	s->c->ts = true;
	app_listens(s);
	peer_sends(s, SYN(.tsval = 123456));
	stack_sends(s, SYNACK(.ts = 1, .tsecr = 123456));
	use_conn(s, 1);
	s->c->ts = true;
	app_connects(s);
	stack_sends(s, SYN(.ts = 1, .tsecr = 0));
	peer_sends(s, SYNACK(.tsval = 777));
	stack_sends(s, ACK(1, .tsecr = 777));
}

/* RFC 7323 5.4: our clock ticks once a millisecond or so, monotonically */
SCRIPT(own_timestamps_advance_with_time)
{
	uint32_t first;

	established(s, .ts = true);
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11));
	first = s->c->ts_recent;
	peer_sends(s, ACK(11));
	advance_ms(s, 10000);
	app_writes(s, 10);
	stack_sends(s, DATA(11, 21));
	assert_in_range(s->c->ts_recent - first, 9000, 11000);
}
