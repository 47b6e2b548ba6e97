/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/tcp/tcp_check: a table of segments against a connection, each row under the rule it is
 * about.
 */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "transport/tcp/tcp_priv.h"

#define WND	1000u
#define NOW_S	1000u

/* Numbers are relative to rcv_nxt (seq) and snd_una (ack); 500 bytes are in flight. */
struct row {
	const char *rule;
	enum tcp_state state;
	uint32_t pcb_flags;
	uint8_t flags;
	int64_t seq;
	uint32_t data;
	int64_t ack;
	enum tcp_verdict verdict;
	enum counter why;		/* of drops */
	uint32_t wnd;			/* 0: WND; CLOSED_WND: none */
	bool has_ts;
	int32_t ts_delta;		/* tsval - ts_recent */
	uint32_t idle_s;		/* since ts_recent moved */
};

#define CLOSED_WND UINT32_MAX
#define EST	TCP_ESTABLISHED
#define OK	TCP_ACCEPT, CTR_tcp_segs_rcvd

static const struct row rows[] = {
	/* RFC 9293 3.10.7.4, table 6 */
	{ "data at rcv_nxt", EST, 0, TH_ACK, 0, 100, 0, OK, 0, 0, 0, 0 },
	{ "no data, closed window, at rcv_nxt", EST, 0, TH_ACK, 0, 0, 0, OK, CLOSED_WND, 0, 0, 0 },
	{ "no data, closed window, beyond", EST, 0, TH_ACK, 1, 0, 0,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_window, CLOSED_WND, 0, 0, 0 },
	{ "no data, inside", EST, 0, TH_ACK, WND - 1, 0, 0, OK, 0, 0, 0, 0 },
	{ "no data, at the edge (our relaxation)", EST, 0, TH_ACK, WND, 0, 0, OK, 0, 0, 0, 0 },
	{ "no data, beyond the edge", EST, 0, TH_ACK, WND + 1, 0, 0,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_window, 0, 0, 0, 0 },
	{ "data, closed window, at rcv_nxt: for its ACK", EST, 0, TH_ACK, 0, 1, 0, OK, CLOSED_WND,
	    0, 0, 0 },
	{ "FIN, closed window, at rcv_nxt", EST, 0, TH_ACK | TH_FIN, 0, 0, 0, OK, CLOSED_WND, 0, 0,
	    0 },
	{ "data, closed window, beyond", EST, 0, TH_ACK, 1, 1, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_window, CLOSED_WND, 0, 0, 0 },
	{ "first byte inside", EST, 0, TH_ACK, WND - 1, 100, 0, OK, 0, 0, 0, 0 },
	{ "first byte at the edge", EST, 0, TH_ACK, WND, 1, 0, TCP_DROP_ACK, CTR_drop_tcp_window, 0,
	    0, 0, 0 },
	{ "last byte inside", EST, 0, TH_ACK, -99, 100, 0, OK, 0, 0, 0, 0 },
	{ "all old", EST, 0, TH_ACK, -100, 100, 0, TCP_DROP_ACK, CTR_drop_tcp_dup, 0, 0, 0, 0 },
	{ "covers the window", EST, 0, TH_ACK, -10, 2000, 0, OK, 0, 0, 0, 0 },
	{ "repeated FIN", EST, 0, TH_ACK | TH_FIN, -1, 0, 0, TCP_DROP_ACK, CTR_drop_tcp_dup, 0, 0,
	    0, 0 },
	{ "2^31 - 1 ahead", EST, 0, TH_ACK, 0x7fffffff, 10, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_window, 0, 0, 0, 0 },
	{ "2^31 away", EST, 0, TH_ACK, INT64_C(0x80000000), 10, 0, TCP_DROP_ACK, CTR_drop_tcp_dup,
	    0, 0, 0, 0 },
	{ "2^31 - 1 behind", EST, 0, TH_ACK, -INT64_C(0x7fffffff), 10, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_dup, 0, 0, 0, 0 },
	/* RFC 9293 3.8.4 */
	{ "keepalive probe", EST, 0, TH_ACK, -1, 0, 0, TCP_DROP_ACK, CTR_drop_tcp_dup, 0, 0, 0, 0 },
	{ "keepalive probe with a byte", EST, 0, TH_ACK, -1, 1, 0, TCP_DROP_ACK, CTR_drop_tcp_dup,
	    0, 0, 0, 0 },
	/* RFC 5961 3.2 */
	{ "RST at rcv_nxt", EST, 0, TH_RST, 0, 0, 0, TCP_RESET, CTR_tcp_resets_rcvd, 0, 0, 0, 0 },
	{ "RST with data at rcv_nxt", EST, 0, TH_RST | TH_ACK, 0, 20, 0, TCP_RESET,
	    CTR_tcp_resets_rcvd, 0, 0, 0, 0 },
	{ "RST at rcv_nxt, closed window", EST, 0, TH_RST, 0, 0, 0,
	  TCP_RESET, CTR_tcp_resets_rcvd, CLOSED_WND, 0, 0, 0 },
	{ "RST inside", EST, 0, TH_RST, 1, 0, 0, TCP_DROP_CHALLENGE, CTR_drop_tcp_rst_bad, 0, 0, 0,
	    0 },
	{ "RST at the last number", EST, 0, TH_RST, WND - 1, 0, 0,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_rst_bad, 0, 0, 0, 0 },
	{ "RST at the edge", EST, 0, TH_RST, WND, 0, 0, TCP_DROP, CTR_drop_tcp_rst_bad, 0, 0, 0,
	    0 },
	{ "RST behind", EST, 0, TH_RST, -1, 0, 0, TCP_DROP, CTR_drop_tcp_rst_bad, 0, 0, 0, 0 },
	{ "RST without timestamp (RFC 7323 3.2)", EST, TCPF_TS, TH_RST, 0, 0, 0,
	  TCP_RESET, CTR_tcp_resets_rcvd, 0, false, 0, 0 },
	/* RFC 5961 4.2 */
	{ "SYN inside", EST, 0, TH_SYN, 101, 0, 0, TCP_DROP_CHALLENGE, CTR_drop_tcp_syn_in_window,
	    0, 0, 0, 0 },
	{ "SYN outside", EST, 0, TH_SYN, 70000000, 0, 0,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_syn_in_window, 0, 0, 0, 0 },
	{ "SYN-ACK", EST, 0, TH_SYN | TH_ACK, -1, 0, 0,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_syn_in_window, 0, 0, 0, 0 },
	/* RFC 9293 3.10.7.4, fifth step */
	{ "no ACK bit", EST, 0, 0, 0, 100, 0, TCP_DROP, CTR_drop_tcp_flags, 0, 0, 0, 0 },
	{ "ACK of all that is in flight", EST, 0, TH_ACK, 0, 0, 500, OK, 0, 0, 0, 0 },
	{ "ACK of what was never sent", EST, 0, TH_ACK, 0, 0, 501,
	  TCP_DROP_CHALLENGE, CTR_drop_tcp_ack_bad, 0, 0, 0, 0 },
	{ "ACK far ahead", EST, 0, TH_ACK, 0, 0, 0x7fff0000, TCP_DROP_CHALLENGE,
	    CTR_drop_tcp_ack_bad, 0, 0, 0, 0 },
	/* RFC 5961 5.2: the largest window seen is 2,000 */
	{ "old ACK, just believable", EST, 0, TH_ACK, 0, 100, -2000, OK, 0, 0, 0, 0 },
	{ "older ACK", EST, 0, TH_ACK, 0, 100, -2001, TCP_DROP_CHALLENGE, CTR_drop_tcp_ack_bad, 0,
	    0, 0, 0 },
	/* RFC 9293 3.10.7.4, fifth step, SYN-RECEIVED */
	{ "SYN-RECEIVED, ACK of the SYN", TCP_SYN_RCVD, 0, TH_ACK, 0, 0, 1, OK, 0, 0, 0, 0 },
	{ "SYN-RECEIVED, ACK of nothing", TCP_SYN_RCVD, 0, TH_ACK, 0, 0, 0,
	  TCP_DROP_RST, CTR_drop_tcp_ack_bad, 0, 0, 0, 0 },
	{ "SYN-RECEIVED, ACK ahead", TCP_SYN_RCVD, 0, TH_ACK, 0, 0, 501,
	  TCP_DROP_RST, CTR_drop_tcp_ack_bad, 0, 0, 0, 0 },
	{ "SYN-RECEIVED, exact RST", TCP_SYN_RCVD, 0, TH_RST, 0, 0, 0, TCP_RESET,
	    CTR_tcp_resets_rcvd, 0, 0, 0, 0 },
	/* RFC 7323 5.3 */
	{ "newer timestamp", EST, TCPF_TS, TH_ACK, 0, 10, 0, OK, 0, true, 1, 0 },
	{ "same timestamp", EST, TCPF_TS, TH_ACK, 0, 10, 0, OK, 0, true, 0, 0 },
	{ "older timestamp", EST, TCPF_TS, TH_ACK, 0, 10, 0, TCP_DROP_ACK, CTR_drop_tcp_paws, 0,
	    true, -1, 0 },
	{ "older timestamp, pure ACK", EST, TCPF_TS, TH_ACK, 0, 0, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_paws, 0, true, -1, 0 },
	{ "timestamp half round", EST, TCPF_TS, TH_ACK, 0, 10, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_paws, 0, true, INT32_MIN, 0 },
	{ "older timestamp, 24 days less a bit idle (5.5)", EST, TCPF_TS, TH_ACK, 0, 10, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_paws, 0, true, -1, TCP_PAWS_IDLE_S - 1 },
	{ "older timestamp, 24 days idle (5.5)", EST, TCPF_TS, TH_ACK, 0, 10, 0, OK, 0, true, -1,
	    TCP_PAWS_IDLE_S },
	/* where we differ from 3.2; case S15 a-c */
	{ "timestamp missing", EST, TCPF_TS, TH_ACK, 0, 10, 0, OK, 0, false, 0, 0 },
	{ "timestamp missing, keepalive probe", EST, TCPF_TS, TH_ACK, -1, 0, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_dup, 0, false, 0, 0 },
	{ "timestamp missing, last ACK of the handshake", TCP_SYN_RCVD, TCPF_TS, TH_ACK, 0, 0, 1,
	  OK, 0, false, 0, 0 },
	{ "timestamp not agreed", EST, 0, TH_ACK, 0, 10, 0, OK, 0, true, -1, 0 },
	/* RFC 9293 3.6.1 */
	{ "data after close", TCP_FIN_WAIT_2, TCPF_CLOSED, TH_ACK, 0, 10, 0,
	  TCP_ABORT, CTR_drop_tcp_after_close, 0, 0, 0, 0 },
	{ "out of order data after close", TCP_FIN_WAIT_1, TCPF_CLOSED, TH_ACK, 100, 10, 0,
	  TCP_ABORT, CTR_drop_tcp_after_close, 0, 0, 0, 0 },
	{ "FIN after close", TCP_FIN_WAIT_2, TCPF_CLOSED, TH_ACK | TH_FIN, 0, 0, 0, OK, 0, 0, 0,
	    0 },
	{ "old data after close", TCP_FIN_WAIT_2, TCPF_CLOSED, TH_ACK, -10, 10, 0,
	  TCP_DROP_ACK, CTR_drop_tcp_dup, 0, 0, 0, 0 },
	{ "data after shutdown", TCP_FIN_WAIT_2, 0, TH_ACK, 0, 10, 0, OK, 0, 0, 0, 0 },
};

