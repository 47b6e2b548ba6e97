/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of the accept queues (transport/acceptq.c): two producers, each on its lane, one
 * consumer, the limit over both lanes.
 *
 * Checked in all interleavings, with store buffers: what was put is taken once, in the order of
 * its lane; no more is queued than the backlog allows; the consumer that sleeps on an empty queue
 * is woken for a child put meanwhile. Not covered: changes of the backlog.
 */
#include "world.h"

#include "transport/acceptq.c"

#define BACKLOG	1u	/* so two may be queued */

static struct acceptq *queue;
static struct waitword news;
static unsigned n_put[2], n_taken_from[2];
static _Atomic int n_queued;		/* put and noted, less those taken and noted */
static int limit;

static void
reset(void)
{
	world_reset(no_layers);
	limit = BACKLOG + 1;
	queue = acceptq_new(2, BACKLOG);
	memset(&news, 0, sizeof(news));
	memset(n_put, 0, sizeof(n_put));
	memset(n_taken_from, 0, sizeof(n_taken_from));
	atomic_store(&n_queued, 0);
	model_ignore(&queue->backlog, sizeof(queue->backlog));
}

/* One more: in the hands of the consumer, who has not noted it yet. */
static void
reset_with_consumer(void)
{
	reset();
	limit++;
}

/* Never looked inside: lane and number. */
static struct sockhalf *
child(unsigned lane, unsigned number)
{
	return (struct sockhalf *)(uintptr_t)((lane + 1) * 0x1000 + number * 0x10);
}

static void
put_some(unsigned lane, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (!acceptq_put(queue, lane, child(lane, n_put[lane])))
			continue;
		n_put[lane]++;
		MODEL_ASSERT(atomic_fetch_add(&n_queued, 1) < limit);
		waitword_post(&news);
	}
}

static void
put_two_on_0(void)
{
	put_some(0, 2);
}

static void
put_two_on_1(void)
{
	put_some(1, 2);
}

static void
put_one_on_0(void)
{
	put_some(0, 1);
}

static void
put_one_on_1(void)
{
	put_some(1, 1);
}

static void
take(const struct sockhalf *sh)
{
	unsigned lane = (unsigned)((uintptr_t)sh >> 12) - 1;

	MODEL_ASSERT(lane < 2 && sh == child(lane, n_taken_from[lane]));
	n_taken_from[lane]++;
	atomic_fetch_sub(&n_queued, 1);
}

/* Accepts one, sleeping until there is one. */
static void
accept_one(void)
{
	for (;;) {
		uint32_t seen = waitword_seq(&news);
		struct sockhalf *sh = acceptq_get(queue, 1);

		if (sh != NULL) {
			take(sh);
			return;
		}
		waitword_sleep(&news, seen, UINT64_MAX);
	}
}

static void
accept_two(void)
{
	accept_one();
	accept_one();
}

static void
nothing_is_lost(void)
{
	struct sockhalf *sh;

	MODEL_ASSERT(acceptq_count(queue) <= BACKLOG + 1);
	while ((sh = acceptq_get(queue, 0)) != NULL)
		take(sh);
	MODEL_ASSERT(n_taken_from[0] == n_put[0] && n_taken_from[1] == n_put[1]);
	MODEL_ASSERT(acceptq_count(queue) == 0);
}

static const struct model UNUSED two_producers = {
	.name = "two producers, one who accepts one",
	.setup = reset_with_consumer,
	.thread = { put_one_on_0, put_one_on_1, accept_one },
	.check = nothing_is_lost,
	.tso = true,
};

static const struct model UNUSED one_producer = {
	.name = "a producer of two, one who accepts two",
	.setup = reset_with_consumer,
	.thread = { put_two_on_0, accept_two },
	.check = nothing_is_lost,
	.tso = true,
};

static const struct model UNUSED only_producers = {
	.name = "two producers",
	.setup = reset,
	.thread = { put_two_on_0, put_two_on_1 },
	.check = nothing_is_lost,
	.tso = true,
};

#ifndef MODEL_SEEDED

static void
children_come_once_in_order_and_within_the_backlog(void **state)
{
	(void)state;
	model_expect_good(&only_producers);
	model_expect_good(&one_producer);
	model_expect_good(&two_producers);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_come_once_in_order_and_within_the_backlog),
	};

	return cmocka_run_group_tests_name("acceptq", tests, NULL, NULL);
}

#else

static void
a_limit_that_is_looked_at_and_then_raised_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_LIMIT_LOOKED_AT_FIRST);
	model_expect_found(&only_producers, SEED_LIMIT_LOOKED_AT_FIRST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_that_is_looked_at_and_then_raised_is_found_out),
	};

	return cmocka_run_group_tests_name("acceptq seeded", tests, NULL, NULL);
}

#endif
