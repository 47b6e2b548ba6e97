/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 headers: a published example, length rules, fragments, quotes, options. */
#include <string.h>

#include "support/cmocka_all.h"

#include "wire/ip4.h"

/* The widely printed example header: 192.168.0.1 > 192.168.0.199, UDP, checksum b861. */
static const uint8_t example[20] = {
	0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
	0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
};

static void
example_header_parses_and_emits_alike(void **state)
{
	uint8_t packet[0x73] = { 0 }, buf[20];
	struct ip4_view v;

	(void)state;
	memcpy(packet, example, 20);
	assert_int_equal(ip4_parse(packet, sizeof(packet), &v), WIRE_OK);
	assert_true(ip4_csum_ok(packet, v.hdr_bytes));
	assert_int_equal(v.total_bytes, 0x73);
	assert_int_equal(v.payload_bytes, 0x73 - 20);
	assert_ptr_equal(v.payload, packet + 20);
	assert_true(v.has_df && !v.has_mf);
	assert_int_equal(v.ttl, 64);
	assert_int_equal(v.proto, IP_PROTO_UDP);
	assert_int_equal(be32_to_cpu(v.src), 0xc0a80001);
	assert_int_equal(be32_to_cpu(v.dst), 0xc0a800c7);
	assert_false(ip4_is_fragment(&v));
	assert_int_equal(ip4_emit(buf, &v), 20);
	assert_memory_equal(buf, example, 20);
}

static void
any_flipped_bit_breaks_the_checksum(void **state)
{
	uint8_t buf[20];
	int bit;

	(void)state;
	for (bit = 0; bit < 160; bit++) {
		memcpy(buf, example, 20);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(ip4_csum_ok(buf, 20));
	}
}

static int
parse_with(int at, uint8_t value, size_t len)
{
	uint8_t packet[0x73] = { 0 };
	struct ip4_view v;

	memcpy(packet, example, 20);
	packet[at] = value;
	return ip4_parse(packet, len, &v);
}

static void
impossible_lengths_are_refused_by_name(void **state)
{
	(void)state;
	assert_int_equal(parse_with(0, 0x45, 19), WIRE_ERR_SHORT);
	assert_int_equal(parse_with(0, 0x55, 0x73), WIRE_ERR_VERSION);
	assert_int_equal(parse_with(0, 0x44, 0x73), WIRE_ERR_HLEN);
	assert_int_equal(parse_with(0, 0x4f, 59), WIRE_ERR_HLEN);
	assert_int_equal(parse_with(3, 19, 0x73), WIRE_ERR_LEN);
	assert_int_equal(parse_with(3, 0x74, 0x73), WIRE_ERR_LEN);
	assert_int_equal(parse_with(3, 20, 0x73), WIRE_OK);
}

static void
padding_behind_the_total_length_is_not_payload(void **state)
{
	uint8_t packet[46] = { 0 };
	struct ip4_view v;

	(void)state;
	memcpy(packet, example, 20);
	packet[3] = 25;
	assert_int_equal(ip4_parse(packet, sizeof(packet), &v), WIRE_OK);
	assert_int_equal(v.payload_bytes, 5);
}

static void
fragment_fields_survive_both_ways(void **state)
{
	struct ip4_view in = { .total_bytes = 28, .id = 0xbeef, .frag_offset_bytes = 65528,
		.has_mf = true, .tos = 0x2e, .ttl = 1, .proto = IP_PROTO_ICMP };
	uint8_t packet[28] = { 0 };
	struct ip4_view out;

	(void)state;
	ip4_emit(packet, &in);
	assert_int_equal(ip4_parse(packet, sizeof(packet), &out), WIRE_OK);
	assert_true(ip4_csum_ok(packet, 20));
	assert_true(ip4_is_fragment(&out));
	assert_int_equal(out.frag_offset_bytes, 65528);
	assert_true(out.has_mf && !out.has_df);
	assert_int_equal(out.id, 0xbeef);
	assert_int_equal(out.tos, 0x2e);
}

/* RFC 792: an error quotes the header and 8 bytes, so the total length passes what is there. */
static void
quote_gives_what_is_there(void **state)
{
	uint8_t packet[28] = { 0 };
	struct ip4_view v;

	(void)state;
	memcpy(packet, example, 20);
	assert_int_equal(ip4_parse(packet, sizeof(packet), &v), WIRE_ERR_LEN);
	assert_int_equal(ip4_parse_quote(packet, sizeof(packet), &v), WIRE_OK);
	assert_int_equal(v.payload_bytes, 8);
	assert_int_equal(v.total_bytes, 0x73);
	assert_int_equal(ip4_parse_quote(packet, 19, &v), WIRE_ERR_SHORT);
}

static void
options_are_found_up_to_the_end_marker(void **state)
{
	static const uint8_t opts[] = { 1, 148, 4, 0, 0, 7, 3, 4, 68, 4, 5, 0, 0, 131, 3, 4 };
	struct ip4_opts o;

	(void)state;
	assert_int_equal(ip4_opts_parse(opts, sizeof(opts), &o), WIRE_OK);
	assert_true(o.has_router_alert && o.has_record_route && o.has_timestamp);
	assert_false(o.has_source_route);
	assert_int_equal(ip4_opts_parse(opts + 13, 3, &o), WIRE_OK);
	assert_true(o.has_source_route);
	assert_false(o.has_router_alert);
}

static void
option_of_impossible_length_is_bad(void **state)
{
	struct ip4_opts o;

	(void)state;
	assert_int_equal(ip4_opts_parse((const uint8_t[]){ 7, 0, 0, 0 }, 4, &o), WIRE_ERR_BAD);
	assert_int_equal(ip4_opts_parse((const uint8_t[]){ 7, 1, 0, 0 }, 4, &o), WIRE_ERR_BAD);
	assert_int_equal(ip4_opts_parse((const uint8_t[]){ 7, 5, 0, 0 }, 4, &o), WIRE_ERR_BAD);
	assert_int_equal(ip4_opts_parse((const uint8_t[]){ 1, 1, 1, 7 }, 4, &o), WIRE_ERR_BAD);
	assert_int_equal(ip4_opts_parse(NULL, 0, &o), WIRE_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_header_parses_and_emits_alike),
		cmocka_unit_test(any_flipped_bit_breaks_the_checksum),
		cmocka_unit_test(impossible_lengths_are_refused_by_name),
		cmocka_unit_test(padding_behind_the_total_length_is_not_payload),
		cmocka_unit_test(fragment_fields_survive_both_ways),
		cmocka_unit_test(quote_gives_what_is_there),
		cmocka_unit_test(options_are_found_up_to_the_end_marker),
		cmocka_unit_test(option_of_impossible_length_is_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
