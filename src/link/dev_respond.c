/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stateless peer in memory, for benchmarks and tests: "respond:[echo=on][,csum=off]". It plays
 * every host of the network:
 *
 *   ARP request        reply, for any address but the asker's own
 *   ICMP echo          reply
 *   TCP SYN            SYN-ACK with a keyed initial sequence number
 *   TCP data           ACK; with echo=on the same bytes back
 *   TCP FIN            FIN and ACK in one segment
 *   UDP datagram       echo
 *   all else           nothing
 *
 * All that an answer needs is in the frame that it answers: our sequence number is what the peer
 * acknowledges. So it has no connections, no timers, no memory but its queue, holds any number of
 * connections, and costs little beside the stack that is measured. It never retransmits: nothing
 * may be lost on the way (its queue pushes back instead of dropping).
 *
 * Each answer is made in the buffer of the frame it answers. Queue q belongs to the holder of
 * netisr q. Checksums are offered as offloads both ways since frames don't leave memory; csum=off
 * makes them real on the answers.
 */
#include "link/dev_respond.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/csum.h"
#include "link/dev.h"
#include "link/link_priv.h"
#include "link/offload.h"
#include "runtime/config.h"
#include "wire/arp.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/tcp.h"
#include "wire/udp.h"

#define QUEUE_PKTS	1024	/* answers that wait to be received; a power of two */
#define MSS_BYTES	1460
#define WINDOW		65535
#define WSCALE		7

struct respond_queue {
	struct pkt *answer[QUEUE_PKTS];
	uint32_t head;
	uint32_t tail;
	struct respond_stats stats;
} CACHE_ALIGNED;

struct respond {
	struct siphash_key isn_key;
	bool echoes;
	bool has_real_csums;
	struct mac mac;
	struct respond_queue *queues;
};

static bool
answer_arp(const struct respond *r, struct respond_queue *q, struct pkt *p, uint32_t off)
{
	struct arp_view a, reply;

	if (arp_parse(p->data + off, p->len - off, &a) != WIRE_OK || a.op != ARP_OP_REQUEST ||
	    be32_eq(a.sender_ip, a.target_ip))
		return false;
	reply = (struct arp_view){
		.op = ARP_OP_REPLY,
		.sender_mac = r->mac,
		.sender_ip = a.target_ip,
		.target_mac = a.sender_mac,
		.target_ip = a.sender_ip,
	};
	arp_emit(p->data + off, &reply);
	q->stats.arp_replies++;
	return true;
}

static bool
answer_icmp(struct respond_queue *q, uint8_t *icmp, size_t len)
{
	struct icmp4_view v;

	if (icmp4_parse(icmp, len, &v) != WIRE_OK || v.type != ICMP4_ECHO)
		return false;
	v.type = ICMP4_ECHO_REPLY;
	icmp4_emit(icmp, &v);
	q->stats.echo_replies++;
	return true;
}

static bool
answer_udp(struct respond_queue *q, uint8_t *udp, size_t len)
{
	struct udp_hdr h;
	struct be16 sport;

	if (len < sizeof(h))
		return false;
	memcpy(&h, udp, sizeof(h));
	sport = h.sport;
	h.sport = h.dport;
	h.dport = sport;
	memcpy(udp, &h, sizeof(h));
	q->stats.udp_echoes++;
	return true;
}

/* Initial sequence number of a connection, the same for every copy of its SYN. */
static uint32_t
isn_of(const struct respond *r, const struct ip4_view *v, const struct tcp_view *t)
{
	uint32_t key[4] = { v->src.raw, v->dst.raw, (uint32_t)t->sport << 16 | t->dport, t->seq };

	return (uint32_t)siphash(&r->isn_key, key, sizeof(key));
}

/* The header of the answer to t, without flags. */
static struct tcp_view
reply_to(const struct tcp_view *t)
{
	return (struct tcp_view){
		.sport = t->dport,
		.dport = t->sport,
		.seq = t->ack,
		.ack = t->seq + (uint32_t)t->payload_bytes,
		.wnd = WINDOW,
		.flags = TH_ACK,
		.hdr_bytes = TCP_HDR_BYTES,
	};
}

/*
 * SYN-ACK: offers what it can honour without state. No timestamps or SACK, which would have to be
 * remembered.
 */
