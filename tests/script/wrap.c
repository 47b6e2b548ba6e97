/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reordering across the wrap of the sequence space (RFC 9293 3.4; case S16). ISNs are 100 below it.
 */
#include "support/script.h"

/* Case S16 a: three segments in all orders; A ends below, B crosses, C lies above the wrap */
static void
in_order_of(struct script *s, int a, int b, int c)
{
	static const int64_t edge[3][2] = { { 1, 61 }, { 61, 161 }, { 161, 261 } };
	const int order[3] = { a, b, c };
	int i;

	established(s, .sack = true);
	for (i = 0; i < 3; i++) {
		peer_sends(s, DATA(edge[order[i]][0], edge[order[i]][1]));
		stack_sends_anything(s);
	}
	app_reads(s, 260);
	app_reads_nothing(s);
	s->c->snd_nxt = 261;
	advance_ms(s, 100);
	stack_sends_anything(s);
	peer_sends(s, DATA(261, 271));
	stack_acks(s, 271);
	app_reads(s, 10);
}

SCRIPT(segments_in_order_abc) { in_order_of(s, 0, 1, 2); }
SCRIPT(segments_in_order_acb) { in_order_of(s, 0, 2, 1); }
SCRIPT(segments_in_order_bac) { in_order_of(s, 1, 0, 2); }
SCRIPT(segments_in_order_bca) { in_order_of(s, 1, 2, 0); }
SCRIPT(segments_in_order_cab) { in_order_of(s, 2, 0, 1); }
SCRIPT(segments_in_order_cba) { in_order_of(s, 2, 1, 0); }

/* Case S16 a: with B overlapping both neighbours, and duplicates */
SCRIPT(overlapping_segments_across_the_wrap)
{
	established(s);
	peer_sends(s, DATA(161, 261), DATA(31, 191), DATA(161, 261), DATA(1, 61), DATA(1, 61));
	stack_sends_anything(s);
	app_reads(s, 260);
	app_reads_nothing(s);
	advance_ms(s, 100);
	stack_sends_anything(s);
}

/*
 * ---- the numbers of the case: RCV.NXT 0xfffffc01; A, B and C of 512 bytes, C begins at 1 ----
 */

#define CASE_IRS	UINT32_C(0xfffffc00)

