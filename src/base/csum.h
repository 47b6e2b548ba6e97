/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071): one's-complement sums over bytes as they lie in memory.
 *
 * A partial sum is a uint32_t in *memory* order, so it never needs swapping: csum_fold() gives the
 * 16 bits to store raw in a header (`hdr->csum.raw = csum_fold(sum)`). A sum over a header whose
 * checksum field is right folds to 0. Pure functions; any thread.
 */
#ifndef BASE_CSUM_H
#define BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"

/*
 * Adds `len_bytes` bytes at p (any alignment) to `sum`. An odd last byte counts as padded with a
 * zero, so only the last block of a chain may be odd; else see csum_append().
 */
uint32_t csum_partial(const void *p, size_t len_bytes, uint32_t sum);

/* Copies len_bytes from src to dst (no overlap) and returns csum_partial(src, len_bytes, sum). */
uint32_t csum_partial_copy(void *dst, const void *src, size_t len_bytes, uint32_t sum);

/*
 * The pseudo-header's sum: RFC 9293 3.1 when src is IPv4 (v4-mapped), RFC 8200 8.1 otherwise.
 * len_bytes is the length of the transport header and payload, host order.
 */
uint32_t csum_pseudo(const struct ipaddr *src, const struct ipaddr *dst, uint8_t proto,
    uint32_t len_bytes);

/* Folds to 16 bits without complement: what a device wants as a seed of its own sum. */
static inline uint16_t
csum_fold_raw(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The checksum to store, in memory order. UDP must send 0xffff when this is 0 (RFC 768). */
static inline uint16_t
csum_fold(uint32_t sum)
{
	return (uint16_t)~csum_fold_raw(sum);
}

/* One's-complement sum of two partial sums. */
static inline uint32_t
csum_add(uint32_t a, uint32_t b)
{
	uint32_t sum = a + b;

	return sum + (sum < a);
}

/* Adds the sum of a block that begins `offset` bytes into the data: at odd offsets bytes swap. */
static inline uint32_t
csum_append(uint32_t sum, uint32_t block_sum, size_t offset)
{
	if (offset & 1)
		block_sum = __builtin_bswap16(csum_fold_raw(block_sum));
	return csum_add(sum, block_sum);
}

/*
 * The stored checksum after a 16-bit word changed from old_raw to new_raw (RFC 1624 eqn. 3, which
 * never yields the wrong zero that RFC 1141 could). All three in memory order.
 */
static inline uint16_t
csum_update16(uint16_t csum_raw, uint16_t old_raw, uint16_t new_raw)
{
	uint32_t sum = (uint32_t)(uint16_t)~csum_raw + (uint16_t)~old_raw + new_raw;

	return csum_fold(sum);
}

/* The same for a 32-bit word at an even offset. */
static inline uint16_t
csum_update32(uint16_t csum_raw, uint32_t old_raw, uint32_t new_raw)
{
	uint16_t csum = csum_update16(csum_raw, (uint16_t)old_raw, (uint16_t)new_raw);

	return csum_update16(csum, (uint16_t)(old_raw >> 16), (uint16_t)(new_raw >> 16));
}

#endif
