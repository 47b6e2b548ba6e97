/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP: what is answered, what is learned from whom (RFC 826, RFC 5227), and that every netisr gets
 * to know.
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
setup_two_netisrs(void **state)
{
	(void)state;
	rig_init(&rig, 2, NULL);
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
inject(uint16_t op, struct mac mac, uint32_t sender, uint32_t target)
{
	uint8_t frame[64] = { 0 };

	rig_arp(frame, op, mac, sender, target);
	rig_inject(&rig, frame, ETHER_MIN_FRAME_BYTES);
}

static struct arp_view
sent_arp(struct mac *ret_dst)
{
	const struct wire_frame *f = rig_sent(&rig);
	struct arp_view a;

	assert_int_equal(load_be16(f->bytes + 12), ETHER_TYPE_ARP);
	assert_int_equal(arp_parse(f->bytes + 14, f->len - 14, &a), WIRE_OK);
	memcpy(ret_dst->b, f->bytes, 6);
	return a;
}

static void
request_for_our_address_is_answered_and_the_asker_learned(void **state)
{
	struct arp_view a;
	struct mac dst;

	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, RIG_OWN_IP);
	a = sent_arp(&dst);
	assert_memory_equal(dst.b, RIG_PEER_MAC.b, 6);
	assert_int_equal(a.op, ARP_OP_REPLY);
	assert_memory_equal(a.sender_mac.b, RIG_OWN_MAC.b, 6);
	assert_int_equal(be32_to_cpu(a.sender_ip), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(a.target_ip), RIG_PEER_IP);
	assert_memory_equal(a.target_mac.b, RIG_PEER_MAC.b, 6);
	assert_int_equal(rig_neigh(&rig, 0, RIG_PEER_IP).state, NEIGH_STALE);
}

static void
request_for_another_host_is_neither_answered_nor_learned(void **state)
{
	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, RIG_THIRD_IP);
	rig_expect_silence(&rig);
	assert_int_equal(rig_neigh(&rig, 0, RIG_PEER_IP).state, NEIGH_NONE);
	assert_int_equal(rig_count(&rig, CTR_drop_arp_not_ours), 1);
}

static void
unasked_reply_makes_no_entry(void **state)
{
	(void)state;
	inject(ARP_OP_REPLY, RIG_PEER_MAC, RIG_PEER_IP, RIG_OWN_IP);
	assert_int_equal(rig_neigh(&rig, 0, RIG_PEER_IP).state, NEIGH_NONE);
}

/* RFC 826: an entry that exists is merged with what is heard */
static void
announcement_updates_an_entry_as_stale(void **state)
{
	struct rig_found f;

	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, RIG_OWN_IP);
	rig_sent(&rig);
	inject(ARP_OP_REQUEST, RIG_THIRD_MAC, RIG_PEER_IP, RIG_PEER_IP);
	f = rig_neigh(&rig, 0, RIG_PEER_IP);
	assert_int_equal(f.state, NEIGH_STALE);
	assert_memory_equal(f.mac, RIG_THIRD_MAC.b, 6);
	rig_expect_silence(&rig);
}

/* RFC 5227 2.1.1: a probe says nothing of its sender */
static void
probe_for_our_address_is_answered_but_not_learned(void **state)
{
	struct mac dst;

	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, 0, RIG_OWN_IP);
	assert_int_equal(sent_arp(&dst).op, ARP_OP_REPLY);
	assert_int_equal(rig_neigh(&rig, 0, 0).state, NEIGH_NONE);
}

/* RFC 5227 2.4 (b) */
static void
claim_on_our_address_is_answered_once_in_ten_seconds(void **state)
{
	struct arp_view a;
	struct mac dst;

	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_OWN_IP, RIG_OWN_IP);
	a = sent_arp(&dst);
	assert_memory_equal(dst.b, MAC_BROADCAST.b, 6);
	assert_int_equal(be32_to_cpu(a.sender_ip), RIG_OWN_IP);
	assert_int_equal(be32_to_cpu(a.target_ip), RIG_OWN_IP);
	assert_memory_equal(a.sender_mac.b, RIG_OWN_MAC.b, 6);
	inject(ARP_OP_REPLY, RIG_PEER_MAC, RIG_OWN_IP, RIG_THIRD_IP);
	rig_expect_silence(&rig);
	rig_advance_ms(&rig, 10000);
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_OWN_IP, RIG_OWN_IP);
	sent_arp(&dst);
	assert_int_equal(rig_count(&rig, CTR_arp_addr_conflicts), 3);
}

