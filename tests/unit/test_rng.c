/* SPDX-License-Identifier: BSD-2-Clause */
/* The seeded generator: a known sequence, repeatability, and rng_below()'s range and evenness. */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/rng.h"

/*
 * splitmix64 from 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
 */
static void
seed_zero_expands_as_splitmix64_is_published(void **state)
{
	struct rng r;

	(void)state;
	rng_init(&r, 0);
	assert_int_equal(r.s[0], UINT64_C(0xe220a8397b1dcdaf));
	assert_int_equal(r.s[1], UINT64_C(0x6e789e6aa1b965f4));
	assert_int_equal(r.s[2], UINT64_C(0x06c45d188009454f));
	assert_int_equal(r.s[3], UINT64_C(0xf88bb8a8724c81ec));
}

/* State 1, 2, 3, 4: the sequence other implementations of xoshiro256** are tested with. */
static void
known_state_gives_the_known_sequence(void **state)
{
	static const uint64_t want[] = {
		11520, 0, 1509978240, UINT64_C(1215971899390074240),
		UINT64_C(1216172134540287360), UINT64_C(607988272756665600),
	};
	struct rng r = { { 1, 2, 3, 4 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(rng_u64(&r), want[i]);
}

static void
equal_seeds_repeat_and_others_differ(void **state)
{
	struct rng a, b, c;
	int i, same = 0;

	(void)state;
	rng_init(&a, 42);
	rng_init(&b, 42);
	rng_init(&c, 43);
	for (i = 0; i < 100; i++) {
		uint64_t v = rng_u64(&a);

		assert_int_equal(v, rng_u64(&b));
		same += v == rng_u64(&c);
	}
	assert_int_equal(same, 0);
}

static void
below_stays_in_range_and_is_even(void **state)
{
	unsigned count[7] = { 0 };
	struct rng r;
	int i;

	(void)state;
	rng_init(&r, 1);
	for (i = 0; i < 70000; i++) {
		uint32_t v = rng_below(&r, 7);

		assert_true(v < 7);
		count[v]++;
	}
	/* 10,000 each with a deviation of 93: five of them leave no chance to a fair one */
	for (i = 0; i < 7; i++)
		assert_in_range(count[i], 9500, 10500);
}

/* With n just over half the range, a careless multiply would give some values twice as often. */
static void
below_a_large_bound_is_unbiased(void **state)
{
	const uint32_t n = UINT32_C(3) << 30;
	unsigned low_third = 0;
	struct rng r;
	int i;

	(void)state;
	rng_init(&r, 2);
	for (i = 0; i < 90000; i++)
		low_third += rng_below(&r, n) < n / 3;
	assert_in_range(low_third, 29200, 30800);
}

static void
below_zero_and_one_are_zero(void **state)
{
	struct rng r;

	(void)state;
	rng_init(&r, 3);
	assert_int_equal(rng_below(&r, 0), 0);
	assert_int_equal(rng_below(&r, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seed_zero_expands_as_splitmix64_is_published),
		cmocka_unit_test(known_state_gives_the_known_sequence),
		cmocka_unit_test(equal_seeds_repeat_and_others_differ),
		cmocka_unit_test(below_stays_in_range_and_is_even),
		cmocka_unit_test(below_a_large_bound_is_unbiased),
		cmocka_unit_test(below_zero_and_one_are_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
