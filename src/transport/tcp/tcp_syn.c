/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Half-open connections of listeners: a small entry, no pcb and no socket, until the handshake ends
 * (RFC 9293 3.10.7.4 in SYN-RECEIVED).
 *
 * Entries belong to the group (address, port): which member of a SO_REUSEPORT group gets the
 * connection is decided when the final ACK is there. A final ACK that finds the accept queue full
 * is dropped, not refused; our SYN-ACK's or the peer's data's retransmission ends the handshake
 * later (as on Linux). Data on the SYN are not kept; data on the final ACK are.
 *
 * SYN-ACKs are repeated with back-off from 1 s, synack_retries times. A repeated SYN is answered
 * with the same ISS; another SYN from the same port draws a challenge ACK (RFC 5961 4.2), whose RST
 * makes room for it.
 *
 * An entry is judged by the same tcp_check() as a connection: a pcb is filled in on the stack for
 * it. Holder of the netisr only.
 */
#include <string.h>

#include "runtime/pkt.h"
#include "transport/acceptq.h"
#include "transport/demux.h"
#include "transport/tcp/tcp_priv.h"

#define ISS_GAP	65536u

static struct tcp_syn **
bucket_of(struct tcp_netisr *tn, const struct tuple *t)
{
	return &tn->syn_bucket[tcp_hash(tn->n, t) & (TCP_SYN_BUCKETS - 1)];
}

struct tcp_syn *
tcp_syn_lookup(struct tcp_netisr *tn, const struct tuple *tuple)
{
	struct tcp_syn *e;

	if (slab_in_use(&tn->syns) == 0)
		return NULL;
	e = *bucket_of(tn, tuple);
	while (e != NULL && !tuple_eq(&e->tuple, tuple))
		e = e->hash_next;
	return e;
}

static void
join_lane(struct tcp_listener_lane *lane, struct tcp_syn *e)
{
	e->listener = lane->listener;
	TAILQ_INSERT_TAIL(&lane->half_open_list, e, by_age);
	lane->half_open++;
}

static void
leave_lane(struct tcp_listener_lane *lane, struct tcp_syn *e)
{
	TAILQ_REMOVE(&lane->half_open_list, e, by_age);
	lane->half_open--;
}

bool
tcp_syn_evict(struct netisr *n, struct tcp_listener *l)
{
	struct tcp_syn *oldest = TAILQ_FIRST(&l->lane[n->id].half_open_list);

	if (oldest == NULL)
		return false;
	tcp_syn_free(n, oldest);
	return true;
}

void
tcp_syn_free(struct netisr *n, struct tcp_syn *e)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_syn **at = bucket_of(tn, &e->tuple);

	while (*at != e)
		at = &(*at)->hash_next;
	*at = e->hash_next;
	leave_lane(&e->listener->lane[n->id], e);
	port_freed(n, &e->tuple);
	timer_disarm(&n->wheel, &e->timer);
	slab_free(&tn->syns, e);
	atomic_fetch_sub_explicit(&tn->n_half_open, 1, memory_order_relaxed);
	netisr_count(n, CTR_tcp_half_open, (uint64_t)-1);
}

/* ---- SYN-ACK ---- */

static void
arm_repeat(struct netisr *n, struct tcp_syn *e)
{
	uint64_t us = (uint64_t)TCP_RTO_INITIAL_US << min_u32(e->sent - 1u, TCP_BACKOFF_MAX);

	us = min_u64(us, tcp_knob_ms_as_us(&tcp_knobs(n)->rto_max_ms));
	timer_arm(&n->wheel, &e->timer, time_add_us(n->now, us));
}

static void
send_synack(struct netisr *n, const struct tcp_syn *e)
{
	const struct sockhalf *sh = e->listener->sh;
	struct tcp_reply r = { .tuple = &e->tuple, .flags = TH_SYN | TH_ACK };
	struct ip_route route;

	if (ip_route_lookup(n->stack, &e->tuple.foreign, &e->tuple.local, &route) < 0)
		return;
	r.seq = e->iss;
	r.ack = seq_add(e->irs, 1);
	r.wnd = e->wnd;
	r.tos = atomic_load_explicit(&sh->opts.tos, memory_order_relaxed);
	r.opts.has_mss = true;
	r.opts.mss = tcp_route_mss(&route, sh);
	r.opts.sack_ok = (e->flags & TCPF_SACK) != 0;
	if (e->flags & TCPF_WSCALE) {
		r.opts.has_wscale = true;
		r.opts.wscale = e->rcv_wscale;
	}
	if (e->flags & TCPF_TS) {
		r.opts.has_ts = true;
		r.opts.tsval = tcp_ts_now(e->ts_offset, n->now);
		r.opts.tsecr = e->ts_recent;
	}
	tcp_reply(n, &r);
}

