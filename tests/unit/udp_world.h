/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world of test_udp.c: a network layer that keeps what leaves as bytes, a socket layer that
 * counts events, packets made by hand. Three addresses are ours (10.0.0.1, 10.0.0.2, 127.0.0.1);
 * 192.0.2.0/24 is routed, 203.0.113.0/24 is not. For one test program only: it defines inet's
 * symbols.
 */
#ifndef TEST_UNIT_UDP_WORLD_H
#define TEST_UNIT_UDP_WORLD_H

#include "unit/transport_bare.h"

#include <errno.h>
#include <netinet/in.h>

#include "base/csum.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "transport/demux.h"
#include "transport/dgramq.h"
#include "transport/udp_priv.h"
#include "transport/ulp.h"
#include "wire/udp.h"

#define A1	0x0a000001u
#define A2	0x0a000002u
#define BCAST	0x0a0000ffu
#define LOOP	0x7f000001u
#define PEER	0xc0000201u
#define NOWHERE	0xcb007101u
#define MTU	1500u
#define FRAMES	256u

static const struct layer *const layers[] = { &ulp_layer, &demux_layer, &udp_layer, NULL };

struct frame {
	struct ip_out o;
	uint8_t bytes[2048];
	uint32_t len;
	uint32_t flags;
};

static struct {
	struct dev dev;
	struct frame frame[FRAMES];
	unsigned frames;
	unsigned unreach;
	uint32_t gen;
	unsigned lookups;
	bool is_down;
	uint32_t events;
	unsigned freed;
	struct sockhalf *last_freed;
} net;

/* ---- the network layer ---- */

void
ip_register(struct darter_stack *s, uint8_t proto, const struct ip_proto *ops)
{
	(void)s;
	assert_int_equal(proto, IPPROTO_UDP);
	assert_non_null(ops->input);
}

uint32_t
ip_route_gen(const struct darter_stack *s)
{
	(void)s;
	return net.gen;
}

static uint32_t
v4(const struct ipaddr *a)
{
	return be32_to_cpu(a->v4);
}

bool
ip_is_own(struct darter_stack *s, const struct ipaddr *a)
{
	(void)s;
	return v4(a) == A1 || v4(a) == A2 || v4(a) >> 24 == 127;
}

bool
ip_is_broadcast(struct darter_stack *s, const struct ipaddr *a)
{
	(void)s;
	return v4(a) == BCAST || v4(a) == UINT32_MAX;
}

int
ip_route_lookup(struct darter_stack *s, const struct ipaddr *dst, const struct ipaddr *src,
    struct ip_route *r)
{
	uint32_t d = v4(dst);

	net.lookups++;
	if (!ipaddr_is_any(src) && !ip_is_own(s, src))
		return -EADDRNOTAVAIL;
	if (net.is_down || (d >> 8 != PEER >> 8 && d >> 8 != A1 >> 8 && d >> 24 != 127))
		return -ENETUNREACH;
	memset(r, 0, sizeof(*r));
	r->dev = &net.dev;
	r->next_hop = *dst;
	r->src = !ipaddr_is_any(src) ? *src : ipaddr_v4_cpu(d >> 24 == 127 ? LOOP : A1);
	r->mtu = MTU;
	r->is_broadcast = ip_is_broadcast(s, dst);
	r->gen = net.gen;
	return 0;
}

int
ip_output(struct netisr *n, struct pkt *p, const struct ip_route *r, const struct ip_out *o)
{
	struct frame *f = &net.frame[net.frames++ % FRAMES];

	assert_ptr_equal(r->dev, &net.dev);
	f->o = *o;
	f->len = pkt_copy_out(p, 0, f->bytes, sizeof(f->bytes));
	f->flags = p->flags;
	assert_int_equal(f->len, p->total_len);
	pkt_free(n, p);
	return 0;
}

void
icmp_send_unreach(struct netisr *n, const struct pkt *p, const struct ip_meta *meta,
    enum ip_unreach code)
{
	(void)n, (void)p;
	assert_false(meta->is_broadcast);
	assert_int_equal(code, IP_UNREACH_PORT);
	net.unreach++;
}

/* ---- the socket layer ---- */

static void
on_event(struct sockhalf *sh, uint32_t events)
{
	(void)sh;
	net.events |= events;
}

