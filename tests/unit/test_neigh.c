/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbour table: states and their timers, queues, bounds (RFC 4861 7.3.2, RFC 1122 2.3.2). */
#include "link_rig.h"

static struct rig rig;

/* Errors that protocol 253 was told. */
static struct {
	unsigned count;
	struct ip_error e;
	uint32_t dst;
} told;

static void
on_error(struct netisr *n, const struct ip_meta *meta, const uint8_t *quoted, uint32_t quoted_len,
    const struct ip_error *e)
{
	(void)n;
	(void)quoted;
	assert_true(quoted_len >= 8);
	told.count++;
	told.e = *e;
	told.dst = be32_to_cpu(meta->dst.v4);
}

static const struct ip_proto proto253 = { .error = on_error };

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	ip_register(rig.s, 253, &proto253);
	memset(&told, 0, sizeof(told));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_fini(&rig);
	return 0;
}

static enum neigh_state
peer_state(void)
{
	return rig_neigh(&rig, 0, RIG_PEER_IP).state;
}

/* The peer answers our request. */
static void
peer_answers(struct mac mac)
{
	uint8_t frame[64];

	rig_inject(&rig, frame, rig_arp(frame, ARP_OP_REPLY, mac, RIG_PEER_IP, RIG_OWN_IP));
}

static void
expect_request(bool is_unicast)
{
	const struct wire_frame *f = rig_sent(&rig);
	struct arp_view a;

	assert_int_equal(load_be16(f->bytes + 12), ETHER_TYPE_ARP);
	assert_int_equal(arp_parse(f->bytes + 14, f->len - 14, &a), WIRE_OK);
	assert_int_equal(a.op, ARP_OP_REQUEST);
	assert_int_equal(be32_to_cpu(a.sender_ip), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(a.target_ip), RIG_PEER_IP);
	assert_memory_equal(f->bytes, is_unicast ? RIG_PEER_MAC.b : MAC_BROADCAST.b, 6);
}

/* An entry in REACHABLE. */
static void
reach_peer(void)
{
	rig_send(&rig, RIG_PEER_IP, 100);
	expect_request(false);
	peer_answers(RIG_PEER_MAC);
	rig_sent(&rig);
	assert_int_equal(peer_state(), NEIGH_REACHABLE);
}

static void
packets_wait_for_the_answer_and_go_out_in_order(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 3; i++)
		assert_int_equal(rig_send(&rig, RIG_PEER_IP, 100 + i), 0);
	expect_request(false);
	rig_expect_silence(&rig);
	assert_int_equal(peer_state(), NEIGH_INCOMPLETE);
	peer_answers(RIG_PEER_MAC);
	for (unsigned i = 1; i <= 3; i++) {
		const struct wire_frame *f = rig_sent(&rig);

		assert_int_equal(f->len, 134 + i);
		assert_memory_equal(f->bytes, RIG_PEER_MAC.b, 6);
	}
	rig_expect_no_leak(&rig);
}

static void
silent_neighbour_is_asked_three_times_then_reported_unreachable(void **state)
{
	(void)state;
	rig_send(&rig, RIG_PEER_IP, 100);
	rig_send(&rig, RIG_PEER_IP, 100);
	expect_request(false);
	rig_advance_ms(&rig, 1010);
	expect_request(false);
	rig_advance_ms(&rig, 1010);
	expect_request(false);
	assert_int_equal(told.count, 0);
	rig_advance_ms(&rig, 1010);
	rig_expect_silence(&rig);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.e.err, EHOSTUNREACH);
	assert_true(told.e.is_soft);
	assert_int_equal(told.dst, RIG_PEER_IP);
	assert_int_equal(rig_count(&rig, CTR_drop_neigh_failed), 2);
	rig_expect_no_leak(&rig);
}