void
tcp_syn_send(struct netisr *n, struct tcp_syn *e)
{
	if (e->sent++ == 0)
		e->first_sent = n->now;
	else
		NETISR_COUNT(n, CTR_tcp_syn_retransmits);
	send_synack(n, e);
	arm_repeat(n, e);
}

static void
on_timer(struct netisr *n, struct timer *t)
{
	struct tcp_syn *e = container_of(t, struct tcp_syn, timer);

	if (e->sent > knob_get(&tcp_knobs(n)->synack_retries))
		tcp_syn_free(n, e);
	else
		tcp_syn_send(n, e);
}

/* ---- a SYN has come ---- */

static void
negotiate(struct netisr *n, struct tcp_syn *e, const struct tcp_opts *o)
{
	const struct tcp_stack *k = tcp_knobs(n);

	e->peer_mss = o->has_mss ? o->mss : 0;
	if (o->has_ts && knob_get(&k->timestamps))
		e->flags |= TCPF_TS;
	if (o->sack_ok && knob_get(&k->sack))
		e->flags |= TCPF_SACK;
	if (o->has_wscale && knob_get(&k->window_scaling)) {
		e->flags |= TCPF_WSCALE;
		e->snd_wscale = o->wscale;
		e->rcv_wscale = tcp_rcv_wscale(n);
	}
	e->ts_recent = o->tsval;
	e->ts_offset = tcp_ts_offset(&n->stack->secret[TCP_SECRET_ISN], &e->tuple);
}

struct tcp_syn *
tcp_syn_new(struct netisr *n, struct tcp_listener *l, const struct tcp_seg *s,
    const struct seq *above)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_syn **head;
	struct tcp_syn *e = NULL;

	if (slab_in_use(&tn->syns) < (uint64_t)knob_get(&tcp_knobs(n)->max_synq))
		e = tcp_obj_alloc(n, &tn->syns);
	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	join_lane(&l->lane[n->id], e);
	e->tuple = s->tuple;
	e->irs = s->seq;
	e->iss = tcp_isn(&n->stack->secret[TCP_SECRET_ISN], &e->tuple, n->now);
	if (above != NULL && seq_leq(e->iss, seq_add(*above, ISS_GAP)))
		e->iss = seq_add(*above, ISS_GAP);
	e->wnd = (uint16_t)min_u32(tcp_rcv_initial_bytes(n, l->sh), UINT16_MAX);
	timer_init(&e->timer, on_timer);
	negotiate(n, e, &s->opts);
	head = bucket_of(tn, &e->tuple);
	e->hash_next = *head;
	*head = e;
	atomic_fetch_add_explicit(&tn->n_half_open, 1, memory_order_relaxed);
	NETISR_COUNT(n, CTR_tcp_half_open);
	return e;
}

void
tcp_syn_rehome(struct netisr *n, struct tcp_listener *l)
{
	struct tcp_listener_lane *lane = &l->lane[n->id];
	struct tcp_listener *heir_l;
	struct sockhalf *heir;
	struct tcp_syn *e;

	while ((e = TAILQ_FIRST(&lane->half_open_list)) != NULL) {
		heir = demux_lookup_listener(n->stack, &e->tuple);
		if (heir == NULL) {
			tcp_syn_free(n, e);
			continue;
		}
		heir_l = atomic_load_explicit(&heir->pcb, memory_order_acquire);
		leave_lane(lane, e);
		join_lane(&heir_l->lane[n->id], e);
	}
}

/* ---- the handshake's end ---- */

static void
fill_from_entry(struct tcp_pcb *p, const struct tcp_syn *e)
{
	p->state = TCP_SYN_RCVD;
	p->iss = e->iss;
	p->irs = e->irs;
	p->snd_una = e->iss;
	p->snd_nxt = seq_add(e->iss, 1);
	p->snd_max = p->snd_nxt;
	p->rcv_nxt = seq_add(e->irs, 1);
	p->rcv_acked = p->rcv_nxt;
	p->rcv_adv = seq_add(p->rcv_nxt, e->wnd);
	p->flags |= e->flags;
	p->snd_wscale = e->snd_wscale;
	p->rcv_wscale = e->rcv_wscale;
	p->ts_recent = e->ts_recent;
	p->ts_offset = e->ts_offset;
}

static void
init_child(struct netisr *n, struct tcp_pcb *p, const struct tcp_syn *e)
{
	uint32_t peer_mss = e->peer_mss != 0 ? max_u32(e->peer_mss, TCP_MSS_MIN) : TCP_MSS_UNASKED;

	fill_from_entry(p, e);
	p->mss = (uint16_t)min_u32(p->mss, peer_mss);
	tcp_rcv_init(n, p, e->wnd);
	p->rcv_acked = p->rcv_nxt;
	if (e->sent > 1) {
		p->flags |= TCPF_SYN_RESENT;
	} else {
		p->flags |= TCPF_TIMING;
		p->rtt_seq = e->iss;
		p->rtt_start = e->first_sent;
	}
}

