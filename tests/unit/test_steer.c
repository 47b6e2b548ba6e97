/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: the owner of each kind of packet, rings and their announcement, law 1 from end to end.
 */
#include "link_rig.h"

#include <time.h>

#include "link/steer.h"

static struct rig rig;

static struct {
	unsigned count[NETISR_MAX];
	uint8_t order[600];
	unsigned total;
} got;

static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	(void)meta;
	if (got.total < ARRAY_LEN(got.order))
		got.order[got.total] = p->data[7];
	got.total++;
	got.count[n->id]++;
	pkt_free(n, p);
}

static unsigned n_errors[NETISR_MAX];

static void
on_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted, uint32_t len,
    const struct ip_error *e)
{
	(void)meta;
	(void)quoted;
	(void)len;
	(void)e;
	n_errors[n->id]++;
}

static const struct ip_proto udp_proto = { .input = on_input, .error = on_error };

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 2, (const char *const[]){ "port.p0.queues=1", NULL });
	ip_register(rig.s, IP_PROTO_UDP, &udp_proto);
	memset(&got, 0, sizeof(got));
	memset(n_errors, 0, sizeof(n_errors));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_expect_no_leak(&rig);
	rig_fini(&rig);
	return 0;
}

/* A source port whose flow to port 53 here belongs to netisr `id`. */
static uint16_t
port_owned_by(unsigned id)
{
	struct tuple t = {
		.local = ipaddr_v4_cpu(RIG_OWN_IP), .foreign = ipaddr_v4_cpu(RIG_PEER_IP),
		    .lport = 53, .fport = 1024,
	};

	while (stack_owner(rig.s, &t)->id != id)
		t.fport++;
	return t.fport;
}

static struct pkt
packet_of(uint8_t *frame, size_t len)
{
	return (struct pkt){
		.data = frame + ETHER_HDR_BYTES,
		.len = (uint16_t)(len - ETHER_HDR_BYTES),
		.total_len = (uint32_t)(len - ETHER_HDR_BYTES),
	};
}

static unsigned
owner_of(uint8_t *frame, size_t len, enum steer_cause *cause)
{
	struct pkt p = packet_of(frame, len);

	return steer_owner(rig.s, rig.d, &p, ETHER_TYPE_IP4, 0, cause);
}

static void
flow_belongs_to_the_hash_of_its_tuple(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	enum steer_cause cause;

	(void)state;
	for (unsigned id = 0; id < 2; id++) {
		size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(id), 53);

		assert_int_equal(owner_of(frame, len, &cause), id);
		assert_int_equal(cause, STEER_CAUSE_FLOW);
	}
}

static void
hash_of_a_device_is_believed_only_when_it_uses_our_key(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(0), 53);
	struct pkt p = packet_of(frame, len);
	enum steer_cause cause;

	(void)state;
	p.flags = PKT_RX_RSS_HASH;
	p.rss_hash = 1;		/* the table says netisr 1 */
	assert_int_equal(rig.s->reta[1], 1);
	assert_int_equal(steer_owner(rig.s, rig.d, &p, ETHER_TYPE_IP4, 0, &cause), 0);
	rig.d->caps |= DEV_CAP_RSS;
	assert_int_equal(steer_owner(rig.s, rig.d, &p, ETHER_TYPE_IP4, 0, &cause), 1);
	/* its hash of a fragment is over less */
	frame[14 + 6] = 0x20;
	assert_int_equal(steer_owner(rig.s, rig.d, &p, ETHER_TYPE_IP4, 0, &cause),
	    owner_of(frame, len, &cause));
	assert_int_equal(cause, STEER_CAUSE_ADDRS);
}

