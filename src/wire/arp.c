/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP packets (RFC 826) for IPv4 over Ethernet.
 *
 * Any other hardware, protocol, size or operation is refused here, so that the layer above decides
 * only about addresses. Trailing bytes (Ethernet padding) are ignored. Pure.
 */
#include "wire/arp.h"

#define HW_KIND_ETHER 1

int
arp_parse(const uint8_t *p, size_t len, struct arp_view *ret)
{
	struct arp_hdr h;

	if (len < ARP_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	if (be16_to_cpu(h.hw_kind) != HW_KIND_ETHER || h.hw_bytes != ETHER_ADDR_BYTES ||
	    be16_to_cpu(h.proto_kind) != ETHER_TYPE_IP4 || h.proto_bytes != 4)
		return WIRE_ERR_BAD;

	ret->op = be16_to_cpu(h.op);
	if (ret->op != ARP_OP_REQUEST && ret->op != ARP_OP_REPLY)
		return WIRE_ERR_BAD;
	ret->sender_mac = h.sender_mac;
	ret->sender_ip = h.sender_ip;
	ret->target_mac = h.target_mac;
	ret->target_ip = h.target_ip;
	return WIRE_OK;
}

size_t
arp_emit(uint8_t *buf, const struct arp_view *a)
{
	struct arp_hdr h = {
		.hw_kind = be16_from_cpu(HW_KIND_ETHER),
		.proto_kind = be16_from_cpu(ETHER_TYPE_IP4),
		.hw_bytes = ETHER_ADDR_BYTES,
		.proto_bytes = 4,
		.op = be16_from_cpu(a->op),
		.sender_mac = a->sender_mac,
		.sender_ip = a->sender_ip,
		.target_mac = a->target_mac,
		.target_ip = a->target_ip,
	};

	memcpy(buf, &h, sizeof(h));
	return ARP_BYTES;
}
