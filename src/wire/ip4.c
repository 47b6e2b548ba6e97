/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 headers (RFC 791 3.1) and options.
 *
 * The parser checks what would make later reads wrong (version, header length, total length); what
 * is policy (checksum, TTL, addresses, options) is the inet layer's. The reserved flag bit is
 * ignored, as RFC 6864 and practice have it. We emit headers without options. Pure.
 */
#include <string.h>

#include "base/csum.h"
#include "wire/ip4.h"

#define OPT_END			0
#define OPT_NOP			1
#define OPT_RECORD_ROUTE	7
#define OPT_TIMESTAMP		68
#define OPT_LOOSE_ROUTE		131
#define OPT_STRICT_ROUTE	137
#define OPT_ROUTER_ALERT	148

static int
parse_header(const uint8_t *p, size_t len, struct ip4_view *ret)
{
	struct ip4_hdr h;
	uint16_t frag;

	if (len < IP4_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	if (h.ver_hlen >> 4 != 4)
		return WIRE_ERR_VERSION;
	ret->hdr_bytes = (uint8_t)((h.ver_hlen & 0x0f) * 4);
	if (ret->hdr_bytes < IP4_HDR_BYTES || ret->hdr_bytes > len)
		return WIRE_ERR_HLEN;
	ret->total_bytes = be16_to_cpu(h.total_len);
	if (ret->total_bytes < ret->hdr_bytes)
		return WIRE_ERR_LEN;

	frag = be16_to_cpu(h.frag);
	ret->has_df = (frag & IP4_DF) != 0;
	ret->has_mf = (frag & IP4_MF) != 0;
	ret->frag_offset_bytes = (uint16_t)((frag & IP4_OFFSET_MASK) * 8);
	ret->src = h.src;
	ret->dst = h.dst;
	ret->id = be16_to_cpu(h.id);
	ret->tos = h.tos;
	ret->ttl = h.ttl;
	ret->proto = h.proto;
	ret->opts = p + IP4_HDR_BYTES;
	ret->opts_bytes = (uint8_t)(ret->hdr_bytes - IP4_HDR_BYTES);
	ret->payload = p + ret->hdr_bytes;
	return WIRE_OK;
}

int
ip4_parse(const uint8_t *p, size_t len, struct ip4_view *ret)
{
	int err = parse_header(p, len, ret);

	if (err != WIRE_OK)
		return err;
	if (ret->total_bytes > len)
		return WIRE_ERR_LEN;
	ret->payload_bytes = (uint16_t)(ret->total_bytes - ret->hdr_bytes);
	return WIRE_OK;
}

int
ip4_parse_quote(const uint8_t *p, size_t len, struct ip4_view *ret)
{
	int err = parse_header(p, len, ret);

	if (err != WIRE_OK)
		return err;
	ret->payload_bytes = (uint16_t)(min_size(ret->total_bytes, len) - ret->hdr_bytes);
	return WIRE_OK;
}

bool
ip4_csum_ok(const uint8_t *p, size_t hdr_bytes)
{
	return csum_fold(csum_partial(p, hdr_bytes, 0)) == 0;
}

size_t
ip4_emit(uint8_t *buf, const struct ip4_view *v)
{
	unsigned frag = (v->has_df ? IP4_DF : 0u) | (v->has_mf ? IP4_MF : 0u) |
	    (v->frag_offset_bytes / 8u);
	struct ip4_hdr h = {
		.ver_hlen = 0x45,
		.tos = v->tos,
		.total_len = be16_from_cpu(v->total_bytes),
		.id = be16_from_cpu(v->id),
		.frag = be16_from_cpu((uint16_t)frag),
		.ttl = v->ttl,
		.proto = v->proto,
		.src = v->src,
		.dst = v->dst,
	};

	h.csum.raw = csum_fold(csum_partial(&h, sizeof(h), 0));
	memcpy(buf, &h, sizeof(h));
	return IP4_HDR_BYTES;
}

int
ip4_opts_parse(const uint8_t *opts, size_t len, struct ip4_opts *ret)
{
	size_t i, opt_bytes;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < len && opts[i] != OPT_END; i += opt_bytes) {
		if (opts[i] == OPT_NOP) {
			opt_bytes = 1;
			continue;
		}
		if (len - i < 2)
			return WIRE_ERR_BAD;
		opt_bytes = opts[i + 1];
		if (opt_bytes < 2 || opt_bytes > len - i)
			return WIRE_ERR_BAD;
		switch (opts[i]) {
		case OPT_LOOSE_ROUTE:
		case OPT_STRICT_ROUTE:
			ret->has_source_route = true;
			break;
		case OPT_ROUTER_ALERT:
			ret->has_router_alert = true;
			break;
		case OPT_RECORD_ROUTE:
			ret->has_record_route = true;
			break;
		case OPT_TIMESTAMP:
			ret->has_timestamp = true;
			break;
		default:
			break;
		}
	}
	return WIRE_OK;
}
