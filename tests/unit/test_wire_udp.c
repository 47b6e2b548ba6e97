/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP headers (RFC 768). */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/csum.h"
#include "wire/udp.h"

static void
emitted_header_parses_back(void **state)
{
	uint8_t buf[12] = "........data";
	struct udp_view v;

	(void)state;
	assert_int_equal(udp_emit(buf, 53, 40000, 4, 0x3412), 8);
	assert_memory_equal(buf, "\x00\x35\x9c\x40\x00\x0c\x12\x34", 8);
	assert_int_equal(udp_parse(buf, 12, &v), WIRE_OK);
	assert_int_equal(v.sport, 53);
	assert_int_equal(v.dport, 40000);
	assert_int_equal(v.total_bytes, 12);
	assert_int_equal(v.csum_raw, 0x3412);
	assert_int_equal(v.payload_bytes, 4);
	assert_memory_equal(v.payload, "data", 4);
}

static void
length_field_bounds_the_payload(void **state)
{
	uint8_t buf[20] = { 0 };
	struct udp_view v;

	(void)state;
	udp_emit(buf, 1, 2, 3, 0);
	assert_int_equal(udp_parse(buf, 20, &v), WIRE_OK);
	assert_int_equal(v.payload_bytes, 3);
	assert_int_equal(udp_parse(buf, 10, &v), WIRE_ERR_LEN);
	buf[5] = 7;
	assert_int_equal(udp_parse(buf, 20, &v), WIRE_ERR_LEN);
	assert_int_equal(udp_parse(buf, 7, &v), WIRE_ERR_SHORT);
}

/* RFC 768: a computed zero is sent as all ones, since zero means "none". */
static void
computed_zero_is_sent_as_all_ones(void **state)
{
	(void)state;
	assert_int_equal(udp_csum_finish(0xffff), 0xffff);
	assert_int_equal(udp_csum_finish(0), 0xffff);
	assert_int_equal(udp_csum_finish(0x1234), (uint16_t)~0x1234);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emitted_header_parses_back),
		cmocka_unit_test(length_field_bounds_the_payload),
		cmocka_unit_test(computed_zero_is_sent_as_all_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
