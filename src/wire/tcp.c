/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP headers and options.
 *
 * Options come from anybody: the walk is bounded by the bytes given, a length of 0 or 1 or past the
 * end stops it, and nothing decoded is believed beyond its range. RFC 9293 3.1 (MUST-7) asks only
 * that an illegal length be survived: we keep what was decoded before it and say so by the return
 * value, so that callers may be stricter. Pure.
 */
#include <errno.h>
#include <string.h>

#include "wire/tcp.h"

#define OPT_END		0
#define OPT_NOP		1
#define OPT_MSS		2
#define OPT_WSCALE	3
#define OPT_SACK_OK	4
#define OPT_SACK	5
#define OPT_TS		8

#define OPT_MSS_BYTES		4
#define OPT_WSCALE_BYTES	3
#define OPT_SACK_OK_BYTES	2
#define OPT_TS_BYTES		10
#define SACK_BLOCK_BYTES	8

int
tcp_parse(const uint8_t *p, size_t len, struct tcp_view *ret)
{
	struct tcp_hdr h;

	if (len < TCP_HDR_BYTES)
		return WIRE_ERR_SHORT;
	memcpy(&h, p, sizeof(h));
	ret->hdr_bytes = (uint8_t)((h.data_off >> 4) * 4);
	if (ret->hdr_bytes < TCP_HDR_BYTES || ret->hdr_bytes > len)
		return WIRE_ERR_HLEN;
	ret->sport = be16_to_cpu(h.sport);
	ret->dport = be16_to_cpu(h.dport);
	ret->seq = be32_to_cpu(h.seq);
	ret->ack = be32_to_cpu(h.ack);
	ret->wnd = be16_to_cpu(h.wnd);
	ret->urg = be16_to_cpu(h.urg);
	ret->csum_raw = h.csum.raw;
	ret->flags = h.flags;
	ret->opts = p + TCP_HDR_BYTES;
	ret->opts_bytes = ret->hdr_bytes - (size_t)TCP_HDR_BYTES;
	ret->payload = p + ret->hdr_bytes;
	ret->payload_bytes = len - ret->hdr_bytes;
	return WIRE_OK;
}

size_t
tcp_emit(uint8_t *buf, const struct tcp_view *v)
{
	struct tcp_hdr h = {
		.sport = be16_from_cpu(v->sport),
		.dport = be16_from_cpu(v->dport),
		.seq = be32_from_cpu(v->seq),
		.ack = be32_from_cpu(v->ack),
		.data_off = (uint8_t)((v->hdr_bytes / 4) << 4),
		.flags = v->flags,
		.wnd = be16_from_cpu(v->wnd),
		.csum = { v->csum_raw },
		.urg = be16_from_cpu(v->urg),
	};

	memcpy(buf, &h, sizeof(h));
	return TCP_HDR_BYTES;
}

static void
take_sack(const uint8_t *value, size_t value_bytes, struct tcp_opts *ret)
{
	size_t i, count = value_bytes / SACK_BLOCK_BYTES;

	if (count == 0 || count > TCP_SACK_MAX || value_bytes % SACK_BLOCK_BYTES != 0)
		return;
	for (i = 0; i < count; i++) {
		ret->sack[i].start = load_be32(value + i * SACK_BLOCK_BYTES);
		ret->sack[i].end = load_be32(value + i * SACK_BLOCK_BYTES + 4);
	}
	ret->sack_count = (uint8_t)count;
}

/* Options that RFC 9293 3.2, RFC 7323 2.2 and RFC 2018 2 allow on a SYN only. */
static void
take_syn_option(const uint8_t *opt, size_t opt_bytes, struct tcp_opts *ret)
{
	if (opt[0] == OPT_MSS && opt_bytes == OPT_MSS_BYTES) {
		ret->has_mss = true;
		ret->mss = load_be16(opt + 2);
	} else if (opt[0] == OPT_WSCALE && opt_bytes == OPT_WSCALE_BYTES) {
		ret->has_wscale = true;
		ret->wscale = opt[2] <= TCP_WSCALE_MAX ? opt[2] : TCP_WSCALE_MAX;
	} else if (opt[0] == OPT_SACK_OK && opt_bytes == OPT_SACK_OK_BYTES) {
		ret->sack_ok = true;
	}
}

