/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each limit of the stack: what happens beyond it, which counter or errno says so, and that
 * everything is as before when the pressure is gone. Virtual time. Here are those of memory, of
 * descriptors and of what strangers send; limits_conn.c has those of connections. What tests/unit
 * has by itself is not repeated: the queues of neighbours (test_neigh) and datagrams (test_dgramq),
 * steering and transmit rings (test_steer, test_ether_out), ports (test_port).
 */
#include <stdlib.h>

#include <darter/event.h>

#include "base/csum.h"
#include "runtime/pkt.h"
#include "proof/limits.h"
#include "sim/flow.h"
#include "socket/fdtab.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_pcb.h"
#include "wire/ether.h"
#include "wire/ip4.h"
#include "wire/tcp.h"
#include "wire/wire.h"

/* ---- receive memory ---- */

#define CROWD		1000u
#define CROWD_BYTES	12000u

/* A thousand windows of 1 MiB are promised; there is 1 MiB to keep bytes in. */
static void
receive_pool_of_1_mib_serves_a_thousand_windows_of_1_mib(void **state)
{
	struct sim_opts o = {
		.seed = 1,
		.packets = 32768,
		.ring_memory_bytes = { UINT64_C(64) << 20, UINT64_C(1) << 20 },
		.rcv_budget_bytes = UINT64_C(4) << 30,
		.sysctls = { "net.inet.tcp.initial_window=1048576",
		    "net.inet.tcp.recvspace=1048576" },
	};
	struct flow_plan plan = {
		.bytes = { CROWD_BYTES, 0 },
		.piece_max = 4096,
		.half_close = true,
		.abort_at = { UINT64_MAX, UINT64_MAX },
	};
	struct flow *f = calloc(CROWD, sizeof(*f));
	struct sim m;
	unsigned i;

	(void)state;
	assert_non_null(f);
	sim_init(&m, &o);
	for (i = 0; i < CROWD; i++)
		flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
	if (!flows_run(&m, f, CROWD, 3600.0))
		fail_msg("%s", "not over after an hour of virtual time");
	for (i = 0; i < CROWD; i++)
		flow_check(&f[i], false, "crowd");
	assert_true(sim_counter(&m, 1, CTR_drop_tcp_rcv_nomem) > 0);
	assert_int_equal(sim_counter(&m, 0, CTR_tcp_resets_sent), 0);
	assert_int_equal(sim_counter(&m, 1, CTR_tcp_resets_sent), 0);
	sim_advance(&m, 300 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
	free(f);
}

/* ---- packets ---- */

struct hoard {
	struct pkt **pkts;
	uint32_t count;
};

static void
take_all_packets(struct darter_stack *s, struct hoard *h)
{
	struct netisr *n = s->netisr[0];
	struct pkt *p;

	h->pkts = calloc(s->config.packets + NETISR_PKT_CACHE, sizeof(struct pkt *));
	h->count = 0;
	assert_non_null(h->pkts);
	assert_true(netisr_take(n));
	while ((p = pkt_alloc(n)) != NULL)
		h->pkts[h->count++] = p;
	netisr_give(n);
}

static void
give_packets_back(struct darter_stack *s, struct hoard *h)
{
	struct netisr *n = s->netisr[0];

	assert_true(netisr_take(n));
	while (h->count > 0)
		pkt_free(n, h->pkts[--h->count]);
	netisr_give(n);
	free(h->pkts);
}

static void
connections_outlive_an_exhausted_packet_pool(void **state)
{
	struct sim_opts o = { .seed = 2 };
	struct flow_plan plan = { .bytes = { 300000, 300000 }, .pace_us = 5000,
		.piece_max = 3000, .half_close = true, .abort_at = { UINT64_MAX, UINT64_MAX } };
	struct hoard h[2];
	struct flow f[4];
	struct sim m;
	unsigned i;

	(void)state;
	sim_init(&m, &o);
	for (i = 0; i < 4; i++)
		flow_start(&m, &f[i], &plan, (uint16_t)(7000 + i));
	assert_false(flows_run(&m, f, 4, 0.2));
	take_all_packets(m.s[0], &h[0]);
	take_all_packets(m.s[1], &h[1]);
	assert_false(flows_run(&m, f, 4, 3.0));
	assert_true(sim_counter(&m, 0, CTR_drop_pkt_nomem) > 0);
	assert_true(sim_counter(&m, 1, CTR_drop_pkt_nomem) > 0);
	give_packets_back(m.s[0], &h[0]);
	give_packets_back(m.s[1], &h[1]);
	assert_true(flows_run(&m, f, 4, 600.0));
	for (i = 0; i < 4; i++)
		flow_check(&f[i], false, "hoard");
	sim_advance(&m, 300 * US_PER_SEC);
	sim_expect_empty(&m);
	sim_fini(&m);
}

/* ---- descriptors ---- */

static void
expect_emfile(int rc)
{
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EMFILE);
}

