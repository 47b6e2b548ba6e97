/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes segments and hands them to IP; decides nothing about when.
 *
 * A segment of a connection: payload copied out of the send ring, header and options pushed in
 * front. Payloads longer than a packet buffer (large MTU, or more than one segment's worth for a
 * device that cuts it) take several linked ones, which their lengths allow only where the device
 * can send them. Every segment carries the newest ACK and window, so sending any settles a delayed
 * ACK. Checksums are left to the device or the link layer: the field holds the pseudo-header's sum.
 *
 * A segment without a connection (RST, SYN-ACK of a half-open entry, an ACK from TIME_WAIT) is
 * struct tcp_reply; its route is looked up each time.
 */
#include <errno.h>

#include "base/csum.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/pkt.h"
#include "transport/tcp/tcp_priv.h"
#include "wire/ip4.h"
#include "wire/ip6.h"

#define MSS_LARGEST	65495u	/* of a 65,535-byte IPv4 packet */

static uint32_t
ip_header_bytes(const struct ipaddr *a)
{
	return ipaddr_is_v4(a) ? IP4_HDR_BYTES : IP6_HDR_BYTES;
}

uint16_t
tcp_route_mss(const struct ip_route *r, const struct sockhalf *sh)
{
	uint32_t headers = ip_header_bytes(&r->next_hop) + TCP_HDR_BYTES;
	uint32_t mss = r->mtu > headers ? r->mtu - headers : 0;
	uint32_t asked = 0;

	if (r->dev != NULL && !(r->dev->caps & DEV_CAP_MULTISEG))
		mss = min_u32(mss, PKT_ROOM_BYTES);
	if (sh != NULL)
		asked = atomic_load_explicit(&sh->opts.maxseg, memory_order_relaxed);
	if (asked != 0)
		mss = min_u32(mss, asked);
	return (uint16_t)min_u32(max_u32(mss, TCP_MSS_MIN), MSS_LARGEST);
}

uint32_t
tcp_eff_mss(const struct tcp_pcb *p)
{
	uint32_t opts = p->flags & TCPF_TS ? TCP_OPT_TS_BYTES : 0;

	if (unlikely(p->reass != NULL || p->dsack_bytes != 0) && (p->flags & TCPF_SACK))
		opts += TCP_OPT_SACK_BYTES(tcp_opt_sack_count(p));
	return p->mss - opts;
}

bool
tcp_refresh_route(struct netisr *n, struct tcp_pcb *p)
{
	struct ip_route fresh;
	int rc;

	if (likely(p->route.gen == ip_route_gen(n->stack)) && !(p->flags & TCPF_BROKEN_ROUTE))
		return true;
	rc = ip_route_lookup(n->stack, &p->tuple.foreign, &p->tuple.local, &fresh);
	if (rc < 0) {
		/* it may come back; until then this counts as loss (RFC 1122 4.2.3.9) */
		p->flags |= TCPF_BROKEN_ROUTE;
		p->soft_error = (uint8_t)-rc;
		NETISR_COUNT(n, CTR_drop_ip_no_route);
		return false;
	}
	p->flags &= ~(uint32_t)TCPF_BROKEN_ROUTE;
	p->route = fresh;
	p->mss = (uint16_t)min_u32(p->mss, tcp_route_mss(&fresh, p->sh));
	return true;
}

/* A packet with [off, off + len) of tx, linked buffers if need be; NULL when the pool is empty. */
static struct pkt *
payload_pkt(struct netisr *n, struct ring *tx, uint32_t off, uint32_t len)
{
	struct pkt *first = pkt_alloc(n);
	struct pkt *k = first;
	uint16_t part;

	while (k != NULL) {
		part = (uint16_t)min_u32(len, pkt_tailroom_bytes(k));
		k->len = part;
		ring_copy_out(tx, off, k->data, part);
		off += part;
		len -= part;
		if (k != first)
			first->total_len += part;
		else
			first->total_len = part;
		if (len == 0)
			return first;
		k->seg = pkt_alloc(n);
		k = k->seg;
	}
	NETISR_COUNT(n, CTR_drop_pkt_nomem);
	if (first != NULL)
		pkt_free(n, first);
	return NULL;
}

/* Pushes header and options and sends. Takes pkt. */
static int
send_segment(struct netisr *n, struct pkt *pkt, const struct tuple *t, struct tcp_view *v,
    const struct tcp_opts *opts, const struct ip_route *route, struct ip_out *o)
{
	uint8_t bytes[TCP_OPTS_MAX_BYTES];
	size_t opts_bytes = tcp_opts_emit(bytes, opts, (v->flags & TH_SYN) != 0);
	uint8_t *hdr;

	v->sport = t->lport;
	v->dport = t->fport;
	v->hdr_bytes = (uint8_t)(TCP_HDR_BYTES + opts_bytes);
	hdr = pkt_push(pkt, v->hdr_bytes);
	if (hdr == NULL) {
		pkt_free(n, pkt);
		return -ENOBUFS;
	}
	v->csum_raw = csum_fold_raw(
	    csum_pseudo(&t->local, &t->foreign, IP_PROTO_TCP, pkt->total_len));
	tcp_emit(hdr, v);
	memcpy(hdr + TCP_HDR_BYTES, bytes, opts_bytes);
	pkt->flags |= PKT_TX_TCP_CSUM;
	pkt->l4_len = v->hdr_bytes;
	o->src = t->local;
	o->dst = t->foreign;
	o->proto = IP_PROTO_TCP;
	o->dont_fragment = true;
	NETISR_COUNT(n, CTR_tcp_segs_sent);
	return ip_output(n, pkt, route, o);
}

