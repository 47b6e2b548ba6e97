/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port_hot: what a draw looks at does not grow with the connections there are; what is
 * taken, bound or at rest is met once; TIME_WAIT ports ripen between 1 and 1.6 s (RFC 6191); the
 * number of bitmaps is bounded.
 */
#include "unit/port_rig.h"

#include "base/rng.h"
#include "transport/demux_priv.h"
#include "transport/port_priv.h"

/* Probes of 2,000 draws while `held` ports of n's own are in use, to one destination. */
static uint64_t
probes_at(struct darter_stack *s, struct netisr *n, unsigned held)
{
	static uint16_t port[COUNT];
	unsigned i;
	uint64_t before;

	rig_setup(NULL);
	for (i = 0; i < held; i++) {
		struct tuple t = rig_tuple(0);

		assert_int_equal(rig_draw(n, &t, rig_use_of), 0);
		rig_use[t.lport] = PORT_TAKEN;
		port[i] = t.lport;
	}
	before = stack_counter(s, CTR_port_probes);
	for (i = 0; i < 2000; i++) {
		struct tuple t = rig_tuple(0);

		assert_int_equal(rig_draw(n, &t, rig_use_of), 0);
		assert_int_equal(rig_use[t.lport], PORT_FREE);
		port_lower(n, &t, 0);
		port_freed(n, &t);
	}
	before = stack_counter(s, CTR_port_probes) - before;
	for (i = 0; i < held; i++)
		rig_close(s, port[i]);
	return before;
}

/* MECHANISMS: candidates a connect at 99 % <= 1.3 times those of an empty range */
static void
range_fills_then_probes_a_draw_stay_flat(void **state)
{
	static const unsigned netisrs[] = { 1, 2, 4 };
	struct darter_stack *s;
	struct clock clock;
	uint64_t empty, full;
	unsigned i, own;

	(void)state;
	for (i = 0; i < ARRAY_LEN(netisrs); i++) {
		s = bare_stack(netisrs[i], &clock, rig_layers);
		/* never below the share: 220 ports lead to a slot, one more or less */
		own = COUNT / netisrs[i] - 128;
		empty = probes_at(s, s->netisr[0], 0);
		full = probes_at(s, s->netisr[0], own * 99 / 100);
		assert_in_range(empty, 2000, 2000);
		assert_true(full * 10 <= empty * 13);
		full = probes_at(s, s->netisr[0], own - 10);
		assert_true(full * 10 <= empty * 13);
		stack_free(s);
	}
}

/* Without its history a bitmap learns each taken port once. */
static void
bitmap_is_made_late_then_each_taken_port_is_met_once(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct tuple t = rig_tuple(0);
	unsigned i;

	(void)state;
	rig_setup(NULL);
	for (i = 0; i < COUNT; i++)
		rig_use[FIRST + i] = i % 100 == 3 ? PORT_FREE : PORT_TAKEN;
	for (i = 0; i < COUNT / 100; i++) {
		t.lport = 0;
		assert_int_equal(rig_draw(s->netisr[0], &t, rig_use_of), 0);
		assert_int_equal(rig_use[t.lport], PORT_FREE);
		port_lower(s->netisr[0], &t, 0);
		port_freed(s->netisr[0], &t);
	}
	assert_true(stack_counter(s, CTR_port_probes) < COUNT + COUNT / 100 + 64);
	stack_free(s);
}

static void
settle(struct darter_stack *s, struct clock *clock, uint64_t us)
{
	clock_advance_us(clock, us);
	s->netisr[0]->now = stack_now(s);
}

/* All ten ports to PEER:80 go to TIME_WAIT now. */
static void
all_rest(struct darter_stack *s)
{
	unsigned port;

	for (port = 40000; port < 40010; port++) {
		struct tuple t = rig_tuple((uint16_t)port);

		rig_use[port] = PORT_RESTS;
		port_rests(s->netisr[0], &t, true);
	}
}

/* RFC 6191; TIME_WAIT of at least a second may be taken over */
static void
ports_rest_then_they_are_drawn_after_a_second_and_no_free_one_is_left(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	unsigned i, hops, phase;
	uint64_t probes;

	(void)state;
	rig_range(s, "40000", "40009");
	rig_set(s, "net.inet.ip.porthot_after", "0");
	for (phase = 0; phase < 8; phase++) {
		rig_setup(NULL);
		settle(s, &clock, 70 * US_PER_MS + 10 * US_PER_SEC);
		for (i = 0; i < 10; i++)
			assert_true(rig_connect(s, 0, &hops) > 0);
		all_rest(s);
		settle(s, &clock, 999 * US_PER_MS);
		probes = stack_counter(s, CTR_port_probes);
		assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
		assert_true(stack_counter(s, CTR_port_probes) == probes);
		settle(s, &clock, 600 * US_PER_MS);
		for (i = 40000; i < 40010; i++)
			rig_use[i] = PORT_REUSABLE;
		for (i = 0; i < 10; i++) {
			struct tuple t = rig_tuple(0);

			assert_int_equal(rig_draw(s->netisr[0], &t, rig_use_of), 0);
			assert_int_equal(rig_use[t.lport], PORT_REUSABLE);
			rig_use[t.lport] = PORT_TAKEN;
		}
		assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
		for (i = 40000; i < 40010; i++)
			rig_close(s, (uint16_t)i);
	}
	stack_free(s);
}

