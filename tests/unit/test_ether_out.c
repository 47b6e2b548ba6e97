/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet out: group addresses, MTU, devices that refuse frames, netisrs without a transmit queue.
 */
#include "link_rig.h"

static struct rig rig;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	rig_learn_peer(&rig);
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

static void
frame_carries_both_addresses_and_is_padded(void **state)
{
	const struct wire_frame *f;

	(void)state;
	assert_int_equal(rig_send(&rig, RIG_PEER_IP, 1), 0);
	f = rig_sent(&rig);
	assert_memory_equal(f->bytes, RIG_PEER_MAC.b, 6);
	assert_memory_equal(f->bytes + 6, RIG_OWN_MAC.b, 6);
	assert_int_equal(load_be16(f->bytes + 12), ETHER_TYPE_IP4);
	assert_int_equal(f->len, ETHER_MIN_FRAME_BYTES);
	for (unsigned i = 35; i < f->len; i++)
		assert_int_equal(f->bytes[i], 0);
}

/* RFC 1112 6.4 */
static void
multicast_is_mapped_to_its_low_23_bits(void **state)
{
	static const uint8_t mac[6] = { 0x01, 0x00, 0x5e, 0x7f, 0x01, 0x02 };

	(void)state;
	assert_int_equal(rig_send(&rig, 0xe0ff0102, 8), 0);
	assert_memory_equal(rig_sent(&rig)->bytes, mac, 6);
}

static void
broadcasts_go_to_the_broadcast_address(void **state)
{
	(void)state;
	assert_int_equal(rig_send(&rig, 0x0a0000ff, 8), 0);
	assert_memory_equal(rig_sent(&rig)->bytes, MAC_BROADCAST.b, 6);
	assert_int_equal(rig_send(&rig, 0xffffffff, 8), 0);
	assert_memory_equal(rig_sent(&rig)->bytes, MAC_BROADCAST.b, 6);
}

static void
packet_longer_than_the_mtu_is_dropped(void **state)
{
	struct ipaddr hop = ipaddr_v4_cpu(RIG_PEER_IP);
	struct netisr *n = rig.s->netisr[0];

	(void)state;
	assert_true(netisr_take(n));
	ether_output(n, rig.d, rig_pkt(n, 1501), &hop);
	ether_output(n, rig.d, rig_pkt(n, 1500), &hop);
	netisr_give(n);
	rig_run(&rig);
	assert_int_equal(rig_sent(&rig)->len, 1514);
	rig_expect_silence(&rig);
	assert_int_equal(rig_count(&rig, CTR_drop_tx_mtu), 1);
}

static void
raw_frame_is_sent_as_it_is(void **state)
{
	struct netisr *n = rig.s->netisr[0];
	uint8_t copy[100];
	struct pkt *p;

	(void)state;
	assert_true(netisr_take(n));
	p = rig_pkt(n, 100);
	memcpy(copy, p->data, 100);
	ether_output_frame(n, rig.d, p);
	ether_output_frame(n, rig.d, rig_pkt(n, 13));
	netisr_give(n);
	rig_run(&rig);
	assert_memory_equal(rig_sent(&rig)->bytes, copy, 100);
	rig_expect_silence(&rig);
	assert_int_equal(rig_count(&rig, CTR_drop_ether_short), 1);
}

static void
frames_that_the_device_refuses_are_sent_later_in_order(void **state)
{
	(void)state;
	rig.w->tx_room = 1;
	for (unsigned i = 1; i <= 5; i++)
		assert_int_equal(rig_send(&rig, RIG_PEER_IP, 100 + i), 0);
	assert_int_equal(rig_sent(&rig)->len, 135);
	rig_expect_silence(&rig);
	rig.w->tx_room = UINT32_MAX;
	rig_run(&rig);
	for (unsigned i = 2; i <= 5; i++)
		assert_int_equal(rig_sent(&rig)->len, 134 + i);
	assert_int_equal(rig_count(&rig, CTR_tx_pkts), 5);
}

static void
queue_of_a_stuck_device_is_bounded(void **state)
{
	(void)state;
	rig.w->tx_room = 0;
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(rig_send(&rig, RIG_PEER_IP, 100), 0);
	assert_int_equal(rig_count(&rig, CTR_drop_tx_ring_full), 300 - 256);
	rig.w->tx_room = UINT32_MAX;
	rig_run(&rig);
	for (unsigned i = 0; i < 256; i++)
		rig_sent(&rig);
	rig_expect_silence(&rig);
}

static void
device_that_takes_nothing_for_long_loses_what_waits(void **state)
{
	struct netisr *n = rig.s->netisr[0];

	(void)state;
	rig.w->tx_room = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_send(&rig, RIG_PEER_IP, 100), 0);
	assert_true(netisr_take(n));
	assert_true(netisr_next_deadline(n).us <= n->now.us + 50);
	netisr_give(n);
	rig_advance_ms(&rig, 9);
	assert_int_equal(rig_count(&rig, CTR_drop_tx_dev), 0);
	rig_advance_ms(&rig, 2);
	assert_int_equal(rig_count(&rig, CTR_drop_tx_dev), 3);
	rig.w->tx_room = UINT32_MAX;
	rig_run(&rig);
	rig_expect_silence(&rig);
}

static void
netisr_without_a_queue_sends_through_the_one_that_has(void **state)
{
	(void)state;
	teardown(NULL);
	rig_init(&rig, 2, (const char *const[]){ "port.p0.queues=1", NULL });
	rig_learn_peer(&rig);
	assert_int_equal(rig.d->n_queues, 1);
	assert_int_equal(rig_send_from(&rig, 1, RIG_PEER_IP, 100), 0);
	rig_expect_silence(&rig);
	rig_run(&rig);
	assert_int_equal(rig_sent(&rig)->len, 134);
	assert_int_equal(atomic_load(&rig.s->netisr[0]->counters[CTR_tx_pkts]), 1);
	assert_int_equal(atomic_load(&rig.s->netisr[1]->counters[CTR_tx_pkts]), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(frame_carries_both_addresses_and_is_padded),
		T(multicast_is_mapped_to_its_low_23_bits),
		T(broadcasts_go_to_the_broadcast_address),
		T(packet_longer_than_the_mtu_is_dropped),
		T(raw_frame_is_sent_as_it_is),
		T(frames_that_the_device_refuses_are_sent_later_in_order),
		T(queue_of_a_stuck_device_is_bounded),
		T(device_that_takes_nothing_for_long_loses_what_waits),
		T(netisr_without_a_queue_sends_through_the_one_that_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
