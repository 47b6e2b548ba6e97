/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of every script program: runs each registered script on both wraps, and on two netisrs,
 * under cmocka. The argument is a filter ("*fin*"); a test's name is "script_name 2^32" or the
 * like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/record.h"
#include "support/script.h"
#include "support/script_priv.h"

static const struct {
	const char *name;
	uint32_t wrap;
	unsigned netisrs;	/* frames then come in on the first one's queue and are steered */
} variants[] = {
	{ "2^32", 0, 0 },
	{ "2^31", UINT32_C(1) << 31, 0 },
	{ "two netisrs", 0, 2 },
};

struct run {
	unsigned script;
	unsigned variant;
	struct script *s;
};

static int
set_up(void **state)
{
	struct run *r = *state;

	r->s = NULL;
	return 0;
}

static int
tear_down(void **state)
{
	struct run *r = *state;

	if (r->s != NULL)
		script_discard(r->s);
	r->s = NULL;
	return 0;
}

static void
run_one(void **state)
{
	struct run *r = *state;

	r->s = script_begin(r->script, variants[r->variant].name, variants[r->variant].wrap,
	    variants[r->variant].netisrs);
	record_begin(r->s);
	script_run(r->s, r->script);
	record_end(r->s);
	script_end(r->s);
}

/* The runs of all scripts; returns how many there are. */
static unsigned
plan(struct CMUnitTest *tests, struct run *runs)
{
	unsigned script, variant, n = 0;
	char name[160];

	for (script = 0; script < script_count(); script++)
		for (variant = 0; variant < ARRAY_LEN(variants); variant++) {
			if (variants[variant].netisrs != 0 && script_netisrs(script) != 0)
				continue;
			runs[n] = (struct run){ .script = script, .variant = variant };
			snprintf(name, sizeof(name), "%s %s", script_name(script),
			    variants[variant].name);
			tests[n].name = strdup(name);
			tests[n].test_func = run_one;
			tests[n].setup_func = set_up;
			tests[n].teardown_func = tear_down;
			tests[n].initial_state = &runs[n];
			n++;
		}
	return n;
}

int
main(int argc, char **argv)
{
	unsigned max = script_count() * (unsigned)ARRAY_LEN(variants), n, i;
	struct CMUnitTest *tests = calloc(max, sizeof(*tests));
	struct run *runs = calloc(max, sizeof(*runs));
	const char *group = strrchr(argv[0], '/');
	int rc;

	if (tests == NULL || runs == NULL)
		return 1;
	n = plan(tests, runs);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	rc = _cmocka_run_group_tests(group != NULL ? group + 1 : argv[0], tests, n, NULL, NULL);
	for (i = 0; i < n; i++)
		free((void *)(uintptr_t)tests[i].name);
	free(tests);
	free(runs);
	return rc;
}