static const int64_t whole[3][2] = { { 1, 513 }, { 513, 1025 }, { 1025, 1537 } };
/* B reaches 100 bytes into both neighbours */
static const int64_t lapping[3][2] = { { 1, 513 }, { 413, 1125 }, { 1025, 1537 } };
static const int orders[6][3] = {
	{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
};

/* Connection i: three segments in this order, `times` each, then a FIN at 0x00000201. */
static void
case_order(struct script *s, unsigned i, const int64_t edge[3][2], const int order[3],
    unsigned times)
{
	unsigned k, t;

	use_conn(s, i);
	s->c->irs = CASE_IRS;
	s->c->iss_known = false;
	established(s, .sack = true);
	for (k = 0; k < 3; k++) {
		for (t = 0; t < times; t++) {
			peer_sends(s, DATA(edge[order[k]][0], edge[order[k]][1]));
			stack_sends_anything(s);
		}
	}
	app_reads(s, 1536);
	app_reads_nothing(s);
	assert_int_equal(s->c->irs + 1537, 0x201);
	peer_sends(s, FIN(1537));
	stack_acks(s, 1538);
	app_reads_eof(s);
	state_is(s, TCP_CLOSE_WAIT);
	peer_sends(s, RST(1538));
	app_closes(s);
}

static void
case_orders(struct script *s, const int64_t edge[3][2], unsigned times)
{
	unsigned i;

	for (i = 0; i < 6; i++)
		case_order(s, i, edge, orders[i], times);
}

/* Case S16 a, b: all orders, as they are, twice each, and with overlap */
SCRIPT(segments_at_the_wrap_in_all_orders) { case_orders(s, whole, 1); }
SCRIPT(segments_at_the_wrap_twice_each_in_all_orders) { case_orders(s, whole, 2); }
SCRIPT(lapping_segments_at_the_wrap_in_all_orders) { case_orders(s, lapping, 1); }
SCRIPT(lapping_segments_at_the_wrap_twice_each_in_all_orders) { case_orders(s, lapping, 2); }

/* Case S16 b: the FIN comes first, and each order of the data after it */
SCRIPT(fin_at_the_wrap_before_the_data)
{
	unsigned i, k;

	for (i = 0; i < 6; i++) {
		use_conn(s, i);
		s->c->irs = CASE_IRS;
		established(s);
		peer_sends(s, FIN(1537, .ack = 1));
		stack_sends(s, ACK(1));
		app_reads_nothing(s);
		for (k = 0; k < 3; k++)
			peer_sends(s, DATA(lapping[orders[i][k]][0], lapping[orders[i][k]][1]));
		stack_sends_anything(s);
		advance_ms(s, 50);
		stack_sends_anything(s);
		assert_int_equal(s->c->stack_ack, 1538);
		app_reads(s, 1536);
		app_reads_eof(s);
		peer_sends(s, RST(1538));
		app_closes(s);
	}
}

/*
 * Case S16 d: A is missing, [0xfffffe01, 0x00000201) was received; and the same told to us by the
 * peer, whose numbers are ours
 */
SCRIPT(block_of_the_case_is_told)
{
	s->c->irs = CASE_IRS;
	established(s, .sack = true);
	peer_sends(s, DATA(513, 1025));
	stack_sends(s, ACK(1, .sack = SACK(513, 1025)));
	peer_sends(s, DATA(1025, 1537));
	stack_sends(s, ACK(1, .sack = SACK(513, 1537)));
	peer_sends(s, DATA(1, 513));
	stack_sends(s, ACK(1537, .sack = NO_SACK));
	app_reads(s, 1536);
}

SCRIPT(block_of_the_case_is_understood)
{
	s->isn_base = CASE_IRS;
	established(s, .mss = 512, .sack = true, .cwnd_segs = 4, .nodelay = true);
	app_writes(s, 1536);
	stack_sends(s, DATA(1, 513), DATA(513, 1025), DATA(1025, 1537));
	peer_sends(s, ACK(1, .sack = SACK(513, 1025)), ACK(1, .sack = SACK(513, 1537)));
	stack_silent(s);
	/* what was told is believed neither more nor less: only A is sent again */
	stack_sends(s, DATA(1, 513, .after_ms = 200, .tol_ms = 20));
	peer_sends(s, ACK(1537));
	stack_silent_ms(s, 2000);
	assert_int_equal(script_queued_out(s), 0);
}

/* Case S16 c: ISS 0xfffffffe: three bytes one at a time, ACKs 0xffffffff, 0, 1, 2 */
SCRIPT(our_first_bytes_are_at_the_wrap)
{
	int i;

	s->isn_base = 0xfffffffe;
	established(s, .nodelay = true);
	/* the clock of RFC 6528 may have moved a few numbers on */
	assert_in_range((uint32_t)(s->c->iss + 10), 8, 20);
	for (i = 1; i <= 12; i++) {
		app_writes(s, 1);
		stack_sends(s, DATA(i, i + 1));
		peer_sends(s, ACK(i + 1));
		assert_int_equal(script_queued_out(s), 0);
	}
	stack_silent_ms(s, 2000);
	counter_is(s, "tcp_retransmits", 0);
	peer_sends(s, RST(1));
}

/* Case S16 e: half the circle away, on both sides: a plain ACK, dropped */
SCRIPT(segments_half_the_circle_away_are_acknowledged_and_dropped)
{
	static const int64_t far[] = { 0x7fffffff, 0x80000000, -0x7fffffff };
	unsigned i;

	s->c->irs = CASE_IRS;
	established(s);
	for (i = 0; i < ARRAY_LEN(far); i++) {
		peer_sends(s, SEG(.flags = TH_ACK, .seq = 1 + far[i], .ack = 1, .len = 10, .fill =
		    0xee));
		stack_sends(s, ACK(1, .seq = 1));
		app_reads_nothing(s);
	}
	s->c->snd_nxt = 1;
	peer_sends(s, DATA(1, 101));
	app_reads(s, 100);
	stack_acks(s, 101);
}

/* Case S16 d: blocks that cross the wrap, ours */
SCRIPT(sack_block_across_the_wrap_is_told)
{
	established(s, .sack = true);
	peer_sends(s, DATA(61, 161));
	stack_sends(s, ACK(1, .sack = SACK(61, 161)));
	peer_sends(s, DATA(161, 361));
	stack_sends(s, ACK(1, .sack = SACK(61, 361)));
	peer_sends(s, DATA(1, 61));
	stack_sends(s, ACK(361, .sack = NO_SACK));
	app_reads(s, 360);
}

/* Case S16 d: and the peer's */
SCRIPT(sack_block_across_the_wrap_is_understood)
{
	established(s, .mss = 100, .sack = true, .cwnd_segs = 4);
	app_writes(s, 400);
	stack_sends(s, DATA(1, 101), DATA(101, 201), DATA(201, 301), DATA(301, 401));
	s->c->rcv_nxt = 1;
	peer_sends(s, ACK(1, .sack = SACK(101, 201)), ACK(1, .sack = SACK(101, 301)),
	    ACK(1, .sack = SACK(101, 401)));
	stack_sends(s, DATA(1, 101));
	peer_sends(s, ACK(401));
	stack_silent_ms(s, 2000);
}

/* Case S16 b: FIN above the wrap, data below it missing at first */
SCRIPT(fin_above_the_wrap_waits_for_data_below)
{
	established(s);
	peer_sends(s, FIN(201, .ack = 1), DATA(101, 201));
	stack_sends_anything(s);
	app_reads_nothing(s);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(202));
	app_reads(s, 200);
	app_reads_eof(s);
	state_is(s, TCP_CLOSE_WAIT);
}