static uint16_t
emit_syn_ack(const struct respond *r, const struct ip4_view *v, const struct tcp_view *t,
    uint8_t *tcp)
{
	struct tcp_view a = reply_to(t);
	struct tcp_opts theirs, ours = { .has_mss = true, .mss = MSS_BYTES };
	size_t opts_bytes;

	tcp_opts_parse(t->opts, t->opts_bytes, true, &theirs);
	ours.has_wscale = theirs.has_wscale;
	ours.wscale = WSCALE;
	a.seq = isn_of(r, v, t);
	a.ack = t->seq + 1;
	a.flags = TH_SYN | TH_ACK;
	opts_bytes = tcp_opts_emit(tcp + TCP_HDR_BYTES, &ours, true);
	a.hdr_bytes = (uint8_t)(TCP_HDR_BYTES + opts_bytes);
	tcp_emit(tcp, &a);
	return a.hdr_bytes;
}

/* Bytes of the answer's TCP segment, written over the one it answers; 0: no answer. */
static uint16_t
answer_tcp(const struct respond *r, struct respond_queue *q, const struct ip4_view *v, uint8_t *tcp,
    size_t len)
{
	struct tcp_view t, a;
	uint16_t echo_bytes;

	if (tcp_parse(tcp, len, &t) != WIRE_OK || (t.flags & TH_RST))
		return 0;
	if (t.flags & TH_SYN) {
		q->stats.syn_acks += (t.flags & TH_ACK) == 0;
		return t.flags & TH_ACK ? 0 : emit_syn_ack(r, v, &t, tcp);
	}
	if (t.payload_bytes == 0 && !(t.flags & TH_FIN))
		return 0;
	a = reply_to(&t);
	echo_bytes = r->echoes ? (uint16_t)t.payload_bytes : 0;
	if (t.payload_bytes != 0)
		q->stats.acks++;
	q->stats.data_bytes += t.payload_bytes;
	if (t.flags & TH_FIN) {
		q->stats.fins++;
		a.ack++;
		a.flags |= TH_FIN;
	}
	if (echo_bytes != 0) {
		a.flags |= TH_PUSH;
		memmove(tcp + TCP_HDR_BYTES, t.payload, echo_bytes);
	}
	tcp_emit(tcp, &a);
	return (uint16_t)(TCP_HDR_BYTES + echo_bytes);
}

/* Marks (or computes) the answer's checksums. */
static void
finish_csums(const struct respond *r, struct pkt *p, uint32_t off)
{
	struct ip4_view v;

	p->flags = PKT_RX_IP_CSUM_GOOD | PKT_RX_L4_CSUM_GOOD;
	if (!r->has_real_csums || ip4_parse(p->data + off, p->len - off, &v) != WIRE_OK)
		return;
	p->flags = 0;
	p->l2_len = (uint16_t)off;
	p->l3_len = v.hdr_bytes;
	offload_refill_csums(p, &v, true);
}

static bool
answer_ip4(const struct respond *r, struct respond_queue *q, struct pkt *p, uint32_t off)
{
	uint8_t *ip = p->data + off, *l4;
	struct ip4_view v;
	uint16_t l4_bytes;
	bool has_answer;

	if (ip4_parse(ip, p->len - off, &v) != WIRE_OK || ip4_is_fragment(&v) ||
	    load_be32(&v.dst) >= 0xe0000000u)
		return false;
	l4 = ip + v.hdr_bytes;
	l4_bytes = v.payload_bytes;
	switch (v.proto) {
	case IP_PROTO_TCP:
		l4_bytes = answer_tcp(r, q, &v, l4, v.payload_bytes);
		has_answer = l4_bytes != 0;
		break;
	case IP_PROTO_UDP:
		has_answer = answer_udp(q, l4, l4_bytes);
		break;
	case IP_PROTO_ICMP:
		has_answer = answer_icmp(q, l4, l4_bytes);
		break;
	default:
		return false;
	}
	if (!has_answer)
		return false;
	if (v.hdr_bytes != IP4_HDR_BYTES)
		memmove(ip + IP4_HDR_BYTES, l4, l4_bytes);
	v = (struct ip4_view){
		.src = v.dst,
		.dst = v.src,
		.total_bytes = (uint16_t)(IP4_HDR_BYTES + l4_bytes),
		.has_df = true,
		.ttl = 64,
		.proto = v.proto,
	};
	ip4_emit(ip, &v);
	p->len = (uint16_t)(off + v.total_bytes);
	p->total_len = p->len;
	finish_csums(r, p, off);
	return true;
}

