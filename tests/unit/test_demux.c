/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport/demux: Linux's bind conflicts as a table, best match, SO_REUSEPORT groups, drawn ports,
 * and readers on one thread while another binds, connects and unbinds.
 */
#include "unit/transport_bare.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>

#include "transport/demux.h"
#include "transport/ulp.h"

#define A1	0x0a000001	/* 10.0.0.1 */
#define A2	0x0a000002
#define PEER	0xc0000201	/* 192.0.2.1 */

static const struct layer *const layers[] = { &demux_layer, NULL };

struct fixture {
	struct darter_stack *s;
	struct clock clock;
	struct sockhalf *sh[64];
	struct bind_entry *e[64];
	struct endpoint got[64];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	unsigned i;

	f->s = bare_stack(2, &f->clock, layers);
	for (i = 0; i < 64; i++)
		f->sh[i] = bare_sock(f->s);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	stack_free(f->s);
	for (i = 0; i < 64; i++)
		free(f->sh[i]);
	free(f);
	return 0;
}

static int
bind_one(struct fixture *f, unsigned i, uint8_t proto, uint32_t addr, uint16_t port)
{
	struct endpoint local = ep(addr, port);
	int rc;

	control_lock(f->s);
	rc = demux_bind(f->s, f->sh[i], proto, &local, &f->got[i], &f->e[i]);
	control_unlock(f->s);
	return rc;
}

static int
listen_one(struct fixture *f, unsigned i)
{
	int rc;

	control_lock(f->s);
	rc = demux_set_listener(f->s, f->e[i]);
	control_unlock(f->s);
	return rc;
}

static void
unbind_one(struct fixture *f, unsigned i)
{
	control_lock(f->s);
	demux_unbind(f->s, f->e[i]);
	control_unlock(f->s);
}

static void
connect_one(struct fixture *f, unsigned i, uint32_t local, uint32_t foreign, uint16_t fport)
{
	struct endpoint l = ep(local, f->got[i].port), p = ep(foreign, fport);

	control_lock(f->s);
	assert_int_equal(demux_set_foreign(f->s, &f->e[i], &l, &p), 0);
	control_unlock(f->s);
}

static void
set_options(struct sockhalf *sh, int reuseaddr, int reuseport)
{
	atomic_store(&sh->opts.reuseaddr, (uint8_t)reuseaddr);
	atomic_store(&sh->opts.reuseport, (uint8_t)reuseport);
}

/*
 * ---- conflicts: what Linux does (inet_csk_bind_conflict and the UDP rule), observed from outside
 * ----
 */

static const struct conflict {
	uint8_t proto;
	uint32_t first, second;		/* addresses; 0: any */
	int reuseaddr1, reuseaddr2, reuseport1, reuseport2;
	int first_listens;
	int expect;
} conflicts[] = {
	{ IPPROTO_TCP, A1, A1, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, A1, A2, 0, 0, 0, 0, 0, 0 },
	{ IPPROTO_TCP, 0, A1, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, A1, 0, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 1, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 0, 1, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 1, 1, 0, 0, 0, 0 },
	{ IPPROTO_TCP, 0, A1, 1, 1, 0, 0, 0, 0 },
	{ IPPROTO_TCP, 0, 0, 1, 1, 0, 0, 1, -EADDRINUSE },
	{ IPPROTO_TCP, A1, A2, 1, 1, 0, 0, 1, 0 },
	{ IPPROTO_TCP, 0, A1, 1, 1, 0, 0, 1, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 0, 0, 1, 0, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 0, 0, 0, 1, 0, -EADDRINUSE },
	{ IPPROTO_TCP, 0, 0, 0, 0, 1, 1, 0, 0 },
	{ IPPROTO_TCP, 0, 0, 0, 0, 1, 1, 1, 0 },
	{ IPPROTO_TCP, 0, A1, 0, 0, 1, 1, 1, 0 },
	{ IPPROTO_TCP, 0, 0, 1, 0, 0, 1, 0, -EADDRINUSE },
	{ IPPROTO_UDP, A1, A1, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_UDP, A1, A2, 0, 0, 0, 0, 0, 0 },
	{ IPPROTO_UDP, 0, A1, 0, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_UDP, A1, A1, 1, 1, 0, 0, 0, 0 },
	{ IPPROTO_UDP, A1, A1, 1, 0, 0, 0, 0, -EADDRINUSE },
	{ IPPROTO_UDP, 0, A1, 0, 0, 1, 1, 0, 0 },
	{ IPPROTO_UDP, 0, A1, 0, 0, 1, 0, 0, -EADDRINUSE },
};