/* RFC 1122 2.3.2.1: not more than one request a second to a host that is down */
static void
failed_neighbour_refuses_at_once_and_is_asked_anew_after_a_second(void **state)
{
	(void)state;
	rig_knob(&rig, "net.link.neigh.retrans_ms", "10");
	rig_send(&rig, RIG_PEER_IP, 100);
	rig_advance_ms(&rig, 40);
	assert_int_equal(peer_state(), NEIGH_FAILED);
	wire_dev_clear(rig.w);
	rig_send(&rig, RIG_PEER_IP, 100);
	rig_expect_silence(&rig);
	assert_int_equal(told.count, 2);
	rig_advance_ms(&rig, 1000);
	rig_send(&rig, RIG_PEER_IP, 100);
	expect_request(false);
	assert_int_equal(peer_state(), NEIGH_INCOMPLETE);
}

static void
oldest_packet_is_dropped_when_the_queue_is_full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++)
		rig_send(&rig, RIG_PEER_IP, 100 + i);
	assert_int_equal(rig_count(&rig, CTR_drop_neigh_queue_full), 4);
	expect_request(false);
	peer_answers(RIG_PEER_MAC);
	for (unsigned i = 4; i < 20; i++)
		assert_int_equal(rig_sent(&rig)->len, 134 + i);
	rig_expect_silence(&rig);
}

/* All queues together take an eighth of the stack's 512 packets. */
static void
packets_that_wait_for_all_neighbours_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		rig_send(&rig, 0x0a00000a + i, 100);
	assert_int_equal(rig_count(&rig, CTR_drop_neigh_queue_full), 100 - 64);
}

static void
neighbour_in_use_goes_stale_delayed_then_is_probed_alone(void **state)
{
	(void)state;
	reach_peer();
	rig_advance_ms(&rig, 30010);
	assert_int_equal(peer_state(), NEIGH_STALE);
	rig_send(&rig, RIG_PEER_IP, 100);
	assert_int_equal(rig_sent(&rig)->len, 134);	/* still used */
	assert_int_equal(peer_state(), NEIGH_DELAY);
	rig_expect_silence(&rig);
	rig_advance_ms(&rig, 5010);
	expect_request(true);
	assert_int_equal(peer_state(), NEIGH_PROBE);
	assert_int_equal(rig_count(&rig, CTR_neigh_probes_sent), 1);
	peer_answers(RIG_PEER_MAC);
	assert_int_equal(peer_state(), NEIGH_REACHABLE);
	rig_expect_silence(&rig);
}

static void
probed_neighbour_that_is_silent_fails(void **state)
{
	(void)state;
	reach_peer();
	rig_advance_ms(&rig, 30010);
	rig_send(&rig, RIG_PEER_IP, 100);
	rig_sent(&rig);
	rig_advance_ms(&rig, 5010 + 3030);
	for (unsigned i = 0; i < 3; i++)
		expect_request(true);
	assert_int_equal(peer_state(), NEIGH_FAILED);
}

/* RFC 4861 7.3.1 */
static void
progress_of_a_transport_keeps_the_neighbour_reachable(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(RIG_PEER_IP);
	struct netisr *n = rig.s->netisr[0];

	(void)state;
	reach_peer();
	for (unsigned i = 0; i < 4; i++) {
		rig_advance_ms(&rig, 20000);
		assert_true(netisr_take(n));
		neigh_confirm(n, rig.d, &a);
		netisr_give(n);
		assert_int_equal(peer_state(), NEIGH_REACHABLE);
	}
	rig_advance_ms(&rig, 30010);
	assert_int_equal(peer_state(), NEIGH_STALE);
	assert_true(netisr_take(n));
	neigh_confirm(n, rig.d, &a);
	netisr_give(n);
	assert_int_equal(peer_state(), NEIGH_REACHABLE);
}

static void
unused_neighbour_is_forgotten(void **state)
{
	(void)state;
	rig_knob(&rig, "net.link.neigh.reachable_ms", "100");
	rig_knob(&rig, "net.link.neigh.stale_s", "2");
	reach_peer();
	rig_advance_ms(&rig, 102);
	assert_int_equal(peer_state(), NEIGH_STALE);
	rig_advance_ms(&rig, 2002);
	assert_int_equal(peer_state(), NEIGH_NONE);
	assert_int_equal(rig_count(&rig, CTR_neigh_entries), 0);
}

