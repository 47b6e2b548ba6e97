/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Toeplitz hash that receive-side scaling uses (Microsoft, "RSS hashing functions"), from
 * per-byte tables: 12 look-ups for IPv4, 36 for IPv6.
 *
 * The hash is linear over XOR: H(a ^ b) = H(a) ^ H(b), so the local port's part can be split off
 * (toeplitz_lport) and a port be solved for that sends the answer home. Immutable after init, hence
 * read by any thread.
 */
#ifndef BASE_TOEPLITZ_H
#define BASE_TOEPLITZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

#define TOEPLITZ_KEY_MIN_BYTES	40	/* 36 bytes of IPv6 input and a 32-bit window */
/* some devices take 52; bytes past 40 see no input of ours */
#define TOEPLITZ_KEY_MAX_BYTES	52
#define TOEPLITZ_INPUT_MAX_BYTES 36

struct toeplitz {
	/* tab[i][v]: what input byte i adds when it is v */
	uint32_t tab[TOEPLITZ_INPUT_MAX_BYTES][256];
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	uint32_t key_bytes;
} CACHE_ALIGNED;

/* 0x6d5a repeated: hashes both directions of a flow alike (Woo and Park, KAIST, 2012). */
extern const uint8_t toeplitz_key_symmetric[TOEPLITZ_KEY_MAX_BYTES];

/* The key of Microsoft's published verification suite, repeated from its start past byte 40. */
extern const uint8_t toeplitz_key_microsoft[TOEPLITZ_KEY_MAX_BYTES];

/* Prepares the tables. Returns 0, or -EINVAL unless 40 <= key_bytes <= 52. */
int toeplitz_init(struct toeplitz *t, const uint8_t *key, size_t key_bytes);

/*
 * The hash a device computes over a packet *arriving* with this tuple: source = foreign,
 * destination = local. IPv4 when the foreign address is v4-mapped.
 */
uint32_t toeplitz_tuple(const struct toeplitz *t, const struct tuple *tuple);

/* The 2-tuple hash (fragments, ICMP) of a packet with this source and destination. */
uint32_t toeplitz_addrs(const struct toeplitz *t, const struct ipaddr *src,
    const struct ipaddr *dst);

/* What the local (destination) port adds: toeplitz_tuple() is this ^ the hash with lport 0. */
uint32_t toeplitz_lport(const struct toeplitz *t, bool is_v6, uint16_t lport);

/* The hash of len_bytes (at most 36) bytes laid out by the caller. */
uint32_t toeplitz_bytes(const struct toeplitz *t, const uint8_t *input, size_t len_bytes);

#endif
