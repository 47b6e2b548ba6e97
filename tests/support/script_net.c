/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire of a script, TCP: building the peer's segments, taking and checking the stack's.
 *
 * The peer keeps the state that a plain receiver would: snd_nxt moves with what it sends, rcv_nxt
 * with in-order data that a script has accepted by stack_sends(), TSecr echoes the last TSval seen.
 * A script can say any field itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "wire/dump.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#include "support/record.h"
#include "support/script.h"
#include "support/script_priv.h"

#define IP_AT	ETHER_HDR_BYTES
#define L4_AT	(ETHER_HDR_BYTES + IP4_HDR_BYTES)

uint8_t
script_pattern(unsigned direction, int64_t pos)
{
	uint64_t x = (uint64_t)pos * UINT64_C(0x9e3779b97f4a7c15) + direction;

	return (uint8_t)(x >> 56);
}

void
script_mark(struct script *s)
{
	s->mark_us = teststack_now(&s->ts).us;
}

const char *
script_dump(const struct wire_frame *f, char *buf, size_t size)
{
	dump_packet(f->bytes, f->len, true, buf, size);
	return buf;
}

/* ---- building ---- */

static int64_t
or_default(int64_t v, int64_t dflt)
{
	return v == SEG_ANY ? dflt : v;
}

uint32_t
script_wrap_ip(uint8_t *frame, uint8_t proto, uint32_t src, uint32_t dst, uint32_t l4_bytes)
{
	static uint16_t id;
	struct ip4_view ip = {
		.src = be32_from_cpu(src),
		.dst = be32_from_cpu(dst),
		.total_bytes = (uint16_t)(IP4_HDR_BYTES + l4_bytes),
		.id = ++id,
		.ttl = 64,
		.proto = proto,
	};
	struct mac to, from;
	uint32_t len = L4_AT + l4_bytes;

	teststack_mac(1, to.b);
	teststack_mac((uint8_t)(src & 0xff) == 3 ? 3 : 2, from.b);
	ether_emit(frame, &to, &from, ETHER_TYPE_IP4);
	ip4_emit(frame + IP_AT, &ip);
	while (len < ETHER_MIN_FRAME_BYTES)
		frame[len++] = 0xaa;
	return len;
}

/* Options of a peer's segment: what the connection uses unless the script says otherwise. */
size_t
script_seg_opts(struct script *s, const struct seg *g, uint8_t *buf)
{
	struct conn *c = s->c;
	bool is_syn = (g->flags & TH_SYN) != 0;
	struct tcp_opts o = { 0 };
	int64_t mss = or_default(g->mss, c->mss), wscale = or_default(g->wscale, c->wscale);
	int i;

	if (g->opts.count > 0) {
		memcpy(buf, g->opts.b, g->opts.count);
		return g->opts.count;
	}
	o.has_mss = is_syn && mss > 0;
	o.mss = (uint16_t)mss;
	o.has_wscale = is_syn && wscale >= 0;
	o.wscale = (uint8_t)wscale;
	o.sack_ok = is_syn && or_default(g->sack_ok, c->sack_ok) == 1;
	o.has_ts = or_default(g->ts, c->ts) == 1 || g->tsval != SEG_ANY;
	o.tsval = (uint32_t)or_default(g->tsval,
	    (int64_t)(uint32_t)(c->ts_val + teststack_elapsed_us(&s->ts) / 1000));
	o.tsecr = (uint32_t)or_default(g->tsecr, (g->flags & TH_ACK) ? c->ts_recent : 0);
	for (i = 0; i < g->sack.count; i++) {
		o.sack[i].start = c->iss + (uint32_t)g->sack.edge[2 * i];
		o.sack[i].end = c->iss + (uint32_t)g->sack.edge[2 * i + 1];
		o.sack_count++;
	}
	return tcp_opts_emit(buf, &o, is_syn);
}

static void
fill_payload(const struct seg *g, int64_t seq, uint8_t *p)
{
	int64_t first = seq + ((g->flags & TH_SYN) != 0), i;

	for (i = 0; i < g->len; i++)
		p[i] = g->fill != SEG_ANY ? (uint8_t)g->fill : script_pattern(0, first + i);
}

