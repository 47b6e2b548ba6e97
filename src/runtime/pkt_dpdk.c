/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DPDK back end of packets.
 *
 * One mbuf pool a stack. The pool's common part is a lock-free stack (mempool ops "lf_stack"): a
 * thread that is descheduled in it blocks nobody, unlike DPDK's default ring, and threads of an
 * application are descheduled. In front of it is DPDK's cache per lcore id; the id belongs to the
 * netisr's role (eal_dpdk.c), so only a holder ever touches a cache, and control threads, which
 * have no id, go to the common part.
 *
 * Layout of an element: rte_mbuf, struct pkt (private area), head room, data room.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "runtime/config.h"
#include "runtime/eal.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/pkt_dpdk.h"
#include "runtime/stack.h"

/* DPDK last: its container_of gives way to ours. */
#include <rte_errno.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_tcp.h>

#define POOL_CACHE_MAX 256

STATIC_ASSERT(RTE_PKTMBUF_HEADROOM == PKT_HEADROOM_BYTES,
    "devices leave DPDK's head room in front of a frame");
STATIC_ASSERT(sizeof(struct pkt) % RTE_MBUF_PRIV_ALIGN == 0, "DPDK's rule for private areas");
STATIC_ASSERT(sizeof(struct rte_mbuf) % CACHELINE_BYTES == 0, "struct pkt lies on a cache line");

struct dpdk_pool {
	struct rte_mempool *pool;
	uint32_t count;
	uint32_t reserved;
};

static inline struct rte_mbuf *
mbuf_of(const struct pkt *p)
{
	return (struct rte_mbuf *)((uintptr_t)p - sizeof(struct rte_mbuf));
}

