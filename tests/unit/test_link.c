/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link layer in a netisr's round: budgets, deadlines of polled devices, nothing kept when a
 * stack goes.
 */
#include "link_rig.h"

static struct rig rig;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_fini(&rig);
	return 0;
}

static uint64_t
nap_us(void)
{
	struct netisr *n = rig.s->netisr[0];
	uint64_t us;

	assert_true(netisr_take(n));
	us = time_since_us(netisr_next_deadline(n), n->now);
	netisr_give(n);
	return us;
}

static void
idle_stack_on_a_device_with_a_descriptor_has_no_deadline(void **state)
{
	struct netisr *n = rig.s->netisr[0];

	(void)state;
	assert_true(netisr_take(n));
	assert_true(time_is_never(netisr_next_deadline(n)));
	netisr_give(n);
}

static void
nap_beside_a_polled_device_grows_with_idleness(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ .dst = be32_from_cpu(RIG_THIRD_IP) }, 1, 1);

	(void)state;
	rig.d->caps |= DEV_CAP_POLL_ONLY;
	rig_inject(&rig, frame, len);
	assert_int_equal(nap_us(), 50);
	clock_advance_us(&rig.clock, 2000);
	assert_int_equal(nap_us(), 500);
	clock_advance_us(&rig.clock, 1000000);
	assert_int_equal(nap_us(), 2000);
	rig_knob(&rig, "net.link.nap_max_us", "700");
	assert_int_equal(nap_us(), 700);
	rig_inject(&rig, frame, len);
	assert_int_equal(nap_us(), 50);
}

static void
round_takes_a_bounded_number_of_frames(void **state)
{
	struct netisr *n = rig.s->netisr[0];
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_udp(frame, &(struct ip4_view){ .dst = be32_from_cpu(RIG_THIRD_IP) }, 1, 1);

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		wire_dev_inject(rig.w, 0, frame, (uint32_t)len);
	assert_true(netisr_take(n));
	assert_int_equal(netisr_round(n), 2 * DEV_BURST_PKTS);
	assert_int_equal(netisr_round(n), 2 * DEV_BURST_PKTS);
	netisr_give(n);
	rig_run(&rig);
	assert_int_equal(rig_count(&rig, CTR_drop_ip_dst_not_ours), 200);
}

/*
 * Frames wait for a neighbour, in rings and in transmit arrays when the stack is freed: ASan looks
 * on.
 */
static void
stack_is_freed_with_packets_in_every_queue(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	rig_fini(&rig);
	rig_init(&rig, 2, (const char *const[]){ "port.p0.queues=1", "port.p0.fault=delay_us=1000",
	    NULL });
	rig.w->tx_room = 0;
	rig_send_from(&rig, 0, RIG_PEER_IP, 100);
	rig_send_from(&rig, 1, RIG_PEER_IP, 100);
	rig_send_from(&rig, 1, 0x0a0000ff, 100);
	rig_send_from(&rig, 0, 0x7f000001, 100);
	wire_dev_inject(rig.w, 0, frame, (uint32_t)rig_echo(frame, &(struct ip4_view){ 0 }, 1));
	assert_true(netisr_take(rig.s->netisr[0]));
	netisr_round(rig.s->netisr[0]);
	netisr_give(rig.s->netisr[0]);
	assert_true(rig.s->pkt_ops->available(rig.s) < rig.packets_idle);
}

static void
frames_for_no_packet_are_dropped_and_the_stack_recovers(void **state)
{
	struct netisr *n = rig.s->netisr[0];
	uint8_t frame[RIG_FRAME_MAX];
	struct pkt *hoard = NULL, *p;
	size_t len;

	(void)state;
	rig_learn_peer(&rig);
	assert_true(netisr_take(n));
	while ((p = pkt_alloc(n)) != NULL) {
		p->next = hoard;
		hoard = p;
	}
	netisr_give(n);
	len = rig_echo(frame, &(struct ip4_view){ 0 }, 1);
	rig_inject(&rig, frame, len);
	rig_expect_silence(&rig);
	assert_true(netisr_take(n));
	while (hoard != NULL) {
		p = hoard;
		hoard = p->next;
		pkt_free(n, p);
	}
	netisr_give(n);
	wire_dev_clear(rig.w);
	rig_inject(&rig, frame, len);
	rig_sent(&rig);
	rig_expect_no_leak(&rig);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(idle_stack_on_a_device_with_a_descriptor_has_no_deadline),
		T(nap_beside_a_polled_device_grows_with_idleness),
		T(round_takes_a_bounded_number_of_frames),
		T(stack_is_freed_with_packets_in_every_queue),
		T(frames_for_no_packet_are_dropped_and_the_stack_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
