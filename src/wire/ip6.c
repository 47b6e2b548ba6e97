/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixed IPv6 header (RFC 8200 3). Extension headers are left to the caller: `next` names the
 * first. A payload length of zero (jumbograms, RFC 2675) gives an empty payload. Pure.
 */
#include <string.h>

#include "wire/ip6.h"

int
ip6_parse(const uint8_t *p, size_t len, struct ip6_view *ret)
{
	struct ip6_hdr h;
	uint32_t first;

	if (len < IP6_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	first = be32_to_cpu(h.ver_class_flow);
	if (first >> 28 != 6)
		return WIRE_ERR_VERSION;
	ret->payload_bytes = be16_to_cpu(h.payload_len);
	if (ret->payload_bytes > len - IP6_HDR_BYTES)
		return WIRE_ERR_LEN;

	ret->tclass = (uint8_t)(first >> 20);
	ret->flow_label = first & 0xfffff;
	ret->next = h.next;
	ret->hop_limit = h.hop_limit;
	memcpy(ret->src.b, h.src, 16);
	memcpy(ret->dst.b, h.dst, 16);
	ret->payload = p + IP6_HDR_BYTES;
	return WIRE_OK;
}

size_t
ip6_emit(uint8_t *buf, const struct ip6_view *v)
{
	struct ip6_hdr h = {
		.ver_class_flow = be32_from_cpu((UINT32_C(6) << 28) | ((uint32_t)v->tclass << 20) |
		    (v->flow_label & 0xfffff)),
		.payload_len = be16_from_cpu(v->payload_bytes),
		.next = v->next,
		.hop_limit = v->hop_limit,
	};

	memcpy(h.src, v->src.b, 16);
	memcpy(h.dst, v->dst.b, 16);
	memcpy(buf, &h, sizeof(h));
	return IP6_HDR_BYTES;
}
