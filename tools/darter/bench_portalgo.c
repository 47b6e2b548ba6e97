/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Choosing local ports as others did or do, for comparison; here and not in the library, where the
 * old ways would only be something to attack.
 *
 *   global    one rover through the range under one lock, the next free port is taken: Linux before
 *             2004, and what "no scheme" looks like
 *   evenodd   as Linux' connect scans since 2015: from a keyed offset through all ports of one
 *             parity, then through those of the other
 *
 * Used tuples are in a hash table of chains with a lock for each bucket, as in the kernels: a
 * candidate costs a look at its chain. Destinations are numbers. What a port costs is counted in
 * candidates. RFC 6056 has the offsets' reasons; the ways are described, not taken over.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

#define BUCKETS		65536	/* a power of two */
#define CURSORS		256
#define NONE		UINT32_MAX

struct bucket {
	pthread_spinlock_t lock;
	uint32_t head;
};

struct bench_portset {
	enum bench_portalgo algo;
	uint16_t first;
	uint32_t count;
	unsigned n_dests;
	pthread_mutex_t lock;		/* global: held while it looks */
	uint32_t rover;
	_Atomic uint32_t cursor[CURSORS];	/* evenodd: how far the offsets have come */
	uint64_t secret;
	struct bucket *buckets;
	uint32_t *next;			/* in its chain, by dest * count + port */
};

/* A mixer of 64 bits (the finaliser of MurmurHash3, public domain). */
static uint64_t
mix(uint64_t v)
{
	v ^= v >> 33;
	v *= UINT64_C(0xff51afd7ed558ccd);
	v ^= v >> 33;
	v *= UINT64_C(0xc4ceb9fe1a85ec53);
	return v ^ (v >> 33);
}

struct bench_portset *
bench_portset_new(enum bench_portalgo algo, uint16_t first, uint32_t count, unsigned n_dests)
{
	struct bench_portset *p = calloc(1, sizeof(*p));
	uint32_t i;

	if (p == NULL)
		return NULL;
	p->algo = algo;
	p->first = first;
	p->count = count;
	p->n_dests = n_dests;
	p->secret = mix(bench_now_ns());
	pthread_mutex_init(&p->lock, NULL);
	p->buckets = calloc(BUCKETS, sizeof(*p->buckets));
	p->next = calloc((size_t)count * n_dests, sizeof(*p->next));
	if (p->buckets == NULL || p->next == NULL) {
		free(p->buckets);
		free(p->next);
		free(p);
		return NULL;
	}
	for (i = 0; i < BUCKETS; i++) {
		pthread_spin_init(&p->buckets[i].lock, PTHREAD_PROCESS_PRIVATE);
		p->buckets[i].head = NONE;
	}
	return p;
}

void
bench_portset_free(struct bench_portset *p)
{
	if (p == NULL)
		return;
	free(p->buckets);
	free(p->next);
	free(p);
}

static struct bucket *
bucket_of(struct bench_portset *p, uint32_t node)
{
	return &p->buckets[mix(node ^ p->secret) & (BUCKETS - 1)];
}

/* Uses the tuple if it is free. */
static bool
claim(struct bench_portset *p, uint32_t node)
{
	struct bucket *b = bucket_of(p, node);
	uint32_t at;

	pthread_spin_lock(&b->lock);
	for (at = b->head; at != NONE && at != node; at = p->next[at])
		;
	if (at == NONE) {
		p->next[node] = b->head;
		b->head = node;
	}
	pthread_spin_unlock(&b->lock);
	return at == NONE;
}

static uint16_t
take_global(struct bench_portset *p, unsigned dest, uint64_t *probes)
{
	uint16_t port = 0;
	uint32_t i, at;

	pthread_mutex_lock(&p->lock);
	for (i = 0; i < p->count && port == 0; i++) {
		at = p->rover;
		p->rover = at + 1 == p->count ? 0 : at + 1;
		++*probes;
		if (claim(p, dest * p->count + at))
			port = (uint16_t)(p->first + at);
	}
	pthread_mutex_unlock(&p->lock);
	return port;
}

static uint16_t
take_evenodd(struct bench_portset *p, unsigned dest, uint64_t *probes)
{
	uint64_t hash = mix(p->secret + dest);
	_Atomic uint32_t *cursor = &p->cursor[hash % CURSORS];
	uint32_t even = p->count & ~UINT32_C(1);
	uint32_t start = (uint32_t)(((hash >> 32) + atomic_load_explicit(cursor,
	    memory_order_relaxed)) % even) & ~UINT32_C(1);
	uint32_t parity, i, at;

	for (parity = 0; parity < 2; parity++) {
		for (i = 0; i < even; i += 2) {
			at = (start + i) % even + parity;
			++*probes;
			if (!claim(p, dest * p->count + at))
				continue;
			atomic_fetch_add_explicit(cursor, i + 2, memory_order_relaxed);
			return (uint16_t)(p->first + at);
		}
	}
	return 0;
}

uint16_t
bench_portset_take(struct bench_portset *p, unsigned dest, uint64_t *probes)
{
	return p->algo == BENCH_PORT_GLOBAL ? take_global(p, dest, probes) :
	    take_evenodd(p, dest, probes);
}

void
bench_portset_put(struct bench_portset *p, unsigned dest, uint16_t port)
{
	uint32_t node = dest * p->count + (uint32_t)(port - p->first);
	struct bucket *b = bucket_of(p, node);
	uint32_t *at;

	pthread_spin_lock(&b->lock);
	for (at = &b->head; *at != NONE && *at != node; at = &p->next[*at])
		;
	if (*at == node)
		*at = p->next[node];
	pthread_spin_unlock(&b->lock);
}

uint32_t
bench_portset_fill(struct bench_portset *p, unsigned dest, uint32_t n)
{
	uint32_t i, at, done = 0, even = p->count & ~UINT32_C(1);

	for (i = 0; i < p->count && done < n; i++) {
		/* In the order in which the way itself would have come by. */
		at = p->algo == BENCH_PORT_GLOBAL || i >= even ? i :
		    i < even / 2 ? 2 * i : 2 * (i - even / 2) + 1;
		claim(p, dest * p->count + at);
		done++;
	}
	return done;
}
