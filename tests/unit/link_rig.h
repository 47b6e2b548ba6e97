/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of the link and network layer alone, for the tests of those layers: netisrs without
 * threads, a fake clock, one port "p0" with 10.0.0.1/24. On a wire device (the default) the test
 * sees and makes every frame; 10.0.0.2 and 10.0.0.3 are the other hosts there.
 */
#ifndef TEST_UNIT_LINK_RIG_H
#define TEST_UNIT_LINK_RIG_H

#include "support/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "link/ether.h"
#include "link/neigh.h"
#include "runtime/clock.h"
#include "runtime/stack.h"
#include "support/wire_dev.h"
#include "wire/arp.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/udp.h"

#define RIG_OWN_IP	UINT32_C(0x0a000001)
#define RIG_PEER_IP	UINT32_C(0x0a000002)
#define RIG_THIRD_IP	UINT32_C(0x0a000003)
#define RIG_FAR_IP	UINT32_C(0xc6336401)	/* 198.51.100.1, behind a gateway */
#define RIG_OWN_MAC	((struct mac){ { 2, 0, 0, 0, 0, 1 } })
#define RIG_PEER_MAC	((struct mac){ { 2, 0, 0, 0, 0, 2 } })
#define RIG_THIRD_MAC	((struct mac){ { 2, 0, 0, 0, 0, 3 } })
#define RIG_FRAME_MAX	2048

struct rig {
	struct clock clock;
	struct darter_stack *s;
	struct dev *d;		/* p0 */
	struct wire_dev *w;	/* NULL on another device */
	uint32_t packets_idle;
};

static inline struct darter_stack *
rig_stack(struct clock *clock, const char *const *overrides)
{
	static const struct layer *const layers[] = { &link_layer, &inet_layer, NULL };
	static const char *const always[] = {
		"stack.threads=manual", "stack.memory=heap", "stack.packets=512",
		    "stack.ring_memory=16m",
		"stack.seed=7", NULL
	};
	struct darter_stack *s;
	struct config cfg;
	char err[256] = "";
	int rc = 0;

	config_init(&cfg);
	for (unsigned i = 0; always[i] != NULL; i++)
		assert_int_equal(config_override(&cfg, always[i], err, sizeof(err)), 0);
	for (; *overrides != NULL; overrides++) {
		if (config_override(&cfg, *overrides, err, sizeof(err)) != 0)
			fail_msg("%s: %s", *overrides, err);
	}
	s = stack_new(&cfg, layers, clock, NULL, &rc, err, sizeof(err));
	if (s == NULL)
		fail_msg("stack_new: %d %s", rc, err);
	return s;
}

/* Rounds of all netisrs until none has work; returns the rounds that did something. */
static inline unsigned
rig_run_stack(struct darter_stack *s)
{
	unsigned busy = 0, idle = 0;

	while (idle < 2) {
		unsigned work = 0;

		for (unsigned i = 0; i < s->n_netisrs; i++) {
			assert_true(netisr_take(s->netisr[i]));
			work += netisr_round(s->netisr[i]);
			netisr_give(s->netisr[i]);
		}
		busy += work != 0;
		idle = work != 0 ? 0 : idle + 1;
		assert_true(busy < 10000);
	}
	return busy;
}

static inline void
rig_run(struct rig *r)
{
	rig_run_stack(r->s);
}

/* Moves the clock in steps of a millisecond, running the stack after each. */
static inline void
rig_advance_ms(struct rig *r, unsigned ms)
{
	while (ms-- > 0) {
		clock_advance_us(&r->clock, 1000);
		rig_run(r);
	}
}

static inline void
rig_knob(struct rig *r, const char *name, const char *value)
{
	char err[128] = "";

	if (knob_set(r->s, name, value, err, sizeof(err)) != 0)
		fail_msg("%s: %s", name, err);
}

