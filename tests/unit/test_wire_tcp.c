/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP headers and options: bytes as Linux sends them, hostile lengths, every combination of options
 * both ways.
 */
#include <errno.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "base/rng.h"
#include "wire/tcp.h"

static void
header_survives_both_ways(void **state)
{
	struct tcp_view in = { .sport = 80, .dport = 40000, .seq = 0x01020304, .ack = 0xfffefdfc,
		.wnd = 65535, .urg = 9, .csum_raw = 0x3412, .flags = TH_ACK | TH_PUSH,
		.hdr_bytes = 24 }, out;
	uint8_t buf[28] = { 0 };

	(void)state;
	assert_int_equal(tcp_emit(buf, &in), 20);
	assert_memory_equal(buf, "\x00\x50\x9c\x40\x01\x02\x03\x04\xff\xfe\xfd\xfc\x60\x18"
	    "\xff\xff\x12\x34\x00\x09", 20);
	assert_int_equal(tcp_parse(buf, sizeof(buf), &out), WIRE_OK);
	assert_int_equal(out.sport, 80);
	assert_int_equal(out.dport, 40000);
	assert_int_equal(out.seq, 0x01020304);
	assert_int_equal(out.ack, 0xfffefdfc);
	assert_int_equal(out.flags, TH_ACK | TH_PUSH);
	assert_int_equal(out.wnd, 65535);
	assert_int_equal(out.urg, 9);
	assert_int_equal(out.csum_raw, 0x3412);
	assert_int_equal(out.opts_bytes, 4);
	assert_ptr_equal(out.payload, buf + 24);
	assert_int_equal(out.payload_bytes, 4);
}

static void
impossible_header_length_is_refused(void **state)
{
	uint8_t buf[60] = { 0 };
	struct tcp_view v;

	(void)state;
	assert_int_equal(tcp_parse(buf, 19, &v), WIRE_ERR_SHORT);
	buf[12] = 0x40;
	assert_int_equal(tcp_parse(buf, 60, &v), WIRE_ERR_HLEN);
	buf[12] = 0xf0;
	assert_int_equal(tcp_parse(buf, 59, &v), WIRE_ERR_HLEN);
	assert_int_equal(tcp_parse(buf, 60, &v), WIRE_OK);
	assert_int_equal(v.payload_bytes, 0);
}

static void
syn_options_have_linux_order(void **state)
{
	struct tcp_opts o = { .has_mss = true, .mss = 1460, .sack_ok = true, .has_ts = true,
		.tsval = 0x01020304, .has_wscale = true, .wscale = 7 };
	uint8_t buf[TCP_OPTS_MAX_BYTES];

	(void)state;
	assert_int_equal(tcp_opts_emit(buf, &o, true), 20);
	assert_memory_equal(buf, "\x02\x04\x05\xb4\x04\x02\x08\x0a\x01\x02\x03\x04\0\0\0\0"
	    "\x01\x03\x03\x07", 20);
	o.has_ts = false;
	assert_int_equal(tcp_opts_emit(buf, &o, true), 12);
	assert_memory_equal(buf, "\x02\x04\x05\xb4\x01\x01\x04\x02\x01\x03\x03\x07", 12);
	o.sack_ok = false;
	assert_int_equal(tcp_opts_emit(buf, &o, true), 8);
	assert_memory_equal(buf, "\x02\x04\x05\xb4\x01\x03\x03\x07", 8);
}

static void
data_options_are_timestamp_then_sack(void **state)
{
	struct tcp_opts o = { .has_ts = true, .tsval = 1, .tsecr = 2, .sack_count = 1,
		.sack = { { 3, 4 } } };
	uint8_t buf[TCP_OPTS_MAX_BYTES];

	(void)state;
	assert_int_equal(tcp_opts_emit(buf, &o, false), 24);
	assert_memory_equal(buf, "\x01\x01\x08\x0a\0\0\0\x01\0\0\0\x02"
	    "\x01\x01\x05\x0a\0\0\0\x03\0\0\0\x04", 24);
}