static void
our_own_announcement_reflected_is_no_conflict(void **state)
{
	(void)state;
	inject(ARP_OP_REQUEST, RIG_OWN_MAC, RIG_OWN_IP, RIG_OWN_IP);
	rig_expect_silence(&rig);
	assert_int_equal(rig_count(&rig, CTR_arp_addr_conflicts), 0);
}

static void
nonsense_is_dropped(void **state)
{
	uint8_t frame[64] = { 0 };
	size_t len = rig_arp(frame, ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, RIG_OWN_IP);

	(void)state;
	rig_inject(&rig, frame, len - 1);
	frame[14] = 9;					/* hardware kind */
	rig_inject(&rig, frame, len);
	frame[14] = 0;
	frame[22] = 0xff;				/* sender's MAC is a group */
	rig_inject(&rig, frame, len);
	memset(frame + 22, 0, 6);			/* or nothing */
	rig_inject(&rig, frame, len);
	assert_int_equal(rig_count(&rig, CTR_drop_arp_bad), 4);
	rig_expect_silence(&rig);
}

static void
sender_off_our_network_is_not_learned(void **state)
{
	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_FAR_IP, RIG_OWN_IP);
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, 0xe0000001, RIG_OWN_IP);
	assert_int_equal(rig_neigh(&rig, 0, RIG_FAR_IP).state, NEIGH_NONE);
	assert_int_equal(rig_neigh(&rig, 0, 0xe0000001).state, NEIGH_NONE);
	wire_dev_clear(rig.w);
}

static void
answer_at_one_queue_reaches_the_netisr_that_asked(void **state)
{
	uint8_t frame[64];

	(void)state;
	assert_int_equal(rig_send_from(&rig, 1, RIG_PEER_IP, 100), 0);
	rig_sent(&rig);
	assert_int_equal(rig_neigh(&rig, 1, RIG_PEER_IP).state, NEIGH_INCOMPLETE);
	rig_inject_on(&rig, 0, frame, rig_arp(frame, ARP_OP_REPLY, RIG_PEER_MAC, RIG_PEER_IP,
	    RIG_OWN_IP));
	assert_int_equal(rig_neigh(&rig, 1, RIG_PEER_IP).state, NEIGH_REACHABLE);
	assert_int_equal(rig_neigh(&rig, 0, RIG_PEER_IP).state, NEIGH_NONE);
	assert_int_equal(rig_sent(&rig)->len, 134);
}

static void
request_is_answered_once_and_learned_by_all_netisrs(void **state)
{
	(void)state;
	inject(ARP_OP_REQUEST, RIG_PEER_MAC, RIG_PEER_IP, RIG_OWN_IP);
	rig_sent(&rig);
	rig_expect_silence(&rig);
	assert_int_equal(rig_neigh(&rig, 0, RIG_PEER_IP).state, NEIGH_STALE);
	assert_int_equal(rig_neigh(&rig, 1, RIG_PEER_IP).state, NEIGH_STALE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T2(name) cmocka_unit_test_setup_teardown(name, setup_two_netisrs, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(request_for_our_address_is_answered_and_the_asker_learned),
		T(request_for_another_host_is_neither_answered_nor_learned),
		T(unasked_reply_makes_no_entry),
		T(announcement_updates_an_entry_as_stale),
		T(probe_for_our_address_is_answered_but_not_learned),
		T(claim_on_our_address_is_answered_once_in_ten_seconds),
		T(our_own_announcement_reflected_is_no_conflict),
		T(nonsense_is_dropped),
		T(sender_off_our_network_is_not_learned),
		T2(answer_at_one_queue_reaches_the_netisr_that_asked),
		T2(request_is_answered_once_and_learned_by_all_netisrs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
