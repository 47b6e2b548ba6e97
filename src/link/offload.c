/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Software offloads on transmit.
 *
 * Checksums: TCP and UDP packets come with the folded pseudo-header sum in their checksum field
 * (what devices want as a seed), so the checksum is the sum over header and payload as they are.
 * UDP sends 0 as 0xffff (RFC 768).
 *
 * TSO: the payload is cut into tso_mss pieces, each behind a copy of the headers with its own IP
 * length and id, sequence number, and checksums. FIN and PSH go with the last piece only, CWR with
 * the first (RFC 3168 6.1.2). The pseudo-header sum is computed afresh, so it does not matter which
 * convention the large segment's field followed.
 *
 * Order: cut, make contiguous, checksum (over the exact length), then tag and pad: padding is no
 * part of any checksum.
 */
#include "link/offload.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/csum.h"
#include "link/dev.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "wire/ether.h"
#include "wire/ip4.h"
#include "wire/tcp.h"
#include "wire/udp.h"

#define L4_CSUM_FLAGS	(PKT_TX_TCP_CSUM | PKT_TX_UDP_CSUM)
#define TCP_CSUM_OFF	offsetof(struct tcp_hdr, csum)
#define UDP_CSUM_OFF	offsetof(struct udp_hdr, csum)

uint32_t
offload_sum(const struct pkt *p, uint32_t off, uint32_t len, uint32_t sum)
{
	const struct pkt *seg;
	size_t done = 0;

	for (seg = p; seg != NULL && done < len; seg = seg->seg, off = 0) {
		size_t n = min_size(seg->len - off, len - done);

		sum = csum_append(sum, csum_partial(seg->data + off, n, 0), done);
		done += n;
	}
	return sum;
}

static void
fill_ip_csum(struct pkt *p)
{
	uint8_t *ip = p->data + p->l2_len;
	uint16_t csum;

	memset(ip + offsetof(struct ip4_hdr, csum), 0, sizeof(csum));
	csum = csum_fold(csum_partial(ip, p->l3_len, 0));
	memcpy(ip + offsetof(struct ip4_hdr, csum), &csum, sizeof(csum));
}

static void
fill_l4_csum(struct pkt *p)
{
	bool is_udp = (p->flags & PKT_TX_UDP_CSUM) != 0;
	uint32_t l4_off = (uint32_t)p->l2_len + p->l3_len;
	uint32_t field = l4_off + (uint32_t)(is_udp ? UDP_CSUM_OFF : TCP_CSUM_OFF);
	uint32_t sum;
	uint16_t csum;

	assert(field + sizeof(csum) <= p->len);	/* senders put all headers into the first segment */
	sum = offload_sum(p, l4_off, p->total_len - l4_off, 0);
	csum = is_udp ? udp_csum_finish(sum) : csum_fold(sum);
	memcpy(p->data + field, &csum, sizeof(csum));
}

void
offload_fill_csums(struct pkt *p)
{
	/* l3_len is also right without IP_CSUM: the L4 offset depends on it */
	if (p->flags & L4_CSUM_FLAGS)
		fill_l4_csum(p);
	if (p->flags & PKT_TX_IP_CSUM)
		fill_ip_csum(p);
	p->flags &= ~(uint32_t)(PKT_TX_IP_CSUM | L4_CSUM_FLAGS);
}

void
offload_refill_csums(struct pkt *p, const struct ip4_view *v, bool has_l4)
{
	uint32_t off = (uint32_t)p->l2_len + p->l3_len;
	bool is_udp = v->proto == IP_PROTO_UDP;
	uint32_t field = off + (uint32_t)(is_udp ? UDP_CSUM_OFF : TCP_CSUM_OFF);
	struct ipaddr src = ipaddr_v4(v->src), dst = ipaddr_v4(v->dst);
	uint16_t csum = 0;
	uint32_t sum;

	fill_ip_csum(p);
	if (!has_l4 || ip4_is_fragment(v) || (!is_udp && v->proto != IP_PROTO_TCP) ||
	    field + sizeof(csum) > p->len)
		return;
	memcpy(p->data + field, &csum, sizeof(csum));
	sum = csum_pseudo(&src, &dst, v->proto, v->payload_bytes);
	sum = offload_sum(p, off, v->payload_bytes, sum);
	csum = is_udp ? udp_csum_finish(sum) : csum_fold(sum);
	memcpy(p->data + field, &csum, sizeof(csum));
}

