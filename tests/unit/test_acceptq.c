/* SPDX-License-Identifier: BSD-2-Clause */
/* transport/acceptq: the limit over all lanes, order within a lane, own lane first, two threads. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "transport/acceptq.h"

/* The queue never looks inside a sockhalf: any address will do. */
static struct sockhalf *
child(uintptr_t i)
{
	return (struct sockhalf *)(i << 6);
}

/* Linux: a backlog of n queues n + 1. */
static void
backlog_of_n_then_n_plus_one_are_queued(void **state)
{
	struct acceptq *q = acceptq_new(2, 3);
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_false(acceptq_is_full(q));
		assert_true(acceptq_put(q, i % 2, child(i + 1)));
	}
	assert_true(acceptq_is_full(q));
	assert_false(acceptq_put(q, 0, child(9)));
	assert_int_equal(acceptq_count(q), 4);
	assert_ptr_equal(acceptq_get(q, 0), child(1));
	assert_true(acceptq_put(q, 0, child(9)));
	acceptq_free(q);
}

static void
backlog_zero_then_one_is_queued(void **state)
{
	struct acceptq *q = acceptq_new(1, 0);

	(void)state;
	assert_null(acceptq_get(q, 0));
	assert_true(acceptq_put(q, 0, child(1)));
	assert_false(acceptq_put(q, 0, child(2)));
	assert_ptr_equal(acceptq_get(q, 0), child(1));
	assert_null(acceptq_get(q, 0));
	acceptq_free(q);
}

static void
own_lane_has_children_then_they_come_first_and_in_order(void **state)
{
	struct acceptq *q = acceptq_new(3, 10);

	(void)state;
	acceptq_put(q, 0, child(1));
	acceptq_put(q, 2, child(2));
	acceptq_put(q, 2, child(3));
	assert_ptr_equal(acceptq_get(q, 2), child(2));
	assert_ptr_equal(acceptq_get(q, 2), child(3));
	assert_ptr_equal(acceptq_get(q, 2), child(1));
	assert_null(acceptq_get(q, 2));
	assert_int_equal(acceptq_count(q), 0);
	acceptq_free(q);
}

static void
own_lane_is_empty_then_the_longest_other_is_taken_from(void **state)
{
	struct acceptq *q = acceptq_new(4, 10);

	(void)state;
	acceptq_put(q, 1, child(1));
	acceptq_put(q, 2, child(2));
	acceptq_put(q, 2, child(3));
	acceptq_put(q, 2, child(4));
	acceptq_put(q, 3, child(5));
	acceptq_put(q, 3, child(6));
	assert_ptr_equal(acceptq_get(q, 0), child(2));
	/* two each: in turn, from where it was last taken */
	assert_ptr_equal(acceptq_get(q, 0), child(5));
	assert_ptr_equal(acceptq_get(q, 0), child(3));
	assert_ptr_equal(acceptq_get(q, 3), child(6));
	assert_ptr_equal(acceptq_get(q, 3), child(1));
	assert_ptr_equal(acceptq_get(q, 3), child(4));
	assert_null(acceptq_get(q, 3));
	acceptq_free(q);
}

static void
end_of_a_listener_then_each_netisr_empties_its_own_lane(void **state)
{
	struct acceptq *q = acceptq_new(2, 10);

	(void)state;
	acceptq_put(q, 0, child(1));
	acceptq_put(q, 1, child(2));
	assert_ptr_equal(acceptq_get_own(q, 1), child(2));
	assert_null(acceptq_get_own(q, 1));
	assert_int_equal(acceptq_count(q), 1);
	assert_ptr_equal(acceptq_get_own(q, 0), child(1));
	assert_int_equal(acceptq_count(q), 0);
	acceptq_free(q);
}

static void
own_lane_is_empty_then_lanes_of_one_length_are_taken_in_turn(void **state)
{
	struct acceptq *q = acceptq_new(4, 10);

	(void)state;
	acceptq_put(q, 1, child(1));
	acceptq_put(q, 1, child(2));
	acceptq_put(q, 3, child(3));
	acceptq_put(q, 3, child(4));
	assert_ptr_equal(acceptq_get(q, 0), child(1));
	assert_ptr_equal(acceptq_get(q, 0), child(3));
	assert_ptr_equal(acceptq_get(q, 0), child(2));
	assert_ptr_equal(acceptq_get(q, 0), child(4));
	acceptq_free(q);
}

static void
backlog_lowered_then_new_children_are_refused_and_old_ones_kept(void **state)
{
	struct acceptq *q = acceptq_new(1, 8);
	unsigned i;

	(void)state;
	for (i = 1; i <= 5; i++)
		assert_true(acceptq_put(q, 0, child(i)));
	atomic_store(&q->backlog, 2);
	assert_false(acceptq_put(q, 0, child(6)));
	for (i = 1; i <= 5; i++)
		assert_ptr_equal(acceptq_get(q, 0), child(i));
	acceptq_free(q);
}

static void
backlog_raised_past_the_lane_then_the_lane_bounds_it(void **state)
{
	struct acceptq *q = acceptq_new(1, 1);
	unsigned put = 0;

	(void)state;
	atomic_store(&q->backlog, 1000);
	while (acceptq_put(q, 0, child(put + 1)))
		put++;
	assert_int_equal(put, q->lane_size);
	assert_int_equal(acceptq_count(q), put);
	acceptq_free(q);
}

static void
backlog_too_large_then_it_is_clamped(void **state)
{
	struct acceptq *q = acceptq_new(1, 4000000);

	(void)state;
	assert_int_equal(atomic_load(&q->backlog), ACCEPTQ_MAX);
	acceptq_free(q);
}

#define THREAD_CHILDREN	100000u

static void *
produce(void *arg)
{
	struct acceptq *q = arg;
	uintptr_t i;

	for (i = 1; i <= THREAD_CHILDREN; i++)
		while (!acceptq_put(q, 1, child(i)))
			sched_yield();
	return NULL;
}

static void
producer_and_consumer_on_two_threads_then_nothing_is_lost_or_reordered(void **state)
{
	struct acceptq *q = acceptq_new(2, 16);
	struct sockhalf *sh;
	uintptr_t next = 1;
	unsigned wrong = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, produce, q), 0);
	while (next <= THREAD_CHILDREN) {
		sh = acceptq_get(q, 0);
		if (sh == NULL) {
			sched_yield();
			continue;
		}
		wrong += sh != child(next);
		next++;
	}
	pthread_join(t, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(acceptq_count(q), 0);
	acceptq_free(q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backlog_of_n_then_n_plus_one_are_queued),
		cmocka_unit_test(backlog_zero_then_one_is_queued),
		cmocka_unit_test(own_lane_has_children_then_they_come_first_and_in_order),
		cmocka_unit_test(own_lane_is_empty_then_the_longest_other_is_taken_from),
		cmocka_unit_test(end_of_a_listener_then_each_netisr_empties_its_own_lane),
		cmocka_unit_test(own_lane_is_empty_then_lanes_of_one_length_are_taken_in_turn),
		cmocka_unit_test(backlog_lowered_then_new_children_are_refused_and_old_ones_kept),
		cmocka_unit_test(backlog_raised_past_the_lane_then_the_lane_bounds_it),
		cmocka_unit_test(backlog_too_large_then_it_is_clamped),
		cmocka_unit_test(
		    producer_and_consumer_on_two_threads_then_nothing_is_lost_or_reordered),
	};

	return cmocka_run_group_tests_name("acceptq", tests, NULL, NULL);
}
