/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and yes/no words of the configuration: suffixes, ranges, and what is not a number. */
#include <errno.h>

#include "support/cmocka_all.h"

#include "runtime/numtext.h"

static void
suffix_multiplies_by_powers_of_1024(void **state)
{
	int64_t v;

	(void)state;
	assert_int_equal(numtext_parse("64k", &v), 0);
	assert_int_equal(v, 65536);
	assert_int_equal(numtext_parse("3M", &v), 0);
	assert_int_equal(v, 3 << 20);
	assert_int_equal(numtext_parse("-1", &v), 0);
	assert_int_equal(v, -1);
	assert_int_equal(numtext_parse("0x40", &v), 0);
	assert_int_equal(v, 64);
}

static void
text_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = { "", " 1", "1 ", "k", "0x", "12q", "1kk", "--1", "+1",
		"-", "1.5" };
	int64_t v = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(numtext_parse(bad[i], &v), -EINVAL);
	assert_int_equal(v, 77);
}

static void
number_past_the_type_is_out_of_range(void **state)
{
	uint64_t u = 0;
	int64_t v = 0;

	(void)state;
	assert_int_equal(numtext_parse("9223372036854775807", &v), 0);
	assert_int_equal(numtext_parse("9223372036854775808", &v), -ERANGE);
	assert_int_equal(numtext_parse("9007199254740992k", &v), -ERANGE);
	assert_int_equal(numtext_parse_u64("18446744073709551615", &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(numtext_parse_u64("18446744073709551616", &u), -ERANGE);
	assert_int_equal(numtext_parse_u64("17179869184g", &u), -ERANGE);
	assert_int_equal(numtext_parse_u64("-1", &u), -EINVAL);
}

static void
words_for_yes_and_no_are_understood_in_any_case(void **state)
{
	bool v = false;

	(void)state;
	assert_int_equal(numtext_parse_bool("Yes", &v), 0);
	assert_true(v);
	assert_int_equal(numtext_parse_bool("off", &v), 0);
	assert_false(v);
	assert_int_equal(numtext_parse_bool("maybe", &v), -EINVAL);
	assert_int_equal(numtext_parse_bool("2", &v), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suffix_multiplies_by_powers_of_1024),
		cmocka_unit_test(text_that_is_no_number_is_refused),
		cmocka_unit_test(number_past_the_type_is_out_of_range),
		cmocka_unit_test(words_for_yes_and_no_are_understood_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