struct pkt *
pkt_dpdk_of(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/* ---- the table that pkt.c calls ---- */

static struct pkt *
dpdk_alloc(struct netisr *n)
{
	struct dpdk_pool *dp = n->stack->pkt_priv;
	struct rte_mbuf *m = rte_pktmbuf_alloc(dp->pool);
	struct pkt *p;

	if (m == NULL)
		return NULL;
	p = pkt_dpdk_of(m);
	memset(p, 0, sizeof(*p));
	p->buf = m->buf_addr;
	p->buf_bytes = m->buf_len;
	p->data = p->buf + PKT_HEADROOM_BYTES;
	return p;
}

static void
dpdk_free(UNUSED struct netisr *n, struct pkt *p)
{
	struct rte_mbuf *m = mbuf_of(p);

	/* The chain is struct pkt's; a device that refused the packet left the mbufs linked. */
	m->next = NULL;
	m->nb_segs = 1;
	rte_pktmbuf_free_seg(m);
}

static void
dpdk_fini(struct darter_stack *s)
{
	struct dpdk_pool *dp = s->pkt_priv;

	rte_mempool_free(dp->pool);
	free(dp);
	s->pkt_priv = NULL;
	s->pkt_ops = NULL;
}

static uint32_t
dpdk_available(const struct darter_stack *s)
{
	const struct dpdk_pool *dp = s->pkt_priv;

	return rte_mempool_avail_count(dp->pool);
}

static const struct pkt_pool_ops dpdk_ops = {
	.name = "dpdk",
	.alloc = dpdk_alloc,
	.free = dpdk_free,
	.fini = dpdk_fini,
	.available = dpdk_available,
};

/* ---- the pool ---- */

struct make_pool {
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t count;
	uint32_t cache_pkts;
	struct rte_mempool *pool;
};

/* On a thread of eal_run. */
static int
make_pool(void *arg)
{
	/* NULL: the default, for a DPDK that was built without lf_stack. */
	static const char *const ops[] = { "lf_stack", NULL };
	struct make_pool *mp = arg;

	for (unsigned i = 0; i < ARRAY_LEN(ops) && mp->pool == NULL; i++)
		mp->pool = rte_pktmbuf_pool_create_by_ops(mp->name, mp->count, mp->cache_pkts,
		    sizeof(struct pkt), RTE_PKTMBUF_HEADROOM + PKT_ROOM_BYTES, SOCKET_ID_ANY,
		    ops[i]);
	if (mp->pool == NULL)
		return rte_errno > 0 ? -rte_errno : -ENOMEM;
	return 0;
}

/* At most an eighth of the pool hides in all caches together (a cache grows to 1.5 times its size).
 */
static uint32_t
cache_size(const struct darter_stack *s, uint32_t count)
{
	return min_u32(POOL_CACHE_MAX, count / (12 * s->n_netisrs));
}

int
pkt_dpdk_init(struct darter_stack *s, uint32_t count, char *err, size_t err_size)
{
	static atomic_uint serial;
	struct dpdk_pool *dp = calloc(1, sizeof(*dp));
	struct make_pool mp = { .count = count, .cache_pkts = cache_size(s, count) };
	int rc = -ENOMEM;

	snprintf(mp.name, sizeof(mp.name), "darter%u", atomic_fetch_add(&serial, 1));
	if (dp != NULL)
		rc = eal_run(make_pool, &mp);
	if (rc != 0) {
		free(dp);
		snprintf(err, err_size,
		    "[stack] packets: DPDK has no memory for %u (%s); lower it, or give EAL more "
		    "(eal.args=-m MIB, or free huge pages)",
		    count, rte_strerror(-rc));
		return rc;
	}
	dp->pool = mp.pool;
	dp->count = count;
	s->pkt_priv = dp;
	s->pkt_ops = &dpdk_ops;
	return 0;
}

struct rte_mempool *
pkt_dpdk_pool(const struct darter_stack *s)
{
	return s->pkt_ops == &dpdk_ops ? ((const struct dpdk_pool *)s->pkt_priv)->pool : NULL;
}

uint32_t
pkt_dpdk_unreserved(const struct darter_stack *s)
{
	const struct dpdk_pool *dp = s->pkt_priv;
	uint32_t own = dp->reserved + s->n_netisrs * CONFIG_NETISR_PKTS_MIN;

	return dp->count > own ? dp->count - own : 0;
}

int
pkt_dpdk_reserve(struct darter_stack *s, uint32_t count)
{
	struct dpdk_pool *dp = s->pkt_priv;

	if (count > pkt_dpdk_unreserved(s))
		return -ENOBUFS;
	dp->reserved += count;
	return 0;
}

void
pkt_dpdk_unreserve(struct darter_stack *s, uint32_t count)
{
	struct dpdk_pool *dp = s->pkt_priv;

	dp->reserved -= count;
}

/* ---- receive ---- */

static uint32_t
rx_flags(uint64_t ol)
{
	uint64_t ip = ol & RTE_MBUF_F_RX_IP_CKSUM_MASK, l4 = ol & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	uint32_t flags = 0;

	if (ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		flags |= PKT_RX_IP_CSUM_GOOD;
	else if (ip == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		flags |= PKT_RX_IP_CSUM_BAD;
	/* NONE ("wrong in the packet, yet the data is intact") comes from local peers that leave it
	 * to be filled in. */
	if (l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		flags |= PKT_RX_L4_CSUM_GOOD;
	else if (l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD)
		flags |= PKT_RX_L4_CSUM_BAD;
	if ((ol & RTE_MBUF_F_RX_RSS_HASH) != 0)
		flags |= PKT_RX_RSS_HASH;
	if ((ol & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0)
		flags |= PKT_RX_VLAN;
	return flags;
}

static struct pkt *
pkt_from_segment(struct rte_mbuf *m)
{
	struct pkt *p = pkt_dpdk_of(m);

	memset(p, 0, sizeof(*p));
	p->buf = m->buf_addr;
	p->buf_bytes = m->buf_len;
	p->data = p->buf + m->data_off;
	p->len = m->data_len;
	return p;
}

static void
describe(struct pkt *p, const struct rte_mbuf *m, uint8_t dev)
{
	p->total_len = m->pkt_len;
	p->flags = rx_flags(m->ol_flags);
	p->rss_hash = m->hash.rss;
	p->vlan_tci = m->vlan_tci;
	p->dev = dev;
}

/* The frame's bytes in packets of our own; frees m. NULL when out of packets. */
static struct pkt *
copy_foreign(struct netisr *n, struct rte_mbuf *m, uint8_t dev)
{
	struct pkt *head = NULL, **tail = &head;
	uint32_t off = 0;

	while (off < m->pkt_len) {
		uint32_t len = min_u32(m->pkt_len - off, PKT_ROOM_BYTES);
		struct pkt *p = dpdk_alloc(n);
		const void *src;

		if (p == NULL) {
			pkt_free(n, head);
			head = NULL;
			NETISR_COUNT(n, CTR_drop_pkt_nomem);
			break;
		}
		p->len = (uint16_t)len;
		src = rte_pktmbuf_read(m, off, len, p->data);
		if (src != NULL && src != p->data)
			memcpy(p->data, src, len);
		*tail = p;
		tail = &p->seg;
		off += len;
	}
	if (head != NULL)
		describe(head, m, dev);
	rte_pktmbuf_free(m);
	return head;
}

static struct pkt *
take_own(struct rte_mbuf *m, uint8_t dev)
{
	struct pkt *head = pkt_from_segment(m), *last = head;

	for (struct rte_mbuf *seg = m->next; seg != NULL; seg = seg->next) {
		last->seg = pkt_from_segment(seg);
		last = last->seg;
	}
	describe(head, m, dev);
	return head;
}

unsigned
pkt_dpdk_from_mbufs(
    struct netisr *n, struct rte_mbuf *const *mbufs, struct pkt **pkts, unsigned count, uint8_t dev)
{
	const struct dpdk_pool *dp = n->stack->pkt_priv;
	unsigned done = 0;

	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *m = mbufs[i];
		struct pkt *p;

		if (i + 1 < count)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 1], void *));
		p = likely(m->pool == dp->pool) ? take_own(m, dev) : copy_foreign(n, m, dev);
		if (p != NULL)
			pkts[done++] = p;
	}
	return done;
}

/* ---- transmit ---- */

static uint64_t
tx_flags(const struct pkt *p)
{
	uint64_t ol = 0;

	if ((p->flags & (PKT_TX_IP_CSUM | PKT_TX_TCP_CSUM | PKT_TX_UDP_CSUM | PKT_TX_TSO)) == 0)
		return 0;
	ol |= (p->flags & PKT_TX_IPV6) != 0 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
	if ((p->flags & PKT_TX_IP_CSUM) != 0)
		ol |= RTE_MBUF_F_TX_IP_CKSUM;
	if ((p->flags & PKT_TX_TCP_CSUM) != 0)
		ol |= RTE_MBUF_F_TX_TCP_CKSUM;
	if ((p->flags & PKT_TX_UDP_CSUM) != 0)
		ol |= RTE_MBUF_F_TX_UDP_CKSUM;
	if ((p->flags & PKT_TX_TSO) != 0)
		ol |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
	return ol;
}

/* The device adds each piece's own length to the pseudo-header sum, so the field must be without
 * it. */
static void
seed_tso_csum(const struct pkt *p, uint64_t ol)
{
	uint8_t *ip = p->data + p->l2_len;
	uint16_t sum = (ol & RTE_MBUF_F_TX_IPV6) != 0 ? rte_ipv6_phdr_cksum((const void *)ip, ol)
						      : rte_ipv4_phdr_cksum((const void *)ip, ol);

	memcpy(ip + p->l3_len + offsetof(struct rte_tcp_hdr, cksum), &sum, sizeof(sum));
}

static struct rte_mbuf *
mbuf_from_pkt(struct pkt *head)
{
	struct rte_mbuf *m = mbuf_of(head);
	uint64_t ol = tx_flags(head);
	uint16_t n_segs = 0;

	for (struct pkt *p = head; p != NULL; p = p->seg) {
		struct rte_mbuf *seg = mbuf_of(p);

		seg->data_off = (uint16_t)(p->data - p->buf);
		seg->data_len = p->len;
		seg->next = p->seg != NULL ? mbuf_of(p->seg) : NULL;
		n_segs++;
	}
	m->nb_segs = n_segs;
	m->pkt_len = head->total_len;
	m->ol_flags = ol;
	m->tx_offload = 0;
	if (ol == 0)
		return m;
	m->l2_len = head->l2_len & ((1u << RTE_MBUF_L2_LEN_BITS) - 1);
	m->l3_len = head->l3_len & ((1u << RTE_MBUF_L3_LEN_BITS) - 1);
	if ((head->flags & PKT_TX_TSO) != 0) {
		m->l4_len = head->l4_len & ((1u << RTE_MBUF_L4_LEN_BITS) - 1);
		m->tso_segsz = head->tso_mss;
		seed_tso_csum(head, ol);
	}
	return m;
}

_Bool
pkt_dpdk_to_mbufs(struct pkt *const *pkts, struct rte_mbuf **mbufs, unsigned count)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < count; i++) {
		mbufs[i] = mbuf_from_pkt(pkts[i]);
		any |= mbufs[i]->ol_flags;
	}
	return any != 0;
}