static void
take_option(const uint8_t *opt, size_t opt_bytes, bool is_syn, struct tcp_opts *ret)
{
	if (opt[0] == OPT_TS && opt_bytes == OPT_TS_BYTES) {
		ret->has_ts = true;
		ret->tsval = load_be32(opt + 2);
		ret->tsecr = load_be32(opt + 6);
	} else if (is_syn) {
		take_syn_option(opt, opt_bytes, ret);
	} else if (opt[0] == OPT_SACK) {
		take_sack(opt + 2, opt_bytes - 2, ret);
	}
}

int
tcp_opts_parse(const uint8_t *opts, size_t len, bool is_syn, struct tcp_opts *ret)
{
	size_t i, opt_bytes;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < len && opts[i] != OPT_END; i += opt_bytes) {
		if (opts[i] == OPT_NOP) {
			opt_bytes = 1;
			continue;
		}
		if (len - i < 2)
			return -EINVAL;
		opt_bytes = opts[i + 1];
		if (opt_bytes < 2 || opt_bytes > len - i)
			return -EINVAL;
		take_option(opts + i, opt_bytes, is_syn, ret);
	}
	return 0;
}

static uint8_t *
put_nops(uint8_t *p, int count)
{
	memset(p, OPT_NOP, (size_t)count);
	return p + count;
}

static uint8_t *
put_head(uint8_t *p, uint8_t kind, size_t opt_bytes)
{
	p[0] = kind;
	p[1] = (uint8_t)opt_bytes;
	return p + 2;
}

static uint8_t *
put_ts(uint8_t *p, const struct tcp_opts *o)
{
	p = put_head(p, OPT_TS, OPT_TS_BYTES);
	store_be32(p, o->tsval);
	store_be32(p + 4, o->tsecr);
	return p + 8;
}

static uint8_t *
put_sack(uint8_t *p, const struct tcp_opts *o, size_t room_bytes)
{
	size_t i, count;

	if (o->sack_count == 0 || room_bytes < TCP_OPT_SACK_BYTES(1))
		return p;
	count = min_size(o->sack_count, TCP_SACK_MAX);
	count = min_size(count, (room_bytes - TCP_OPT_SACK_BYTES(0)) / SACK_BLOCK_BYTES);
	p = put_nops(p, 2);
	p = put_head(p, OPT_SACK, 2 + count * SACK_BLOCK_BYTES);
	for (i = 0; i < count; i++, p += SACK_BLOCK_BYTES) {
		store_be32(p, o->sack[i].start);
		store_be32(p + 4, o->sack[i].end);
	}
	return p;
}

static uint8_t *
put_syn_options(uint8_t *p, const struct tcp_opts *o)
{
	if (o->has_mss) {
		p = put_head(p, OPT_MSS, OPT_MSS_BYTES);
		store_be16(p, o->mss);
		p += 2;
	}
	/* SACK-permitted stands where the two NOPs of a timestamp would, and saves a word. */
	if (!(o->sack_ok && o->has_ts) && (o->sack_ok || o->has_ts))
		p = put_nops(p, 2);
	if (o->sack_ok)
		p = put_head(p, OPT_SACK_OK, OPT_SACK_OK_BYTES);
	if (o->has_ts)
		p = put_ts(p, o);
	if (o->has_wscale) {
		p = put_nops(p, 1);
		p = put_head(p, OPT_WSCALE, OPT_WSCALE_BYTES);
		*p++ = o->wscale;
	}
	return p;
}

size_t
tcp_opts_emit(uint8_t *buf, const struct tcp_opts *o, bool is_syn)
{
	uint8_t *p = buf;

	if (is_syn)
		return (size_t)(put_syn_options(p, o) - buf);
	if (o->has_ts) {
		p = put_nops(p, 2);
		p = put_ts(p, o);
	}
	p = put_sack(p, o, TCP_OPTS_MAX_BYTES - (size_t)(p - buf));
	return (size_t)(p - buf);
}

const char *
tcp_flags_format(uint8_t flags, char *buf, size_t size)
{
	static const struct {
		uint8_t bit;
		char letter;
	} letters[] = {
		{ TH_FIN, 'F' }, { TH_SYN, 'S' }, { TH_RST, 'R' }, { TH_PUSH, 'P' },
		{ TH_ACK, '.' }, { TH_URG, 'U' }, { TH_ECE, 'E' }, { TH_CWR, 'W' },
	};
	size_t i, n = 0;

	for (i = 0; i < ARRAY_LEN(letters) && n + 1 < size; i++) {
		if (flags & letters[i].bit)
			buf[n++] = letters[i].letter;
	}
	if (size > 0)
		buf[n] = '\0';
	return buf;
}
