/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: whole frames and calls of the application, interleaved, against a live stack under a
 * fake clock. The input is a list of operations (fuzz_ops.h). Afterwards everything is closed and
 * reset, and the stack must be empty: a leak, a crash, an endless loop or a failed assertion is a
 * finding. Equal inputs do equal things.
 */
#include <stdlib.h>
#include <string.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "fuzz/fuzz.h"
#include "fuzz/fuzz_ops.h"
#include "runtime/netisr.h"
#include "support/script.h"
#include "support/script_priv.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#define OPS_MAX		400		/* bounds the time of one input */
#define TIME_MAX_MS	600000
#define UDP_PORT	6000

struct reader {
	const uint8_t *p;
	size_t left;
	bool is_short;
};

/* The two stacks that inputs choose from; the scripts' bodies are never run. */
SCRIPT_ON(fuzz_one_netisr, .netisrs = 1) { (void)s; }
SCRIPT_ON(fuzz_two_netisrs, .netisrs = 2) { (void)s; }

static uint8_t
take_u8(struct reader *r)
{
	if (r->left < 1) {
		r->is_short = true;
		return 0;
	}
	r->left--;
	return *r->p++;
}

static uint16_t
take_u16(struct reader *r)
{
	uint16_t hi = take_u8(r);

	return (uint16_t)(hi << 8 | take_u8(r));
}

static int64_t
take_i16(struct reader *r)
{
	return (int16_t)take_u16(r);
}

