/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of small numbers in which the next member is found in a bounded number of steps, however
 * few there are: a bit a number, and above it a bit a word that says whether the word is not 0. A
 * set of 65,536 has 1,024 words and 16 of summary, so a search looks at two words and at most 17 of
 * summary. Pure; one owner per object.
 */
#include <string.h>

#include "transport/port_priv.h"

void
port_bits_init(struct port_bits *b, uint64_t *words, uint32_t n, bool is_full)
{
	uint32_t n_words = PORT_BITS_WORDS(n), i;

	b->word = words;
	b->sum = words + n_words;
	b->n = n;
	b->count = is_full ? n : 0;
	memset(words, 0, PORT_BITS_ALL(n) * sizeof(*words));
	for (i = 0; is_full && i < n_words; i++) {
		b->word[i] = i < n / 64 ? UINT64_MAX : (UINT64_C(1) << (n % 64)) - 1;
		b->sum[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

bool
port_bits_has(const struct port_bits *b, uint32_t i)
{
	return (b->word[i / 64] >> (i % 64)) & 1;
}

void
port_bits_set(struct port_bits *b, uint32_t i)
{
	if (port_bits_has(b, i))
		return;
	b->word[i / 64] |= UINT64_C(1) << (i % 64);
	b->sum[i / 4096] |= UINT64_C(1) << (i / 64 % 64);
	b->count++;
}

void
port_bits_clear(struct port_bits *b, uint32_t i)
{
	if (!port_bits_has(b, i))
		return;
	b->word[i / 64] &= ~(UINT64_C(1) << (i % 64));
	if (b->word[i / 64] == 0)
		b->sum[i / 4096] &= ~(UINT64_C(1) << (i / 64 % 64));
	b->count--;
}

void
port_bits_join(struct port_bits *b, const uint64_t *word)
{
	uint32_t i;

	for (i = 0; i < PORT_BITS_WORDS(b->n); i++) {
		uint64_t fresh = word[i] & ~b->word[i];

		if (fresh == 0)
			continue;
		b->word[i] |= fresh;
		b->sum[i / 64] |= UINT64_C(1) << (i % 64);
		b->count += (uint32_t)__builtin_popcountll(fresh);
	}
}

/* The lowest bit at or above `bit` of v; 64: none. */
static uint32_t
lowest_from(uint64_t v, uint32_t bit)
{
	v &= UINT64_MAX << bit;
	return v == 0 ? 64 : (uint32_t)__builtin_ctzll(v);
}

/* The first word that is not 0, at or after word i, not going round; n_words: none. */
static uint32_t
next_word(const struct port_bits *b, uint32_t i)
{
	uint32_t n_words = PORT_BITS_WORDS(b->n), n_sums = PORT_BITS_WORDS(n_words), j, bit;

	for (j = i / 64; j < n_sums; j++) {
		bit = lowest_from(b->sum[j], j == i / 64 ? i % 64 : 0);
		if (bit < 64)
			return j * 64 + bit;
	}
	return n_words;
}

uint32_t
port_bits_next(const struct port_bits *b, uint32_t from)
{
	uint32_t n_words = PORT_BITS_WORDS(b->n), i, bit;

	if (b->count == 0)
		return PORT_BITS_NONE;
	bit = lowest_from(b->word[from / 64], from % 64);
	if (bit < 64)
		return from / 64 * 64 + bit;
	i = next_word(b, from / 64 + 1);
	if (i >= n_words)
		i = next_word(b, 0);
	return i * 64 + lowest_from(b->word[i], 0);
}