static void
fill_what_device_lacks(const struct dev *d, struct pkt *p)
{
	if ((p->flags & L4_CSUM_FLAGS) && !(d->caps & DEV_CAP_TX_L4_CSUM)) {
		fill_l4_csum(p);
		p->flags &= ~(uint32_t)L4_CSUM_FLAGS;
	}
	if ((p->flags & PKT_TX_IP_CSUM) && !(d->caps & DEV_CAP_TX_IP_CSUM)) {
		fill_ip_csum(p);
		p->flags &= ~(uint32_t)PKT_TX_IP_CSUM;
	}
}

/* False: no room in front of the frame. */
static bool
insert_vlan(const struct dev *d, struct pkt *p)
{
	uint8_t *hdr = pkt_push(p, ETHER_VLAN_BYTES);

	if (hdr == NULL)
		return false;
	memmove(hdr, hdr + ETHER_VLAN_BYTES, 2 * ETHER_ADDR_BYTES);
	store_be16(hdr + 2 * ETHER_ADDR_BYTES, ETHER_TYPE_VLAN);
	store_be16(hdr + 2 * ETHER_ADDR_BYTES + 2, d->vlan);
	p->l2_len = (uint16_t)(p->l2_len + ETHER_VLAN_BYTES);
	return true;
}

static void
pad(struct pkt *p)
{
	uint16_t missing = (uint16_t)(ETHER_MIN_FRAME_BYTES - p->total_len);
	uint8_t *end = pkt_put(p, missing);

	/* zeros: RFC 1042's rule, and no stale memory on the wire */
	if (end != NULL)
		memset(end, 0, missing);
}

/* One segment instead of several. NULL when p was dropped. */
static struct pkt *
linearise(struct netisr *n, struct pkt *p)
{
	bool fits = p->total_len <= PKT_ROOM_BYTES;
	struct pkt *flat = fits ? pkt_clone(n, p) : NULL;

	if (flat == NULL)
		NETISR_COUNT(n, fits ? CTR_drop_pkt_nomem : CTR_drop_pkt_too_long);
	else
		flat->flags = p->flags;
	pkt_free(n, p);
	return flat;
}

/* Everything but cutting. Takes p. */
static void
finish(struct netisr *n, struct dev *d, struct pkt *p, offload_emit_fn *emit)
{
	bool needs_pad = d->has_ether && p->total_len < ETHER_MIN_FRAME_BYTES;

	if (p->seg != NULL && (needs_pad || !(d->caps & DEV_CAP_MULTISEG))) {
		p = linearise(n, p);
		if (p == NULL)
			return;
	}
	fill_what_device_lacks(d, p);
	if (d->has_ether && d->vlan != 0 && !insert_vlan(d, p)) {
		NETISR_COUNT(n, CTR_drop_pkt_too_long);
		pkt_free(n, p);
		return;
	}
	if (d->has_ether && p->total_len < ETHER_MIN_FRAME_BYTES)
		pad(p);
	emit(n, d, p);
}

/* What a piece's headers differ in from the large segment's. */
struct piece {
	uint32_t off;		/* of its payload, from the first payload byte */
	uint32_t bytes;		/* of payload */
	uint16_t index;
	bool is_last;
};

