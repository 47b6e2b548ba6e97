/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine (RFC 9293 3.3.2, 3.10.7.3, 3.10.7.4): a segment for a connection is judged
 * (tcp_check.c) and then goes through its state's list of steps. LISTEN and the half-open
 * connections of listeners are in tcp_listen.c and tcp_syn.c, TIME-WAIT in tcp_timewait.c; a pcb is
 * in SYN-SENT or later, in SYN-RECEIVED only after a simultaneous open or for the moment in which a
 * half-open entry becomes a connection.
 *
 * Where we differ: data on a SYN are not kept (the peer sends them again); FIN-WAIT-1 and LAST-ACK
 * are entered when the FIN is queued, not when it is sent; RSTs obey RFC 5961.
 */
#include <errno.h>

#include "transport/tcp/tcp_priv.h"

void
tcp_enter(struct netisr *n, struct tcp_pcb *p, enum tcp_state st)
{
	if (st == TCP_ESTABLISHED)
		NETISR_COUNT(n, CTR_tcp_established);
	else if (st == TCP_CLOSED && p->state != TCP_CLOSED)
		NETISR_COUNT(n, CTR_tcp_closed);
	p->state = (uint8_t)st;
}

/* RFC 9293 3.10.7.4, second step. */
static int
errno_of_reset(const struct tcp_pcb *p)
{
	if (p->state == TCP_SYN_SENT || p->state == TCP_SYN_RCVD)
		return ECONNREFUSED;
	/* the peer had ended its side: as on Linux */
	return p->state == TCP_CLOSE_WAIT ? EPIPE : ECONNRESET;
}

static void
on_reset(struct netisr *n, struct tcp_pcb *p)
{
	NETISR_COUNT(n, CTR_tcp_resets_rcvd);
	if (p->state == TCP_SYN_SENT)
		NETISR_COUNT(n, CTR_tcp_refused);
	p->flags |= TCPF_RESET;
	tcp_die(n, p, errno_of_reset(p));
}

static void
refuse(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, struct tcp_check c)
{
	if (c.verdict == TCP_RESET) {
		on_reset(n, p);
		return;
	}
	NETISR_COUNT(n, c.why);
	switch (c.verdict) {
	case TCP_DROP_ACK:
		if (c.why == CTR_drop_tcp_dup)
			tcp_rcv_note_dup(p, s->seq, seq_add(s->seq, s->data_bytes));
		tcp_owe(n, p, TODO_ACK_NOW);
		break;
	case TCP_DROP_CHALLENGE:
		tcp_owe_challenge(n, p);
		break;
	case TCP_DROP_RST:
		tcp_reply_rst(n, s);
		break;
	case TCP_ABORT:
		tcp_reply_rst(n, s);
		p->flags |= TCPF_RESET;
		tcp_die(n, p, ECONNRESET);
		break;
	case TCP_ACCEPT:
	case TCP_DROP:
	case TCP_RESET:
		break;
	}
}

/* ---- handshake ---- */

static void
first_window(struct tcp_pcb *p, const struct tcp_seg *s)
{
	/* RFC 7323 2.2: the window of a SYN is never scaled */
	p->snd_wnd_bytes = (uint32_t)s->wnd << (s->flags & TH_SYN ? 0 : p->snd_wscale);
	p->max_snd_wnd_bytes = max_u32(p->max_snd_wnd_bytes, p->snd_wnd_bytes);
	p->snd_wl1 = s->seq;
	p->snd_wl2 = s->ack;
}

static void
first_rtt(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	uint32_t ticks;

	if (p->flags & TCPF_TIMING) {
		p->flags &= ~(uint32_t)TCPF_TIMING;
		tcp_rtt_take(n, p, time_since_us(n->now, p->rtt_start));
	} else if ((p->flags & TCPF_TS) && s->opts.has_ts && s->opts.tsecr != 0) {
		ticks = tcp_ts_now(p->ts_offset, n->now) - s->opts.tsecr;
		tcp_rtt_take(n, p, (uint64_t)min_u32(ticks, 60000) << 10);
	} else {
		p->rto_us = TCP_RTO_AFTER_SYN_LOSS_US;	/* RFC 6298 5.7 */
	}
}

