/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 in: each way in which a packet fails is a drop of its own name, and what is good is
 * delivered whole.
 */
#include "link_rig.h"

static struct rig rig;

/* What protocol 253 of the test has received. */
static struct {
	unsigned count;
	uint32_t len;
	struct ip_meta meta;
	uint8_t first[20];	/* of the IP header in front */
} got;

static void
on_input(struct netisr *n, struct pkt *p, const struct ip_meta *meta)
{
	got.count++;
	got.len = p->total_len;
	got.meta = *meta;
	memcpy(got.first, p->data - meta->ip_hlen, sizeof(got.first));
	pkt_free(n, p);
}

static const struct ip_proto proto253 = { .input = on_input };

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig, 1, NULL);
	ip_register(rig.s, 253, &proto253);
	memset(&got, 0, sizeof(got));
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

static size_t
good(uint8_t *frame)
{
	return rig_ip4(frame, &(struct ip4_view){ .proto = 253 }, "0123456789", 10);
}

/* Sends the frame: it must be dropped for exactly this reason and nothing be answered. */
static void
expect_drop(const uint8_t *frame, size_t len, enum counter reason)
{
	uint64_t before[CTR_MAX];
	unsigned i;

	for (i = 0; i < CTR_MAX; i++)
		before[i] = rig_count(&rig, (enum counter)i);
	rig_inject(&rig, frame, len);
	assert_int_equal(got.count, 0);
	for (i = 0; i < CTR_MAX; i++) {
		uint64_t more = rig_count(&rig, (enum counter)i) - before[i];

		if (counter_is_drop(i) && more != (i == (unsigned)reason))
			fail_msg("%s grew by %u", counter_name(i), (unsigned)more);
	}
	rig_expect_silence(&rig);
}

static void
good_packet_is_delivered_without_padding(void **state)
{
	uint8_t frame[RIG_FRAME_MAX] = { 0 };

	(void)state;
	assert_true(good(frame) < ETHER_MIN_FRAME_BYTES);
	rig_inject(&rig, frame, ETHER_MIN_FRAME_BYTES);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.len, 10);
	assert_int_equal(got.meta.ip_hlen, 20);
	assert_int_equal(got.meta.ttl, 64);
	assert_int_equal(be32_to_cpu(got.meta.src.v4), RIG_PEER_IP);
	assert_int_equal(be32_to_cpu(got.meta.dst.v4), RIG_OWN_IP);
	assert_false(got.meta.is_broadcast);
	assert_int_equal(got.first[0], 0x45);
}

static void
truncated_header_is_dropped_as_short(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	good(frame);
	expect_drop(frame, ETHER_HDR_BYTES + 19, CTR_drop_ip_short);
}

static void
version_6_under_ethertype_of_4_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	frame[14] = 0x65;
	rig_fix_ip_csum(frame);
	expect_drop(frame, len, CTR_drop_ip_version);
}

static void
header_length_below_20_or_past_the_end_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	frame[14] = 0x44;
	expect_drop(frame, len, CTR_drop_ip_hlen);
	frame[14] = 0x4f;
	expect_drop(frame, len, CTR_drop_ip_hlen);
}

static void
total_length_past_the_frame_or_below_the_header_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	store_be16(frame + 16, 31);
	rig_fix_ip_csum(frame);
	expect_drop(frame, len, CTR_drop_ip_len);
	store_be16(frame + 16, 19);
	rig_fix_ip_csum(frame);
	expect_drop(frame, len, CTR_drop_ip_len);
}

static void
wrong_header_checksum_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	frame[15] ^= 0x10;
	expect_drop(frame, len, CTR_drop_ip_csum);
}

/* RFC 791 3.1 */
static void
time_to_live_of_zero_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	frame[22] = 0;
	rig_fix_ip_csum(frame);
	expect_drop(frame, len, CTR_drop_ip_ttl);
}

/* RFC 1122 3.2.1.7 */
static void
time_to_live_of_one_is_delivered(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_ip4(frame, &(struct ip4_view){ .proto = 253, .ttl = 1 }, "x", 1);

	(void)state;
	rig_inject(&rig, frame, len);
	assert_int_equal(got.count, 1);
}

/* RFC 1122 3.2.1.3 */
static void
sources_that_no_host_has_are_martians(void **state)
{
	static const uint32_t sources[] = {
		0x00000001, 0x7f000001, 0xe0000001, 0xf0000001, 0xffffffff, 0x0a0000ff, RIG_OWN_IP,
	};
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(sources); i++) {
		size_t len = rig_ip4(frame, &(struct ip4_view){ .proto = 253,
		    .src = be32_from_cpu(sources[i]) }, "x", 1);

		expect_drop(frame, len, CTR_drop_ip_src_martian);
	}
}

static void
destinations_that_may_not_be_on_a_wire_are_martians(void **state)
{
	static const uint32_t destinations[] = { 0x00000001, 0x7f000001, 0xf0000001 };
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(destinations); i++) {
		struct ip4_view v = { .proto = 253, .dst = be32_from_cpu(destinations[i]) };

		expect_drop(frame, rig_ip4(frame, &v, "x", 1), CTR_drop_ip_dst_martian);
	}
}

static void
packet_to_another_host_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view v = { .proto = 253, .dst = be32_from_cpu(RIG_THIRD_IP) };

	(void)state;
	expect_drop(frame, rig_ip4(frame, &v, "x", 1), CTR_drop_ip_dst_not_ours);
}

