/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One address type for both families: IPv4 is held as ::ffff:a.b.c.d (RFC 4291 2.5.5.2), so keys,
 * tables and interfaces are the same for IPv6. All-zero bytes mean "any address of any family";
 * ::ffff:0.0.0.0 is IPv4's any.
 */
#ifndef BASE_IPADDR_H
#define BASE_IPADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct ipaddr {
	union {
		uint8_t b[16];
		uint64_t q[2];
		struct {
			uint32_t pad[2];
			struct be32 mapped;	/* 0x0000ffff for IPv4 */
			struct be32 v4;		/* the IPv4 address, network order */
		};
	};
};

struct endpoint {
	struct ipaddr addr;
	uint16_t port;		/* host order */
};

/* The 4-tuple of a packet seen from this host: `local` is its destination when it arrives. */
struct tuple {
	struct ipaddr local;
	struct ipaddr foreign;
	uint16_t lport;		/* host order */
	uint16_t fport;		/* host order */
};

static inline struct ipaddr
ipaddr_v4(struct be32 a)
{
	struct ipaddr r = { .q = { 0, 0 } };

	r.mapped = be32_from_cpu(0xffff);
	r.v4 = a;
	return r;
}

/* host-order spelling: ipaddr_v4_cpu(0x0a000001) is 10.0.0.1 */
static inline struct ipaddr
ipaddr_v4_cpu(uint32_t a)
{
	return ipaddr_v4(be32_from_cpu(a));
}

static inline bool
ipaddr_eq(const struct ipaddr *a, const struct ipaddr *b)
{
	return a->q[0] == b->q[0] && a->q[1] == b->q[1];
}

static inline bool
ipaddr_is_v4(const struct ipaddr *a)
{
	return a->q[0] == 0 && a->mapped.raw == be32_from_cpu(0xffff).raw;
}

/* True for :: and for 0.0.0.0. */
static inline bool
ipaddr_is_any(const struct ipaddr *a)
{
	return a->q[0] == 0 && (a->q[1] == 0 || (ipaddr_is_v4(a) && a->v4.raw == 0));
}

static inline bool
tuple_eq(const struct tuple *a, const struct tuple *b)
{
	return a->lport == b->lport && a->fport == b->fport &&
	    ipaddr_eq(&a->foreign, &b->foreign) && ipaddr_eq(&a->local, &b->local);
}

#define IPADDR_STR_MAX 48

/* Text form into buf (IPADDR_STR_MAX bytes hold any address); returns buf. */
const char *ipaddr_format(const struct ipaddr *a, char *buf, unsigned size);

/* Parses "10.0.0.1" or "fe80::1". Returns 0, or -EINVAL with *ret_addr untouched. */
int ipaddr_parse(const char *text, struct ipaddr *ret_addr);

#endif