static void
on_free(struct netisr *n, struct sockhalf *sh)
{
	assert_ptr_equal(netisr_current(), n);
	net.freed++;
	net.last_freed = sh;
	ring_fini(&sh->tx, &n->chunks);
	free(sh);
}

static const struct sockhalf_ops sock_ops = { .event = on_event, .free = on_free };

/* ---- the fixture: one stack, netisr 0 held by the test ---- */

struct fixture {
	struct darter_stack *s;
	struct clock clock;
	struct netisr *n;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	memset(&net, 0, sizeof(net));
	f->s = bare_stack(2, &f->clock, layers);
	f->s->sockhalf_ops = &sock_ops;
	f->n = f->s->netisr[0];
	assert_true(netisr_take(f->n));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	netisr_give(f->n);
	stack_free(f->s);
	free(f);
	return 0;
}

static struct sockhalf *
sock(struct fixture *f)
{
	struct sockhalf *sh = bare_sock(f->s);

	sh->ulp = &udp_ulp;
	sh->proto = IPPROTO_UDP;
	assert_int_equal(udp_ulp.attach(sh), 0);
	return sh;
}

/* Runs rounds and time until the socket is freed. */
static void
close_sock(struct fixture *f, struct sockhalf *sh)
{
	unsigned before = net.freed, i;

	udp_ulp.close(sh);
	for (i = 0; i < 100 && net.freed == before; i++) {
		clock_advance_us(&f->clock, 500);
		netisr_round(f->n);
	}
	assert_int_equal(net.freed, before + 1);
	assert_ptr_equal(net.last_freed, sh);
}

static struct sockhalf *
bound(struct fixture *f, uint32_t addr, uint16_t port)
{
	struct sockhalf *sh = sock(f);
	struct endpoint local = ep(addr, port);

	assert_int_equal(udp_ulp.bind(sh, &local), 0);
	return sh;
}

/* What the socket layer does for sendto. */
static int
send_to(struct sockhalf *sh, const struct endpoint *to, const char *text, uint32_t len)
{
	const struct endpoint *dst = to != NULL ? to : &sh->peer;
	struct dgram_rec rec = { .len_bytes = len };
	int rc = udp_check_send(sh, to, len);

	if (rc < 0)
		return rc;
	rec.port = dst->port;
	rec.addr = dst->addr;
	rc = dgramq_send(sh, &rec, text);
	if (rc == 0)
		sockhalf_post(sh, SOCK_OP_SEND);
	return rc;
}

/* A datagram as the network layer hands it over. */
static struct pkt *
packet(struct fixture *f, const struct tuple *t, const void *payload, uint32_t len)
{
	struct pkt *p = pkt_alloc(f->n);
	struct udp_hdr *h;
	uint32_t sum;

	assert_non_null(p);
	memcpy(pkt_put(p, (uint16_t)len), payload, len);
	h = (struct udp_hdr *)(void *)pkt_push(p, UDP_HDR_BYTES);
	udp_emit((uint8_t *)h, t->fport, t->lport, len, 0);
	sum = csum_pseudo(&t->foreign, &t->local, IPPROTO_UDP, len + UDP_HDR_BYTES);
	h->csum.raw = udp_csum_finish(csum_partial(h, len + UDP_HDR_BYTES, sum));
	return p;
}

static void
receive_packet(struct fixture *f, struct pkt *p, const struct tuple *t)
{
	struct ip_meta meta = { .src = t->foreign, .dst = t->local, .proto = IPPROTO_UDP,
	    .ttl = 64, .is_broadcast = ip_is_broadcast(f->s, &t->local) };

	udp_input(f->n, p, &meta);
}

static void
receive(struct fixture *f, uint32_t dst, uint16_t dport, uint32_t src, uint16_t sport,
    const char *text)
{
	struct tuple t = tup(dst, dport, src, sport);

	receive_packet(f, packet(f, &t, text, (uint32_t)strlen(text)), &t);
}

static void
expect_text(struct sockhalf *sh, const char *text)
{
	struct dgram_rec rec;
	char buf[128];
	int64_t got = dgramq_get(sh, buf, sizeof(buf), false, &rec);

	if (text == NULL) {
		assert_int_equal(got, -EAGAIN);
		return;
	}
	assert_int_equal(got, strlen(text));
	assert_memory_equal(buf, text, strlen(text));
}

static uint64_t
counted(struct fixture *f, enum counter c)
{
	return stack_counter(f->s, c);
}

#endif
