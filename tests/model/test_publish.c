/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of published snapshots (runtime/publish.c, the end of a round in netisr.c): holders read
 * a pointer in their rounds while writers swap it and retire the old snapshot.
 *
 * Checked in all interleavings, with store buffers: what a holder has loaded in a round is not
 * freed before the round has ended, every snapshot that is retired and drained is freed once. Not
 * covered: several netisrs (each is counted by itself, in the same way).
 */
#include "world.h"

#define SNAPSHOTS 3

struct snapshot {
	struct retired retired;
	_Atomic bool is_freed;		/* an access to it stands for one to the memory */
};

static struct netisr *const n0 = &world_netisr[0];
static struct snapshot snapshots[SNAPSHOTS];
static struct snapshot *_Atomic current;
static struct snapshot *loaded;		/* by the holder in this round */

static void
free_snapshot(struct darter_stack *s, struct retired *r)
{
	struct snapshot *old = container_of(r, struct snapshot, retired);

	(void)s;
	MODEL_ASSERT(!atomic_exchange(&old->is_freed, true));
}

static unsigned
load_snapshot(struct netisr *n)
{
	(void)n;
	loaded = published_load(&current);
	return 0;
}

/* The last thing that a round does with it. */
static void
use_snapshot(struct netisr *n)
{
	(void)n;
	MODEL_ASSERT(!atomic_load(&loaded->is_freed));
}

static const struct layer reader_layer = {
	.name = "reader",
	.poll = load_snapshot,
	.flush = use_snapshot,
};

static const struct layer *const layers[] = { &reader_layer, NULL };

static void
reset(void)
{
	world_reset(layers);
	memset(snapshots, 0, sizeof(snapshots));
	atomic_store(&current, &snapshots[0]);
}

static void
swap_in(unsigned i)
{
	struct snapshot *old;

	control_lock(&world);
	old = published_load(&current);
	published_store(&current, &snapshots[i]);
	publish_retire(&world, &old->retired, free_snapshot);
	control_unlock(&world);
}

static void
drain(void)
{
	control_lock(&world);
	publish_drain(&world);
	control_unlock(&world);
}

static void
run_two_rounds(void)
{
	if (!netisr_take(n0))
		return;
	netisr_round(n0);
	netisr_round(n0);
	netisr_give(n0);
}

static void
run_one_round(void)
{
	if (!netisr_take(n0))
		return;
	netisr_round(n0);
	netisr_give(n0);
}

static void
swap_once(void)
{
	swap_in(1);
	drain();
}

static void
swap_twice(void)
{
	swap_in(1);
	swap_in(2);
	drain();
}

static void
reap(void)
{
	publish_reap(&world);
}

static void
all_are_freed(void)
{
	world_is_at_rest();
	MODEL_ASSERT(atomic_load(&snapshots[0].is_freed));
	MODEL_ASSERT(!atomic_load(&published_load(&current)->is_freed));
	MODEL_ASSERT(world.retired == NULL);
}

static const struct model UNUSED one_holder = {
	.name = "a holder and a writer",
	.setup = reset,
	.thread = { run_two_rounds, swap_once },
	.check = all_are_freed,
	.tso = true,
};

static const struct model UNUSED two_holders = {
	.name = "two holders and a writer",
	.setup = reset,
	.thread = { run_one_round, run_one_round, swap_once },
	.check = all_are_freed,
	.tso = true,
};

static const struct model UNUSED writes_twice = {
	.name = "a holder, a writer of two, a reaper",
	.setup = reset,
	.thread = { run_one_round, swap_twice, reap },
	.check = all_are_freed,
	.tso = true,
};

#ifndef MODEL_SEEDED

static void
a_loaded_snapshot_lives_until_the_round_has_ended(void **state)
{
	(void)state;
	model_expect_good(&one_holder);
	model_expect_good(&two_holders);
	model_expect_good(&writes_twice);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loaded_snapshot_lives_until_the_round_has_ended),
	};

	return cmocka_run_group_tests_name("publish", tests, NULL, NULL);
}

#else

static void
a_reader_of_a_freed_snapshot_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_FREED_TOO_EARLY);
	model_expect_found(&one_holder, SEED_FREED_TOO_EARLY);
}

static void
a_count_of_rounds_that_a_store_buffer_holds_back_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_ROUND_IN_STORE_BUFFER);
	model_expect_found(&one_holder, SEED_ROUND_IN_STORE_BUFFER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_of_a_freed_snapshot_is_found_out),
		cmocka_unit_test(a_count_of_rounds_that_a_store_buffer_holds_back_is_found_out),
	};

	return cmocka_run_group_tests_name("publish seeded", tests, NULL, NULL);
}

#endif
