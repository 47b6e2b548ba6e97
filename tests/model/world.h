/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtime in a model: the real message port, waitword, netisr loop, keeper and publication,
 * around a stack that has nothing but netisrs. Included once, by the test's only source file.
 *
 * world_reset() makes the stack anew for each run; a model then says whether there are keepers
 * and may threads borrow. The clock stands at one second, so that no bound on time ends anything;
 * spinning before a sleep is off (its loop only waits).
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "support/cmocka_all.h"
#include "support/model_hooks.h"
#include "seeds.h"

#include "runtime/msgport.c"
#include "runtime/waitword.c"
#include "runtime/publish.c"
#include "runtime/netisr.c"
#include "runtime/keeper.c"
#include "runtime/sockhalf.c"

#define WORLD_NETISRS 1

static struct darter_stack world;
static struct netisr world_netisr[WORLD_NETISRS] CACHE_ALIGNED;
static struct clock world_clock;
static const struct layer *const *world_layers;
static const struct layer *const no_layers[] = { NULL };

static struct time
second_one(struct clock *c)
{
	(void)c;
	return (struct time){ US_PER_SEC };
}

static void
reset_netisr(struct netisr *n, unsigned id)
{
	memset(n, 0, sizeof(*n));
	n->stack = &world;
	n->id = id;
	n->now = (struct time){ US_PER_SEC };
	msgport_init(&n->port);
	wheel_init(&n->wheel, n->now);
	model_ignore(n->counters, sizeof(n->counters));
	world.netisr[id] = n;
	if (netisr_init_fds(n) < 0)
		model_fail(__FILE__, __LINE__, "no descriptors");
}

static void
world_reset(const struct layer *const *layers)
{
	unsigned i;

	world_layers = layers;
	world_clock = (struct clock){ .now = second_one };
	memset(&world, 0, sizeof(world));
	world.clock = &world_clock;
	world.layers = layers;
	world.n_netisrs = WORLD_NETISRS;
	world.on_message[MSG_CALL] = netisr_on_call;
	model_ignore(&world.borrow, sizeof(world.borrow));
	model_ignore(&world.spin_us, sizeof(world.spin_us));
	model_ignore(&world.poll_idle_us, sizeof(world.poll_idle_us));
	for (i = 0; i < WORLD_NETISRS; i++)
		reset_netisr(&world_netisr[i], i);
}

/* Nobody holds, nothing waits, nobody sleeps past what is armed. */
static UNUSED void
world_is_at_rest(void)
{
	unsigned i;

	for (i = 0; i < WORLD_NETISRS; i++) {
		struct netisr *n = &world_netisr[i];

		MODEL_ASSERT(n->backlog == NULL);
		MODEL_ASSERT(!msgport_has_messages(&n->port));
		MODEL_ASSERT(!msgport_is_held(&n->port));
	}
}

#endif
