/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes become a segment, and the segment finds whom it is for: a connection, a half-open entry, a
 * TIME-WAIT record, a listener; or nobody, and is answered with RST (RFC 9293 3.10.7.1).
 *
 * A header split over buffers is gathered into this frame first; payload stays where it is and is
 * read buffer by buffer. Malformed options drop the segment (RFC 9293 MUST-7 leaves the choice).
 * Broadcast and multicast are never answered (MUST-57).
 *
 * ICMP errors (RFC 5927): believed only when the quoted sequence number is in flight. They end a
 * connection only in SYN-SENT and half-open entries, and only hard ones (RFC 1122 4.2.3.9, RFC
 * 5461); elsewhere they are remembered as the reason to give when we give up. "Too big" lowers the
 * segment size, never below what RFC 1191 allows.
 */
#include <errno.h>

#include "base/csum.h"
#include "inet/ip.h"
#include "runtime/pkt.h"
#include "transport/demux.h"
#include "transport/tcp/tcp_priv.h"
#include "wire/ip4.h"
#include "wire/ip6.h"

#define QUOTE_BYTES	8u	/* ports and sequence number: what every ICMP error quotes */

/* ---- bytes to segment ---- */

static bool
has_good_csum(const struct pkt *p, const struct ip_meta *meta)
{
	uint32_t sum;
	size_t off = 0;

	if (p->flags & (PKT_RX_L4_CSUM_GOOD | PKT_RX_LOOP))
		return true;
	if (p->flags & PKT_RX_L4_CSUM_BAD)
		return false;
	sum = csum_pseudo(&meta->src, &meta->dst, IP_PROTO_TCP, p->total_len);
	for (; p != NULL; p = p->seg) {
		sum = csum_append(sum, csum_partial(p->data, p->len, 0), off);
		off += p->len;
	}
	return csum_fold(sum) == 0;
}

/* The header's bytes in one piece: in place, or gathered into buf. */
static const uint8_t *
header_bytes(const struct pkt *p, uint8_t *buf, uint32_t *ret_bytes)
{
	if (likely(p->seg == NULL || p->len >= TCP_HDR_MAX_BYTES)) {
		*ret_bytes = p->len;
		return p->data;
	}
	*ret_bytes = pkt_copy_out(p, 0, buf, TCP_HDR_MAX_BYTES);
	return buf;
}

static bool
parse_options(const struct tcp_view *v, struct tcp_seg *s)
{
	if (v->opts_bytes == 0) {
		memset(&s->opts, 0, sizeof(s->opts));
		return true;
	}
	return tcp_opts_parse(v->opts, v->opts_bytes, (v->flags & TH_SYN) != 0, &s->opts) == 0;
}

/* Fills *s; false, counted, when p is to be dropped. */
static bool
parse(struct netisr *n, const struct pkt *p, const struct ip_meta *meta, struct tcp_seg *s)
{
	uint8_t buf[TCP_HDR_MAX_BYTES];
	struct tcp_view v;
	uint32_t bytes;
	const uint8_t *hdr = header_bytes(p, buf, &bytes);
	enum counter why = CTR_drop_tcp_opt_bad;
	int rc = tcp_parse(hdr, bytes, &v);

	if (rc != WIRE_OK)
		why = rc == WIRE_ERR_SHORT ? CTR_drop_tcp_short : CTR_drop_tcp_hlen;
	else if (!has_good_csum(p, meta))
		why = CTR_drop_tcp_csum;
	else if (parse_options(&v, s))
		why = CTR_tcp_segs_rcvd;
	NETISR_COUNT(n, why);
	if (why != CTR_tcp_segs_rcvd)
		return false;
	s->seq = seq_of(v.seq);
	s->ack = seq_of(v.ack);
	s->wnd = v.wnd;
	s->flags = v.flags;
	s->data_off = v.hdr_bytes;
	s->data_bytes = p->total_len - v.hdr_bytes;
	s->len = s->data_bytes + ((v.flags & TH_SYN) != 0) + ((v.flags & TH_FIN) != 0);
	s->tuple = (struct tuple){ meta->dst, meta->src, v.dport, v.sport };
	s->pkt = p;
	return true;
}

/* ---- whom it is for ---- */

static void
for_nobody(struct netisr *n, const struct tcp_seg *s)
{
	NETISR_COUNT(n, CTR_drop_tcp_no_pcb);
	tcp_reply_rst(n, s);
}