static void
two_binds_of_one_port_then_linux_rules_hold(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(conflicts); i++) {
		const struct conflict *c = &conflicts[i];
		int rc;

		set_options(f->sh[0], c->reuseaddr1, c->reuseport1);
		set_options(f->sh[1], c->reuseaddr2, c->reuseport2);
		assert_int_equal(bind_one(f, 0, c->proto, c->first, 80), 0);
		if (c->first_listens)
			assert_int_equal(listen_one(f, 0), 0);
		rc = bind_one(f, 1, c->proto, c->second, 80);
		if (rc != c->expect)
			fail_msg("row %u: got %d, want %d", i, rc, c->expect);
		unbind_one(f, 0);
		if (rc == 0)
			unbind_one(f, 1);
	}
}

static void
protocols_bind_one_port_then_they_do_not_clash(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(bind_one(f, 0, IPPROTO_TCP, 0, 53), 0);
	assert_int_equal(bind_one(f, 1, IPPROTO_UDP, 0, 53), 0);
}

static void
second_of_two_reuseaddr_binds_listens_then_only_one_may(void **state)
{
	struct fixture *f = *state;

	set_options(f->sh[0], 1, 0);
	set_options(f->sh[1], 1, 0);
	assert_int_equal(bind_one(f, 0, IPPROTO_TCP, 0, 80), 0);
	assert_int_equal(bind_one(f, 1, IPPROTO_TCP, A1, 80), 0);
	assert_int_equal(listen_one(f, 0), 0);
	assert_int_equal(listen_one(f, 1), -EADDRINUSE);
	unbind_one(f, 0);
	assert_int_equal(listen_one(f, 1), 0);
}

static void
port_unbound_then_it_can_be_bound_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(bind_one(f, 0, IPPROTO_TCP, 0, 80), 0);
	unbind_one(f, 0);
	assert_int_equal(bind_one(f, 1, IPPROTO_TCP, 0, 80), 0);
}

/* ---- drawn ports ---- */

static void
set_range(struct fixture *f, const char *first, const char *last)
{
	char err[128];

	assert_int_equal(knob_set(f->s, "net.inet.ip.portrange.first", first, err, sizeof(err)), 0);
	assert_int_equal(knob_set(f->s, "net.inet.ip.portrange.last", last, err, sizeof(err)), 0);
}

static void
bind_to_zero_until_spent_then_each_port_once_and_addrinuse(void **state)
{
	struct fixture *f = *state;
	uint64_t seen = 0;
	unsigned i, in_order = 0;

	set_range(f, "40000", "40039");
	for (i = 0; i < 40; i++) {
		/* not even SO_REUSEADDR makes a drawn port shared */
		set_options(f->sh[i], 1, 0);
		assert_int_equal(bind_one(f, i, IPPROTO_TCP, 0, 0), 0);
		assert_in_range(f->got[i].port, 40000, 40039);
		assert_false((seen >> (f->got[i].port - 40000)) & 1);
		seen |= UINT64_C(1) << (f->got[i].port - 40000);
		in_order += i > 0 && f->got[i].port == f->got[i - 1].port + 1;
	}
	assert_int_equal(bind_one(f, 40, IPPROTO_TCP, 0, 0), -EADDRINUSE);
	assert_int_equal(bind_one(f, 40, IPPROTO_TCP, A1, 0), -EADDRINUSE);
	assert_int_equal(bind_one(f, 40, IPPROTO_UDP, 0, 0), 0);
	/* a guess of "the next one" would be right once in forty */
	assert_true(in_order < 12);
	unbind_one(f, 17);
	assert_int_equal(bind_one(f, 41, IPPROTO_TCP, 0, 0), 0);
	assert_int_equal(f->got[41].port, f->got[17].port);
}

static void
bind_to_zero_on_two_addresses_then_both_get_the_whole_range(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	set_range(f, "40000", "40009");
	for (i = 0; i < 10; i++) {
		assert_int_equal(bind_one(f, i, IPPROTO_UDP, A1, 0), 0);
		assert_int_equal(bind_one(f, 20 + i, IPPROTO_UDP, A2, 0), 0);
	}
	assert_int_equal(bind_one(f, 40, IPPROTO_UDP, A2, 0), -EADDRINUSE);
}

static void
ports_are_reserved_then_they_are_not_drawn_but_may_be_asked_for(void **state)
{
	struct fixture *f = *state;
	char err[128];
	unsigned i;

	set_range(f, "40000", "40009");
	knob_set(f->s, "net.inet.ip.portrange.reserved_first", "40003", err, sizeof(err));
	knob_set(f->s, "net.inet.ip.portrange.reserved_last", "40006", err, sizeof(err));
	for (i = 0; i < 6; i++) {
		assert_int_equal(bind_one(f, i, IPPROTO_TCP, 0, 0), 0);
		assert_false(f->got[i].port >= 40003 && f->got[i].port <= 40006);
	}
	assert_int_equal(bind_one(f, 6, IPPROTO_TCP, 0, 0), -EADDRINUSE);
	assert_int_equal(bind_one(f, 6, IPPROTO_TCP, 0, 40004), 0);
}