static void
port_rests_without_timestamps_then_it_waits_for_its_end(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct tuple t = rig_tuple(40000);
	unsigned hops;

	(void)state;
	rig_range(s, "40000", "40000");
	assert_int_equal(rig_connect(s, 0, &hops), 40000);
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	port_rests(s->netisr[0], &t, false);
	settle(s, &clock, 5 * US_PER_SEC);
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	rig_close(s, 40000);
	assert_int_equal(rig_connect(s, 0, &hops), 40000);
	stack_free(s);
}

static int
bind_at(struct darter_stack *s, struct sockhalf *sh, uint16_t port, struct bind_entry **e)
{
	struct endpoint at = ep(LOCAL, port), got;
	int rc;

	control_lock(s);
	rc = demux_bind(s, sh, IPPROTO_TCP, &at, &got, e);
	control_unlock(s);
	return rc;
}

static void
ports_are_bound_then_each_is_met_once_until_one_is_unbound(void **state)
{
	static struct bind_entry *e[500];
	static struct sockhalf *sh[500];
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	unsigned i, hops;
	uint64_t probes;

	(void)state;
	rig_range(s, "40000", "40999");
	for (i = 0; i < 500; i++) {
		sh[i] = bare_sock(s);
		assert_int_equal(bind_at(s, sh[i], (uint16_t)(40000 + 2 * i), &e[i]), 0);
	}
	for (i = 0; i < 500; i++)
		assert_int_equal(rig_connect(s, 0, &hops) % 2, 1);
	/* 500 drawn, 500 bound; the first 64 draws had no bitmap to note things in */
	assert_true(stack_counter(s, CTR_port_probes) < 1000 + 3 * 64);
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	assert_true(stack_counter(s, CTR_port_probes) < 1000 + 3 * 64);
	probes = stack_counter(s, CTR_port_probes);
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	assert_true(stack_counter(s, CTR_port_probes) == probes);
	control_lock(s);
	demux_unbind(s, e[123]);
	control_unlock(s);
	assert_int_equal(rig_connect(s, 0, &hops), 40000 + 2 * 123);
	assert_true(stack_counter(s, CTR_port_probes) - probes <= 500);
	stack_free(s);
	for (i = 0; i < 500; i++)
		free(sh[i]);
}

/* The one that was not used for longest goes; what it knew is learned again. */
static void
destinations_are_many_then_the_number_of_bitmaps_is_bounded(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	unsigned dest, i;

	(void)state;
	rig_set(s, "net.inet.ip.porthot", "4");
	rig_set(s, "net.inet.ip.porthot_after", "10");
	for (dest = 0; dest < 12; dest++)
		for (i = 0; i < 20; i++) {
			struct tuple t = tup(LOCAL, 0, PEER + dest, 80);

			assert_int_equal(rig_draw(s->netisr[1], &t, NULL), 0);
		}
	assert_int_equal(s->demux->ports[1].n_hot, 4);
	assert_true(stack_counter(s, CTR_port_hot_made) == 12);
	assert_true(stack_counter(s, CTR_port_hot_evicted) == 8);
	stack_free(s);
}

/* Bitmaps off: the walk finds the last port too, and says so when there is none. */
static void
bitmaps_are_off_then_every_port_is_found_all_the_same(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	unsigned i, hops;

	(void)state;
	rig_set(s, "net.inet.ip.porthot", "0");
	rig_range(s, "40000", "40499");
	for (i = 0; i < 500; i++)
		assert_true(rig_connect(s, 1, &hops) > 0);
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	assert_int_equal(rig_connect(s, 1, &hops), -EADDRNOTAVAIL);
	assert_true(stack_counter(s, CTR_port_hot_made) == 0);
	stack_free(s);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, rig_setup)
	const struct CMUnitTest tests[] = {
		T(range_fills_then_probes_a_draw_stay_flat),
		T(bitmap_is_made_late_then_each_taken_port_is_met_once),
		T(ports_rest_then_they_are_drawn_after_a_second_and_no_free_one_is_left),
		T(port_rests_without_timestamps_then_it_waits_for_its_end),
		T(ports_are_bound_then_each_is_met_once_until_one_is_unbound),
		T(destinations_are_many_then_the_number_of_bitmaps_is_bounded),
		T(bitmaps_are_off_then_every_port_is_found_all_the_same),
	};

	return cmocka_run_group_tests_name("port_hot", tests, NULL, NULL);
}
