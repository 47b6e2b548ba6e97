/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small, fast, seeded random generator (xoshiro256**, Blackman and Vigna, 2018), for simulation,
 * fault rules, jitter and load spreading. NOT cryptographic: its output reveals its state; secrets
 * (ISNs, cookies, hash keys) come from siphash() under a key of the kernel's. One owner per object.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

/* Any seed is good, also 0; equal seeds give equal sequences on every machine. */
void rng_init(struct rng *r, uint64_t seed);

uint64_t rng_u64(struct rng *r);

static inline uint32_t
rng_u32(struct rng *r)
{
	return (uint32_t)(rng_u64(r) >> 32);
}

/* Uniform in [0, n), without bias; 0 when n is 0. */
uint32_t rng_below(struct rng *r, uint32_t n);

#endif
