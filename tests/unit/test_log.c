/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines: levels, cutting, control characters, absent sinks. */
#include <string.h>

#include "support/cmocka_all.h"

#include "base/log.h"

struct capture {
	char line[LOG_LINE_MAX_BYTES];
	int level;
	int lines;
};

static void
keep(void *arg, int level, const char *line)
{
	struct capture *c = arg;

	assert_true(strlen(line) < sizeof(c->line));
	memcpy(c->line, line, strlen(line) + 1);
	c->level = level;
	c->lines++;
}

static void
line_at_the_level_reaches_the_sink(void **state)
{
	struct capture c = { .lines = 0 };
	struct log_sink sink = { .write = keep, .arg = &c, .max_level = LOG_LVL_NOTICE };

	(void)state;
	log_write(&sink, LOG_LVL_NOTICE, "port %d of %s", 3, "eth0");
	assert_int_equal(c.lines, 1);
	assert_int_equal(c.level, LOG_LVL_NOTICE);
	assert_string_equal(c.line, "port 3 of eth0");
}

static void
line_above_the_level_is_dropped(void **state)
{
	struct capture c = { .lines = 0 };
	struct log_sink sink = { .write = keep, .arg = &c, .max_level = LOG_LVL_WARN };

	(void)state;
	log_write(&sink, LOG_LVL_NOTICE, "no");
	assert_int_equal(c.lines, 0);
}

static void
absent_sink_drops_the_line(void **state)
{
	struct log_sink sink = { .write = NULL, .max_level = LOG_LVL_DEBUG };

	(void)state;
	log_write(NULL, LOG_LVL_ERR, "no");
	log_write(&sink, LOG_LVL_ERR, "no");
}

static void
too_long_line_ends_in_dots(void **state)
{
	struct capture c = { .lines = 0 };
	struct log_sink sink = { .write = keep, .arg = &c, .max_level = LOG_LVL_DEBUG };

	(void)state;
	log_write(&sink, LOG_LVL_INFO, "%0600d", 0);
	assert_int_equal(strlen(c.line), LOG_LINE_MAX_BYTES - 1);
	assert_string_equal(c.line + LOG_LINE_MAX_BYTES - 4, "...");
}

static void
control_characters_cannot_forge_a_line(void **state)
{
	struct capture c = { .lines = 0 };
	struct log_sink sink = { .write = keep, .arg = &c, .max_level = LOG_LVL_DEBUG };

	(void)state;
	log_write(&sink, LOG_LVL_INFO, "name %s", "a\nerr: b\x1b\x7f");
	assert_string_equal(c.line, "name a?err: b??");
}

static void
levels_have_names(void **state)
{
	(void)state;
	assert_string_equal(log_level_name(LOG_LVL_ERR), "err");
	assert_string_equal(log_level_name(LOG_LVL_DEBUG), "debug");
	assert_string_equal(log_level_name(LOG_LVL_MAX), "?");
	assert_string_equal(log_level_name(-1), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_at_the_level_reaches_the_sink),
		cmocka_unit_test(line_above_the_level_is_dropped),
		cmocka_unit_test(absent_sink_drops_the_line),
		cmocka_unit_test(too_long_line_ends_in_dots),
		cmocka_unit_test(control_characters_cannot_forge_a_line),
		cmocka_unit_test(levels_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
