/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Medians and intervals. The ratio of two variants is the median of the ratios of neighbouring
 * slices, its interval the 2.5th and 97.5th percentile of that median over resampled pairs (Efron's
 * percentile bootstrap): no assumption about how the rates are distributed, which on a shared
 * machine is nothing like a normal distribution. The resampling is seeded alike each time, so the
 * same samples print the same interval.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define RESAMPLES 2000

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median_of_sorted(const double *v, unsigned n)
{
	if (n == 0)
		return 0;
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double
bench_median(const double *v, unsigned n)
{
	double sorted[BENCH_MAX_ROUNDS];

	if (n > BENCH_MAX_ROUNDS)
		n = BENCH_MAX_ROUNDS;
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	return median_of_sorted(sorted, n);
}

/* The smallest value that a share q of the sorted ones does not exceed. */
static double
quantile_of_sorted(const double *v, size_t n, double q)
{
	size_t at = (size_t)ceil(q * (double)n);

	return v[at == 0 ? 0 : at - 1];
}

void
bench_times_of(double *v, size_t n, struct bench_times *ret)
{
	double sum = 0, squares = 0;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	if (n == 0)
		return;
	for (i = 0; i < n; i++)
		sum += v[i];
	ret->mean_ns = sum / (double)n;
	for (i = 0; i < n; i++)
		squares += (v[i] - ret->mean_ns) * (v[i] - ret->mean_ns);
	ret->sd_ns = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	ret->p50_ns = quantile_of_sorted(v, n, 0.5);
	ret->p99_ns = quantile_of_sorted(v, n, 0.99);
	ret->p999_ns = quantile_of_sorted(v, n, 0.999);
}

/* xorshift64* (Vigna, 2016). */
static uint32_t
next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

void
bench_ratio_of(const double *a, const double *b, unsigned n, struct bench_ratio *ret)
{
	double ratio[BENCH_MAX_ROUNDS], drawn[BENCH_MAX_ROUNDS], medians[RESAMPLES];
	uint64_t seed = UINT64_C(88172645463325252);
	unsigned i, r;

	memset(ret, 0, sizeof(*ret));
	if (n == 0 || n > BENCH_MAX_ROUNDS)
		return;
	for (i = 0; i < n; i++)
		ratio[i] = a[i] / b[i];
	ret->median = bench_median(ratio, n);
	for (r = 0; r < RESAMPLES; r++) {
		for (i = 0; i < n; i++)
			drawn[i] = ratio[((uint64_t)next_random(&seed) * n) >> 32];
		medians[r] = bench_median(drawn, n);
	}
	qsort(medians, RESAMPLES, sizeof(*medians), compare_doubles);
	ret->lo = medians[RESAMPLES * 25 / 1000];
	ret->hi = medians[RESAMPLES * 975 / 1000 - 1];
}
