/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgment and window fields of an acceptable segment (RFC 9293 3.10.7.4, fifth step).
 *
 * An ACK that moves snd_una frees bytes of the send ring, ends a measurement, feeds congestion
 * control and wakes a writer. One that does not may be a duplicate (RFC 5681 2: data outstanding,
 * no data, no FIN, same window; a segment with SACK blocks counts whatever its window), the third
 * of which starts fast recovery (RFC 6582), the first two let one new segment each out (RFC 3042).
 * What is to be sent is only noted.
 *
 * SACK blocks are counted, not yet used: tcp_ack_sack() is where the scoreboard goes.
 */
#include "transport/tcp/tcp_priv.h"

#define TS_SAMPLE_MAX_TICKS	600000u	/* older echoes are not ours */

void
tcp_ts_update(struct tcp_pcb *p, const struct tcp_seg *s, struct time now)
{
	if (!(p->flags & TCPF_TS) || !s->opts.has_ts || seq_gt(s->seq, p->rcv_acked))
		return;
	/* RFC 7323 5.5: after 24 idle days also a smaller one is taken; tcp_check() let it in */
	if ((int32_t)(s->opts.tsval - p->ts_recent) < 0 &&
	    tcp_seconds(now) - p->ts_recent_s < TCP_PAWS_IDLE_S)
		return;
	p->ts_recent = s->opts.tsval;
	p->ts_recent_s = tcp_seconds(now);
}

static void
measure_rtt(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	uint32_t ticks;

	if (p->flags & TCPF_TIMING) {
		if (!seq_gt(s->ack, p->rtt_seq))
			return;
		p->flags &= ~(uint32_t)TCPF_TIMING;
		p->backoff = 0;
		tcp_rtt_take(n, p, time_since_us(n->now, p->rtt_start));
		return;
	}
	/* What was retransmitted only the timestamp can measure (RFC 7323 4.1). */
	if (!(p->flags & TCPF_TS) || !s->opts.has_ts || s->opts.tsecr == 0 || p->retransmits == 0)
		return;
	ticks = tcp_ts_now(p->ts_offset, n->now) - s->opts.tsecr;
	if (ticks > TS_SAMPLE_MAX_TICKS)
		return;
	p->backoff = 0;
	tcp_rtt_take(n, p, ((uint64_t)ticks << 10) + 512);
}

/*
 * A writer that found the ring full is told when a third of it is free: rarely, but not in one huge
 * step. It writes its wish and looks again; we make room and look for the wish. The ACK that
 * crosses the mark looks with a read-modify-write, so that one of the two sees the other; before
 * it more ACKs are to come.
 */
static void
wake_writer(struct tcp_pcb *p, uint32_t freed_bytes)
{
	struct sockhalf *sh = p->sh;
	uint64_t cap = atomic_load_explicit(&sh->tx.cap_bytes, memory_order_relaxed);
	uint64_t space = ring_space_bytes(&sh->tx);
	uint32_t st;

	if (space * 3 < cap)
		return;
	if (space < freed_bytes || (space - freed_bytes) * 3 < cap)
		st = atomic_fetch_or_explicit(&sh->state, 0, memory_order_acq_rel);
	else
		st = sockhalf_state(sh);
	if (!(st & SH_TX_WANT))
		return;
	sockhalf_set(sh, 0, SH_TX_WANT);
	p->events |= SOCK_EV_OUT;
}

/* Frees what is acknowledged. A FIN's number is not a byte of the ring. */
static void
free_acked(struct tcp_pcb *p, struct seq ack)
{
	uint32_t bytes = (uint32_t)seq_diff(ack, p->snd_una);

	if ((p->flags & TCPF_FIN_SENT) && seq_gt(ack, p->snd_fin)) {
		p->flags |= TCPF_FIN_ACKED;
		bytes--;
	}
	ring_discard(&p->sh->tx, bytes);
	p->snd_una = ack;
	p->snd_nxt = seq_max(p->snd_nxt, ack);
	if (bytes != 0)
		wake_writer(p, bytes);
}

/* Returns whether the retransmission timer starts anew (RFC 6298 5.3). */
static bool
recover_on_ack(struct tcp_pcb *p, uint32_t acked, uint32_t flight_before)
{
	bool is_first_partial;

	if (!(p->flags & TCPF_RECOVERY)) {
		p->dupacks = 0;
		tcp_cc_on_ack(p, acked, flight_before);
		return true;
	}
	if (seq_geq(p->snd_una, p->recover)) {
		p->dupacks = 0;
		tcp_cc_exit_recovery(p);
		return true;
	}
	/* RFC 6582 3.2: the next hole is at snd_una; only the first partial ACK moves the timer */
	tcp_cc_on_partial_ack(p, acked);
	p->todo.what |= TODO_REXMIT;
	is_first_partial = !(p->flags & TCPF_PARTIAL);
	p->flags |= TCPF_PARTIAL;
	return is_first_partial;
}

