/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault injector: each fault does what it says, is counted, repeats under a seed, and damage is
 * always detectable.
 */
#include "link_rig.h"
#include "link/dev_fault.h"

static struct rig rig;

static struct {
	unsigned count;
	uint16_t id[2048];	/* of the datagram: its first two bytes */
	uint64_t at_us[2048];
} got;

static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	(void)meta;
	assert_true(got.count < ARRAY_LEN(got.id));
	got.id[got.count] = load_be16(p->data);
	got.at_us[got.count] = n->now.us;
	got.count++;
	pkt_free(n, p);
}

static const struct ip_proto proto = { .input = on_input };

static void
start(const char *fault)
{
	char text[128];

	snprintf(text, sizeof(text), "port.p0.fault=%s", fault);
	rig_init(&rig, 1, (const char *const[]){ text, NULL });
	ip_register(rig.s, 253, &proto);
	memset(&got, 0, sizeof(got));
}

static void
stop(void)
{
	rig_expect_no_leak(&rig);
	rig_fini(&rig);
}

static void
receive(uint16_t first, unsigned count)
{
	uint8_t frame[RIG_FRAME_MAX], body[100] = { 0 };

	for (unsigned i = 0; i < count; i++) {
		size_t len;

		store_be16(body, (uint16_t)(first + i));
		len = rig_ip4(frame, &(struct ip4_view){ .proto = 253 }, body, sizeof(body));
		rig_inject(&rig, frame, len);
	}
}

static struct fault_stats
stats(enum fault_dir dir)
{
	struct fault_stats s;

	assert_int_equal(fault_stats(rig.d, dir, &s), 0);
	return s;
}

static void
no_fault_passes_everything_in_order(void **state)
{
	(void)state;
	start("none");
	receive(0, 50);
	assert_int_equal(got.count, 50);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(got.id[i], i);
	assert_int_equal(stats(FAULT_RX).seen, 50);
	assert_int_equal(stats(FAULT_RX).delayed, 0);
	stop();
}

static void
every_nth_frame_is_dropped(void **state)
{
	(void)state;
	start("drop_nth=3,dir=rx");
	receive(1, 9);
	assert_int_equal(got.count, 6);
	for (unsigned i = 0; i < 6; i++)
		assert_int_not_equal(got.id[i] % 3, 0);
	assert_int_equal(rig_count(&rig, CTR_drop_fault), 3);
	assert_int_equal(stats(FAULT_RX).dropped, 3);
	stop();
}

static void
drops_come_with_about_their_probability(void **state)
{
	(void)state;
	start("drop=0.2,dir=rx");
	receive(0, 1000);
	assert_in_range(got.count, 750, 850);
	assert_int_equal(got.count + rig_count(&rig, CTR_drop_fault), 1000);
	stop();
}

static void
direction_is_respected(void **state)
{
	(void)state;
	start("drop=1,dir=tx");
	rig_learn_peer(&rig);
	receive(0, 5);
	assert_int_equal(got.count, 5);
	assert_int_equal(rig_send(&rig, RIG_PEER_IP, 100), 0);
	rig_run(&rig);
	rig_expect_silence(&rig);
	assert_int_equal(stats(FAULT_TX).dropped, 1);
	stop();
}

static void
equal_seeds_give_equal_faults(void **state)
{
	uint16_t first[2048];
	unsigned count;

	(void)state;
	start("drop=0.3,dup=0.2,reorder=0.1,seed=5,dir=rx");
	receive(0, 200);
	rig_advance_ms(&rig, 5);
	count = got.count;
	memcpy(first, got.id, sizeof(first));
	stop();
	start("drop=0.3,dup=0.2,reorder=0.1,seed=5,dir=rx");
	receive(0, 200);
	rig_advance_ms(&rig, 5);
	assert_int_equal(got.count, count);
	assert_memory_equal(got.id, first, count * sizeof(first[0]));
	stop();
	start("drop=0.3,dup=0.2,reorder=0.1,seed=6,dir=rx");
	receive(0, 200);
	rig_advance_ms(&rig, 5);
	assert_true(got.count != count || memcmp(got.id, first, count * sizeof(first[0])) != 0);
	stop();
}