static void
write_piece_headers(const struct pkt *big, struct pkt *p, const struct piece *c)
{
	uint8_t *ip = p->data + big->l2_len;
	uint8_t *tcp = ip + big->l3_len;
	struct ip4_hdr ih;
	struct tcp_hdr th;
	struct ipaddr src, dst;
	uint32_t l4_bytes = big->l4_len + c->bytes;

	memcpy(&ih, ip, sizeof(ih));
	memcpy(&th, tcp, sizeof(th));
	ih.total_len = be16_from_cpu((uint16_t)(big->l3_len + l4_bytes));
	/*
	 * The id of an atomic datagram (DF) means nothing (RFC 6864 4.1); ours is 0 and stays so.
	 */
	if (!(be16_to_cpu(ih.frag) & IP4_DF))
		ih.id = be16_from_cpu((uint16_t)(be16_to_cpu(ih.id) + c->index));
	ih.csum.raw = 0;
	th.seq = be32_from_cpu(be32_to_cpu(th.seq) + c->off);
	if (!c->is_last)
		th.flags &= (uint8_t)~(TH_FIN | TH_PUSH);
	if (c->off != 0)
		th.flags &= (uint8_t)~TH_CWR;
	src = ipaddr_v4(ih.src);
	dst = ipaddr_v4(ih.dst);
	th.csum.raw = csum_fold_raw(csum_pseudo(&src, &dst, IP_PROTO_TCP, l4_bytes));
	memcpy(ip, &ih, sizeof(ih));
	memcpy(tcp, &th, sizeof(th));
}

/* NULL when there is no memory. */
static struct pkt *
make_piece(struct netisr *n, const struct pkt *big, uint32_t hdr_bytes, const struct piece *c)
{
	struct pkt *p = pkt_alloc(n);
	uint8_t *data;

	if (p == NULL)
		return NULL;
	data = pkt_put(p, (uint16_t)(hdr_bytes + c->bytes));
	if (data == NULL) {
		pkt_free(n, p);
		return NULL;
	}
	pkt_copy_out(big, 0, data, hdr_bytes);
	pkt_copy_out(big, hdr_bytes + c->off, data + hdr_bytes, c->bytes);
	p->l2_len = big->l2_len;
	p->l3_len = big->l3_len;
	p->l4_len = big->l4_len;
	p->flags = (big->flags & ~(uint32_t)PKT_TX_TSO) | PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM;
	write_piece_headers(big, p, c);
	return p;
}

/* Cuts big into pieces. Takes it. Pieces that find no memory are lost; TCP sends them again. */
static void
segment(struct netisr *n, struct dev *d, struct pkt *big, offload_emit_fn *emit)
{
	uint32_t hdr_bytes = (uint32_t)big->l2_len + big->l3_len + big->l4_len;
	uint32_t payload_bytes = big->total_len - hdr_bytes;
	struct piece c = { 0 };

	for (c.off = 0; c.off < payload_bytes; c.off += c.bytes, c.index++) {
		struct pkt *p;

		c.bytes = min_u32(big->tso_mss, payload_bytes - c.off);
		c.is_last = c.off + c.bytes == payload_bytes;
		p = make_piece(n, big, hdr_bytes, &c);
		if (p == NULL) {
			NETISR_COUNT(n, CTR_drop_pkt_nomem);
			break;
		}
		finish(n, d, p, emit);
	}
	pkt_free(n, big);
}

static bool
needs_cutting(const struct dev *d, const struct pkt *p)
{
	uint32_t hdr_bytes = (uint32_t)p->l2_len + p->l3_len + p->l4_len;

	return (p->flags & PKT_TX_TSO) && !(d->caps & DEV_CAP_TSO) && p->tso_mss != 0 &&
	    p->total_len > hdr_bytes + p->tso_mss;
}

void
offload_transmit(struct netisr *n, struct dev *d, struct pkt *p, offload_emit_fn *emit)
{
	if (needs_cutting(d, p)) {
		segment(n, d, p, emit);
		return;
	}
	if ((p->flags & PKT_TX_TSO) && !(d->caps & DEV_CAP_TSO)) {
		/*
		 * Fits one piece. Its field may hold a sum made for cutting (without the length):
		 * make it plain.
		 */
		struct piece whole = {
			.bytes = p->total_len - p->l2_len - p->l3_len - p->l4_len,
			.is_last = true,
		};

		write_piece_headers(p, p, &whole);
		p->flags = (p->flags & ~(uint32_t)PKT_TX_TSO) | PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM;
	}
	finish(n, d, p, emit);
}
