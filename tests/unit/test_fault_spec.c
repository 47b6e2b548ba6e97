/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form of faults. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "link/dev_fault.h"

static void
all_keys_are_read(void **state)
{
	struct fault_spec f;
	char err[128];

	(void)state;
	assert_int_equal(fault_parse("drop=0.01,dup=.5,corrupt=1,reorder=0.25,drop_nth=3,"
	    "delay_us=10-2000,fifo=1,reorder_us=77,rate_kbps=1000,queue_pkts=9,dir=tx,seed=42",
	    &f, err, sizeof(err)), 0);
	assert_true(f.drop == 0.01 && f.dup == 0.5 && f.corrupt == 1.0 && f.reorder == 0.25);
	assert_int_equal(f.drop_nth, 3);
	assert_int_equal(f.delay_min_us, 10);
	assert_int_equal(f.delay_max_us, 2000);
	assert_true(f.is_fifo);
	assert_int_equal(f.reorder_us, 77);
	assert_int_equal(f.rate_kbps, 1000);
	assert_int_equal(f.queue_pkts, 9);
	assert_false(f.applies[FAULT_RX]);
	assert_true(f.applies[FAULT_TX]);
	assert_int_equal(f.seed, 42);
}

static void
none_is_no_fault_in_both_directions(void **state)
{
	struct fault_spec f;
	char err[128];

	(void)state;
	assert_int_equal(fault_parse("none", &f, err, sizeof(err)), 0);
	assert_true(f.drop == 0.0 && f.dup == 0.0 && f.corrupt == 0.0 && f.reorder == 0.0);
	assert_int_equal(f.delay_max_us, 0);
	assert_true(f.applies[FAULT_RX] && f.applies[FAULT_TX]);
}

static void
single_delay_is_a_range_of_one(void **state)
{
	struct fault_spec f;
	char err[128];

	(void)state;
	assert_int_equal(fault_parse("delay_us=500", &f, err, sizeof(err)), 0);
	assert_int_equal(f.delay_min_us, 500);
	assert_int_equal(f.delay_max_us, 500);
}

/* "badhash=0" differs from nothing at all: the device claims to hash, and is right. */
static void
badhash_is_a_claim_and_a_share(void **state)
{
	struct fault_spec f;
	char err[128];

	(void)state;
	assert_int_equal(fault_parse("none", &f, err, sizeof(err)), 0);
	assert_false(f.claims_hash);
	assert_int_equal(fault_parse("badhash=0", &f, err, sizeof(err)), 0);
	assert_true(f.claims_hash && f.badhash == 0.0);
	assert_int_equal(fault_parse("badhash=0.5", &f, err, sizeof(err)), 0);
	assert_true(f.claims_hash && f.badhash == 0.5);
}

static void
nonsense_is_refused_and_named(void **state)
{
	static const char *const bad[] = {
		"drop=1.5", "drop=-1", "drop=x", "drop", "drop=", "drip=0.1", "drop_nth=-1",
		    "delay_us=20-10",
		"delay_us=5-", "dir=up", "seed=0x", "queue_pkts=0", "fifo=2", "drop=0.1,,dup=0.1",
		"drop=nan", "badhash=2", "delay_us=99999999999",
	};
	struct fault_spec f;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		char err[128] = "";

		if (fault_parse(bad[i], &f, err, sizeof(err)) != -EINVAL)
			fail_msg("\"%s\" was accepted", bad[i]);
		assert_non_null(strstr(err, "fault"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_read),
		cmocka_unit_test(none_is_no_fault_in_both_directions),
		cmocka_unit_test(single_delay_is_a_range_of_one),
		cmocka_unit_test(badhash_is_a_claim_and_a_share),
		cmocka_unit_test(nonsense_is_refused_and_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
