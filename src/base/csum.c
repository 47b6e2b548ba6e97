/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet checksum sums (RFC 1071).
 *
 * One's-complement addition of 16-bit words may be done in wider words and folded later, and in
 * either byte order (RFC 1071 2). Words of 64 bits are split in two 32-bit halves, each added to
 * its own 64-bit accumulator: no carry chain between additions, so the processor overlaps them,
 * and no overflow below 2^34 bytes.
 */
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/csum.h"

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

/* The one loop; `copies` is a constant at both calls, so the stores vanish from csum_partial(). */
static inline uint32_t
sum_bytes(uint8_t *dst, const uint8_t *p, size_t len_bytes, uint32_t sum, bool copies)
{
	uint64_t lo = sum, hi = 0, lo2 = 0, hi2 = 0;
	uint64_t w[4];

	for (; len_bytes >= 32; len_bytes -= 32, p += 32) {
		memcpy(w, p, 32);
		if (copies) {
			memcpy(dst, w, 32);
			dst += 32;
		}
		lo += (w[0] & UINT32_MAX) + (w[1] & UINT32_MAX);
		hi += (w[0] >> 32) + (w[1] >> 32);
		lo2 += (w[2] & UINT32_MAX) + (w[3] & UINT32_MAX);
		hi2 += (w[2] >> 32) + (w[3] >> 32);
	}
	if (copies && len_bytes > 0)
		memcpy(dst, p, len_bytes);
	for (; len_bytes >= 8; len_bytes -= 8, p += 8) {
		memcpy(w, p, 8);
		lo += w[0] & UINT32_MAX;
		hi += w[0] >> 32;
	}
	if (len_bytes > 0) {
		w[0] = load_tail(p, len_bytes);
		lo2 += w[0] & UINT32_MAX;
		hi2 += w[0] >> 32;
	}
	return fold64(lo + hi + lo2 + hi2);
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
