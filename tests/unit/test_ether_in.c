/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet in: which frames are for us, VLANs, types. */
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
setup_vlan(void **state)
{
	(void)state;
	rig_init(&rig, 1, (const char *const[]){ "port.p0.vlan=5", NULL });
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

static size_t
echo(uint8_t *frame)
{
	return rig_echo(frame, &(struct ip4_view){ 0 }, 1);
}

static void
tag(uint8_t *frame, size_t *len, uint16_t tci)
{
	memmove(frame + 16, frame + 12, *len - 12);
	store_be16(frame + 12, ETHER_TYPE_VLAN);
	store_be16(frame + 14, tci);
	*len += 4;
}

static void
expect_answer(const uint8_t *frame, size_t len)
{
	rig_inject(&rig, frame, len);
	rig_sent(&rig);
	rig_expect_silence(&rig);
}

static void
expect_drop(const uint8_t *frame, size_t len, enum counter reason)
{
	uint64_t before = rig_count(&rig, reason);

	rig_inject(&rig, frame, len);
	rig_expect_silence(&rig);
	assert_int_equal(rig_count(&rig, reason), before + 1);
}

static void
frame_to_our_address_is_taken(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	expect_answer(frame, echo(frame));
	assert_int_equal(rig_count(&rig, CTR_rx_pkts), 1);
	assert_int_equal(rig_count(&rig, CTR_rx_bytes), 74);
}

static void
frame_to_another_host_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = echo(frame);

	(void)state;
	frame[5] = 9;
	expect_drop(frame, len, CTR_drop_ether_dst);
}

static void
group_that_is_not_of_ipv4_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = echo(frame);

	(void)state;
	memcpy(frame, "\x33\x33\x00\x00\x00\x01", 6);
	expect_drop(frame, len, CTR_drop_ether_dst);
}

static void
runt_without_a_whole_header_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];

	(void)state;
	echo(frame);
	expect_drop(frame, 13, CTR_drop_ether_short);
	store_be16(frame + 12, ETHER_TYPE_VLAN);
	expect_drop(frame, 17, CTR_drop_ether_short);
}

static void
group_address_as_source_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = echo(frame);

	(void)state;
	frame[6] |= 1;
	expect_drop(frame, len, CTR_drop_ether_src);
}

static void
unknown_type_is_dropped(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = echo(frame);

	(void)state;
	store_be16(frame + 12, 0x88cc);
	expect_drop(frame, len, CTR_drop_ether_proto);
	store_be16(frame + 12, 60);	/* an 802.3 length */
	expect_drop(frame, len, CTR_drop_ether_proto);
}

/* IEEE 802.1Q: VID 0 is a priority tag only */
static void
untagged_port_takes_priority_tags_but_no_vlan(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	size_t len = echo(frame);

	(void)state;
	tag(frame, &len, 3 << VLAN_PCP_SHIFT);
	expect_answer(frame, len);
	store_be16(frame + 14, 7);
	expect_drop(frame, len, CTR_drop_vlan);
}

static void
tagged_port_takes_its_vlan_and_tags_its_answers(void **state)
{
	uint8_t frame[RIG_FRAME_MAX];
	const struct wire_frame *f;
	size_t len = echo(frame);

	(void)state;
	expect_drop(frame, len, CTR_drop_vlan);
	tag(frame, &len, 5 | 1 << VLAN_PCP_SHIFT);
	rig_inject(&rig, frame, len);
	f = rig_sent(&rig);
	assert_int_equal(load_be16(f->bytes + 12), ETHER_TYPE_VLAN);
	assert_int_equal(load_be16(f->bytes + 14), 5);
	assert_int_equal(load_be16(f->bytes + 16), ETHER_TYPE_IP4);
	assert_int_equal(f->len, len);
	store_be16(frame + 14, 6);
	expect_drop(frame, len, CTR_drop_vlan);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(frame_to_our_address_is_taken),
		T(frame_to_another_host_is_dropped),
		T(group_that_is_not_of_ipv4_is_dropped),
		T(runt_without_a_whole_header_is_dropped),
		T(group_address_as_source_is_dropped),
		T(unknown_type_is_dropped),
		T(untagged_port_takes_priority_tags_but_no_vlan),
		cmocka_unit_test_setup_teardown(tagged_port_takes_its_vlan_and_tags_its_answers,
		    setup_vlan, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
