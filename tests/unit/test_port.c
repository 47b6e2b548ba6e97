/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port: every drawn port leads home, for several numbers of netisrs and both well-known
 * keys; a spent share sends the connect on until the whole range is spent, which is known at once;
 * portalgo hash; ranges of sockets; bound, reserved and own ports.
 */
#include "unit/port_rig.h"

static void
every_netisr_draws(struct darter_stack *s, unsigned draws)
{
	unsigned id, i;

	for (id = 0; id < s->n_netisrs; id++)
		for (i = 0; i < draws; i++) {
			struct tuple t = tup(LOCAL, 0, PEER + i % 7, (uint16_t)(80 + i % 3));

			assert_int_equal(rig_draw(s->netisr[id], &t, NULL), 0);
			assert_in_range(t.lport, FIRST, FIRST + COUNT - 1);
			assert_ptr_equal(stack_owner(s, &t), s->netisr[id]);
		}
}

static void
port_drawn_then_the_answer_comes_home(void **state)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 7, 8 };
	struct darter_stack *s;
	struct clock clock;
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(counts); i++) {
		s = bare_stack(counts[i], &clock, rig_layers);
		rig_key(s, toeplitz_key_symmetric);
		every_netisr_draws(s, 300);
		rig_key(s, toeplitz_key_microsoft);
		every_netisr_draws(s, 300);
		/* 21 destinations, nothing in the way: a candidate a draw */
		assert_true(stack_counter(s, CTR_port_probes) ==
		    stack_counter(s, CTR_port_draws));
		stack_free(s);
	}
}

/* Draws on n alone until its share is spent; returns how many. */
static unsigned
spend(struct netisr *n)
{
	struct tuple t = rig_tuple(0);
	unsigned drawn = 0;

	while (rig_draw(n, &t, rig_use_of) == 0) {
		assert_int_equal(rig_use[t.lport], PORT_FREE);
		rig_use[t.lport] = PORT_TAKEN;
		drawn++;
		t.lport = 0;
	}
	assert_int_equal(t.lport, 0);
	return drawn;
}

static void
one_netisr_draws_until_spent_then_it_has_had_every_port(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct tuple t = rig_tuple(0);
	uint64_t probes;

	(void)state;
	assert_int_equal(spend(s->netisr[0]), COUNT);
	assert_true(stack_counter(s, CTR_port_exhausted) == 1);
	assert_true(stack_counter(s, CTR_port_draws) == COUNT);
	/* those before the bitmap are met once more; nothing else is looked at in vain */
	probes = stack_counter(s, CTR_port_probes);
	assert_in_range(probes, COUNT, COUNT + 64);
	assert_int_equal(rig_draw(s->netisr[0], &t, rig_use_of), -EADDRNOTAVAIL);
	assert_true(stack_counter(s, CTR_port_probes) == probes);
	stack_free(s);
}

static void
netisrs_draw_until_spent_then_their_shares_are_the_whole_range(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(3, &clock, rig_layers);
	unsigned id, sum = 0;

	(void)state;
	for (id = 0; id < 3; id++) {
		unsigned share = spend(s->netisr[id]);

		assert_in_range(share, COUNT / 4, COUNT / 2);
		sum += share;
	}
	assert_int_equal(sum, COUNT);
	stack_free(s);
}

/* The whole range from netisr 0, each port once; then nobody looks for one any more. */
static void
spend_by_spill(unsigned netisrs, const char *algo)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(netisrs, &clock, rig_layers);
	unsigned i, hops, from;
	uint64_t probes;

	rig_setup(NULL);
	rig_set(s, "net.inet.ip.portalgo", algo);
	for (i = 0; i < COUNT; i++)
		assert_true(rig_connect(s, 0, &hops) > 0);
	/* who has not heard yet may still ask around once */
	for (from = 0; from < netisrs; from++)
		assert_int_equal(rig_connect(s, from, &hops), -EADDRNOTAVAIL);
	probes = stack_counter(s, CTR_port_probes);
	rig_set(s, "net.inet.ip.portalgo", "home");
	for (from = 0; from < netisrs; from++) {
		assert_int_equal(rig_connect(s, from, &hops), -EADDRNOTAVAIL);
		assert_int_equal(hops, 0);
	}
	assert_true(stack_counter(s, CTR_port_probes) == probes);
	if (netisrs > 1)
		assert_true(stack_counter(s, CTR_port_spills) > 0);
	/* a port that comes free anywhere is found from everywhere */
	for (from = 0; from < netisrs; from++) {
		rig_close(s, 50000);
		assert_int_equal(rig_connect(s, from, &hops), 50000);
		assert_true(hops <= 1);
	}
	stack_free(s);
}

