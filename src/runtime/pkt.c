/* SPDX-License-Identifier: BSD-2-Clause */
/* What packets of both back ends share: allocation through the stack's table, trimming, copying. */
#include "runtime/pkt.h"

#include <string.h>

#include "runtime/stack.h"

struct pkt *
pkt_alloc(struct netisr *n)
{
	return n->stack->pkt_ops->alloc(n);
}

void
pkt_free(struct netisr *n, struct pkt *p)
{
	while (p != NULL) {
		struct pkt *seg = p->seg;

		n->stack->pkt_ops->free(n, p);
		p = seg;
	}
}

void
pkt_trim(struct netisr *n, struct pkt *p, uint32_t new_total_bytes)
{
	uint32_t left = new_total_bytes;
	struct pkt *seg = p;

	if (new_total_bytes >= p->total_len)
		return;
	while (left > seg->len && seg->seg != NULL) {
		left -= seg->len;
		seg = seg->seg;
	}
	seg->len = (uint16_t)left;
	pkt_free(n, seg->seg);
	seg->seg = NULL;
	p->total_len = new_total_bytes;
}

uint32_t
pkt_copy_out(const struct pkt *p, uint32_t off, void *dst, uint32_t len)
{
	uint8_t *out = dst;
	uint32_t done = 0;

	for (; p != NULL && done < len; p = p->seg) {
		uint32_t n;

		if (off >= p->len) {
			off -= p->len;
			continue;
		}
		n = min_u32(len - done, p->len - off);
		memcpy(out + done, p->data + off, n);
		done += n;
		off = 0;
	}
	return done;
}

struct pkt *
pkt_clone(struct netisr *n, const struct pkt *p)
{
	struct pkt *c;
	uint8_t *dst;

	if (p->total_len > PKT_ROOM_BYTES)
		return NULL;
	c = pkt_alloc(n);
	if (c == NULL)
		return NULL;
	dst = pkt_put(c, (uint16_t)p->total_len);
	pkt_copy_out(p, 0, dst, p->total_len);
	c->flags = p->flags;
	c->rss_hash = p->rss_hash;
	c->l2_len = p->l2_len;
	c->l3_len = p->l3_len;
	c->l4_len = p->l4_len;
	c->tso_mss = p->tso_mss;
	c->vlan_tci = p->vlan_tci;
	c->dev = p->dev;
	c->owner = p->owner;
	return c;
}
