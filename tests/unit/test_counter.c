/* SPDX-License-Identifier: BSD-2-Clause */
/* The catalogue of counters: names well-formed and unique, kinds agreeing with names. */
#include <ctype.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "base/counter.h"

static void
names_are_short_lower_case_and_unique(void **state)
{
	unsigned i;
	const char *c;

	(void)state;
	for (i = 0; i < CTR_MAX; i++) {
		assert_in_range(strlen(counter_name(i)), 1, 31);
		for (c = counter_name(i); *c != '\0'; c++)
			assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
			    *c == '_');
		/* finds the first of that name: another index would be a second one */
		assert_int_equal(counter_find(counter_name(i)), i);
	}
}

static void
sentences_are_written_without_full_stop(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < CTR_MAX; i++) {
		const char *text = counter_text(i);

		assert_true(strlen(text) >= 8);
		assert_int_not_equal(text[strlen(text) - 1], '.');
	}
}

static void
drops_and_only_drops_are_named_so(void **state)
{
	unsigned i, drops = 0;

	(void)state;
	for (i = 0; i < CTR_MAX; i++) {
		assert_int_equal(counter_is_drop(i), strncmp(counter_name(i), "drop_", 5) == 0);
		drops += counter_is_drop(i);
	}
	assert_true(drops > 50);
}

static void
index_out_of_range_is_harmless(void **state)
{
	(void)state;
	assert_string_equal(counter_name(CTR_MAX), "?");
	assert_string_equal(counter_text(UINT32_MAX), "?");
	assert_false(counter_is_drop(CTR_MAX));
	assert_int_equal(counter_find("no_such_counter"), -1);
	assert_int_equal(counter_kind_of(CTR_sockets), COUNTER_GAUGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_short_lower_case_and_unique),
		cmocka_unit_test(sentences_are_written_without_full_stop),
		cmocka_unit_test(drops_and_only_drops_are_named_so),
		cmocka_unit_test(index_out_of_range_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