static void
own_share_is_spent_then_the_others_serve_until_the_range_is(void **state)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 7, 8 };
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(counts); i++)
		spend_by_spill(counts[i], "home");
}

static void
ports_are_hashed_then_the_whole_range_is_used_as_well(void **state)
{
	(void)state;
	spend_by_spill(1, "hash");
	spend_by_spill(2, "hash");
	spend_by_spill(7, "hash");
}

/* Forwards of 8,000 connects, half of them from each of the first two netisrs. */
static unsigned
forwards_of(unsigned netisrs, const char *algo)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(netisrs, &clock, rig_layers);
	unsigned i, hops, sum = 0;

	rig_setup(NULL);
	rig_set(s, "net.inet.ip.portalgo", algo);
	for (i = 0; i < 8000; i++) {
		int port = rig_connect(s, i % 2, &hops);

		assert_true(port > 0);
		rig_close(s, (uint16_t)port);
		sum += hops;
	}
	stack_free(s);
	return sum;
}

static void
ports_are_hashed_then_connects_are_sent_on_and_at_home_they_are_not(void **state)
{
	(void)state;
	assert_int_equal(forwards_of(2, "home"), 0);
	assert_int_equal(forwards_of(7, "home"), 0);
	/* one half, and three quarters, within five sigma */
	assert_in_range(forwards_of(2, "hash"), 4000 - 224, 4000 + 224);
	assert_in_range(forwards_of(4, "hash"), 6000 - 194, 6000 + 194);
}

/* A key without rank in its port bits: every port of a destination leads to one netisr. */
static void
key_has_no_rank_then_connects_are_sent_to_whom_ports_lead(void **state)
{
	static const uint8_t zeros[TOEPLITZ_KEY_MAX_BYTES];
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	unsigned hops;

	(void)state;
	rig_key(s, zeros);
	assert_true(rig_connect(s, 0, &hops) > 0);
	assert_int_equal(hops, 0);
	assert_true(stack_counter(s, CTR_port_homeless) == 0);
	assert_true(rig_connect(s, 1, &hops) > 0);
	assert_int_equal(hops, 1);
	assert_true(stack_counter(s, CTR_port_homeless) == 1);
	stack_free(s);
}

static void
port_is_bound_or_reserved_then_it_is_not_drawn(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct sockhalf *sh = bare_sock(s);
	struct endpoint any = ep(0, 40001), got;
	struct bind_entry *e;

	(void)state;
	rig_range(s, "40000", "40009");
	rig_set(s, "net.inet.ip.portrange.reserved_first", "40008");
	rig_set(s, "net.inet.ip.portrange.reserved_last", "40009");
	control_lock(s);
	assert_int_equal(demux_bind(s, sh, IPPROTO_TCP, &any, &got, &e), 0);
	control_unlock(s);
	assert_int_equal(spend(s->netisr[0]), 7);
	assert_int_equal(rig_use[40001] + rig_use[40008] + rig_use[40009], 0);
	/* and comes back when it is let go */
	control_lock(s);
	demux_unbind(s, e);
	control_unlock(s);
	assert_int_equal(spend(s->netisr[0]), 1);
	assert_int_equal(rig_use[40001], PORT_TAKEN);
	stack_free(s);
	free(sh);
}

static void
destination_is_this_very_port_then_it_is_not_drawn(void **state)
{
	static const char *const algos[] = { "home", "hash" };
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	unsigned i, round;

	(void)state;
	rig_range(s, "40000", "40001");
	for (i = 0; i < 2; i++)
		for (round = 0; round < 200; round++) {
			struct tuple t = tup(LOCAL, 0, LOCAL, 40000);

			rig_set(s, "net.inet.ip.portalgo", algos[i]);
			assert_int_equal(rig_draw(s->netisr[0], &t, NULL), 0);
			assert_int_equal(t.lport, 40001);
			port_lower(s->netisr[0], &t, 0);
			port_freed(s->netisr[0], &t);
		}
	stack_free(s);
}

