/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018),
 * seeded by splitmix64 (Steele, Lea and Flood, 2014), which never yields the forbidden all-zero
 * state. Deterministic: simulations are repeated from their seed alone.
 */
#include "base/rng.h"

static uint64_t
splitmix64(uint64_t *x)
{
	uint64_t z;

	*x += UINT64_C(0x9e3779b97f4a7c15);
	z = *x;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t
rotl64(uint64_t x, unsigned n)
{
	return (x << n) | (x >> (64 - n));
}

void
rng_init(struct rng *r, uint64_t seed)
{
	int i;

	for (i = 0; i < 4; i++)
		r->s[i] = splitmix64(&seed);
}

uint64_t
rng_u64(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl64(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotl64(s[3], 45);
	return result;
}

/*
 * Lemire's multiply-shift (2019): the high half of a 32x32 product is the answer; the few low
 * halves that would favour some answers are drawn again.
 */
uint32_t
rng_below(struct rng *r, uint32_t n)
{
	uint64_t product;
	uint32_t threshold;

	if (n == 0)
		return 0;
	product = (uint64_t)rng_u32(r) * n;
	if ((uint32_t)product >= n)
		return (uint32_t)(product >> 32);

	threshold = (0u - n) % n;
	while ((uint32_t)product < threshold)
		product = (uint64_t)rng_u32(r) * n;
	return (uint32_t)(product >> 32);
}