static void
duplicate_follows_its_original(void **state)
{
	(void)state;
	start("dup=1,dir=rx");
	receive(0, 10);
	assert_int_equal(got.count, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(got.id[i], i / 2);
	assert_int_equal(stats(FAULT_RX).duplicated, 10);
	stop();
}

static void
fixed_delay_keeps_order_and_is_exact(void **state)
{
	uint64_t sent_us;

	(void)state;
	start("delay_us=5000,dir=rx");
	sent_us = rig.clock.fake_us;
	receive(0, 10);
	assert_int_equal(got.count, 0);
	assert_true(netisr_take(rig.s->netisr[0]));
	assert_int_equal(netisr_next_deadline(rig.s->netisr[0]).us, sent_us + 5000);
	netisr_give(rig.s->netisr[0]);
	rig_advance_ms(&rig, 4);
	assert_int_equal(got.count, 0);
	rig_advance_ms(&rig, 1);
	assert_int_equal(got.count, 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(got.id[i], i);
		assert_int_equal(got.at_us[i], sent_us + 5000);
	}
	stop();
}

static void
random_delay_reorders_unless_it_is_told_not_to(void **state)
{
	unsigned inversions[2] = { 0, 0 };

	(void)state;
	for (unsigned fifo = 0; fifo < 2; fifo++) {
		start(fifo ? "delay_us=0-20000,fifo=1,dir=rx" : "delay_us=0-20000,dir=rx");
		receive(0, 100);
		rig_advance_ms(&rig, 21);
		assert_int_equal(got.count, 100);
		for (unsigned i = 1; i < 100; i++)
			inversions[fifo] += got.id[i] < got.id[i - 1];
		stop();
	}
	assert_true(inversions[0] > 10);
	assert_int_equal(inversions[1], 0);
}

static void
reordered_frame_comes_after_one_to_three_others(void **state)
{
	(void)state;
	start("reorder=0.1,dir=rx,seed=3");
	receive(0, 300);
	rig_advance_ms(&rig, 3);
	assert_int_equal(got.count, 300);
	assert_true(stats(FAULT_RX).reordered > 5);
	for (unsigned i = 0; i < 300; i++)
		assert_in_range(got.id[i] + 4, i + 1, i + 5 + 2);
	stop();
}

static void
last_frame_is_not_held_for_ever(void **state)
{
	(void)state;
	start("reorder=1,reorder_us=2000,dir=rx");
	receive(0, 1);
	assert_int_equal(got.count, 0);
	rig_advance_ms(&rig, 1);
	assert_int_equal(got.count, 0);
	rig_advance_ms(&rig, 1);
	assert_int_equal(got.count, 1);
	stop();
}

/*
 * Every damaged frame of ours carries a real checksum: whatever bit is flipped, nothing wrong is
 * delivered.
 */
static void
corruption_never_passes_the_checks(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	uint64_t answered;

	(void)state;
	start("corrupt=1,dir=rx");
	rig_learn_peer(&rig);
	for (uint16_t i = 0; i < 500; i++)
		rig_inject(&rig, frame, rig_echo(frame, &(struct ip4_view){ 0 }, i));
	answered = rig_count(&rig, CTR_icmp_echo_replies);
	assert_int_equal(answered, 0);
	assert_int_equal(stats(FAULT_RX).corrupted, 500);
	wire_dev_clear(rig.w);
	stop();
}

static void
corrupt_frame_that_is_not_ip_is_dropped(void **state)
{
	uint8_t frame[64];

	(void)state;
	start("corrupt=1,dir=rx");
	rig_inject(&rig, frame, rig_arp(frame, ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP,
	    RIG_OWN_IP));
	rig_expect_silence(&rig);
	assert_int_equal(rig_count(&rig, CTR_drop_fault), 1);
	stop();
}

/* 1000 kbit/s: a frame of 134 bytes takes 1.072 ms. */
static void
rate_spaces_frames_and_bounds_the_queue(void **state)
{
	unsigned i;

	(void)state;
	start("rate_kbps=1000,queue_pkts=1,dir=rx");
	receive(0, 20);
	rig_advance_ms(&rig, 30);
	/* one full-size frame's time, 12.1 ms, holds 12 of these */
	assert_int_equal(got.count, 12);
	assert_int_equal(stats(FAULT_RX).overflowed, 8);
	for (i = 1; i < got.count; i++)
		assert_in_range(got.at_us[i] - got.at_us[i - 1], 1000, 2000);
	stop();
}

static enum fault_verdict
drop_second(void *arg, enum fault_dir dir, uint64_t nth, const struct pkt *frame,
    uint64_t *ret_delay_us)
{
	unsigned *calls = arg;

	if (dir != FAULT_RX)
		return FAULT_AS_CONFIGURED;
	assert_int_equal(load_be16(frame->data + 12), ETHER_TYPE_IP4);
	(*calls)++;
	*ret_delay_us = 3000;
	return nth == 2 ? FAULT_DROP : nth == 3 ? FAULT_DELAY : FAULT_PASS;
}

static void
rule_decides_frame_by_frame(void **state)
{
	unsigned calls = 0;

	(void)state;
	start("drop=1");
	assert_int_equal(fault_set_rule(rig.d, drop_second, &calls), 0);
	receive(1, 4);
	assert_int_equal(calls, 4);
	assert_int_equal(got.count, 2);
	rig_advance_ms(&rig, 3);
	assert_int_equal(got.count, 3);
	assert_int_equal(got.id[0], 1);
	assert_int_equal(got.id[1], 4);
	assert_int_equal(got.id[2], 3);
	assert_int_equal(fault_set_rule(rig.d, NULL, NULL), 0);
	receive(5, 2);
	assert_int_equal(got.count, 3);
	stop();
	rig_init(&rig, 1, NULL);
	assert_int_equal(fault_set_rule(rig.d, drop_second, &calls), -EINVAL);
	stop();
}

static void
delayed_frames_that_are_sent_go_out_when_due(void **state)
{
	(void)state;
	start("delay_us=2000,dir=tx");
	rig_learn_peer(&rig);
	for (uint32_t i = 0; i < 40; i++)
		rig_send(&rig, RIG_PEER_IP, 100 + i);
	rig_expect_silence(&rig);
	rig_advance_ms(&rig, 2);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(rig_sent(&rig)->len, 134 + i);
	stop();
}

static void
frames_that_the_inner_device_refuses_are_kept_in_order(void **state)
{
	(void)state;
	start("none");
	rig_learn_peer(&rig);
	rig.w->tx_room = 2;
	for (uint32_t i = 0; i < 10; i++)
		rig_send(&rig, RIG_PEER_IP, 100 + i);
	rig.w->tx_room = UINT32_MAX;
	rig_run(&rig);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_sent(&rig)->len, 134 + i);
	stop();
}