static void
full_descriptor_table_is_emfile_and_free_again(void **state)
{
	struct teststack_opts o = { .seed = 3 };
	struct teststack ts;
	int lfd, fd, first, last = -1, accepted;

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 8);
	fd = connect_here(&ts, 80);
	first = darter_dup(fd);
	assert_true(first >= 0);
	for (accepted = first; accepted >= 0; accepted = darter_dup(fd))
		last = accepted;
	assert_int_equal(errno, EMFILE);
	assert_int_equal(fdtab_count(), FDTAB_MAX);
	expect_emfile(darter_socket(AF_INET, SOCK_STREAM, 0));
	expect_emfile(darter_socket(AF_INET, SOCK_DGRAM, 0));
	expect_emfile(darter_epoll_create1(0));
	expect_emfile(darter_accept4(lfd, NULL, NULL, 0));
	assert_int_equal(darter_close(last), 0);
	/* the connection still waits, and the one descriptor is enough */
	accepted = darter_accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
	assert_int_equal(accepted, last);
	expect_emfile(darter_socket(AF_INET, SOCK_STREAM, 0));
	assert_int_equal(darter_send(fd, "x", 1, 0), 1);
	for (; last > first; last--)
		assert_int_equal(darter_close(last), 0);
	darter_close(first);
	darter_close(fd);
	darter_close(lfd);
	assert_int_equal(fdtab_count(), 0);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

/* ---- half-open connections ---- */

#define HALF_OPEN	100000u
#define HALF_OPEN_MAX	"101000"
#define BEYOND		5000u	/* SYNs past the limit */

static struct {
	bool (*arp)(void *arg, const uint8_t *frame, uint32_t len);
	void *arp_arg;
	uint32_t syn_acks;
	uint32_t last_iss;
	uint16_t last_port;
} flood;

static bool
swallow(void *arg, const uint8_t *frame, uint32_t len)
{
	struct tcp_view v;

	(void)arg;
	if (flood.arp(flood.arp_arg, frame, len))
		return true;
	if (tcp_parse(frame + ETHER_HDR_BYTES + IP4_HDR_BYTES,
	    len - ETHER_HDR_BYTES - IP4_HDR_BYTES, &v) == WIRE_OK &&
	    v.flags == (TH_SYN | TH_ACK)) {
		flood.syn_acks++;
		flood.last_iss = v.seq;
		flood.last_port = v.dport;
	}
	return true;
}

static void
swallow_all(struct teststack *ts)
{
	memset(&flood, 0, sizeof(flood));
	flood.arp = ts->wire->on_tx;
	flood.arp_arg = ts->wire->on_tx_arg;
	ts->wire->on_tx = swallow;
}

/* A segment of foreign host and port number i to port 80; `data_bytes` (at most 6) zeros. */
static void
inject(struct teststack *ts, uint32_t i, uint8_t flags, uint32_t seq, uint32_t ack,
    uint16_t data_bytes)
{
	uint32_t foreign = UINT32_C(0xc6120000) + i / 50000;	/* 198.18.0.0 on */
	struct ipaddr src = ipaddr_v4_cpu(foreign), dst = ipaddr_v4_cpu(TEST_STACK_IP);
	struct ip4_view ip = { .src = be32_from_cpu(foreign), .dst = be32_from_cpu(TEST_STACK_IP),
		.total_bytes = (uint16_t)(IP4_HDR_BYTES + TCP_HDR_BYTES + data_bytes), .ttl = 64,
		.proto = IPPROTO_TCP };
	struct tcp_view tcp = { .sport = (uint16_t)(10000 + i % 50000), .dport = 80, .seq = seq,
		.ack = ack, .wnd = 65535, .flags = flags, .hdr_bytes = TCP_HDR_BYTES };
	uint8_t frame[ETHER_MIN_FRAME_BYTES] = { 0 };
	uint8_t *l4 = frame + ETHER_HDR_BYTES + IP4_HDR_BYTES;
	struct mac to, from;

	teststack_mac(1, to.b);
	teststack_mac(2, from.b);
	ether_emit(frame, &to, &from, ETHER_TYPE_IP4);
	ip4_emit(frame + ETHER_HDR_BYTES, &ip);
	tcp_emit(l4, &tcp);
	tcp.csum_raw = csum_fold(csum_partial(l4, TCP_HDR_BYTES + data_bytes,
	    csum_pseudo(&src, &dst, IPPROTO_TCP, TCP_HDR_BYTES + data_bytes)));
	tcp_emit(l4, &tcp);
	wire_dev_inject(ts->wire, 0, frame, sizeof(frame));
}

