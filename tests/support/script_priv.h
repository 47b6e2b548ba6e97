/* SPDX-License-Identifier: BSD-2-Clause */
/* Between script.c, its helpers and script_main.c: the life of one run. */
#ifndef TEST_SUPPORT_SCRIPT_PRIV_H
#define TEST_SUPPORT_SCRIPT_PRIV_H

#include "support/script.h"

unsigned script_count(void);
const char *script_name(unsigned i);

/* Netisrs that script i insists on; 0: any number. */
unsigned script_netisrs(unsigned i);

/*
 * Registered script i on a fresh stack; `wrap` is where its sequence numbers turn (0 for 2^32).
 * netisrs 0: as many as the script asks for.
 */
struct script *script_begin(unsigned i, const char *variant, uint32_t wrap, unsigned netisrs);
void script_run(struct script *s, unsigned i);
/* Fails when something is left on the wire or in the stack. */
void script_end(struct script *s);
/* Frees everything, also after a failure. */
void script_discard(struct script *s);

/*
 * Fails unless the frame is one that P could be sent: addresses, lengths, IP checksum. Returns the
 * IP view.
 */
struct ip4_view script_check_frame(struct script *s, const struct wire_frame *f);

/* Next frame sent, waiting up to until_us of virtual time for it; NULL when none came. */
struct wire_frame *script_next_frame(struct script *s, uint64_t wait_us);

/*
 * Ethernet and IPv4 header in front of l4_bytes at frame + 34; pads to 60. Returns the frame's
 * length.
 */
uint32_t script_wrap_ip(
    uint8_t *frame, uint8_t proto, uint32_t src, uint32_t dst, uint32_t l4_bytes);

/*
 * Options of a peer's segment for the current connection, as script_build() puts them; returns
 * their length.
 */
size_t script_seg_opts(struct script *s, const struct seg *g, uint8_t *buf);

/*
 * Learns ISN, acknowledgment and end of data from any TCP frame of the stack, whichever
 * connection's it is.
 */
void script_watch_frame(struct script *s, const struct wire_frame *f);

/* One datagram from the script's UDP socket, whatever comes of it. */
void script_udp_send_on(struct script *s, uint32_t addr, uint16_t port, uint32_t len);

/* Text of a frame for messages. */
const char *script_dump(const struct wire_frame *f, char *buf, size_t size);

/* A thing happened: .after_ms counts from here. */
void script_mark(struct script *s);

#endif
