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

/* Of connections over darter's links. */
static void
json_counts(const struct bench_variant *v, const struct bench_samples *s)
{
	const char *sep = "";
	unsigned i;

	printf(",\"pkts_per_op\":{");
	for (i = 0; i < BENCH_VARIANTS; i++) {
		if (s->pkts[i] == 0 || s->ops[i] == 0)
			continue;
		printf("%s\"%s\":%.2f", sep, v[i].name, (double)s->pkts[i] / (double)s->ops[i]);
		sep = ",";
	}
	printf("},\"timewait\":{");
	for (i = 0, sep = ""; i < BENCH_VARIANTS; i++) {
		if (s->pkts[i] == 0)
			continue;
		printf("%s\"%s\":{\"client\":%llu,\"server\":%llu}", sep, v[i].name,
		    (unsigned long long)s->timewait[i][BENCH_CLIENT],
		    (unsigned long long)s->timewait[i][BENCH_SERVER]);
		sep = ",";
	}
	putchar('}');
}

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
	printf("},\"link_pps\":{");
	for (i = 0, sep = ""; i < BENCH_VARIANTS; i++) {
		if (v[i].raw_pps <= 0)
			continue;
		printf("%s\"%s\":%.0f", sep, v[i].name, v[i].raw_pps);
		sep = ",";
	}
	printf("},\"udp_pps\":{");
	for (i = 0, sep = ""; i < BENCH_VARIANTS; i++) {
		if (v[i].udp_pps <= 0)
			continue;
		printf("%s\"%s\":%.0f", sep, v[i].name, v[i].udp_pps);
		sep = ",";
	}
	putchar('}');
	json_counts(v, s);
	printf(",\"skipped\":{");
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

/* Of connections: packets of each, and whose the TIME_WAIT records are. */
static void
table_counts(const struct bench_case *c, const struct bench_samples *s)
{
	uint64_t records[BENCH_ROLES] = { 0 };
	unsigned i;

	if (c->kind == BENCH_RR)
		return;
	printf("%-16s", "  packets each");
	for (i = 0; i < BENCH_VARIANTS; i++) {
		records[BENCH_CLIENT] += s->timewait[i][BENCH_CLIENT];
		records[BENCH_SERVER] += s->timewait[i][BENCH_SERVER];
		if (s->pkts[i] != 0 && s->ops[i] != 0)
			printf(" %9.2f", (double)s->pkts[i] / (double)s->ops[i]);
		else
			printf(" %9s", "-");
	}
	printf("  TIME_WAIT: %llu at the clients, %llu at the servers\n",
	    (unsigned long long)records[BENCH_CLIENT],
	    (unsigned long long)records[BENCH_SERVER]);
}

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
	table_counts(c, s);
	fflush(stdout);
}

/* The links' own rates, above the rows that they belong to. */
static void
table_rate(const char *name, const struct bench_variant *v, bool is_raw, const char *text)
{
	unsigned i;

	printf("%-16s", name);
	for (i = 0; i < BENCH_VARIANTS; i++) {
		double pps = is_raw ? v[i].raw_pps : v[i].udp_pps;

		if (pps > 0)
			printf(" %9.0f", pps);
		else
			printf(" %9s", "-");
	}
	printf("  %s\n", text);
}

void
bench_print_head(const struct bench_options *o, const char *bench, const struct bench_variant *v)
{
	bool has_kernel = v[BENCH_KERNEL].is_up;
	char title[32];
	unsigned i;

	if (o->is_json)
		return;
	printf("%s: %s per second with one core at each end; medians of %d interleaved slices,\n"
	    "ratios to %s by slice with their bootstrap 95 %% interval\n\n", bench,
	    strcmp(bench, "rr") == 0 ? "requests" : "connections", BENCH_MIN_PAIRS,
	    has_kernel ? "the kernel" : "the first variant");
	printf("%-16s", "case");
	for (i = 0; i < BENCH_VARIANTS; i++)
		printf(" %9s", v[i].name);
	for (i = 0; i < BENCH_VARIANTS; i++) {
		if (i == BENCH_KERNEL || !v[i].is_wanted)
			continue;
		snprintf(title, sizeof(title), "%s/%s", v[i].name,
		    has_kernel ? "kernel" : "first");
		printf("  %19s", title);
	}
	printf("  self-check\n");
	table_rate("link frames/s", v, true, "one way, no protocol: what the link carries");
	table_rate("link datagrams/s", v, false, "one way, 1 byte of UDP");
	fflush(stdout);
}

static void
plot_case(struct bench_run *r, const struct bench_case *c, const struct bench_variant *v,
    const struct bench_samples *s)
{
	double rate[BENCH_MAX_ROUNDS], one[BENCH_MAX_ROUNDS], m;
	struct bench_ratio median;
	unsigned i, k, n;

	if (r->plot == NULL || !bench_plot_place(r->plot, c->name,
	    c->kind == BENCH_RR ? "requests/s" : "connections/s"))
		return;
	for (i = 0; i < BENCH_VARIANTS; i++) {
		m = median_rate(s, i, &n);
		for (k = 0; k < BENCH_MAX_ROUNDS; k++)
			one[k] = 1;
		n = paired(s, i, i, rate, rate);
		bench_ratio_of(rate, one, n, &median);
		if (n > 0)
			bench_plot_add(r->plot, v[i].name, m, median.lo, median.hi);
	}
}

void
bench_print_case(struct bench_run *r, const struct bench_case *c, const struct bench_variant *v,
    const struct bench_samples *s)
{
	int base = base_of(s), i, lines = 0;
	unsigned n;

	r->n_rows++;
	plot_case(r, c, v, s);
	if (!r->o.is_json) {
		table_case(c, v, s);
		return;
	}
	for (i = 0; i < BENCH_VARIANTS; i++) {
		median_rate(s, (unsigned)i, &n);
		/* The kernel's other way is a column; --quick has no line for it. */
		if (i == base || n == 0 || (i == BENCH_LOOPBACK && r->o.is_quick))
			continue;
		json_line(r->def->name, c, v, s, i, base);
		lines++;
	}
	if (lines == 0)
		json_line(r->def->name, c, v, s, -1, base);
}

void
bench_print_tail(const struct bench_options *o, const struct bench_variant *v)
{
	unsigned i;

	if (o->is_json)
		return;
	for (i = 0; i < BENCH_VARIANTS; i++)
		if (v[i].is_wanted && v[i].why[0] != '\0')
			printf("\n%s skipped: %s\n", v[i].name, v[i].why);
}
