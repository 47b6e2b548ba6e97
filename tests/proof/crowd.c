/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections at once, of peers that are a few lines here: they shake hands, take or send what
 * the case says, and hold no state but a sequence number each. Virtual time.
 *
 * Case S18 h: ten thousand connections whose windows are shut: their probes are work for many
 * rounds, cut up by the timer budget, and what else comes in is served in between. Case S27 f:
 * twenty thousand connections send to applications that do not read until memory is gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>

#include "base/csum.h"
#include "runtime/netisr.h"
#include "support/cmocka_all.h"
#include "support/teststack.h"
#include "transport/tcp/tcp.h"
#include "wire/ether.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"
#include "wire/tcp.h"
#include "wire/wire.h"

#define PORT		80
#define PEERS_MAX	20001u
#define PORTS_A_HOST	10000u
#define HOSTS		UINT32_C(0xc6120000)	/* 198.18.0.0, by way of P */
#define ISS		1000u
#define MSS_BYTES	1460u
#define L4_AT		(ETHER_HDR_BYTES + IP4_HDR_BYTES)
#define FRAME_BYTES	(L4_AT + TCP_HDR_BYTES + 4 + MSS_BYTES + ETHER_MIN_FRAME_BYTES)

struct peer {
	int fd;
	uint32_t snd_nxt;
	uint32_t snd_una;
	uint32_t iss;		/* the stack's */
	uint32_t rcv_nxt;
	uint32_t edge;		/* of the window that the stack promised */
	uint32_t probes;
	uint32_t read_bytes;	/* by the application */
	bool has_window;	/* answers with a window of 65535, else 0 */
};

static struct {
	struct teststack ts;
	struct peer *peers;
	bool (*arp)(void *arg, const uint8_t *frame, uint32_t len);
	void *arp_arg;
	uint32_t answers;	/* ICMP echo replies */
	uint32_t probes_now;	/* since somebody has set it to 0 */
	uint32_t *owed;		/* peers that are to answer, where has_rtt */
	uint32_t n_owed;
	bool has_rtt;		/* answers wait for pay_owed() */
	uint32_t resets;
	int lfd;
} w;

/* ---- the peers ---- */

static uint32_t
host_of(uint32_t i)
{
	return HOSTS + i / PORTS_A_HOST;
}

static void
send_frame(uint8_t *frame, uint8_t proto, uint32_t src, uint32_t l4_bytes)
{
	struct ip4_view ip = { .src = be32_from_cpu(src), .dst = be32_from_cpu(TEST_STACK_IP),
		.total_bytes = (uint16_t)(IP4_HDR_BYTES + l4_bytes), .ttl = 64, .proto = proto };
	uint32_t len = L4_AT + l4_bytes;
	struct mac to, from;

	teststack_mac(1, to.b);
	teststack_mac(2, from.b);
	ether_emit(frame, &to, &from, ETHER_TYPE_IP4);
	ip4_emit(frame + ETHER_HDR_BYTES, &ip);
	wire_dev_inject(w.ts.wire, 0, frame,
	    len < ETHER_MIN_FRAME_BYTES ? ETHER_MIN_FRAME_BYTES : len);
}

static void
peer_sends(uint32_t i, uint8_t flags, uint32_t payload_bytes)
{
	static uint8_t frame[FRAME_BYTES];
	struct peer *p = &w.peers[i];
	struct ipaddr src = ipaddr_v4_cpu(host_of(i)), dst = ipaddr_v4_cpu(TEST_STACK_IP);
	uint32_t hdr_bytes = TCP_HDR_BYTES + (flags & TH_SYN ? 4 : 0);
	uint32_t len = hdr_bytes + payload_bytes;
	struct tcp_view v = { .sport = (uint16_t)(10000 + i % PORTS_A_HOST), .dport = PORT,
		.seq = p->snd_nxt, .ack = flags & TH_ACK ? p->rcv_nxt : 0,
		.wnd = p->has_window || (flags & TH_SYN) ? 65535 : 0, .flags = flags,
		.hdr_bytes = (uint8_t)hdr_bytes };
	uint32_t k;
	uint16_t sum;

	memset(frame, 0, L4_AT + hdr_bytes + ETHER_MIN_FRAME_BYTES);
	/* a byte of the stream is the low byte of its number */
	for (k = 0; k < payload_bytes; k++)
		frame[L4_AT + hdr_bytes + k] = (uint8_t)(p->snd_nxt + k);
	tcp_emit(frame + L4_AT, &v);
	if (flags & TH_SYN) {
		frame[L4_AT + 20] = 2;	/* the MSS option */
		frame[L4_AT + 21] = 4;
		store_be16(frame + L4_AT + 22, MSS_BYTES);
	}
	sum = csum_fold(csum_partial(frame + L4_AT, len,
	    csum_pseudo(&src, &dst, IP_PROTO_TCP, len)));
	memcpy(frame + L4_AT + 16, &sum, sizeof(sum));
	send_frame(frame, IP_PROTO_TCP, host_of(i), len);
}

