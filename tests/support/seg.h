/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TCP segment as scripts write it: SYN(), DATA(1, 1001), ACK(1, .sack = SACK(1001, 2001)).
 *
 * Sequence and acknowledgment numbers count from the ISN of whoever owns them, so the SYN is 0 and
 * the first byte is 1. A field that a script leaves out is SEG_ANY: the peer then sends what the
 * connection implies, and of what the stack sends it is not compared. SEG_NONE says that an option
 * must be absent.
 */
#ifndef TEST_SUPPORT_SEG_H
#define TEST_SUPPORT_SEG_H

#include <stddef.h>
#include <stdint.h>

#include "wire/tcp.h"

/*
 * The defaults below are overridden by what the script names; that is the idea and not an
 * oversight.
 */
#pragma GCC diagnostic ignored "-Woverride-init"

#define SEG_ANY		INT64_MIN
#define SEG_NONE	INT64_C(-1)

#define SEG_BYTES_MAX	64

struct seg_sack {
	int count;		/* of blocks; -1: any */
	int64_t edge[2 * TCP_SACK_MAX];
};

struct seg_bytes {
	unsigned count;
	uint8_t b[SEG_BYTES_MAX];
};

struct seg {
	int64_t flags;		/* TH_*, PUSH aside */
	int64_t push;		/* 0, 1 */
	int64_t seq;
	int64_t ack;
	int64_t len;		/* payload bytes */
	int64_t wnd;		/* the field, not scaled */
	int64_t urg;
	int64_t mss;
	int64_t wscale;
	int64_t sack_ok;	/* 0, 1 */
	int64_t ts;		/* 0, 1: has the option */
	int64_t tsval;
	int64_t tsecr;		/* when the stack sends: absolute, as tsval */
	struct seg_sack sack;

	/* of the peer only */
	struct seg_bytes opts;	/* these option bytes instead of all the above */
	int64_t hlen_bytes;	/* data offset that lies */
	int64_t bad_csum;	/* 1: TCP checksum wrong */
	int64_t fill;		/* payload is this byte instead of the stream's pattern */
	int64_t src;		/* IPv4 addresses, host order */
	int64_t dst;
	int64_t sport;
	int64_t dport;
	struct seg_bytes ip_opts;
	int64_t ip_total;	/* IP total length that lies */
	int64_t ip_hlen_words;	/* IHL that lies */
	int64_t ip_bad_csum;
	int64_t frame_bytes;	/* the frame is padded with 0xaa or cut to this */
	int64_t queue;		/* receive queue, 0 */

	/* of the stack only */
	int64_t after_ms;	/* sent this long after the last thing that happened */
	int64_t tol_ms;		/* tolerance of that */
};

#define SEG_DEFAULTS \
	.flags = 0, .push = SEG_ANY, .seq = SEG_ANY, .ack = SEG_ANY, .len = 0, .wnd = SEG_ANY, \
	.urg = SEG_ANY, .mss = SEG_ANY, .wscale = SEG_ANY, .sack_ok = SEG_ANY, .ts = SEG_ANY, \
	.tsval = SEG_ANY, .tsecr = SEG_ANY, .sack = { .count = -1 }, .hlen_bytes = SEG_ANY, \
	.bad_csum = 0, .fill = SEG_ANY, .src = SEG_ANY, .dst = SEG_ANY, .sport = SEG_ANY, \
	.dport = SEG_ANY, .ip_total = SEG_ANY, .ip_hlen_words = SEG_ANY, .ip_bad_csum = 0, \
	.frame_bytes = SEG_ANY, .queue = 0, .after_ms = SEG_ANY, .tol_ms = SEG_ANY

#define SEG(...)	((struct seg){ SEG_DEFAULTS, __VA_ARGS__ })
#define SYN(...)	((struct seg){ SEG_DEFAULTS, .flags = TH_SYN, .seq = 0, ##__VA_ARGS__ })
#define SYNACK(...) \
	((struct seg){ SEG_DEFAULTS, .flags = TH_SYN | TH_ACK, .seq = 0, .ack = 1, ##__VA_ARGS__ })
#define ACK(a, ...)	((struct seg){ SEG_DEFAULTS, .flags = TH_ACK, .ack = (a), ##__VA_ARGS__ })
/* Bytes [from, to) */
#define DATA(from, to, ...) \
	((struct seg){ \
	    SEG_DEFAULTS, .flags = TH_ACK, .seq = (from), .len = (to) - (from), ##__VA_ARGS__ })
/* Bytes [from, to) and the FIN, whose number is `to` */
#define DATA_FIN(from, to, ...) \
	((struct seg){ SEG_DEFAULTS, .flags = TH_ACK | TH_FIN, .seq = (from), \
	    .len = (to) - (from), ##__VA_ARGS__ })
#define FIN(at, ...) \
	((struct seg){ SEG_DEFAULTS, .flags = TH_ACK | TH_FIN, .seq = (at), ##__VA_ARGS__ })
#define RST(at, ...)	((struct seg){ SEG_DEFAULTS, .flags = TH_RST, .seq = (at), ##__VA_ARGS__ })
#define RSTACK(at, a, ...) \
	((struct seg){ \
	    SEG_DEFAULTS, .flags = TH_RST | TH_ACK, .seq = (at), .ack = (a), ##__VA_ARGS__ })

/* SACK(1001, 2001, 3001, 4001): two blocks, the more recent first */
#define SACK(...) \
	((struct seg_sack){ \
	    .count = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t) / 2), \
	    .edge = { __VA_ARGS__ } })
#define NO_SACK		((struct seg_sack){ .count = 0 })

/* BYTES(0x01, 0x02): option bytes */
#define BYTES(...) \
	((struct seg_bytes){ \
	    .count = (unsigned)sizeof((uint8_t[]){ __VA_ARGS__ }), .b = { __VA_ARGS__ } })

/* "[FA] seq 1:1001 ack 5 win 100 …" in buf; fields that are SEG_ANY are left out. Returns buf. */
const char *seg_format(const struct seg *g, char *buf, size_t size);

/*
 * Does `got` (all fields known) have what `want` asks for? NULL when it does, else the name of the
 * first field that differs.
 */
const char *seg_differs(const struct seg *want, const struct seg *got);

#endif
