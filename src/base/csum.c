/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet checksum sums (RFC 1071).
 *
 * One's-complement addition of 16-bit words may be done in wider words and folded later, and in
 * either byte order (RFC 1071 2). Words of 64 bits are split in two 32-bit halves, each added to
 * its own 64-bit accumulator: no carry chain between additions, so they are done in vectors, and no
 * overflow below 2^34 bytes.
 */
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/csum.h"

#define BLOCK_BYTES	32

struct words {
	uint64_t v __attribute__((vector_size(16)));
};

static inline uint32_t
fold64(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	return (uint32_t)sum;
}

/* Up to 7 bytes, zero-padded to a word. */
static inline uint64_t
load_tail(const uint8_t *p, size_t len_bytes)
{
	uint64_t w = 0;

	memcpy(&w, p, len_bytes);
	return w;
}

/* Blocks of 32 bytes. */
static inline uint64_t
sum_blocks(uint8_t *dst, const uint8_t *p, size_t n_blocks, bool copies)
{
	struct words lo = { { 0 } }, hi = { { 0 } }, lo2 = { { 0 } }, hi2 = { { 0 } };
	struct words w[2];

	for (; n_blocks > 0; n_blocks--, p += sizeof(w)) {
		memcpy(w, p, sizeof(w));
		if (copies) {
			memcpy(dst, w, sizeof(w));
			dst += sizeof(w);
		}
		lo.v += w[0].v & UINT32_MAX;
		hi.v += w[0].v >> 32;
		lo2.v += w[1].v & UINT32_MAX;
		hi2.v += w[1].v >> 32;
	}
	lo.v += hi.v + lo2.v + hi2.v;
	return lo.v[0] + lo.v[1];
}

/* The one loop; `copies` is a constant at both calls, so the stores vanish from csum_partial(). */
static inline uint32_t
sum_bytes(uint8_t *dst, const uint8_t *p, size_t len_bytes, uint32_t sum, bool copies)
{
	size_t in_blocks = len_bytes & ~(size_t)(BLOCK_BYTES - 1);
	uint64_t lo = sum + sum_blocks(dst, p, in_blocks / BLOCK_BYTES, copies), hi = 0;
	uint64_t w;

	p += in_blocks;
	len_bytes -= in_blocks;
	if (copies && len_bytes > 0)
		memcpy(dst + in_blocks, p, len_bytes);
	for (; len_bytes >= 8; len_bytes -= 8, p += 8) {
		memcpy(&w, p, 8);
		lo += w & UINT32_MAX;
		hi += w >> 32;
	}
	if (len_bytes > 0) {
		w = load_tail(p, len_bytes);
		lo += w & UINT32_MAX;
		hi += w >> 32;
	}
	return fold64(lo + hi);
}

uint32_t
csum_partial(const void *p, size_t len_bytes, uint32_t sum)
{
	return sum_bytes(NULL, p, len_bytes, sum, false);
}

uint32_t
csum_partial_copy(void *dst, const void *src, size_t len_bytes, uint32_t sum)
{
	return sum_bytes(dst, src, len_bytes, sum, true);
}

uint32_t
csum_pseudo(const struct ipaddr *src, const struct ipaddr *dst, uint8_t proto,
    uint32_t len_bytes)
{
	uint64_t sum;
	int i;

	/* Zero padding adds nothing, so protocol and length may be added as 32-bit words. */
	sum = (uint64_t)be32_from_cpu(proto).raw + be32_from_cpu(len_bytes).raw;
	if (ipaddr_is_v4(src))
		return fold64(sum + src->v4.raw + dst->v4.raw);
	for (i = 0; i < 2; i++) {
		sum += (src->q[i] & UINT32_MAX) + (src->q[i] >> 32);
		sum += (dst->q[i] & UINT32_MAX) + (dst->q[i] >> 32);
	}
	return fold64(sum);
}
