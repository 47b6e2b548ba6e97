/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP headers (RFC 768). A UDP length below the IP payload's leaves the rest unseen; that is how
 * Linux and BSD read it too. Whether a zero checksum is acceptable is for the caller, who knows the
 * IP version (RFC 8200 8.1). Pure.
 */
#include <string.h>

#include "base/csum.h"
#include "wire/udp.h"

int
udp_parse(const uint8_t *p, size_t len, struct udp_view *ret)
{
	struct udp_hdr h;

	if (len < UDP_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	ret->total_bytes = be16_to_cpu(h.len);
	if (ret->total_bytes < UDP_HDR_BYTES || ret->total_bytes > len)
		return WIRE_ERR_LEN;
	ret->sport = be16_to_cpu(h.sport);
	ret->dport = be16_to_cpu(h.dport);
	ret->csum_raw = h.csum.raw;
	ret->payload = p + UDP_HDR_BYTES;
	ret->payload_bytes = (uint16_t)(ret->total_bytes - UDP_HDR_BYTES);
	return WIRE_OK;
}

size_t
udp_emit(uint8_t *buf, uint16_t sport, uint16_t dport, size_t payload_bytes, uint16_t csum_raw)
{
	struct udp_hdr h = {
		.sport = be16_from_cpu(sport),
		.dport = be16_from_cpu(dport),
		.len = be16_from_cpu((uint16_t)(payload_bytes + UDP_HDR_BYTES)),
		.csum = { csum_raw },
	};

	memcpy(buf, &h, sizeof(h));
	return UDP_HDR_BYTES;
}

uint16_t
udp_csum_finish(uint32_t sum)
{
	uint16_t csum = csum_fold(sum);

	return csum != 0 ? csum : 0xffff;
}
