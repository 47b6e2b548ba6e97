/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte rings; see ring.h for who may touch what. A chunk covers positions [pos, pos + size); chunks
 * are linked by position without gaps. Growth: a ring that holds little gets a small chunk, a full
 * one a large one, so that an idle connection costs nothing and a busy one few links. A steady
 * stream recycles: the producer puts the chunk that the reader has left behind at the front again
 * instead of asking the depot.
 */
#include "runtime/ring.h"

#include <string.h>

#define FILL_FOR_4K	400u
#define FILL_FOR_64K	(16u * 1024u)

static inline uint32_t
chunk_end(const struct chunk *k)
{
	return k->pos + k->size_bytes;
}

static inline struct chunk *
chunk_next(const struct chunk *k)
{
	return atomic_load_explicit(&k->next, memory_order_relaxed);
}

void
ring_init(struct ring *r, uint32_t cap_bytes)
{
	memset(r, 0, sizeof(*r));
	atomic_init(&r->cap_bytes, cap_bytes);
}

static enum chunk_class
class_for(uint32_t used, uint32_t more)
{
	if (used + more >= FILL_FOR_64K)
		return CHUNK_64K;
	return used + more > FILL_FOR_4K ? CHUNK_4K : CHUNK_512;
}

/* Unlinks the oldest chunk if the reader has gone past it; NULL otherwise. Producer. */
static struct chunk *
reclaim_one(struct ring *r, uint32_t tail)
{
	struct chunk *k = atomic_load_explicit(&r->first, memory_order_relaxed);

	if (k == NULL || k == r->last || (int32_t)(tail - chunk_end(k)) <= 0)
		return NULL;
	atomic_store_explicit(&r->first, chunk_next(k), memory_order_relaxed);
	return k;
}

static void
append_chunk(struct ring *r, struct chunk *k)
{
	atomic_store_explicit(&k->next, NULL, memory_order_relaxed);
	if (r->last == NULL) {
		k->pos = atomic_load_explicit(&r->head, memory_order_relaxed);
		r->write = k;
		atomic_store_explicit(&r->first, k, memory_order_relaxed);
	} else {
		k->pos = chunk_end(r->last);
		atomic_store_explicit(&r->last->next, k, memory_order_relaxed);
	}
	r->last = k;
}

/* One more chunk at the end, large enough a step towards `more` bytes. Producer. */
static bool
grow(struct ring *r, struct chunk_cache *c, uint32_t more)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	uint32_t used = atomic_load_explicit(&r->head, memory_order_relaxed) - tail;
	enum chunk_class want = class_for(used, more);
	struct chunk *k, *old;

	while ((old = reclaim_one(r, tail)) != NULL) {
		if (old->class == want) {
			append_chunk(r, old);
			return true;
		}
		chunk_free(c, old);
	}
	for (;;) {
		k = chunk_alloc(c, want);
		if (k != NULL)
			break;
		if (want == CHUNK_512)
			return false;
		want--;
	}
	append_chunk(r, k);
	return true;
}

/* Makes chunks cover [head, head + upto). Producer. */
static bool
cover(struct ring *r, struct chunk_cache *c, uint32_t upto)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	while (r->last == NULL || (int32_t)(chunk_end(r->last) - (head + upto)) < 0) {
		uint32_t have = r->last == NULL ? 0 : chunk_end(r->last) - head;

		if (!grow(r, c, upto - have))
			return false;
	}
	return true;
}

/* Copies into chunks that exist, from chunk k on. Returns the chunk in which it ended. */
static struct chunk *
copy_in(struct chunk *k, uint32_t pos, const uint8_t *src, uint32_t len)
{
	while ((int32_t)(pos - chunk_end(k)) >= 0 && chunk_next(k) != NULL)
		k = chunk_next(k);
	while (len > 0) {
		uint32_t off = pos - k->pos;
		uint32_t n = min_u32(len, k->size_bytes - off);

		memcpy(k->data + off, src, n);
		src += n;
		pos += n;
		len -= n;
		if (len > 0)
			k = chunk_next(k);
	}
	return k;
}

