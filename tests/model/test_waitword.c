/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of waiting (runtime/waitword.c): posters, threads that sleep in a futex, threads that
 * sleep in poll with their napper on the word, two of the latter on one word, a descriptor that
 * becomes readable instead.
 *
 * Checked in all interleavings, with store buffers: every wait that is owed an end has one. Not
 * covered: signals, cancellation, spinning before a sleep, deadlines (time stands still); waits
 * that run a netisr are in test_keeper.c.
 */
#include "world.h"

static struct waitword word;
static int fd;

static void
reset(void)
{
	world_reset(no_layers);
	memset(&word, 0, sizeof(word));
	fd = eventfd(0, 0);
}

static void
wait_past(uint32_t seen, int extra_fd)
{
	while (waitword_seq(&word) == seen)
		MODEL_ASSERT(wait_until(&world, NULL, &word, seen, TIME_NEVER, extra_fd) == 0);
}

static void
post(void)
{
	waitword_post(&word);
}

static void
post_twice(void)
{
	waitword_post(&word);
	waitword_post(&word);
}

static void
sleep_in_futex(void)
{
	wait_past(0, -1);
}

static void
sleep_in_poll(void)
{
	wait_past(0, fd);
}

/* One post may be over before the first wait: then the second is not owed anything more. */
static void
sleep_in_poll_twice(void)
{
	wait_past(0, fd);
	wait_past(1, fd);
}

static void
sleep_in_futex_twice(void)
{
	wait_past(0, -1);
	wait_past(1, -1);
}

static void
make_readable(void)
{
	uint64_t one = 1;

	MODEL_ASSERT(write(fd, &one, sizeof(one)) == sizeof(one));
}

static void
wait_for_descriptor(void)
{
	MODEL_ASSERT(wait_until(&world, NULL, &word, 0, TIME_NEVER, fd) == 0);
}

static void
nobody_is_left(void)
{
	MODEL_ASSERT(atomic_load(&word.sleepers) == 0);
	MODEL_ASSERT(atomic_load(&word.napper) == NULL);
}

static const struct model models[] = {
	{ .name = "a poster, two sleepers", .thread = { post, sleep_in_futex, sleep_in_futex } },
	{ .name = "a poster of two, one who sleeps twice",
	    .thread = { post_twice, sleep_in_futex_twice } },
	{ .name = "a poster of two, one who polls twice",
	    .thread = { post_twice, sleep_in_poll_twice } },
	{ .name = "a poster, a sleeper, one who polls",
	    .thread = { post, sleep_in_futex, sleep_in_poll } },
	{ .name = "a poster, two who poll", .thread = { post, sleep_in_poll, sleep_in_poll } },
	{ .name = "two posters, one who polls twice",
	    .thread = { post, post, sleep_in_poll_twice } },
	{ .name = "a poster, a writer, one who polls",
	    .thread = { post, make_readable, wait_for_descriptor } },
	{ .name = "a writer, one who polls", .thread = { make_readable, wait_for_descriptor } },
};

static struct model
model_of(unsigned i)
{
	struct model m = models[i];

	m.setup = reset;
	m.check = nobody_is_left;
	m.tso = true;
	return m;
}

#ifndef MODEL_SEEDED

static void
every_sleeper_that_is_owed_a_wake_up_gets_it(void **state)
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
		cmocka_unit_test(every_sleeper_that_is_owed_a_wake_up_gets_it),
	};

	return cmocka_run_group_tests_name("waitword", tests, NULL, NULL);
}

#else

static void
a_post_that_looks_for_sleepers_too_early_is_found_out(void **state)
{
	struct model m = model_of(0);

	(void)state;
	seed_expect_applied(SEED_POST_LOOKS_FIRST);
	model_expect_found(&m, SEED_POST_LOOKS_FIRST);
}

static void
a_post_that_looks_for_a_napper_too_early_is_found_out(void **state)
{
	struct model m = model_of(2);

	(void)state;
	seed_expect_applied(SEED_POST_LOOKS_FOR_NAPPER_FIRST);
	model_expect_found(&m, SEED_POST_LOOKS_FOR_NAPPER_FIRST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_post_that_looks_for_sleepers_too_early_is_found_out),
		cmocka_unit_test(a_post_that_looks_for_a_napper_too_early_is_found_out),
	};

	return cmocka_run_group_tests_name("waitword seeded", tests, NULL, NULL);
}

#endif