/* A silent stack on wire 0. extra: further overrides, NULL-terminated, or NULL. */
static inline void
rig_init(struct rig *r, unsigned netisrs, const char *const *extra)
{
	const char *overrides[16] = { NULL };
	char text[64];
	unsigned n = 0;

	memset(r, 0, sizeof(*r));
	clock_init_fake(&r->clock, (struct time){ 1000000 });
	wire_dev_register();
	r->w = wire_dev_reset(0);
	r->w->queues = (uint16_t)netisrs;
	snprintf(text, sizeof(text), "stack.netisrs=%u", netisrs);
	overrides[n++] = text;
	overrides[n++] = "port.p0.device=wire:0";
	overrides[n++] = "port.p0.addr=10.0.0.1/24";
	for (; extra != NULL && *extra != NULL; extra++)
		overrides[n++] = *extra;
	r->s = rig_stack(&r->clock, overrides);
	r->d = dev_find(r->s, "p0");
	assert_non_null(r->d);
	rig_knob(r, "net.inet.announce_count", "0");
	rig_run(r);
	r->packets_idle = r->s->pkt_ops->available(r->s);
}

static inline void
rig_fini(struct rig *r)
{
	if (r->w != NULL)
		wire_dev_clear(r->w);
	stack_free(r->s);
}

/* Every packet is back in the pool. */
static inline void
rig_expect_no_leak(struct rig *r)
{
	rig_run(r);
	assert_int_equal(r->s->pkt_ops->available(r->s), r->packets_idle);
}

static inline uint64_t
rig_count(struct rig *r, enum counter c)
{
	return stack_counter(r->s, c);
}

static inline void
rig_inject_on(struct rig *r, unsigned queue, const void *frame, size_t len)
{
	wire_dev_inject(r->w, queue, frame, (uint32_t)len);
	rig_run(r);
}

static inline void
rig_inject(struct rig *r, const void *frame, size_t len)
{
	rig_inject_on(r, 0, frame, len);
}

/*
 * The next frame that the stack has sent; fails when there is none. The bytes stay valid until the
 * next call.
 */
static inline const struct wire_frame *
rig_sent(struct rig *r)
{
	static struct wire_frame *last;

	free(last);
	last = wire_dev_take(r->w);
	if (last == NULL)
		fail_msg("the stack has sent nothing");
	return last;
}

static inline void
rig_expect_silence(struct rig *r)
{
	struct wire_frame *f = wire_dev_take(r->w);

	if (f != NULL)
		fail_msg("the stack has sent a frame of %u bytes", f->len);
}

/* ---- frames ---- */

static inline size_t
rig_arp(uint8_t *buf, uint16_t op, struct mac sender_mac, uint32_t sender_ip, uint32_t target_ip)
{
	struct arp_view a = {
		.op = op,
		.sender_mac = sender_mac,
		.sender_ip = be32_from_cpu(sender_ip),
		.target_mac = RIG_OWN_MAC,
		.target_ip = be32_from_cpu(target_ip),
	};
	struct mac dst = op == ARP_OP_REQUEST ? MAC_BROADCAST : RIG_OWN_MAC;
	size_t n = ether_emit(buf, &dst, &sender_mac, ETHER_TYPE_ARP);

	return n + arp_emit(buf + n, &a);
}

/*
 * An IPv4 packet from PEER_MAC to OWN_MAC; the fields that a test cares for are in v, payload
 * follows.
 */
static inline size_t
rig_ip4(uint8_t *buf, const struct ip4_view *fields, const void *payload, size_t payload_bytes)
{
	struct ip4_view v = *fields;
	struct mac src = RIG_PEER_MAC, dst = RIG_OWN_MAC;
	size_t n = ether_emit(buf, &dst, &src, ETHER_TYPE_IP4);

	if (v.src.raw == 0)
		v.src = be32_from_cpu(RIG_PEER_IP);
	if (v.dst.raw == 0)
		v.dst = be32_from_cpu(RIG_OWN_IP);
	if (v.ttl == 0)
		v.ttl = 64;
	v.total_bytes = (uint16_t)(IP4_HDR_BYTES + payload_bytes);
	n += ip4_emit(buf + n, &v);
	memcpy(buf + n, payload, payload_bytes);
	return n + payload_bytes;
}

