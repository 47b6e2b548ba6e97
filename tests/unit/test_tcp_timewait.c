/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/tcp/tcp_timewait: verdicts, and the table's bound, expiry and restart on a bare netisr.
 */
#include "support/cmocka_all.h"

#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/netisr.h"
#include "transport/tcp/tcp_priv.h"
#include "transport/ulp.h"
#include "unit/transport_bare.h"

#define RCV_NXT	0xfffffff0u

static struct tcp_tw
record_with_ts(uint32_t ts_recent, uint32_t since_tick)
{
	return (struct tcp_tw){ .rcv_nxt = seq_of(RCV_NXT), .snd_nxt = seq_of(500),
	    .ts_recent = ts_recent,
		.since_ts = (since_tick & ~1u) | 1u };
}

static struct tcp_seg
seg(uint8_t flags, uint32_t seq, uint32_t data)
{
	return (struct tcp_seg){ .flags = flags, .seq = seq_of(seq), .ack = seq_of(500),
	    .data_bytes = data,
		.len = data + ((flags & TH_SYN) != 0) + ((flags & TH_FIN) != 0) };
}

/* RFC 1337 */
static void
rst_then_record_stays(void **state)
{
	struct tcp_tw w = record_with_ts(1000, 0);
	struct tcp_seg s = seg(TH_RST, RCV_NXT, 0);

	(void)state;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_IGNORE);
}

/* RFC 6191 2; RFC 9293 3.6.1 MAY-2 */
static void
newer_syn_reopens_older_is_acknowledged(void **state)
{
	struct tcp_tw w = record_with_ts(1000, 0);
	struct tcp_seg s = seg(TH_SYN, RCV_NXT - 5000, 0);

	(void)state;
	s.opts.has_ts = true;
	s.opts.tsval = 2000;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_REOPEN);
	s.opts.tsval = 900;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
	/* the same timestamp: the number decides */
	s.opts.tsval = 1000;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
	s.seq = seq_of(RCV_NXT + 1000);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_REOPEN);
	/* without timestamps only a higher number counts, also beyond the wrap */
	s.opts.has_ts = false;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_REOPEN);
	s.seq = seq_of(RCV_NXT - 1);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
	s.flags = TH_SYN | TH_ACK;
	s.seq = seq_of(RCV_NXT + 1000);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
}

/* RFC 9293 3.10.7.4, eighth step, TIME-WAIT */
static void
repeated_fin_restarts_and_other_segments_do_not(void **state)
{
	struct tcp_tw w = record_with_ts(1000, 0);
	struct tcp_seg s = seg(TH_FIN | TH_ACK, RCV_NXT - 1, 0);

	(void)state;
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK_RESTART);
	s = seg(TH_FIN | TH_ACK, RCV_NXT - 101, 100);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK_RESTART);
	s = seg(TH_FIN | TH_ACK, RCV_NXT, 0);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
	s = seg(TH_ACK, RCV_NXT - 100, 99);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_ACK);
	/* an ACK in place is not answered: two ends in TIME-WAIT fall silent */
	s = seg(TH_ACK, RCV_NXT, 0);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_IGNORE);
	s = seg(0, RCV_NXT, 10);
	assert_int_equal(tcp_tw_check(&w, &s), TCP_TW_IGNORE);
}

static void
own_connect_may_reuse_after_one_second_with_timestamps(void **state)
{
	struct tcp_tw w = record_with_ts(1000, 5000);

	(void)state;
	assert_false(tcp_tw_reusable(&w, 5000));
	assert_false(tcp_tw_reusable(&w, 5000 + 976));
	assert_true(tcp_tw_reusable(&w, 5000 + 980));
	w.since_ts &= ~1u;
	assert_false(tcp_tw_reusable(&w, 5000 + 60000));
	/* the tick wraps */
	w = record_with_ts(1000, 0xfffffff0);
	assert_true(tcp_tw_reusable(&w, 1000));
}

/* ---- the table ---- */

static void
enter(struct netisr *n, unsigned i)
{
	struct tcp_pcb p = { .flags = TCPF_TS, .rcv_nxt = seq_of(i) };

	p.tuple.local = ipaddr_v4_cpu(0x0a000001);
	p.tuple.foreign = ipaddr_v4_cpu(0x0a000002 + i / 1000);
	p.tuple.lport = 80;
	p.tuple.fport = (uint16_t)(1024 + i % 1000);
	tcp_tw_enter(n, &p);
}

