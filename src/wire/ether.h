/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet II frames, with at most one IEEE 802.1Q tag. The FCS is never seen. */
#ifndef WIRE_ETHER_H
#define WIRE_ETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "wire/wire.h"

#define ETHER_ADDR_BYTES	6
#define ETHER_HDR_BYTES		14
#define ETHER_VLAN_BYTES	4
#define ETHER_MIN_FRAME_BYTES	60	/* without FCS; shorter frames are padded on the wire */

#define ETHER_TYPE_IP4		0x0800
#define ETHER_TYPE_ARP		0x0806
#define ETHER_TYPE_VLAN		0x8100
#define ETHER_TYPE_IP6		0x86dd
#define ETHER_TYPE_EXPERIMENT	0x88b5	/* IEEE 802 9.2.3.1: local use only */

#define VLAN_ID_MASK		0x0fff
#define VLAN_PCP_SHIFT		13

struct mac {
	uint8_t b[ETHER_ADDR_BYTES];
};

#define MAC_BROADCAST ((struct mac){ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } })

struct ether_hdr {
	struct mac dst;
	struct mac src;
	struct be16 type;
} PACKED;

STATIC_ASSERT(sizeof(struct ether_hdr) == ETHER_HDR_BYTES, "as on the wire");

struct ether_view {
	struct mac dst;
	struct mac src;
	uint16_t type;		/* host order, of what follows the tag */
	bool has_vlan;
	uint16_t vlan_tci;	/* host order: priority, DEI, VLAN_ID_MASK */
	uint8_t hdr_bytes;	/* 14, or 18 with a tag */
};

static inline bool
mac_eq(const struct mac *a, const struct mac *b)
{
	return memcmp(a->b, b->b, ETHER_ADDR_BYTES) == 0;
}

/* Group addresses: multicast and broadcast. */
static inline bool
mac_is_group(const struct mac *m)
{
	return m->b[0] & 1;
}

static inline bool
mac_is_broadcast(const struct mac *m)
{
	return mac_eq(m, &MAC_BROADCAST);
}

static inline bool
mac_is_zero(const struct mac *m)
{
	return mac_eq(m, &(struct mac){ { 0 } });
}

#define MAC_STR_MAX 18

/* "02:00:00:00:00:01" into buf; returns buf. */
const char *mac_format(const struct mac *m, char *buf, size_t size);

/* Reads that form. Returns 0, or -EINVAL with *ret_mac untouched. */
int mac_parse(const char *text, struct mac *ret_mac);

/* WIRE_OK or WIRE_ERR_SHORT. A second tag is left as type ETHER_TYPE_VLAN. */
int ether_parse(const uint8_t *p, size_t len, struct ether_view *ret);

/* Writes 14 bytes; returns 14. */
size_t ether_emit(uint8_t *buf, const struct mac *dst, const struct mac *src, uint16_t type);

/* Writes 18 bytes with a tag; returns 18. */
size_t ether_emit_vlan(uint8_t *buf, const struct mac *dst, const struct mac *src, uint16_t tci,
    uint16_t type);

#endif
