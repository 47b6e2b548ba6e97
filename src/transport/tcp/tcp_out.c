/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection sends: called once a round for each touched pcb, after everything that came in
 * has been digested.
 *
 * In this order: RST; SYN; duplicate and challenge ACKs, one segment each; the first unacknowledged
 * segment again; a probe; new data and FIN as windows allow; and if none of these has carried it,
 * the ACK that is owed.
 *
 * New data wait for a full segment, or the end of the queue with nothing in flight (Nagle, RFC 9293
 * 3.7.4), or half of the largest window seen (sender's SWS avoidance, RFC 9293 3.8.6.2.1); the
 * override is the persist timer. TCP_CORK holds back whatever is not a full segment, for 200 ms at
 * most. After a timeout snd_nxt starts again at snd_una and runs to snd_max under the same rules.
 *
 * A device that cuts segments itself (DEV_CAP_TSO) is given several full ones as one; what is left
 * over is judged as a segment of its own, so Nagle's rule is as without. The congestion window
 * bounds both alike.
 */
#include "link/dev.h"
#include "transport/tcp/tcp_priv.h"

/* Seventeen buffers at most: every driver's ring has that many descriptors. */
#define LARGE_BYTES	32768u

#define CAN_SEND_DATA	(1u << TCP_ESTABLISHED | 1u << TCP_CLOSE_WAIT | 1u << TCP_FIN_WAIT_1 | \
			 1u << TCP_CLOSING | 1u << TCP_LAST_ACK)

/* A segment that could go out now. */
struct next_seg {
	uint32_t len;
	bool has_fin;
};

/* Bytes of tx that belong before the FIN, counted from snd_una. */
static uint32_t
queued_bytes(const struct tcp_pcb *p)
{
	uint32_t used = ring_used_bytes(&p->sh->tx);

	if (!(p->flags & TCPF_FIN_SENT))
		return used;
	/* once the FIN has a number, what a late writer has added behind it is never sent */
	return seq_gt(p->snd_fin, p->snd_una) ?
	    min_u32(used, (uint32_t)seq_diff(p->snd_fin, p->snd_una)) : 0;
}

uint32_t
tcp_unsent_bytes(const struct tcp_pcb *p)
{
	uint32_t queued = queued_bytes(p);
	uint32_t past = (uint32_t)seq_diff(p->snd_nxt, p->snd_una);

	return queued > past ? queued - past : 0;
}

uint32_t
tcp_usable_bytes(const struct tcp_pcb *p)
{
	uint32_t past = (uint32_t)seq_diff(p->snd_nxt, p->snd_una);
	uint32_t cwnd = p->cwnd_bytes;
	uint32_t wnd;

	/* RFC 3042: each of the first two duplicates lets one new segment out */
	if (p->dupacks != 0 && !(p->flags & TCPF_RECOVERY))
		cwnd += min_u32(p->dupacks, TCP_DUP_ACKS - 1) * tcp_eff_mss(p);
	wnd = min_u32(cwnd, p->snd_wnd_bytes);
	return wnd > past ? wnd - past : 0;
}

static bool
is_worth_sending(const struct tcp_pcb *p, const struct next_seg *g, uint32_t unsent, bool force)
{
	const struct sock_opts *o = &p->sh->opts;

	if (g->has_fin)
		return true;
	if (g->len == 0)
		return false;
	/* a full segment; forced; or once more what was judged before */
	if (g->len >= tcp_eff_mss(p) || force || seq_lt(p->snd_nxt, p->snd_max))
		return true;
	if (g->len >= p->max_snd_wnd_bytes / 2)
		return true;
	if (g->len < unsent || atomic_load_explicit(&o->cork, memory_order_relaxed))
		return false;
	return seq_eq(p->snd_nxt, p->snd_una) ||
	    atomic_load_explicit(&o->nodelay, memory_order_relaxed);
}

static void
note_sent(struct netisr *n, struct tcp_pcb *p, const struct next_seg *g)
{
	struct seq end = seq_add(p->snd_nxt, g->len);

	if (g->has_fin) {
		if (!(p->flags & TCPF_FIN_SENT))
			sockhalf_set(p->sh, SH_FIN_SENT, 0);
		p->flags |= TCPF_FIN_SENT;
		p->snd_fin = end;
		end = seq_add(end, 1);
	}
	/* Karn: only what goes out for the first time is timed (RFC 6298 3) */
	if (!(p->flags & TCPF_TIMING) && seq_eq(p->snd_nxt, p->snd_max)) {
		p->flags |= TCPF_TIMING;
		p->rtt_seq = p->snd_nxt;
		p->rtt_start = n->now;
	}
	p->snd_nxt = end;
	p->snd_max = seq_max(p->snd_max, end);
	p->last_snd = n->now;
}

/* The most that goes out as one packet: one segment, or several that the device will cut. */
static uint32_t
largest_bytes(const struct netisr *n, const struct tcp_pcb *p, uint32_t mss)
{
	const struct dev *d = p->route.dev;

	if (d == NULL || !(d->caps & DEV_CAP_TSO) || !ipaddr_is_v4(&p->tuple.foreign) ||
	    !knob_get(&tcp_knobs(n)->tso))
		return mss;
	return max_u32(LARGE_BYTES / mss, 1) * mss;
}

