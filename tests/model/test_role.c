/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of the role word (runtime/msgport.c): take, push, give back.
 *
 * Pushers that borrow: whoever finds (empty, free) takes the role and handles messages until it
 * can be given back. Checked in all interleavings: one holder at a time, every message handled
 * exactly once, those of one pusher in their order, the word (empty, free) in the end. The word
 * is only changed by read-modify-writes, so store buffers have nothing to add. Not covered: who
 * rings whom (test_keeper.c).
 */
#include "support/cmocka_all.h"
#include "support/model_hooks.h"

#include "seeds.h"

#include "runtime/msgport.c"

#define PUSHERS 3
#define MSGS 2

struct msg {
	struct msg_node node;
	unsigned pusher, number;
};

static struct msgport port;
static struct msg msgs[PUSHERS][MSGS];
static unsigned n_handled[PUSHERS];
static _Atomic unsigned n_holders;

static void
reset(void)
{
	msgport_init(&port);
	memset(msgs, 0, sizeof(msgs));
	memset(n_handled, 0, sizeof(n_handled));
	atomic_store(&n_holders, 0);
}

static void
handle_all(void)
{
	struct msg_node *m = msgport_take_all(&port);

	while (m != NULL) {
		struct msg *msg = container_of(m, struct msg, node);

		m = m->next;
		MODEL_ASSERT(msg->number == n_handled[msg->pusher]);
		n_handled[msg->pusher]++;
	}
}

static void
run_as_holder(void)
{
	do {
		MODEL_ASSERT(atomic_fetch_add(&n_holders, 1) == 0);
		handle_all();
		atomic_fetch_sub(&n_holders, 1);
	} while (!msgport_give(&port));
}

static void
push(unsigned pusher, unsigned number)
{
	struct msg *m = &msgs[pusher][number];

	m->pusher = pusher;
	m->number = number;
	if (msgport_push(&port, &m->node) == MSGPORT_FOUND_IDLE && msgport_take(&port))
		run_as_holder();
}

static void
push_one(void)
{
	push(model_self(), 0);
}

static void
push_two(void)
{
	push(model_self(), 0);
	push(model_self(), 1);
}

/* A thread that has no message but takes the role when it is free, as a keeper does. */
static void
take_once(void)
{
	if (msgport_take(&port))
		run_as_holder();
}

static void
nothing_is_left(unsigned first, unsigned second, unsigned third)
{
	MODEL_ASSERT(n_handled[0] == first);
	MODEL_ASSERT(n_handled[1] == second);
	MODEL_ASSERT(n_handled[2] == third);
	MODEL_ASSERT(!msgport_has_messages(&port) && !msgport_is_held(&port));
}

static void
check_two_and_one(void)
{
	nothing_is_left(2, 1, 0);
}

static void
check_three(void)
{
	nothing_is_left(1, 1, 1);
}

static const struct model two_pushers_and_a_taker = {
	.name = "a pusher of two, a pusher of one and a taker",
	.setup = reset,
	.thread = { push_two, push_one, take_once },
	.check = check_two_and_one,
};

static const struct model UNUSED three_pushers = {
	.name = "three pushers",
	.setup = reset,
	.thread = { push_one, push_one, push_one },
	.check = check_three,
};

#ifndef MODEL_SEEDED

static void
one_holder_at_a_time_and_no_message_is_stranded(void **state)
{
	(void)state;
	model_expect_good(&two_pushers_and_a_taker);
	model_expect_good(&three_pushers);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_holder_at_a_time_and_no_message_is_stranded),
	};

	return cmocka_run_group_tests_name("role", tests, NULL, NULL);
}

#else

static void
give_that_checks_before_it_lets_go_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_CHECK_BEFORE_RELEASE);
	model_expect_found(&two_pushers_and_a_taker, SEED_CHECK_BEFORE_RELEASE);
}

static void
push_that_drops_the_held_bit_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_PUSH_DROPS_HELD);
	model_expect_found(&two_pushers_and_a_taker, SEED_PUSH_DROPS_HELD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(give_that_checks_before_it_lets_go_is_found_out),
		cmocka_unit_test(push_that_drops_the_held_bit_is_found_out),
	};

	return cmocka_run_group_tests_name("role seeded", tests, NULL, NULL);
}

#endif
