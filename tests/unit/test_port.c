/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port: every drawn port leads home, for several numbers of netisrs and both well-known
 * keys; the whole own share is found before a draw fails; draws are flat and not guessable from one
 * another.
 */
#include "unit/transport_bare.h"

#include <errno.h>
#include <netinet/in.h>

#include "transport/demux.h"
#include "transport/ulp.h"

#define LOCAL	0x0a000001
#define PEER	0xc0000201
#define FIRST	32768u
#define COUNT	28232u

static const struct layer *const layers[] = { &demux_layer, NULL };

/* Ports that the test says are in use, all to one destination. */
static uint8_t used[65536];

static bool
in_use(struct netisr *n, const struct tuple *t)
{
	(void)n;
	return used[t->lport] != 0;
}

static int
setup(void **state)
{
	(void)state;
	memset(used, 0, sizeof(used));
	return 0;
}

static void
use_key(struct darter_stack *s, const uint8_t *key)
{
	assert_int_equal(toeplitz_init(&s->rss, key, 40), 0);
}

static void
every_netisr_draws(struct darter_stack *s, unsigned draws)
{
	unsigned id, i;

	for (id = 0; id < s->n_netisrs; id++)
		for (i = 0; i < draws; i++) {
			struct tuple t = tup(LOCAL, 0, PEER + i % 7, (uint16_t)(80 + i % 3));

			assert_int_equal(port_choose(s->netisr[id], &t, IPPROTO_TCP, NULL), 0);
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
		s = bare_stack(counts[i], &clock, layers);
		use_key(s, toeplitz_key_symmetric);
		every_netisr_draws(s, 300);
		use_key(s, toeplitz_key_microsoft);
		every_netisr_draws(s, 300);
		stack_free(s);
	}
}

/* Draws until the range is spent; returns how many. */
static unsigned
spend(struct netisr *n)
{
	struct tuple t = tup(LOCAL, 0, PEER, 80);
	unsigned drawn = 0;

	while (port_choose(n, &t, IPPROTO_TCP, in_use) == 0) {
		assert_int_equal(used[t.lport], 0);
		used[t.lport] = 1;
		drawn++;
	}
	assert_int_equal(t.lport, 0);
	return drawn;
}

static void
one_netisr_draws_until_spent_then_it_has_had_every_port(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, layers);

	(void)state;
	assert_int_equal(spend(s->netisr[0]), COUNT);
	assert_true(stack_counter(s, CTR_port_exhausted) == 1);
	assert_true(stack_counter(s, CTR_port_draws) == COUNT);
	/* The walk meets each port once: no probe but the last turn is in vain. */
	assert_true(stack_counter(s, CTR_port_probes) == 2 * COUNT);
	stack_free(s);
}

static void
netisrs_draw_until_spent_then_their_shares_are_the_whole_range(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(3, &clock, layers);
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

static void
range_is_spent_then_one_freed_port_is_found(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, layers);
	struct tuple t = tup(LOCAL, 0, PEER, 80);
	uint16_t freed;

	(void)state;
	spend(s->netisr[1]);
	for (freed = 50000; !used[freed]; freed++)
		;
	used[freed] = 0;
	assert_int_equal(port_choose(s->netisr[1], &t, IPPROTO_TCP, in_use), 0);
	assert_int_equal(t.lport, freed);
	stack_free(s);
}

/* Long-lived connections hold half of the range: probes per draw must not grow with them. */
static void
half_of_the_range_is_taken_then_a_draw_looks_at_few_candidates(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, layers);
	struct tuple t = tup(LOCAL, 0, PEER, 80);
	uint64_t before;
	unsigned i;

	(void)state;
	for (i = 0; i < COUNT; i += 2)
		used[FIRST + i] = 1;
	before = stack_counter(s, CTR_port_probes);
	for (i = 0; i < 1000; i++)
		assert_int_equal(port_choose(s->netisr[0], &t, IPPROTO_TCP, in_use), 0);
	/* one in two is ours, one in two of these is free */
	assert_true(stack_counter(s, CTR_port_probes) - before < 1000 * 8);
	stack_free(s);
}

static void
port_is_bound_or_reserved_then_it_is_not_drawn(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, layers);
	struct sockhalf *sh = bare_sock(s);
	struct endpoint any = ep(0, 40001), got;
	struct bind_entry *e;
	char err[128];

	(void)state;
	knob_set(s, "net.inet.ip.portrange.first", "40000", err, sizeof(err));
	knob_set(s, "net.inet.ip.portrange.last", "40009", err, sizeof(err));
	knob_set(s, "net.inet.ip.portrange.reserved_first", "40008", err, sizeof(err));
	knob_set(s, "net.inet.ip.portrange.reserved_last", "40009", err, sizeof(err));
	control_lock(s);
	assert_int_equal(demux_bind(s, sh, IPPROTO_TCP, &any, &got, &e), 0);
	control_unlock(s);
	assert_int_equal(spend(s->netisr[0]), 7);
	assert_int_equal(used[40001] + used[40008] + used[40009], 0);
	stack_free(s);
	free(sh);
}

static void
destination_is_this_very_port_then_it_is_not_drawn(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, layers);
	struct tuple t = tup(LOCAL, 0, LOCAL, 40000);
	char err[128];

	(void)state;
	knob_set(s, "net.inet.ip.portrange.first", "40000", err, sizeof(err));
	knob_set(s, "net.inet.ip.portrange.last", "40000", err, sizeof(err));
	assert_int_equal(port_choose(s->netisr[0], &t, IPPROTO_TCP, NULL), -EADDRNOTAVAIL);
	t.fport = 40001;
	assert_int_equal(port_choose(s->netisr[0], &t, IPPROTO_TCP, NULL), 0);
	stack_free(s);
}

/* RFC 6056: what is seen of one destination says nothing about another. */
static void
two_destinations_then_their_walks_differ(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, layers);
	unsigned i, same = 0;

	(void)state;
	for (i = 0; i < 200; i++) {
		struct tuple a = tup(LOCAL, 0, PEER, 80), b = tup(LOCAL, 0, PEER + 1, 80);
		static uint16_t last_a, last_b;
		uint16_t step_a, step_b;

		port_choose(s->netisr[0], &a, IPPROTO_TCP, NULL);
		port_choose(s->netisr[0], &b, IPPROTO_TCP, NULL);
		step_a = (uint16_t)(a.lport - last_a);
		step_b = (uint16_t)(b.lport - last_b);
		last_a = a.lport;
		last_b = b.lport;
		same += step_a == step_b || a.lport == b.lport;
	}
	assert_true(same < 5);
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
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(port_drawn_then_the_answer_comes_home),
		T(one_netisr_draws_until_spent_then_it_has_had_every_port),
		T(netisrs_draw_until_spent_then_their_shares_are_the_whole_range),
		T(range_is_spent_then_one_freed_port_is_found),
		T(half_of_the_range_is_taken_then_a_draw_looks_at_few_candidates),
		T(port_is_bound_or_reserved_then_it_is_not_drawn),
		T(destination_is_this_very_port_then_it_is_not_drawn),
		T(two_destinations_then_their_walks_differ),
		T(stride_is_made_then_it_visits_every_port),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
