/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results as an SVG: the cases along the bottom in the order in which they came, a point for each
 * variant's median, with its 95 % interval as a bar through it; in a sweep a line joins them. The y
 * axis is logarithmic, since what is compared differs by up to a thousand times; its lines are
 * powers of ten. It has one unit: cases of another one are left out. Written by hand, so that
 * nothing has to be installed.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SERIES_MAX	16
#define PLACES_MAX	BENCH_CASES_MAX
#define NAME_MAX_BYTES	40
#define LEFT		90.0
#define RIGHT		170.0	/* the legend's */
#define TOP		50.0
#define BOTTOM		130.0	/* names of cases, turned */
#define STEP		70.0	/* between two cases */
#define HEIGHT		360.0

struct point {
	double y, lo, hi;
	bool is_set;
};

struct bench_plot {
	char file[512];
	char title[80];
	char unit[NAME_MAX_BYTES];
	bool is_sweep;
	unsigned at;			/* place of the points that come */
	char series[SERIES_MAX][NAME_MAX_BYTES];
	char place[PLACES_MAX][NAME_MAX_BYTES];
	struct point point[SERIES_MAX][PLACES_MAX];
	unsigned n_series;
	unsigned n_places;
};

struct bench_plot *
bench_plot_new(const char *file, const char *title, bool is_sweep)
{
	struct bench_plot *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	snprintf(p->file, sizeof(p->file), "%s", file);
	snprintf(p->title, sizeof(p->title), "%s", title);
	p->is_sweep = is_sweep;
	return p;
}

/* Index of a name, which is added if it is new; max when there is no room. */
static unsigned
index_of(char (*names)[NAME_MAX_BYTES], unsigned *n, unsigned max, const char *name)
{
	unsigned i;

	for (i = 0; i < *n; i++)
		if (strncmp(names[i], name, NAME_MAX_BYTES - 1) == 0)
			return i;
	if (*n == max)
		return max;
	snprintf(names[*n], NAME_MAX_BYTES, "%s", name);
	return (*n)++;
}

bool
bench_plot_place(struct bench_plot *p, const char *x, const char *unit)
{
	if (p->unit[0] == '\0')
		snprintf(p->unit, sizeof(p->unit), "%s", unit);
	if (strncmp(p->unit, unit, sizeof(p->unit) - 1) != 0)
		return false;
	p->at = index_of(p->place, &p->n_places, PLACES_MAX, x);
	return p->at < PLACES_MAX;
}

void
bench_plot_add(struct bench_plot *p, const char *series, double y, double lo, double hi)
{
	unsigned s;

	if (!(y > 0) || !(lo > 0) || !(hi > 0) || isinf(y) || isinf(hi))
		return;
	s = index_of(p->series, &p->n_series, SERIES_MAX, series);
	if (s < SERIES_MAX)
		p->point[s][p->at] = (struct point){ y, lo, hi, true };
}

/* Powers of ten that hold all points. */
static void
find_decades(const struct bench_plot *p, double *ret_min, double *ret_max)
{
	double min = 1e300, max = 0;
	unsigned s, i;

	for (s = 0; s < p->n_series; s++) {
		for (i = 0; i < p->n_places; i++) {
			if (!p->point[s][i].is_set)
				continue;
			min = fmin(min, p->point[s][i].lo);
			max = fmax(max, p->point[s][i].hi);
		}
	}
	*ret_min = max > 0 ? floor(log10(min)) : 0;
	*ret_max = max > 0 ? ceil(log10(max)) : 1;
	if (*ret_max <= *ret_min)
		*ret_max = *ret_min + 1;
}

static const char *
colour(unsigned s)
{
	static const char *const colours[] = { "#1b6ca8", "#d1495b", "#3a7d44", "#8e5ea2",
		"#c98a1b", "#4a4a4a", "#17a2a2", "#a8577e" };

	return colours[s % ARRAY_SIZE(colours)];
}

static double
y_of(double v, double min, double max)
{
	return TOP + HEIGHT * (1 - (log10(v) - min) / (max - min));
}

