/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Toeplitz hashing from per-byte tables.
 *
 * By definition the hash XORs, for each set bit n of the input (first bit first), the 32 key bits
 * that start at bit n. So each input byte contributes independently: its part for every value is
 * tabulated once, and a hash is one look-up and XOR a byte. The input is what RSS specifies: source
 * address, destination address, source port, destination port, all in network order.
 *
 * Tables take 36 KiB, of which IPv4 touches the first 12 KiB.
 */
#include <errno.h>
#include <string.h>

#include "base/toeplitz.h"

const uint8_t toeplitz_key_symmetric[TOEPLITZ_KEY_MAX_BYTES] = {
	0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d,
	0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
	0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d,
	0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
};

const uint8_t toeplitz_key_microsoft[TOEPLITZ_KEY_MAX_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43,
	0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb,
	0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01,
	0xfa, 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d,
};

/* The 32 key bits that start at bit `bit` of byte `byte`. */
static uint32_t
key_window(const uint8_t *key, unsigned byte, unsigned bit)
{
	uint64_t w = ((uint64_t)load_be32(key + byte) << 8) | key[byte + 4];

	return (uint32_t)(w >> (8 - bit));
}

int
toeplitz_init(struct toeplitz *t, const uint8_t *key, size_t key_bytes)
{
	unsigned i, v, bit;

	if (key_bytes < TOEPLITZ_KEY_MIN_BYTES || key_bytes > TOEPLITZ_KEY_MAX_BYTES)
		return -EINVAL;

	memset(t, 0, sizeof(*t));
	memcpy(t->key, key, key_bytes);
	t->key_bytes = (uint32_t)key_bytes;
	for (i = 0; i < TOEPLITZ_INPUT_MAX_BYTES; i++) {
		for (bit = 0; bit < 8; bit++)
			t->tab[i][0x80u >> bit] = key_window(key, i, bit);
		/* The rest by linearity: a value is its lowest set bit and what remains. */
		for (v = 1; v < 256; v++)
			t->tab[i][v] = t->tab[i][v & (v - 1)] ^ t->tab[i][v & (~v + 1)];
	}
	return 0;
}

static inline uint32_t
hash_run(const struct toeplitz *t, unsigned first, const uint8_t *p, unsigned n)
{
	uint32_t h = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		h ^= t->tab[first + i][p[i]];
	return h;
}

static inline uint32_t
hash_port(const struct toeplitz *t, unsigned first, uint16_t port)
{
	return t->tab[first][port >> 8] ^ t->tab[first + 1][port & 0xff];
}

uint32_t
toeplitz_addrs(const struct toeplitz *t, const struct ipaddr *src, const struct ipaddr *dst)
{
	if (ipaddr_is_v4(src))
		return hash_run(t, 0, src->b + 12, 4) ^ hash_run(t, 4, dst->b + 12, 4);
	return hash_run(t, 0, src->b, 16) ^ hash_run(t, 16, dst->b, 16);
}

uint32_t
toeplitz_lport(const struct toeplitz *t, bool is_v6, uint16_t lport)
{
	return hash_port(t, is_v6 ? 34 : 10, lport);
}

uint32_t
toeplitz_tuple(const struct toeplitz *t, const struct tuple *tuple)
{
	bool is_v6 = !ipaddr_is_v4(&tuple->foreign);

	return toeplitz_addrs(t, &tuple->foreign, &tuple->local) ^
	    hash_port(t, is_v6 ? 32 : 8, tuple->fport) ^ toeplitz_lport(t, is_v6, tuple->lport);
}

uint32_t
toeplitz_bytes(const struct toeplitz *t, const uint8_t *input, size_t len_bytes)
{
	return hash_run(t, 0, input, (unsigned)min_size(len_bytes, TOEPLITZ_INPUT_MAX_BYTES));
}