static struct peer *
peer_of(uint32_t addr, uint16_t port, uint32_t *ret_i)
{
	uint32_t i = (addr - HOSTS) * PORTS_A_HOST + port - 10000u;

	assert_true(i < PEERS_MAX);
	*ret_i = i;
	return &w.peers[i];
}

/* A segment of the stack: taken when it is in order and there is a window, else answered. */
static void
on_segment(uint32_t to, const struct tcp_view *v)
{
	uint32_t i, len = (uint32_t)v->payload_bytes + ((v->flags & (TH_SYN | TH_FIN)) != 0);
	struct peer *p = peer_of(to, v->dport, &i);

	if (v->flags & TH_RST) {
		w.resets++;
		return;
	}
	if (v->flags & TH_SYN) {
		p->iss = p->rcv_nxt = v->seq;
		p->snd_nxt = ISS + 1;
	}
	if (v->flags & TH_ACK) {
		p->snd_una = v->ack;
		p->edge = v->ack + v->wnd;
	}
	if (v->seq == p->rcv_nxt && (p->has_window || v->payload_bytes == 0))
		p->rcv_nxt += len;
	else
		w.probes_now += ++p->probes > 0;
	if (len == 0 && v->seq == p->rcv_nxt)
		return;
	if (!w.has_rtt)
		peer_sends(i, TH_ACK, 0);
	else if (w.n_owed < PEERS_MAX)
		w.owed[w.n_owed++] = i;
}

static void
pay_owed(void)
{
	uint32_t i;

	for (i = 0; i < w.n_owed; i++) {
		peer_sends(w.owed[i], TH_ACK, 0);
		if (i % 128 == 127)
			teststack_run(&w.ts);
	}
	w.n_owed = 0;
	teststack_run(&w.ts);
}

static bool
on_frame(void *arg, const uint8_t *frame, uint32_t len)
{
	struct ip4_view ip;
	struct tcp_view v;

	(void)arg;
	if (w.arp(w.arp_arg, frame, len))
		return true;
	if (ip4_parse(frame + ETHER_HDR_BYTES, len - ETHER_HDR_BYTES, &ip) != WIRE_OK)
		return true;
	w.answers += ip.proto == IP_PROTO_ICMP;
	if (ip.proto == IP_PROTO_TCP && tcp_parse(ip.payload, ip.payload_bytes, &v) == WIRE_OK)
		on_segment(be32_to_cpu(ip.dst), &v);
	return true;
}

/* ---- the application ---- */

static void
hold(void)
{
	assert_true(netisr_take(w.ts.s->netisr[0]));
}

static void
let_go(void)
{
	netisr_give(w.ts.s->netisr[0]);
}

static void
open_world(const struct teststack_opts *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned i;

	memset(&w, 0, sizeof(w));
	w.peers = calloc(PEERS_MAX, sizeof(struct peer));
	w.owed = calloc(PEERS_MAX, sizeof(uint32_t));
	assert_true(w.peers != NULL && w.owed != NULL);
	for (i = 0; i < PEERS_MAX; i++)
		w.peers[i] = (struct peer){ .fd = -1, .snd_nxt = ISS };
	teststack_init(&w.ts, o, 0);
	w.arp = w.ts.wire->on_tx;
	w.arp_arg = w.ts.wire->on_tx_arg;
	w.ts.wire->on_tx = on_frame;
	hold();
	w.lfd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(darter_bind(w.lfd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(w.lfd, 1024), 0);
	let_go();
}

/* Handshakes in groups that the accept queue takes. */
static void
connect_peers(uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i++) {
		peer_sends(i, TH_SYN, 0);
		/* the first alone: until P's address is known few answers wait */
		if (i != from && i % 256 != 255 && i + 1 < to)
			continue;
		teststack_run(&w.ts);
		for (;;) {
			struct sockaddr_in a = { 0 };
			socklen_t len = sizeof(a);
			uint32_t k;
			int fd;

			hold();
			fd = darter_accept4(w.lfd, (struct sockaddr *)&a, &len, SOCK_NONBLOCK);
			let_go();
			if (fd < 0)
				break;
			peer_of(ntohl(a.sin_addr.s_addr), ntohs(a.sin_port), &k)->fd = fd;
		}
	}
	for (i = from; i < to; i++)
		assert_true(w.peers[i].fd >= 0);
}

