/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixed IPv6 header (RFC 8200 3). */
#include <string.h>

#include "support/cmocka_all.h"

#include "wire/ip6.h"

static size_t
make(uint8_t *buf)
{
	struct ip6_view v = { .flow_label = 0xabcde, .tclass = 0x2e, .next = 6, .hop_limit = 64,
		.payload_bytes = 4 };

	assert_int_equal(ipaddr_parse("2001:db8::1", &v.src), 0);
	assert_int_equal(ipaddr_parse("fe80::2", &v.dst), 0);
	memcpy(buf + IP6_HDR_BYTES, "data", 4);
	return ip6_emit(buf, &v) + 4;
}

static void
emitted_header_parses_back(void **state)
{
	struct ip6_view v;
	uint8_t buf[44];

	(void)state;
	assert_int_equal(make(buf), 44);
	assert_memory_equal(buf, "\x62\xea\xbc\xde\x00\x04\x06\x40\x20\x01\x0d\xb8", 12);
	assert_int_equal(ip6_parse(buf, 44, &v), WIRE_OK);
	assert_int_equal(v.flow_label, 0xabcde);
	assert_int_equal(v.tclass, 0x2e);
	assert_int_equal(v.next, 6);
	assert_int_equal(v.hop_limit, 64);
	assert_int_equal(v.payload_bytes, 4);
	assert_memory_equal(v.payload, "data", 4);
	assert_int_equal(v.src.b[15], 1);
	assert_int_equal(v.dst.b[15], 2);
}

static void
wrong_version_and_lengths_are_refused(void **state)
{
	struct ip6_view v;
	uint8_t buf[44];

	(void)state;
	make(buf);
	assert_int_equal(ip6_parse(buf, 39, &v), WIRE_ERR_SHORT);
	assert_int_equal(ip6_parse(buf, 43, &v), WIRE_ERR_LEN);
	buf[0] = 0x42;
	assert_int_equal(ip6_parse(buf, 44, &v), WIRE_ERR_VERSION);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emitted_header_parses_back),
		cmocka_unit_test(wrong_version_and_lengths_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
