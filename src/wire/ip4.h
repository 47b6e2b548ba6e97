/* SPDX-License-Identifier: BSD-2-Clause */
/* The IPv4 header (RFC 791) and its options. */
#ifndef WIRE_IP4_H
#define WIRE_IP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "wire/wire.h"

#define IP4_HDR_BYTES		20
#define IP4_HDR_MAX_BYTES	60
#define IP4_MIN_MTU_BYTES	68	/* RFC 791 3.2 */
#define IP4_MAX_BYTES		65535

#define IP_PROTO_ICMP		1
#define IP_PROTO_IGMP		2
#define IP_PROTO_TCP		6
#define IP_PROTO_UDP		17
#define IP_PROTO_ICMP6		58

/* the flags and offset word, host order */
#define IP4_DF			0x4000
#define IP4_MF			0x2000
#define IP4_OFFSET_MASK		0x1fff	/* in units of 8 bytes */

#define IP4_ECN_MASK		0x03	/* of tos (RFC 3168) */
#define IP4_ECN_ECT1		0x01
#define IP4_ECN_ECT0		0x02
#define IP4_ECN_CE		0x03

struct ip4_hdr {
	uint8_t ver_hlen;
	uint8_t tos;
	struct be16 total_len;
	struct be16 id;
	struct be16 frag;		/* flags and offset */
	uint8_t ttl;
	uint8_t proto;
	struct be16 csum;
	struct be32 src;
	struct be32 dst;
} PACKED;

STATIC_ASSERT(sizeof(struct ip4_hdr) == IP4_HDR_BYTES, "as on the wire");

/* Also what ip4_emit() writes (payload and opts are not written by it). Host order. */
struct ip4_view {
	struct be32 src;
	struct be32 dst;
	uint16_t total_bytes;		/* header and payload; a frame may be padded beyond */
	uint16_t id;
	uint16_t frag_offset_bytes;	/* a multiple of 8 */
	bool has_df;
	bool has_mf;
	uint8_t tos;
	uint8_t ttl;
	uint8_t proto;
	uint8_t hdr_bytes;		/* 20 to 60 */
	uint8_t opts_bytes;		/* hdr_bytes - 20 */
	const uint8_t *opts;
	const uint8_t *payload;
	uint16_t payload_bytes;
};

/*
 * Checks version and lengths, not the checksum. `len` must hold the header; total_bytes past `len`
 * is WIRE_ERR_LEN, so give the whole packet's length (for an ICMP quote see ip4_parse_quote).
 * WIRE_OK, WIRE_ERR_SHORT, WIRE_ERR_VERSION, WIRE_ERR_HLEN or WIRE_ERR_LEN.
 */
int ip4_parse(const uint8_t *p, size_t len, struct ip4_view *ret);

/* As ip4_parse(), for a packet cut short by an ICMP quote: payload_bytes is what is there. */
int ip4_parse_quote(const uint8_t *p, size_t len, struct ip4_view *ret);

static inline bool
ip4_is_fragment(const struct ip4_view *v)
{
	return v->has_mf || v->frag_offset_bytes != 0;
}

/* True when the header's checksum is right. p holds hdr_bytes bytes. */
bool ip4_csum_ok(const uint8_t *p, size_t hdr_bytes);

/*
 * Writes a header of 20 bytes, checksum included, from src, dst, total_bytes, id, the fragment
 * fields, tos, ttl and proto. Returns 20.
 */
size_t ip4_emit(uint8_t *buf, const struct ip4_view *v);

struct ip4_opts {
	bool has_source_route;		/* LSRR or SSRR; RFC 7126 4.3: to be refused */
	bool has_router_alert;		/* RFC 2113 */
	bool has_record_route;
	bool has_timestamp;
};

/* Walks the options. WIRE_OK, or WIRE_ERR_BAD at the first one whose length is impossible. */
int ip4_opts_parse(const uint8_t *opts, size_t len, struct ip4_opts *ret);

#endif
