/* SPDX-License-Identifier: BSD-2-Clause */
/* runtime/sockhalf.h: what an application may see of the state while the holder changes it. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <string.h>

#include "runtime/sockhalf.h"

#define STEPS	1000000

static struct sockhalf half;
static _Atomic bool is_over;

static void *
change_state(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < STEPS; i++) {
		sockhalf_set(&half, SH_CONNECTED, SH_CONNECTING);
		sockhalf_set(&half, SH_CONNECTING, SH_CONNECTED);
	}
	atomic_store(&is_over, true);
	return NULL;
}

/*
 * A connect that waits asks whether the attempt is still under way: between "connecting" and
 * "connected" there must be no moment that is neither, or it would report a failure.
 */
static void
attempt_ends_then_no_state_between_is_seen(void **state)
{
	uint32_t neither = 0, both = 0, seen;
	pthread_t holder;

	(void)state;
	memset(&half, 0, sizeof(half));
	sockhalf_set(&half, SH_CONNECTING | SH_BOUND, 0);
	assert_int_equal(pthread_create(&holder, NULL, change_state, NULL), 0);
	while (!atomic_load(&is_over)) {
		seen = sockhalf_state(&half) & (SH_CONNECTING | SH_CONNECTED);
		neither += seen == 0;
		both += seen == (SH_CONNECTING | SH_CONNECTED);
	}
	pthread_join(holder, NULL);
	assert_int_equal(neither, 0);
	assert_int_equal(both, 0);
	assert_true(sockhalf_state(&half) & SH_BOUND);	/* what was not named stays */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempt_ends_then_no_state_between_is_seen),
	};

	return cmocka_run_group_tests_name("sockhalf", tests, NULL, NULL);
}
