/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of doorbells (runtime/netisr.c, keeper.c, waitword.c): a keeper that sleeps, threads that
 * send to it, borrow, call and wait, attach and detach. The keeper runs keeper_main itself over
 * model descriptors.
 *
 * Checked in all interleavings, with store buffers: every message is handled, every call comes
 * back, an armed timer is never behind what the sleeping keeper has set, nobody sleeps for ever
 * while something is owed, an attached thread has the keeper's place to itself. Not covered:
 * devices' descriptors, bounds on rounds and time, several netisrs, cancellation.
 */
#include "world.h"

#define NODES 3

static struct netisr *const n0 = &world_netisr[0];
static struct msg_node node[NODES];
static unsigned n_handled;
static struct timer timer;
static uint64_t arm_us;		/* a message arms the timer so long from now; 0: not */
static struct waitword word;
static int extra_fd;

static void
on_timer(struct netisr *n, struct timer *t)
{
	(void)n;
	(void)t;
}

static void
on_message(struct netisr *n, struct msg_node *m)
{
	(void)m;
	MODEL_ASSERT(netisr_current() == n);
	n_handled++;
	if (arm_us != 0)
		timer_arm(&n->wheel, &timer, time_add_us(n->now, arm_us));
	waitword_post(&word);
}

static void
reset(bool may_borrow)
{
	unsigned i;

	world_reset(no_layers);
	world.on_message[MSG_LISTENER] = on_message;
	atomic_store(&world.borrow, may_borrow);
	for (i = 0; i < NODES; i++)
		node[i] = (struct msg_node){ .kind = MSG_LISTENER };
	n_handled = 0;
	arm_us = 0;
	timer_init(&timer, on_timer);
	memset(&word, 0, sizeof(word));
	extra_fd = -1;
}

static void
reset_with_keeper(void)
{
	reset(false);
	netisr_start_keepers(&world);
}

static void
reset_with_keeper_and_borrowers(void)
{
	reset(true);
	netisr_start_keepers(&world);
}

static void
reset_with_descriptor(void)
{
	reset_with_keeper();
	extra_fd = eventfd(0, 0);
}

static void
reset_with_timer(void)
{
	reset_with_keeper_and_borrowers();
	arm_us = 10000;
}

static void
send_one(void)
{
	netisr_send(n0, &node[model_self()]);
}

static void
handled_two(void)
{
	world_is_at_rest();
	MODEL_ASSERT(n_handled == 2);
}

static void
handled_one(void)
{
	world_is_at_rest();
	MODEL_ASSERT(n_handled == 1);
}

static void
keeper_knows_the_timer(void)
{
	handled_one();
	MODEL_ASSERT(atomic_load(&n0->keeper_asleep));
	MODEL_ASSERT(atomic_load(&n0->nap_until_us) <= netisr_next_deadline(n0).us);
}

static const struct model UNUSED two_senders = {
	.tso = true,
	.name = "two senders and a keeper",
	.setup = reset_with_keeper,
	.thread = { send_one, send_one },
	.check = handled_two,
};

static const struct model UNUSED two_borrowers = {
	.tso = true,
	.name = "two senders that borrow and a keeper",
	.setup = reset_with_keeper_and_borrowers,
	.settles = true,
	.thread = { send_one, send_one },
	.check = handled_two,
};

static void
handled_three(void)
{
	world_is_at_rest();
	MODEL_ASSERT(n_handled == 3);
}

static const struct model UNUSED three_borrowers = {
	.tso = true,
	.name = "three senders that borrow and a keeper",
	.setup = reset_with_keeper_and_borrowers,
	.settles = true,
	.thread = { send_one, send_one, send_one },
	.check = handled_three,
};

static const struct model UNUSED borrower_arms = {
	.tso = true,
	.name = "a borrower arms a timer",
	.setup = reset_with_timer,
	.thread = { send_one },
	.check = keeper_knows_the_timer,
};

/* ---- calls and waits ---- */

static void
count(struct netisr *n, void *arg)
{
	(void)n;
	(void)arg;
	n_handled++;
}

static void
call_once(void)
{
	netisr_call(n0, count, NULL);
}

/* Waits for what the message of thread 0 tells. */
static void
wait_for_message(void)
{
	while (waitword_seq(&word) == 0)
		wait_until(&world, n0, &word, 0, TIME_NEVER, extra_fd);
}