/* Draws for a socket with a range of its own until nothing is left; how many, all within. */
static unsigned
spend_range(struct darter_stack *s, uint32_t first, uint32_t last)
{
	struct netisr *n = s->netisr[0], *owner;
	unsigned drawn = 0;

	for (;;) {
		struct port_ask ask = { .t = rig_tuple(0), .use = rig_use_of,
			.range = first | last << 16 };
		int rc = port_choose(n, &ask, &owner);

		while (rc == 0 && owner != n) {
			n = owner;
			rc = port_choose(n, &ask, &owner);
		}
		n = s->netisr[0];
		if (rc < 0)
			return drawn;
		assert_in_range(ask.t.lport, first, last != 0 ? last : FIRST + COUNT - 1);
		assert_int_equal(rig_use[ask.t.lport], PORT_FREE);
		rig_use[ask.t.lport] = PORT_TAKEN;
		drawn++;
	}
}

/* IP_LOCAL_PORT_RANGE: narrows, and only inside of the range that is there (Linux) */
static void
socket_has_a_range_then_every_port_of_it_is_drawn_and_no_other(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(3, &clock, rig_layers);
	uint16_t first, last;

	(void)state;
	assert_int_equal(spend_range(s, 40000, 40099), 100);
	assert_int_equal(spend_range(s, 40050, 40199), 100);
	assert_int_equal(spend_range(s, 60900, 0), 100);
	port_range_of(s, 1000u | 40000u << 16, &first, &last);
	assert_int_equal(first, FIRST);
	assert_int_equal(last, 40000);
	port_range_of(s, 61000u | 65000u << 16, &first, &last);
	assert_int_equal(first, FIRST);
	assert_int_equal(last, FIRST + COUNT - 1);
	stack_free(s);
}

static void
range_is_changed_then_ports_come_from_the_new_one(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	unsigned i, hops;
	int port;

	(void)state;
	for (i = 0; i < 200; i++)
		assert_true(rig_connect(s, 0, &hops) >= (int)FIRST);
	rig_range(s, "10000", "10999");
	for (i = 0; i < 1000; i++) {
		port = rig_connect(s, 0, &hops);
		assert_in_range(port, 10000, 10999);
	}
	assert_int_equal(rig_connect(s, 0, &hops), -EADDRNOTAVAIL);
	stack_free(s);
}

static void
stride_is_made_then_it_visits_every_port(void **state)
{
	static const uint32_t counts[] = { 1, 2, 3, 7, 10, 15, 30030, 28232, 65535 };
	static uint8_t seen[65536];
	unsigned i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(counts); i++) {
		uint32_t count = counts[i], at = 0, visited = 0;
		uint32_t stride = port_stride(0x9e3779b9u * (i + 1), count);

		memset(seen, 0, sizeof(seen));
		for (j = 0; j < count; j++) {
			visited += !seen[at];
			seen[at] = 1;
			at = (at + stride) % count;
		}
		assert_int_equal(visited, count);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, rig_setup)
	const struct CMUnitTest tests[] = {
		T(port_drawn_then_the_answer_comes_home),
		T(one_netisr_draws_until_spent_then_it_has_had_every_port),
		T(netisrs_draw_until_spent_then_their_shares_are_the_whole_range),
		T(own_share_is_spent_then_the_others_serve_until_the_range_is),
		T(ports_are_hashed_then_the_whole_range_is_used_as_well),
		T(ports_are_hashed_then_connects_are_sent_on_and_at_home_they_are_not),
		T(key_has_no_rank_then_connects_are_sent_to_whom_ports_lead),
		T(port_is_bound_or_reserved_then_it_is_not_drawn),
		T(destination_is_this_very_port_then_it_is_not_drawn),
		T(socket_has_a_range_then_every_port_of_it_is_drawn_and_no_other),
		T(range_is_changed_then_ports_come_from_the_new_one),
		T(stride_is_made_then_it_visits_every_port),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
