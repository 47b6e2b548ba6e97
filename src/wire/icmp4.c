/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP for IPv4 (RFC 792), with the next-hop MTU of RFC 1191 4.
 *
 * The checksum covers the whole message, so it is checked apart: a caller whose packet lies in
 * several pieces sums it itself. Pure.
 */
#include <string.h>

#include "base/csum.h"
#include "wire/icmp4.h"

static bool
is_echo(uint8_t type)
{
	return type == ICMP4_ECHO || type == ICMP4_ECHO_REPLY;
}

static bool
is_needfrag(uint8_t type, uint8_t code)
{
	return type == ICMP4_UNREACH && code == ICMP4_UNREACH_NEEDFRAG;
}

int
icmp4_parse(const uint8_t *p, size_t len, struct icmp4_view *ret)
{
	struct icmp4_hdr h;

	if (len < ICMP4_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	memset(ret, 0, sizeof(*ret));
	ret->type = h.type;
	ret->code = h.code;
	if (is_echo(h.type)) {
		ret->id = be16_to_cpu(h.echo.id);
		ret->seq = be16_to_cpu(h.echo.seq);
	} else if (is_needfrag(h.type, h.code)) {
		ret->next_mtu_bytes = be16_to_cpu(h.needfrag.next_mtu);
	}
	ret->data = p + ICMP4_HDR_BYTES;
	ret->data_bytes = len - ICMP4_HDR_BYTES;
	return WIRE_OK;
}

bool
icmp4_csum_ok(const uint8_t *p, size_t len)
{
	return csum_fold(csum_partial(p, len, 0)) == 0;
}

bool
icmp4_is_error(uint8_t type)
{
	switch (type) {
	case ICMP4_UNREACH:
	case ICMP4_SOURCE_QUENCH:
	case ICMP4_REDIRECT:
	case ICMP4_TIME_EXCEEDED:
	case ICMP4_PARAM_PROBLEM:
		return true;
	default:
		return false;
	}
}

size_t
icmp4_emit(uint8_t *buf, const struct icmp4_view *v)
{
	struct icmp4_hdr h = { .type = v->type, .code = v->code };
	uint8_t *data = buf + ICMP4_HDR_BYTES;
	uint32_t sum;

	if (is_echo(v->type)) {
		h.echo.id = be16_from_cpu(v->id);
		h.echo.seq = be16_from_cpu(v->seq);
	} else if (is_needfrag(v->type, v->code)) {
		h.needfrag.next_mtu = be16_from_cpu(v->next_mtu_bytes);
	}
	if (v->data_bytes > 0 && v->data != data)
		memmove(data, v->data, v->data_bytes);
	sum = csum_partial(&h, sizeof(h), 0);
	h.csum.raw = csum_fold(csum_partial(data, v->data_bytes, sum));
	memcpy(buf, &h, sizeof(h));
	return ICMP4_HDR_BYTES + v->data_bytes;
}
