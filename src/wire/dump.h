/* SPDX-License-Identifier: BSD-2-Clause */
/* One tcpdump-like line for a packet: for traces, failing tests and the capture command. */
#ifndef WIRE_DUMP_H
#define WIRE_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_LINE_MAX_BYTES 512	/* holds any line */

/*
 * Describes the frame (an IP packet when has_ether is false) in buf, NUL-terminated and cut to
 * size (at least 1). Anything is accepted: what cannot be read is said so. Returns the length.
 */
int dump_packet(const uint8_t *frame, size_t len, bool has_ether, char *buf, size_t size);

#endif
