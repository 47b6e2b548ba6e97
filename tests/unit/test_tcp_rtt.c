/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/tcp/tcp_rtt: RFC 6298's formulas against an exact reference. */
#include "support/cmocka_all.h"

#include <math.h>

#include "base/rng.h"
#include "transport/tcp/tcp_priv.h"

#define MS 1000u
#define MIN_US (200 * MS)
#define MAX_US (60000 * MS)

/* RFC 6298 2.2 */
static void
first_sample_then_srtt_is_r_and_rttvar_half_of_it(void **state)
{
	struct tcp_rtt r = { 0, 0 };

	(void)state;
	tcp_rtt_sample(&r, 100 * MS);
	assert_int_equal(r.srtt8_us >> 3, 100 * MS);
	assert_int_equal(r.rttvar4_us >> 2, 50 * MS);
	/* RTO = R + 4 * R/2 */
	assert_int_equal(tcp_rtt_rto_us(&r, MIN_US, MAX_US), 300 * MS);
}

/* RFC 6298 2.3: by hand, alpha 1/8, beta 1/4, RTTVAR with the SRTT before it moves */
static void
second_sample_then_both_move_by_their_gain(void **state)
{
	struct tcp_rtt r = { 0, 0 };

	(void)state;
	tcp_rtt_sample(&r, 100 * MS);
	tcp_rtt_sample(&r, 200 * MS);
	assert_int_equal(r.rttvar4_us >> 2, 62500);	/* 3/4 * 50 + 1/4 * 100 */
	assert_int_equal(r.srtt8_us >> 3, 112500);	/* 7/8 * 100 + 1/8 * 200 */
	assert_int_equal(tcp_rtt_rto_us(&r, MIN_US, MAX_US), 112500 + 250000);
}

/* RFC 6298 2.4, 2.5, and 2.2's clock granularity */
static void
rto_stays_between_its_bounds(void **state)
{
	struct tcp_rtt r = { 0, 0 };
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		tcp_rtt_sample(&r, 20);
	assert_int_equal(tcp_rtt_rto_us(&r, MIN_US, MAX_US), MIN_US);
	/* with a floor of nothing the granularity remains */
	assert_in_range(tcp_rtt_rto_us(&r, 1, MAX_US), 1020, 1100);
	for (i = 0; i < 50; i++)
		tcp_rtt_sample(&r, UINT32_MAX);
	assert_int_equal(tcp_rtt_rto_us(&r, MIN_US, MAX_US), MAX_US);
}

static void
random_samples_then_fixed_point_follows_the_formulas(void **state)
{
	struct rng rng;
	unsigned run, i;

	(void)state;
	rng_init(&rng, 3);
	for (run = 0; run < 100; run++) {
		struct tcp_rtt r = { 0, 0 };
		double srtt = 0, rttvar = 0;

		for (i = 0; i < 200; i++) {
			uint32_t m = 1 + rng_below(&rng, 1u << (4 + run % 20));

			if (i == 0) {
				srtt = m;
				rttvar = m / 2.0;
			} else {
				rttvar = 0.75 * rttvar + 0.25 * fabs(srtt - m);
				srtt = 0.875 * srtt + 0.125 * m;
			}
			tcp_rtt_sample(&r, m);
			/* truncation costs less than 8 us of srtt and, fed by it, of rttvar */
			assert_true(fabs(r.srtt8_us / 8.0 - srtt) <= 8.0);
			assert_true(fabs(r.rttvar4_us / 4.0 - rttvar) <= 12.0);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_sample_then_srtt_is_r_and_rttvar_half_of_it),
		cmocka_unit_test(second_sample_then_both_move_by_their_gain),
		cmocka_unit_test(rto_stays_between_its_bounds),
		cmocka_unit_test(random_samples_then_fixed_point_follows_the_formulas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