void
tcp_become_established(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	p->snd_una = seq_add(p->iss, 1);
	p->snd_nxt = seq_max(p->snd_nxt, p->snd_una);
	first_window(p, s);
	first_rtt(n, p, s);
	tcp_cc_init(n, p);
	p->backoff = 0;
	p->retries = 0;
	p->soft_error = 0;
	tcp_timer_stop(p, TCP_T_REXMIT);
	tcp_enter(n, p, TCP_ESTABLISHED);
	sockhalf_set(p->sh, SH_CONNECTED | SH_NAMED, SH_CONNECTING);
	p->events |= SOCK_EV_OUT;
	tcp_keep_update(n, p);
	if (p->flags & TCPF_FIN_QUEUED) {
		/* closed or shut down while connecting (RFC 9293 3.10.4) */
		p->flags &= ~(uint32_t)TCPF_FIN_QUEUED;
		tcp_fsm_close(n, p);
	}
	tcp_owe(n, p, TODO_OUT);
}

/*
 * The ACK of a SYN-ACK may wait for what the application does at once, so that its first data, or
 * its FIN, are one segment with it (RFC 9293 3.10.7.3 allows it). Only where a thread polls: else
 * the timer might wake one, which costs more than a segment.
 */
static bool
may_hold_ack(const struct netisr *n)
{
	return knob_get(&tcp_knobs(n)->connect_ack_us) != 0 &&
	    (atomic_load_explicit(&n->is_attached, memory_order_relaxed) ||
	    atomic_load_explicit(&n->stack->poll_idle_us, memory_order_relaxed) != 0);
}

/* 3.10.7.3 */
static void
in_syn_sent(struct netisr *n, struct tcp_pcb *p, struct tcp_seg *s)
{
	struct tcp_check c = tcp_check_syn_sent(p, s);

	if (c.verdict != TCP_ACCEPT) {
		refuse(n, p, s, c);
		return;
	}
	p->irs = s->seq;
	tcp_negotiate(p, &s->opts, p->flags);
	tcp_rcv_init(n, p, min_u32(p->rcv_grant_bytes, UINT16_MAX));
	if (s->flags & TH_ACK) {
		tcp_become_established(n, p, s);
		tcp_owe(n, p, may_hold_ack(n) ? TODO_ACK_SOON : TODO_ACK_NOW);
		return;
	}
	/* simultaneous open (3.5, figure 7) */
	first_window(p, s);
	tcp_enter(n, p, TCP_SYN_RCVD);
	tcp_timer_stop(p, TCP_T_REXMIT);
	tcp_owe(n, p, TODO_SYN);
}

/*
 * SYN-RECEIVED after a simultaneous open: the peer's SYN again, with or without ACK. RFC 9293 lets
 * an ACK in answer end the handshake; we take the SYN-ACK itself for the acknowledgment it is, and
 * answer a bare SYN with ours again. True: nothing is left to do.
 */
static bool
took_repeated_syn(struct netisr *n, struct tcp_pcb *p, struct tcp_seg *s)
{
	if ((s->flags & (TH_SYN | TH_RST)) != TH_SYN || !seq_eq(s->seq, p->irs))
		return false;
	if (!(s->flags & TH_ACK)) {
		tcp_owe(n, p, TODO_SYN);
		return true;
	}
	s->flags &= (uint8_t)~TH_SYN;
	s->seq = seq_add(s->seq, 1);
	s->len--;
	tcp_owe(n, p, TODO_ACK_NOW);
	return false;
}

/* ---- synchronized states, 3.10.7.4 from the fifth step on ---- */

static void
enter_time_wait(struct netisr *n, struct tcp_pcb *p)
{
	/* in this order: the port is free, then it rests */
	tcp_die(n, p, 0);
	tcp_tw_enter(n, p);
	/* the ACK of the peer's FIN is still owed and goes out with the farewell */
}

static void
in_established(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	tcp_ack(n, p, s);
	tcp_rcv(n, p, s);
	if (p->flags & TCPF_EOF)
		tcp_enter(n, p, TCP_CLOSE_WAIT);
}