/* RFC 2018 3: four blocks fill the 40 bytes, three fit beside timestamps. */
static void
sack_blocks_are_cut_to_the_room(void **state)
{
	struct tcp_opts o = { .sack_count = 4, .sack = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } } };
	uint8_t buf[TCP_OPTS_MAX_BYTES];
	struct tcp_opts back;

	(void)state;
	assert_int_equal(tcp_opts_emit(buf, &o, false), 36);
	assert_int_equal(tcp_opts_parse(buf, 36, false, &back), 0);
	assert_int_equal(back.sack_count, 4);
	assert_int_equal(back.sack[3].end, 8);
	o.has_ts = true;
	assert_int_equal(tcp_opts_emit(buf, &o, false), 40);
	assert_int_equal(tcp_opts_parse(buf, 40, false, &back), 0);
	assert_int_equal(back.sack_count, 3);
	assert_int_equal(back.sack[2].start, 5);
}

static void
every_combination_on_a_syn_parses_back(void **state)
{
	uint8_t buf[TCP_OPTS_MAX_BYTES];
	struct tcp_opts in, out;
	size_t len;
	int i;

	(void)state;
	for (i = 0; i < 16; i++) {
		memset(&in, 0, sizeof(in));
		in.has_mss = i & 1;
		in.has_wscale = i & 2;
		in.sack_ok = i & 4;
		in.has_ts = i & 8;
		in.mss = in.has_mss ? 536 : 0;
		in.wscale = in.has_wscale ? 14 : 0;
		in.tsval = in.has_ts ? 0xdeadbeef : 0;
		len = tcp_opts_emit(buf, &in, true);
		assert_int_equal(len % 4, 0);
		assert_int_equal(tcp_opts_parse(buf, len, true, &out), 0);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

/* RFC 7323 2.3 */
static void
shift_over_14_is_taken_as_14(void **state)
{
	struct tcp_opts o;

	(void)state;
	assert_int_equal(tcp_opts_parse((const uint8_t[]){ 3, 3, 255 }, 3, true, &o), 0);
	assert_true(o.has_wscale);
	assert_int_equal(o.wscale, 14);
}

/* RFC 7323 2.2: the shift count in a segment without SYN is ignored; likewise the others. */
static void
syn_options_off_a_syn_are_ignored(void **state)
{
	static const uint8_t opts[] = { 2, 4, 5, 0xb4, 4, 2, 3, 3, 7, 0 };
	struct tcp_opts o;

	(void)state;
	assert_int_equal(tcp_opts_parse(opts, sizeof(opts), false, &o), 0);
	assert_false(o.has_mss || o.has_wscale || o.sack_ok);
}

static void
sack_blocks_on_a_syn_are_ignored(void **state)
{
	static const uint8_t opts[] = { 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0 };
	struct tcp_opts o;

	(void)state;
	assert_int_equal(tcp_opts_parse(opts, sizeof(opts), true, &o), 0);
	assert_int_equal(o.sack_count, 0);
	assert_int_equal(tcp_opts_parse(opts, sizeof(opts), false, &o), 0);
	assert_int_equal(o.sack_count, 1);
}

/* RFC 9293 3.1, MUST-7: illegal lengths, zero among them, must be survived. */
static void
illegal_length_ends_the_walk_and_keeps_what_came(void **state)
{
	static const uint8_t bad[][4] = {
		{ 8, 0, 0, 0 }, { 8, 1, 0, 0 }, { 8, 10, 0, 0 }, { 99, 5, 0, 0 }, { 1, 1, 1, 8 },
	};
	uint8_t opts[8] = { 2, 4, 5, 0xb4 };
	struct tcp_opts o;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		memcpy(opts + 4, bad[i], 4);
		assert_int_equal(tcp_opts_parse(opts, sizeof(opts), true, &o), -EINVAL);
		assert_true(o.has_mss);
		assert_int_equal(o.mss, 1460);
		assert_false(o.has_ts);
	}
}

static void
unknown_and_wrongly_sized_options_are_skipped(void **state)
{
	static const uint8_t opts[] = {
		254, 6, 1, 2, 3, 4,		/* unknown */
		2, 3, 5,			/* an MSS of one byte */
		4, 3, 0,			/* SACK-permitted with a byte too many */
		3, 3, 5,			/* a good one */
		0, 8, 10, 1, 1,			/* behind the end */
	};
	struct tcp_opts o;

	(void)state;
	assert_int_equal(tcp_opts_parse(opts, sizeof(opts), true, &o), 0);
	assert_false(o.has_mss || o.sack_ok || o.has_ts);
	assert_true(o.has_wscale);
	assert_int_equal(o.wscale, 5);
}

static void
sack_of_broken_size_is_skipped(void **state)
{
	static const uint8_t nine[] = { 5, 11, 0, 0, 0, 1, 0, 0, 0, 2, 9, 0 };
	static const uint8_t five_blocks[42] = { 5, 42 };
	struct tcp_opts o;

	(void)state;
	assert_int_equal(tcp_opts_parse(nine, sizeof(nine), false, &o), 0);
	assert_int_equal(o.sack_count, 0);
	assert_int_equal(tcp_opts_parse(five_blocks, sizeof(five_blocks), false, &o), 0);
	assert_int_equal(o.sack_count, 0);
	assert_int_equal(tcp_opts_parse((const uint8_t[]){ 5, 2 }, 2, false, &o), 0);
	assert_int_equal(o.sack_count, 0);
}

/* Case S13 n: the field ends where the array ends, so that a sanitizer sees a byte read past it */
static void
random_options_decode_within_their_ranges(void **state)
{
	uint8_t buf[TCP_OPTS_MAX_BYTES], *opts;
	struct tcp_opts o;
	struct rng r;
	size_t len, k;
	int i;

	(void)state;
	rng_init(&r, 9);
	for (i = 0; i < 100000; i++) {
		len = rng_below(&r, sizeof(buf) + 1);
		opts = buf + sizeof(buf) - len;
		for (k = 0; k < len; k++)
			opts[k] = (uint8_t)rng_below(&r, rng_below(&r, 4) ? 12 : 256);
		tcp_opts_parse(opts, len, i & 1, &o);
		assert_true(o.wscale <= TCP_WSCALE_MAX);
		assert_true(o.sack_count <= TCP_SACK_MAX);
	}
}

static void
flags_print_as_tcpdump_has_them(void **state)
{
	char buf[10];

	(void)state;
	assert_string_equal(tcp_flags_format(TH_SYN, buf, sizeof(buf)), "S");
	assert_string_equal(tcp_flags_format(TH_SYN | TH_ACK, buf, sizeof(buf)), "S.");
	assert_string_equal(tcp_flags_format(TH_FIN | TH_PUSH | TH_ACK, buf, sizeof(buf)), "FP.");
	assert_string_equal(tcp_flags_format(0xff, buf, sizeof(buf)), "FSRP.UEW");
	assert_string_equal(tcp_flags_format(0xff, buf, 3), "FS");
	assert_string_equal(tcp_flags_format(0, buf, sizeof(buf)), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_survives_both_ways),
		cmocka_unit_test(impossible_header_length_is_refused),
		cmocka_unit_test(syn_options_have_linux_order),
		cmocka_unit_test(data_options_are_timestamp_then_sack),
		cmocka_unit_test(sack_blocks_are_cut_to_the_room),
		cmocka_unit_test(every_combination_on_a_syn_parses_back),
		cmocka_unit_test(shift_over_14_is_taken_as_14),
		cmocka_unit_test(syn_options_off_a_syn_are_ignored),
		cmocka_unit_test(sack_blocks_on_a_syn_are_ignored),
		cmocka_unit_test(illegal_length_ends_the_walk_and_keeps_what_came),
		cmocka_unit_test(unknown_and_wrongly_sized_options_are_skipped),
		cmocka_unit_test(sack_of_broken_size_is_skipped),
		cmocka_unit_test(random_options_decode_within_their_ranges),
		cmocka_unit_test(flags_print_as_tcpdump_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
