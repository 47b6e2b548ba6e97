/* SPDX-License-Identifier: BSD-2-Clause */
/* The bare device loop, through the public call, between two stacks over the memory cable. */
#include <darter/stats.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "support/cmocka_all.h"

struct end {
	struct darter_stack *s;
	struct darter_link_rate rate;
	int rc;
};

static struct end tx, rx;

static struct darter_stack *
open_end(const char *addr)
{
	char ip[64], err[DARTER_ERR_MAX] = "";
	const char *over[] = { "port.p0.device=pair:rate", ip, "stack.memory=heap",
		"stack.packets=4096", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };
	struct darter_stack *s;

	snprintf(ip, sizeof(ip), "port.p0.addr=%s/24", addr);
	s = darter_open(&o, err, sizeof(err));
	if (s == NULL)
		fail_msg("%s", err);
	return s;
}

static void *
run_end(void *arg)
{
	struct end *e = arg;

	e->rc = darter_link_rate(e->s, "p0", &e->rate);
	return NULL;
}

/* The receiver is there before and after the sender. */
static void
run_both(void)
{
	pthread_t thread;

	rx.rate = (struct darter_link_rate){ .ms = 300 };
	tx.rate = (struct darter_link_rate){ .ms = 50, .sends = true };
	assert_int_equal(pthread_create(&thread, NULL, run_end, &rx), 0);
	run_end(&tx);
	pthread_join(thread, NULL);
	assert_int_equal(tx.rc, 0);
	assert_int_equal(rx.rc, 0);
}

static uint64_t
counter(struct darter_stack *s, const char *name)
{
	uint64_t v = 0;

	assert_int_equal(darter_counter_get(s, name, &v), 0);
	return v;
}

static void
frames_that_one_end_sends_are_counted_at_the_other(void **state)
{
	unsigned i;

	(void)state;
	tx.s = open_end("10.9.0.1");
	rx.s = open_end("10.9.0.2");
	run_both();
	assert_true(tx.rate.pkts > 100);
	assert_true(tx.rate.elapsed_us > 0);
	/* what passes outside of the receiver's time comes to the stack, which has no use for it */
	for (i = 0; i < 10000 &&
	    rx.rate.pkts + counter(rx.s, "drop_ether_proto") != tx.rate.pkts; i++)
		usleep(1000);
	assert_int_equal(rx.rate.pkts + counter(rx.s, "drop_ether_proto"), tx.rate.pkts);
	assert_int_equal(counter(tx.s, "drop_pkt_nomem"), 0);
	darter_stack_close(tx.s);
	darter_stack_close(rx.s);
}

/* Nobody is at the other end: the loop ends all the same. */
static void
device_that_takes_nothing_ends_the_loop_and_keeps_no_packet(void **state)
{
	(void)state;
	tx.s = open_end("10.9.0.1");
	tx.rate = (struct darter_link_rate){ .ms = 20, .sends = true };
	run_end(&tx);
	assert_int_equal(tx.rc, 0);
	darter_stack_close(tx.s);
}

static void
wrong_arguments_are_refused(void **state)
{
	struct darter_link_rate r = { .ms = 10 };

	(void)state;
	assert_int_equal(darter_link_rate(NULL, "p0", &r), -ENETDOWN);
	tx.s = open_end("10.9.0.1");
	assert_int_equal(darter_link_rate(tx.s, "p9", &r), -ENODEV);
	assert_int_equal(darter_link_rate(tx.s, "lo", &r), -EOPNOTSUPP);
	r.ms = 0;
	assert_int_equal(darter_link_rate(tx.s, "p0", &r), -EINVAL);
	r.ms = 2001;
	assert_int_equal(darter_link_rate(tx.s, "p0", &r), -EINVAL);
	darter_stack_close(tx.s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_one_end_sends_are_counted_at_the_other),
		cmocka_unit_test(device_that_takes_nothing_ends_the_loop_and_keeps_no_packet),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
