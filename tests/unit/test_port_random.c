/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port: the ports of 100,000 connects look drawn by chance to who does not see them (RFC
 * 6056): chi-square over the range, serial correlation, guesses. Seeds are fixed, so that a bound
 * which holds today holds always; each is where a truly random sequence would fail less than once
 * in ten thousand seeds.
 */
#include "unit/port_rig.h"

#include <math.h>

#define DRAWS	100000u
#define BINS	64u

static uint16_t drawn[DRAWS];

/* One connect to destination `dest` that is over at once. */
static uint16_t
connect_once(struct netisr *n, unsigned dest)
{
	struct tuple t = tup(LOCAL, 0, PEER + dest, 443);

	assert_int_equal(rig_draw(n, &t, NULL), 0);
	port_lower(n, &t, 0);
	port_freed(n, &t);
	return t.lport;
}

static void
draw_all(struct darter_stack *s, unsigned dests)
{
	unsigned i;

	for (i = 0; i < DRAWS; i++)
		drawn[i] = connect_once(s->netisr[i / dests % s->n_netisrs], i % dests);
}

/* Over BINS equal parts of the range; 63 degrees of freedom: above 114 once in 10,000. */
static double
chi_square(void)
{
	double expect = (double)DRAWS / BINS, sum = 0;
	unsigned count[BINS] = { 0 }, i;

	for (i = 0; i < DRAWS; i++)
		count[(drawn[i] - FIRST) * BINS / COUNT]++;
	for (i = 0; i < BINS; i++)
		sum += (count[i] - expect) * (count[i] - expect) / expect;
	return sum;
}

/* Correlation of each port with the one `lag` draws later; sigma is 1 / sqrt(DRAWS). */
static double
correlation(unsigned lag)
{
	double mean = FIRST + (COUNT - 1) / 2.0, var = 0, cov = 0;
	unsigned i;

	for (i = 0; i < DRAWS; i++)
		var += (drawn[i] - mean) * (drawn[i] - mean);
	for (i = 0; i + lag < DRAWS; i++)
		cov += (drawn[i] - mean) * (drawn[i + lag] - mean);
	return cov / var;
}

static void
expect_chance(unsigned netisrs, unsigned dests)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(netisrs, &clock, rig_layers);
	unsigned lag;

	draw_all(s, dests);
	assert_true(chi_square() < 114);
	for (lag = 1; lag <= 16; lag++)
		assert_true(fabs(correlation(lag)) < 4 / sqrt(DRAWS));
	stack_free(s);
}

static void
ports_to_one_destination_are_spread_and_uncorrelated(void **state)
{
	(void)state;
	expect_chance(1, 1);
	expect_chance(2, 1);
	expect_chance(3, 1);
}

static void
ports_to_many_destinations_are_spread_and_uncorrelated(void **state)
{
	(void)state;
	expect_chance(1, 1000);
	expect_chance(2, 1000);
	expect_chance(7, 50);
}

/*
 * What an outsider may try: the last port and a little, the last step again, the port that his own
 * host saw, and with the same step. chance: hits of a blind guess among `share` ports.
 */
static void
guess_is_no_better_than_chance(void **state)
{
	static const int near[] = { 0, 1, -1, 2, -2 };
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	unsigned hits[9] = { 0 }, i, k, draws = DRAWS / 2;
	double chance = draws / (COUNT / 2.0), bound = chance + 5 * sqrt(chance);
	int last = 0, last2 = 0, own_last = 0;

	(void)state;
	for (i = 0; i < draws; i++) {
		int own = connect_once(s->netisr[0], 1);
		int port = connect_once(s->netisr[0], 0);

		for (k = 0; k < 5; k++)
			hits[k] += i > 0 && port == last + near[k];
		hits[5] += i > 1 && port == last + (last - last2);
		hits[6] += port == own;
		hits[7] += i > 0 && port - last == own - own_last;
		/* his own steps are of the same walk: do the two keep their distance? */
		hits[8] += i > 0 && port - own == last - own_last;
		last2 = last;
		last = port;
		own_last = own;
	}
	for (k = 0; k < ARRAY_LEN(hits); k++)
		assert_true(hits[k] < bound);
	stack_free(s);
}

/* RFC 6056 3.3: the order is another one after each start. */
static void
stack_is_started_again_then_its_ports_come_in_another_order(void **state)
{
	struct darter_stack *a, *b;
	struct clock ca, cb;
	unsigned i, k, same = 0, same_step = 0;
	int pa, pb, last_a = 0, last_b = 0;

	(void)state;
	for (k = 0; k < 20; k++) {
		a = bare_stack_seeded(2, &ca, rig_layers, 100 + k);
		b = bare_stack_seeded(2, &cb, rig_layers, 200 + k);
		for (i = 0; i < 500; i++) {
			pa = connect_once(a->netisr[1], 0);
			pb = connect_once(b->netisr[1], 0);
			same += pa == pb;
			same_step += pa - last_a == pb - last_b;
			last_a = pa;
			last_b = pb;
		}
		stack_free(a);
		stack_free(b);
	}
	/* 10,000 pairs among 14,116 ports */
	assert_true(same <= 6);
	assert_true(same_step <= 6);
}

/* RFC 6056 3: a port that was used comes back late, though not in the same order. */
static void
port_was_used_then_it_comes_back_late(void **state)
{
	static uint32_t used_at[65536];
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	uint32_t i, soon = 0, again = 0;
	uint64_t sum = 0;

	(void)state;
	memset(used_at, 0, sizeof(used_at));
	for (i = 1; i <= 5 * COUNT; i++) {
		uint16_t port = connect_once(s->netisr[0], 0);
		uint32_t since = i - used_at[port];

		if (used_at[port] != 0) {
			sum += since;
			again += since == COUNT;
			soon += since < COUNT / 10;
		}
		used_at[port] = i;
	}
	/* a blind draw brings one in ten back that soon, on an average it takes COUNT as well */
	assert_true(soon < 4 * COUNT / 100);
	assert_in_range(sum / (4 * COUNT), COUNT * 9 / 10, COUNT * 11 / 10);
	assert_true(again < 40);
	stack_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_to_one_destination_are_spread_and_uncorrelated),
		cmocka_unit_test(ports_to_many_destinations_are_spread_and_uncorrelated),
		cmocka_unit_test(guess_is_no_better_than_chance),
		cmocka_unit_test(stack_is_started_again_then_its_ports_come_in_another_order),
		cmocka_unit_test(port_was_used_then_it_comes_back_late),
	};

	return cmocka_run_group_tests_name("port_random", tests, NULL, NULL);
}