static const uint32_t bases[] = { 0, 100, 0x7ffffff0, 0x80000000, 0xfffffff0, 0xffffffff };

static struct tcp_pcb
pcb_for(const struct row *r, uint32_t rcv_base, uint32_t snd_base)
{
	struct tcp_pcb p = { .state = (uint8_t)r->state, .flags = r->pcb_flags };
	uint32_t wnd = r->wnd == CLOSED_WND ? 0 : WND;

	p.rcv_nxt = seq_of(rcv_base);
	p.rcv_adv = seq_of(rcv_base + wnd);
	p.snd_una = seq_of(snd_base);
	p.snd_nxt = seq_of(snd_base + 500);
	p.snd_max = p.snd_nxt;
	p.max_snd_wnd_bytes = 2000;
	p.ts_recent = rcv_base;
	p.ts_recent_s = NOW_S;
	return p;
}

static struct tcp_seg
seg_for(const struct row *r, uint32_t rcv_base, uint32_t snd_base)
{
	struct tcp_seg s = { .flags = r->flags, .data_bytes = r->data };

	s.seq = seq_of(rcv_base + (uint32_t)r->seq);
	s.ack = seq_of(snd_base + (uint32_t)r->ack);
	s.len = r->data + ((r->flags & TH_SYN) != 0) + ((r->flags & TH_FIN) != 0);
	s.opts.has_ts = r->has_ts;
	s.opts.tsval = rcv_base + (uint32_t)r->ts_delta;
	return s;
}