/* Puts options of 4 bytes into a good frame. */
static size_t
with_options(uint8_t *frame, const uint8_t opts[4])
{
	size_t len = good(frame);

	memmove(frame + 38, frame + 34, len - 34);
	memcpy(frame + 34, opts, 4);
	frame[14] = 0x46;
	store_be16(frame + 16, (uint16_t)(len - 14 + 4));
	rig_fix_ip_csum(frame);
	return len + 4;
}

static void
malformed_options_are_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	expect_drop(frame, with_options(frame, (const uint8_t[]){ 7, 9, 4, 0 }),
	    CTR_drop_ip_options_bad);
}

/* RFC 7126 4.3 */
static void
source_route_is_refused(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	expect_drop(frame, with_options(frame, (const uint8_t[]){ 131, 3, 4, 0 }),
	    CTR_drop_ip_options_route);
	expect_drop(frame, with_options(frame, (const uint8_t[]){ 137, 3, 4, 0 }),
	    CTR_drop_ip_options_route);
}

static void
harmless_options_are_skipped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = with_options(frame, (const uint8_t[]){ 148, 4, 0, 0 });

	(void)state;
	rig_inject(&rig, frame, len);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.len, 10);
	assert_int_equal(got.meta.ip_hlen, 24);
}

static void
fragments_are_counted_and_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	expect_drop(frame, rig_ip4(frame, &(struct ip4_view){ .proto = 253, .has_mf = true },
	    "12345678", 8), CTR_drop_ip_fragment);
	expect_drop(frame, rig_ip4(frame, &(struct ip4_view){ .proto = 253,
	    .frag_offset_bytes = 8 }, "x", 1), CTR_drop_ip_fragment);
	assert_int_equal(rig_count(&rig, CTR_ip_frags_rcvd), 2);
}

static void
broadcasts_of_our_network_are_delivered_as_such(void **state)
{
	static const uint32_t destinations[] = { 0xffffffff, 0x0a0000ff, 0xe0000001 };
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(destinations); i++) {
		struct ip4_view v = { .proto = 253, .dst = be32_from_cpu(destinations[i]) };

		rig_inject(&rig, frame, rig_ip4(frame, &v, "x", 1));
		assert_int_equal(got.count, i + 1);
		assert_true(got.meta.is_broadcast);
	}
}

static void
multicast_that_nobody_joined_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ip4_view v = { .proto = 253, .dst = be32_from_cpu(0xe0000005) };

	(void)state;
	expect_drop(frame, rig_ip4(frame, &v, "x", 1), CTR_drop_ip_bcast);
}

/* RFC 1122 3.3.6 */
static void
unicast_packet_in_a_broadcast_frame_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = good(frame);

	(void)state;
	memset(frame, 0xff, 6);
	expect_drop(frame, len, CTR_drop_ip_bcast);
}

/* RFC 1122 3.2.2.1 */
static void
unknown_protocol_elicits_protocol_unreachable(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = rig_ip4(frame, &(struct ip4_view){ .proto = 254 }, "0123456789", 10);
	const struct wire_frame *f;

	(void)state;
	rig_learn_peer(&rig);
	rig_inject(&rig, frame, len);
	assert_int_equal(rig_count(&rig, CTR_drop_ip_proto), 1);
	f = rig_sent(&rig);
	assert_int_equal(f->bytes[23], IP_PROTO_ICMP);
	assert_int_equal(f->bytes[34], ICMP4_UNREACH);
	assert_int_equal(f->bytes[35], ICMP4_UNREACH_PROTO);
	/* the whole packet is quoted */
	assert_memory_equal(f->bytes + 42, frame + 14, len - 14);
	assert_true(icmp4_csum_ok(f->bytes + 34, f->len - 34));
}

static void
address_added_at_run_time_is_ours_and_one_deleted_is_not(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	struct ipaddr a = ipaddr_v4_cpu(0x0a000009);
	struct ip4_view v = { .proto = 253, .dst = be32_from_cpu(0x0a000009) };
	size_t len = rig_ip4(frame, &v, "x", 1);

	(void)state;
	expect_drop(frame, len, CTR_drop_ip_dst_not_ours);
	assert_int_equal(ip_addr_add(rig.s, rig.d, &a, 24), 0);
	rig_inject(&rig, frame, len);
	assert_int_equal(got.count, 1);
	got.count = 0;
	assert_int_equal(ip_addr_del(rig.s, rig.d, &a), 0);
	expect_drop(frame, len, CTR_drop_ip_dst_not_ours);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(good_packet_is_delivered_without_padding),
		T(truncated_header_is_dropped_as_short),
		T(version_6_under_ethertype_of_4_is_dropped),
		T(header_length_below_20_or_past_the_end_is_dropped),
		T(total_length_past_the_frame_or_below_the_header_is_dropped),
		T(wrong_header_checksum_is_dropped),
		T(time_to_live_of_zero_is_dropped),
		T(time_to_live_of_one_is_delivered),
		T(sources_that_no_host_has_are_martians),
		T(destinations_that_may_not_be_on_a_wire_are_martians),
		T(packet_to_another_host_is_dropped),
		T(malformed_options_are_dropped),
		T(source_route_is_refused),
		T(harmless_options_are_skipped),
		T(fragments_are_counted_and_dropped),
		T(broadcasts_of_our_network_are_delivered_as_such),
		T(multicast_that_nobody_joined_is_dropped),
		T(unicast_packet_in_a_broadcast_frame_is_dropped),
		T(unknown_protocol_elicits_protocol_unreachable),
		T(address_added_at_run_time_is_ours_and_one_deleted_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
