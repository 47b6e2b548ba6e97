/* SPDX-License-Identifier: BSD-2-Clause */
/* runtime/msgrate.c: every message is handled, once; a pause lets the netisr sleep. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <darter/stats.h>

static struct darter_stack *
open_stack(const char *more)
{
	const char *over[] = { "stack.netisrs=2", more, NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over,
		.conf_file = "/dev/null" };
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = darter_open(&o, err, sizeof(err));

	if (s == NULL)
		fprintf(stderr, "%s\n", err);
	assert_non_null(s);
	return s;
}

static uint64_t
counter(const char *name)
{
	uint64_t v = 0;

	assert_int_equal(darter_counter_get(NULL, name, &v), 0);
	return v;
}

/* The batches' last one is short, too. */
static void
messages_are_sent_then_each_is_handled_once(void **state)
{
	struct darter_stack *s = open_stack("sysctl.net.isr.borrow=never");
	struct darter_msg_rate rate = { .count = 1000, .batch = 7 };
	struct darter_netisr_stats before, after;

	(void)state;
	assert_int_equal(darter_netisr_stats(s, 1, &before), 0);
	assert_int_equal(darter_msg_rate(s, 1, &rate), 0);
	assert_int_equal(darter_netisr_stats(s, 1, &after), 0);
	assert_int_equal(after.msgs - before.msgs, 1000);
	assert_true(rate.elapsed_ns > 0);
	darter_stack_close(s);
}

static void
netisr_may_be_borrowed_then_messages_are_sent_all_the_same(void **state)
{
	struct darter_stack *s = open_stack("sysctl.net.isr.borrow=idle");
	struct darter_msg_rate rate = { .count = 64, .batch = 1 };
	uint64_t borrows = counter("borrows"), msgs = counter("msgs");

	(void)state;
	assert_int_equal(darter_msg_rate(s, 0, &rate), 0);
	assert_int_equal(counter("borrows"), borrows);
	assert_true(counter("msgs") - msgs >= 64);
	darter_stack_close(s);
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Ten pauses are 200 ms, which are not part of the time. */
static void
pauses_are_made_then_the_netisr_sleeps_and_they_do_not_count(void **state)
{
	struct darter_stack *s = open_stack("sysctl.net.isr.borrow=never");
	struct darter_msg_rate rate = { .count = 10, .batch = 1, .pause_us = 20000 };
	uint64_t bells = counter("doorbells"), start = now_ns();

	(void)state;
	assert_int_equal(darter_msg_rate(s, 0, &rate), 0);
	assert_true(now_ns() - start >= rate.elapsed_ns + 200000000);
	assert_in_range(counter("doorbells") - bells, 1, 10);
	darter_stack_close(s);
}

static void
numbers_are_wrong_then_einval(void **state)
{
	static const struct darter_msg_rate wrong[] = {
		{ .count = 0, .batch = 1 },
		{ .count = 1000001, .batch = 1 },
		{ .count = 1, .batch = 0 },
		{ .count = 1, .batch = 65 },
		{ .count = 1, .batch = 1, .pause_us = 100001 },
	};
	struct darter_stack *s = open_stack(NULL);
	struct darter_msg_rate rate;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		rate = wrong[i];
		assert_int_equal(darter_msg_rate(s, 0, &rate), -EINVAL);
	}
	rate = (struct darter_msg_rate){ .count = 1, .batch = 1 };
	assert_int_equal(darter_msg_rate(s, 2, &rate), -EINVAL);
	darter_stack_close(s);
	assert_int_equal(darter_msg_rate(NULL, 0, &rate), -ENETDOWN);
}

/* Nobody might answer. */
static void
caller_is_attached_or_threads_are_manual_then_refused(void **state)
{
	struct darter_msg_rate rate = { .count = 1, .batch = 1 };
	struct darter_stack *s = open_stack(NULL);

	(void)state;
	assert_int_equal(darter_attach(s, 0), 0);
	assert_int_equal(darter_msg_rate(s, 1, &rate), -EDEADLK);
	assert_int_equal(darter_detach(), 0);
	assert_int_equal(darter_msg_rate(s, 1, &rate), 0);
	darter_stack_close(s);
	s = open_stack("stack.threads=manual");
	assert_int_equal(darter_msg_rate(s, 0, &rate), -EOPNOTSUPP);
	darter_stack_close(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_sent_then_each_is_handled_once),
		cmocka_unit_test(netisr_may_be_borrowed_then_messages_are_sent_all_the_same),
		cmocka_unit_test(pauses_are_made_then_the_netisr_sleeps_and_they_do_not_count),
		cmocka_unit_test(numbers_are_wrong_then_einval),
		cmocka_unit_test(caller_is_attached_or_threads_are_manual_then_refused),
	};

	return cmocka_run_group_tests_name("msgrate", tests, NULL, NULL);
}