static void
each_segment_gets_its_verdict_at_every_wrap(void **state)
{
	size_t i, b;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct time now = { ((uint64_t)NOW_S + r->idle_s) << 20 };

		for (b = 0; b < ARRAY_LEN(bases); b++) {
			uint32_t snd_base = bases[ARRAY_LEN(bases) - 1 - b];
			struct tcp_pcb p = pcb_for(r, bases[b], snd_base);
			struct tcp_seg s = seg_for(r, bases[b], snd_base);
			struct tcp_check c = tcp_check(&p, &s, now);

			if (c.verdict != r->verdict || c.why != r->why)
				fail_msg("%s (base %x): verdict %d %s", r->rule, bases[b],
				(int)c.verdict,
				    counter_name(c.why));
		}
	}
}

/* Whatever the predicate lets past the tests, the tests would have accepted. */
static void
plain_segment_would_have_been_accepted(void **state)
{
	size_t i, plain = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct tcp_pcb p = pcb_for(r, 0xfffffff0, 0x7ffffff0);
		struct tcp_seg s = seg_for(r, 0xfffffff0, 0x7ffffff0);

		if (!tcp_is_plain(&p, &s))
			continue;
		plain++;
		if (r->verdict != TCP_ACCEPT)
			fail_msg("%s is plain but not accepted", r->rule);
	}
	assert_in_range(plain, 5, ARRAY_LEN(rows) / 2);
}

