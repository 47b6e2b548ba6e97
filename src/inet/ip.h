/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network layer's face: what transports send through and register with, addresses, routes,
 * source address choice. IPv6 fits the same calls (struct ipaddr); this version carries IPv4 only
 * and says EAFNOSUPPORT for the rest.
 */
#ifndef INET_IP_H
#define INET_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"

struct darter_stack;
struct dev;
struct netisr;
struct pkt;
struct layer;

/* What a transport needs to know of a packet that came in. Addresses live in the caller's frame. */
struct ip_meta {
	struct ipaddr src;
	struct ipaddr dst;
	struct dev *dev;
	uint8_t proto;
	uint8_t ttl;
	uint8_t tos;
	/* link- or IP-level broadcast or multicast: never answered with RST or ICMP */
	bool is_broadcast;
	uint16_t ip_hlen;	/* header bytes in front of p->data, still readable there */
};

/*
 * ICMP errors about something this transport has sent. `quoted` points at the transport header
 * inside the ICMP message (at least 8 bytes). meta->src/dst are those of the *quoted* packet: src
 * is ours. err is the errno of RFC 1122 4.2.3.9 / 4.1.3.3 (ECONNREFUSED, EHOSTUNREACH, ENETUNREACH,
 * EMSGSIZE, …); is_soft says it must not abort a connection.
 */
struct ip_error {
	int err;
	bool is_soft;
	uint16_t mtu;		/* EMSGSIZE only */
};

struct ip_proto {
	/*
	 * p->data at the transport header, p->total_len exact (padding cut). Takes p. Holder of n,
	 * the tuple's owner.
	 */
	void (*input)(struct netisr *n, struct pkt *p, const struct ip_meta *meta);
	void (*error)(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted,
	    uint32_t quoted_len, const struct ip_error *e);
};

/* At set-up. */
void ip_register(struct darter_stack *s, uint8_t proto, const struct ip_proto *ops);

/* A resolved way out, kept by a pcb; refreshed when `gen` differs from ip_route_gen(). */
struct ip_route {
	struct dev *dev;
	struct ipaddr next_hop;
	struct ipaddr src;	/* preferred source address */
	uint16_t mtu;
	bool is_local;		/* destination is this host */
	bool is_broadcast;	/* destination is a broadcast or multicast address */
	uint32_t gen;
};

uint32_t ip_route_gen(const struct darter_stack *s);

/*
 * Longest prefix match for dst, source address chosen by RFC 1122 3.3.4.3 (`src` not any: it must
 * be ours, and wins). 0; -ENETUNREACH, -EADDRNOTAVAIL, -EAFNOSUPPORT. Holder of any netisr of s, or
 * with the control mutex held.
 */
int ip_route_lookup(struct darter_stack *s, const struct ipaddr *dst, const struct ipaddr *src,
    struct ip_route *ret_route);

/* Is `a` an address of this host (127/8 included)? Same rule for who may call. */
bool ip_is_own(struct darter_stack *s, const struct ipaddr *a);
bool ip_is_broadcast(struct darter_stack *s, const struct ipaddr *a);

struct ip_out {
	struct ipaddr src;
	struct ipaddr dst;
	uint8_t proto;
	uint8_t ttl;		/* 0: default (64) */
	uint8_t tos;
	bool dont_fragment;
};

/*
 * Adds the IP header to p (data at the transport header, checksum flags as pkt.h says) and sends it
 * along r. Takes p in every case. 0, or -EMSGSIZE (larger than r->mtu and not TSO), -ENOBUFS.
 * Holder of n.
 */
int ip_output(struct netisr *n, struct pkt *p, const struct ip_route *r, const struct ip_out *o);

/*
 * Sends an ICMP error about the packet p that came in (data at the transport header, meta as
 * received); RFC 1122 3.2.2 says when not to, and the rate is limited. Does not take p.
 */
enum ip_unreach {
	IP_UNREACH_NET = 0,
	IP_UNREACH_HOST = 1,
	IP_UNREACH_PROTO = 2,
	IP_UNREACH_PORT = 3,
};
void icmp_send_unreach(struct netisr *n, const struct pkt *p, const struct ip_meta *meta,
    enum ip_unreach code);

/*
 * Addresses and routes at run time (control). Control mutex is taken inside. 0 or negative errno.
 */
int ip_addr_add(struct darter_stack *s, struct dev *d, const struct ipaddr *a, uint8_t prefix_bits);
int ip_addr_del(struct darter_stack *s, struct dev *d, const struct ipaddr *a);
int ip_route_add(struct darter_stack *s, const struct ipaddr *dst, uint8_t prefix_bits,
    const struct ipaddr *gateway);
int ip_route_del(struct darter_stack *s, const struct ipaddr *dst, uint8_t prefix_bits);

extern const struct layer inet_layer;

#endif
