/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tools and tests see of connections: copies, nothing else. Holder of the netisr, but for
 * tcp_counts().
 */
#include "transport/tcp/tcp.h"

#include <string.h>

#include "transport/tcp/tcp_priv.h"

static const char *const state_names[] = {
	[TCP_CLOSED] = "CLOSED",
	[TCP_LISTEN] = "LISTEN",
	[TCP_SYN_SENT] = "SYN-SENT",
	[TCP_SYN_RCVD] = "SYN-RECEIVED",
	[TCP_ESTABLISHED] = "ESTABLISHED",
	[TCP_FIN_WAIT_1] = "FIN-WAIT-1",
	[TCP_FIN_WAIT_2] = "FIN-WAIT-2",
	[TCP_CLOSE_WAIT] = "CLOSE-WAIT",
	[TCP_CLOSING] = "CLOSING",
	[TCP_LAST_ACK] = "LAST-ACK",
	[TCP_TIME_WAIT] = "TIME-WAIT",
};

STATIC_ASSERT(ARRAY_LEN(state_names) == TCP_STATES, "every state has a name");

struct visit {
	struct netisr *n;
	void (*fn)(void *arg, const struct tcp_conn_info *i);
	void *arg;
};

const char *
tcp_state_name(enum tcp_state st)
{
	return (unsigned)st < TCP_STATES ? state_names[st] : "?";
}

void
tcp_info_fill(const struct netisr *n, const struct tcp_pcb *p, struct tcp_conn_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->tuple = p->tuple;
	ret->state = (enum tcp_state)p->state;
	ret->netisr = n->id;
	ret->iss = p->iss;
	ret->irs = p->irs;
	ret->snd_una = p->snd_una;
	ret->snd_nxt = p->snd_nxt;
	ret->rcv_nxt = p->rcv_nxt;
	ret->snd_wnd_bytes = p->snd_wnd_bytes;
	if (seq_gt(p->rcv_adv, p->rcv_nxt))
		ret->rcv_wnd_bytes = (uint32_t)seq_diff(p->rcv_adv, p->rcv_nxt);
	ret->cwnd_bytes = p->cwnd_bytes;
	ret->ssthresh_bytes = p->ssthresh_bytes;
	ret->srtt_us = p->srtt8_us >> 3;
	ret->rttvar_us = p->rttvar4_us >> 2;
	ret->rto_us = (uint32_t)tcp_rto_backed_off_us(n, p);
	ret->tx_queued_bytes = ring_used_bytes(&p->sh->tx);
	ret->rx_queued_bytes = ring_used_bytes(&p->sh->rx);
	ret->mss = p->mss;
	ret->snd_wscale = p->snd_wscale;
	ret->rcv_wscale = p->rcv_wscale;
	ret->has_ts = (p->flags & TCPF_TS) != 0;
	ret->has_sack = (p->flags & TCPF_SACK) != 0;
	ret->retransmits = p->retransmits;
}

static void
visit_pcb(void *arg, struct tcp_pcb *p)
{
	const struct visit *v = arg;
	struct tcp_conn_info info;

	tcp_info_fill(v->n, p, &info);
	v->fn(v->arg, &info);
}

static void
visit_half_open(const struct visit *v)
{
	const struct tcp_syn *e;
	unsigned i;

	for (i = 0; i < TCP_SYN_BUCKETS; i++)
		for (e = v->n->tcp->syn_bucket[i]; e != NULL; e = e->hash_next) {
			struct tcp_conn_info info = {
				.tuple = e->tuple,
				.state = TCP_SYN_RCVD,
				.netisr = v->n->id,
				.iss = e->iss,
				.irs = e->irs,
				.snd_una = e->iss,
				.snd_nxt = seq_add(e->iss, 1),
				.rcv_nxt = seq_add(e->irs, 1),
				.rcv_wnd_bytes = e->wnd,
				.mss = e->peer_mss,
				.snd_wscale = e->snd_wscale,
				.rcv_wscale = e->rcv_wscale,
				.has_ts = (e->flags & TCPF_TS) != 0,
				.has_sack = (e->flags & TCPF_SACK) != 0,
				.retransmits = e->sent > 0 ? e->sent - 1u : 0,
			};

			v->fn(v->arg, &info);
		}
}

static void
visit_time_wait(const struct visit *v)
{
	const struct tcp_twtab *t = &v->n->tcp->tw;
	const struct tcp_tw *w;
	uint32_t i;

	for (i = t->oldest; i != 0; i = w->newer) {
		w = &t->block[(i - 1) / TCP_TW_BLOCK][(i - 1) % TCP_TW_BLOCK];
		struct tcp_conn_info info = {
			.tuple = { w->local, w->foreign, w->lport, w->fport },
			.state = TCP_TIME_WAIT,
			.netisr = v->n->id,
			.snd_una = w->snd_nxt,
			.snd_nxt = w->snd_nxt,
			.rcv_nxt = w->rcv_nxt,
		};

		v->fn(v->arg, &info);
	}
}

void
tcp_visit(struct netisr *n, void (*fn)(void *arg, const struct tcp_conn_info *i), void *arg)
{
	struct visit v = { n, fn, arg };

	tcp_table_visit(&n->tcp->table, visit_pcb, &v);
	visit_half_open(&v);
	visit_time_wait(&v);
}

bool
tcp_info_of(struct netisr *n, struct sockhalf *sh, struct tcp_conn_info *ret_info)
{
	const struct tcp_pcb *p;

	if (sockhalf_state(sh) & SH_LISTENING)
		return false;
	p = atomic_load_explicit(&sh->pcb, memory_order_relaxed);
	if (p == NULL)
		return false;
	tcp_info_fill(n, p, ret_info);
	return true;
}

void
tcp_counts(struct netisr *n, uint32_t *ret_pcbs, uint32_t *ret_half_open, uint32_t *ret_timewait)
{
	const struct tcp_netisr *tn = n->tcp;

	*ret_pcbs = atomic_load_explicit(&tn->n_pcbs, memory_order_relaxed);
	*ret_half_open = atomic_load_explicit(&tn->n_half_open, memory_order_relaxed);
	*ret_timewait = atomic_load_explicit(&tn->n_timewait, memory_order_relaxed);
}
