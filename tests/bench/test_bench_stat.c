/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/darter/bench_stat: medians, ratios by pair, intervals that cover and that shrink. */
#include "support/cmocka_all.h"

#include <math.h>
#include <string.h>

#include "bench.h"

static uint64_t seed;

/* Uniform in [0, 1). */
static double
uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(seed >> 11) / 9007199254740992.0;
}

static void
values_unsorted_then_the_middle_one_is_the_median(void **state)
{
	const double odd[] = { 5, 1, 3 }, even[] = { 8, 2, 4, 6 };

	(void)state;
	assert_true(bench_median(odd, 3) == 3);
	assert_true(bench_median(even, 4) == 5);
	assert_true(bench_median(odd, 1) == 5);
	assert_true(bench_median(odd, 0) == 0);
}

/* A machine that speeds up tenfold during the run must not show in the ratio. */
static void
both_drift_alike_then_the_ratio_does_not(void **state)
{
	double a[BENCH_MIN_PAIRS], b[BENCH_MIN_PAIRS];
	struct bench_ratio r;
	unsigned i;

	(void)state;
	for (i = 0; i < BENCH_MIN_PAIRS; i++) {
		b[i] = 1000 * (1 + i / 2.0);
		a[i] = 5 * b[i];
	}
	bench_ratio_of(a, b, BENCH_MIN_PAIRS, &r);
	assert_true(fabs(r.median - 5) < 1e-9);
	assert_true(fabs(r.lo - 5) < 1e-9 && fabs(r.hi - 5) < 1e-9);
}

static void
one_slice_is_disturbed_then_the_ratio_hardly_moves(void **state)
{
	double a[BENCH_MIN_PAIRS], b[BENCH_MIN_PAIRS];
	struct bench_ratio r;
	unsigned i;

	(void)state;
	for (i = 0; i < BENCH_MIN_PAIRS; i++) {
		a[i] = 200 + i % 3;
		b[i] = 100;
	}
	a[7] = 1;
	bench_ratio_of(a, b, BENCH_MIN_PAIRS, &r);
	assert_true(r.median > 2.0 && r.median < 2.03);
	assert_true(r.lo >= 2.0);
}

/* 95 % intervals over 300 drawn sets cover the true median in roughly that share. */
static void
samples_drawn_often_then_the_interval_covers_the_truth(void **state)
{
	double a[BENCH_MIN_PAIRS], b[BENCH_MIN_PAIRS];
	struct bench_ratio r;
	unsigned set, i, covered = 0;

	(void)state;
	seed = 1;
	for (set = 0; set < 300; set++) {
		for (i = 0; i < BENCH_MIN_PAIRS; i++) {
			b[i] = 100;
			a[i] = 100 * (2 + uniform());	/* median ratio 2.5 */
		}
		bench_ratio_of(a, b, BENCH_MIN_PAIRS, &r);
		assert_true(r.lo <= r.median && r.median <= r.hi);
		covered += r.lo <= 2.5 && 2.5 <= r.hi;
	}
	assert_in_range(covered, 264, 298);
}

static void
no_pairs_then_no_ratio(void **state)
{
	struct bench_ratio r;

	(void)state;
	bench_ratio_of(NULL, NULL, 0, &r);
	assert_true(r.median == 0 && r.lo == 0 && r.hi == 0);
}

static void
times_are_summed_up_then_quantiles_are_values_that_came(void **state)
{
	double v[1000];
	struct bench_times t;
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++)
		v[i] = 1000 - i;	/* 1 to 1000, backwards */
	bench_times_of(v, 1000, &t);
	assert_true(t.p50_ns == 500 && t.p99_ns == 990 && t.p999_ns == 999);
	assert_true(fabs(t.mean_ns - 500.5) < 1e-9);
	assert_true(fabs(t.sd_ns - 288.8194360957494) < 1e-6);	/* of 1 to 1000, n - 1 */
	v[0] = 7;
	bench_times_of(v, 1, &t);
	assert_true(t.p50_ns == 7 && t.p999_ns == 7 && t.mean_ns == 7 && t.sd_ns == 0);
	bench_times_of(v, 0, &t);
	assert_true(t.p50_ns == 0 && t.mean_ns == 0);
}

/* lat_connect's trap: one outlier makes the mean, the median does not move. */
static void
one_time_is_an_outlier_then_the_mean_moves_the_median_stays(void **state)
{
	double v[101];
	struct bench_times t;
	unsigned i;

	(void)state;
	for (i = 0; i < 101; i++)
		v[i] = 75;
	v[50] = 75000;
	bench_times_of(v, 101, &t);
	assert_true(t.p50_ns == 75);
	assert_true(t.mean_ns > 800 && t.sd_ns > 7000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_unsorted_then_the_middle_one_is_the_median),
		cmocka_unit_test(both_drift_alike_then_the_ratio_does_not),
		cmocka_unit_test(one_slice_is_disturbed_then_the_ratio_hardly_moves),
		cmocka_unit_test(samples_drawn_often_then_the_interval_covers_the_truth),
		cmocka_unit_test(no_pairs_then_no_ratio),
		cmocka_unit_test(times_are_summed_up_then_quantiles_are_values_that_came),
		cmocka_unit_test(one_time_is_an_outlier_then_the_mean_moves_the_median_stays),
	};

	return cmocka_run_group_tests_name("bench_stat", tests, NULL, NULL);
}
