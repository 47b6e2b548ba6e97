/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP in (RFC 768, RFC 1122 4.1).
 *
 * Any netisr may find any datagram socket (demux.h) and deliver into its own lane of the socket's
 * queue (dgramq.h): nothing about the socket but that lane changes, so no owner is asked. Steps:
 * lengths, checksum, socket, queue; each failure has a counter.
 *
 * - A length field shorter than the IP payload cuts the rest off; a longer one, or below 8, drops
 *   the packet.
 * - Checksum 0 means the sender computed none, which IPv4 allows (RFC 768).
 * - No socket: ICMP port unreachable (RFC 1122 4.1.3.1), never about broadcasts.
 * - ICMP errors go to the socket that is connected to the quoted peer, as its pending error. RFC
 *   1122 4.1.3.3 wants all of them passed on; like Linux, soft ones (unreachable for now) are not,
 *   since programs take any error for the end of the peer. A datagram too big for the path is
 *   reported, as this stack does not fragment.
 */
#include <errno.h>
#include <netinet/in.h>

#include "base/csum.h"
#include "runtime/pkt.h"
#include "runtime/stack.h"
#include "transport/demux.h"
#include "transport/dgramq.h"
#include "transport/udp_priv.h"
#include "wire/udp.h"

struct delivery {
	struct netisr *n;
	const struct dgram_rec *rec;
	const uint8_t *payload;
	unsigned sockets;
};

static void
drop(struct netisr *n, struct pkt *p, enum counter why)
{
	NETISR_COUNT(n, why);
	pkt_free(n, p);
}

/* The sum over pseudo-header and datagram; right when it folds to 0. */
static bool
csum_is_good(const struct pkt *p, const struct ip_meta *meta)
{
	uint32_t sum = csum_pseudo(&meta->src, &meta->dst, IPPROTO_UDP, p->total_len);
	size_t off = 0;

	for (; p != NULL; p = p->seg) {
		sum = csum_append(sum, csum_partial(p->data, p->len, 0), off);
		off += p->len;
	}
	return csum_fold(sum) == 0;
}

/* Checks lengths and checksum and cuts p to the datagram; false when it was dropped. */
static bool
check(struct netisr *n, struct pkt *p, const struct ip_meta *meta, struct udp_hdr *ret_hdr)
{
	uint32_t len;

	if (pkt_copy_out(p, 0, ret_hdr, UDP_HDR_BYTES) < UDP_HDR_BYTES) {
		drop(n, p, CTR_drop_udp_short);
		return false;
	}
	len = be16_to_cpu(ret_hdr->len);
	if (len < UDP_HDR_BYTES || len > p->total_len) {
		drop(n, p, CTR_drop_udp_len);
		return false;
	}
	if (len < p->total_len)
		pkt_trim(n, p, len);
	if (ret_hdr->csum.raw == 0 || (p->flags & (PKT_RX_L4_CSUM_GOOD | PKT_RX_LOOP)))
		return true;
	if ((p->flags & PKT_RX_L4_CSUM_BAD) || !csum_is_good(p, meta)) {
		drop(n, p, CTR_drop_udp_csum);
		return false;
	}
	return true;
}

/* The payload in one piece: where it lies, or in the netisr's buffer. */
static const uint8_t *
linear_payload(struct netisr *n, const struct pkt *p)
{
	if (p->seg == NULL)
		return p->data + UDP_HDR_BYTES;
	pkt_copy_out(p, UDP_HDR_BYTES, n->udp->linear, p->total_len - UDP_HDR_BYTES);
	return n->udp->linear;
}

static void
deliver(void *arg, struct sockhalf *sh)
{
	struct delivery *d = arg;

	d->sockets++;
	if (!dgramq_put(d->n, sh, d->rec, d->payload))
		return;
	NETISR_COUNT(d->n, CTR_udp_rcvd);
	d->n->stack->sockhalf_ops->event(sh, SOCK_EV_IN);
}

void
udp_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	struct dgram_rec rec = { .addr = meta->src, .local = meta->dst };
	struct delivery d = { .n = n, .rec = &rec };
	struct sockhalf *sh;
	struct udp_hdr h;
	struct tuple t;

	if (!check(n, p, meta, &h))
		return;
	rec.port = be16_to_cpu(h.sport);
	rec.len_bytes = p->total_len - UDP_HDR_BYTES;
	t = (struct tuple){ .local = meta->dst, .foreign = meta->src,
	    .lport = be16_to_cpu(h.dport), .fport = rec.port };
	d.payload = linear_payload(n, p);
	if (meta->is_broadcast) {
		demux_visit_dgram(n->stack, &t, deliver, &d);
	} else {
		sh = demux_lookup_dgram(n->stack, &t);
		if (sh != NULL)
			deliver(&d, sh);
		else
			icmp_send_unreach(n, p, meta, IP_UNREACH_PORT);
	}
	if (d.sockets == 0)
		drop(n, p, CTR_drop_udp_no_port);
	else
		pkt_free(n, p);
}

void
udp_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted, uint32_t quoted_len,
    const struct ip_error *e)
{
	struct sockhalf *sh;
	struct tuple t;

	if (quoted_len < 4 || (e->is_soft && e->err != EMSGSIZE))
		return;
	t = (struct tuple){ .local = meta->src, .foreign = meta->dst,
	    .lport = load_be16(quoted), .fport = load_be16(quoted + 2) };
	sh = demux_lookup_connected(n->stack, &t);
	if (sh == NULL)
		return;
	sockhalf_set_error(sh, e->err);
	n->stack->sockhalf_ops->event(sh, SOCK_EV_ERR);
}
