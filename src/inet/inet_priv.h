/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the network layer share: the published picture of addresses and routes, the
 * control side it is built from, the transports that are registered, each netisr's private
 * counters.
 */
#ifndef INET_INET_PRIV_H
#define INET_INET_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/time.h"
#include "inet/ip.h"
#include "link/dev.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/publish.h"
#include "runtime/stack.h"
#include "runtime/wheel.h"
#include "wire/ip4.h"

#define INET_ADDRS_MAX	256
#define INET_ROUTES_MAX	256	/* static ones */
#define INET_IDS	256	/* counters of the IP id, per netisr */

#define IP4_LIMITED_BROADCAST	0xffffffffu
#define IP4_ALL_HOSTS		0xe0000001u
#define IP4_LOOPBACK		0x7f000001u

static inline bool
ip4_is_loopback(uint32_t a)
{
	return a >> 24 == 127;
}

static inline bool
ip4_is_multicast(uint32_t a)
{
	return a >> 28 == 0xe;
}

/* 0.0.0.0/8 and 240.0.0.0/4 but for the limited broadcast: no host has such an address. */
static inline bool
ip4_is_reserved(uint32_t a)
{
	return a >> 24 == 0 || (a >> 28 == 0xf && a != IP4_LIMITED_BROADCAST);
}

static inline uint32_t
ip4_mask(uint8_t prefix_bits)
{
	return prefix_bits == 0 ? 0 : UINT32_MAX << (32 - prefix_bits);
}

/* ---- route.c: addresses and routes; all in host order ---- */

struct inet_addr {
	uint32_t addr;
	uint8_t prefix_bits;
	struct dev *dev;
};

struct inet_static {
	uint32_t dst;
	uint8_t prefix_bits;
	uint32_t gateway;
};

/* A route ready for use. */
struct inet_route {
	uint32_t dst;
	uint32_t mask;
	uint32_t gateway;	/* 0: the destination is on the link */
	uint32_t src;		/* preferred source */
	struct dev *dev;
};

struct inet_bcast {
	uint32_t addr;
	struct dev *dev;
};

/*
 * The published snapshot. addrs and bcasts ascend by address; routes have the longest prefix first.
 */
struct inet_world {
	struct retired retired;
	uint32_t gen;
	unsigned n_addrs;
	unsigned n_bcasts;
	unsigned n_routes;
	struct inet_addr addrs[INET_ADDRS_MAX];
	struct inet_bcast bcasts[INET_ADDRS_MAX];
	struct inet_route routes[INET_ADDRS_MAX + INET_ROUTES_MAX];
};

struct inet_stack {
	struct inet_world *_Atomic world;
	const struct ip_proto *proto[256];
	struct siphash_key id_key;
	_Atomic int64_t ttl;
	_Atomic int64_t echo_broadcast;
	_Atomic int64_t icmp_rate_pps;
	_Atomic int64_t announce_count;
	_Atomic uint32_t gen;		/* of world; moves after it */
	/* control side, under the control mutex */
	unsigned n_addrs;
	unsigned n_statics;
	struct inet_addr addrs[INET_ADDRS_MAX];
	struct inet_static statics[INET_ROUTES_MAX];
};

struct inet_netisr {
	uint16_t ids[INET_IDS];
	uint64_t icmp_tokens_us;	/* credit of the rate limit, in microseconds of its rate */
	struct time icmp_refilled;
	/* netisr 0: gratuitous ARP of a device's addresses */
	struct netisr *netisr;
	struct timer announce_timer;
	uint8_t announcements[DEV_MAX];	/* still owed by device */
	uint16_t announce_waits;	/* rounds waited for links to come up */
};

static inline const struct inet_world *
inet_world(const struct darter_stack *s)
{
	return published_load(&s->inet->world);
}

/*
 * Builds and publishes the world from the configuration. 0 or a negative errno with a line in err.
 */
int inet_world_init(struct darter_stack *s, char *err, size_t err_size);
void inet_world_fini(struct darter_stack *s);

const struct inet_addr *inet_find_addr(const struct inet_world *w, uint32_t addr);

/* Directed broadcast address of a network of ours; NULL when it is none. */
const struct inet_bcast *inet_find_bcast(const struct inet_world *w, uint32_t addr);

/*
 * The address of d with which to speak to target on the link: false when target is on no network of
 * d.
 */
bool inet_source_on_link(const struct inet_world *w, const struct dev *d, uint32_t target,
    uint32_t *ret_src);

/* ---- inet.c ---- */

/* Owes d's addresses their gratuitous ARPs (again). Holder of netisr 0. */
void inet_announce(struct netisr *n, const struct dev *d);

/* ---- ip4_in.c ---- */

void ip4_input(struct netisr *n, struct dev *d, struct pkt *p);

/* ---- icmp4_in.c ---- */

extern const struct ip_proto icmp4_proto;

/*
 * Meaning of an ICMP error (RFC 1122 3.2.2, 4.2.3.9). False: the message says nothing to a
 * transport.
 */
bool icmp4_error_of(uint8_t type, uint8_t code, uint16_t next_mtu_bytes, uint16_t quoted_bytes,
    struct ip_error *ret);

/* Tells the transport that the packet v (sent by us, transport header at v->payload) has met e. */
void icmp4_tell_transport(struct netisr *n, struct dev *d, const struct ip4_view *v,
    const struct ip_error *e);

/* ---- icmp4_out.c ---- */

/* Takes one message's worth from n's rate limit. */
bool icmp4_may_send(struct netisr *n);

/* An echo request p (ICMP message at data) becomes its reply and is sent. Takes p. */
void icmp4_send_echo_reply(struct netisr *n, struct pkt *p, const struct ip_meta *meta);

#endif
