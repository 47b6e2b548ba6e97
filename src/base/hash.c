/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), from the paper.
 *
 * The message is read as little-endian 64-bit words; the last one carries the length modulo 256 in
 * its top byte. siphash_tuple() is SipHash-1-3 of the 36 bytes local address, foreign address,
 * local port, foreign port, fed from the fields so that the struct's padding plays no part.
 */
#include <string.h>

#include "base/hash.h"

struct sip_state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t
rotl64(uint64_t x, unsigned n)
{
	return (x << n) | (x >> (64 - n));
}

static inline void
sip_init(struct sip_state *s, const struct siphash_key *key)
{
	s->v0 = key->k[0] ^ UINT64_C(0x736f6d6570736575);
	s->v1 = key->k[1] ^ UINT64_C(0x646f72616e646f6d);
	s->v2 = key->k[0] ^ UINT64_C(0x6c7967656e657261);
	s->v3 = key->k[1] ^ UINT64_C(0x7465646279746573);
}

static inline void
sip_rounds(struct sip_state *s, int rounds)
{
	for (; rounds > 0; rounds--) {
		s->v0 += s->v1;
		s->v1 = rotl64(s->v1, 13) ^ s->v0;
		s->v0 = rotl64(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = rotl64(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = rotl64(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = rotl64(s->v1, 17) ^ s->v2;
		s->v2 = rotl64(s->v2, 32);
	}
}

static inline void
sip_word(struct sip_state *s, uint64_t m, int rounds)
{
	s->v3 ^= m;
	sip_rounds(s, rounds);
	s->v0 ^= m;
}

static inline uint64_t
sip_finish(struct sip_state *s, int rounds)
{
	s->v2 ^= 0xff;
	sip_rounds(s, rounds);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

uint64_t
siphash(const struct siphash_key *key, const void *data, size_t len_bytes)
{
	const uint8_t *p = data;
	uint64_t last = (uint64_t)len_bytes << 56;
	uint64_t tail = 0, m;
	struct sip_state s;

	sip_init(&s, key);
	for (; len_bytes >= 8; len_bytes -= 8, p += 8) {
		memcpy(&m, p, 8);
		sip_word(&s, m, 2);
	}
	if (len_bytes > 0)
		memcpy(&tail, p, len_bytes);
	sip_word(&s, last | tail, 2);
	return sip_finish(&s, 4);
}

uint64_t
siphash_tuple(const struct siphash_key *key, const struct tuple *t)
{
	uint64_t last = (UINT64_C(36) << 56) | ((uint64_t)t->fport << 16) | t->lport;
	struct sip_state s;

	sip_init(&s, key);
	sip_word(&s, t->local.q[0], 1);
	sip_word(&s, t->local.q[1], 1);
	sip_word(&s, t->foreign.q[0], 1);
	sip_word(&s, t->foreign.q[1], 1);
	sip_word(&s, last, 1);
	return sip_finish(&s, 3);
}