static struct tcp_tw *
find(struct netisr *n, unsigned i)
{
	struct tuple t = { ipaddr_v4_cpu(0x0a000001), ipaddr_v4_cpu(0x0a000002 + i / 1000), 80,
		(uint16_t)(1024 + i % 1000) };

	return tcp_tw_lookup(n->tcp, &t);
}

static uint32_t
count(struct netisr *n)
{
	uint32_t pcbs, half_open, timewait;

	tcp_counts(n, &pcbs, &half_open, &timewait);
	return timewait;
}

static void
advance(struct netisr *n, struct clock *c, uint64_t ms)
{
	uint64_t i;

	for (i = 0; i < ms; i++) {
		clock_advance_us(c, US_PER_MS);
		netisr_round(n);
	}
}

static const struct layer *const layers[] = {
	&link_layer, &inet_layer, &demux_layer, &tcp_layer, NULL
};

struct rig {
	struct clock clock;
	struct darter_stack *s;
	struct netisr *n;
};

static void
rig_up(struct rig *g)
{
	char err[128];

	g->s = bare_stack(1, &g->clock, layers);
	g->n = g->s->netisr[0];
	assert_int_equal(knob_set(g->s, "net.inet.tcp.msl_ms", "1000", err, sizeof(err)), 0);
	assert_int_equal(knob_set(g->s, "net.inet.tcp.max_timewait", "3000", err, sizeof(err)), 0);
	assert_true(netisr_take(g->n));
}

static void
rig_down(struct rig *g)
{
	netisr_give(g->n);
	stack_free(g->s);
}

static void
records_live_for_two_msl_and_leave_nothing(void **state)
{
	struct rig g;
	unsigned i;

	(void)state;
	rig_up(&g);
	for (i = 0; i < 2500; i++)
		enter(g.n, i);
	assert_int_equal(count(g.n), 2500);
	for (i = 0; i < 2500; i++)
		assert_int_equal(find(g.n, i)->rcv_nxt.v, i);
	advance(g.n, &g.clock, 1900);
	assert_int_equal(count(g.n), 2500);
	advance(g.n, &g.clock, 110);
	assert_int_equal(count(g.n), 0);
	assert_null(find(g.n, 7));
	rig_down(&g);
}

static void
table_full_then_oldest_is_evicted_and_counted(void **state)
{
	struct rig g;
	unsigned i;

	(void)state;
	rig_up(&g);
	for (i = 0; i < 3010; i++)
		enter(g.n, i);
	assert_int_equal(count(g.n), 3000);
	assert_null(find(g.n, 9));
	assert_non_null(find(g.n, 10));
	assert_int_equal(stack_counter(g.s, CTR_tcp_timewait_evicted), 10);
	rig_down(&g);
}

/* MUST-13 and the eighth step */
static void
repeated_fin_then_record_outlives_its_neighbours(void **state)
{
	struct tcp_seg s = seg(TH_FIN | TH_ACK, 1, 0);
	struct rig g;
	unsigned i;

	(void)state;
	rig_up(&g);
	for (i = 0; i < 5; i++)
		enter(g.n, i);
	advance(g.n, &g.clock, 1500);
	for (i = 0; i < 5; i += 2) {
		struct tcp_tw *w = find(g.n, i);

		s.seq = seq_sub(w->rcv_nxt, 1);
		assert_false(tcp_tw_input(g.n, w, &s));
	}
	advance(g.n, &g.clock, 600);
	assert_int_equal(count(g.n), 3);
	assert_null(find(g.n, 1));
	tcp_tw_remove(g.n, find(g.n, 2));
	assert_non_null(find(g.n, 0));
	assert_non_null(find(g.n, 4));
	advance(g.n, &g.clock, 1500);
	assert_int_equal(count(g.n), 0);
	rig_down(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rst_then_record_stays),
		cmocka_unit_test(newer_syn_reopens_older_is_acknowledged),
		cmocka_unit_test(repeated_fin_restarts_and_other_segments_do_not),
		cmocka_unit_test(own_connect_may_reuse_after_one_second_with_timestamps),
		cmocka_unit_test(records_live_for_two_msl_and_leave_nothing),
		cmocka_unit_test(table_full_then_oldest_is_evicted_and_counted),
		cmocka_unit_test(repeated_fin_then_record_outlives_its_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
