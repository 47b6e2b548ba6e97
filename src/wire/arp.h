/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP for IPv4 over Ethernet (RFC 826), the only pair of kinds read or written. */
#ifndef WIRE_ARP_H
#define WIRE_ARP_H

#include "base/bytes.h"
#include "wire/ether.h"

#define ARP_BYTES	28
#define ARP_OP_REQUEST	1
#define ARP_OP_REPLY	2

struct arp_hdr {
	struct be16 hw_kind;		/* 1: Ethernet */
	struct be16 proto_kind;		/* ETHER_TYPE_IP4 */
	uint8_t hw_bytes;
	uint8_t proto_bytes;
	struct be16 op;
	struct mac sender_mac;
	struct be32 sender_ip;
	struct mac target_mac;
	struct be32 target_ip;
} PACKED;

STATIC_ASSERT(sizeof(struct arp_hdr) == ARP_BYTES, "as on the wire");

struct arp_view {
	uint16_t op;			/* ARP_OP_, never another */
	struct mac sender_mac;
	struct mac target_mac;
	struct be32 sender_ip;
	struct be32 target_ip;
};

/* p is what follows the Ethernet header. WIRE_OK, WIRE_ERR_SHORT, or WIRE_ERR_BAD. */
int arp_parse(const uint8_t *p, size_t len, struct arp_view *ret);

/* Writes 28 bytes; returns 28. */
size_t arp_emit(uint8_t *buf, const struct arp_view *a);

#endif
