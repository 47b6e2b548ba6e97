/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP messages: echo, the MTU of RFC 1191, checksums, which types are errors. */
#include <string.h>

#include "support/cmocka_all.h"

#include "wire/icmp4.h"

static void
echo_survives_both_ways_with_its_checksum(void **state)
{
	static const uint8_t data[] = "ping pong";
	struct icmp4_view in = { .type = ICMP4_ECHO, .id = 0x1234, .seq = 7, .data = data,
		.data_bytes = sizeof(data) }, out;
	uint8_t buf[64];
	size_t len;

	(void)state;
	len = icmp4_emit(buf, &in);
	assert_int_equal(len, 8 + sizeof(data));
	assert_true(icmp4_csum_ok(buf, len));
	assert_int_equal(icmp4_parse(buf, len, &out), WIRE_OK);
	assert_int_equal(out.type, ICMP4_ECHO);
	assert_int_equal(out.id, 0x1234);
	assert_int_equal(out.seq, 7);
	assert_int_equal(out.next_mtu_bytes, 0);
	assert_int_equal(out.data_bytes, sizeof(data));
	assert_memory_equal(out.data, data, sizeof(data));
	buf[9] ^= 1;
	assert_false(icmp4_csum_ok(buf, len));
}

/* A plain "echo request, id 1, seq 1" of no data, summed by hand: 0x0800 + 1 + 1 = 0x0802. */
static void
known_message_has_the_known_checksum(void **state)
{
	struct icmp4_view v = { .type = ICMP4_ECHO, .id = 1, .seq = 1 };
	uint8_t buf[8];

	(void)state;
	assert_int_equal(icmp4_emit(buf, &v), 8);
	assert_memory_equal(buf, "\x08\x00\xf7\xfd\x00\x01\x00\x01", 8);
}

static void
needfrag_carries_the_next_mtu(void **state)
{
	struct icmp4_view in = { .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG,
		.next_mtu_bytes = 1400 }, out;
	uint8_t buf[36];

	(void)state;
	memset(buf, 0x45, sizeof(buf));
	in.data = buf + 8;	/* in place: the quote is already there */
	in.data_bytes = 28;
	assert_int_equal(icmp4_emit(buf, &in), 36);
	assert_true(icmp4_csum_ok(buf, 36));
	assert_int_equal(icmp4_parse(buf, 36, &out), WIRE_OK);
	assert_int_equal(out.next_mtu_bytes, 1400);
	assert_int_equal(out.data_bytes, 28);
	assert_int_equal(out.data[27], 0x45);
}

static void
message_cut_short_is_refused(void **state)
{
	static const uint8_t buf[8];
	struct icmp4_view v;
	size_t len;

	(void)state;
	for (len = 0; len < 8; len++)
		assert_int_equal(icmp4_parse(buf, len, &v), WIRE_ERR_SHORT);
	assert_int_equal(icmp4_parse(buf, 8, &v), WIRE_OK);
}

/* RFC 1122 3.2.2: no error is sent about an error. */
static void
errors_are_told_from_queries(void **state)
{
	unsigned type, errors = 0;

	(void)state;
	for (type = 0; type < 256; type++)
		errors += icmp4_is_error((uint8_t)type);
	assert_int_equal(errors, 5);
	assert_true(icmp4_is_error(ICMP4_UNREACH) && icmp4_is_error(ICMP4_TIME_EXCEEDED));
	assert_false(icmp4_is_error(ICMP4_ECHO) || icmp4_is_error(ICMP4_ECHO_REPLY));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(echo_survives_both_ways_with_its_checksum),
		cmocka_unit_test(known_message_has_the_known_checksum),
		cmocka_unit_test(needfrag_carries_the_next_mtu),
		cmocka_unit_test(message_cut_short_is_refused),
		cmocka_unit_test(errors_are_told_from_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
