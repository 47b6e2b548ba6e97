/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/port_bits: against a plain array, for sizes around the words' and the summary's. */
#include "support/cmocka_all.h"

#include "base/rng.h"
#include "transport/port_priv.h"

static const uint32_t sizes[] = { 1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 28232, 65535 };

static uint64_t words[PORT_BITS_ALL(65535)];
static uint8_t member[65535];

static uint32_t
next_by_hand(uint32_t n, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (member[(from + i) % n])
			return (from + i) % n;
	return PORT_BITS_NONE;
}

static void
members_change_then_count_and_next_are_those_of_an_array(void **state)
{
	struct port_bits b;
	struct rng r;
	uint32_t i, k, n, at, count;

	(void)state;
	rng_init(&r, 7);
	for (k = 0; k < ARRAY_LEN(sizes); k++) {
		n = sizes[k];
		count = 0;
		memset(member, 0, sizeof(member));
		port_bits_init(&b, words, n, false);
		assert_int_equal(port_bits_next(&b, 0), PORT_BITS_NONE);
		for (i = 0; i < 3000; i++) {
			at = rng_below(&r, n);
			count += (uint32_t)!member[at];
			member[at] = 1;
			port_bits_set(&b, at);
			if (rng_below(&r, 8) != 0) {
				at = rng_below(&r, n);
				count -= member[at];
				member[at] = 0;
				port_bits_clear(&b, at);
			}
			assert_int_equal(b.count, count);
			at = rng_below(&r, n);
			assert_int_equal(port_bits_next(&b, at), next_by_hand(n, at));
			assert_int_equal(port_bits_has(&b, at), member[at]);
		}
	}
}

static void
set_is_full_then_each_member_is_found_once_until_it_is_empty(void **state)
{
	struct port_bits b;
	uint32_t i, k, at;

	(void)state;
	for (k = 0; k < ARRAY_LEN(sizes); k++) {
		memset(member, 0, sizeof(member));
		port_bits_init(&b, words, sizes[k], true);
		assert_int_equal(b.count, sizes[k]);
		for (i = 0, at = sizes[k] / 2; i < sizes[k]; i++) {
			at = port_bits_next(&b, at);
			assert_true(at < sizes[k] && !member[at]);
			member[at] = 1;
			port_bits_clear(&b, at);
		}
		assert_int_equal(port_bits_next(&b, 0), PORT_BITS_NONE);
		assert_int_equal(b.count, 0);
	}
}

static void
sets_are_joined_then_members_of_both_count_once(void **state)
{
	struct port_bits b;
	uint64_t more[PORT_BITS_WORDS(300)] = { 5, 0, 0, 0, 1 };

	(void)state;
	port_bits_init(&b, words, 300, false);
	port_bits_set(&b, 2);
	port_bits_set(&b, 100);
	port_bits_join(&b, more);
	assert_int_equal(b.count, 4);
	assert_int_equal(port_bits_next(&b, 0), 0);
	assert_int_equal(port_bits_next(&b, 1), 2);
	assert_int_equal(port_bits_next(&b, 101), 256);
	assert_int_equal(port_bits_next(&b, 257), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_change_then_count_and_next_are_those_of_an_array),
		cmocka_unit_test(set_is_full_then_each_member_is_found_once_until_it_is_empty),
		cmocka_unit_test(sets_are_joined_then_members_of_both_count_once),
	};

	return cmocka_run_group_tests_name("port_bits", tests, NULL, NULL);
}