/* ---- lookups ---- */

static void
listener_is_specific_and_wildcard_then_specific_wins(void **state)
{
	struct fixture *f = *state;
	struct tuple t1 = tup(A1, 80, PEER, 4000), t2 = tup(A2, 80, PEER, 4000);

	set_options(f->sh[0], 0, 1);
	set_options(f->sh[1], 0, 1);
	bind_one(f, 0, IPPROTO_TCP, A1, 80);
	bind_one(f, 1, IPPROTO_TCP, 0, 80);
	assert_null(demux_lookup_listener(f->s, &t1));
	listen_one(f, 1);
	assert_ptr_equal(demux_lookup_listener(f->s, &t1), f->sh[1]);
	listen_one(f, 0);
	assert_ptr_equal(demux_lookup_listener(f->s, &t1), f->sh[0]);
	assert_ptr_equal(demux_lookup_listener(f->s, &t2), f->sh[1]);
	t2.lport = 81;
	assert_null(demux_lookup_listener(f->s, &t2));
	unbind_one(f, 0);
	assert_ptr_equal(demux_lookup_listener(f->s, &t1), f->sh[1]);
}

static void
dgram_is_connected_then_it_gets_only_its_peers_packets(void **state)
{
	struct fixture *f = *state;
	struct tuple peer = tup(A1, 53, PEER, 4000), other = tup(A1, 53, PEER, 4001);

	set_options(f->sh[0], 1, 0);
	set_options(f->sh[1], 1, 0);
	bind_one(f, 0, IPPROTO_UDP, 0, 53);
	bind_one(f, 1, IPPROTO_UDP, 0, 53);
	connect_one(f, 0, A1, PEER, 4000);
	assert_ptr_equal(demux_lookup_dgram(f->s, &peer), f->sh[0]);
	assert_ptr_equal(demux_lookup_connected(f->s, &peer), f->sh[0]);
	assert_ptr_equal(demux_lookup_dgram(f->s, &other), f->sh[1]);
	assert_null(demux_lookup_connected(f->s, &other));
	/* dissolved again */
	connect_one(f, 0, 0, 0, 0);
	assert_null(demux_lookup_connected(f->s, &peer));
	unbind_one(f, 1);
	assert_ptr_equal(demux_lookup_dgram(f->s, &other), f->sh[0]);
}

static void
count_visit(void *arg, struct sockhalf *sh)
{
	unsigned *count = arg;

	assert_non_null(sh);
	(*count)++;
}

static void
datagram_is_broadcast_then_every_matching_socket_is_visited(void **state)
{
	struct fixture *f = *state;
	struct tuple t = tup(0x0a0000ff, 67, PEER, 68);
	unsigned i, count = 0;

	for (i = 0; i < 4; i++)
		set_options(f->sh[i], 1, 0);
	bind_one(f, 0, IPPROTO_UDP, 0, 67);
	bind_one(f, 1, IPPROTO_UDP, 0, 67);
	bind_one(f, 2, IPPROTO_UDP, A1, 67);
	bind_one(f, 3, IPPROTO_UDP, 0x0a0000ff, 67);
	demux_visit_dgram(f->s, &t, count_visit, &count);
	assert_int_equal(count, 3);
}

static void
reuseport_group_then_a_tuple_always_meets_the_same_member_and_all_are_met(void **state)
{
	struct fixture *f = *state;
	unsigned i, j, hits[4] = { 0 };
	struct sockhalf *sh;

	for (i = 0; i < 4; i++) {
		set_options(f->sh[i], 0, 1);
		assert_int_equal(bind_one(f, i, IPPROTO_TCP, 0, 80), 0);
		assert_int_equal(listen_one(f, i), 0);
	}
	for (i = 0; i < 4000; i++) {
		struct tuple t = tup(A1, 80, PEER + i / 100, (uint16_t)(1000 + i));

		sh = demux_lookup_listener(f->s, &t);
		assert_ptr_equal(sh, demux_lookup_listener(f->s, &t));
		for (j = 0; j < 4; j++)
			hits[j] += sh == f->sh[j];
	}
	/* 1,000 each; five standard deviations are 137 */
	for (j = 0; j < 4; j++)
		assert_in_range(hits[j], 860, 1140);
	unbind_one(f, 2);
	for (i = 0; i < 100; i++) {
		struct tuple t = tup(A1, 80, PEER, (uint16_t)(1000 + i));

		sh = demux_lookup_listener(f->s, &t);
		assert_true(sh == f->sh[0] || sh == f->sh[1] || sh == f->sh[3]);
	}
}

