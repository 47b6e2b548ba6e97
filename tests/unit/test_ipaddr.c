/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text, both families, and the predicates over the common form. */
#include <errno.h>
#include <string.h>

#include "support/cmocka_all.h"

#include "base/compiler.h"
#include "base/ipaddr.h"

static void
both_families_survive_text_and_back(void **state)
{
	static const char *const texts[] = {
		"0.0.0.0", "10.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
		"2001:db8:1:2:3:4:5:6", "ff02::1:ff00:1",
	};
	char buf[IPADDR_STR_MAX];
	struct ipaddr a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(ipaddr_parse(texts[i], &a), 0);
		assert_string_equal(ipaddr_format(&a, buf, sizeof(buf)), texts[i]);
	}
}

static void
mapped_spelling_is_the_ipv4_address(void **state)
{
	struct ipaddr a, b = ipaddr_v4_cpu(0x0a000001);

	(void)state;
	assert_int_equal(ipaddr_parse("::ffff:10.0.0.1", &a), 0);
	assert_true(ipaddr_eq(&a, &b));
	assert_true(ipaddr_is_v4(&a));
}

static void
nonsense_is_refused_and_leaves_the_result(void **state)
{
	static const char *const texts[] = {
		"", "10.0.0", "10.0.0.256", "10.0.0.1 ", ":::", "fe80::1%eth0", "1.2.3.4.5", "host",
	};
	struct ipaddr a = ipaddr_v4_cpu(0x01020304), before = a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(ipaddr_parse(texts[i], &a), -EINVAL);
		assert_true(ipaddr_eq(&a, &before));
	}
}

static void
any_of_either_family_is_any(void **state)
{
	struct ipaddr v6 = { .q = { 0, 0 } }, v4 = ipaddr_v4_cpu(0), one = ipaddr_v4_cpu(1);

	(void)state;
	assert_true(ipaddr_is_any(&v6));
	assert_false(ipaddr_is_v4(&v6));
	assert_true(ipaddr_is_any(&v4));
	assert_false(ipaddr_is_any(&one));
}

static void
too_small_buffer_gives_an_empty_string(void **state)
{
	struct ipaddr a = ipaddr_v4_cpu(0x0a000001);
	char buf[4] = "xyz";

	(void)state;
	assert_string_equal(ipaddr_format(&a, buf, sizeof(buf)), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_families_survive_text_and_back),
		cmocka_unit_test(mapped_spelling_is_the_ipv4_address),
		cmocka_unit_test(nonsense_is_refused_and_leaves_the_result),
		cmocka_unit_test(any_of_either_family_is_any),
		cmocka_unit_test(too_small_buffer_gives_an_empty_string),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
