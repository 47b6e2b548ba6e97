/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows whose variants are not links: knobs, algorithms, profiles. A row prints as one JSON object
 * for each ratio that was asked for (all with the same variants and counters), or as a block of a
 * table. A variant without samples is left out; the row's note says why.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "commands.h"

void
bench_row_complain(struct bench_row *row, const char *variant, const char *why)
{
	if (row->selfcheck[0] == '\0')
		snprintf(row->selfcheck, sizeof(row->selfcheck), "%s: %.200s", variant, why);
}

unsigned
bench_row_counter(struct bench_row *row, const char *name)
{
	unsigned i, at = row->n_counters++;

	row->counter[at].name = name;
	for (i = 0; i < BENCH_ROW_VARIANTS; i++)
		row->counter[at].v[i] = NAN;
	return at;
}

void
bench_row_ratio(struct bench_row *row, unsigned a, unsigned b)
{
	if (a >= row->n_variants || b >= row->n_variants || row->n_ratios == BENCH_ROW_RATIOS)
		return;
	row->ratio[row->n_ratios].a = a;
	row->ratio[row->n_ratios++].b = b;
}

/* Samples of two variants from rounds in which both have one; the first round warms up. */
static unsigned
paired(const struct bench_row *row, unsigned a, unsigned b, double *ret_a, double *ret_b)
{
	unsigned r, n = 0;

	for (r = 1; r < row->rounds; r++) {
		if (row->sample[a][r] <= 0 || row->sample[b][r] <= 0)
			continue;
		ret_a[n] = row->sample[a][r];
		ret_b[n++] = row->sample[b][r];
	}
	return n;
}

static double
median_of(const struct bench_row *row, unsigned v, unsigned *ret_n)
{
	double a[BENCH_MAX_ROUNDS], b[BENCH_MAX_ROUNDS];

	*ret_n = paired(row, v, v, a, b);
	return bench_median(a, *ret_n);
}

double
bench_row_median(const struct bench_row *row, unsigned v)
{
	unsigned n;

	return median_of(row, v, &n);
}

/* Rates are whole numbers, times have fractions. */
static int
decimals(const struct bench_row *row)
{
	return row->is_time ? 3 : 0;
}

/* ---- JSON ---- */

static void
json_variants(const struct bench_row *row)
{
	const char *sep = "";
	unsigned v, n;
	double m;

	printf("\"variants\":{");
	for (v = 0; v < row->n_variants; v++) {
		m = median_of(row, v, &n);
		if (n == 0)
			continue;
		printf("%s\"%s\":%.*f", sep, row->variant[v], decimals(row), m);
		sep = ",";
	}
	putchar('}');
}

static void
json_counters(const struct bench_row *row)
{
	const char *sep = "", *inner;
	unsigned c, v;

	printf(",\"counters\":{");
	for (c = 0; c < row->n_counters; c++) {
		printf("%s\"%s\":{", sep, row->counter[c].name);
		for (v = 0, inner = ""; v < row->n_variants; v++) {
			if (isnan(row->counter[c].v[v]))
				continue;
			printf("%s\"%s\":%.4g", inner, row->variant[v], row->counter[c].v[v]);
			inner = ",";
		}
		putchar('}');
		sep = ",";
	}
	putchar('}');
}

/* i: of the row's ratios, or -1. */
static void
json_line(const struct bench_run *r, const struct bench_row *row, int i)
{
	double a[BENCH_MAX_ROUNDS], b[BENCH_MAX_ROUNDS];
	struct bench_ratio ratio;
	unsigned n = 0;

	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"%s\",", r->def->name, row->name,
	    row->unit);
	json_variants(row);
	if (i >= 0) {
		n = paired(row, row->ratio[i].a, row->ratio[i].b, a, b);
		bench_ratio_of(a, b, n, &ratio);
		printf(",\"ratio\":{\"of\":\"%s/%s\",\"median\":%.3f,\"lo\":%.3f,\"hi\":%.3f}",
		    row->variant[row->ratio[i].a], row->variant[row->ratio[i].b], ratio.median,
		    ratio.lo, ratio.hi);
	} else {
		median_of(row, 0, &n);
		printf(",\"ratio\":null");
	}
	printf(",\"pairs\":%u", n);
	json_counters(row);
	if (row->link_pps > 0)
		printf(",\"link_pps\":%.0f", row->link_pps);
	if (row->note[0] != '\0') {
		printf(",\"note\":");
		json_string(stdout, row->note);
	}
	printf(",\"selfcheck\":");
	json_string(stdout, row->selfcheck[0] != '\0' ? row->selfcheck : "ok");
	printf("}\n");
	fflush(stdout);
}

