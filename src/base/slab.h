/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A type-stable pool of fixed-size objects with one owner and no locks.
 *
 * - Memory comes in blocks (64 KiB, more for big objects) and stays until slab_fini(): what once
 *   was an object of this slab is one, in use or free, for the slab's life.
 * - A block begins zeroed; slab_alloc() and slab_free() write nothing into an object (the free list
 *   is an array beside the objects). So a generation word keeps its last value in a freed object,
 *   and a stale reader, even of another thread, may compare it.
 * - The most recently freed object is handed out first (warm cache).
 * - Bounded: max_objs is never passed.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct slab_block;

struct slab {
	struct slab_block **blocks;
	uint32_t block_count;
	uint32_t block_limit;		/* slots of blocks[] */
	size_t obj_bytes;		/* stride: size rounded up to the alignment */
	size_t obj_offset;		/* of a block's first object */
	size_t block_bytes;		/* a power of two and the block's alignment */
	uint32_t objs_per_block;
	uint32_t max_objs;
	uint32_t in_use;
	uint32_t made;			/* objects the blocks hold, at most max_objs */
	uint32_t free_head;		/* index of the first free object, or none */
};

/*
 * align is a power of two, at most 4096; 0 means that of max_align_t. max_objs at least 1. Takes no
 * block yet. Returns 0, -EINVAL, or -ENOMEM.
 */
int slab_init(struct slab *s, size_t obj_bytes, size_t align, uint32_t max_objs) MUST_USE;

/* An object with whatever its last user left (zeros at first), or NULL at max or out of memory. */
void *slab_alloc(struct slab *s);

/* Gives back an object of this slab; twice is a bug of ours and stops the program. NULL is fine. */
void slab_free(struct slab *s, void *obj);

/* Returns all memory, also of objects still in use. A zeroed or finished slab is fine. */
void slab_fini(struct slab *s);

static inline uint32_t
slab_in_use(const struct slab *s)
{
	return s->in_use;
}

#endif
