/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime/wheel: timers against a sorted model, over all levels, with lazy re-arming and callbacks
 * that change the wheel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "runtime/wheel.h"

#define N_TIMERS	500
#define TICK_US		64

struct probe {
	struct timer t;
	struct time wanted;
	unsigned fired;
	struct time at;
};

static struct time now;
static struct wheel w;
static struct probe probes[N_TIMERS];

static void
on_fire(struct netisr *n, struct timer *t)
{
	struct probe *p = container_of(t, struct probe, t);

	(void)n;
	assert_true(time_reached(now, p->wanted));
	p->fired++;
	p->at = now;
}

static void
arm(struct probe *p, uint64_t in_us)
{
	p->wanted = time_add_us(now, in_us);
	timer_arm(&w, &p->t, p->wanted);
}

static void
reset(uint64_t start_us)
{
	unsigned i;

	now = (struct time){ start_us };
	wheel_init(&w, now);
	memset(probes, 0, sizeof(probes));
	for (i = 0; i < N_TIMERS; i++)
		timer_init(&probes[i].t, on_fire);
}

/*
 * Goes from deadline to deadline until nothing is armed; the wheel may point too early, never too
 * late.
 */
static void
run_out(void)
{
	while (w.armed != 0) {
		struct time next = wheel_next(&w);

		assert_false(time_is_never(next));
		if (time_before(now, next))
			now = next;
		wheel_advance(&w, NULL, now, 1000000);
	}
	assert_true(time_is_never(wheel_next(&w)));
}

static void
timers_at_every_distance_fire_once_and_within_a_tick(void **state)
{
	struct rng r;
	unsigned i;

	(void)state;
	rng_init(&r, 1);
	reset(123456789);
	for (i = 0; i < N_TIMERS; i++)
		arm(&probes[i], rng_u64(&r) & ((UINT64_C(1) << (1 + i % 40)) - 1));
	run_out();
	for (i = 0; i < N_TIMERS; i++) {
		assert_int_equal(probes[i].fired, 1);
		assert_true(time_since_us(probes[i].at, probes[i].wanted) <= TICK_US);
	}
}

static void
a_jump_over_all_deadlines_fires_all(void **state)
{
	unsigned i;

	(void)state;
	reset(0);
	for (i = 0; i < N_TIMERS; i++)
		arm(&probes[i], (uint64_t)i * i * 10000);
	now = time_add_us(now, UINT64_C(3600) * 1000000);
	while (wheel_advance(&w, NULL, now, 7) != 0)
		;
	assert_int_equal(w.armed, 0);
	for (i = 0; i < N_TIMERS; i++)
		assert_int_equal(probes[i].fired, 1);
}

static void
a_deadline_moved_later_fires_at_the_later_moment_only(void **state)
{
	(void)state;
	reset(1000);
	arm(&probes[0], 1000);
	arm(&probes[0], 50000);
	run_out();
	assert_int_equal(probes[0].fired, 1);
	assert_true(time_since_us(probes[0].at, probes[0].wanted) <= TICK_US);
}

static void
a_deadline_moved_earlier_fires_at_the_earlier_moment(void **state)
{
	(void)state;
	reset(1000);
	arm(&probes[0], 5000000);
	arm(&probes[0], 200);
	run_out();
	assert_int_equal(probes[0].fired, 1);
	assert_true(time_since_us(probes[0].at, probes[0].wanted) <= TICK_US);
}

static void
a_disarmed_timer_stays_silent(void **state)
{
	(void)state;
	reset(0);
	arm(&probes[0], 100);
	arm(&probes[1], 100);
	timer_disarm(&w, &probes[0].t);
	timer_disarm(&w, &probes[0].t);
	run_out();
	assert_int_equal(probes[0].fired, 0);
	assert_int_equal(probes[1].fired, 1);
}

static void
on_fire_disarm_others(struct netisr *n, struct timer *t)
{
	unsigned i;

	on_fire(n, t);
	for (i = 0; i < N_TIMERS; i++)
		timer_disarm(&w, &probes[i].t);
}

static void
a_callback_may_disarm_others_of_its_own_slot(void **state)
{
	unsigned i, fired = 0;

	(void)state;
	reset(0);
	for (i = 0; i < 10; i++) {
		timer_init(&probes[i].t, on_fire_disarm_others);
		arm(&probes[i], 100);
	}
	run_out();
	for (i = 0; i < 10; i++)
		fired += probes[i].fired;
	assert_int_equal(fired, 1);
}

static void
on_fire_again(struct netisr *n, struct timer *t)
{
	struct probe *p = container_of(t, struct probe, t);

	on_fire(n, t);
	if (p->fired < 100)
		arm(p, 0);
}

static void
a_callback_that_rearms_itself_for_now_does_not_hang_the_round(void **state)
{
	unsigned rounds = 0;

	(void)state;
	reset(0);
	timer_init(&probes[0].t, on_fire_again);
	arm(&probes[0], 0);
	while (w.armed != 0) {
		assert_true(wheel_advance(&w, NULL, now, 1000) <= 1);
		now = time_add_us(now, TICK_US);
		rounds++;
	}
	assert_int_equal(probes[0].fired, 100);
	assert_true(rounds >= 99);
}

static void
random_arming_and_disarming_agrees_with_a_model(void **state)
{
	struct rng r;
	unsigned step, i;

	(void)state;
	rng_init(&r, 42);
	reset(UINT64_C(1) << 33);
	for (step = 0; step < 200000; step++) {
		struct probe *p = &probes[rng_below(&r, N_TIMERS)];

		switch (rng_below(&r, 4)) {
		case 0:
		case 1:
			p->fired = 0;
			arm(p, rng_u64(&r) >> (24 + rng_below(&r, 40)));
			break;
		case 2:
			timer_disarm(&w, &p->t);
			break;
		default:
			now = time_add_us(now, rng_below(&r, 3000));
			while (wheel_advance(&w, NULL, now, 3) != 0)
				;
			for (i = 0; i < N_TIMERS; i++) {
				if (timer_is_armed(&probes[i].t))
					assert_true(time_since_us(now,
					probes[i].wanted) <= TICK_US);
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_at_every_distance_fire_once_and_within_a_tick),
		cmocka_unit_test(a_jump_over_all_deadlines_fires_all),
		cmocka_unit_test(a_deadline_moved_later_fires_at_the_later_moment_only),
		cmocka_unit_test(a_deadline_moved_earlier_fires_at_the_earlier_moment),
		cmocka_unit_test(a_disarmed_timer_stays_silent),
		cmocka_unit_test(a_callback_may_disarm_others_of_its_own_slot),
		cmocka_unit_test(a_callback_that_rearms_itself_for_now_does_not_hang_the_round),
		cmocka_unit_test(random_arming_and_disarming_agrees_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
