/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet II headers and addresses' text form.
 *
 * One 802.1Q tag is looked through; frames with two (802.1ad) come out with type ETHER_TYPE_VLAN,
 * which no upper layer speaks. 802.3 length fields come out as types below 0x600, likewise. Pure.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/ether.h"

const char *
mac_format(const struct mac *m, char *buf, size_t size)
{
	snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", m->b[0], m->b[1], m->b[2], m->b[3],
	    m->b[4], m->b[5]);
	return buf;
}

int
mac_parse(const char *text, struct mac *ret_mac)
{
	struct mac m;
	char *end;
	int i;

	for (i = 0; i < ETHER_ADDR_BYTES; i++) {
		/* strtoul() would take signs and blanks: the first character must be a digit. */
		if (!isxdigit((unsigned char)text[0]))
			return -EINVAL;
		m.b[i] = (uint8_t)strtoul(text, &end, 16);
		if (end - text > 2 || *end != (i < ETHER_ADDR_BYTES - 1 ? ':' : '\0'))
			return -EINVAL;
		text = end + 1;
	}
	*ret_mac = m;
	return 0;
}

int
ether_parse(const uint8_t *p, size_t len, struct ether_view *ret)
{
	struct ether_hdr h;

	if (len < ETHER_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	ret->dst = h.dst;
	ret->src = h.src;
	ret->type = be16_to_cpu(h.type);
	ret->has_vlan = ret->type == ETHER_TYPE_VLAN;
	ret->vlan_tci = 0;
	ret->hdr_bytes = ETHER_HDR_BYTES;
	if (!ret->has_vlan)
		return WIRE_OK;

	if (len < ETHER_HDR_BYTES + ETHER_VLAN_BYTES)
		return WIRE_ERR_SHORT;
	ret->vlan_tci = load_be16(p + ETHER_HDR_BYTES);
	ret->type = load_be16(p + ETHER_HDR_BYTES + 2);
	ret->hdr_bytes = ETHER_HDR_BYTES + ETHER_VLAN_BYTES;
	return WIRE_OK;
}

size_t
ether_emit(uint8_t *buf, const struct mac *dst, const struct mac *src, uint16_t type)
{
	memcpy(buf, dst->b, ETHER_ADDR_BYTES);
	memcpy(buf + ETHER_ADDR_BYTES, src->b, ETHER_ADDR_BYTES);
	store_be16(buf + 2 * ETHER_ADDR_BYTES, type);
	return ETHER_HDR_BYTES;
}

size_t
ether_emit_vlan(uint8_t *buf, const struct mac *dst, const struct mac *src, uint16_t tci,
    uint16_t type)
{
	ether_emit(buf, dst, src, ETHER_TYPE_VLAN);
	store_be16(buf + ETHER_HDR_BYTES, tci);
	store_be16(buf + ETHER_HDR_BYTES + 2, type);
	return ETHER_HDR_BYTES + ETHER_VLAN_BYTES;
}
