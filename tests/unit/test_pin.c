/* SPDX-License-Identifier: BSD-2-Clause */
/* socket/pin.c: the user word, alone and under threads that enter while one closes. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "support/cmocka_all.h"

#include "socket/pin.h"

static void
enter_takes_bits_and_leave_gives_them_back(void **state)
{
	_Atomic uint32_t user = USER_CLOSING;

	(void)state;
	pin_open(&user);
	assert_int_equal(pin_enter(&user, USER_RX_BUSY), 0);
	assert_int_equal(pin_enter(&user, USER_RX_BUSY), -EBUSY);
	assert_int_equal(pin_enter(&user, USER_TX_BUSY), 0);
	assert_int_equal(pin_leave(&user, USER_RX_BUSY), PIN_LEFT_NOTHING);
	assert_int_equal(pin_enter(&user, USER_RX_BUSY), 0);
	assert_int_equal(pin_leave(&user, USER_RX_BUSY), PIN_LEFT_NOTHING);
	assert_int_equal(pin_leave(&user, USER_TX_BUSY), PIN_LEFT_NOTHING);
	assert_int_equal(user, 0);
}

static void
object_at_rest_lets_nobody_in(void **state)
{
	_Atomic uint32_t user = USER_CLOSING;

	(void)state;
	assert_int_equal(pin_enter(&user, 0), -EBADF);
	assert_int_equal(user, USER_CLOSING);
}

static void
waiter_that_announces_itself_makes_the_holder_wake(void **state)
{
	_Atomic uint32_t user = 0;

	(void)state;
	assert_int_equal(pin_enter(&user, USER_TX_BUSY), 0);
	assert_int_equal(pin_enter(&user, 0), 0);
	assert_int_equal(pin_take(&user, USER_TX_BUSY, false), -EBUSY);
	assert_int_equal(pin_give(&user, 0), PIN_LEFT_NOTHING);
	assert_int_equal(pin_take(&user, USER_TX_BUSY, true), -EBUSY);
	assert_int_equal(pin_leave(&user, USER_TX_BUSY), PIN_LEFT_WAKE);
	assert_int_equal(pin_take(&user, USER_TX_BUSY, true), 0);
	assert_int_equal(pin_leave(&user, USER_TX_BUSY), PIN_LEFT_NOTHING);
	assert_int_equal(user, 0);
}

static void
last_one_out_of_a_closing_object_finishes_it(void **state)
{
	_Atomic uint32_t user = 0;

	(void)state;
	assert_int_equal(pin_enter(&user, USER_RX_BUSY), 0);
	pin_close(&user);
	assert_int_equal(pin_enter(&user, 0), -EBADF);
	assert_int_equal(pin_leave(&user, 0), PIN_LEFT_NOTHING);	/* the closer */
	assert_int_equal(pin_leave(&user, USER_RX_BUSY), PIN_LEFT_LAST);
	assert_int_equal(user, USER_CLOSING);
}

static void
idle_object_is_grabbed_without_a_user(void **state)
{
	const uint32_t both = USER_RX_BUSY | USER_TX_BUSY;
	_Atomic uint32_t user = 0;

	(void)state;
	assert_true(pin_grab_idle(&user, both));
	assert_false(pin_grab_idle(&user, both));
	assert_int_equal(pin_enter(&user, USER_RX_BUSY), -EBUSY);
	assert_int_equal(pin_enter(&user, 0), 0);
	assert_int_equal(pin_take(&user, USER_RX_BUSY, true), -EBUSY);
	assert_true(pin_drop_idle(&user, both));
	assert_int_equal(pin_take(&user, USER_RX_BUSY, true), 0);
	assert_false(pin_grab_idle(&user, both));
	pin_leave(&user, USER_RX_BUSY);
	/* a close under the holder is finished by the closer */
	assert_true(pin_grab_idle(&user, both));
	pin_close(&user);
	assert_int_equal(pin_leave(&user, 0), PIN_LEFT_LAST);
	assert_false(pin_drop_idle(&user, both));
	assert_int_equal(user, USER_CLOSING);
	assert_false(pin_grab_idle(&user, both));
}

/* Threads enter, copy (a counter that only RX_BUSY guards), leave; one closes in between. */
struct race {
	_Atomic uint32_t user;
	_Atomic int finished;
	_Atomic int late;		/* entered after it was finished */
	int guarded;
	_Atomic int entered;
};

static void
leave(struct race *r, uint32_t bits)
{
	if (pin_leave(&r->user, bits) == PIN_LEFT_LAST)
		atomic_fetch_add(&r->finished, 1);
}

static void *
user_main(void *arg)
{
	struct race *r = arg;

	for (;;) {
		int err = pin_enter(&r->user, USER_RX_BUSY);

		if (err == -EBADF)
			return NULL;
		if (err == -EBUSY) {
			sched_yield();
			continue;
		}
		if (atomic_load(&r->finished) != 0)
			atomic_fetch_add(&r->late, 1);
		r->guarded++;
		atomic_fetch_add(&r->entered, 1);
		leave(r, USER_RX_BUSY);
	}
}

static void
close_under_threads_finishes_exactly_once(void **state)
{
	unsigned round, i;

	(void)state;
	for (round = 0; round < 200; round++) {
		struct race r = { .user = 0 };
		pthread_t t[3];

		for (i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&t[i], NULL, user_main, &r), 0);
		while (atomic_load(&r.entered) < (int)(round % 50))
			sched_yield();
		pin_close(&r.user);
		leave(&r, 0);
		for (i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		assert_int_equal(r.finished, 1);
		assert_int_equal(r.late, 0);
		assert_int_equal(r.guarded, r.entered);
		assert_int_equal(r.user, USER_CLOSING);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enter_takes_bits_and_leave_gives_them_back),
		cmocka_unit_test(object_at_rest_lets_nobody_in),
		cmocka_unit_test(waiter_that_announces_itself_makes_the_holder_wake),
		cmocka_unit_test(last_one_out_of_a_closing_object_finishes_it),
		cmocka_unit_test(idle_object_is_grabbed_without_a_user),
		cmocka_unit_test(close_under_threads_finishes_exactly_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