static void
on_new_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	uint32_t flight_before = tcp_flight_bytes(p);
	uint32_t acked = (uint32_t)seq_diff(s->ack, p->snd_una);

	measure_rtt(n, p, s);
	free_acked(p, s->ack);
	if (recover_on_ack(p, acked, flight_before) && !(p->flags & TCPF_PERSIST))
		tcp_timer_stop(p, TCP_T_REXMIT);
	if ((p->flags & TCPF_TIMEOUT_SENT) && seq_geq(p->snd_una, p->recover))
		p->flags &= ~(uint32_t)TCPF_TIMEOUT_SENT;
	p->retries = 0;
	p->soft_error = 0;
	tcp_owe(n, p, TODO_OUT);
}

static void
on_dup_ack(struct netisr *n, struct tcp_pcb *p)
{
	NETISR_COUNT(n, CTR_tcp_dup_acks_rcvd);
	if (p->dupacks < UINT8_MAX)
		p->dupacks++;
	if (p->flags & TCPF_RECOVERY) {
		tcp_cc_on_dup_in_recovery(p);
	} else if (p->dupacks == TCP_DUP_ACKS && seq_gt(p->snd_una, p->recover)) {
		/* RFC 6582 3.2 step 1: not for losses of an earlier recovery or timeout */
		NETISR_COUNT(n, CTR_tcp_fast_retransmits);
		tcp_cc_enter_recovery(p);
		p->flags &= ~(uint32_t)TCPF_TIMING;
		p->todo.what |= TODO_REXMIT;
	}
	tcp_owe(n, p, TODO_OUT);
}

static void
tcp_ack_sack(struct netisr *n, const struct tcp_pcb *p, const struct tcp_seg *s)
{
	if (s->opts.sack_count != 0 && (p->flags & TCPF_SACK))
		NETISR_COUNT(n, CTR_tcp_sack_rcvd);
}

/*
 * RFC 2883 4: a first block below the ACK, or inside the second block, reports a duplicate. It
 * tells of a copy too many and not of a hole, so it is no duplicate ACK in the sense of RFC 5681.
 */
static bool
is_dsack(const struct tcp_pcb *p, const struct tcp_seg *s)
{
	const struct tcp_opts *o = &s->opts;

	if (o->sack_count == 0 || !(p->flags & TCPF_SACK))
		return false;
	if (seq_leq(seq_of(o->sack[0].end), s->ack))
		return true;
	return o->sack_count > 1 && seq_geq(seq_of(o->sack[0].start), seq_of(o->sack[1].start)) &&
	    seq_leq(seq_of(o->sack[0].end), seq_of(o->sack[1].end));
}

/* RFC 9293 3.10.7.4: only from segments newer than the last one that set the window. */
static void
update_window(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s, uint32_t wnd)
{
	if (seq_lt(s->seq, p->snd_wl1) ||
	    (seq_eq(s->seq, p->snd_wl1) && seq_lt(s->ack, p->snd_wl2)))
		return;
	p->snd_wl1 = s->seq;
	p->snd_wl2 = s->ack;
	if (wnd == p->snd_wnd_bytes)
		return;
	if (wnd > p->snd_wnd_bytes)
		tcp_owe(n, p, TODO_OUT);
	if (p->snd_wnd_bytes == 0 && (p->flags & TCPF_PERSIST)) {
		p->backoff = 0;
		tcp_timer_stop(p, TCP_T_REXMIT);
	}
	p->snd_wnd_bytes = wnd;
	p->max_snd_wnd_bytes = max_u32(p->max_snd_wnd_bytes, wnd);
}

void
tcp_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_seg *s)
{
	uint32_t wnd = (uint32_t)s->wnd << p->snd_wscale;

	if (seq_lt(s->ack, p->snd_una))
		return;
	tcp_ack_sack(n, p, s);
	if (seq_gt(s->ack, p->snd_una))
		on_new_ack(n, p, s);
	else if (s->len == 0 && tcp_flight_bytes(p) != 0 &&
	    (wnd == p->snd_wnd_bytes || s->opts.sack_count != 0) && !is_dsack(p, s))
		on_dup_ack(n, p);
	update_window(n, p, s, wnd);
}