static void
port_is_bound_then_only_overlapping_addresses_are_kept_from_it(void **state)
{
	struct fixture *f = *state;
	struct ipaddr a1 = ipaddr_v4_cpu(A1), a2 = ipaddr_v4_cpu(A2);

	bind_one(f, 0, IPPROTO_TCP, A1, 5000);
	bind_one(f, 1, IPPROTO_TCP, 0, 5001);
	assert_true(demux_port_is_bound(f->s, IPPROTO_TCP, &a1, 5000));
	assert_false(demux_port_is_bound(f->s, IPPROTO_TCP, &a2, 5000));
	assert_true(demux_port_is_bound(f->s, IPPROTO_TCP, &a2, 5001));
	assert_false(demux_port_is_bound(f->s, IPPROTO_UDP, &a1, 5000));
	assert_false(demux_port_is_bound(f->s, IPPROTO_TCP, &a1, 5002));
	unbind_one(f, 0);
	assert_false(demux_port_is_bound(f->s, IPPROTO_TCP, &a1, 5000));
}

/* ---- two threads ---- */

#define WRITER_TURNS	3000u

struct race {
	struct fixture *f;
	_Atomic bool done;
};

/*
 * Sockets 1 to 8 come and go on the port of socket 0; some are connected to where the reader's
 * packets come from.
 */
static void *
writer(void *arg)
{
	struct race *r = arg;
	struct fixture *f = r->f;
	unsigned turn, i;

	for (turn = 0; turn < WRITER_TURNS; turn++) {
		i = 1 + turn % 8;
		if (turn >= 8)
			unbind_one(f, i);
		set_options(f->sh[i], 1, 0);
		if (bind_one(f, i, IPPROTO_UDP, turn % 3 ? 0 : A1, 53) != 0)
			abort();
		if (turn % 2)
			connect_one(f, i, A1, PEER, (uint16_t)(4000 + i));
	}
	atomic_store(&r->done, true);
	return NULL;
}

static void
binds_change_while_another_thread_looks_up_then_it_finds_live_sockets_only(void **state)
{
	struct fixture *f = *state;
	struct race r = { .f = f };
	unsigned i, lookups = 0, missing = 0, foreign = 0;
	struct sockhalf *sh;
	pthread_t t;

	set_options(f->sh[0], 1, 0);
	assert_int_equal(bind_one(f, 0, IPPROTO_UDP, 0, 53), 0);
	assert_true(netisr_take(f->s->netisr[0]));
	assert_int_equal(pthread_create(&t, NULL, writer, &r), 0);
	while (!atomic_load(&r.done) || lookups < 1000) {
		for (i = 0; i < 16; i++, lookups++) {
			struct tuple p = tup(A1, 53, PEER, (uint16_t)(4000 + i));

			sh = demux_lookup_dgram(f->s, &p);
			missing += sh == NULL;
			foreign += sh != NULL && sh->stack != f->s;
		}
		netisr_round(f->s->netisr[0]);
		if (lookups % 1024 == 0)
			sched_yield();
	}
	pthread_join(t, NULL);
	netisr_give(f->s->netisr[0]);
	/* Socket 0 is there all the time. */
	assert_int_equal(foreign, 0);
	assert_int_equal(missing, 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(two_binds_of_one_port_then_linux_rules_hold),
		T(protocols_bind_one_port_then_they_do_not_clash),
		T(second_of_two_reuseaddr_binds_listens_then_only_one_may),
		T(port_unbound_then_it_can_be_bound_again),
		T(bind_to_zero_until_spent_then_each_port_once_and_addrinuse),
		T(bind_to_zero_on_two_addresses_then_both_get_the_whole_range),
		T(ports_are_reserved_then_they_are_not_drawn_but_may_be_asked_for),
		T(listener_is_specific_and_wildcard_then_specific_wins),
		T(dgram_is_connected_then_it_gets_only_its_peers_packets),
		T(datagram_is_broadcast_then_every_matching_socket_is_visited),
		T(reuseport_group_then_a_tuple_always_meets_the_same_member_and_all_are_met),
		T(port_is_bound_then_only_overlapping_addresses_are_kept_from_it),
		T(binds_change_while_another_thread_looks_up_then_it_finds_live_sockets_only),
	};

	return cmocka_run_group_tests_name("demux", tests, NULL, NULL);
}