static uint32_t
half_open(struct teststack *ts)
{
	uint32_t pcbs, half, timewait;

	tcp_counts(ts->s->netisr[0], &pcbs, &half, &timewait);
	return half;
}

static void
flood_with_syns(struct teststack *ts, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i++) {
		inject(ts, i, TH_SYN, 1000 + i, 0, 0);
		if (i % 1000 == 999)
			teststack_run(ts);
	}
	teststack_run(ts);
}

static void
hundred_thousand_half_open_connections_are_kept_and_more_push_out_the_oldest(void **state)
{
	struct teststack_opts o = { .seed = 4, .sysctls = { "kern.ipc.somaxconn=65535",
	    "net.inet.tcp.max_synq=" HALF_OPEN_MAX, "net.inet.tcp.synack_retries=1" } };
	uint32_t max = (uint32_t)atoi(HALF_OPEN_MAX);
	struct teststack ts;
	int lfd, fd;

	(void)state;
	teststack_init(&ts, &o, 0);
	swallow_all(&ts);
	lfd = listen_on(80, 65535);
	flood_with_syns(&ts, 0, 1);	/* the gateway's address is asked for once */
	flood_with_syns(&ts, 1, HALF_OPEN);
	assert_int_equal(half_open(&ts), HALF_OPEN);
	assert_int_equal(stack_counter(ts.s, CTR_tcp_half_open), HALF_OPEN);
	assert_int_equal(flood.syn_acks, HALF_OPEN);
	assert_int_equal(stack_counter(ts.s, CTR_drop_tcp_syn_full), 0);
	flood_with_syns(&ts, HALF_OPEN, max + BEYOND);
	assert_int_equal(half_open(&ts), max);
	assert_int_equal(stack_counter(ts.s, CTR_drop_tcp_syn_full), BEYOND);
	/* who comes last still gets in */
	inject(&ts, max + BEYOND - 1, TH_ACK, 1000 + max + BEYOND, flood.last_iss + 1, 0);
	teststack_run(&ts);
	fd = darter_accept4(lfd, NULL, NULL, 0);
	assert_true(fd >= 0);
	assert_int_equal(half_open(&ts), max - 1);
	/* nobody answers: all are forgotten after the repetitions */
	teststack_advance(&ts, 10 * US_PER_SEC);
	assert_int_equal(half_open(&ts), 0);
	assert_int_equal(stack_counter(ts.s, CTR_tcp_half_open), 0);
	darter_close(fd);
	darter_close(lfd);
	teststack_advance(&ts, 3600 * US_PER_SEC);
	assert_int_equal(teststack_tcp_count(&ts), 0);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

/* ---- intervals out of order ---- */

#define HOLES	70u	/* more than a connection keeps */

static void
interval_beyond_the_limit_is_refused_and_comes_again(void **state)
{
	struct teststack_opts o = { .seed = 7 };
	char buf[2 * HOLES];
	struct teststack ts;
	uint32_t i, first = 1001;
	int lfd, fd;

	(void)state;
	teststack_init(&ts, &o, 0);
	swallow_all(&ts);
	lfd = listen_on(80, 8);
	flood_with_syns(&ts, 0, 1);
	inject(&ts, 0, TH_ACK, first, flood.last_iss + 1, 0);
	teststack_run(&ts);
	fd = darter_accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
	assert_true(fd >= 0);
	for (i = 0; i < HOLES; i++)
		inject(&ts, 0, TH_ACK, first + 1 + 2 * i, flood.last_iss + 1, 1);
	teststack_run(&ts);
	assert_int_equal(stack_counter(ts.s, CTR_drop_tcp_reass_limit), HOLES - TCP_REASS_MAX);
	assert_int_equal(darter_recv(fd, buf, sizeof(buf), 0), -1);
	for (i = 0; i < 2 * HOLES; i++)
		inject(&ts, 0, TH_ACK, first + i, flood.last_iss + 1, 1);
	teststack_run(&ts);
	assert_int_equal(darter_recv(fd, buf, sizeof(buf), 0), 2 * HOLES);
	inject(&ts, 0, TH_RST, first + 2 * HOLES, 0, 0);
	teststack_run(&ts);
	darter_close(fd);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_pool_of_1_mib_serves_a_thousand_windows_of_1_mib),
		cmocka_unit_test(connections_outlive_an_exhausted_packet_pool),
		cmocka_unit_test(full_descriptor_table_is_emfile_and_free_again),
		cmocka_unit_test(
		    hundred_thousand_half_open_connections_are_kept_and_more_push_out_the_oldest),
		cmocka_unit_test(interval_beyond_the_limit_is_refused_and_comes_again),
	};

	return cmocka_run_group_tests_name("proof limits", tests, NULL, NULL);
}