static void
all_fragments_of_a_datagram_have_one_owner(void **state)
{
	uint8_t first[RIG_FRAME_MAX], later[RIG_FRAME_MAX];
	enum steer_cause cause;

	(void)state;
	for (uint32_t i = 0; i < 16; i++) {
		struct ip4_view a = { .src = be32_from_cpu(RIG_PEER_IP + i), .has_mf = true };
		struct ip4_view b = { .src = be32_from_cpu(RIG_PEER_IP + i),
		    .frag_offset_bytes = 16 };
		size_t a_len = rig_udp(first, &a, (uint16_t)(1000 + i), 53);
		size_t b_len = rig_udp(later, &b, 7777, 7);

		assert_int_equal(owner_of(first, a_len, &cause), owner_of(later, b_len, &cause));
		assert_int_equal(cause, STEER_CAUSE_ADDRS);
	}
}

/* An ICMP port unreachable from `from` about our datagram from port 53 to the peer's `fport`. */
static size_t
icmp_about(uint8_t *frame, uint32_t from, uint16_t fport)
{
	uint8_t quoted[RIG_FRAME_MAX], msg[128];
	struct ip4_view q = { .src = be32_from_cpu(RIG_OWN_IP), .dst = be32_from_cpu(RIG_PEER_IP) };
	size_t q_len = rig_udp(quoted, &q, 53, fport);
	struct icmp4_view v = {
		.type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .data = quoted + 14,
		    .data_bytes = q_len - 14,
	};
	struct ip4_view ip = { .src = be32_from_cpu(from), .proto = IP_PROTO_ICMP };
	size_t n = icmp4_emit(msg, &v);

	return rig_ip4(frame, &ip, msg, n);
}

static void
icmp_error_follows_the_flow_that_it_quotes(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	for (unsigned id = 0; id < 2; id++) {
		size_t len = icmp_about(frame, RIG_FAR_IP, port_owned_by(id));

		rig_inject(&rig, frame, len);
		assert_int_equal(n_errors[id], 1);
	}
	assert_int_equal(rig_count(&rig, CTR_steered_icmp), 1);
}

static void
datagram_is_handled_by_its_owner_alone(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(0), 53));
	rig_inject(&rig, frame, rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(1), 53));
	assert_int_equal(got.count[0], 1);
	assert_int_equal(got.count[1], 1);
	assert_int_equal(rig_count(&rig, CTR_steered_pkts), 1);
	assert_int_equal(rig_count(&rig, CTR_steered_no_rss), 1);
}

static void
run_one_round(unsigned id)
{
	assert_true(netisr_take(rig.s->netisr[id]));
	netisr_round(rig.s->netisr[id]);
	netisr_give(rig.s->netisr[id]);
}

/*
 * netisr 1 does not run: one message announces any number of packets, and the ring's end is a
 * counted drop.
 */
static void
ring_of_a_busy_owner_is_announced_once_and_bounded(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	uint16_t port = port_owned_by(1);
	size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, port, 53);
	unsigned i;

	(void)state;
	stack_free(rig.s);
	rig_init(&rig, 2, (const char *const[]){ "port.p0.queues=1", "stack.packets=2048", NULL });
	ip_register(rig.s, IP_PROTO_UDP, &udp_proto);
	for (i = 0; i < STEER_RING_PKTS + 5; i++)
		wire_dev_inject(rig.w, 0, frame, (uint32_t)len);
	for (i = 0; i < 20; i++)
		run_one_round(0);
	assert_int_equal(rig_count(&rig, CTR_drop_steer_full), 5);
	assert_int_equal(rig_count(&rig, CTR_msgs_sent), 1);
	assert_int_equal(got.total, 0);
	rig_run(&rig);
	assert_int_equal(got.count[1], STEER_RING_PKTS);
}

