/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP out (RFC 768, RFC 1122 4.1).
 *
 * The application's thread checks what can be known at once (udp_check_send), writes a record into
 * the socket's tx ring and posts SOCK_OP_SEND; the owner turns records into packets here. Both
 * sides keep the way to their last destination, so a stream of datagrams to one peer looks up no
 * route. What the owner finds out too late (a route went away) becomes the socket's error.
 *
 * The checksum is always sent (RFC 1122 4.1.3.4 SHOULD), by the device where it can. A datagram
 * that does not fit the way's MTU is EMSGSIZE: this version does not cut datagrams into fragments,
 * and so does not forbid routers to (DF is clear).
 */
#include <errno.h>
#include <netinet/in.h>

#include "base/csum.h"
#include "link/dev.h"
#include "runtime/pkt.h"
#include "runtime/stack.h"
#include "transport/dgramq.h"
#include "transport/udp_priv.h"
#include "wire/udp.h"

int
udp_way_find(struct darter_stack *s, struct udp_way *w, const struct ipaddr *dst,
    const struct ipaddr *src)
{
	int rc;

	if (w->is_valid && w->route.gen == ip_route_gen(s) && ipaddr_eq(&w->dst, dst) &&
	    ipaddr_eq(&w->src, src))
		return 0;
	w->is_valid = false;
	rc = ip_route_lookup(s, dst, src, &w->route);
	if (rc < 0)
		return rc;
	w->dst = *dst;
	w->src = *src;
	w->is_valid = true;
	return 0;
}

/* ---- the application's side ---- */

/* udp_way_find for a thread that may hold nothing. */
static int
find_way_unheld(struct sockhalf *sh, struct udp_way *w, const struct ipaddr *dst,
    const struct ipaddr *src)
{
	struct netisr *n = netisr_current();
	int rc;

	if ((n != NULL && n->stack == sh->stack) ||
	    (w->is_valid && w->route.gen == ip_route_gen(sh->stack)
	    && ipaddr_eq(&w->dst, dst) && ipaddr_eq(&w->src, src)))
		return udp_way_find(sh->stack, w, dst, src);
	control_lock(sh->stack);
	rc = udp_way_find(sh->stack, w, dst, src);
	control_unlock(sh->stack);
	return rc;
}

static int
take_error(struct sockhalf *sh)
{
	if (likely(atomic_load_explicit(&sh->so_error, memory_order_relaxed) == 0))
		return 0;
	return -atomic_exchange_explicit(&sh->so_error, 0, memory_order_acq_rel);
}

/* Destination of a send; 0 or a negative errno. */
static int
pick_destination(const struct sockhalf *sh, uint32_t state, const struct endpoint *to,
    struct ipaddr *ret_dst)
{
	if (to == NULL) {
		if ((state & SH_CONNECTED) == 0)
			return -EDESTADDRREQ;
		to = &sh->peer;
	}
	if (to->port == 0)
		return -EINVAL;
	*ret_dst = udp_real_dst(&to->addr);
	return ipaddr_is_v4(ret_dst) ? 0 : -EAFNOSUPPORT;
}

static int
name_and_home(struct sockhalf *sh)
{
	int rc;

	control_lock(sh->stack);
	rc = udp_autobind(sh);
	control_unlock(sh->stack);
	if (rc == 0)
		udp_set_home(sh, udp_near_netisr(sh->stack));
	return rc;
}

int
udp_check_send(struct sockhalf *sh, const struct endpoint *to, uint32_t len)
{
	struct udp_pcb *p = udp_pcb_of(sh);
	uint32_t state = sockhalf_state(sh);
	struct ipaddr dst;
	int rc = take_error(sh);

	if (rc == 0 && len > DGRAM_MAX_BYTES)
		rc = -EMSGSIZE;
	if (rc == 0)
		rc = pick_destination(sh, state, to, &dst);
	if (rc < 0)
		return rc;
	if ((state & SH_NAMED) == 0 ||
	    atomic_load_explicit(&sh->owner, memory_order_acquire) == NULL) {
		rc = name_and_home(sh);
		if (rc < 0)
			return rc;
	}
	rc = find_way_unheld(sh, &p->app_way, &dst, &p->app_src);
	if (rc < 0)
		return rc;
	if (p->app_way.route.is_broadcast && !udp_is_multicast(&dst) &&
	    !atomic_load_explicit(&sh->opts.broadcast, memory_order_relaxed))
		return -EACCES;
	return len + UDP_IP_OVERHEAD_BYTES > p->app_way.route.mtu ? -EMSGSIZE : 0;
}

/* ---- the owner's side ---- */