/* A socket and a pcb for e; NULL when memory or a limit forbids. */
static struct tcp_pcb *
make_child(struct netisr *n, struct sockhalf *listener, const struct tcp_syn *e)
{
	const struct sockhalf_ops *ops = n->stack->sockhalf_ops;
	struct sockhalf *sh;
	struct tcp_pcb *p = NULL;
	struct ip_route route;

	if (ip_route_lookup(n->stack, &e->tuple.foreign, &e->tuple.local, &route) < 0) {
		NETISR_COUNT(n, CTR_drop_ip_no_route);
		return NULL;
	}
	sh = ops->child_new(n, listener);
	if (sh != NULL)
		p = tcp_pcb_new(n, sh, &e->tuple, &route, e->wnd);
	else
		NETISR_COUNT(n, CTR_drop_tcp_pcb_limit);
	if (p == NULL) {
		if (sh != NULL)
			ops->free(n, sh);
		return NULL;
	}
	sh->local = (struct endpoint){ e->tuple.local, e->tuple.lport };
	sh->peer = (struct endpoint){ e->tuple.foreign, e->tuple.fport };
	sockhalf_set(sh, SH_CONNECTED | SH_NAMED, 0);
	init_child(n, p, e);
	return p;
}

static void
complete(struct netisr *n, struct tcp_syn *e, struct tcp_seg *s)
{
	struct sockhalf *listener = demux_lookup_listener(n->stack, &e->tuple);
	struct acceptq *q;
	struct tcp_pcb *p;

	if (listener == NULL) {
		NETISR_COUNT(n, CTR_drop_tcp_no_pcb);
		tcp_reply_rst(n, s);
		tcp_syn_free(n, e);
		return;
	}
	q = atomic_load_explicit(&listener->acceptq, memory_order_acquire);
	if (acceptq_is_full(q)) {
		NETISR_COUNT(n, CTR_tcp_listen_overflows);
		NETISR_COUNT(n, CTR_drop_tcp_listen_full);
		return;
	}
	p = make_child(n, listener, e);
	if (p == NULL)
		return;
	if (!acceptq_put(q, n->id, p->sh)) {
		/* another netisr was faster: as if it had been full */
		NETISR_COUNT(n, CTR_tcp_listen_overflows);
		NETISR_COUNT(n, CTR_drop_tcp_listen_full);
		p->flags |= TCPF_CLOSED;
		n->tcp->n_orphans++;
		tcp_die(n, p, 0);
		return;
	}
	tcp_syn_free(n, e);
	NETISR_COUNT(n, CTR_tcp_accepts);
	tcp_segment(n, p, s);
	n->stack->sockhalf_ops->event(listener, SOCK_EV_IN);
}

static void
answer_ack(struct netisr *n, const struct tcp_syn *e)
{
	struct tcp_reply r = { .tuple = &e->tuple, .flags = TH_ACK };

	if (!tcp_may_challenge(n))
		return;
	NETISR_COUNT(n, CTR_tcp_challenge_acks);
	r.seq = seq_add(e->iss, 1);
	r.ack = seq_add(e->irs, 1);
	r.wnd = (uint16_t)(e->wnd >> e->rcv_wscale);
	if (e->flags & TCPF_TS) {
		r.opts.has_ts = true;
		r.opts.tsval = tcp_ts_now(e->ts_offset, n->now);
		r.opts.tsecr = e->ts_recent;
	}
	tcp_reply(n, &r);
}

void
tcp_syn_input(struct netisr *n, struct tcp_syn *e, struct tcp_seg *s)
{
	struct tcp_pcb judged = { .ts_recent_s = tcp_seconds(n->now) };
	struct tcp_check c;

	if ((s->flags & (TH_SYN | TH_ACK | TH_RST)) == TH_SYN && seq_eq(s->seq, e->irs)) {
		/* the peer has not got our SYN-ACK; the timer goes on as it was */
		NETISR_COUNT(n, CTR_tcp_syn_retransmits);
		send_synack(n, e);
		e->sent = (uint8_t)max_u32(e->sent, 2);
		return;
	}
	fill_from_entry(&judged, e);
	c = tcp_check(&judged, s, n->now);
	if (c.verdict == TCP_ACCEPT) {
		complete(n, e, s);
		return;
	}
	NETISR_COUNT(n, c.why);
	if (c.verdict == TCP_RESET)
		tcp_syn_free(n, e);
	else if (c.verdict == TCP_DROP_RST)
		tcp_reply_rst(n, s);
	else if (c.verdict == TCP_DROP_ACK || c.verdict == TCP_DROP_CHALLENGE)
		answer_ack(n, e);
}
