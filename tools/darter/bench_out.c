/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results: a table, or with --json one object a line, one for each case and each ratio against the
 * kernel. A variant that could not run is named with the reason, never left out silently.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "commands.h"

/* Rates of two variants from rounds in which both have one; the first round warms up. */
static unsigned
paired(const struct bench_samples *s, unsigned a, unsigned b, double *ret_a, double *ret_b)
{
	unsigned r, n = 0;

	for (r = 1; r < s->rounds; r++) {
		if (s->rate[a][r] <= 0 || s->rate[b][r] <= 0)
			continue;
		ret_a[n] = s->rate[a][r];
		ret_b[n++] = s->rate[b][r];
	}
	return n;
}

static double
median_rate(const struct bench_samples *s, unsigned v, unsigned *ret_n)
{
	double rate[BENCH_MAX_ROUNDS], same[BENCH_MAX_ROUNDS];

	*ret_n = paired(s, v, v, rate, same);
	return bench_median(rate, *ret_n);
}

/* What the others are compared with: the kernel, or without it the first one that ran. */
static int
base_of(const struct bench_samples *s)
{
	unsigned n;
	int v;

	median_rate(s, BENCH_KERNEL, &n);
	if (n > 0)
		return BENCH_KERNEL;
	for (v = 0; v < BENCH_VARIANTS; v++) {
		median_rate(s, (unsigned)v, &n);
		if (n > 0)
			return v;
	}
	return -1;
}

static const char *
unit_of(const struct bench_case *c)
{
	return c->kind == BENCH_RR ? "requests/s/core" : "connections/s/core";
}

/* ---- JSON ---- */

static void
json_variants(const struct bench_variant *v, const struct bench_samples *s)
{
	const char *sep = "";
	unsigned i, n;
	double m;

	printf("\"variants\":{");
	for (i = 0; i < BENCH_VARIANTS; i++) {
		m = median_rate(s, i, &n);
		if (n == 0)
			continue;
		printf("%s\"%s\":%.0f", sep, v[i].name, m);
		sep = ",";
	}
	printf("},\"link_datagrams\":{");
	for (i = 0, sep = ""; i < BENCH_VARIANTS; i++) {
		if (v[i].udp_pps <= 0)
			continue;
		printf("%s\"%s\":%.0f", sep, v[i].name, v[i].udp_pps);
		sep = ",";
	}
	printf("},\"skipped\":{");
	for (i = 0, sep = ""; i < BENCH_VARIANTS; i++) {
		if (!v[i].is_wanted || v[i].why[0] == '\0')
			continue;
		printf("%s\"%s\":", sep, v[i].name);
		json_string(stdout, v[i].why);
		sep = ",";
	}
	putchar('}');
}

static void
json_line(const char *bench, const struct bench_case *c, const struct bench_variant *v,
    const struct bench_samples *s, int a, int b)
{
	double ra[BENCH_MAX_ROUNDS], rb[BENCH_MAX_ROUNDS];
	struct bench_ratio ratio;
	unsigned n = 0;

	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"%s\",", bench, c->name, unit_of(c));
	json_variants(v, s);
	if (a >= 0) {
		n = paired(s, (unsigned)a, (unsigned)b, ra, rb);
		bench_ratio_of(ra, rb, n, &ratio);
		printf(",\"ratio\":{\"of\":\"%s/%s\",\"median\":%.3f,\"lo\":%.3f,\"hi\":%.3f}",
		    v[a].name, v[b].name, ratio.median, ratio.lo, ratio.hi);
	} else {
		printf(",\"ratio\":null");
		if (b >= 0)
			median_rate(s, (unsigned)b, &n);
	}
	printf(",\"pairs\":%u,\"selfcheck\":", n);
	json_string(stdout, s->selfcheck[0] ? s->selfcheck : "ok");
	printf("}\n");
	fflush(stdout);
}

/* ---- table ---- */

static void
table_case(const struct bench_case *c, const struct bench_variant *v, const struct bench_samples *s)
{
	double ra[BENCH_MAX_ROUNDS], rb[BENCH_MAX_ROUNDS], m;
	struct bench_ratio ratio;
	int base = base_of(s);
	unsigned i, n;

	printf("%-16s", c->name);
	for (i = 0; i < BENCH_VARIANTS; i++) {
		m = median_rate(s, i, &n);
		if (n > 0)
			printf(" %9.0f", m);
		else
			printf(" %9s", "-");
	}
	for (i = 0; i < BENCH_VARIANTS; i++) {
		if (base < 0 || (int)i == base || !v[i].is_wanted)
			continue;
		n = paired(s, i, (unsigned)base, ra, rb);
		bench_ratio_of(ra, rb, n, &ratio);
		if (n > 0)
			printf("  %5.2f [%5.2f-%5.2f]", ratio.median, ratio.lo, ratio.hi);
		else
			printf("  %19s", "-");
	}
	printf("  %s\n", s->selfcheck[0] ? s->selfcheck : "ok");
	fflush(stdout);
}

void
bench_print_head(const struct bench_options *o, const char *bench, const struct bench_variant *v)
{
	char title[32];
	unsigned i;

	if (o->is_json)
		return;
	printf("%s: %s per second with one core at each end; medians of %d interleaved slices,\n"
	    "ratios to %s by slice with their bootstrap 95 %% interval\n\n", bench,
	    strcmp(bench, "rr") == 0 ? "requests" : "connections", BENCH_MIN_PAIRS,
	    v[BENCH_KERNEL].is_up ? "the kernel" : "the first variant");
	printf("%-16s", "case");
	for (i = 0; i < BENCH_VARIANTS; i++)
		printf(" %9s", v[i].name);
	for (i = 0; i < BENCH_VARIANTS; i++) {
		if (i == BENCH_KERNEL || !v[i].is_wanted)
			continue;
		snprintf(title, sizeof(title), "%s/kernel", v[i].name);
		printf("  %19s", title);
	}
	printf("  self-check\n");
}

void
bench_print_case(const struct bench_options *o, const char *bench, const struct bench_case *c,
    const struct bench_variant *v, const struct bench_samples *s)
{
	int base = base_of(s), i, lines = 0;
	unsigned n;

	if (!o->is_json) {
		table_case(c, v, s);
		return;
	}
	for (i = 0; i < BENCH_VARIANTS; i++) {
		median_rate(s, (unsigned)i, &n);
		if (i == base || n == 0)
			continue;
		json_line(bench, c, v, s, i, base);
		lines++;
	}
	if (lines == 0)
		json_line(bench, c, v, s, -1, base);
}

void
bench_print_tail(const struct bench_options *o, const char *bench, const struct bench_variant *v)
{
	unsigned i;

	(void)bench;
	if (o->is_json)
		return;
	printf("%-16s", "datagrams/s");
	for (i = 0; i < BENCH_VARIANTS; i++) {
		if (v[i].udp_pps > 0)
			printf(" %9.0f", v[i].udp_pps);
		else
			printf(" %9s", "-");
	}
	printf("  one way, 1 byte, best slice: what the link carries\n");
	for (i = 0; i < BENCH_VARIANTS; i++)
		if (v[i].is_wanted && v[i].why[0] != '\0')
			printf("\n%s skipped: %s\n", v[i].name, v[i].why);
}
