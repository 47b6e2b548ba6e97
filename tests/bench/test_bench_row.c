/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/darter/bench_row and bench_plot: what a row prints, as JSON and as a table, and draws. */
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS	5

static const struct bench_def def = { .name = "test" };

/* bench.c has the real one, which is for a terminal. */
void
bench_progress_end(const struct bench_run *r)
{
	(void)r;
}

/* a is three times b; c has no samples. The first round is far off. */
static void
make_row(struct bench_row *row)
{
	unsigned i;

	memset(row, 0, sizeof(*row));
	row->name = "case";
	row->unit = "things/s";
	row->n_variants = 3;
	row->variant[0] = "a";
	row->variant[1] = "b";
	row->variant[2] = "c";
	row->rounds = ROUNDS;
	for (i = 0; i < ROUNDS; i++) {
		row->sample[0][i] = i == 0 ? 1e9 : 300;
		row->sample[1][i] = i == 0 ? 1 : 100;
	}
}

/* What a row prints, into text. */
static void
print_to(struct bench_run *r, const struct bench_row *row, char *text, size_t size)
{
	char name[] = "/tmp/bench-row-XXXXXX";
	int fd = mkstemp(name), saved = dup(1);
	size_t n;
	FILE *f;

	assert_true(fd >= 0 && saved >= 0);
	fflush(stdout);
	dup2(fd, 1);
	bench_row_print(r, row);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	close(fd);
	f = fopen(name, "r");
	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
	unlink(name);
}

static unsigned
lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void
ratio_is_asked_for_then_json_has_it_with_medians_and_counters(void **state)
{
	struct bench_run r = { .def = &def, .o = { .is_json = true } };
	struct bench_row row;
	char text[4096];
	unsigned c;

	(void)state;
	make_row(&row);
	bench_row_ratio(&row, 0, 1);
	c = bench_row_counter(&row, "msgs");
	row.counter[c].v[0] = 2.5;
	print_to(&r, &row, text, sizeof(text));
	assert_string_equal(text, "{\"bench\":\"test\",\"case\":\"case\",\"unit\":\"things/s\","
	    "\"variants\":{\"a\":300,\"b\":100},"
	    "\"ratio\":{\"of\":\"a/b\",\"median\":3.000,\"lo\":3.000,\"hi\":3.000},"
	    "\"pairs\":4,\"counters\":{\"msgs\":{\"a\":2.5}},\"selfcheck\":\"ok\"}\n");
	assert_int_equal(r.n_rows, 1);
}

static void
variant_has_no_samples_then_its_ratios_are_left_out(void **state)
{
	struct bench_run r = { .def = &def, .o = { .is_json = true } };
	struct bench_row row;
	char text[4096];

	(void)state;
	make_row(&row);
	bench_row_ratio(&row, 2, 1);
	bench_row_ratio(&row, 0, 7);	/* no such variant */
	print_to(&r, &row, text, sizeof(text));
	assert_int_equal(lines_of(text), 1);
	assert_non_null(strstr(text, "\"ratio\":null"));
	assert_null(strstr(text, "\"c\":"));
}

static void
several_complaints_then_the_first_one_is_told(void **state)
{
	struct bench_run r = { .def = &def, .o = { .is_json = true } };
	struct bench_row row;
	char text[4096];

	(void)state;
	make_row(&row);
	bench_row_complain(&row, "b", "said \"no\"");
	bench_row_complain(&row, "a", "later");
	print_to(&r, &row, text, sizeof(text));
	assert_non_null(strstr(text, "\"selfcheck\":\"b: said \\\"no\\\"\""));
}

static void
one_round_only_then_there_is_no_row(void **state)
{
	struct bench_run r = { .def = &def };
	struct bench_row row;
	char text[4096];

	(void)state;
	make_row(&row);
	row.rounds = 1;
	print_to(&r, &row, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(r.n_rows, 0);
}

static void
table_then_it_has_variants_ratio_and_selfcheck(void **state)
{
	struct bench_run r = { .def = &def };
	struct bench_row row;
	char text[4096];

	(void)state;
	make_row(&row);
	bench_row_ratio(&row, 0, 1);
	print_to(&r, &row, text, sizeof(text));
	assert_non_null(strstr(text, "self-check: ok"));
	assert_non_null(strstr(text, "a/b"));
	assert_non_null(strstr(text, "3.000 [3.000-3.000]  4 pairs"));
}

static unsigned
count_of(const char *text, const char *word)
{
	unsigned n = 0;

	for (text = strstr(text, word); text != NULL; text = strstr(text + 1, word))
		n++;
	return n;
}

static void
read_file(const char *name, char *text, size_t size)
{
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
	unlink(name);
}

static void
rows_are_drawn_then_medians_are_points_and_other_units_are_not(void **state)
{
	struct bench_run r = { .def = &def, .o = { .is_json = true } };
	char name[] = "/tmp/bench-plot-XXXXXX";
	int fd = mkstemp(name);
	static char text[16384];
	struct bench_row row;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	r.plot = bench_plot_new(name, "a < b & c", true);
	make_row(&row);
	print_to(&r, &row, text, sizeof(text));
	row.name = "other";
	print_to(&r, &row, text, sizeof(text));
	row.unit = "us";
	print_to(&r, &row, text, sizeof(text));
	assert_int_equal(bench_plot_write(r.plot), 0);
	read_file(name, text, sizeof(text));
	assert_int_equal(count_of(text, "<circle"), 4);
	assert_int_equal(count_of(text, "<path"), 2);
	assert_non_null(strstr(text, "a &lt; b &amp; c"));
	assert_non_null(strstr(text, "</svg>"));
	assert_null(strstr(text, "nan"));
}

static void
nothing_to_draw_then_the_file_is_still_a_whole_one(void **state)
{
	char name[] = "/tmp/bench-plot-XXXXXX";
	int fd = mkstemp(name);
	static char text[16384];

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(bench_plot_write(bench_plot_new(name, "empty", false)), 0);
	read_file(name, text, sizeof(text));
	assert_non_null(strstr(text, "</svg>"));
	assert_null(strstr(text, "nan"));
	assert_true(bench_plot_write(bench_plot_new("/nonexistent/x.svg", "", false)) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ratio_is_asked_for_then_json_has_it_with_medians_and_counters),
		cmocka_unit_test(variant_has_no_samples_then_its_ratios_are_left_out),
		cmocka_unit_test(several_complaints_then_the_first_one_is_told),
		cmocka_unit_test(one_round_only_then_there_is_no_row),
		cmocka_unit_test(table_then_it_has_variants_ratio_and_selfcheck),
		cmocka_unit_test(rows_are_drawn_then_medians_are_points_and_other_units_are_not),
		cmocka_unit_test(nothing_to_draw_then_the_file_is_still_a_whole_one),
	};

	return cmocka_run_group_tests_name("bench_row", tests, NULL, NULL);
}