/* Returns whether anything was sent. */
static bool
send_data(struct netisr *n, struct tcp_pcb *p, bool force)
{
	struct next_seg g;
	uint32_t unsent, mss;
	uint8_t flags;
	bool any = false;

	tcp_cc_after_idle(n, p);
	for (;;) {
		unsent = tcp_unsent_bytes(p);
		mss = tcp_eff_mss(p);
		g.len = min_u32(unsent, tcp_usable_bytes(p));
		g.len = min_u32(g.len, largest_bytes(n, p, mss));
		if (g.len > mss)
			g.len -= g.len % mss;
		g.has_fin = g.len == unsent && tcp_fin_is_waiting(p);
		if (!is_worth_sending(p, &g, unsent, force))
			return any;
		flags = g.has_fin ? TH_FIN | TH_ACK : TH_ACK;
		if (tcp_xmit(n, p, p->snd_nxt, g.len, flags, false) < 0)
			return any;
		note_sent(n, p, &g);
		any = true;
		force = false;
	}
}

/* The first unacknowledged segment again (fast retransmit, partial ACK). */
static bool
send_head_again(struct netisr *n, struct tcp_pcb *p)
{
	uint32_t flight = tcp_flight_bytes(p);
	uint32_t len = min_u32(min_u32(queued_bytes(p), flight), tcp_eff_mss(p));
	bool has_fin = (p->flags & TCPF_FIN_SENT) && seq_eq(seq_add(p->snd_una, len), p->snd_fin);

	if (flight == 0 || (len == 0 && !has_fin))
		return false;
	p->flags &= ~(uint32_t)TCPF_TIMING;
	return tcp_xmit(n, p, p->snd_una, len, has_fin ? TH_FIN | TH_ACK : TH_ACK, false) == 0;
}

/* Not beyond the window: a peer that has shrunk it would refuse the segment and its ACK. */
static struct seq
ack_seq(const struct tcp_pcb *p)
{
	return seq_min(p->snd_max, seq_add(p->snd_una, p->snd_wnd_bytes));
}

static bool
send_ack(struct netisr *n, struct tcp_pcb *p, bool is_dup)
{
	return tcp_xmit(n, p, ack_seq(p), 0, TH_ACK, is_dup) == 0;
}

/* Duplicates and challenges are counted, and each is sent: a peer without SACK counts them too. */
static bool
send_owed_acks(struct netisr *n, struct tcp_pcb *p, const struct tcp_todo *todo)
{
	bool any = false;
	unsigned i;

	/* the number itself must be new before its duplicates are */
	if (todo->dup_acks != 0 && !seq_eq(p->rcv_acked, p->rcv_nxt))
		any |= send_ack(n, p, false);
	for (i = 0; i < todo->dup_acks; i++)
		any |= send_ack(n, p, true);
	for (i = 0; i < todo->challenge_acks; i++)
		any |= send_ack(n, p, true);
	netisr_count(n, CTR_tcp_dup_acks_sent, todo->dup_acks);
	netisr_count(n, CTR_tcp_challenge_acks, todo->challenge_acks);
	return any;
}

static void
out_handshake(struct netisr *n, struct tcp_pcb *p, const struct tcp_todo *todo)
{
	if (todo->what & TODO_SYN)
		tcp_xmit_syn(n, p);
	else if (p->state == TCP_SYN_RCVD && (todo->what & TODO_ACK_NOW))
		send_ack(n, p, true);
	if (p->state == TCP_SYN_RCVD)
		send_owed_acks(n, p, todo);
	tcp_rexmit_arm(n, p);
}

/* A gone connection's last words. */
static void
out_farewell(struct netisr *n, struct tcp_pcb *p, const struct tcp_todo *todo)
{
	if (todo->what & TODO_RST) {
		NETISR_COUNT(n, CTR_tcp_resets_sent);
		tcp_xmit(n, p, p->snd_max, 0, TH_RST | TH_ACK, true);
	} else if (todo->what & TODO_ACK_NOW) {
		send_ack(n, p, false);
	}
}

/* No segment went out that could have carried the ACK. */
static void
out_ack(struct netisr *n, struct tcp_pcb *p, const struct tcp_todo *todo)
{
	if (todo->what & TODO_ACK_NOW) {
		send_ack(n, p, false);
	} else if ((todo->what & TODO_WINDOW) && tcp_rcv_update_due(p)) {
		NETISR_COUNT(n, CTR_tcp_window_updates);
		send_ack(n, p, false);
	} else if (todo->what & TODO_ACK_SOON) {
		tcp_timer_set(n, p, TCP_T_DELACK,
		    (uint64_t)knob_get(&tcp_knobs(n)->connect_ack_us));
	} else if ((todo->what & TODO_ACK_DELAY) && !tcp_timer_is_set(p, TCP_T_DELACK)) {
		tcp_timer_set(n, p, TCP_T_DELACK, tcp_knob_ms_as_us(&tcp_knobs(n)->delack_ms));
	}
}

void
tcp_out(struct netisr *n, struct tcp_pcb *p)
{
	struct tcp_todo todo = p->todo;
	bool any;

	p->todo = (struct tcp_todo){ 0 };
	if (p->flags & TCPF_GONE) {
		out_farewell(n, p, &todo);
		return;
	}
	if (p->state < TCP_ESTABLISHED) {
		out_handshake(n, p, &todo);
		return;
	}
	any = send_owed_acks(n, p, &todo);
	if (todo.what & TODO_REXMIT)
		any |= send_head_again(n, p);
	if (todo.what & TODO_PROBE)
		any |= tcp_xmit(n, p, seq_sub(p->snd_una, 1), 0, TH_ACK, true) == 0;
	if ((1u << p->state) & CAN_SEND_DATA)
		any |= send_data(n, p, (todo.what & TODO_FORCE) != 0);
	if (!any)
		out_ack(n, p, &todo);
	/* the reader may have moved while we looked at the ring; see tell_reader() in tcp_rcv.c */
	if ((any || (todo.what & TODO_ACK_NOW)) && tcp_rcv_update_due(p)) {
		NETISR_COUNT(n, CTR_tcp_window_updates);
		send_ack(n, p, false);
	}
	tcp_rexmit_arm(n, p);
}