static const struct model UNUSED caller = {
	.tso = true,
	.name = "a caller and a keeper",
	.setup = reset_with_keeper,
	.thread = { call_once },
	.check = handled_one,
};

static const struct model UNUSED sender_and_waiter = {
	.tso = true,
	.name = "a sender, a waiter that borrows, a keeper",
	.setup = reset_with_keeper_and_borrowers,
	.settles = true,
	.thread = { send_one, wait_for_message },
	.check = handled_one,
};

/* ---- attach and detach ---- */

static void
attach_and_detach(void)
{
	MODEL_ASSERT(netisr_attach(n0) == 0);
	MODEL_ASSERT(netisr_detach(n0) == 0);
}

static void
attach_wait_and_detach(void)
{
	MODEL_ASSERT(netisr_attach(n0) == 0);
	wait_for_message();
	MODEL_ASSERT(netisr_detach(n0) == 0);
}

/* "Asleep" and the descriptors are the attached thread's alone. */
static void
attach_twice(void)
{
	attach_and_detach();
	MODEL_ASSERT(netisr_attach(n0) == 0);
	MODEL_ASSERT(!atomic_load(&n0->keeper_asleep));
	MODEL_ASSERT(netisr_detach(n0) == 0);
}

static const struct model UNUSED attach_and_sender = {
	.tso = true,
	.name = "a sender, one who attaches and detaches, a keeper",
	.setup = reset_with_keeper,
	.thread = { send_one, attach_and_detach },
	.check = handled_one,
};

static const struct model UNUSED attached_waiter = {
	.tso = true,
	.name = "a sender, one who attaches and waits, a keeper",
	.setup = reset_with_keeper,
	.thread = { send_one, attach_wait_and_detach },
	.check = handled_one,
};

static const struct model UNUSED attached_poller = {
	.tso = true,
	.name = "a sender, one who attaches and polls, a keeper",
	.setup = reset_with_descriptor,
	.settles = true,
	.thread = { send_one, attach_wait_and_detach },
	.check = handled_one,
};

static const struct model UNUSED attached_again = {
	.tso = true,
	.name = "one who attaches twice, a keeper",
	.setup = reset_with_keeper,
	.settles = true,
	.thread = { attach_twice },
	.check = world_is_at_rest,
};

/* ---- stopping ---- */

static void
stop(void)
{
	netisr_stop_keepers(&world);
}

static const struct model UNUSED stopped = {
	.tso = true,
	.name = "the keeper is stopped",
	.setup = reset_with_keeper,
	.thread = { stop },
};

#ifndef MODEL_SEEDED

static void
every_message_to_a_sleeping_keeper_is_handled(void **state)
{
	(void)state;
	model_expect_good(&two_senders);
	model_expect_good(&two_borrowers);
	model_expect_good(&three_borrowers);
}

static void
a_timer_that_a_borrower_arms_wakes_the_keeper_in_time(void **state)
{
	(void)state;
	model_expect_good(&borrower_arms);
}

static void
every_call_comes_back(void **state)
{
	(void)state;
	model_expect_good(&caller);
	model_expect_good(&sender_and_waiter);
}

static void
attaching_and_detaching_strand_nothing(void **state)
{
	(void)state;
	model_expect_good(&attach_and_sender);
	model_expect_good(&attached_waiter);
	model_expect_good(&attached_poller);
	model_expect_good(&attached_again);
}

static void
a_keeper_that_is_told_to_stop_ends(void **state)
{
	(void)state;
	model_expect_good(&stopped);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_to_a_sleeping_keeper_is_handled),
		cmocka_unit_test(a_timer_that_a_borrower_arms_wakes_the_keeper_in_time),
		cmocka_unit_test(every_call_comes_back),
		cmocka_unit_test(attaching_and_detaching_strand_nothing),
		cmocka_unit_test(a_keeper_that_is_told_to_stop_ends),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}

#else

static void
a_lost_doorbell_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_LOST_DOORBELL);
	model_expect_found(&two_senders, SEED_LOST_DOORBELL);
}

static void
a_parked_flag_that_a_store_buffer_holds_back_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_PARKED_IN_STORE_BUFFER);
	model_expect_found(&attached_again, SEED_PARKED_IN_STORE_BUFFER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_doorbell_is_found_out),
		cmocka_unit_test(a_parked_flag_that_a_store_buffer_holds_back_is_found_out),
	};

	return cmocka_run_group_tests_name("keeper seeded", tests, NULL, NULL);
}

#endif
