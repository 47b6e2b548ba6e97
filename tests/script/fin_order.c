/* SPDX-License-Identifier: BSD-2-Clause */
/* A FIN and the data around it (RFC 9293 3.10.7.4 eighth, SHLD-31; case S20). */
#include "support/script.h"

/* Case S20 d: in order, with data */
SCRIPT(fin_with_data_is_data_then_end_of_file)
{
	established(s);
	peer_sends(s, DATA_FIN(1, 11));
	stack_sends(s, ACK(12));
	state_is(s, TCP_CLOSE_WAIT);
	app_polls(s, POLLIN | POLLOUT | POLLRDHUP);
	app_reads(s, 10);
	app_reads_eof(s);
	app_reads_eof(s);
}

/* Case S20 a: FIN without data comes first */
SCRIPT(fin_before_its_data_waits)
{
	established(s);
	peer_sends(s, FIN(1001));
	stack_sends(s, ACK(1));
	state_is(s, TCP_ESTABLISHED);
	app_reads_nothing(s);
	peer_sends(s, DATA(1, 1001));
	stack_sends(s, ACK(1002));
	state_is(s, TCP_CLOSE_WAIT);
	app_reads(s, 1000);
	app_reads_eof(s);
}

/* Case S20 b: a FIN segment with data, a hole before it */
SCRIPT(fin_segment_with_data_beyond_a_hole_waits)
{
	established(s);
	peer_sends(s, DATA(1, 501));
	stack_acks(s, 501);
	peer_sends(s, DATA_FIN(1001, 1301));
	stack_sends(s, ACK(501));
	app_reads(s, 500);
	app_reads_nothing(s);
	peer_sends(s, DATA(501, 1001));
	stack_sends(s, ACK(1302));
	app_reads(s, 800);
	app_reads_eof(s);
}

/* Case S20 c: hole filled in two steps, then the FIN repeated */
SCRIPT(repeated_fin_after_the_hole_is_filled)
{
	established(s);
	peer_sends(s, FIN(1001));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1, 501));
	stack_acks(s, 501);
	peer_sends(s, DATA(501, 1001));
	stack_sends(s, ACK(1002));
	app_reads(s, 1000);
	app_reads_eof(s);
	peer_sends(s, FIN(1001));
	stack_sends(s, ACK(1002));
	state_is(s, TCP_CLOSE_WAIT);
}

/* Case S20 e: bytes behind the FIN are none */
SCRIPT(data_after_the_fin_is_ignored)
{
	established(s);
	peer_sends(s, FIN(1001));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1001, 1101));
	stack_sends_anything(s);
	peer_sends(s, DATA(1, 1001));
	stack_sends(s, ACK(1002));
	app_reads(s, 1000);
	app_reads_eof(s);
}

/* The same in CLOSE-WAIT: "this should not occur … ignore the segment text" */
SCRIPT(data_in_close_wait_is_ignored)
{
	established(s);
	peer_sends(s, FIN(1));
	stack_sends(s, ACK(2));
	peer_sends(s, DATA(2, 102));
	stack_sends_anything(s);
	app_reads_eof(s);
	state_is(s, TCP_CLOSE_WAIT);
}

/* Case S20 f: beyond the window: not acceptable */
SCRIPT(fin_beyond_the_window_is_dropped)
{
	established(s);
	peer_sends(s, FIN(s->c->stack_edge + 1000));
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
	app_reads_nothing(s);
}

/*
 * Case S20 g: window 0, FIN out of order: dropped; at RCV.NXT it is taken, since it needs no room
 * (tcp_check.c says so)
 */
SCRIPT(fin_at_a_closed_window)
{
	int64_t full;

	established(s, .rcvbuf = 4096);
	while (s->c->snd_nxt < s->c->stack_edge) {
		int64_t from = s->c->snd_nxt, to = from + 1000;

		peer_sends(s, DATA(from, to < s->c->stack_edge ? to : s->c->stack_edge));
		advance_ms(s, 50);
		stack_sends_anything(s);
	}
	full = s->c->snd_nxt;
	peer_sends(s, FIN(full + 10));
	stack_sends(s, ACK(full, .wnd = 0));
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, FIN(full));
	stack_sends(s, ACK(full + 1));
	state_is(s, TCP_CLOSE_WAIT);
	app_reads(s, full - 1);
	app_reads_eof(s);
	stack_sends_anything(s);
}

/* With SACK: the block tells queued data; a bare FIN has none (case S20) */
SCRIPT(fin_out_of_order_with_data_is_sacked)
{
	established(s, .sack = true);
	peer_sends(s, DATA_FIN(101, 201));
	stack_sends(s, ACK(1));
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(202, .sack = NO_SACK));
	app_reads(s, 200);
	app_reads_eof(s);
}

/* All orders of data, data, FIN with the same end */
static void
orders(struct script *s, int a, int b, int c)
{
	const struct seg g[3] = { DATA(1, 401), DATA(401, 901), FIN(901) };

	established(s);
	script_peer_sends(s, HERE, &g[a], 1);
	script_peer_sends(s, HERE, &g[b], 1);
	script_peer_sends(s, HERE, &g[c], 1);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSE_WAIT);
	app_reads(s, 900);
	app_reads_eof(s);
}

SCRIPT(orders_data_data_fin) { orders(s, 0, 1, 2); }
SCRIPT(orders_data_fin_data) { orders(s, 0, 2, 1); }
SCRIPT(orders_fin_data_data) { orders(s, 2, 0, 1); }
SCRIPT(orders_fin_late_early) { orders(s, 2, 1, 0); }
SCRIPT(orders_late_fin_early) { orders(s, 1, 2, 0); }