/* Points of a sweep stand above each other, others side by side. */
static double
x_of(const struct bench_plot *p, unsigned place, unsigned s)
{
	double aside = p->is_sweep ? 0.5 : (s + 1.0) / (p->n_series + 1);

	return LEFT + STEP * (place + aside);
}

/* Names are ours, but an unescaped one would break the file. */
static void
put_text(FILE *f, double x, double y, const char *more, const char *text)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more);
	for (; *text != '\0'; text++) {
		if (*text == '<' || *text == '&')
			fputs(*text == '<' ? "&lt;" : "&amp;", f);
		else
			putc(*text, f);
	}
	fputs("</text>\n", f);
}

static void
put_axes(FILE *f, const struct bench_plot *p, double min, double max)
{
	double d, right = LEFT + STEP * p->n_places;
	char text[64];
	unsigned i;

	for (d = min; d <= max; d++) {
		double y = y_of(pow(10, d), min, max);

		fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
		    "stroke=\"#cccccc\"/>\n", LEFT, y, right, y);
		snprintf(text, sizeof(text), "%g", pow(10, d));
		put_text(f, LEFT - 8, y + 4, "text-anchor=\"end\"", text);
	}
	for (i = 0; i < p->n_places; i++) {
		double x = LEFT + STEP * (i + 0.5), y = TOP + HEIGHT + 18;

		snprintf(text, sizeof(text),
		    "text-anchor=\"end\" transform=\"rotate(-40 %.1f %.1f)\"", x, y);
		put_text(f, x, y, text, p->place[i]);
	}
}

static void
put_line(FILE *f, const struct bench_plot *p, unsigned s, double min, double max)
{
	bool is_begun = false;
	unsigned i;

	fputs("<path d=\"", f);
	for (i = 0; i < p->n_places; i++) {
		if (!p->point[s][i].is_set)
			continue;
		fprintf(f, "%s%.1f %.1f ", is_begun ? "L" : "M", x_of(p, i, s),
		    y_of(p->point[s][i].y, min, max));
		is_begun = true;
	}
	fputs("\"/>\n", f);
}

static void
put_series(FILE *f, const struct bench_plot *p, unsigned s, double min, double max)
{
	double legend_x = LEFT + STEP * p->n_places + 14, legend_y = TOP + 10 + 20.0 * s;
	unsigned i;

	fprintf(f, "<g stroke=\"%s\" fill=\"none\" stroke-width=\"1.5\">\n", colour(s));
	if (p->is_sweep)
		put_line(f, p, s, min, max);
	for (i = 0; i < p->n_places; i++) {
		const struct point *pt = &p->point[s][i];
		double x = x_of(p, i, s);

		if (!pt->is_set)
			continue;
		fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x,
		    y_of(pt->lo, min, max), x, y_of(pt->hi, min, max));
		fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x,
		    y_of(pt->y, min, max), colour(s));
	}
	fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n</g>\n", legend_x,
	    legend_y, legend_x + 16, legend_y);
	put_text(f, legend_x + 22, legend_y + 4, "", p->series[s]);
}

static void
put_svg(FILE *f, const struct bench_plot *p)
{
	double width = LEFT + STEP * p->n_places + RIGHT, height = TOP + HEIGHT + BOTTOM;
	double min, max;
	unsigned s;

	find_decades(p, &min, &max);
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
	    "font-family=\"sans-serif\" font-size=\"12\">\n"
	    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height);
	put_text(f, LEFT, 24, "font-size=\"15\"", p->title);
	put_text(f, LEFT, TOP - 8, "", p->unit);
	put_axes(f, p, min, max);
	for (s = 0; s < p->n_series; s++)
		put_series(f, p, s, min, max);
	fputs("</svg>\n", f);
}

int
bench_plot_write(struct bench_plot *p)
{
	FILE *f = fopen(p->file, "w");
	int err = f == NULL ? -errno : 0;

	if (f != NULL) {
		put_svg(f, p);
		if (ferror(f))
			err = -EIO;
		if (fclose(f) != 0 && err == 0)
			err = -errno;
	}
	free(p);
	return err;
}
