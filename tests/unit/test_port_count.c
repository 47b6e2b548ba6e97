/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/port_count and demux: connections keep others from binding their port, by address and
 * by what both sides share; a bound port is not claimed; two threads, one that binds and one that
 * claims, never both get a port.
 */
#include "unit/port_rig.h"

#include <pthread.h>

#include "transport/demux_priv.h"

#define OTHER	0x0a000002

static void
set_options(struct sockhalf *sh, unsigned share)
{
	atomic_store(&sh->opts.reuseaddr, (share & PORT_SHARE_ADDR) != 0);
	atomic_store(&sh->opts.reuseport, (share & PORT_SHARE_PORT) != 0);
}

/* Binds and lets go again. */
static int
try_bind(struct darter_stack *s, struct sockhalf *sh, uint32_t addr, uint16_t port)
{
	struct endpoint at = ep(addr, port), got;
	struct bind_entry *e;
	int rc;

	control_lock(s);
	rc = demux_bind(s, sh, IPPROTO_TCP, &at, &got, &e);
	if (rc == 0)
		demux_unbind(s, e);
	control_unlock(s);
	return rc;
}

/* Linux: sockets of one port share it when both have SO_REUSEADDR, or both have SO_REUSEPORT */
static void
connection_has_the_port_then_bind_needs_an_option_that_both_have(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(3, &clock, rig_layers);
	struct sockhalf *sh = bare_sock(s);
	struct tuple t = rig_tuple(5000);
	unsigned theirs, ours;
	int want;

	(void)state;
	for (theirs = 0; theirs < PORT_SHARES; theirs++) {
		port_raise(s->netisr[2], &t, (uint8_t)theirs);
		for (ours = 0; ours < PORT_SHARES; ours++) {
			want = theirs & ours ? 0 : -EADDRINUSE;
			set_options(sh, ours);
			assert_int_equal(try_bind(s, sh, LOCAL, 5000), want);
			assert_int_equal(try_bind(s, sh, 0, 5000), want);
			assert_int_equal(try_bind(s, sh, OTHER, 5000), 0);
			assert_int_equal(try_bind(s, sh, LOCAL, 5001), 0);
		}
		port_lower(s->netisr[2], &t, (uint8_t)theirs);
		set_options(sh, 0);
		assert_int_equal(try_bind(s, sh, LOCAL, 5000), 0);
	}
	stack_free(s);
	free(sh);
}

/* A datagram socket does not care. */
static void
connection_has_the_port_then_udp_may_have_it_too(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct sockhalf *sh = bare_sock(s);
	struct endpoint at = ep(LOCAL, 5000), got;
	struct tuple t = rig_tuple(5000);
	struct bind_entry *e;

	(void)state;
	port_raise(s->netisr[0], &t, 0);
	control_lock(s);
	assert_int_equal(demux_bind(s, sh, IPPROTO_UDP, &at, &got, &e), 0);
	control_unlock(s);
	stack_free(s);
	free(sh);
}

/* bind to port 0 shares with nobody, and honours the socket's range. */
static void
ports_are_in_use_then_bind_draws_another_until_none_is_left(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	struct endpoint any = ep(0, 0), got;
	struct sockhalf *sh[8];
	struct bind_entry *e;
	unsigned i, seen = 0;

	(void)state;
	for (i = 0; i < 8; i++) {
		struct tuple t = rig_tuple((uint16_t)(40000 + i));

		sh[i] = bare_sock(s);
		set_options(sh[i], PORT_SHARE_ADDR | PORT_SHARE_PORT);
		atomic_store(&sh[i]->opts.port_range, 40000u | 40007u << 16);
		if (i % 2 == 0)
			port_raise(s->netisr[i / 2 % 2], &t, PORT_SHARE_ADDR | PORT_SHARE_PORT);
	}
	control_lock(s);
	for (i = 0; i < 4; i++) {
		assert_int_equal(demux_bind(s, sh[i], IPPROTO_TCP, &any, &got, &e), 0);
		assert_in_range(got.port, 40000, 40007);
		seen |= 1u << (got.port - 40000);
	}
	assert_int_equal(demux_bind(s, sh[4], IPPROTO_TCP, &any, &got, &e), -EADDRINUSE);
	control_unlock(s);
	assert_int_equal(seen, 0xaa);
	stack_free(s);
	for (i = 0; i < 8; i++)
		free(sh[i]);
}

