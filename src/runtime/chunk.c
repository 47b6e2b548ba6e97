/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunk memory. Small classes are carved from 64 KiB blocks that the depot keeps until it ends; a
 * 64 KiB chunk is a block of its own. The limit counts what is out (in rings and in netisrs'
 * caches). The depot's lock is held for a list operation or one malloc, never across a copy.
 */
#include "runtime/chunk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES	(64u * 1024u)
#define CACHE_MAX_512	64
#define CACHE_MAX_4K	32
#define CACHE_MAX_64K	4

struct block {
	struct block *next;
};

/* A block's first line is its list link; the rest is chunks. */
#define BLOCK_HEAD_BYTES CACHELINE_BYTES

static const uint32_t class_bytes[CHUNK_CLASSES] = { 512, 4096, BLOCK_BYTES };

uint32_t
chunk_class_bytes(enum chunk_class class)
{
	return class_bytes[class];
}

int
chunk_depot_init(struct chunk_depot *d, uint64_t limit_bytes)
{
	memset(d, 0, sizeof(*d));
	d->limit_bytes = limit_bytes;
	return -pthread_spin_init(&d->lock, PTHREAD_PROCESS_PRIVATE);
}

void
chunk_depot_fini(struct chunk_depot *d)
{
	struct block *b = d->blocks;

	while (b != NULL) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
	pthread_spin_destroy(&d->lock);
	memset(d, 0, sizeof(*d));
}

static void
push_free(struct chunk_depot *d, struct chunk *k)
{
	atomic_store_explicit(&k->next, d->free[k->class], memory_order_relaxed);
	d->free[k->class] = k;
	d->n_free[k->class]++;
}

/* Lock held. Carves one more block into chunks of the class. */
static int
carve(struct chunk_depot *d, enum chunk_class class)
{
	uint32_t size = class_bytes[class];
	size_t total = class == CHUNK_64K ? BLOCK_HEAD_BYTES + (size_t)size : BLOCK_BYTES;
	struct block *b = aligned_alloc(CACHELINE_BYTES, total);
	size_t off;

	if (b == NULL)
		return -ENOMEM;
	b->next = d->blocks;
	d->blocks = b;
	for (off = BLOCK_HEAD_BYTES; off + size <= total; off += size) {
		struct chunk *k = (struct chunk *)(void *)((char *)b + off);

		k->class = class;
		k->size_bytes = size - (uint32_t)sizeof(struct chunk);
		push_free(d, k);
	}
	return 0;
}

/* Up to `want` chunks as a list; fewer at the limit or without memory. */
static struct chunk *
depot_get(struct chunk_cache *c, enum chunk_class class, unsigned want, unsigned *ret_got)
{
	struct chunk_depot *d = c->depot;
	uint32_t size = class_bytes[class];
	struct chunk *list = NULL;
	unsigned got = 0;

	pthread_spin_lock(&d->lock);
	while (got < want) {
		uint64_t used = atomic_load_explicit(&d->used_bytes, memory_order_relaxed);
		struct chunk *k;

		if (used + size + c->spare_bytes > d->limit_bytes)
			break;
		if (d->free[class] == NULL && carve(d, class) < 0)
			break;
		k = d->free[class];
		d->free[class] = atomic_load_explicit(&k->next, memory_order_relaxed);
		d->n_free[class]--;
		atomic_store_explicit(&d->used_bytes, used + size, memory_order_relaxed);
		atomic_store_explicit(&k->next, list, memory_order_relaxed);
		list = k;
		got++;
	}
	pthread_spin_unlock(&d->lock);
	*ret_got = got;
	return list;
}

static void
depot_put(struct chunk_depot *d, struct chunk *list)
{
	pthread_spin_lock(&d->lock);
	while (list != NULL) {
		struct chunk *next = atomic_load_explicit(&list->next, memory_order_relaxed);

		atomic_fetch_sub_explicit(&d->used_bytes, class_bytes[list->class],
		    memory_order_relaxed);
		push_free(d, list);
		list = next;
	}
	pthread_spin_unlock(&d->lock);
}

void
chunk_cache_init(struct chunk_cache *c, struct chunk_depot *d, int is_netisr)
{
	memset(c, 0, sizeof(*c));
	c->depot = d;
	if (is_netisr) {
		c->max_free[CHUNK_512] = CACHE_MAX_512;
		c->max_free[CHUNK_4K] = CACHE_MAX_4K;
		c->max_free[CHUNK_64K] = CACHE_MAX_64K;
	}
}

void
chunk_cache_fini(struct chunk_cache *c)
{
	unsigned i;

	for (i = 0; i < CHUNK_CLASSES; i++) {
		depot_put(c->depot, c->free[i]);
		c->free[i] = NULL;
		c->n_free[i] = 0;
	}
}

struct chunk *
chunk_alloc(struct chunk_cache *c, enum chunk_class class)
{
	struct chunk *k = c->free[class];
	unsigned got;

	if (c->max_free[class] == 0)	/* shared by threads: nothing is kept here */
		return depot_get(c, class, 1, &got);
	if (k == NULL) {
		/* half a cache at a time, so that a put after a get does not go back at once */
		k = depot_get(c, class, c->max_free[class] / 2u + 1u, &got);
		if (k == NULL)
			return NULL;
		c->free[class] = k;
		c->n_free[class] = (uint16_t)got;
	}
	c->free[class] = atomic_load_explicit(&k->next, memory_order_relaxed);
	c->n_free[class]--;
	atomic_store_explicit(&k->next, NULL, memory_order_relaxed);
	return k;
}

void
chunk_free(struct chunk_cache *c, struct chunk *k)
{
	enum chunk_class class = k->class;

	if (c->n_free[class] >= c->max_free[class]) {
		atomic_store_explicit(&k->next, NULL, memory_order_relaxed);
		depot_put(c->depot, k);
		return;
	}
	atomic_store_explicit(&k->next, c->free[class], memory_order_relaxed);
	c->free[class] = k;
	c->n_free[class]++;
}
