/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of knobs: defaults, order, what may be set and what the refusal says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "runtime/stack.h"

static _Atomic int64_t msl_ms, friends, initport;
static const char *const initport_names[] = { "near", "random", "zero", NULL };

static const struct knob knobs[] = {
	{ .name = "net.b.msl_ms",
	    .text = "t",
	    .type = KNOB_INT,
	    .dflt = 30000,
	    .min = 1,
	    .max = 70000,
	    .value = &msl_ms },
	{ .name = "net.c.friends",
	    .text = "t",
	    .type = KNOB_BOOL,
	    .dflt = 1,
	    .max = 1,
	    .value = &friends },
	{ .name = "net.a.initport",
	    .text = "t",
	    .type = KNOB_ENUM,
	    .max = 2,
	    .names = initport_names,
	    .value = &initport },
};

static int
make(void **state)
{
	struct darter_stack *s = aligned_alloc(CACHELINE_BYTES,
	    (sizeof(*s) + CACHELINE_BYTES - 1) / CACHELINE_BYTES * CACHELINE_BYTES);

	memset(s, 0, sizeof(*s));
	*state = s;
	return knob_register(s, knobs, 3);
}

static int
unmake(void **state)
{
	knob_fini(*state);
	free(*state);
	return 0;
}

static void
registered_knob_has_its_default_and_its_place_by_name(void **state)
{
	const struct darter_stack *s = *state;

	assert_int_equal(knob_get(&msl_ms), 30000);
	assert_string_equal(s->knobs.first->name, "net.a.initport");
	assert_string_equal(s->knobs.first->next->name, "net.b.msl_ms");
	assert_string_equal(s->knobs.first->next->next->name, "net.c.friends");
	assert_null(s->knobs.first->next->next->next);
	assert_non_null(knob_find(s, "net.c.friends"));
	assert_null(knob_find(s, "net.c.friend"));
	assert_null(knob_find(s, "net.zz"));
}

static void
second_knob_of_a_name_is_refused(void **state)
{
	assert_int_equal(knob_register(*state, knobs, 1), -EEXIST);
}

static void
value_in_range_is_stored(void **state)
{
	char err[128], buf[32];

	assert_int_equal(knob_set(*state, "net.b.msl_ms", "60k", err, sizeof(err)), 0);
	assert_int_equal(knob_get(&msl_ms), 61440);
	assert_int_equal(knob_set(*state, "net.c.friends", "off", err, sizeof(err)), 0);
	assert_int_equal(knob_get(&friends), 0);
	assert_int_equal(knob_set(*state, "net.a.initport", "random", err, sizeof(err)), 0);
	assert_int_equal(knob_get(&initport), 1);
	assert_string_equal(
	    knob_format(knob_find(*state, "net.a.initport"), buf, sizeof(buf)), "random");
	assert_string_equal(
	    knob_format(knob_find(*state, "net.b.msl_ms"), buf, sizeof(buf)), "61440");
}

static void
value_out_of_range_is_refused_with_the_range_and_kept(void **state)
{
	char err[128] = "";

	assert_int_equal(knob_set(*state, "net.b.msl_ms", "0", err, sizeof(err)), -ERANGE);
	assert_non_null(strstr(err, "from 1 to 70000"));
	assert_int_equal(knob_set(*state, "net.b.msl_ms", "70001", err, sizeof(err)), -ERANGE);
	assert_int_equal(knob_set(*state, "net.b.msl_ms", "soon", err, sizeof(err)), -EINVAL);
	assert_int_equal(knob_get(&msl_ms), 30000);
}

static void
wrong_word_is_refused_with_the_words_there_are(void **state)
{
	char err[128] = "";

	assert_int_equal(knob_set(*state, "net.a.initport", "far", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "near, random or zero"));
	assert_non_null(strstr(err, "\"far\""));
	assert_int_equal(knob_set(*state, "net.c.friends", "2", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "yes or no"));
}

static void
unknown_name_is_refused_with_the_nearest(void **state)
{
	char err[128] = "";

	assert_int_equal(knob_set(*state, "net.b.msl", "1", err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "net.b.msl_ms"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    registered_knob_has_its_default_and_its_place_by_name, make, unmake),
		cmocka_unit_test_setup_teardown(second_knob_of_a_name_is_refused, make, unmake),
		cmocka_unit_test_setup_teardown(value_in_range_is_stored, make, unmake),
		cmocka_unit_test_setup_teardown(
		    value_out_of_range_is_refused_with_the_range_and_kept, make, unmake),
		cmocka_unit_test_setup_teardown(
		    wrong_word_is_refused_with_the_words_there_are, make, unmake),
		cmocka_unit_test_setup_teardown(
		    unknown_name_is_refused_with_the_nearest, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
