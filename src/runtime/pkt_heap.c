/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets from the heap: one array made at set-up, so that everything runs without DPDK's memory
 * (tests, simulation, loopback, memory cable). Under ASan the buffers of free packets are poisoned,
 * so a late use is seen. A free list per stack behind a lock, with a cache per netisr in front of
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pkt.h"
#include "runtime/stack.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, size)		ASAN_POISON_MEMORY_REGION((p), (size))
#define UNPOISON(p, size)	ASAN_UNPOISON_MEMORY_REGION((p), (size))
#else
#define POISON(p, size)		((void)(p))
#define UNPOISON(p, size)	((void)(p))
#endif

#define BUF_BYTES	(PKT_HEADROOM_BYTES + PKT_ROOM_BYTES)
#define CACHE_BATCH	(NETISR_PKT_CACHE / 2)

struct heap_pkt {
	struct pkt pkt;
	uint8_t buf[BUF_BYTES];
};

struct heap_pool {
	pthread_spinlock_t lock;
	struct heap_pkt *all;
	struct pkt *free;
	_Atomic uint32_t n_free;
	uint32_t count;
};

static void
refill(struct netisr *n, struct heap_pool *pool)
{
	/* a small pool must not end up in one netisr's cache */
	uint32_t want = min_u32(CACHE_BATCH, pool->count / (4 * n->stack->n_netisrs) + 1);
	uint32_t free;

	pthread_spin_lock(&pool->lock);
	free = atomic_load_explicit(&pool->n_free, memory_order_relaxed);
	while (pool->free != NULL && n->n_pkt_cache < want) {
		n->pkt_cache[n->n_pkt_cache++] = pool->free;
		pool->free = pool->free->next;
		free--;
	}
	atomic_store_explicit(&pool->n_free, free, memory_order_relaxed);
	pthread_spin_unlock(&pool->lock);
}

static void
spill(struct netisr *n, struct heap_pool *pool, uint32_t keep)
{
	uint32_t free;

	pthread_spin_lock(&pool->lock);
	free = atomic_load_explicit(&pool->n_free, memory_order_relaxed);
	while (n->n_pkt_cache > keep) {
		struct pkt *p = n->pkt_cache[--n->n_pkt_cache];

		p->next = pool->free;
		pool->free = p;
		free++;
	}
	atomic_store_explicit(&pool->n_free, free, memory_order_relaxed);
	pthread_spin_unlock(&pool->lock);
}

static struct pkt *
heap_alloc(struct netisr *n)
{
	struct pkt *p;
	uint8_t *buf;

	if (n->n_pkt_cache == 0)
		refill(n, n->stack->pkt_priv);
	if (n->n_pkt_cache == 0)
		return NULL;
	p = n->pkt_cache[--n->n_pkt_cache];
	buf = p->buf;
	UNPOISON(buf, BUF_BYTES);
	memset(p, 0, sizeof(*p));
	p->buf = buf;
	p->buf_bytes = BUF_BYTES;
	p->data = buf + PKT_HEADROOM_BYTES;
	return p;
}

static void
heap_free(struct netisr *n, struct pkt *p)
{
	struct heap_pool *pool = n->stack->pkt_priv;
	uint32_t max = min_u32(NETISR_PKT_CACHE, pool->count / (2 * n->stack->n_netisrs) + 1);

	POISON(p->buf, BUF_BYTES);
	if (n->n_pkt_cache >= max)
		spill(n, pool, max / 2);
	n->pkt_cache[n->n_pkt_cache++] = p;
}

static void
heap_fini(struct darter_stack *s)
{
	struct heap_pool *pool = s->pkt_priv;

	UNPOISON(pool->all, pool->count * sizeof(*pool->all));
	pthread_spin_destroy(&pool->lock);
	free(pool->all);
	free(pool);
	s->pkt_priv = NULL;
}

/* Counts the netisrs' caches too, so that a test finds every packet back. */
static uint32_t
heap_available(const struct darter_stack *s)
{
	const struct heap_pool *pool = s->pkt_priv;
	uint32_t sum = atomic_load_explicit(&pool->n_free, memory_order_relaxed);
	unsigned i;

	for (i = 0; i < s->n_netisrs; i++)
		sum += s->netisr[i]->n_pkt_cache;
	return sum;
}

static const struct pkt_pool_ops heap_ops = {
	.name = "heap",
	.alloc = heap_alloc,
	.free = heap_free,
	.fini = heap_fini,
	.available = heap_available,
};

int
pkt_heap_init(struct darter_stack *s, uint32_t count)
{
	struct heap_pool *pool = calloc(1, sizeof(*pool));
	uint32_t i;

	if (pool == NULL)
		return -ENOMEM;
	pool->all = aligned_alloc(CACHELINE_BYTES, (size_t)count * sizeof(*pool->all));
	if (pool->all == NULL) {
		free(pool);
		return -ENOMEM;
	}
	pthread_spin_init(&pool->lock, PTHREAD_PROCESS_PRIVATE);
	pool->count = count;
	for (i = count; i-- > 0;) {
		struct pkt *p = &pool->all[i].pkt;

		p->buf = pool->all[i].buf;
		p->next = pool->free;
		pool->free = p;
		POISON(p->buf, BUF_BYTES);
	}
	atomic_init(&pool->n_free, count);
	s->pkt_priv = pool;
	s->pkt_ops = &heap_ops;
	return 0;
}
