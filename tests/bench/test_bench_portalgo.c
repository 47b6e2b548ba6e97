/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/darter/bench_portalgo: emulated ways give each free port once, and search as they say. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <string.h>

#include "bench.h"

#define FIRST	1000
#define COUNT	64

static const enum bench_portalgo algos[] = { BENCH_PORT_GLOBAL, BENCH_PORT_EVENODD };

static void
range_is_taken_then_each_port_came_once_and_no_more_come(void **state)
{
	bool seen[COUNT];
	uint64_t probes = 0;
	unsigned a, i;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(algos); a++) {
		struct bench_portset *p = bench_portset_new(algos[a], FIRST, COUNT, 2);

		assert_non_null(p);
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < COUNT; i++) {
			uint16_t port = bench_portset_take(p, 1, &probes);

			assert_in_range(port, FIRST, FIRST + COUNT - 1);
			assert_false(seen[port - FIRST]);
			seen[port - FIRST] = true;
		}
		assert_int_equal(bench_portset_take(p, 1, &probes), 0);
		bench_portset_free(p);
	}
}

static void
port_is_given_back_then_it_is_the_one_that_comes(void **state)
{
	uint64_t probes = 0;
	unsigned a;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(algos); a++) {
		struct bench_portset *p = bench_portset_new(algos[a], FIRST, COUNT, 2);

		assert_int_equal(bench_portset_fill(p, 0, COUNT), COUNT);
		bench_portset_put(p, 0, FIRST + 17);
		assert_int_equal(bench_portset_take(p, 0, &probes), FIRST + 17);
		assert_int_equal(bench_portset_take(p, 0, &probes), 0);
		bench_portset_free(p);
	}
}

static void
one_destination_is_full_then_another_is_not(void **state)
{
	uint64_t probes = 0;
	unsigned a;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(algos); a++) {
		struct bench_portset *p = bench_portset_new(algos[a], FIRST, COUNT, 2);

		bench_portset_fill(p, 0, COUNT);
		probes = 0;
		assert_int_not_equal(bench_portset_take(p, 1, &probes), 0);
		assert_int_equal(probes, 1);
		bench_portset_free(p);
	}
}

/* The cliff: past the even ports each draw looks at all of them first. */
static void
even_ports_are_spent_then_a_draw_looks_at_all_of_them(void **state)
{
	struct bench_portset *p = bench_portset_new(BENCH_PORT_EVENODD, FIRST, COUNT, 1);
	uint64_t probes = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < COUNT / 2; i++)
		assert_int_equal((bench_portset_take(p, 0, &probes) - FIRST) % 2, 0);
	probes = 0;
	assert_int_equal((bench_portset_take(p, 0, &probes) - FIRST) % 2, 1);
	assert_in_range(probes, COUNT / 2 + 1, COUNT);
	bench_portset_free(p);
}

static void
filled_in_one_go_then_even_ports_went_first(void **state)
{
	struct bench_portset *p = bench_portset_new(BENCH_PORT_EVENODD, FIRST, COUNT, 1);
	uint64_t probes = 0;

	(void)state;
	bench_portset_fill(p, 0, COUNT / 2);
	assert_int_equal((bench_portset_take(p, 0, &probes) - FIRST) % 2, 1);
	bench_portset_free(p);
}

static void
rover_comes_round_then_it_searches_past_what_is_used(void **state)
{
	struct bench_portset *p = bench_portset_new(BENCH_PORT_GLOBAL, FIRST, COUNT, 1);
	uint64_t probes = 0;

	(void)state;
	bench_portset_fill(p, 0, COUNT - 1);	/* the last one is free */
	assert_int_equal(bench_portset_take(p, 0, &probes), FIRST + COUNT - 1);
	assert_int_equal(probes, COUNT);
	bench_portset_free(p);
}

struct taker {
	struct bench_portset *p;
	_Atomic unsigned *taken;	/* by port */
};

static void *
take_half(void *arg)
{
	struct taker *t = arg;
	uint64_t probes = 0;
	unsigned i;

	for (i = 0; i < COUNT / 2; i++)
		atomic_fetch_add(&t->taken[bench_portset_take(t->p, 0, &probes) - FIRST], 1);
	return NULL;
}

static void
two_threads_take_at_once_then_no_port_is_given_twice(void **state)
{
	unsigned a, i;

	(void)state;
	for (a = 0; a < ARRAY_SIZE(algos); a++) {
		_Atomic unsigned taken[COUNT] = { 0 };
		struct taker t = { bench_portset_new(algos[a], FIRST, COUNT, 1), taken };
		pthread_t other;

		assert_int_equal(pthread_create(&other, NULL, take_half, &t), 0);
		take_half(&t);
		pthread_join(other, NULL);
		for (i = 0; i < COUNT; i++)
			assert_int_equal(taken[i], 1);
		bench_portset_free(t.p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_is_taken_then_each_port_came_once_and_no_more_come),
		cmocka_unit_test(port_is_given_back_then_it_is_the_one_that_comes),
		cmocka_unit_test(one_destination_is_full_then_another_is_not),
		cmocka_unit_test(even_ports_are_spent_then_a_draw_looks_at_all_of_them),
		cmocka_unit_test(filled_in_one_go_then_even_ports_went_first),
		cmocka_unit_test(rover_comes_round_then_it_searches_past_what_is_used),
		cmocka_unit_test(two_threads_take_at_once_then_no_port_is_given_twice),
	};

	return cmocka_run_group_tests_name("bench_portalgo", tests, NULL, NULL);
}