static void
ip_fields(const struct sockhalf *sh, struct ip_out *o)
{
	o->ttl = atomic_load_explicit(&sh->opts.ttl, memory_order_relaxed);
	o->tos = atomic_load_explicit(&sh->opts.tos, memory_order_relaxed);
}

/* PSH on what ends the queue: nothing more is coming at once (RFC 9293 3.9.1.2). */
static uint8_t
push_flag(const struct tcp_pcb *p, struct seq seq, uint32_t len)
{
	struct seq end = seq_add(p->snd_una, ring_used_bytes(&p->sh->tx));

	return len != 0 && seq_geq(seq_add(seq, len), end) ? TH_PUSH : 0;
}

static void
count_sent(struct netisr *n, struct tcp_pcb *p, struct seq seq, uint32_t len, uint8_t flags)
{
	if (len == 0 && !(flags & TH_FIN))
		return;
	if (seq_lt(seq, p->snd_max)) {
		NETISR_COUNT(n, CTR_tcp_retransmits);
		p->retransmits++;
	} else {
		netisr_count(n, CTR_tcp_bytes_sent, len);
	}
}

int
tcp_xmit(struct netisr *n, struct tcp_pcb *p, struct seq seq, uint32_t len, uint8_t flags,
    bool is_dup_ack)
{
	struct tcp_view v = { .seq = seq.v, .ack = p->rcv_nxt.v };
	struct tcp_opts opts;
	struct ip_out o;
	struct pkt *pkt;
	uint32_t mss;
	int rc;

	if (!tcp_refresh_route(n, p))
		return -ENETUNREACH;
	pkt = payload_pkt(n, &p->sh->tx, len != 0 ? (uint32_t)seq_diff(seq, p->snd_una) : 0, len);
	if (pkt == NULL)
		return -ENOBUFS;
	tcp_opt_fill(p, n->now, &opts);
	v.flags = flags | push_flag(p, seq, len);
	if (flags & TH_ACK)
		v.wnd = tcp_rcv_window(p, is_dup_ack);
	mss = len != 0 ? tcp_eff_mss(p) : 0;
	if (len > mss) {
		pkt->flags |= PKT_TX_TSO;
		pkt->tso_mss = (uint16_t)mss;
		NETISR_COUNT(n, CTR_tcp_tso_sent);
	}
	ip_fields(p->sh, &o);
	count_sent(n, p, seq, len, flags);
	rc = send_segment(n, pkt, &p->tuple, &v, &opts, &p->route, &o);
	if (rc == -EMSGSIZE)
		p->flags |= TCPF_BROKEN_ROUTE;	/* looked up again: its MTU has changed under us */
	p->rcv_acked = p->rcv_nxt;
	tcp_timer_stop(p, TCP_T_DELACK);
	return 0;
}

void
tcp_xmit_syn(struct netisr *n, struct tcp_pcb *p)
{
	struct tcp_view v = { .seq = p->iss.v, .flags = TH_SYN };
	struct tcp_opts opts;
	struct ip_out o;
	struct pkt *pkt;

	if (!tcp_refresh_route(n, p))
		return;
	pkt = pkt_alloc(n);
	if (pkt == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	if (p->state == TCP_SYN_RCVD) {
		v.flags |= TH_ACK;
		v.ack = p->rcv_nxt.v;
		p->rcv_acked = p->rcv_nxt;
	}
	/* RFC 7323 2.2: the window of a SYN is never scaled */
	v.wnd = (uint16_t)min_u32(p->rcv_grant_bytes, UINT16_MAX);
	tcp_opt_fill_syn(p, n, &opts);
	ip_fields(p->sh, &o);
	send_segment(n, pkt, &p->tuple, &v, &opts, &p->route, &o);
}

void
tcp_reply(struct netisr *n, const struct tcp_reply *r)
{
	struct tcp_view v = { .seq = r->seq.v, .ack = r->ack.v, .wnd = r->wnd, .flags = r->flags };
	struct ip_out o = { .tos = r->tos };
	struct ip_route route;
	struct pkt *pkt;

	if (ip_route_lookup(n->stack, &r->tuple->foreign, &r->tuple->local, &route) < 0) {
		NETISR_COUNT(n, CTR_drop_ip_no_route);
		return;
	}
	pkt = pkt_alloc(n);
	if (pkt == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	send_segment(n, pkt, r->tuple, &v, &r->opts, &route, &o);
}

void
tcp_reply_rst(struct netisr *n, const struct tcp_seg *s)
{
	struct tcp_reply r = { .tuple = &s->tuple, .flags = TH_RST };

	/* never a RST for a RST */
	if (s->flags & TH_RST)
		return;
	if (s->flags & TH_ACK) {
		r.seq = s->ack;
	} else {
		r.flags |= TH_ACK;
		r.ack = seq_add(s->seq, s->len);
	}
	NETISR_COUNT(n, CTR_tcp_resets_sent);
	tcp_reply(n, &r);
}