/* The TCP header, options and payload at p; returns their length. */
static uint32_t
build_tcp(struct script *s, const struct seg *g, uint8_t *p, uint32_t src, uint32_t dst)
{
	struct conn *c = s->c;
	struct ipaddr from = ipaddr_v4_cpu(src), to = ipaddr_v4_cpu(dst);
	int64_t seq = or_default(g->seq, c->snd_nxt);
	uint8_t opts[SEG_BYTES_MAX] = { 0 };
	size_t opts_bytes = (script_seg_opts(s, g, opts) + 3) & ~(size_t)3;
	uint32_t hdr_bytes = TCP_HDR_BYTES + (uint32_t)opts_bytes;
	uint32_t len = hdr_bytes + (uint32_t)g->len;
	struct tcp_view v = {
		.sport = (uint16_t)or_default(g->sport, c->fport),
		.dport = (uint16_t)or_default(g->dport, c->lport),
		.seq = c->irs + (uint32_t)seq,
		.ack = (g->flags & TH_ACK) || g->ack != SEG_ANY ?
		    c->iss + (uint32_t)or_default(g->ack, c->rcv_nxt) : 0,
		.wnd = (uint16_t)or_default(g->wnd, (g->flags & TH_SYN) ? 65535 : c->wnd),
		.urg = (uint16_t)or_default(g->urg, 0),
		.flags = (uint8_t)(g->flags | (g->push == 1 ? TH_PUSH : 0) |
		    (g->urg != SEG_ANY ? TH_URG : 0)),
		.hdr_bytes = (uint8_t)hdr_bytes,
	};
	uint16_t sum;

	tcp_emit(p, &v);
	memcpy(p + TCP_HDR_BYTES, opts, opts_bytes);
	if (g->hlen_bytes != SEG_ANY)
		p[12] = (uint8_t)(g->hlen_bytes / 4 << 4);
	fill_payload(g, seq, p + hdr_bytes);
	sum = csum_fold(csum_partial(p, len, csum_pseudo(&from, &to, IP_PROTO_TCP, len)));
	if (g->bad_csum == 1)
		sum = (uint16_t)(sum ^ 0x5555);
	memcpy(p + 16, &sum, sizeof(sum));
	return len;
}

/* IP options go between header and segment; the header is written again around them. */
static void
insert_ip_opts(uint8_t *frame, const struct seg *g, uint32_t *l4_bytes)
{
	uint32_t n = (g->ip_opts.count + 3) & ~3u;

	memmove(frame + L4_AT + n, frame + L4_AT, *l4_bytes);
	memset(frame + L4_AT, 0, n);
	memcpy(frame + L4_AT, g->ip_opts.b, g->ip_opts.count);
	*l4_bytes += n;
	frame[IP_AT] = (uint8_t)(0x40 | (IP4_HDR_BYTES + n) / 4);
}

/* What lies about lengths, and the header checksum after all of it. */
static void
finish_ip(uint8_t *frame, const struct seg *g)
{
	uint32_t hdr_bytes = 4u * (frame[IP_AT] & 0x0f);
	uint16_t sum;

	if (g->ip_total != SEG_ANY)
		store_be16(frame + IP_AT + 2, (uint16_t)g->ip_total);
	if (g->ip_hlen_words != SEG_ANY)
		frame[IP_AT] = (uint8_t)(0x40 | g->ip_hlen_words);
	memset(frame + IP_AT + 10, 0, 2);
	sum = csum_fold(csum_partial(frame + IP_AT, hdr_bytes, 0));
	if (g->ip_bad_csum == 1)
		sum = (uint16_t)(sum ^ 0x5555);
	memcpy(frame + IP_AT + 10, &sum, sizeof(sum));
}

uint32_t
script_build(struct script *s, const struct seg *g, uint8_t *frame, size_t size)
{
	uint32_t src = (uint32_t)or_default(g->src, s->c->faddr);
	uint32_t dst = (uint32_t)or_default(g->dst, TEST_STACK_IP);
	uint32_t l4_bytes, len;

	assert_true(
	    size >= L4_AT + TCP_HDR_MAX_BYTES + IP4_HDR_MAX_BYTES - IP4_HDR_BYTES + (size_t)g->len);
	l4_bytes = build_tcp(s, g, frame + L4_AT, src, dst);
	len = script_wrap_ip(frame, IP_PROTO_TCP, src, dst, l4_bytes);
	if (g->ip_opts.count > 0) {
		uint8_t ver_hlen;

		insert_ip_opts(frame, g, &l4_bytes);
		ver_hlen = frame[IP_AT];
		len = script_wrap_ip(frame, IP_PROTO_TCP, src, dst, l4_bytes);
		frame[IP_AT] = ver_hlen;
	}
	finish_ip(frame, g);
	if (g->frame_bytes != SEG_ANY) {
		while ((int64_t)len < g->frame_bytes && len < size)
			frame[len++] = 0xaa;
		len = (uint32_t)g->frame_bytes;
	}
	return len;
}