static void
owner_with_packets_left_over_does_not_sleep(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(1), 53);
	unsigned i;

	(void)state;
	for (i = 0; i < STEER_BUDGET_PKTS + 8; i++)
		wire_dev_inject(rig.w, 0, frame, (uint32_t)len);
	for (i = 0; i < 5; i++)
		run_one_round(0);
	assert_true(netisr_take(rig.s->netisr[1]));
	netisr_round(rig.s->netisr[1]);
	assert_int_equal(got.count[1], STEER_BUDGET_PKTS);
	assert_true(time_reached(rig.s->netisr[1]->now, netisr_next_deadline(rig.s->netisr[1])));
	netisr_round(rig.s->netisr[1]);
	assert_int_equal(got.count[1], STEER_BUDGET_PKTS + 8);
	assert_false(time_reached(rig.s->netisr[1]->now, netisr_next_deadline(rig.s->netisr[1])));
	netisr_give(rig.s->netisr[1]);
}

static void
steered_packets_keep_their_order_over_many_laps(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ 0 }, port_owned_by(1), 53);
	unsigned i;

	(void)state;
	for (i = 0; i < 590; i++) {
		frame[14 + 20 + 7] = (uint8_t)i;
		wire_dev_inject(rig.w, 0, frame, (uint32_t)len);
		if (i % 50 == 49)
			rig_run(&rig);
	}
	rig_run(&rig);
	assert_int_equal(got.total, 590);
	for (i = 0; i < 590; i++)
		assert_int_equal(got.order[i], (uint8_t)i);
}

static _Atomic unsigned n_looped;
static _Atomic unsigned n_misplaced;

static void
on_looped(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	unsigned hash = toeplitz_addrs(&n->stack->rss, &meta->src, &meta->dst);

	if (n->stack->reta[hash & (n->stack->reta_size - 1u)] != n->id)
		atomic_fetch_add(&n_misplaced, 1);
	pkt_free(n, p);
	atomic_fetch_add(&n_looped, 1);
}

/* 16 packets to as many addresses of ours. */
static void
send_sixteen(struct netisr *n, void *arg)
{
	struct ip_out o = { .src = ipaddr_v4_cpu(0x7f000001), .proto = 253 };
	struct ip_route r;

	(void)arg;
	for (uint32_t i = 1; i <= 16; i++) {
		o.dst = ipaddr_v4_cpu(0x7f000000 + i);
		assert_int_equal(ip_route_lookup(n->stack, &o.dst, &o.src, &r), 0);
		assert_int_equal(ip_output(n, rig_pkt(n, 30), &r, &o), 0);
	}
}

/* Threads that sleep and wake at will: no packet is lost, stuck in a ring, or handled elsewhere. */
static void
running_netisrs_hand_each_other_everything(void **state)
{
	static const struct ip_proto loop_proto = { .input = on_looped };
	struct darter_stack *s;

	(void)state;
	atomic_store(&n_looped, 0);
	s = rig_stack(NULL, (const char *const[]){ "stack.netisrs=2", "stack.threads=background",
	    NULL });
	ip_register(s, 253, &loop_proto);
	assert_int_equal(netisr_start_keepers(s), 0);
	for (unsigned i = 0; i < 200; i++) {
		netisr_call(s->netisr[i & 1], send_sixteen, NULL);
		if (i % 4 != 3)
			continue;
		for (unsigned k = 0; k < 5000 && atomic_load(&n_looped) < 16 * (i + 1); k++)
			nanosleep(&(struct timespec){ 0, 100000 }, NULL);
		assert_int_equal(atomic_load(&n_looped), 16 * (i + 1));
	}
	assert_int_equal(atomic_load(&n_misplaced), 0);
	assert_true(stack_counter(s, CTR_steered_loopback) > 100);
	stack_free(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(flow_belongs_to_the_hash_of_its_tuple),
		T(hash_of_a_device_is_believed_only_when_it_uses_our_key),
		T(all_fragments_of_a_datagram_have_one_owner),
		T(icmp_error_follows_the_flow_that_it_quotes),
		T(datagram_is_handled_by_its_owner_alone),
		T(ring_of_a_busy_owner_is_announced_once_and_bounded),
		T(owner_with_packets_left_over_does_not_sleep),
		T(steered_packets_keep_their_order_over_many_laps),
		cmocka_unit_test(running_netisrs_hand_each_other_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
