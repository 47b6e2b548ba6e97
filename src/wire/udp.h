/* SPDX-License-Identifier: BSD-2-Clause */
/* The UDP header (RFC 768). */
#ifndef WIRE_UDP_H
#define WIRE_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/ipaddr.h"
#include "wire/wire.h"

#define UDP_HDR_BYTES 8

struct udp_hdr {
	struct be16 sport;
	struct be16 dport;
	struct be16 len;		/* header and payload */
	struct be16 csum;		/* 0: none was computed (IPv4 only) */
} PACKED;

STATIC_ASSERT(sizeof(struct udp_hdr) == UDP_HDR_BYTES, "as on the wire");

struct udp_view {
	uint16_t sport;			/* host order */
	uint16_t dport;
	uint16_t total_bytes;		/* the length field, host order */
	uint16_t csum_raw;		/* as in memory */
	const uint8_t *payload;
	uint16_t payload_bytes;
};

/* `len` is the IP payload's; a shorter UDP length is fine. WIRE_OK, _ERR_SHORT or _ERR_LEN. */
int udp_parse(const uint8_t *p, size_t len, struct udp_view *ret);

/* Writes 8 bytes for payload_bytes of payload, csum_raw as given; returns 8. */
size_t udp_emit(uint8_t *buf, uint16_t sport, uint16_t dport, size_t payload_bytes,
    uint16_t csum_raw);

/* What to store for a sum over pseudo-header, header and payload: 0 is sent as 0xffff. */
uint16_t udp_csum_finish(uint32_t sum);

#endif
