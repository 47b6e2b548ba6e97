/* SPDX-License-Identifier: BSD-2-Clause */
/* Network byte order as types of its own, so that a forgotten conversion does not compile. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>
#include <string.h>

struct be16 {
	uint16_t raw;
};

struct be32 {
	uint32_t raw;
};

static inline struct be16
be16_from_cpu(uint16_t v)
{
	return (struct be16){ __builtin_bswap16(v) };
}

static inline uint16_t
be16_to_cpu(struct be16 v)
{
	return __builtin_bswap16(v.raw);
}

static inline struct be32
be32_from_cpu(uint32_t v)
{
	return (struct be32){ __builtin_bswap32(v) };
}

static inline uint32_t
be32_to_cpu(struct be32 v)
{
	return __builtin_bswap32(v.raw);
}

static inline int
be16_eq(struct be16 a, struct be16 b)
{
	return a.raw == b.raw;
}

static inline int
be32_eq(struct be32 a, struct be32 b)
{
	return a.raw == b.raw;
}

/* Unaligned reads and writes of big-endian values at p. */
static inline uint16_t
load_be16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t
load_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline void
store_be16(void *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
store_be32(void *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "darter runs on little-endian machines");

#endif