uint32_t
ring_write(struct ring *r, struct chunk_cache *c, const void *src, uint32_t len)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	len = min_u32(len, ring_space_bytes(r));
	if (len == 0)
		return 0;
	if (!cover(r, c, len)) {
		uint32_t have = r->last == NULL ? 0 : chunk_end(r->last) - head;

		len = min_u32(len, have);
		if (len == 0)
			return 0;
	}
	r->write = copy_in(r->write, head, src, len);
	atomic_store_explicit(&r->head, head + len, memory_order_release);
	return len;
}

bool
ring_write_at(struct ring *r, struct chunk_cache *c, uint32_t off, const void *src, uint32_t len)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (len == 0)
		return true;
	if (!cover(r, c, off + len))
		return false;
	copy_in(r->write, head + off, src, len);
	return true;
}

void
ring_advance(struct ring *r, uint32_t n_bytes)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + n_bytes;

	while ((int32_t)(head - chunk_end(r->write)) > 0)
		r->write = chunk_next(r->write);
	atomic_store_explicit(&r->head, head, memory_order_release);
}

/* The chunk that holds the tail; called with bytes there. Consumer. */
static struct chunk *
tail_chunk(struct ring *r, uint32_t tail)
{
	if (r->cur == NULL)
		r->cur = atomic_load_explicit(&r->first, memory_order_relaxed);
	while (tail - r->cur->pos >= r->cur->size_bytes)
		r->cur = chunk_next(r->cur);
	return r->cur;
}

/*
 * Copies len readable bytes at pos, starting to look in chunk k; returns the chunk of the last
 * byte.
 */
static struct chunk *
copy_from(struct chunk *k, uint32_t pos, uint8_t *dst, uint32_t len)
{
	while (pos - k->pos >= k->size_bytes)
		k = chunk_next(k);
	for (;;) {
		uint32_t off = pos - k->pos;
		uint32_t n = min_u32(len, k->size_bytes - off);

		memcpy(dst, k->data + off, n);
		dst += n;
		pos += n;
		len -= n;
		if (len == 0)
			return k;
		k = chunk_next(k);
	}
}

uint32_t
ring_read(struct ring *r, void *dst, uint32_t len, bool peek)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct chunk *last;

	len = min_u32(len, ring_used_bytes(r));
	if (len == 0)
		return 0;
	last = copy_from(tail_chunk(r, tail), tail, dst, len);
	if (!peek) {
		r->cur = last;
		atomic_store_explicit(&r->tail, tail + len, memory_order_release);
	}
	return len;
}

void
ring_discard(struct ring *r, uint32_t n_bytes)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (n_bytes == 0)
		return;
	/* the cursor stays on the chunk of the last byte taken: see reclaim_one */
	tail_chunk(r, tail);
	while (tail + n_bytes - 1 - r->cur->pos >= r->cur->size_bytes)
		r->cur = chunk_next(r->cur);
	atomic_store_explicit(&r->tail, tail + n_bytes, memory_order_release);
}

void
ring_copy_out(struct ring *r, uint32_t off, void *dst, uint32_t len)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct chunk *from = NULL;

	if (len == 0)
		return;
	if (r->ahead != NULL && (int32_t)(r->ahead_end - tail) >= 0 &&
	    (int32_t)(tail + off - r->ahead->pos) >= 0)
		from = r->ahead;
	if (from == NULL)
		from = tail_chunk(r, tail);
	r->ahead = copy_from(from, tail + off, dst, len);
	r->ahead_end = chunk_end(r->ahead);
}

static void
free_chunks(struct ring *r, struct chunk_cache *c)
{
	struct chunk *k = atomic_load_explicit(&r->first, memory_order_relaxed);

	while (k != NULL) {
		struct chunk *next = chunk_next(k);

		chunk_free(c, k);
		k = next;
	}
	atomic_store_explicit(&r->first, NULL, memory_order_relaxed);
	r->last = NULL;
	r->write = NULL;
	r->cur = NULL;
	r->ahead = NULL;
}

bool
ring_release(struct ring *r, struct chunk_cache *c)
{
	if (!ring_is_empty(r))
		return false;
	free_chunks(r, c);
	return true;
}

void
ring_fini(struct ring *r, struct chunk_cache *c)
{
	free_chunks(r, c);
	atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	atomic_store_explicit(&r->tail, 0, memory_order_relaxed);
}
