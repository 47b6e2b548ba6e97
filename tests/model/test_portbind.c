/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of bind against the choice of a port (transport/demux.c, port_count.c): one publishes its
 * entry and then reads the counts, the other counts itself and then looks for entries.
 *
 * Checked in all interleavings, with store buffers: never do both get the same address and port,
 * and who gives way leaves nothing behind. Not covered: several netisrs (each has counts of its
 * own, read one after the other), drawn binds.
 */
#include "world.h"

#include "base/hash.h"
#include "transport/demux.h"
#include "transport/demux_priv.h"
#include "transport/port_priv.h"

#include "transport/group.c"
#include "transport/demux.c"
#include "transport/port_count.c"

#define PORT	1u

static struct netisr *const n0 = &world_netisr[0];
static struct demux_stack demux;
static struct port_cell cells[PORT_ADDRS * 65536];
static struct sockhalf socks[2];
static struct bind_entry *others;	/* a bind of the other address, NULL: none */
static bool is_bound, is_claimed;	/* each is written by one thread */

/* What the choice proper has; nothing here draws. */

uint32_t
port_stride(uint32_t random, uint32_t count)
{
	(void)random;
	(void)count;
	return 1;
}

void
port_range_of(const struct darter_stack *s, uint32_t range, uint16_t *ret_first, uint16_t *ret_last)
{
	(void)s;
	(void)range;
	*ret_first = 1;
	*ret_last = 0;
}

bool
port_is_reserved(const struct darter_stack *s, uint16_t port)
{
	(void)s;
	(void)port;
	return false;
}

int
port_init(struct darter_stack *s)
{
	(void)s;
	return 0;
}

void
port_fini(struct darter_stack *s)
{
	(void)s;
}

static struct tuple
tuple_from(unsigned i)
{
	return (struct tuple){ ipaddr_v4_cpu(0x0a000001 + i), ipaddr_v4_cpu(0xc0000201), PORT, 80 };
}

static bool
bind_it(unsigned i, struct bind_entry **e)
{
	struct endpoint at = { tuple_from(i).local, PORT }, got;

	return demux_bind(&world, &socks[i], IPPROTO_TCP, &at, &got, e) == 0;
}

static void
reset(void)
{
	unsigned i;

	world_reset(no_layers);
	memset(&demux, 0, sizeof(demux));
	memset(socks, 0, sizeof(socks));
	for (i = 0; i < PORT_ADDRS; i++)
		memset(&cells[i * 65536 + PORT], 0, sizeof(cells[0]));
	world.demux = &demux;
	demux.cells[0] = cells;
	others = NULL;
	is_bound = false;
	is_claimed = false;
}

/* The port's bit is set already. */
static void
reset_with_other(void)
{
	reset();
	MODEL_ASSERT(bind_it(1, &others));
}

static void
binder(void)
{
	struct bind_entry *e;

	control_lock(&world);
	is_bound = bind_it(0, &e);
	control_unlock(&world);
}

/* The bit is cleared and set again. */
static void
binder_after_unbind(void)
{
	struct bind_entry *e;

	control_lock(&world);
	demux_unbind(&world, others);
	is_bound = bind_it(0, &e);
	control_unlock(&world);
}

static void
claim(void)
{
	struct tuple t = tuple_from(0);

	is_claimed = port_claim(n0, &t, 0);
}

/* Holders only look at entries: what is unbound meanwhile is not freed before the hold ends. */
static void
claimer(void)
{
	if (!netisr_take(n0))
		return;
	claim();
	netisr_give(n0);
}

/* A connection of the other address comes and goes: addresses get their numbers meanwhile. */
static void
claimer_of_two(void)
{
	struct tuple other = tuple_from(1);

	if (!netisr_take(n0))
		return;
	if (port_claim(n0, &other, 0))
		port_lower(n0, &other, 0);
	claim();
	netisr_give(n0);
}

static void
one_has_it(void)
{
	struct tuple t = tuple_from(0);

	MODEL_ASSERT(!(is_bound && is_claimed));
	MODEL_ASSERT(port_has_conns(&world, &t.local, PORT, 0) == is_claimed);
	MODEL_ASSERT(demux_port_is_bound(&world, IPPROTO_TCP, &t.local, PORT) == is_bound);
}

static const struct model models[] = {
	{ .name = "a bind, a claim", .setup = reset, .thread = { binder, claimer } },
	{ .name = "a bind beside another address, a claim", .setup = reset_with_other,
	    .thread = { binder, claimer } },
	{ .name = "an unbind and a bind, a claim", .setup = reset_with_other,
	    .thread = { binder_after_unbind, claimer } },
	{ .name = "a bind, claims of two addresses", .setup = reset,
	    .thread = { binder, claimer_of_two } },
};

static struct model
model_of(unsigned i)
{
	struct model m = models[i];

	m.check = one_has_it;
	m.tso = true;
	return m;
}

#ifndef MODEL_SEEDED

static void
port_has_one_owner_in_every_order(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(models); i++) {
		struct model m = model_of(i);

		model_expect_good(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_has_one_owner_in_every_order),
	};

	return cmocka_run_group_tests_name("portbind", tests, NULL, NULL);
}

#else

static void
bind_that_looks_before_it_is_seen_is_found_out(void **state)
{
	struct model m = model_of(0);

	(void)state;
	seed_expect_applied(SEED_BIND_LOOKS_FIRST);
	model_expect_found(&m, SEED_BIND_LOOKS_FIRST);
}

static void
claim_that_waits_in_the_store_buffer_is_found_out(void **state)
{
	struct model m = model_of(0);

	(void)state;
	seed_expect_applied(SEED_CLAIM_IN_STORE_BUFFER);
	model_expect_found(&m, SEED_CLAIM_IN_STORE_BUFFER);
}

static void
entry_that_waits_in_the_store_buffer_is_found_out(void **state)
{
	struct model m = model_of(1);

	(void)state;
	seed_expect_applied(SEED_BIT_BEFORE_ENTRY);
	model_expect_found(&m, SEED_BIT_BEFORE_ENTRY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind_that_looks_before_it_is_seen_is_found_out),
		cmocka_unit_test(claim_that_waits_in_the_store_buffer_is_found_out),
		cmocka_unit_test(entry_that_waits_in_the_store_buffer_is_found_out),
	};

	return cmocka_run_group_tests_name("portbind seeded", tests, NULL, NULL);
}

#endif
