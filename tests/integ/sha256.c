/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256, straight from FIPS 180-4 section 6.2. The round constants are the first 32 bits of the
 * fractional parts of the cube roots of the first 64 primes (4.2.2), the initial hash those of the
 * square roots of the first 8 (5.3.3). Fast enough to keep up with a tap, which is all it must be.
 */
#include <stdio.h>
#include <string.h>

#include "sha256.h"

static const uint32_t round_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t
rotr(uint32_t x, unsigned bits)
{
	return x >> bits | x << (32 - bits);
}

static void
expand(uint32_t w[64], const uint8_t *block)
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		    (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[i - 7] +
		    (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
	}
}

/*
 * Eight rounds bring every working variable back to its place: renamed, not moved, they stay in
 * registers.
 */
#define ROUND(a, b, c, d, e, f, g, h, i) do {						\
	uint32_t t1 = (h) + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +			\
	    (((e) & (f)) ^ (~(e) & (g))) + round_k[i] + w[i];				\
	(d) += t1;									\
	(h) = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) +				\
	    (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));					\
} while (0)

static void
add_block(struct sha256 *s, const uint8_t *block)
{
	uint32_t w[64];
	uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3];
	uint32_t e = s->h[4], f = s->h[5], g = s->h[6], h = s->h[7];

	expand(w, block);
	for (int i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
	s->h[5] += f;
	s->h[6] += g;
	s->h[7] += h;
}

void
sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memset(s, 0, sizeof(*s));
	memcpy(s->h, start, sizeof(start));
}

void
sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t held = s->total_bytes % 64;

	s->total_bytes += len;
	if (held > 0) {
		size_t n = len < 64 - held ? len : 64 - held;

		memcpy(s->block + held, p, n);
		p += n;
		len -= n;
		if (held + n < 64)
			return;
		add_block(s, s->block);
	}
	for (; len >= 64; p += 64, len -= 64)
		add_block(s, p);
	memcpy(s->block, p, len);
}

void
sha256_hex(struct sha256 *s, char hex[SHA256_HEX_SIZE])
{
	uint64_t total_bits = s->total_bytes * 8;
	uint8_t length[8];
	const uint8_t mark = 0x80, zero = 0;

	sha256_add(s, &mark, 1);
	while (s->total_bytes % 64 != 56)
		sha256_add(s, &zero, 1);
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(total_bits >> (56 - 8 * i));
	sha256_add(s, length, sizeof(length));
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, SHA256_HEX_SIZE - 8 * (size_t)i, "%08x", s->h[i]);
}
