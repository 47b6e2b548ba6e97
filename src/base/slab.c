/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Type-stable pool of fixed-size objects.
 *
 * A block is aligned to its own size, so an object's block is found by masking its address. It
 * holds a header, an array `next` with one link per object (the free list lives here, not in the
 * objects, so that a freed object keeps every byte), and the objects. Objects are numbered through
 * all blocks; links are those numbers. An object in use has the link LINK_USED, which finds double
 * frees. Blocks are added when the free list is empty and given back only by slab_fini().
 *
 * The owner alone calls; others may at most read words of objects.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

#define BLOCK_MIN_BYTES		((size_t)64 << 10)
#define BLOCK_MAX_BYTES		((size_t)1 << 30)
#define OBJS_PER_BLOCK_MIN	8	/* big objects get bigger blocks */
#define ALIGN_MAX_BYTES		4096

#define LINK_NONE		UINT32_MAX
#define LINK_USED		(UINT32_MAX - 1)

struct slab_block {
	uint32_t first_index;	/* number of the block's first object */
	uint32_t objs;		/* usable: the last block may pass max_objs */
	uint32_t next[];
};

static inline size_t
round_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static inline size_t
header_bytes(uint32_t objs)
{
	return sizeof(struct slab_block) + (size_t)objs * sizeof(uint32_t);
}

/* How many objects a block of this size holds beside their links. */
static uint32_t
objs_in_block(size_t block_bytes, size_t obj_bytes, size_t align)
{
	uint32_t n = (uint32_t)(block_bytes / (obj_bytes + sizeof(uint32_t)));

	while (n > 0 && round_up(header_bytes(n), align) + n * obj_bytes > block_bytes)
		n--;
	return n;
}

int
slab_init(struct slab *s, size_t obj_bytes, size_t align, uint32_t max_objs)
{
	memset(s, 0, sizeof(*s));
	if (align == 0)
		align = _Alignof(max_align_t);
	if (obj_bytes == 0 || obj_bytes > BLOCK_MAX_BYTES / (2 * OBJS_PER_BLOCK_MIN) ||
	    (align & (align - 1)) != 0 || align > ALIGN_MAX_BYTES ||
	    max_objs == 0 || max_objs >= LINK_USED)
		return -EINVAL;

	s->obj_bytes = round_up(obj_bytes, align);
	s->block_bytes = BLOCK_MIN_BYTES;
	while (objs_in_block(s->block_bytes, s->obj_bytes, align) < OBJS_PER_BLOCK_MIN)
		s->block_bytes *= 2;
	s->objs_per_block = objs_in_block(s->block_bytes, s->obj_bytes, align);
	s->obj_offset = round_up(header_bytes(s->objs_per_block), align);
	s->max_objs = max_objs;
	s->free_head = LINK_NONE;

	s->block_limit = (max_objs - 1) / s->objs_per_block + 1;
	s->blocks = calloc(s->block_limit, sizeof(*s->blocks));
	return s->blocks == NULL ? -ENOMEM : 0;
}

/* Adds a block whose objects, lowest number first, become the free list. Needs an empty one. */
static int
add_block(struct slab *s)
{
	struct slab_block *b;
	uint32_t i;

	if (s->block_count == s->block_limit)
		return -ENOBUFS;
	b = aligned_alloc(s->block_bytes, s->block_bytes);
	if (b == NULL)
		return -ENOMEM;

	memset(b, 0, s->block_bytes);
	b->first_index = s->made;
	b->objs = min_u32(s->objs_per_block, s->max_objs - s->made);
	for (i = 0; i < b->objs; i++)
		b->next[i] = b->first_index + i + 1;
	b->next[b->objs - 1] = LINK_NONE;

	s->blocks[s->block_count++] = b;
	s->free_head = b->first_index;
	s->made += b->objs;
	return 0;
}

void *
slab_alloc(struct slab *s)
{
	struct slab_block *b;
	uint32_t slot;

	if (s->free_head == LINK_NONE && add_block(s) < 0)
		return NULL;

	b = s->blocks[s->free_head / s->objs_per_block];
	slot = s->free_head - b->first_index;
	s->free_head = b->next[slot];
	b->next[slot] = LINK_USED;
	s->in_use++;
	return (char *)b + s->obj_offset + slot * s->obj_bytes;
}

void
slab_free(struct slab *s, void *obj)
{
	size_t offset = (uintptr_t)obj & (s->block_bytes - 1);
	struct slab_block *b;
	uint32_t slot;

	if (obj == NULL)
		return;
	b = (struct slab_block *)(void *)((char *)obj - offset);
	slot = (uint32_t)((offset - s->obj_offset) / s->obj_bytes);
	assert(s->blocks[b->first_index / s->objs_per_block] == b);
	assert(slot < b->objs && s->obj_offset + slot * s->obj_bytes == offset);
	assert(b->next[slot] == LINK_USED);

	b->next[slot] = s->free_head;
	s->free_head = b->first_index + slot;
	s->in_use--;
}

void
slab_fini(struct slab *s)
{
	uint32_t i;

	for (i = 0; i < s->block_count; i++)
		free(s->blocks[i]);
	free(s->blocks);
	memset(s, 0, sizeof(*s));
	s->free_head = LINK_NONE;
}
