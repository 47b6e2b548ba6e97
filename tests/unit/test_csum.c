/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet checksum: the example of RFC 1071 3, equality with a word-by-word reference over many
 * lengths and alignments, chaining, pseudo-headers, incremental update.
 */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/compiler.h"
#include "base/csum.h"
#include "base/rng.h"

/* 16-bit words in network order, as RFC 1071 1 defines it; returns the complement, host order. */
static uint16_t
reference(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void
fill(uint8_t *p, size_t len, uint64_t seed)
{
	struct rng r;
	size_t i;

	rng_init(&r, seed);
	for (i = 0; i < len; i++)
		p[i] = (uint8_t)rng_u32(&r);
}

static uint16_t
host_order(uint16_t raw)
{
	return load_be16(&raw);
}

static void
rfc1071_example_sums_to_ddf2(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	(void)state;
	assert_int_equal(host_order(csum_fold_raw(csum_partial(bytes, 8, 0))), 0xddf2);
	assert_int_equal(host_order(csum_fold(csum_partial(bytes, 8, 0))), 0x220d);
}

static void
every_length_and_alignment_equals_the_reference(void **state)
{
	uint8_t data[320], copy[320];
	size_t len, at;
	uint16_t want;

	(void)state;
	fill(data, sizeof(data), 1);
	for (at = 0; at < 8; at++) {
		for (len = 0; len <= 300; len++) {
			want = reference(data + at, len);
			assert_int_equal(host_order(csum_fold(csum_partial(data + at, len, 0))),
			    want);
			memset(copy, 0x5a, sizeof(copy));
			assert_int_equal(host_order(csum_fold(csum_partial_copy(copy + 7 - at,
			    data + at, len, 0))), want);
			assert_memory_equal(copy + 7 - at, data + at, len);
			assert_int_equal(copy[7 - at + len], 0x5a);
		}
	}
}

static void
all_ones_do_not_overflow(void **state)
{
	static uint8_t data[65536];

	(void)state;
	memset(data, 0xff, sizeof(data));
	assert_int_equal(host_order(csum_fold(csum_partial(data, 65535, UINT32_MAX))), 0x00ff);
}

static void
blocks_at_even_and_odd_offsets_append_to_the_whole(void **state)
{
	uint8_t data[200];
	uint32_t sum;
	size_t cut;

	(void)state;
	fill(data, sizeof(data), 2);
	for (cut = 0; cut <= sizeof(data); cut++) {
		sum = csum_append(csum_partial(data, cut, 0),
		    csum_partial(data + cut, sizeof(data) - cut, 0), cut);
		assert_int_equal(host_order(csum_fold(sum)), reference(data, sizeof(data)));
	}
}

static void
ipv4_pseudo_header_equals_its_bytes(void **state)
{
	static const uint8_t bytes[12] = { 10, 1, 2, 3, 192, 168, 4, 5, 0, 6, 0x12, 0x34 };
	struct ipaddr src = ipaddr_v4_cpu(0x0a010203), dst = ipaddr_v4_cpu(0xc0a80405);

	(void)state;
	assert_int_equal(host_order(csum_fold(csum_pseudo(&src, &dst, 6, 0x1234))),
	    reference(bytes, sizeof(bytes)));
}

static void
ipv6_pseudo_header_equals_its_bytes(void **state)
{
	uint8_t bytes[40];
	struct ipaddr src, dst;

	(void)state;
	fill(bytes, 32, 3);
	memcpy(src.b, bytes, 16);
	memcpy(dst.b, bytes + 16, 16);
	memcpy(bytes + 32, (const uint8_t[8]){ 0, 1, 0x86, 0xa0, 0, 0, 0, 17 }, 8);
	assert_int_equal(host_order(csum_fold(csum_pseudo(&src, &dst, 17, 100000))),
	    reference(bytes, sizeof(bytes)));
}

static void
header_with_its_checksum_folds_to_zero(void **state)
{
	uint8_t data[40];
	uint16_t csum;

	(void)state;
	fill(data, sizeof(data), 4);
	memset(data + 10, 0, 2);
	csum = csum_fold(csum_partial(data, sizeof(data), 0));
	memcpy(data + 10, &csum, 2);
	assert_int_equal(csum_fold(csum_partial(data, sizeof(data), 0)), 0);
}

/* RFC 1624 4: the example where the older equation gave 0xffff instead of 0. */
static void
rfc1624_example_gives_zero(void **state)
{
	uint16_t old_csum, old_word, new_word;

	(void)state;
	store_be16(&old_csum, 0xdd2f);
	store_be16(&old_word, 0x5555);
	store_be16(&new_word, 0x3285);
	assert_int_equal(csum_update16(old_csum, old_word, new_word), 0x0000);
}

static void
incremental_update_equals_a_new_sum(void **state)
{
	uint8_t data[64];
	uint32_t old_word, new_word;
	uint16_t csum;
	struct rng r;
	int i;

	(void)state;
	fill(data, sizeof(data), 5);
	rng_init(&r, 6);
	for (i = 0; i < 1000; i++) {
		size_t at = rng_below(&r, 31) * 2;

		csum = csum_fold(csum_partial(data, sizeof(data), 0));
		memcpy(&old_word, data + at, 4);
		new_word = rng_u32(&r);
		memcpy(data + at, &new_word, 4);
		csum = csum_update32(csum, old_word, new_word);
		assert_int_equal(csum, csum_fold(csum_partial(data, sizeof(data), 0)));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc1071_example_sums_to_ddf2),
		cmocka_unit_test(every_length_and_alignment_equals_the_reference),
		cmocka_unit_test(all_ones_do_not_overflow),
		cmocka_unit_test(blocks_at_even_and_odd_offsets_append_to_the_whole),
		cmocka_unit_test(ipv4_pseudo_header_equals_its_bytes),
		cmocka_unit_test(ipv6_pseudo_header_equals_its_bytes),
		cmocka_unit_test(header_with_its_checksum_folds_to_zero),
		cmocka_unit_test(rfc1624_example_gives_zero),
		cmocka_unit_test(incremental_update_equals_a_new_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