static void
in_fin_wait_1(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	tcp_ack(n, p, s);
	tcp_rcv(n, p, s);
	if (p->flags & TCPF_FIN_ACKED) {
		tcp_enter(n, p, TCP_FIN_WAIT_2);
		if (p->flags & TCPF_EOF)
			enter_time_wait(n, p);
		else if (p->flags & TCPF_CLOSED)
			tcp_timer_set(n, p, TCP_T_LIFE,
			    tcp_knob_ms_as_us(&tcp_knobs(n)->fin_wait2_ms));
	} else if (p->flags & TCPF_EOF) {
		tcp_enter(n, p, TCP_CLOSING);
	}
}

static void
in_fin_wait_2(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	tcp_ack(n, p, s);
	tcp_rcv(n, p, s);
	if (p->flags & TCPF_EOF)
		enter_time_wait(n, p);
}

static void
in_closing(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	tcp_ack(n, p, s);
	if (p->flags & TCPF_FIN_ACKED)
		enter_time_wait(n, p);
}

static void
in_last_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	tcp_ack(n, p, s);
	if (p->flags & TCPF_FIN_ACKED)
		tcp_die(n, p, 0);
}

static void
run_steps(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	switch ((enum tcp_state)p->state) {
	case TCP_ESTABLISHED:
		in_established(n, p, s);
		break;
	case TCP_FIN_WAIT_1:
		in_fin_wait_1(n, p, s);
		break;
	case TCP_FIN_WAIT_2:
		in_fin_wait_2(n, p, s);
		break;
	case TCP_CLOSE_WAIT:
		tcp_ack(n, p, s);
		break;
	case TCP_CLOSING:
		in_closing(n, p, s);
		break;
	case TCP_LAST_ACK:
		in_last_ack(n, p, s);
		break;
	case TCP_CLOSED:
	case TCP_LISTEN:
	case TCP_SYN_SENT:
	case TCP_SYN_RCVD:
	case TCP_TIME_WAIT:
	case TCP_STATES:
		break;		/* never here: such pcbs do not reach the steps */
	}
}

/* The peer lives. */
static void
note_life(struct netisr *n, struct tcp_pcb *p)
{
	p->last_rcv_tick = tcp_tick32(n->now);
	p->keep_probes = 0;
	if (p->flags & TCPF_PERSIST)
		p->retries = 0;		/* MUST-37: never given up while the peer answers */
}

void
tcp_segment(struct netisr *n, struct tcp_pcb *p, struct tcp_seg *s)
{
	struct tcp_check c;

	note_life(n, p);
	if (likely(tcp_is_plain(p, s))) {
		NETISR_COUNT(n, CTR_tcp_fast_path);
		tcp_ts_update(p, s, n->now);
		tcp_ack(n, p, s);
		if (s->data_bytes != 0)
			tcp_rcv(n, p, s);
		tcp_touch(n, p);
		return;
	}
	if (p->state == TCP_SYN_SENT) {
		in_syn_sent(n, p, s);
		return;
	}
	if (p->state == TCP_SYN_RCVD && took_repeated_syn(n, p, s))
		return;
	c = tcp_check(p, s, n->now);
	if (c.verdict != TCP_ACCEPT) {
		refuse(n, p, s, c);
		return;
	}
	tcp_ts_update(p, s, n->now);
	if (p->state == TCP_SYN_RCVD)
		tcp_become_established(n, p, s);
	tcp_touch(n, p);
	run_steps(n, p, s);
}

/* ---- the application's side ---- */

void
tcp_fsm_close(struct netisr *n, struct tcp_pcb *p)
{
	if (p->flags & TCPF_FIN_QUEUED)
		return;
	p->flags |= TCPF_FIN_QUEUED;
	if (p->state == TCP_ESTABLISHED)
		tcp_enter(n, p, TCP_FIN_WAIT_1);
	else if (p->state == TCP_CLOSE_WAIT)
		tcp_enter(n, p, TCP_LAST_ACK);
	/* in a handshake: when it ends */
	tcp_owe(n, p, TODO_OUT);
}
