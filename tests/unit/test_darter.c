/* SPDX-License-Identifier: BSD-2-Clause */
/* api/darter.c: knobs, addresses and routes of a running stack, and what each call refuses. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <darter/darter.h>
#include <darter/stats.h>

#include "base/compiler.h"

static struct darter_stack *the_stack;

static int
setup(void **state)
{
	static const char *const over[] = {
		"stack.memory=heap", "stack.packets=512", "stack.ring_memory=16m",
		"port.eth.device=pair:darter", "port.eth.addr=10.7.0.1/24", NULL,
	};
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	char err[DARTER_ERR_MAX];

	(void)state;
	the_stack = darter_open(&o, err, sizeof(err));
	if (the_stack == NULL)
		fail_msg("%s", err);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	darter_stack_close(the_stack);
	return 0;
}

static void
version_is_that_of_the_header(void **state)
{
	(void)state;
	assert_string_equal(darter_version(), DARTER_VERSION);
}

static int
look_at_knob(void *arg, const struct darter_knob *k)
{
	unsigned *count = arg;
	char text[64];

	assert_int_equal(darter_sysctl_get(NULL, k->name, text, sizeof(text)), 0);
	assert_string_equal(text, k->value);
	assert_true(strlen(k->text) > 10);
	assert_true(k->min <= k->dflt && k->dflt <= k->max);
	return *count > 0 && --*count == 0 ? 7 : 0;
}

static void
visit_of_knobs_ends_when_told(void **state)
{
	unsigned all = 0, three = 3;

	(void)state;
	assert_int_equal(darter_sysctl_visit(NULL, look_at_knob, &all), 0);
	assert_int_equal(darter_sysctl_visit(the_stack, look_at_knob, &three), 7);
	assert_int_equal(three, 0);
}

static int
is_sorted(void *arg, const struct darter_knob *k)
{
	char *last = arg;

	if (strcmp(last, k->name) >= 0)
		fail_msg("%s comes after %s", k->name, last);
	snprintf(last, 64, "%s", k->name);
	return 0;
}

static void
knobs_are_visited_by_name(void **state)
{
	char last[64] = "";

	(void)state;
	assert_int_equal(darter_sysctl_visit(NULL, is_sorted, last), 0);
}

static void
address_comes_and_goes(void **state)
{
	(void)state;
	assert_int_equal(darter_addr_add(NULL, "eth", "10.7.0.9/24"), 0);
	assert_int_equal(darter_addr_add(NULL, "eth", "10.7.0.9/24"), -EEXIST);
	assert_int_equal(darter_addr_del(NULL, "eth", "10.7.0.9/24"), 0);
	assert_int_equal(darter_addr_del(NULL, "eth", "10.7.0.9/24"), -ENOENT);
	/* without a length it is a host's */
	assert_int_equal(darter_addr_add(NULL, "lo", "192.0.2.7"), 0);
	assert_int_equal(darter_addr_del(NULL, "lo", "192.0.2.7"), 0);
}

static void
route_needs_a_gateway_that_is_connected(void **state)
{
	(void)state;
	assert_int_equal(darter_route_add(NULL, "198.51.100.0/24", "10.8.0.1"), -ENETUNREACH);
	assert_int_equal(darter_route_add(NULL, "198.51.100.0/24", "10.7.0.2"), 0);
	assert_int_equal(darter_route_add(NULL, "198.51.100.0/24", "10.7.0.2"), -EEXIST);
	assert_int_equal(darter_route_add(NULL, "default", "10.7.0.3"), 0);
	assert_int_equal(darter_route_del(NULL, "default"), 0);
	assert_int_equal(darter_route_del(NULL, "default"), -ENOENT);
	assert_int_equal(darter_route_del(NULL, "198.51.100.0/24"), 0);
}