static void
close_world(uint32_t n_peers)
{
	uint32_t i;

	hold();
	for (i = 0; i < n_peers; i++) {
		if (w.peers[i].fd >= 0)
			assert_int_equal(darter_close(w.peers[i].fd), 0);
		if (i % 128 == 127) {
			let_go();
			teststack_run(&w.ts);
			hold();
		}
	}
	darter_close(w.lfd);
	let_go();
	teststack_run(&w.ts);
	for (i = 0; i < n_peers; i++) {
		peer_sends(i, TH_RST | TH_ACK, 0);
		if (i % 128 == 127)
			teststack_run(&w.ts);
	}
	teststack_advance(&w.ts, 300 * US_PER_SEC);
	assert_int_equal(teststack_tcp_count(&w.ts), 0);
	teststack_expect_no_leak(&w.ts);
	teststack_fini(&w.ts);
	free(w.peers);
	free(w.owed);
}

static void
ping(void)
{
	static const uint8_t data[32];
	struct icmp4_view v = { .type = ICMP4_ECHO, .id = 1, .data = data,
		.data_bytes = sizeof(data) };
	uint8_t frame[256] = { 0 };

	send_frame(frame, IP_PROTO_ICMP, TEST_PEER_IP,
	    (uint32_t)icmp4_emit(frame + L4_AT, &v));
}

/* ---- S18 h ---- */

#define SHUT		10000u
#define SHUT_BYTES	5000
#define SHUT_MINUTES	5

/* One round of the netisr at the next deadline; how many probes it sent. */
static uint32_t
one_round(void)
{
	struct netisr *n = w.ts.s->netisr[0];

	w.probes_now = 0;
	hold();
	netisr_round(n);
	let_go();
	return w.probes_now;
}

/*
 * Runs to `until` round by round. In each round a ping is waiting; it must be answered in that
 * round, however many probes are due. The peers answer when no more probes come. Returns the
 * largest number of probes of one round.
 */
static uint32_t
run_with_pings(struct time until)
{
	uint32_t most = 0;

	w.has_rtt = true;
	while (time_before(teststack_now(&w.ts), until)) {
		struct time next = teststack_next_deadline(&w.ts);
		struct time now = teststack_now(&w.ts);
		uint32_t before = w.answers, probes;

		if (time_before(now, next))
			clock_advance_us(&w.ts.clock,
			    time_since_us(time_min(next, until), now));
		else
			clock_advance_us(&w.ts.clock, 64);
		ping();
		probes = one_round();
		assert_int_equal(w.answers - before, 1);
		most = probes > most ? probes : most;
		if (probes == 0)
			pay_owed();
	}
	pay_owed();
	w.has_rtt = false;
	return most;
}

static void
ten_thousand_shut_windows_leave_room_for_others(void **state)
{
	struct teststack_opts o = { .seed = 18, .packets = 8192,
		.ring_memory_bytes = UINT64_C(512) << 20 };
	static char bytes[SHUT_BYTES];
	uint32_t i, most;

	(void)state;
	open_world(&o);
	connect_peers(0, SHUT);
	/* the windows shut at one moment, the worst that can be */
	for (i = 0; i < SHUT; i++) {
		hold();
		assert_int_equal(darter_send(w.peers[i].fd, bytes, SHUT_BYTES, 0), SHUT_BYTES);
		let_go();
		if (i % 128 == 127)
			teststack_run(&w.ts);
	}
	most = run_with_pings(time_add_us(teststack_now(&w.ts), SHUT_MINUTES * 60 * US_PER_SEC));
	/* they don't leave in one tick: no round sends more than its budget of timers */
	assert_in_range(most, 1, NETISR_TIMER_BUDGET);
	for (i = 0; i < SHUT; i++)
		assert_in_range(w.peers[i].probes, 5, 40);
	/* and all go on when their windows open */
	for (i = 0; i < SHUT; i++) {
		w.peers[i].has_window = true;
		peer_sends(i, TH_ACK, 0);
		if (i % 64 == 63)
			teststack_run(&w.ts);
	}
	teststack_advance(&w.ts, 5 * US_PER_SEC);
	for (i = 0; i < SHUT; i++)
		assert_int_equal(w.peers[i].rcv_nxt - w.peers[i].iss - 1, SHUT_BYTES);
	close_world(SHUT);
}