/* Does this ratio have pairs? */
static bool
has_pairs(const struct bench_row *row, unsigned i)
{
	double a[BENCH_MAX_ROUNDS], b[BENCH_MAX_ROUNDS];

	return paired(row, row->ratio[i].a, row->ratio[i].b, a, b) > 0;
}

static void
print_json(const struct bench_run *r, const struct bench_row *row)
{
	unsigned i, lines = 0;

	for (i = 0; i < row->n_ratios; i++) {
		if (!has_pairs(row, i))
			continue;
		json_line(r, row, (int)i);
		lines++;
	}
	if (lines == 0)
		json_line(r, row, -1);
}

/* ---- table ---- */

static void
table_variants(const struct bench_row *row)
{
	unsigned v, c, n;
	double m;

	printf("  %-12s %12s", "", row->unit);
	for (c = 0; c < row->n_counters; c++)
		printf(" %10s", row->counter[c].name);
	putchar('\n');
	for (v = 0; v < row->n_variants; v++) {
		m = median_of(row, v, &n);
		if (n == 0)
			continue;
		printf("  %-12s %12.*f", row->variant[v], decimals(row), m);
		for (c = 0; c < row->n_counters; c++) {
			if (isnan(row->counter[c].v[v]))
				printf(" %10s", "-");
			else
				printf(" %10.4g", row->counter[c].v[v]);
		}
		putchar('\n');
	}
}

static void
print_table(const struct bench_row *row)
{
	double a[BENCH_MAX_ROUNDS], b[BENCH_MAX_ROUNDS];
	struct bench_ratio ratio;
	char of[40];
	unsigned i, n;

	printf("%s  self-check: %s\n", row->name,
	    row->selfcheck[0] != '\0' ? row->selfcheck : "ok");
	table_variants(row);
	for (i = 0; i < row->n_ratios; i++) {
		n = paired(row, row->ratio[i].a, row->ratio[i].b, a, b);
		bench_ratio_of(a, b, n, &ratio);
		if (n == 0)
			continue;
		snprintf(of, sizeof(of), "%s/%s", row->variant[row->ratio[i].a],
		    row->variant[row->ratio[i].b]);
		printf("  %-20s %7.3f [%.3f-%.3f]  %u pairs\n", of, ratio.median, ratio.lo,
		    ratio.hi, n);
	}
	if (row->link_pps > 0)
		printf("  the link by itself: %.0f frames/s one way, no protocol\n", row->link_pps);
	if (row->note[0] != '\0')
		printf("  %s\n", row->note);
	putchar('\n');
	fflush(stdout);
}

/* ---- both ---- */

/* A variant's median with the interval of that median, as for a ratio to 1. */
static void
plot(struct bench_run *r, const struct bench_row *row)
{
	double a[BENCH_MAX_ROUNDS], one[BENCH_MAX_ROUNDS];
	struct bench_ratio median;
	unsigned v, i, n;

	if (r->plot == NULL || row->is_undrawn || !bench_plot_place(r->plot, row->name, row->unit))
		return;
	for (v = 0; v < row->n_variants; v++) {
		n = paired(row, v, v, a, one);
		for (i = 0; i < n; i++)
			one[i] = 1;
		bench_ratio_of(a, one, n, &median);
		if (n > 0)
			bench_plot_add(r->plot, row->variant[v], median.median, median.lo,
			    median.hi);
	}
}

void
bench_row_print(struct bench_run *r, const struct bench_row *row)
{
	bench_progress_end(r);
	if (row->rounds < 2) {
		fprintf(stderr, "darter bench: %s left out: %s\n", row->name,
		    row->selfcheck[0] != '\0' ? row->selfcheck : "the time is up");
		return;
	}
	r->n_rows++;
	plot(r, row);
	if (r->o.is_json)
		print_json(r, row);
	else
		print_table(row);
}