/* An echo request with 32 bytes of data. */
static inline size_t
rig_echo(uint8_t *buf, const struct ip4_view *fields, uint16_t seq)
{
	static const uint8_t data[32] = "abcdefghijklmnopqrstuvwxyz012345";
	struct icmp4_view v = { .type = ICMP4_ECHO, .id = 0x1234, .seq = seq, .data = data,
	    .data_bytes = 32 };
	struct ip4_view ip = *fields;
	uint8_t msg[64];
	size_t n = icmp4_emit(msg, &v);

	ip.proto = IP_PROTO_ICMP;
	return rig_ip4(buf, &ip, msg, n);
}

static inline size_t
rig_udp(uint8_t *buf, const struct ip4_view *fields, uint16_t sport, uint16_t dport)
{
	struct ip4_view ip = *fields;
	uint8_t msg[UDP_HDR_BYTES + 8] = { 0 };

	udp_emit(msg, sport, dport, 8, 0);
	ip.proto = IP_PROTO_UDP;
	return rig_ip4(buf, &ip, msg, sizeof(msg));
}

/* Recomputes the IP header's checksum of a frame whose header a test has changed. */
static inline void
rig_fix_ip_csum(uint8_t *frame)
{
	uint8_t *ip = frame + ETHER_HDR_BYTES;
	uint16_t csum;

	memset(ip + 10, 0, 2);
	csum = csum_fold(csum_partial(ip, (size_t)(ip[0] & 15) * 4, 0));
	memcpy(ip + 10, &csum, 2);
}

/* The peer's address gets into the tables of all netisrs. */
static inline void
rig_learn_peer(struct rig *r)
{
	uint8_t mac[6];
	struct ipaddr a = ipaddr_v4_cpu(RIG_PEER_IP);

	memcpy(mac, RIG_PEER_MAC.b, 6);
	for (unsigned i = 0; i < r->s->n_netisrs; i++) {
		assert_true(netisr_take(r->s->netisr[i]));
		assert_int_equal(neigh_set_static(r->s->netisr[i], r->d, &a, mac), 0);
		netisr_give(r->s->netisr[i]);
	}
}

struct rig_found {
	struct ipaddr addr;
	enum neigh_state state;
	uint8_t mac[6];
};

static inline void
rig_on_neigh(void *arg, const struct dev *d, const struct ipaddr *a, enum neigh_state state,
    const uint8_t mac[6])
{
	struct rig_found *f = arg;

	(void)d;
	if (!ipaddr_eq(a, &f->addr))
		return;
	f->state = state;
	memcpy(f->mac, mac, 6);
}

/* The entry of ip in the table of netisr `id`; state NEIGH_NONE when there is none. */
static inline struct rig_found
rig_neigh(struct rig *r, unsigned id, uint32_t ip)
{
	struct rig_found f = { .addr = ipaddr_v4_cpu(ip) };

	neigh_visit(r->s->netisr[id], rig_on_neigh, &f);
	return f;
}

/* A packet with len bytes of payload pattern, held by netisr 0, which the caller has taken. */
static inline struct pkt *
rig_pkt(struct netisr *n, uint32_t len)
{
	struct pkt *p = pkt_alloc(n);
	uint8_t *b;

	assert_non_null(p);
	b = pkt_put(p, (uint16_t)len);
	assert_non_null(b);
	for (uint32_t i = 0; i < len; i++)
		b[i] = (uint8_t)(i * 7 + 1);
	return p;
}

/*
 * Sends a datagram of protocol 253 (RFC 3692) to dst from netisr `id`; returns ip_output's answer
 * or the lookup's.
 */
static inline int
rig_send_from(struct rig *r, unsigned id, uint32_t dst, uint32_t len)
{
	struct netisr *n = r->s->netisr[id];
	struct ip_out o = { .dst = ipaddr_v4_cpu(dst), .proto = 253, .dont_fragment = true };
	struct ip_route route;
	int rc;

	assert_true(netisr_take(n));
	rc = ip_route_lookup(r->s, &o.dst, NULL, &route);
	if (rc == 0) {
		o.src = route.src;
		rc = ip_output(n, rig_pkt(n, len), &route, &o);
	}
	netisr_round(n);
	netisr_give(n);
	return rc;
}

static inline int
rig_send(struct rig *r, uint32_t dst, uint32_t len)
{
	return rig_send_from(r, 0, dst, len);
}

#endif
