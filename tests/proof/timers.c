/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A million connections' timers in one wheel: each fires once, not early, at most a tick late, and
 * moving them on costs the same as with few.
 */
#include <stdlib.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "runtime/wheel.h"
#include "support/cmocka_all.h"

#define N_TIMERS	1000000u
#define TICK_US		64
#define BUDGET		1024	/* as a round's */
#define LONGEST_US	(UINT64_C(7200) * 1000000)

struct conn_timer {
	struct timer t;
	struct time due;
	uint8_t fired;
};

static struct wheel w;
static struct time now;
static struct conn_timer *conns;
static uint64_t n_fired, n_early, n_late, most_late_us;
static bool is_behind;	/* the budget of the round before was spent: what comes is late for that */

static void
on_fire(struct netisr *n, struct timer *t)
{
	struct conn_timer *c = container_of(t, struct conn_timer, t);

	(void)n;
	c->fired++;
	n_fired++;
	if (time_before(now, c->due))
		n_early++;
	else if (!is_behind && time_since_us(now, c->due) > TICK_US)
		n_late++;
	if (!time_before(now, c->due))
		most_late_us = max_u64(most_late_us, time_since_us(now, c->due));
}

static uint64_t
span_us(struct rng *r)
{
	/* delayed ACK, retransmission, keepalive: what connections have */
	switch (rng_below(r, 3)) {
	case 0:
		return 1 + rng_below(r, 40000);
	case 1:
		return 200000 + rng_below(r, 60000000);
	default:
		return LONGEST_US - rng_below(r, 1000000000);
	}
}

static void
arm(struct conn_timer *c, struct rng *r)
{
	c->due = time_add_us(now, span_us(r));
	timer_arm(&w, &c->t, c->due);
}

static void
run_out(void)
{
	while (w.armed != 0) {
		struct time next = wheel_next(&w);
		unsigned fired;

		assert_false(time_is_never(next));
		now = time_before(now, next) ? next : time_add_us(now, TICK_US);
		is_behind = false;
		do {
			fired = wheel_advance(&w, NULL, now, BUDGET);
			assert_true(fired <= BUDGET);
			is_behind = fired == BUDGET;
		} while (fired == BUDGET);
	}
}

static int
set_up(void **state)
{
	unsigned i;

	(void)state;
	now = (struct time){ 1000000 };
	wheel_init(&w, now);
	conns = calloc(N_TIMERS, sizeof(*conns));
	n_fired = n_early = n_late = most_late_us = 0;
	for (i = 0; conns != NULL && i < N_TIMERS; i++)
		timer_init(&conns[i].t, on_fire);
	return conns == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	free(conns);
	return 0;
}

static void
million_timers_fire_once_each_and_in_time(void **state)
{
	struct rng r;
	unsigned i;

	(void)state;
	rng_init(&r, 4711);
	for (i = 0; i < N_TIMERS; i++)
		arm(&conns[i], &r);
	assert_int_equal(w.armed, N_TIMERS);
	/* every second one is moved, as with each ACK that comes; every tenth stopped */
	for (i = 0; i < N_TIMERS; i += 2)
		arm(&conns[i], &r);
	for (i = 0; i < N_TIMERS; i += 10)
		timer_disarm(&w, &conns[i].t);
	run_out();
	assert_int_equal(n_fired, N_TIMERS - N_TIMERS / 10);
	assert_int_equal(n_early, 0);
	assert_int_equal(n_late, 0);
	for (i = 0; i < N_TIMERS; i++)
		assert_int_equal(conns[i].fired, i % 10 != 0);
}

/* All at one moment: the budget cuts it up, nothing is lost, others are not held up for ever. */
static void
million_timers_of_one_moment_take_many_rounds(void **state)
{
	unsigned i, rounds = 0;

	(void)state;
	for (i = 0; i < N_TIMERS; i++) {
		conns[i].due = time_add_us(now, 3000000);
		timer_arm(&w, &conns[i].t, conns[i].due);
	}
	now = time_add_us(now, 3000000 + TICK_US);
	while (w.armed != 0) {
		unsigned fired = wheel_advance(&w, NULL, now, BUDGET);

		assert_true(fired <= BUDGET && fired > 0);
		/* what is left is due now, so the keeper does not sleep */
		assert_true(w.armed == 0 || time_reached(now, wheel_next(&w)));
		rounds++;
	}
	assert_int_equal(n_fired, N_TIMERS);
	assert_int_equal(n_early, 0);
	assert_true(rounds >= N_TIMERS / BUDGET);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(million_timers_fire_once_each_and_in_time,
		    set_up, tear_down),
		cmocka_unit_test_setup_teardown(million_timers_of_one_moment_take_many_rounds,
		    set_up, tear_down),
	};

	return cmocka_run_group_tests_name("proof timers", tests, NULL, NULL);
}
