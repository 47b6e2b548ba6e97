/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows beyond 16 bits on the wire (RFC 7323 2; case S14): what is promised for buffers of all
 * sizes, windows of SYNs, a peer whose window is a gigabyte. The arithmetic alone is in
 * unit/test_tcp_rcv.c.
 */
#include <stdlib.h>

#include <darter/socket.h>

#include "runtime/netisr.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#include "support/script.h"

#define BIG_BUFFERS \
	.sysctls = { "kern.ipc.maxsockbuf=1g", "net.inet.tcp.rcvbuf_max=1g" }

/* ---- b: receive buffers ---- */

/* Bytes that the stack lets the peer send now. */
static int64_t
promised(const struct script *s)
{
	return s->c->stack_edge - s->c->snd_nxt;
}

/* The peer sends all it may, up to `most`; returns how much that was. */
static int64_t
fill(struct script *s, int64_t most)
{
	int64_t sent = 0, n;

	while (sent < most && (n = promised(s)) > 0) {
		n = n < 1460 ? n : 1460;
		peer_sends(s, DATA(s->c->snd_nxt, s->c->snd_nxt + n));
		sent += n;
		if (stack_sends_anything(s) == 0 && promised(s) == 0) {
			advance_ms(s, 50);
			stack_sends_anything(s);
		}
	}
	return sent;
}

/*
 * The reader keeps up and the window grows to what the buffer allows; then nobody reads, and what
 * is promised ends at zero: never past the buffer, and every byte of it is there afterwards.
 */
static void
fill_and_drain(struct script *s, int rcvbuf, int64_t most)
{
	/* an update waits until a quarter can be told, or two segments */
	int64_t least = rcvbuf - rcvbuf / 4 - 2 * 1460, want = least < most ? least : most;
	int64_t unread, widest = 0;
	unsigned i;

	established(s, .wscale = 3, .rcvbuf = rcvbuf);
	assert_in_range(promised(s), 1, rcvbuf);
	for (i = 0; i < 40; i++) {
		int64_t n = fill(s, 60000);

		/* while a segment fits, something is promised */
		assert_true(n > 0);
		app_reads(s, n);
		stack_sends_anything(s);
		assert_in_range(promised(s), 1, rcvbuf);
		widest = promised(s) > widest ? promised(s) : widest;
	}
	assert_true(widest >= want);
	unread = fill(s, most);
	assert_in_range(unread, want, rcvbuf);
	app_reads(s, unread);
	stack_sends_anything(s);
	assert_in_range(promised(s), 1460, rcvbuf);
	app_reads(s, fill(s, 100));
	advance_ms(s, 50);
	stack_sends_anything(s);
}

/* Case S14 b */
SCRIPT_ON(buffer_of_65535_is_promised_and_kept, BIG_BUFFERS)
{
	fill_and_drain(s, 65535, INT64_MAX);
}

SCRIPT_ON(buffer_of_65536_is_promised_and_kept, BIG_BUFFERS)
{
	fill_and_drain(s, 65536, INT64_MAX);
}

SCRIPT_ON(buffer_of_131072_is_promised_and_kept, BIG_BUFFERS)
{
	fill_and_drain(s, 131072, INT64_MAX);
}

SCRIPT_ON(buffer_of_a_mebibyte_is_promised_and_kept, BIG_BUFFERS)
{
	fill_and_drain(s, 1 << 20, INT64_MAX);
}

/* Not to the end: the memory of the test's stack is less. */
SCRIPT_ON(buffer_of_a_gibibyte_is_promised_and_kept, BIG_BUFFERS)
{
	fill_and_drain(s, 1 << 30, 1 << 20);
	assert_int_equal(s->c->stack_wscale, 14);
}

/* ---- d: windows of SYNs ---- */

/* Case S14 d; RFC 7323 2.2: the window of a SYN and a SYN-ACK is never scaled, ours */
SCRIPT(windows_of_our_syns_are_not_scaled)
{
	struct seg got;

	app_listens(s);
	s->c->wscale = 7;
	peer_sends(s, SYN());
	got = script_take(s, 0);
	assert_int_equal(got.flags, TH_SYN | TH_ACK);
	assert_true(got.wscale > 0);
	/* the first window is 64 KiB (initial_window): the field's largest number, not shifted */
	assert_int_equal(got.wnd, 65535);
	peer_sends(s, ACK(1));
	app_accepts(s);
	peer_sends(s, DATA(1, 101));
	got = script_take(s, 50);
	assert_in_range((got.wnd << s->c->stack_wscale) + 100, 65535 - 127, 65536 + 127);
	app_reads(s, 100);
	use_conn(s, 1);
	app_connects(s);
	got = script_take(s, 0);
	assert_int_equal(got.flags, TH_SYN);
	assert_true(got.wscale > 0);
	assert_int_equal(got.wnd, 65535);
}