/* A SYN that opens a new incarnation of a connection in TIME_WAIT. */
static void
reopen(struct netisr *n, struct tcp_tw *w, const struct tcp_seg *s)
{
	struct sockhalf *listener = demux_lookup_listener(n->stack, &s->tuple);
	struct tcp_tw old = *w;

	if (listener == NULL) {
		for_nobody(n, s);
		return;
	}
	NETISR_COUNT(n, CTR_tcp_timewait_reused);
	tcp_tw_remove(n, w);
	tcp_listen_syn(n, listener, s, &old);
}

static void
dispatch(struct netisr *n, struct tcp_seg *s)
{
	struct tcp_netisr *tn = n->tcp;
	struct tcp_pcb *p = tcp_table_lookup(&tn->table, &s->tuple, tcp_hash(n, &s->tuple));
	struct sockhalf *listener;
	struct tcp_syn *e;
	struct tcp_tw *w;

	if (likely(p != NULL)) {
		tcp_segment(n, p, s);
		return;
	}
	e = tcp_syn_lookup(tn, &s->tuple);
	if (e != NULL) {
		tcp_syn_input(n, e, s);
		return;
	}
	w = tcp_tw_lookup(tn, &s->tuple);
	if (w != NULL) {
		if (tcp_tw_input(n, w, s))
			reopen(n, w, s);
		return;
	}
	listener = demux_lookup_listener(n->stack, &s->tuple);
	if (listener != NULL)
		tcp_listen_input(n, listener, s);
	else
		for_nobody(n, s);
}

void
tcp_in(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	struct tcp_seg s;

	if (meta->is_broadcast)
		NETISR_COUNT(n, CTR_drop_ip_bcast);
	else if (parse(n, p, meta, &s))
		dispatch(n, &s);
	pkt_free(n, p);
}

/* ---- ICMP errors ---- */

static void
lower_mss(struct netisr *n, struct tcp_pcb *p, uint16_t mtu)
{
	uint32_t ip_bytes = ipaddr_is_v4(&p->tuple.foreign) ? IP4_HDR_BYTES : IP6_HDR_BYTES;
	uint32_t headers = ip_bytes + TCP_HDR_BYTES;
	uint32_t mss = mtu > headers ? max_u32(mtu - headers, TCP_MSS_MIN) : TCP_MSS_MIN;

	if (mtu == 0 || mss >= p->mss)
		return;
	p->mss = (uint16_t)mss;
	/* RFC 1191 6.3: what was too big is lost; it goes again at once, smaller, and congestion is
	 * not blamed */
	if (p->state >= TCP_ESTABLISHED && tcp_flight_bytes(p) != 0) {
		p->snd_nxt = p->snd_una;
		p->recover = p->snd_max;
		p->flags &= ~(uint32_t)(TCPF_TIMING | TCPF_RECOVERY);
		p->flags |= TCPF_TIMEOUT_SENT;
		tcp_owe(n, p, TODO_OUT);
	}
}

static void
error_for_pcb(struct netisr *n, struct tcp_pcb *p, struct seq seq, const struct ip_error *e)
{
	if (seq_lt(seq, p->snd_una) || !seq_lt(seq, p->snd_max)) {
		NETISR_COUNT(n, CTR_drop_icmp_bad);
		return;
	}
	if (e->err == EMSGSIZE) {
		lower_mss(n, p, e->mtu);
		return;
	}
	if (p->state <= TCP_SYN_RCVD && !e->is_soft)
		tcp_die(n, p, e->err);
	else
		p->soft_error = (uint8_t)e->err;
}

void
tcp_icmp_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted,
    uint32_t quoted_len, const struct ip_error *e)
{
	struct tuple t = { .local = meta->src, .foreign = meta->dst };
	struct tcp_syn *half_open;
	struct tcp_pcb *p;
	struct seq seq;

	if (quoted_len < QUOTE_BYTES)
		return;
	t.lport = load_be16(quoted);
	t.fport = load_be16(quoted + 2);
	seq = seq_of(load_be32(quoted + 4));
	p = tcp_table_lookup(&n->tcp->table, &t, tcp_hash(n, &t));
	if (p != NULL) {
		error_for_pcb(n, p, seq, e);
		return;
	}
	half_open = tcp_syn_lookup(n->tcp, &t);
	if (half_open != NULL && seq_eq(seq, half_open->iss) && !e->is_soft && e->err != EMSGSIZE)
		tcp_syn_free(n, half_open);
}
