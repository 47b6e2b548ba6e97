/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options: what we offer, what we take from the peer's SYN, what goes on each segment. The bytes
 * are made in wire/tcp.c.
 *
 * RFC 9293 3.7.1 and RFC 6691 (MSS counts neither options nor what they take from a segment), RFC
 * 7323 (window scale, timestamps), RFC 2018 (SACK). An option is in use when both SYNs carried it.
 * An MSS below 88 is taken as 88, so that nobody makes us send a header a byte.
 */
#include "transport/tcp/tcp_priv.h"

uint8_t
tcp_opt_wscale(uint32_t bytes)
{
	uint8_t shift = 0;

	while (shift < TCP_WSCALE_MAX && (bytes >> shift) > UINT16_MAX)
		shift++;
	return shift;
}

void
tcp_negotiate(struct tcp_pcb *p, const struct tcp_opts *o, uint32_t offered_flags)
{
	uint32_t agreed = 0;
	uint32_t peer_mss = o->has_mss ? max_u32(o->mss, TCP_MSS_MIN) : TCP_MSS_UNASKED;

	if (o->has_ts)
		agreed |= TCPF_TS;
	if (o->sack_ok)
		agreed |= TCPF_SACK;
	if (o->has_wscale)
		agreed |= TCPF_WSCALE;
	agreed &= offered_flags;
	p->flags = (p->flags & ~(uint32_t)(TCPF_TS | TCPF_SACK | TCPF_WSCALE)) | agreed;
	p->mss = (uint16_t)min_u32(p->mss, peer_mss);
	p->snd_wscale = agreed & TCPF_WSCALE ? o->wscale : 0;
	if (!(agreed & TCPF_WSCALE))
		p->rcv_wscale = 0;
	p->ts_recent = o->tsval;
}

static unsigned
sack_max(const struct tcp_pcb *p)
{
	return p->flags & TCPF_TS ? TCP_SACK_MAX - 1 : TCP_SACK_MAX;
}

unsigned
tcp_opt_sack_count(const struct tcp_pcb *p)
{
	uint32_t count = (p->reass != NULL ? p->reass->count : 0) + (p->dsack_bytes != 0);

	return p->flags & TCPF_SACK ? min_u32(count, sack_max(p)) : 0;
}

/* RFC 2883 4: what came twice is the first block; the others follow as ever (RFC 2018 4). */
static void
fill_sack(struct tcp_pcb *p, struct tcp_opts *ret)
{
	struct tcp_span blocks[TCP_SACK_MAX];
	unsigned i, n = 0, max = sack_max(p);

	if (p->dsack_bytes != 0) {
		blocks[n].start = p->dsack_start;
		blocks[n++].end = seq_add(p->dsack_start, p->dsack_bytes);
		p->dsack_bytes = 0;
	}
	if (p->reass != NULL)
		n += tcp_reass_sack(p->reass, blocks + n, max - n);
	for (i = 0; i < n; i++) {
		ret->sack[i].start = blocks[i].start.v;
		ret->sack[i].end = blocks[i].end.v;
	}
	ret->sack_count = (uint8_t)n;
}

void
tcp_opt_fill(struct tcp_pcb *p, struct time now, struct tcp_opts *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (p->flags & TCPF_TS) {
		ret->has_ts = true;
		ret->tsval = tcp_ts_now(p->ts_offset, now);
		ret->tsecr = p->ts_recent;
	}
	if (unlikely(p->reass != NULL || p->dsack_bytes != 0) && (p->flags & TCPF_SACK))
		fill_sack(p, ret);
}

void
tcp_opt_fill_syn(const struct tcp_pcb *p, struct netisr *n, struct tcp_opts *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->has_mss = true;
	ret->mss = tcp_route_mss(&p->route, p->sh);
	ret->sack_ok = (p->flags & TCPF_SACK) != 0;
	if (p->flags & TCPF_WSCALE) {
		ret->has_wscale = true;
		ret->wscale = p->rcv_wscale;
	}
	if (p->flags & TCPF_TS) {
		ret->has_ts = true;
		ret->tsval = tcp_ts_now(p->ts_offset, n->now);
		ret->tsecr = p->state == TCP_SYN_SENT ? 0 : p->ts_recent;
	}
}
