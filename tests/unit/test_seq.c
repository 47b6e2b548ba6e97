/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence numbers, moments and byte order: the header-only parts of base. */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/bytes.h"
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
		cmocka_unit_test(never_is_after_everything_and_sums_saturate),
		cmocka_unit_test(network_order_is_most_significant_byte_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
