/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP for IPv4 (RFC 792, RFC 1191): echo and the errors that quote a packet. */
#ifndef WIRE_ICMP4_H
#define WIRE_ICMP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "wire/wire.h"

#define ICMP4_HDR_BYTES		8

#define ICMP4_ECHO_REPLY	0
#define ICMP4_UNREACH		3
#define ICMP4_SOURCE_QUENCH	4	/* deprecated by RFC 6633; ignored */
#define ICMP4_REDIRECT		5
#define ICMP4_ECHO		8
#define ICMP4_TIME_EXCEEDED	11
#define ICMP4_PARAM_PROBLEM	12

/* codes of ICMP4_UNREACH */
#define ICMP4_UNREACH_NET	0
#define ICMP4_UNREACH_HOST	1
#define ICMP4_UNREACH_PROTO	2
#define ICMP4_UNREACH_PORT	3
#define ICMP4_UNREACH_NEEDFRAG	4
#define ICMP4_UNREACH_SRCFAIL	5
#define ICMP4_UNREACH_FILTER	13

struct icmp4_hdr {
	uint8_t type;
	uint8_t code;
	struct be16 csum;
	union {
		struct {
			struct be16 id;
			struct be16 seq;
		} echo;
		struct {
			struct be16 unused;
			struct be16 next_mtu;
		} needfrag;
		struct be32 rest;
	};
} PACKED;

STATIC_ASSERT(sizeof(struct icmp4_hdr) == ICMP4_HDR_BYTES, "as on the wire");

struct icmp4_view {
	uint8_t type;
	uint8_t code;
	uint16_t id;			/* of echo; host order */
	uint16_t seq;			/* of echo; host order */
	uint16_t next_mtu_bytes;	/* of ICMP4_UNREACH_NEEDFRAG; 0 from old routers */
	const uint8_t *data;		/* echo data, or the quoted packet */
	size_t data_bytes;
};

/* Checks only the length. WIRE_OK or WIRE_ERR_SHORT. */
int icmp4_parse(const uint8_t *p, size_t len, struct icmp4_view *ret);

/* True when the checksum over the whole message (contiguous) is right. */
bool icmp4_csum_ok(const uint8_t *p, size_t len);

/* True for the types that report an error about a packet, to which none may be answered. */
bool icmp4_is_error(uint8_t type);

/*
 * Writes header and v->data (which may already lie at buf + 8), checksum included. Returns
 * 8 + data_bytes. buf must have that room.
 */
size_t icmp4_emit(uint8_t *buf, const struct icmp4_view *v);

#endif
