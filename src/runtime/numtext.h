/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as people write them in configuration: decimal or 0x…, with k, m or g for powers of 1024.
 */
#ifndef RUNTIME_NUMTEXT_H
#define RUNTIME_NUMTEXT_H

#include <stdbool.h>
#include <stdint.h>

/* "65536", "64k", "-1", "0x40". 0, -EINVAL (not a number), -ERANGE (does not fit); *ret_value
 * untouched on failure. */
int numtext_parse(const char *text, int64_t *ret_value);

/* The same over the whole range of uint64_t, without sign (seeds, sizes). */
int numtext_parse_u64(const char *text, uint64_t *ret_value);

/* yes/no, on/off, true/false, 1/0. 0 or -EINVAL. */
int numtext_parse_bool(const char *text, bool *ret_value);

#endif