/* The peer's own numbers after it has sent g. */
static void
note_peer_sent(struct conn *c, const struct seg *g)
{
	int64_t seq = or_default(g->seq, c->snd_nxt), end;

	if (g->flags & TH_RST)
		return;
	end = seq + g->len + ((g->flags & TH_SYN) != 0) + ((g->flags & TH_FIN) != 0);
	if (end > c->snd_nxt && g->bad_csum == 0)
		c->snd_nxt = end;
}

void
script_peer_sends(struct script *s, struct place at, const struct seg *g, size_t count)
{
	static uint8_t frame[WIRE_FRAME_MAX_BYTES + 65536];
	size_t i;

	s->place = at;
	for (i = 0; i < count; i++) {
		uint32_t len = script_build(s, &g[i], frame, sizeof(frame));

		record_seg(s, &g[i]);
		wire_dev_inject(s->ts.wire, (unsigned)g[i].queue, frame, len);
		note_peer_sent(s->c, &g[i]);
	}
	script_mark(s);
	teststack_run(&s->ts);
}

void
peer_sends_raw(struct script *s, const void *frame, uint32_t len)
{
	record_frame(s, frame, len);
	wire_dev_inject(s->ts.wire, 0, frame, len);
	script_mark(s);
	teststack_run(&s->ts);
}

/* ---- taking what the stack sent ---- */

struct wire_frame *
script_next_frame(struct script *s, uint64_t wait_us)
{
	struct time until = time_add_us((struct time){ s->mark_us }, wait_us);

	teststack_run(&s->ts);
	while (s->ts.wire->out.first == NULL && teststack_step(&s->ts, until))
		;
	return wire_dev_take(s->ts.wire);
}

struct wire_frame *
stack_sent_frame(struct script *s)
{
	return script_next_frame(s, 0);
}

struct ip4_view
script_check_frame(struct script *s, const struct wire_frame *f)
{
	char line[DUMP_LINE_MAX_BYTES];
	struct ether_view eth;
	struct ip4_view ip;
	uint8_t mac[6];

	if (ether_parse(f->bytes, f->len, &eth) != WIRE_OK || eth.type != ETHER_TYPE_IP4 ||
	    ip4_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &ip) != WIRE_OK)
		script_fail(
		    s, "wanted an IPv4 packet\n   got %s", script_dump(f, line, sizeof(line)));
	if (!ip4_csum_ok(f->bytes + eth.hdr_bytes, ip.hdr_bytes))
		script_fail(
		    s, "IP header checksum is wrong: %s", script_dump(f, line, sizeof(line)));
	teststack_mac((uint8_t)(be32_to_cpu(ip.dst) == TEST_THIRD_IP ? 3 : 2), mac);
	if ((eth.has_vlan ? eth.vlan_tci : 0) != s->opts.vlan)
		script_fail(s, "VLAN tag is wrong: %s", script_dump(f, line, sizeof(line)));
	if (be32_to_cpu(ip.src) != TEST_STACK_IP || memcmp(eth.dst.b, mac, sizeof(mac)) != 0)
		script_fail(
		    s, "source or next hop is wrong: %s", script_dump(f, line, sizeof(line)));
	return ip;
}

static void
decode_opts(struct script *s, const struct tcp_view *v, struct seg *got)
{
	bool is_syn = (v->flags & TH_SYN) != 0;
	struct tcp_opts o;
	int i;

	if (tcp_opts_parse(v->opts, v->opts_bytes, is_syn, &o) != 0)
		script_fail(s, "%s", "the stack sent malformed TCP options");
	if (is_syn) {
		got->mss = o.has_mss ? o.mss : SEG_NONE;
		got->wscale = o.has_wscale ? o.wscale : SEG_NONE;
		got->sack_ok = o.sack_ok;
	}
	got->ts = o.has_ts;
	got->tsval = o.has_ts ? o.tsval : SEG_NONE;
	got->tsecr = o.has_ts ? o.tsecr : SEG_NONE;
	got->sack.count = o.sack_count;
	for (i = 0; i < o.sack_count; i++) {
		got->sack.edge[2 * i] = (int32_t)(o.sack[i].start - s->c->irs);
		got->sack.edge[2 * i + 1] = (int32_t)(o.sack[i].end - s->c->irs);
	}
}

