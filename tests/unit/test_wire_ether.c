/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet headers with and without a tag, and addresses as text. */
#include <errno.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "wire/ether.h"

static const struct mac a = { { 2, 0, 0, 0, 0, 1 } };
static const struct mac b = { { 2, 0, 0, 0, 0, 0xfe } };

static void
emitted_header_parses_back(void **state)
{
	struct ether_view v;
	uint8_t buf[14];

	(void)state;
	assert_int_equal(ether_emit(buf, &a, &b, ETHER_TYPE_IP4), 14);
	assert_memory_equal(buf, "\2\0\0\0\0\1\2\0\0\0\0\xfe\x08\x00", 14);
	assert_int_equal(ether_parse(buf, 14, &v), WIRE_OK);
	assert_true(mac_eq(&v.dst, &a) && mac_eq(&v.src, &b));
	assert_int_equal(v.type, ETHER_TYPE_IP4);
	assert_int_equal(v.hdr_bytes, 14);
	assert_false(v.has_vlan);
}

static void
tagged_header_shows_inner_type_and_tag(void **state)
{
	struct ether_view v;
	uint8_t buf[18];

	(void)state;
	assert_int_equal(ether_emit_vlan(buf, &a, &b, 5 << VLAN_PCP_SHIFT | 100, ETHER_TYPE_IP6),
	    18);
	assert_int_equal(ether_parse(buf, 18, &v), WIRE_OK);
	assert_true(v.has_vlan);
	assert_int_equal(v.vlan_tci & VLAN_ID_MASK, 100);
	assert_int_equal(v.vlan_tci >> VLAN_PCP_SHIFT, 5);
	assert_int_equal(v.type, ETHER_TYPE_IP6);
	assert_int_equal(v.hdr_bytes, 18);
}

static void
header_cut_short_is_refused(void **state)
{
	struct ether_view v;
	uint8_t buf[18];
	size_t len;

	(void)state;
	ether_emit_vlan(buf, &a, &b, 1, ETHER_TYPE_IP4);
	for (len = 0; len < 18; len++)
		assert_int_equal(ether_parse(buf, len, &v), WIRE_ERR_SHORT);
}

static void
second_tag_is_left_as_the_type(void **state)
{
	struct ether_view v;
	uint8_t buf[18];

	(void)state;
	ether_emit_vlan(buf, &a, &b, 1, ETHER_TYPE_VLAN);
	assert_int_equal(ether_parse(buf, 18, &v), WIRE_OK);
	assert_int_equal(v.type, ETHER_TYPE_VLAN);
}

static void
address_text_survives_both_ways(void **state)
{
	char buf[MAC_STR_MAX];
	struct mac m;

	(void)state;
	assert_int_equal(mac_parse("02:00:5e:AB:cd:0f", &m), 0);
	assert_string_equal(mac_format(&m, buf, sizeof(buf)), "02:00:5e:ab:cd:0f");
	assert_int_equal(mac_parse("2:0:0:0:0:1", &m), 0);
	assert_true(mac_eq(&m, &a));
}

static void
malformed_address_text_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "02", "02:00:00:00:00", "02:00:00:00:00:01:02", "02:00:00:00:00:1x",
		"002:00:00:00:00:01", "02:00:00:00:00:", " 2:00:00:00:00:01", "-1:0:0:0:0:0",
		"02-00-00-00-00-01", "0x:0:0:0:0:0",
	};
	struct mac m = a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(mac_parse(texts[i], &m), -EINVAL);
	assert_true(mac_eq(&m, &a));
}

static void
group_and_broadcast_are_told_apart(void **state)
{
	struct mac multicast = { { 0x01, 0, 0x5e, 0, 0, 1 } };

	(void)state;
	assert_true(mac_is_group(&multicast));
	assert_false(mac_is_broadcast(&multicast));
	assert_true(mac_is_group(&MAC_BROADCAST) && mac_is_broadcast(&MAC_BROADCAST));
	assert_false(mac_is_group(&a));
	assert_true(mac_is_zero(&(struct mac){ { 0 } }));
	assert_false(mac_is_zero(&a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emitted_header_parses_back),
		cmocka_unit_test(tagged_header_shows_inner_type_and_tag),
		cmocka_unit_test(header_cut_short_is_refused),
		cmocka_unit_test(second_tag_is_left_as_the_type),
		cmocka_unit_test(address_text_survives_both_ways),
		cmocka_unit_test(malformed_address_text_is_refused),
		cmocka_unit_test(group_and_broadcast_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
