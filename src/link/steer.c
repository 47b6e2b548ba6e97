/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering rings and the owner of a packet.
 *
 * The owner of a flow is stack_owner(tuple), for both directions of a connection the same since
 * both ends are named from this host's view. Packets without ports of their own follow what they
 * belong to: an ICMP error the flow that it quotes, fragments and everything else the hash of the
 * two addresses. A device that hashes by the stack's own key and table (DEV_CAP_RSS) saves the
 * computation for unfragmented TCP and UDP, as long as rss_check.c finds its hashes right.
 *
 * Announcing: the producer stores the tail, then exchanges `announced` with 1 and sends the message
 * if it was 0; the consumer exchanges it with 0 before it looks at the tail. Both are
 * read-modify-writes of one word, so either the producer sees 0 and sends, or the consumer's look
 * comes after the producer's store. The node is unlinked before the consumer clears the word, hence
 * never pushed twice.
 *
 * A full ring drops (drop_steer_full): the consumer is a core that cannot keep up, and the producer
 * must not wait for it.
 */
#include "link/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "link/dev.h"
#include "link/link_priv.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/stack.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"

#define KIND_MASK ((uintptr_t)3)

STATIC_ASSERT((STEER_RING_PKTS & (STEER_RING_PKTS - 1)) == 0, "a power of two");

int
steer_init(struct darter_stack *s)
{
	size_t count = (size_t)s->n_netisrs * s->n_netisrs;
	struct steer_ring *rings;
	size_t i;

	s->link->rings = NULL;
	if (s->n_netisrs == 1)
		return 0;
	rings = aligned_alloc(CACHELINE_BYTES, count * sizeof(*rings));
	if (rings == NULL)
		return -ENOMEM;
	memset(rings, 0, count * sizeof(*rings));
	for (i = 0; i < count; i++) {
		rings[i].node.kind = MSG_STEER;
		rings[i].from = (uint8_t)(i / s->n_netisrs);
	}
	s->link->rings = rings;
	return 0;
}

void
steer_fini(struct darter_stack *s)
{
	free(s->link->rings);
	s->link->rings = NULL;
}

static struct steer_ring *
ring_of(struct darter_stack *s, unsigned from, unsigned to)
{
	return &s->link->rings[from * s->n_netisrs + to];
}

bool
steer_push(struct netisr *n, unsigned to, struct pkt *p, enum steer_kind kind)
{
	struct steer_ring *r = ring_of(n->stack, n->id, to);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - r->head_seen == STEER_RING_PKTS) {
		r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail - r->head_seen == STEER_RING_PKTS)
			return false;
	}
	r->slot[tail & (STEER_RING_PKTS - 1)] = (uintptr_t)p | (uintptr_t)kind;
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	n->link->steer_dirty |= UINT64_C(1) << to;
	return true;
}

void
steer_kick(struct netisr *n)
{
	struct darter_stack *s = n->stack;

	while (n->link->steer_dirty != 0) {
		unsigned to = (unsigned)__builtin_ctzll(n->link->steer_dirty);
		struct steer_ring *r = ring_of(s, n->id, to);

		n->link->steer_dirty &= n->link->steer_dirty - 1;
		if (atomic_exchange_explicit(&r->announced, 1, memory_order_acq_rel) != 0)
			continue;
		NETISR_COUNT(n, CTR_msgs_sent);
		netisr_send(s->netisr[to], &r->node);
	}
}

static void
take_one(struct netisr *n, uintptr_t slot)
{
	struct pkt *p = (struct pkt *)(slot & ~KIND_MASK);
	struct dev *d = dev_get(n->stack, p->dev);

	switch ((enum steer_kind)(slot & KIND_MASK)) {
	case STEER_RX:
		ether_deliver(n, d, p);
		break;
	case STEER_TX:
		ether_enqueue(n, d, p);
		break;
	case STEER_ARP:
		arp_input_copy(n, d, p);
		break;
	}
}

/* Takes up to max packets; clears the ring's ready bit when it has seen it empty. */
static unsigned
drain_ring(struct netisr *n, struct steer_ring *r, unsigned max)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	uint32_t count = min_u32(tail - head, max);
	uint32_t i;

	for (i = 0; i < count; i++) {
		/* not beyond the tail: the producer writes there */
		if (i + 2 < count)
			prefetch((const void *)(r->slot[(head + i + 2) & (STEER_RING_PKTS - 1)] &
			    ~KIND_MASK));
		take_one(n, r->slot[(head + i) & (STEER_RING_PKTS - 1)]);
	}
	atomic_store_explicit(&r->head, head + count, memory_order_release);
	if (count == tail - head)
		n->link->steer_ready &= ~(UINT64_C(1) << r->from);
	return count;
}