/* RFC 9293 3.10.7.3; iss is 100 below the wrap, nothing but the SYN was sent */
static void
syn_sent_believes_only_what_acknowledges_the_syn(void **state)
{
	static const struct {
		uint8_t flags;
		int ack;		/* relative to iss */
		enum tcp_verdict verdict;
	} t[] = {
		{ TH_SYN | TH_ACK, 1, TCP_ACCEPT },
		{ TH_SYN, 0, TCP_ACCEPT },
		{ TH_SYN | TH_ACK, 0, TCP_DROP_RST },
		{ TH_SYN | TH_ACK, 2, TCP_DROP_RST },
		{ TH_ACK, 555, TCP_DROP_RST },
		{ TH_ACK, 1, TCP_DROP },
		{ TH_RST | TH_ACK, 1, TCP_RESET },
		{ TH_RST | TH_ACK, 555, TCP_DROP },
		{ TH_RST, 0, TCP_DROP },
		{ TH_SYN | TH_FIN, 0, TCP_DROP },
		{ 0, 0, TCP_DROP },
	};
	struct tcp_pcb p = { .state = TCP_SYN_SENT };
	size_t i, b;

	(void)state;
	for (b = 0; b < ARRAY_LEN(bases); b++) {
		p.iss = seq_of(bases[b]);
		p.snd_una = p.iss;
		p.snd_max = seq_add(p.iss, 1);
		for (i = 0; i < ARRAY_LEN(t); i++) {
			struct tcp_seg s = { .flags = t[i].flags, .seq = seq_of(7) };

			s.ack = seq_of(bases[b] + (uint32_t)t[i].ack);
			if (tcp_check_syn_sent(&p, &s).verdict != t[i].verdict)
				fail_msg("row %zu base %x", i, bases[b]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_segment_gets_its_verdict_at_every_wrap),
		cmocka_unit_test(plain_segment_would_have_been_accepted),
		cmocka_unit_test(syn_sent_believes_only_what_acknowledges_the_syn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
