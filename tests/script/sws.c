/* SPDX-License-Identifier: BSD-2-Clause */
/* Silly windows on both sides, Nagle, CORK (RFC 9293 3.7.4, 3.8.6.2; case S19). */
#include "support/script.h"

/* Fills the receive window of the stack; afterwards it has told window 0. */
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

/*
 * RFC 9293 3.7.4: nothing in flight: at once; else small segments wait for the ACK, which is one
 * delayed ACK of the peer's at most (case S19 f)
 */
SCRIPT(nagle_holds_the_second_small_write)
{
	established(s);
	app_writes(s, 50);
	stack_sends(s, DATA(1, 51, .push = 1));
	app_writes(s, 50);
	app_writes(s, 50);
	stack_silent_ms(s, 100);
	peer_sends(s, ACK(51));
	stack_sends(s, DATA(51, 151, .push = 1));
	peer_sends(s, ACK(151));
	stack_silent(s);
}

/* RFC 9293 3.7.4: a full segment is not held */
SCRIPT(nagle_sends_full_segments)
{
	established(s, .mss = 1000);
	app_writes(s, 10);
	stack_sends(s, DATA(1, 11));
	app_writes(s, 1500);
	stack_sends(s, DATA(11, 1011));
	stack_silent_ms(s, 100);
	peer_sends(s, ACK(1011));
	stack_sends(s, DATA(1011, 1511));
}

/* RFC 9293 3.7.4, MUST-17: TCP_NODELAY; case S19 f */
SCRIPT(nodelay_sends_every_write)
{
	established(s, .nodelay = true);
	app_writes(s, 50);
	stack_sends(s, DATA(1, 51));
	app_writes(s, 50);
	stack_sends(s, DATA(51, 101));
	app_writes(s, 1);
	stack_sends(s, DATA(101, 102));
}

/* Switching NODELAY on lets go what Nagle held */
SCRIPT(setting_nodelay_sends_what_was_held)
{
	established(s);
	app_writes(s, 50);
	stack_sends(s, DATA(1, 51));
	app_writes(s, 50);
	stack_silent_ms(s, 50);
	app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	stack_sends(s, DATA(51, 101));
}

/* tcp(7) TCP_CORK: only full segments; 200 ms at most, or until it is cleared */
SCRIPT(cork_holds_the_partial_segment)
{
	established(s, .mss = 1000, .nodelay = true);
	app_sets_int(s, IPPROTO_TCP, TCP_CORK, 1);
	app_writes(s, 300);
	stack_silent_ms(s, 150);
	app_writes(s, 900);
	stack_sends(s, DATA(1, 1001));
	stack_silent_ms(s, 100);
	app_sets_int(s, IPPROTO_TCP, TCP_CORK, 0);
	stack_sends(s, DATA(1001, 1201));
}

SCRIPT(corked_data_leaves_after_200_ms)
{
	established(s, .mss = 1000);
	app_sets_int(s, IPPROTO_TCP, TCP_CORK, 1);
	app_writes(s, 300);
	stack_sends(s, DATA(1, 301, .after_ms = 200, .tol_ms = 10));
}

/*
 * RFC 9293 3.8.6.2.1, MUST-38; case S19 d: a window far below half the largest one is not used at
 * once …
 */
SCRIPT(small_window_is_not_used_at_once)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 500));
	app_writes(s, 10000);
	stack_silent_ms(s, 90);
	/* … but after the override time of 0.1 to 1 s */
	stack_sends(s, DATA(1, 501, .after_ms = 550, .tol_ms = 460));
	peer_sends(s, ACK(501, .wnd = 10000));
	assert_true(stack_sends_anything(s) >= 6);
}

/* RFC 9293 3.8.6.2.1: half the largest window ever seen is enough */
SCRIPT(half_of_the_largest_window_is_used_at_once)
{
	established(s, .wnd = 800, .nodelay = true);
	app_writes(s, 5000);
	stack_sends(s, DATA(1, 801, .after_ms = 500, .tol_ms = 500));
	peer_sends(s, ACK(801, .wnd = 500));
	/* MAX.SND.WND was 65535 in the SYN: the override timer may be what sends */
	stack_sends(s, DATA(801, 1301, .after_ms = 500, .tol_ms = 500));
}

