/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the port choice share: a bare stack with demux alone, connections that are
 * nothing but a byte a port, and a connect that goes from netisr to netisr as tcp_open.c sends it.
 */
#ifndef TEST_UNIT_PORT_RIG_H
#define TEST_UNIT_PORT_RIG_H

#include "unit/transport_bare.h"

#include <errno.h>
#include <netinet/in.h>

#include "transport/demux.h"
#include "transport/port.h"
#include "transport/ulp.h"

#define LOCAL	0x0a000001
#define PEER	0xc0000201
#define FIRST	32768u
#define COUNT	28232u

static const struct layer *const rig_layers[] = { &demux_layer, NULL };

/* Ports of connections from LOCAL to PEER:80, an enum port_use each. */
static uint8_t rig_use[65536];

static UNUSED enum port_use
rig_use_of(struct netisr *n, const struct tuple *t)
{
	(void)n;
	return (enum port_use)rig_use[t->lport];
}

static UNUSED struct tuple
rig_tuple(uint16_t lport)
{
	return tup(LOCAL, lport, PEER, 80);
}

static UNUSED void
rig_set(struct darter_stack *s, const char *name, const char *value)
{
	char err[128] = "";

	if (knob_set(s, name, value, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static UNUSED void
rig_range(struct darter_stack *s, const char *first, const char *last)
{
	rig_set(s, "net.inet.ip.portrange.first", first);
	rig_set(s, "net.inet.ip.portrange.last", last);
}

static UNUSED void
rig_key(struct darter_stack *s, const uint8_t *key)
{
	assert_int_equal(toeplitz_init(&s->rss, key, 40), 0);
	assert_int_equal(port_rebuild(s), 0);
}

/* Draws on n alone: nothing is sent on. Not released again: its count stays. */
static UNUSED int
rig_draw(struct netisr *n, struct tuple *t, enum port_use (*use)(struct netisr *n,
    const struct tuple *t))
{
	struct port_ask ask = { .t = *t, .use = use, .tried = ~(UINT64_C(1) << n->id) };
	struct netisr *owner = NULL;
	int rc = port_choose(n, &ask, &owner);

	assert_ptr_equal(owner, n);
	*t = ask.t;
	return rc;
}

/*
 * A connect from LOCAL to PEER:80 that begins on netisr `home` and ends where it may; marks its
 * port. Returns the port or a negative errno; *ret_hops is how often it was sent on.
 */
static UNUSED int
rig_connect(struct darter_stack *s, unsigned home, unsigned *ret_hops)
{
	struct port_ask ask = { .t = rig_tuple(0), .use = rig_use_of };
	struct netisr *n = s->netisr[home], *owner;
	int rc;

	for (;;) {
		*ret_hops = ask.hops;
		rc = port_choose(n, &ask, &owner);
		if (rc < 0)
			return rc;
		if (owner == n)
			break;
		n = owner;
		ask.hops++;
		*ret_hops = ask.hops;
		if (ask.t.lport != 0 && rig_use_of(n, &ask.t) == PORT_FREE &&
		    port_claim(n, &ask.t, 0))
			break;
		ask.t.lport = 0;
	}
	assert_ptr_equal(stack_owner(s, &ask.t), n);
	assert_int_equal(rig_use[ask.t.lport], PORT_FREE);
	rig_use[ask.t.lport] = PORT_TAKEN;
	return ask.t.lport;
}

/* … and its end. */
static UNUSED void
rig_close(struct darter_stack *s, uint16_t lport)
{
	struct tuple t = rig_tuple(lport);
	struct netisr *n = stack_owner(s, &t);

	rig_use[lport] = PORT_FREE;
	port_lower(n, &t, 0);
	port_freed(n, &t);
}

static UNUSED int
rig_setup(void **state)
{
	(void)state;
	memset(rig_use, PORT_FREE, sizeof(rig_use));
	return 0;
}

#endif