static void
text_that_is_no_prefix_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "/24", "10.7.0.9/", "10.7.0.9/33", "10.7.0.9/x", "10.7.0/24", "10.7.0.256/24",
		"10.7.0.9/24x", "1111111111111111111111111111111111111111111111111111111111111/8",
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(darter_addr_add(NULL, "eth", bad[i]), -EINVAL);
		assert_int_equal(darter_addr_del(NULL, "eth", bad[i]), -EINVAL);
		assert_int_equal(darter_route_add(NULL, bad[i], "10.7.0.2"), -EINVAL);
		assert_int_equal(darter_route_del(NULL, bad[i]), -EINVAL);
	}
	assert_int_equal(darter_route_add(NULL, "198.51.100.0/24", "gateway"), -EINVAL);
	assert_int_equal(darter_addr_add(NULL, "eth", "2001:db8::1"), -EAFNOSUPPORT);
	assert_int_equal(darter_addr_add(NULL, "eth1", "10.7.0.9/24"), -ENODEV);
	assert_int_equal(darter_addr_del(NULL, "eth1", "10.7.0.9/24"), -ENODEV);
}

static void
knob_that_is_not_there_or_out_of_range_is_refused(void **state)
{
	char text[64], err[DARTER_ERR_MAX] = "";

	(void)state;
	assert_int_equal(darter_sysctl_get(NULL, "net.no.such", text, sizeof(text)), -ENOENT);
	assert_int_equal(darter_sysctl_set(NULL, "net.no.such", "1", err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "net.no.such"));
	assert_int_equal(darter_sysctl_set(NULL, "net.isr.spin_us", "51", NULL, 0), -ERANGE);
	assert_int_equal(darter_sysctl_set(NULL, "net.isr.spin_us", "fast", NULL, 0), -EINVAL);
	assert_int_equal(darter_sysctl_set(NULL, "net.isr.spin_us", "11", NULL, 0), 0);
	assert_int_equal(darter_sysctl_get(NULL, "net.isr.spin_us", text, sizeof(text)), 0);
	assert_string_equal(text, "11");
}

static void
without_a_stack_every_call_says_so(void **state)
{
	char text[64], err[DARTER_ERR_MAX] = "";
	unsigned all = 0;

	(void)state;
	assert_int_equal(darter_sysctl_set(NULL, "net.isr.spin_us", "1", err, sizeof(err)),
	    -ENETDOWN);
	assert_non_null(strstr(err, "no stack"));
	assert_int_equal(darter_sysctl_get(NULL, "net.isr.spin_us", text, sizeof(text)), -ENOENT);
	assert_int_equal(darter_sysctl_visit(NULL, look_at_knob, &all), -ENETDOWN);
	assert_int_equal(darter_addr_add(NULL, "lo", "192.0.2.7"), -ENETDOWN);
	assert_int_equal(darter_addr_del(NULL, "lo", "192.0.2.7"), -ENETDOWN);
	assert_int_equal(darter_route_add(NULL, "default", "10.7.0.2"), -ENETDOWN);
	assert_int_equal(darter_route_del(NULL, "default"), -ENETDOWN);
	assert_int_equal(darter_netisr_count(NULL), 0);
	assert_int_equal(darter_attach(NULL, 0), -EINVAL);
	assert_int_equal(darter_detach(), -EINVAL);
	assert_int_equal(darter_run(NULL, NULL), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define OPEN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		cmocka_unit_test(version_is_that_of_the_header),
		OPEN_TEST(visit_of_knobs_ends_when_told),
		OPEN_TEST(knobs_are_visited_by_name),
		OPEN_TEST(address_comes_and_goes),
		OPEN_TEST(route_needs_a_gateway_that_is_connected),
		OPEN_TEST(text_that_is_no_prefix_is_refused),
		OPEN_TEST(knob_that_is_not_there_or_out_of_range_is_refused),
		cmocka_unit_test(without_a_stack_every_call_says_so),
	};

	return cmocka_run_group_tests_name("darter", tests, NULL, NULL);
}
