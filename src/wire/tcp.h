/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP header (RFC 9293 3.1) and its options (RFC 9293 3.2, RFC 7323, RFC 2018). */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "wire/wire.h"

#define TCP_HDR_BYTES		20
#define TCP_HDR_MAX_BYTES	60
#define TCP_OPTS_MAX_BYTES	40
#define TCP_WSCALE_MAX		14	/* RFC 7323 2.3 */
#define TCP_SACK_MAX		4	/* blocks that fit, without timestamps */

/* the option space of a data segment: NOP NOP TS, and NOP NOP SACK with n blocks */
#define TCP_OPT_TS_BYTES	12
#define TCP_OPT_SACK_BYTES(n)	(4 + 8 * (n))

#define TH_FIN	0x01
#define TH_SYN	0x02
#define TH_RST	0x04
#define TH_PUSH	0x08
#define TH_ACK	0x10
#define TH_URG	0x20
#define TH_ECE	0x40
#define TH_CWR	0x80

struct tcp_hdr {
	struct be16 sport;
	struct be16 dport;
	struct be32 seq;
	struct be32 ack;
	uint8_t data_off;	/* upper four bits: header length in words */
	uint8_t flags;		/* TH_ */
	struct be16 wnd;
	struct be16 csum;
	struct be16 urg;
} PACKED;

STATIC_ASSERT(sizeof(struct tcp_hdr) == TCP_HDR_BYTES, "as on the wire");

/* Host order throughout. tcp_emit() reads all but the pointers, payload and opts sizes. */
struct tcp_view {
	uint16_t sport;
	uint16_t dport;
	uint32_t seq;
	uint32_t ack;
	uint16_t wnd;		/* as on the wire, not scaled */
	uint16_t urg;
	uint16_t csum_raw;	/* as in memory */
	uint8_t flags;
	uint8_t hdr_bytes;	/* 20 to 60 */
	const uint8_t *opts;
	size_t opts_bytes;
	const uint8_t *payload;
	size_t payload_bytes;
};

/* Checks lengths only. WIRE_OK, WIRE_ERR_SHORT or WIRE_ERR_HLEN. */
int tcp_parse(const uint8_t *p, size_t len, struct tcp_view *ret);

/*
 * Writes 20 bytes with data offset hdr_bytes (a multiple of 4; the caller puts the options behind,
 * see tcp_opts_emit) and csum_raw as given. Returns 20.
 */
size_t tcp_emit(uint8_t *buf, const struct tcp_view *v);

struct tcp_opts {
	bool has_mss;
	bool has_wscale;
	bool sack_ok;
	bool has_ts;
	uint16_t mss;
	uint8_t wscale;		/* at most 14 */
	uint32_t tsval;
	uint32_t tsecr;
	uint8_t sack_count;
	struct {
		uint32_t start;	/* first sequence number of the block */
		uint32_t end;	/* first one after it */
	} sack[TCP_SACK_MAX];
};

/*
 * Decodes options; *ret is always fully written. MSS, window scale and SACK-permitted count only
 * on a SYN (RFC 7323 2.2), SACK blocks only off it; unknown kinds are skipped by their length; a
 * repeated one counts once, the last wins. A shift over 14 is taken as 14. A length that is
 * impossible ends the walk with -EINVAL and *ret keeps what came before; a known kind with a wrong
 * but possible length is skipped. Else 0.
 */
int tcp_opts_parse(const uint8_t *opts, size_t len, bool is_syn, struct tcp_opts *ret);

/*
 * Writes options in the order and padding that Linux uses, which middleboxes know. On a SYN: MSS;
 * with timestamps SACK-permitted TS, else NOP NOP SACK-permitted; NOP WS. Else: NOP NOP TS; NOP
 * NOP SACK with as many blocks as fit. buf has TCP_OPTS_MAX_BYTES. Returns the padded length, a
 * multiple of 4.
 */
size_t tcp_opts_emit(uint8_t *buf, const struct tcp_opts *o, bool is_syn);

/* "S.", "P.": one letter a flag as tcpdump has them (a dot is ACK). buf of 10; returns buf. */
const char *tcp_flags_format(uint8_t flags, char *buf, size_t size);

#endif
