/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256 of a byte stream (FIPS 180-4), so that both ends of a transfer can name what they saw.
 * No allocation, no I/O; one context belongs to one thread at a time.
 */
#ifndef INTEG_SHA256_H
#define INTEG_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX_SIZE 65	/* 64 digits and NUL */

struct sha256 {
	uint32_t h[8];
	uint8_t block[64];
	uint64_t total_bytes;
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);

/* Ends the stream and writes the digest as lower-case hex digits. The context is spent. */
void sha256_hex(struct sha256 *s, char hex[SHA256_HEX_SIZE]);

#endif
