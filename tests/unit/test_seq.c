/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence numbers, moments and byte order: the header-only parts of base. */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "base/seq.h"
#include "base/time.h"

/* RFC 9293 3.4: comparisons hold across the wrap. */
static void
sequence_before_the_wrap_is_less_than_after(void **state)
{
	struct seq before = seq_of(0xfffffff0), after = seq_add(before, 0x20);

	(void)state;
	assert_int_equal(after.v, 0x10);
	assert_true(seq_lt(before, after));
	assert_true(seq_gt(after, before));
	assert_true(seq_leq(before, before));
	assert_int_equal(seq_diff(after, before), 0x20);
	assert_int_equal(seq_diff(before, after), -0x20);
	assert_true(seq_eq(seq_max(before, after), after));
	assert_true(seq_eq(seq_min(before, after), before));
	assert_true(seq_eq(seq_sub(after, 0x20), before));
}

/*
 * RFC 9293 3.4; case S16: the order depends on the distance alone, wherever in the circle it lies,
 * and turns round with the operands. Distances around half the circle, where another stack's helper
 * failed, are among them.
 */
static void
order_depends_on_the_distance_alone(void **state)
{
	static const uint32_t distances[] = { 1, 2, 511, 65535, 65536, 0x3fffffff, 0x40000000,
		0x7f000000, 0x7ffffffe, 0x7fffffff };
	struct rng r;
	unsigned i, k;

	(void)state;
	rng_init(&r, 16);
	for (i = 0; i < 20000; i++) {
		struct seq a = seq_of(i % 4 == 0 ? (uint32_t)(i - 10000) : (uint32_t)rng_u64(&r));
		uint32_t d = 1 + (uint32_t)(rng_u64(&r) % 0x7fffffff);

		for (k = 0; k <= ARRAY_LEN(distances); k++) {
			uint32_t n = k < ARRAY_LEN(distances) ? distances[k] : d;
			struct seq b = seq_add(a, n);

			assert_true(seq_lt(a, b) && seq_leq(a, b) && seq_gt(b, a) && seq_geq(b, a));
			assert_false(seq_lt(b, a) || seq_leq(b, a) || seq_gt(a, b) ||
			    seq_geq(a, b) || seq_eq(a, b));
			assert_int_equal(seq_diff(b, a), (int32_t)n);
			assert_int_equal(seq_diff(a, b), -(int32_t)n);
			assert_true(seq_eq(seq_sub(b, n), a));
			assert_true(seq_eq(seq_max(a, b), b) && seq_eq(seq_max(b, a), b));
			assert_true(seq_eq(seq_min(a, b), a) && seq_eq(seq_min(b, a), a));
		}
		assert_true(seq_leq(a, a) && seq_geq(a, a) && seq_eq(a, a));
		assert_false(seq_lt(a, a) || seq_gt(a, a));
	}
}

/* A large window added to a number: what is in it is inside wherever it begins */
static void
large_window_holds_its_numbers_at_every_base(void **state)
{
	const uint32_t wnd = UINT32_C(1) << 30;	/* RFC 7323 2.3's largest */
	struct rng r;
	unsigned i;

	(void)state;
	rng_init(&r, 17);
	for (i = 0; i < 100000; i++) {
		struct seq nxt = seq_of((uint32_t)rng_u64(&r)), edge = seq_add(nxt, wnd);
		struct seq in = seq_add(nxt, (uint32_t)(rng_u64(&r) % wnd));
		struct seq out = seq_add(edge, (uint32_t)(rng_u64(&r) % wnd));

		assert_true(seq_geq(in, nxt) && seq_lt(in, edge));
		assert_true(seq_geq(out, edge) && seq_gt(out, nxt));
		assert_true(seq_lt(seq_sub(nxt, 1), nxt));
	}
}

static void
never_is_after_everything_and_sums_saturate(void **state)
{
	struct time late = { UINT64_MAX - 5 };

	(void)state;
	assert_true(time_before(late, TIME_NEVER));
	assert_true(time_is_never(time_add_us(late, 100)));
	assert_false(time_reached(late, TIME_NEVER));
	assert_int_equal(time_since_us(TIME_ZERO, late), 0);
	assert_int_equal(time_since_us((struct time){ 7 }, (struct time){ 3 }), 4);
}

static void
network_order_is_most_significant_byte_first(void **state)
{
	uint8_t bytes[5] = { 0, 0x12, 0x34, 0x56, 0x78 };

	(void)state;
	assert_int_equal(load_be16(bytes + 1), 0x1234);
	assert_int_equal(load_be32(bytes + 1), 0x12345678);
	store_be16(bytes, 0xabcd);
	assert_memory_equal(bytes, ((const uint8_t[]){ 0xab, 0xcd, 0x34 }), 3);
	store_be32(bytes + 1, 0x01020304);
	assert_memory_equal(bytes, ((const uint8_t[]){ 0xab, 1, 2, 3, 4 }), 5);
	assert_int_equal(be16_to_cpu(be16_from_cpu(0x1234)), 0x1234);
	assert_int_equal(be32_to_cpu(be32_from_cpu(0x12345678)), 0x12345678);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_before_the_wrap_is_less_than_after),
		cmocka_unit_test(order_depends_on_the_distance_alone),
		cmocka_unit_test(large_window_holds_its_numbers_at_every_base),
		cmocka_unit_test(never_is_after_everything_and_sums_saturate),
		cmocka_unit_test(network_order_is_most_significant_byte_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