/* Case S16 c: our bytes one at a time over the wrap, no retransmission */
SCRIPT(bytes_are_sent_one_by_one_over_the_wrap)
{
	int i;

	established(s, .nodelay = true);
	app_writes(s, 97);
	stack_sends(s, DATA(1, 98));
	peer_sends(s, ACK(98));
	for (i = 98; i < 106; i++) {
		app_writes(s, 1);
		stack_sends(s, DATA(i, i + 1));
		peer_sends(s, ACK(i + 1));
	}
	stack_silent_ms(s, 2000);
	counter_is(s, "tcp_retransmits", 0);
}

/* Retransmission of a segment that crosses */
SCRIPT(crossing_segment_is_retransmitted_whole)
{
	established(s);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 1001));
	stack_sends(s, DATA(1, 1001, .after_ms = 200, .tol_ms = 3));
	peer_sends(s, ACK(51));
	stack_sends_anything(s);
	peer_sends(s, ACK(1001));
	stack_silent_ms(s, 2000);
}

/* A megabyte each way through small windows, crossing at the start */
SCRIPT(a_megabyte_each_way_keeps_its_bytes)
{
	int64_t total = 1 << 20;

	established(s, .sndbuf = 65536, .nodelay = true);
	while (s->c->rcv_nxt < total) {
		int64_t at = s->c->snd_nxt;

		peer_sends(s, DATA(at, at + 1024), DATA(at + 1024, at + 2048));
		app_reads(s, 2048);
		app_writes(s, 2048);
		assert_true(stack_sends_anything(s) >= 2);
		peer_sends(s, ACK(s->c->rcv_nxt));
		stack_sends_anything(s);
	}
	advance_ms(s, 100);
	stack_sends_anything(s);
	counter_is(s, "tcp_rto", 0);
	counter_is(s, "tcp_retransmits", 0);
}
