/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keyed hashes for tables and secrets that outsiders could try to collide or guess (SipHash,
 * Aumasson and Bernstein, 2012). Pure functions; any thread. The key is drawn once a stack.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/ipaddr.h"

struct siphash_key {
	uint64_t k[2];
};

/* SipHash-2-4 of len_bytes bytes: a PRF, fit for ISNs and cookies (RFC 6528, RFC 4987). */
uint64_t siphash(const struct siphash_key *key, const void *data, size_t len_bytes);

/*
 * SipHash-1-3 of a 4-tuple, for hash tables only. One and three rounds are enough there: the
 * output is never shown, so an attacker sees collisions at most by timing; no key recovery on
 * 1-3 is known, and it costs half of 2-4. Padding of the struct is not read.
 */
uint64_t siphash_tuple(const struct siphash_key *key, const struct tuple *t);

#endif