static void
port_is_bound_then_no_connection_claims_it(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(2, &clock, rig_layers);
	struct sockhalf *sh = bare_sock(s);
	struct endpoint at = ep(LOCAL, 5000), got;
	struct tuple t = rig_tuple(5000), other = tup(OTHER, 5000, PEER, 80);
	struct bind_entry *e;

	(void)state;
	control_lock(s);
	assert_int_equal(demux_bind(s, sh, IPPROTO_TCP, &at, &got, &e), 0);
	assert_false(port_claim(s->netisr[0], &t, 3));
	assert_true(port_claim(s->netisr[0], &other, 0));
	demux_unbind(s, e);
	/* the claim that failed has left nothing behind */
	assert_false(port_has_conns(s, &at.addr, 5000, 0));
	control_unlock(s);
	assert_true(port_claim(s->netisr[0], &t, 0));
	stack_free(s);
	free(sh);
}

/* More addresses than are told apart: refused too often, never too rarely. */
static void
addresses_are_many_then_the_last_ones_share_a_place(void **state)
{
	struct clock clock;
	struct darter_stack *s = bare_stack(1, &clock, rig_layers);
	struct sockhalf *sh = bare_sock(s);
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++) {
		struct tuple t = tup(LOCAL + i, (uint16_t)(7000 + i), PEER, 80);

		port_raise(s->netisr[0], &t, 0);
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(try_bind(s, sh, LOCAL + i, (uint16_t)(7000 + i)), -EADDRINUSE);
		assert_int_equal(try_bind(s, sh, 0, (uint16_t)(7000 + i)), -EADDRINUSE);
	}
	assert_int_equal(try_bind(s, sh, LOCAL + 1, 7000), 0);
	assert_int_equal(try_bind(s, sh, LOCAL + 19, 7018), -EADDRINUSE);
	assert_int_equal(try_bind(s, sh, LOCAL + 19, 7020), 0);
	stack_free(s);
	free(sh);
}

/* ---- two threads ---- */

#define RACE_ROUNDS	20000u

struct race {
	struct darter_stack *s;
	struct sockhalf *sh;
	pthread_barrier_t start;
	_Atomic bool is_bound;
	_Atomic bool is_claimed;
	unsigned bound, claimed;
};

static void *
binder(void *arg)
{
	struct race *r = arg;
	struct endpoint at = ep(LOCAL, 5000), got;
	struct bind_entry *e;
	unsigned i;

	for (i = 0; i < RACE_ROUNDS; i++) {
		control_lock(r->s);
		pthread_barrier_wait(&r->start);
		if (demux_bind(r->s, r->sh, IPPROTO_TCP, &at, &got, &e) == 0) {
			atomic_store(&r->is_bound, true);
			r->bound++;
		}
		pthread_barrier_wait(&r->start);
		pthread_barrier_wait(&r->start);
		if (atomic_load(&r->is_bound))
			demux_unbind(r->s, e);
		atomic_store(&r->is_bound, false);
		control_unlock(r->s);
	}
	return NULL;
}

static void
bind_and_claim_race_then_never_do_both_get_the_port(void **state)
{
	struct clock clock;
	struct race r = { .s = bare_stack(1, &clock, rig_layers) };
	struct tuple t = rig_tuple(5000);
	struct netisr *n = r.s->netisr[0];
	pthread_t thread;
	unsigned i, both = 0;

	(void)state;
	r.sh = bare_sock(r.s);
	pthread_barrier_init(&r.start, NULL, 2);
	assert_true(netisr_take(n));
	pthread_create(&thread, NULL, binder, &r);
	for (i = 0; i < RACE_ROUNDS; i++) {
		bool is_claimed;

		pthread_barrier_wait(&r.start);
		is_claimed = port_claim(n, &t, 0);
		r.claimed += is_claimed;
		pthread_barrier_wait(&r.start);
		both += is_claimed && atomic_load(&r.is_bound);
		if (is_claimed)
			port_lower(n, &t, 0);
		pthread_barrier_wait(&r.start);
		/* a round's end, so that what was unbound can be freed */
		atomic_fetch_add(&n->rounds, 1);
	}
	pthread_join(thread, NULL);
	netisr_give(n);
	assert_int_equal(both, 0);
	assert_true(r.bound + r.claimed > 0);
	pthread_barrier_destroy(&r.start);
	stack_free(r.s);
	free(r.sh);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_has_the_port_then_bind_needs_an_option_that_both_have),
		cmocka_unit_test(connection_has_the_port_then_udp_may_have_it_too),
		cmocka_unit_test(ports_are_in_use_then_bind_draws_another_until_none_is_left),
		cmocka_unit_test(port_is_bound_then_no_connection_claims_it),
		cmocka_unit_test(addresses_are_many_then_the_last_ones_share_a_place),
		cmocka_unit_test(bind_and_claim_race_then_never_do_both_get_the_port),
	};

	return cmocka_run_group_tests_name("port_count", tests, NULL, NULL);
}
