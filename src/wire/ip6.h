/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixed IPv6 header (RFC 8200 3), no extension headers. */
#ifndef WIRE_IP6_H
#define WIRE_IP6_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/ipaddr.h"
#include "wire/wire.h"

#define IP6_HDR_BYTES		40
#define IP6_MIN_MTU_BYTES	1280

struct ip6_hdr {
	struct be32 ver_class_flow;
	struct be16 payload_len;
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
} PACKED;

STATIC_ASSERT(sizeof(struct ip6_hdr) == IP6_HDR_BYTES, "as on the wire");

/* Host order. The fields but the pointer are also what ip6_emit() writes. */
struct ip6_view {
	struct ipaddr src;
	struct ipaddr dst;
	uint32_t flow_label;		/* 20 bits */
	uint8_t tclass;
	uint8_t next;			/* IP_PROTO_, or an extension header's number */
	uint8_t hop_limit;
	uint16_t payload_bytes;
	const uint8_t *payload;
};

/* WIRE_OK, WIRE_ERR_SHORT, WIRE_ERR_VERSION, or WIRE_ERR_LEN (payload past the end). */
int ip6_parse(const uint8_t *p, size_t len, struct ip6_view *ret);

/* Writes 40 bytes; returns 40. */
size_t ip6_emit(uint8_t *buf, const struct ip6_view *v);

#endif