/* Case S14 d: and the peer's: 1,000 in the SYN-ACK means 1,000, in the next segment 128,000 */
SCRIPT(window_of_the_peers_syn_is_not_scaled)
{
	struct tcp_conn_info i;

	s->c->wscale = 7;
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK(.wnd = 1000));
	stack_sends(s, ACK(1));
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wscale, 7);
	assert_int_equal(i.snd_wnd_bytes, 1000);
	app_sets_int(s, IPPROTO_TCP, TCP_NODELAY, 1);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 1001));
	stack_silent(s);
	peer_sends(s, ACK(1001, .wnd = 1000));
	stack_sends(s, DATA(1001, 2461), DATA(2461, 3001));
	assert_true(script_conn_info(s, &i));
	assert_int_equal(i.snd_wnd_bytes, 128000);
}

/* ---- g: a peer's window of a gibibyte ---- */

#define PIECE_BYTES	(1 << 20)
#define FLIGHT_BYTES	(INT64_C(32) << 20)	/* send buffer: so much is in flight at most */
#define TOTAL_BYTES	(INT64_C(2) << 30)
#define RTT_MS		100
#define JUMBO_MSS	8960	/* fewer frames: the bytes are the point */

/* The far end counts and does not look at bytes: there are two gigabytes of them. */
struct far_end {
	struct conn *c;
	uint32_t nxt;		/* absolute */
	int64_t got;
	int64_t acked;
	uint64_t out_of_order;
	/* what the harness does with frames: it answers ARP */
	bool (*rest)(void *arg, const uint8_t *frame, uint32_t len);
	void *rest_arg;
};

static bool
count_frame(void *arg, const uint8_t *frame, uint32_t len)
{
	struct far_end *e = arg;
	struct ether_view eth;
	struct ip4_view ip;
	struct tcp_view v;

	if (ether_parse(frame, len, &eth) != WIRE_OK || eth.type != ETHER_TYPE_IP4 ||
	    ip4_parse(frame + eth.hdr_bytes, len - eth.hdr_bytes, &ip) != WIRE_OK ||
	    tcp_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK || v.dport != e->c->fport)
		return e->rest(e->rest_arg, frame, len);
	if (v.seq != e->nxt) {
		e->out_of_order++;
		return true;
	}
	e->nxt += (uint32_t)v.payload_bytes;
	e->got += (int64_t)v.payload_bytes;
	return true;
}

static void
write_all_that_fits(struct script *s, const uint8_t *piece)
{
	struct netisr *n = s->ts.s->netisr[0];
	ssize_t rc;

	do {
		assert_true(netisr_take(n));
		rc = darter_send(s->c->fd, piece, PIECE_BYTES, MSG_NOSIGNAL);
		netisr_give(n);
		teststack_run(&s->ts);
	} while (rc > 0);
	assert_int_equal(errno, EAGAIN);
}

/*
 * A round trip later: ACKs for every two segments, which is what lets the window grow; for more
 * when it has grown.
 */
static void
acknowledge(struct script *s, struct far_end *e, int64_t got)
{
	int64_t at, step = got < 2 * FLIGHT_BYTES ? 2 * JUMBO_MSS : 65536;

	for (at = e->acked + step; at < got; at += step)
		peer_sends(s, ACK((int64_t)(uint32_t)(1 + at), .seq = 1));
	peer_sends(s, ACK((int64_t)(uint32_t)(1 + got), .seq = 1));
	e->acked = got;
}

/*
 * Case S14 g: two gibibytes through a window of one, a round trip of 100 ms: never a stall, nothing
 * sent twice, in flight as much as the buffer holds
 */
SCRIPT_ON(gibibyte_of_window_is_used_without_a_stall, .netisrs = 1, .mtu = 9000, BIG_BUFFERS)
{
	uint8_t *piece = calloc(1, PIECE_BYTES);
	static struct far_end e;	/* the wire holds on to it when the script fails */
	int64_t most = 0, before = -1;

	assert_non_null(piece);
	established(s, .mss = JUMBO_MSS, .wscale = 14, .sndbuf = (int)FLIGHT_BYTES,
	    .rtt_ms = RTT_MS);
	e = (struct far_end){ .c = s->c, .nxt = s->c->iss + 1 };
	e.rest = s->ts.wire->on_tx;
	e.rest_arg = s->ts.wire->on_tx_arg;
	s->ts.wire->on_tx = count_frame;
	s->ts.wire->on_tx_arg = &e;
	while (e.got < TOTAL_BYTES) {
		write_all_that_fits(s, piece);
		/* every round trip brings new data */
		assert_true(e.got > before);
		most = e.got - before > most ? e.got - before : most;
		before = e.got;
		teststack_advance(&s->ts, RTT_MS * US_PER_MS);
		acknowledge(s, &e, before);
	}
	assert_true(most >= FLIGHT_BYTES - PIECE_BYTES);
	assert_int_equal(e.out_of_order, 0);
	counter_is(s, "tcp_retransmits", 0);
	free(piece);
	peer_sends(s, RST(1));
	s->ts.wire->on_tx = e.rest;
	s->ts.wire->on_tx_arg = e.rest_arg;
	app_closes(s);
	wire_dev_clear(s->ts.wire);
}