/* A packet with the next len bytes of the ring; NULL (and the bytes gone) when packets ran out. */
static struct pkt *
read_payload(struct netisr *n, struct ring *tx, uint32_t len)
{
	struct pkt *first = pkt_alloc(n), *seg = first;
	uint32_t part, left = len;

	while (seg != NULL) {
		part = min_u32(left, pkt_tailroom_bytes(seg));
		ring_read(tx, seg->data, part, false);
		seg->len = (uint16_t)part;
		left -= part;
		if (left == 0)
			break;
		seg->seg = pkt_alloc(n);
		seg = seg->seg;
	}
	if (seg != NULL) {
		first->total_len = len;
		return first;
	}
	if (first != NULL)
		pkt_free(n, first);
	ring_discard(tx, left);
	return NULL;
}

static uint32_t
sum_payload(const struct pkt *p)
{
	uint32_t sum = 0;
	size_t off = 0;

	for (; p != NULL; p = p->seg) {
		sum = csum_append(sum, csum_partial(p->data, p->len, 0), off);
		off += p->len;
	}
	return sum;
}

/* Puts the UDP header in front of the payload in p. */
static void
push_header(struct pkt *p, const struct ip_out *o, uint16_t lport, uint16_t fport,
    const struct dev *d)
{
	uint32_t len = p->total_len;
	uint32_t sum = csum_pseudo(&o->src, &o->dst, IPPROTO_UDP, len + UDP_HDR_BYTES);
	bool by_device = d->is_loop || (d->caps & DEV_CAP_TX_L4_CSUM) != 0;
	struct udp_hdr *h;

	if (!by_device)
		sum = csum_add(sum, sum_payload(p));
	h = (struct udp_hdr *)(void *)pkt_push(p, UDP_HDR_BYTES);
	udp_emit((uint8_t *)h, lport, fport, len, 0);
	p->l4_len = UDP_HDR_BYTES;
	if (by_device) {
		h->csum.raw = csum_fold_raw(sum);
		p->flags |= PKT_TX_UDP_CSUM;
	} else {
		h->csum.raw = udp_csum_finish(csum_partial(h, UDP_HDR_BYTES, sum));
	}
}

static void
report(struct sockhalf *sh, int err)
{
	sockhalf_set_error(sh, err);
	sh->stack->sockhalf_ops->event(sh, SOCK_EV_ERR);
}

/* Takes the next record off the ring and sends it. */
static void
send_one(struct netisr *n, struct udp_pcb *pcb)
{
	struct sockhalf *sh = pcb->sh;
	struct ip_out o = { .proto = IPPROTO_UDP };
	struct dgram_rec rec;
	struct pkt *p;
	int rc;

	ring_read(&sh->tx, &rec, sizeof(rec), false);
	o.dst = udp_real_dst(&rec.addr);
	rc = udp_way_find(n->stack, &pcb->out_way, &o.dst,
	    ipaddr_is_any(&rec.local) ? &pcb->src : &rec.local);
	if (rc < 0) {
		ring_discard(&sh->tx, rec.len_bytes);
		NETISR_COUNT(n, CTR_drop_ip_no_route);
		report(sh, -rc);
		return;
	}
	p = read_payload(n, &sh->tx, rec.len_bytes);
	if (p == NULL) {
		NETISR_COUNT(n, CTR_drop_pkt_nomem);
		return;
	}
	o.src = pcb->out_way.route.src;
	o.ttl = atomic_load_explicit(&sh->opts.ttl, memory_order_relaxed);
	o.tos = atomic_load_explicit(&sh->opts.tos, memory_order_relaxed);
	if (o.ttl == 0 && udp_is_multicast(&o.dst))
		o.ttl = 1;	/* RFC 1112 6.1 */
	push_header(p, &o, pcb->lport, rec.port, pcb->out_way.route.dev);
	NETISR_COUNT(n, CTR_udp_sent);
	rc = ip_output(n, p, &pcb->out_way.route, &o);
	if (rc == -EMSGSIZE)
		report(sh, EMSGSIZE);
}

bool
udp_send_queued(struct netisr *n, struct udp_pcb *p, unsigned budget)
{
	struct sockhalf *sh = p->sh;
	unsigned sent;
	uint32_t old;

	for (sent = 0; sent < budget && !ring_is_empty(&sh->tx); sent++)
		send_one(n, p);
	if (sent == 0)
		return false;
	/*
	 * A writer sets TX_WANT and then looks for room; this clears it after making room. Both are
	 * read-modify-writes of one word, so either the writer sees the room or we see the wish.
	 */
	old = atomic_fetch_and_explicit(&sh->state, ~(uint32_t)SH_TX_WANT, memory_order_acq_rel);
	if (old & SH_TX_WANT)
		n->stack->sockhalf_ops->event(sh, SOCK_EV_OUT);
	return !ring_is_empty(&sh->tx);
}