/* ---- S27 f ---- */

#define SENDERS		20000u
#define SENDER_BYTES	65536u
#define PASSES_MAX	400u
#define RING_MEMORY	(UINT64_C(64) << 20)

/* What the window and the peer's turn allow; what was not acknowledged the turn before again. */
static void
take_turn(uint32_t i)
{
	struct peer *p = &w.peers[i];
	uint32_t end = ISS + 1 + SENDER_BYTES, n;
	unsigned k;

	p->snd_nxt = p->snd_una;
	for (k = 0; k < 8 && p->snd_nxt != end; k++) {
		n = end - p->snd_nxt < MSS_BYTES ? end - p->snd_nxt : MSS_BYTES;
		if (n > p->edge - p->snd_nxt)
			n = p->edge - p->snd_nxt;
		if (n == 0)
			break;
		peer_sends(i, TH_ACK, n);
		p->snd_nxt += n;
	}
}

static uint64_t
acked_bytes(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < SENDERS; i++)
		sum += w.peers[i].snd_una - ISS - 1;
	return sum;
}

/* A turn of everybody. Returns how much was acknowledged. */
static uint64_t
pass(void)
{
	uint64_t before = acked_bytes();
	uint32_t i;

	for (i = 0; i < SENDERS; i++) {
		take_turn(i);
		if (i % 32 == 31)
			teststack_run(&w.ts);
	}
	teststack_advance(&w.ts, 250 * US_PER_MS);
	return acked_bytes() - before;
}

static void
read_some(uint32_t i)
{
	static uint8_t buf[SENDER_BYTES];
	struct peer *p = &w.peers[i];
	unsigned bad = 0;
	ssize_t n, k;

	hold();
	n = darter_recv(p->fd, buf, sizeof(buf), 0);
	let_go();
	if (n < 0)
		assert_int_equal(errno, EAGAIN);
	for (k = 0; k < n; k++)
		bad += buf[k] != (uint8_t)(ISS + 1 + p->read_bytes + (uint32_t)k);
	assert_int_equal(bad, 0);
	p->read_bytes += n > 0 ? (uint32_t)n : 0;
}

static uint32_t
read_all_round(void)
{
	uint32_t i, n_done = 0;

	for (i = 0; i < SENDERS; i++) {
		read_some(i);
		n_done += w.peers[i].read_bytes == SENDER_BYTES;
		if (i % 32 == 31)
			teststack_run(&w.ts);
	}
	return n_done;
}

static void
memory_that_is_gone_comes_back_when_it_is_read(void **state)
{
	struct teststack_opts o = { .seed = 27, .packets = 8192, .ring_memory_bytes = RING_MEMORY };
	uint32_t i, before;
	unsigned passes;

	(void)state;
	open_world(&o);
	for (i = 0; i < PEERS_MAX; i++)
		w.peers[i].has_window = true;
	connect_peers(0, SENDERS);
	/* the application does not read: until nothing is taken any more */
	for (passes = 0; pass() > 0; passes++)
		assert_true(passes < PASSES_MAX);
	assert_true(acked_bytes() < (uint64_t)SENDERS * SENDER_BYTES);
	assert_true(stack_counter(w.ts.s, CTR_drop_tcp_rcv_nomem) > 0);
	assert_int_equal(w.resets, 0);
	before = w.answers;
	ping();
	teststack_run(&w.ts);
	assert_int_equal(w.answers - before, 1);
	/* then it reads everything */
	for (passes = 0; read_all_round() < SENDERS; passes++) {
		assert_true(passes < PASSES_MAX);
		pass();
	}
	assert_int_equal(w.resets, 0);
	/* a new connection works at once */
	connect_peers(SENDERS, SENDERS + 1);
	w.peers[SENDERS].snd_una = ISS + 1;
	take_turn(SENDERS);
	teststack_advance(&w.ts, US_PER_SEC);
	read_some(SENDERS);
	assert_true(w.peers[SENDERS].read_bytes >= MSS_BYTES);
	close_world(SENDERS + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_shut_windows_leave_room_for_others),
		cmocka_unit_test(memory_that_is_gone_comes_back_when_it_is_read),
	};

	return cmocka_run_group_tests_name("proof crowd", tests, NULL, NULL);
}