/* Over a cable, where checksums are left out, a damaged frame is still found out. */
static void
corruption_is_detected_on_a_cable_that_skips_checksums(void **state)
{
	const char *fault[] = { "port.p0.fault=corrupt=1,dir=rx",
	    "port.p0.fault=corrupt=1,dir=tx" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct ip_out o = { .dst = ipaddr_v4_cpu(RIG_PEER_IP), .proto = IP_PROTO_UDP,
		    .dont_fragment = true };
		struct rig a = { 0 }, b = { 0 };
		struct ip_route route;
		struct netisr *n;

		clock_init_fake(&a.clock, (struct time){ 1000000 });
		a.s = rig_stack(&a.clock, (const char *const[]){ "port.p0.device=pair:f",
		    "port.p0.addr=10.0.0.1/24", i == 1 ? fault[1] : NULL, NULL });
		b.s = rig_stack(&a.clock, (const char *const[]){ "port.p0.device=pair:f",
		    "port.p0.addr=10.0.0.2/24", i == 0 ? fault[0] : NULL, NULL });
		a.d = dev_find(a.s, "p0");
		b.d = dev_find(b.s, "p0");
		ip_register(b.s, IP_PROTO_UDP, &proto);
		n = a.s->netisr[0];
		assert_true(netisr_take(n));
		assert_int_equal(neigh_set_static(n, a.d, &o.dst, b.d->mac), 0);
		assert_int_equal(ip_route_lookup(a.s, &o.dst, NULL, &route), 0);
		o.src = route.src;
		got.count = 0;
		for (unsigned k = 0; k < 50; k++) {
			struct pkt *p = rig_pkt(n, 16);

			udp_emit(p->data, 1000, 53, 8, csum_fold_raw(csum_pseudo(&o.src, &o.dst,
			    IP_PROTO_UDP, 16)));
			p->flags = PKT_TX_UDP_CSUM;
			assert_int_equal(ip_output(n, p, &route, &o), 0);
		}
		netisr_round(n);
		netisr_give(n);
		rig_run_stack(b.s);
		/* what reaches UDP is not vouched for, and its checksum tells */
		assert_int_equal(stack_counter(b.s, CTR_ip_rcvd), 50);
		assert_true(stack_counter(b.s, CTR_drop_ip_csum) > 10);
		assert_int_equal(got.count + stack_counter(b.s, CTR_drop_ip_csum) +
		    stack_counter(b.s, CTR_drop_ip_version) + stack_counter(b.s, CTR_drop_ip_hlen) +
		    stack_counter(b.s, CTR_drop_ip_len) + stack_counter(b.s, CTR_drop_ip_short),
		    50);
		stack_free(a.s);
		stack_free(b.s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_fault_passes_everything_in_order),
		cmocka_unit_test(every_nth_frame_is_dropped),
		cmocka_unit_test(drops_come_with_about_their_probability),
		cmocka_unit_test(direction_is_respected),
		cmocka_unit_test(equal_seeds_give_equal_faults),
		cmocka_unit_test(duplicate_follows_its_original),
		cmocka_unit_test(fixed_delay_keeps_order_and_is_exact),
		cmocka_unit_test(random_delay_reorders_unless_it_is_told_not_to),
		cmocka_unit_test(reordered_frame_comes_after_one_to_three_others),
		cmocka_unit_test(last_frame_is_not_held_for_ever),
		cmocka_unit_test(corruption_never_passes_the_checks),
		cmocka_unit_test(corrupt_frame_that_is_not_ip_is_dropped),
		cmocka_unit_test(rate_spaces_frames_and_bounds_the_queue),
		cmocka_unit_test(rule_decides_frame_by_frame),
		cmocka_unit_test(delayed_frames_that_are_sent_go_out_when_due),
		cmocka_unit_test(frames_that_the_inner_device_refuses_are_kept_in_order),
		cmocka_unit_test(corruption_is_detected_on_a_cable_that_skips_checksums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