/* Turns the frame into its answer. False: there is none. */
static bool
make_answer(const struct respond *r, struct respond_queue *q, struct pkt *p)
{
	struct ether_view e;
	bool has_answer = false;

	q->stats.frames++;
	p->flags = 0;
	if (p->seg == NULL && ether_parse(p->data, p->len, &e) == WIRE_OK) {
		if (e.type == ETHER_TYPE_ARP)
			has_answer = answer_arp(r, q, p, e.hdr_bytes);
		else if (e.type == ETHER_TYPE_IP4)
			has_answer = answer_ip4(r, q, p, e.hdr_bytes);
	}
	if (!has_answer) {
		q->stats.silent++;
		return false;
	}
	/* a tag, if any, stays where it is */
	memcpy(p->data, e.src.b, ETHER_ADDR_BYTES);
	memcpy(p->data + ETHER_ADDR_BYTES, r->mac.b, ETHER_ADDR_BYTES);
	return true;
}

/* Takes frames while there is room for an answer to each. */
static unsigned
respond_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	const struct respond *r = d->priv;
	struct respond_queue *rq = &r->queues[q];
	unsigned i;

	for (i = 0; i < count && rq->tail - rq->head < QUEUE_PKTS; i++) {
		if (make_answer(r, rq, pkts[i]))
			rq->answer[rq->tail++ % QUEUE_PKTS] = pkts[i];
		else
			pkt_free(n, pkts[i]);
	}
	return i;
}

static unsigned
respond_rx(struct dev *d, struct netisr *n UNUSED, unsigned q, struct pkt **pkts, unsigned max)
{
	const struct respond *r = d->priv;
	struct respond_queue *rq = &r->queues[q];
	unsigned count = 0;

	while (count < max && rq->head != rq->tail)
		pkts[count++] = rq->answer[rq->head++ % QUEUE_PKTS];
	return count;
}

static struct time
respond_next_deadline(struct dev *d, struct netisr *n)
{
	const struct respond *r = d->priv;
	const struct respond_queue *rq = &r->queues[n->id];

	return rq->head != rq->tail ? n->now : TIME_NEVER;
}

static bool
option_is_on(const char *device, const char *key, const char *value)
{
	char text[8];

	return dev_option(device, key, text, sizeof(text)) && strcmp(text, value) == 0;
}

static int
respond_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	static const uint8_t default_mac[6] = { 0x02, 0x72, 0, 0, 0, 1 };
	struct respond *r = calloc(1, sizeof(*r));
	uint32_t queues;

	if (r == NULL)
		return -ENOMEM;
	if (dev_option_u32(cfg->device, "queues", cfg->queues, 0, NETISR_MAX, &queues, err,
	    err_size) < 0) {
		free(r);
		return -EINVAL;
	}
	d->n_queues = (uint16_t)(queues == 0 ? d->stack->n_netisrs :
	    min_u32(queues, d->stack->n_netisrs));
	r->queues = aligned_alloc(CACHELINE_BYTES, d->n_queues * sizeof(*r->queues));
	if (r->queues == NULL) {
		free(r);
		return -ENOMEM;
	}
	memset(r->queues, 0, d->n_queues * sizeof(*r->queues));
	r->echoes = option_is_on(cfg->device, "echo", "on");
	r->has_real_csums = option_is_on(cfg->device, "csum", "off");
	r->mac = (struct mac){ { 0x02, 0x72, 0, 0, 0, 2 } };
	d->stack->random(d->stack, &r->isn_key, sizeof(r->isn_key));
	if (!cfg->has_mac)
		memcpy(d->mac, default_mac, sizeof(d->mac));
	if (!r->has_real_csums)
		d->caps = DEV_CAP_RX_IP_CSUM | DEV_CAP_RX_L4_CSUM | DEV_CAP_TX_IP_CSUM |
		    DEV_CAP_TX_L4_CSUM;
	d->priv = r;
	return 0;
}

static bool
respond_is_up(struct dev *d UNUSED)
{
	return true;
}

static void
respond_close(struct dev *d)
{
	struct respond *r = d->priv;

	free(r->queues);	/* answers not received go back with the pool */
	free(r);
}

int
respond_stats(const struct dev *d, struct respond_stats *ret)
{
	const struct respond *r = d->priv;
	unsigned q;

	if (d->ops != &dev_respond_ops)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	for (q = 0; q < d->n_queues; q++) {
		const struct respond_stats *s = &r->queues[q].stats;

		ret->frames += s->frames;
		ret->arp_replies += s->arp_replies;
		ret->echo_replies += s->echo_replies;
		ret->syn_acks += s->syn_acks;
		ret->data_bytes += s->data_bytes;
		ret->acks += s->acks;
		ret->fins += s->fins;
		ret->udp_echoes += s->udp_echoes;
		ret->silent += s->silent;
	}
	return 0;
}

const struct dev_ops dev_respond_ops = {
	.name = "respond",
	.open = respond_open,
	.rx = respond_rx,
	.tx = respond_tx,
	.link_is_up = respond_is_up,
	.next_deadline = respond_next_deadline,
	.close = respond_close,
};