static void
confirmed_address_does_not_flap_but_moves_after_a_second(void **state)
{
	(void)state;
	reach_peer();
	peer_answers(RIG_THIRD_MAC);
	assert_memory_equal(rig_neigh(&rig, 0, RIG_PEER_IP).mac, RIG_PEER_MAC.b, 6);
	rig_advance_ms(&rig, 1001);
	peer_answers(RIG_THIRD_MAC);
	assert_memory_equal(rig_neigh(&rig, 0, RIG_PEER_IP).mac, RIG_THIRD_MAC.b, 6);
}

static void
full_table_evicts_the_least_recently_used(void **state)
{
	uint8_t frame[64];

	(void)state;
	rig_knob(&rig, "net.link.neigh.max_entries", "16");
	for (uint32_t i = 0; i < 16; i++) {
		rig_inject(&rig, frame, rig_arp(frame, ARP_OP_REQUEST, RIG_THIRD_MAC, 0x0a000010 +
		    i, RIG_OWN_IP));
		rig_advance_ms(&rig, 200);
	}
	assert_int_equal(rig_count(&rig, CTR_neigh_entries), 16);
	wire_dev_clear(rig.w);
	rig_send(&rig, 0x0a000010, 100);	/* the oldest is used again */
	rig_inject(&rig, frame, rig_arp(frame, ARP_OP_REQUEST, RIG_THIRD_MAC, 0x0a000020,
	    RIG_OWN_IP));
	assert_int_equal(rig_count(&rig, CTR_neigh_evicted), 1);
	assert_int_equal(rig_count(&rig, CTR_neigh_entries), 16);
	assert_int_not_equal(rig_neigh(&rig, 0, 0x0a000010).state, NEIGH_NONE);
	assert_int_equal(rig_neigh(&rig, 0, 0x0a000011).state, NEIGH_NONE);
	assert_int_equal(rig_neigh(&rig, 0, 0x0a000020).state, NEIGH_STALE);
}

static void
table_of_neighbours_that_are_waited_for_is_not_evicted(void **state)
{
	(void)state;
	rig_knob(&rig, "net.link.neigh.max_entries", "16");
	for (uint32_t i = 0; i < 17; i++)
		rig_send(&rig, 0x0a000010 + i, 100);
	assert_int_equal(rig_count(&rig, CTR_drop_neigh_table_full), 1);
	assert_int_equal(rig_count(&rig, CTR_neigh_evicted), 0);
}

static void
static_entry_is_never_asked_for_or_changed(void **state)
{
	(void)state;
	rig_learn_peer(&rig);
	peer_answers(RIG_THIRD_MAC);
	rig_advance_ms(&rig, 40000);
	rig_send(&rig, RIG_PEER_IP, 100);
	assert_memory_equal(rig_sent(&rig)->bytes, RIG_PEER_MAC.b, 6);
	rig_advance_ms(&rig, 10000);
	rig_expect_silence(&rig);
	assert_int_equal(peer_state(), NEIGH_STATIC);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(packets_wait_for_the_answer_and_go_out_in_order),
		T(silent_neighbour_is_asked_three_times_then_reported_unreachable),
		T(failed_neighbour_refuses_at_once_and_is_asked_anew_after_a_second),
		T(oldest_packet_is_dropped_when_the_queue_is_full),
		T(packets_that_wait_for_all_neighbours_are_bounded),
		T(neighbour_in_use_goes_stale_delayed_then_is_probed_alone),
		T(probed_neighbour_that_is_silent_fails),
		T(progress_of_a_transport_keeps_the_neighbour_reachable),
		T(unused_neighbour_is_forgotten),
		T(confirmed_address_does_not_flap_but_moves_after_a_second),
		T(full_table_evicts_the_least_recently_used),
		T(table_of_neighbours_that_are_waited_for_is_not_evicted),
		T(static_entry_is_never_asked_for_or_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
