/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the byte rings, in three sizes. A depot per stack owns it and bounds it; each netisr
 * keeps a small cache so that its hot path takes no lock. Application threads go to the depot (they
 * recycle their own ring's chunks first, see ring.c, so a steady stream does not).
 */
#ifndef RUNTIME_CHUNK_H
#define RUNTIME_CHUNK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum chunk_class {
	CHUNK_512,
	CHUNK_4K,
	CHUNK_64K,
	CHUNK_CLASSES
};

struct chunk {
	struct chunk *_Atomic next;	/* next in the ring by position, or free-list link */
	uint32_t pos;			/* ring position of data[0] */
	uint32_t size_bytes;		/* of data[] */
	enum chunk_class class;
	uint32_t pad;
	uint8_t data[];
};

struct chunk_depot {
	pthread_spinlock_t lock;
	struct chunk *free[CHUNK_CLASSES];
	uint32_t n_free[CHUNK_CLASSES];
	uint64_t limit_bytes;		/* of all chunks given out */
	_Atomic uint64_t used_bytes;
	void *blocks;			/* list of carved blocks, freed at fini */
};

/* A netisr's cache; `depot` only for a caller without one. */
struct chunk_cache {
	struct chunk_depot *depot;
	struct chunk *free[CHUNK_CLASSES];
	uint16_t n_free[CHUNK_CLASSES];
	uint16_t max_free[CHUNK_CLASSES];	/* 0: everything goes straight to the depot */
	uint64_t spare_bytes;		/* that this one leaves in the depot for the others */
};

/*
 * The last part of a depot is for what is received: bytes that wait to be sent leave only when
 * somebody can take them in, and that may be a ring of the same stack.
 */
static inline uint64_t
chunk_depot_spare_bytes(const struct chunk_depot *d)
{
	return d->limit_bytes / 8;
}

/* Is only that part left? Any thread. */
static inline bool
chunk_depot_is_short(const struct chunk_depot *d)
{
	return atomic_load_explicit(&d->used_bytes, memory_order_relaxed) >
	    d->limit_bytes - chunk_depot_spare_bytes(d);
}

int chunk_depot_init(struct chunk_depot *d, uint64_t limit_bytes);
void chunk_depot_fini(struct chunk_depot *d);

/*
 * is_netisr: keep a cache (holder only); else each call takes the depot's lock and any thread may
 * call.
 */
void chunk_cache_init(struct chunk_cache *c, struct chunk_depot *d, int is_netisr);
void chunk_cache_fini(struct chunk_cache *c);

/* NULL when the depot's limit is reached. */
struct chunk *chunk_alloc(struct chunk_cache *c, enum chunk_class class);
void chunk_free(struct chunk_cache *c, struct chunk *k);

/* Bytes that a class takes from the limit, header included. */
uint32_t chunk_class_bytes(enum chunk_class class);

#endif