/* Case S19 e: the first segment does not fit, nothing is in flight: a timer runs */
SCRIPT(segment_larger_than_the_window_leaves_in_the_end)
{
	established(s);
	peer_sends(s, ACK(1, .wnd = 1000));
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1001, .after_ms = 500, .tol_ms = 500));
	peer_sends(s, ACK(1001, .wnd = 1000));
	stack_sends(s, DATA(1001, 1461, .after_ms = 500, .tol_ms = 500));
}

/* RFC 9293 3.8.6.2.2, MUST-39; case S19 a: no update for a few bytes */
SCRIPT(window_update_waits_for_a_useful_size)
{
	int64_t full;

	established(s, .rcvbuf = 8192);
	fill_window(s);
	full = s->c->stack_edge;
	assert_int_equal(s->c->snd_nxt, full);
	app_reads(s, 100);
	stack_silent_ms(s, 1000);
	app_reads(s, 4096);
	stack_sends(s, ACK(full));
	assert_true(s->c->stack_edge >= full + 1460);
	app_reads(s, full - 1 - 4196);
	stack_sends_anything(s);
}

/* Case S19 a: the window is closed by an ACK of the input path, and still the update comes */
SCRIPT(closed_window_is_reopened_by_reading)
{
	int64_t full;

	established(s, .rcvbuf = 8192);
	fill_window(s);
	full = s->c->stack_edge;
	app_reads(s, full - 1);
	stack_sends(s, ACK(full));
	assert_true(s->c->stack_edge > full + 1460);
	peer_sends(s, DATA(full, full + 1460));
	app_reads(s, 1460);
	stack_acks(s, full + 1460);
}

/* Case S19 b: the old window was 3 and not 0 */
SCRIPT(window_of_three_bytes_is_widened)
{
	int64_t edge, from;

	established(s, .rcvbuf = 8192);
	edge = s->c->stack_edge;
	while ((from = s->c->snd_nxt) < edge - 3) {
		int64_t to = from + 1000 < edge - 3 ? from + 1000 : edge - 3;

		peer_sends(s, DATA(from, to));
		advance_ms(s, 50);
		stack_sends_anything(s);
	}
	app_reads(s, s->c->snd_nxt - 1);
	stack_sends(s, ACK(s->c->snd_nxt));
	assert_true(s->c->stack_edge >= edge + 1460);
}

/* Case S19 c: an answer to a probe repeats the old right edge, never a smaller one */
SCRIPT(probe_answer_repeats_the_right_edge)
{
	int64_t full;

	established(s, .rcvbuf = 8192);
	fill_window(s);
	full = s->c->stack_edge;
	app_reads(s, 100);
	peer_sends(s, DATA(full, full + 1));
	stack_sends(s, ACK(full));
	assert_true(s->c->stack_edge >= full);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/* Case S19 g: a slow reader makes no tiny windows */
SCRIPT(slow_reader_makes_no_silly_windows)
{
	int64_t edge;
	int i;

	established(s, .rcvbuf = 8192);
	fill_window(s);
	for (i = 0; i < 3000; i++) {
		edge = s->c->stack_edge;
		app_reads(s, 1);
		if (stack_sends_anything(s) > 0)
			assert_true(s->c->stack_edge >= edge + 1000); /* the peer's segment size */
	}
}

/* RFC 9293 3.8.6, SHLD-14: the right edge never moves left */
SCRIPT(right_edge_never_moves_left)
{
	int64_t edge;
	int i;

	established(s);
	edge = s->c->stack_edge;
	for (i = 0; i < 30; i++) {
		peer_sends(s, DATA(1 + 1000 * i, 1001 + 1000 * i));
		advance_ms(s, 50);
		stack_sends_anything(s);
		assert_true(s->c->stack_edge >= edge);
		edge = s->c->stack_edge;
	}
}