static void
check_payload(struct script *s, const struct tcp_view *v, int64_t seq)
{
	int64_t first = seq + ((v->flags & TH_SYN) != 0);
	size_t i;

	for (i = 0; i < v->payload_bytes; i++)
		if (v->payload[i] != script_pattern(1, first + (int64_t)i))
			script_fail(s,
			    "payload is wrong at stream position %" PRId64
			    ": wanted 0x%02x, got 0x%02x",
			    first + (int64_t)i, script_pattern(1, first + (int64_t)i),
			    v->payload[i]);
}

/*
 * Reads a frame as a segment of the current connection; every check that needs no wish of the
 * script is made here.
 */
static struct seg
decode(struct script *s, const struct wire_frame *f)
{
	struct ip4_view ip = script_check_frame(s, f);
	struct ipaddr src = ipaddr_v4(ip.src), dst = ipaddr_v4(ip.dst);
	char line[DUMP_LINE_MAX_BYTES];
	struct seg got = SEG(.flags = 0);
	struct conn *c = s->c;
	struct tcp_view v;

	if (ip.proto != IP_PROTO_TCP || tcp_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK)
		script_fail(
		    s, "wanted a TCP segment\n   got %s", script_dump(f, line, sizeof(line)));
	if (csum_fold(csum_partial(ip.payload, ip.payload_bytes,
	    csum_pseudo(&src, &dst, IP_PROTO_TCP, ip.payload_bytes))) != 0)
		script_fail(s, "TCP checksum is wrong: %s", script_dump(f, line, sizeof(line)));
	if (be32_to_cpu(ip.dst) != c->faddr || v.dport != c->fport || v.sport != c->lport)
		script_fail(
		    s, "not a segment of this connection: %s", script_dump(f, line, sizeof(line)));
	if ((v.flags & TH_SYN) && !c->iss_known) {
		c->iss = v.seq;
		c->iss_known = true;
	}
	got.flags = v.flags & ~TH_PUSH;
	got.push = (v.flags & TH_PUSH) != 0;
	got.seq = (int32_t)(v.seq - c->iss);
	got.ack = (v.flags & TH_ACK) ? (int32_t)(v.ack - c->irs) : SEG_NONE;
	got.len = (int64_t)v.payload_bytes;
	got.wnd = v.wnd;
	got.urg = (v.flags & TH_URG) ? v.urg : SEG_NONE;
	decode_opts(s, &v, &got);
	check_payload(s, &v, got.seq);
	return got;
}

/* The peer takes in-order data, remembers the window and the timestamp to echo. */
static void
note_stack_sent(struct conn *c, const struct seg *got)
{
	int64_t end =
	    got->seq + got->len + ((got->flags & TH_SYN) != 0) + ((got->flags & TH_FIN) != 0);

	int shift = !(got->flags & TH_SYN) && c->wscale >= 0 && c->stack_wscale > 0
			? (int)c->stack_wscale
			: 0;

	if (got->flags & TH_SYN)
		c->stack_wscale = got->wscale;
	if (got->flags & TH_ACK && !(got->flags & TH_RST))
		c->stack_edge = got->ack + (got->wnd << shift);
	if (got->flags & TH_ACK)
		c->stack_ack = got->ack;
	c->stack_max = end > c->stack_max ? end : c->stack_max;
	if (got->ts == 1)
		c->ts_recent = (uint32_t)got->tsval;
	if (!(got->flags & TH_RST) && got->seq <= c->rcv_nxt && end > c->rcv_nxt)
		c->rcv_nxt = end;
}

static void
check_moment(struct script *s, const struct seg *want, const struct wire_frame *f)
{
	int64_t since_us = (int64_t)(f->at.us - s->mark_us);
	int64_t tol_us = want->tol_ms != SEG_ANY ? want->tol_ms * 1000 : 1000 + want->after_ms * 10;
	int64_t late_us = since_us - want->after_ms * 1000;

	if (late_us < -tol_us || late_us > tol_us)
		script_fail(s,
		    "wanted the segment after %" PRId64
		    " ms\n   got it after %.3f ms (tolerance %.3f ms)",
		    want->after_ms, (double)since_us / 1000.0, (double)tol_us / 1000.0);
}