unsigned
steer_drain(struct netisr *n)
{
	uint64_t ready = n->link->steer_ready;
	unsigned done = 0;

	while (ready != 0 && done < STEER_BUDGET_PKTS) {
		unsigned from = (unsigned)__builtin_ctzll(ready);

		ready &= ready - 1;
		done += drain_ring(n, ring_of(n->stack, from, n->id), STEER_BUDGET_PKTS - done);
	}
	return done;
}

void
steer_on_message(struct netisr *n, struct msg_node *m)
{
	struct steer_ring *r = container_of(m, struct steer_ring, node);

	atomic_exchange_explicit(&r->announced, 0, memory_order_acq_rel);
	n->link->steer_ready |= UINT64_C(1) << r->from;
	drain_ring(n, r, STEER_BUDGET_PKTS);
	/* what these packets made us steer on must not wait for the next receive burst */
	steer_kick(n);
}

static unsigned
owner_by_addrs(const struct darter_stack *s, struct be32 src, struct be32 dst)
{
	struct ipaddr a = ipaddr_v4(src), b = ipaddr_v4(dst);

	return s->reta[toeplitz_addrs(&s->rss, &a, &b) & (s->reta_size - 1u)];
}

static unsigned
owner_by_flow(const struct darter_stack *s, struct be32 local, struct be32 foreign, uint16_t lport,
    uint16_t fport)
{
	struct tuple t = {
		.local = ipaddr_v4(local),
		.foreign = ipaddr_v4(foreign),
		.lport = lport,
		.fport = fport,
	};

	return stack_owner(s, &t)->id;
}

static bool
has_ports(uint8_t proto)
{
	return proto == IP_PROTO_TCP || proto == IP_PROTO_UDP;
}

bool
steer_hash(const struct darter_stack *s, const uint8_t *ip, size_t len, uint32_t *ret_hash)
{
	struct ip4_view v;
	struct tuple t;

	if (ip4_parse_quote(ip, len, &v) != WIRE_OK || !has_ports(v.proto) ||
	    ip4_is_fragment(&v) || v.payload_bytes < 4)
		return false;
	t.local = ipaddr_v4(v.dst);
	t.foreign = ipaddr_v4(v.src);
	t.fport = load_be16(v.payload);
	t.lport = load_be16(v.payload + 2);
	*ret_hash = toeplitz_tuple(&s->rss, &t);
	return true;
}

/*
 * The flow that an ICMP error is about: we have sent the quoted packet, so its source is the local
 * end.
 */
static bool
quoted_owner(const struct darter_stack *s, const uint8_t *icmp, size_t len, unsigned *ret_owner)
{
	struct icmp4_view icmp_view;
	struct ip4_view q;

	if (icmp4_parse(icmp, len, &icmp_view) != WIRE_OK || !icmp4_is_error(icmp_view.type))
		return false;
	if (ip4_parse_quote(icmp_view.data, icmp_view.data_bytes, &q) != WIRE_OK)
		return false;
	if (!has_ports(q.proto) || ip4_is_fragment(&q) || q.payload_bytes < 4)
		return false;
	*ret_owner = owner_by_flow(s, q.src, q.dst, load_be16(q.payload), load_be16(q.payload + 2));
	return true;
}

unsigned
steer_owner(const struct darter_stack *s, const struct dev *d, const struct pkt *p,
    uint16_t ethertype, unsigned here, enum steer_cause *ret_cause)
{
	struct ip4_view v;
	unsigned owner;

	*ret_cause = STEER_CAUSE_NONE;
	/* The quote parser bounds itself by the first segment alone, where the headers are. */
	if (ethertype != ETHER_TYPE_IP4 || ip4_parse_quote(p->data, p->len, &v) != WIRE_OK)
		return here;
	if (has_ports(v.proto) && !ip4_is_fragment(&v) && v.payload_bytes >= 4) {
		*ret_cause = STEER_CAUSE_FLOW;
		if (dev_hashes(d) && (p->flags & PKT_RX_RSS_HASH))
			return s->reta[p->rss_hash & (s->reta_size - 1u)];
		return owner_by_flow(s, v.dst, v.src, load_be16(v.payload + 2),
		    load_be16(v.payload));
	}
	if (v.proto == IP_PROTO_ICMP && !ip4_is_fragment(&v) &&
	    quoted_owner(s, v.payload, v.payload_bytes, &owner)) {
		*ret_cause = STEER_CAUSE_QUOTE;
		return owner;
	}
	*ret_cause = STEER_CAUSE_ADDRS;
	return owner_by_addrs(s, v.src, v.dst);
}