static const uint8_t *
take_bytes(struct reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (n > r->left) {
		r->is_short = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return p;
}

/* Learns from what the stack sent, and forgets it. */
static void
watch(struct script *s)
{
	struct wire_frame *f;

	teststack_run(&s->ts);
	while ((f = wire_dev_take(s->ts.wire)) != NULL) {
		script_watch_frame(s, f);
		free(f);
	}
}

static void
do_seg(struct script *s, struct reader *r)
{
	static uint8_t frame[4096];
	struct seg g = SEG(.flags = 0);
	const uint8_t *opts;

	g.flags = take_u8(r);
	g.seq = s->c->stack_ack + take_i16(r);
	g.ack = s->c->stack_max + take_i16(r);
	g.len = take_u16(r) % 1461;
	g.wnd = take_u16(r);
	g.opts.count = take_u8(r) % 41;
	opts = take_bytes(r, g.opts.count);
	if (r->is_short)
		return;
	memcpy(g.opts.b, opts, g.opts.count);
	g.ts = 0;
	wire_dev_inject(s->ts.wire, 0, frame, script_build(s, &g, frame, sizeof(frame)));
}

static void
do_raw(struct script *s, struct reader *r)
{
	uint16_t len = take_u16(r);
	const uint8_t *p = take_bytes(r, len);

	if (!r->is_short)
		wire_dev_inject(s->ts.wire, 0, p, len);
}

static void
do_ip(struct script *s, struct reader *r)
{
	static uint8_t frame[2048];
	uint8_t proto = take_u8(r);
	uint16_t len = take_u16(r);
	const uint8_t *p = take_bytes(r, len);

	if (r->is_short || len > 1480)
		return;
	memcpy(frame + ETHER_HDR_BYTES + IP4_HDR_BYTES, p, len);
	wire_dev_inject(s->ts.wire, 0, frame,
	    script_wrap_ip(frame, proto, TEST_PEER_IP, TEST_STACK_IP, len));
}

static void
do_icmp(struct script *s, struct reader *r)
{
	struct icmp_quote q = { .type = take_u8(r), .code = take_u8(r) };

	q.mtu = take_u16(r);
	q.seq = s->c->stack_max + take_i16(r);
	script_peer_icmp(s, HERE, &q);
}

static void
do_option(struct script *s, struct reader *r)
{
	static const int options[][2] = { FUZZ_OPTIONS };
	unsigned which = take_u8(r) % (unsigned)ARRAY_LEN(options);
	int v = take_u16(r);

	darter_setsockopt(s->c->fd, options[which][0], options[which][1], &v, sizeof(v));
}

static void
do_connect(struct script *s)
{
	struct conn *c = s->c;

	if (c->fd < 0) {
		c->fd = script_socket(&s->ts, SOCK_STREAM);
		c->lport = (uint16_t)(SCRIPT_ACTIVE_LPORT + (c - s->conns));
		c->fport = (uint16_t)(SCRIPT_ACTIVE_FPORT + (c - s->conns));
		c->stack_ack = 0;
		c->stack_max = 0;
		c->iss_known = false;
	}
	script_connect_on(&s->ts, c->fd, c->lport, TEST_PEER_IP, c->fport);
}

static void
do_call(struct script *s, enum fuzz_op op, struct reader *r)
{
	static uint8_t buf[65536];
	struct linger off = { 1, 0 };
	struct conn *c = s->c;

	switch (op) {
	case FUZZ_ACCEPT:
		if (c->fd < 0)
			c->fd = darter_accept4(s->lfd, NULL, NULL, SOCK_NONBLOCK);
		break;
	case FUZZ_WRITE:
		darter_send(c->fd, buf, take_u16(r), MSG_NOSIGNAL);
		break;
	case FUZZ_READ:
		darter_recv(c->fd, buf, take_u16(r), 0);
		break;
	case FUZZ_CLOSE:
		if (c->fd >= 0)
			darter_close(c->fd);
		c->fd = -1;
		break;
	case FUZZ_SHUTDOWN:
		darter_shutdown(c->fd, take_u8(r) % 3);
		break;
	case FUZZ_OPTION:
		do_option(s, r);
		break;
	case FUZZ_UDP_READ:
		darter_recv(s->ufd, buf, sizeof(buf), 0);
		break;
	default:
		darter_setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
		break;
	}
}

static void
do_op(struct script *s, struct reader *r, uint64_t *time_left_ms)
{
	uint8_t b = take_u8(r);
	enum fuzz_op op = b & 15;
	uint64_t ms;

	s->c = &s->conns[b >> 4];
	switch (op) {
	case FUZZ_SEG:
		do_seg(s, r);
		break;
	case FUZZ_FRAME:
		do_raw(s, r);
		break;
	case FUZZ_IP:
		do_ip(s, r);
		break;
	case FUZZ_TIME:
		ms = min_u64(take_u16(r), *time_left_ms);
		*time_left_ms -= ms;
		teststack_advance(&s->ts, ms * US_PER_MS);
		break;
	case FUZZ_CONNECT:
		do_connect(s);
		break;
	case FUZZ_UDP_SEND:
		script_udp_send_on(s, TEST_PEER_IP, 5000, take_u16(r));
		break;
	case FUZZ_TX_ROOM:
		b = take_u8(r);
		s->ts.wire->tx_room = b == 255 ? UINT32_MAX : b;
		break;
	case FUZZ_ICMP:
		do_icmp(s, r);
		break;
	default:
		MUST(netisr_take(s->ts.s->netisr[0]));
		do_call(s, op, r);
		netisr_give(s->ts.s->netisr[0]);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader r = { data, len, false };
	uint64_t time_left_ms = TIME_MAX_MS;
	struct script *s;
	unsigned i;

	/* a failed check of the harness is a finding, not an orderly exit */
	setenv("CMOCKA_TEST_ABORT", "1", 0);
	s = script_begin(take_u8(&r) & 1, "fuzz", 0, 0);
	s->lfd = script_listen_on(&s->ts, SCRIPT_LISTEN_PORT);
	script_app_udp_bind(s, HERE, UDP_PORT);
	for (i = 0; i < OPS_MAX && r.left > 0 && !r.is_short; i++) {
		do_op(s, &r, &time_left_ms);
		watch(s);
	}
	s->ts.wire->tx_room = UINT32_MAX;
	s->c = &s->conns[0];
	teststack_advance(&s->ts, 10 * US_PER_MS);
	watch(s);
	script_end(s);
	script_discard(s);
	return 0;
}