static uint64_t
patience_us(const struct seg *want)
{
	int64_t tol_ms = want->tol_ms != SEG_ANY ? want->tol_ms : 2 + want->after_ms / 50;

	if (want->after_ms == SEG_ANY)
		return 0;
	/* a little longer than the tolerance: "too late" says more than "nothing" */
	return (uint64_t)(want->after_ms + tol_ms) * US_PER_MS;
}

static void
expect_one(struct script *s, const struct seg *want)
{
	struct wire_frame *f = script_next_frame(s, patience_us(want));
	char wanted[512], line[DUMP_LINE_MAX_BYTES], text[512];
	const char *field;
	struct seg got;

	seg_format(want, wanted, sizeof(wanted));
	if (f == NULL)
		script_fail(s, "wanted %s\n   got nothing", wanted);
	got = decode(s, f);
	field = seg_differs(want, &got);
	if (field != NULL)
		script_fail(s, "wanted %s\n   got %s (%s)\n   that is %s", wanted,
		    seg_format(&got, text, sizeof(text)), field,
		    script_dump(f, line, sizeof(line)));
	if (want->after_ms != SEG_ANY)
		check_moment(s, want, f);
	note_stack_sent(s->c, &got);
	s->mark_us = f->at.us;
	free(f);
}

void
script_stack_sends(struct script *s, struct place at, const struct seg *g, size_t count)
{
	size_t i;

	s->place = at;
	for (i = 0; i < count; i++)
		expect_one(s, &g[i]);
}

struct seg
script_take(struct script *s, int64_t wait_ms)
{
	struct wire_frame *f = script_next_frame(s, (uint64_t)wait_ms * US_PER_MS);
	struct seg got;

	if (f == NULL)
		script_fail(s, "wanted a segment within %" PRId64 " ms\n   got nothing", wait_ms);
	got = decode(s, f);
	note_stack_sent(s->c, &got);
	s->mark_us = f->at.us;
	free(f);
	return got;
}

unsigned
script_stack_sends_any(struct script *s, struct place at)
{
	struct wire_frame *f;
	unsigned count = 0;

	s->place = at;
	while ((f = script_next_frame(s, 0)) != NULL) {
		struct seg got = decode(s, f);

		note_stack_sent(s->c, &got);
		free(f);
		count++;
	}
	script_mark(s);
	return count;
}

void
script_stack_silent(struct script *s, struct place at, int64_t ms)
{
	struct time until = time_add_us(teststack_now(&s->ts), (uint64_t)ms * US_PER_MS);
	char line[DUMP_LINE_MAX_BYTES];
	struct wire_frame *f;

	s->place = at;
	teststack_run(&s->ts);
	while (s->ts.wire->out.first == NULL && teststack_step(&s->ts, until))
		;
	f = wire_dev_take(s->ts.wire);
	if (f != NULL)
		script_fail(s, "wanted silence\n   got %s (sent at %.3f ms)",
		    script_dump(f, line, sizeof(line)),
		    (double)time_since_us(f->at, s->ts.started) / 1000.0);
}

void
script_advance_ms(struct script *s, struct place at, int64_t ms)
{
	s->place = at;
	teststack_advance(&s->ts, (uint64_t)ms * US_PER_MS);
}

void
script_watch_frame(struct script *s, const struct wire_frame *f)
{
	struct ether_view eth;
	struct tcp_view v;
	struct ip4_view ip;
	struct conn *c;
	int64_t end;

	if (ether_parse(f->bytes, f->len, &eth) != WIRE_OK || eth.type != ETHER_TYPE_IP4 ||
	    ip4_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &ip) != WIRE_OK ||
	    ip.proto != IP_PROTO_TCP || tcp_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK)
		return;
	for (c = s->conns; c < s->conns + SCRIPT_CONNS; c++)
		if (c->fport == v.dport && c->lport == v.sport)
			break;
	if (c == s->conns + SCRIPT_CONNS)
		return;
	if (v.flags & TH_SYN) {
		c->iss = v.seq;
		c->iss_known = true;
		c->stack_max = 0;
	}
	end = (int32_t)(v.seq - c->iss) + (int64_t)v.payload_bytes +
	      ((v.flags & (TH_SYN | TH_FIN)) != 0);
	c->stack_max = end > c->stack_max ? end : c->stack_max;
	if (v.flags & TH_ACK)
		c->stack_ack = (int32_t)(v.ack - c->irs);
}
