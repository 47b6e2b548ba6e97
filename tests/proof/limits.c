/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each limit of the stack: what happens beyond it, which counter or errno says so, and that
 * everything is as before when the pressure is gone. Virtual time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/event.h>
#include <darter/socket.h>

#include "base/csum.h"
#include "runtime/pkt.h"
#include "sim/flow.h"
#include "socket/fdtab.h"
#include "support/cmocka_all.h"
#include "support/teststack.h"
#include "transport/tcp/tcp.h"
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

static struct sockaddr_in
here(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int
listen_on(uint16_t port, int backlog)
{
	struct sockaddr_in a = here(port);
	int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	a.sin_addr.s_addr = htonl(INADDR_ANY);
	assert_true(fd >= 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(fd, backlog), 0);
	return fd;
}

static int
connect_here(struct teststack *ts, uint16_t port)
{
	struct sockaddr_in a = here(port);
	int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(darter_connect(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, EINPROGRESS);
	teststack_run(ts);
	return fd;
}

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

/* A segment of foreign host and port number i to port 80. */
static void
inject(struct teststack *ts, uint32_t i, uint8_t flags, uint32_t seq, uint32_t ack)
{
	uint32_t foreign = UINT32_C(0xc6120000) + i / 50000;	/* 198.18.0.0 on */
	struct ipaddr src = ipaddr_v4_cpu(foreign), dst = ipaddr_v4_cpu(TEST_STACK_IP);
	struct ip4_view ip = { .src = be32_from_cpu(foreign), .dst = be32_from_cpu(TEST_STACK_IP),
		.total_bytes = IP4_HDR_BYTES + TCP_HDR_BYTES, .ttl = 64, .proto = IPPROTO_TCP };
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
	tcp.csum_raw = csum_fold(csum_partial(l4, TCP_HDR_BYTES,
	    csum_pseudo(&src, &dst, IPPROTO_TCP, TCP_HDR_BYTES)));
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
		inject(ts, i, TH_SYN, 1000 + i, 0);
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
	memset(&flood, 0, sizeof(flood));
	teststack_init(&ts, &o, 0);
	flood.arp = ts.wire->on_tx;
	flood.arp_arg = ts.wire->on_tx_arg;
	ts.wire->on_tx = swallow;
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
	inject(&ts, max + BEYOND - 1, TH_ACK, 1000 + max + BEYOND, flood.last_iss + 1);
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

/* ---- connections, TIME_WAIT, accept queue, buffers ---- */

static void
connection_beyond_max_pcbs_is_refused_and_counted(void **state)
{
	struct teststack_opts o = { .seed = 5, .sysctls = { "net.inet.tcp.max_pcbs=10" } };
	struct teststack ts;
	int lfd, fd[12], i, err = 0;
	socklen_t len = sizeof(err);

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 100);
	for (i = 0; i < 5; i++)		/* both ends are on this stack */
		fd[i] = connect_here(&ts, 80);
	assert_int_equal(stack_counter(ts.s, CTR_drop_tcp_pcb_limit), 0);
	fd[5] = connect_here(&ts, 80);
	assert_int_equal(darter_getsockopt(fd[5], SOL_SOCKET, SO_ERROR, &err, &len), 0);
	assert_int_equal(err, ENOBUFS);
	assert_true(stack_counter(ts.s, CTR_drop_tcp_pcb_limit) > 0);
	for (i = 0; i < 6; i++)
		darter_close(fd[i]);
	for (i = 0; i < 5; i++)
		darter_close(darter_accept4(lfd, NULL, NULL, 0));
	teststack_advance(&ts, 120 * US_PER_SEC);
	fd[0] = connect_here(&ts, 80);
	assert_int_equal(darter_send(fd[0], "x", 1, 0), 1);
	darter_close(fd[0]);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	teststack_expect_no_leak(&ts);
	teststack_fini(&ts);
}

static void
time_wait_beyond_its_limit_pushes_out_the_oldest(void **state)
{
	struct teststack_opts o = { .seed = 6, .sysctls = { "net.inet.tcp.max_timewait=8" } };
	uint32_t pcbs, half, timewait;
	struct teststack ts;
	int lfd, fd, i;

	(void)state;
	teststack_init(&ts, &o, 0);
	lfd = listen_on(80, 100);
	for (i = 0; i < 20; i++) {
		int child;

		fd = connect_here(&ts, 80);
		child = darter_accept4(lfd, NULL, NULL, 0);
		assert_true(child >= 0);
		darter_close(fd);
		teststack_run(&ts);
		darter_close(child);
		teststack_advance(&ts, 100000);
	}
	tcp_counts(ts.s->netisr[0], &pcbs, &half, &timewait);
	assert_int_equal(timewait, 8);
	assert_int_equal(stack_counter(ts.s, CTR_tcp_timewait_evicted), 12);
	darter_close(lfd);
	teststack_advance(&ts, 120 * US_PER_SEC);
	assert_int_equal(teststack_tcp_count(&ts), 0);
	teststack_fini(&ts);
}

static void
stacks_beyond_the_limit_are_emfile(void **state)
{
	const char *const over[] = { "stack.threads=manual", "stack.packets=256",
		"stack.netisrs=1", "stack.ring_memory=1m", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	struct darter_stack *s[80];
	char err[DARTER_ERR_MAX];
	unsigned n = 0;

	(void)state;
	while (n < 80 && (s[n] = darter_open(&o, err, sizeof(err))) != NULL)
		n++;
	assert_int_equal(errno, EMFILE);
	assert_true(n >= 16 && n < 80);
	darter_stack_close(s[--n]);
	s[n] = darter_open(&o, err, sizeof(err));
	assert_non_null(s[n]);
	do
		darter_stack_close(s[n]);
	while (n-- > 0);
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
		cmocka_unit_test(connection_beyond_max_pcbs_is_refused_and_counted),
		cmocka_unit_test(time_wait_beyond_its_limit_pushes_out_the_oldest),
		cmocka_unit_test(stacks_beyond_the_limit_are_emfile),
	};

	return cmocka_run_group_tests_name("proof limits", tests, NULL, NULL);
}
