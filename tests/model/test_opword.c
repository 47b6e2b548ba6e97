/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of a socket's op word and node (runtime/sockhalf.c, transport/ulp.c) with the user word
 * that decides who posts the last op (socket/pin.c): threads post to a socket while another
 * closes it; they borrow its netisr, or a keeper handles the messages.
 *
 * Checked in all interleavings, with store buffers: what was written before an op was posted is
 * seen by a handler of that op afterwards; CLOSE is handled once, last, and after everybody has
 * left; the node is never in the port twice. Not covered: what protocols do with an op.
 */
#include "world.h"

#include "socket/pin.c"
#include "transport/ulp.c"

static struct netisr *const n0 = &world_netisr[0];
static struct sockhalf sh;
static _Atomic unsigned written[2];	/* by the posters of SEND and of WINDOW, before the post */
static unsigned seen[2];		/* by the handler */
static unsigned n_closed;

static void
on_ops(struct netisr *n, struct sockhalf *s, uint32_t ops)
{
	MODEL_ASSERT(netisr_current() == n && s == &sh);
	MODEL_ASSERT(n_closed == 0);
	if (ops & SOCK_OP_SEND)
		seen[0] = atomic_load(&written[0]);
	if (ops & SOCK_OP_WINDOW)
		seen[1] = atomic_load(&written[1]);
	if (ops & SOCK_OP_CLOSE) {
		MODEL_ASSERT(atomic_load(&sh.user) == USER_CLOSING);
		n_closed++;
	}
}

static const struct ulp_ops ops = { .ops = on_ops };

static void
reset(bool may_borrow)
{
	world_reset(no_layers);
	atomic_store(&world.borrow, may_borrow);
	world.on_message[MSG_SOCKET] = on_socket_message;
	memset(&sh, 0, sizeof(sh));
	sh.stack = &world;
	sh.ulp = &ops;
	sh.node.kind = MSG_SOCKET;
	atomic_store(&sh.owner, n0);
	model_ignore(&sh.owner, sizeof(sh.owner));
	atomic_store(&written[0], 0);
	atomic_store(&written[1], 0);
	memset(seen, 0, sizeof(seen));
	n_closed = 0;
	pin_open(&sh.user);
}

static void
reset_borrowing(void)
{
	reset(true);
}

static void
reset_with_keeper(void)
{
	reset(false);
	netisr_start_keepers(&world);
}

static void
leave(void)
{
	if (pin_leave(&sh.user, 0) == PIN_LEFT_LAST)
		sockhalf_post(&sh, SOCK_OP_CLOSE);
}

static void
post(unsigned i, unsigned times)
{
	unsigned done;

	if (pin_enter(&sh.user, 0) < 0)
		return;
	for (done = 0; done < times; done++) {
		atomic_store(&written[i], done + 1);
		sockhalf_post(&sh, i == 0 ? SOCK_OP_SEND : SOCK_OP_WINDOW);
	}
	leave();
}

static void
send_twice(void)
{
	post(0, 2);
}

static void
open_window(void)
{
	post(1, 1);
}

static void
close_it(void)
{
	pin_close(&sh.user);
	leave();
}

static void
all_was_seen(void)
{
	world_is_at_rest();
	MODEL_ASSERT(seen[0] == atomic_load(&written[0]));
	MODEL_ASSERT(seen[1] == atomic_load(&written[1]));
	MODEL_ASSERT(atomic_load(&sh.ops) == 0);
}

static void
all_was_seen_and_closed(void)
{
	all_was_seen();
	MODEL_ASSERT(n_closed == 1);
}

static const struct model UNUSED borrowers = {
	.tso = true,
	.name = "two posters that borrow",
	.setup = reset_borrowing,
	.thread = { send_twice, open_window },
	.check = all_was_seen,
};

static const struct model UNUSED with_keeper = {
	.tso = true,
	.name = "two posters, a keeper",
	.setup = reset_with_keeper,
	.settles = true,
	.thread = { send_twice, open_window },
	.check = all_was_seen,
};

static const struct model UNUSED closed = {
	.tso = true,
	.name = "two posters, a closer",
	.setup = reset_borrowing,
	.thread = { send_twice, open_window, close_it },
	.check = all_was_seen_and_closed,
};

static const struct model UNUSED closed_with_keeper = {
	.tso = true,
	.name = "a poster, a closer, a keeper",
	.setup = reset_with_keeper,
	.settles = true,
	.thread = { send_twice, close_it },
	.check = all_was_seen_and_closed,
};

#ifndef MODEL_SEEDED

static void
no_op_is_lost_and_close_comes_last(void **state)
{
	(void)state;
	model_expect_good(&borrowers);
	model_expect_good(&with_keeper);
	model_expect_good(&closed);
	model_expect_good(&closed_with_keeper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_op_is_lost_and_close_comes_last),
	};

	return cmocka_run_group_tests_name("opword", tests, NULL, NULL);
}

#else

static void
a_handler_that_clears_the_word_after_acting_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_OPS_CLEARED_AFTER);
	model_expect_found(&borrowers, SEED_OPS_CLEARED_AFTER);
}

static void
a_node_pushed_twice_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_NODE_PUSHED_TWICE);
	model_expect_found(&with_keeper, SEED_NODE_PUSHED_TWICE);
}

static void
a_closer_that_is_not_counted_is_found_out(void **state)
{
	(void)state;
	seed_expect_applied(SEED_CLOSE_WITHOUT_COUNT);
	model_expect_found(&closed, SEED_CLOSE_WITHOUT_COUNT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_that_clears_the_word_after_acting_is_found_out),
		cmocka_unit_test(a_node_pushed_twice_is_found_out),
		cmocka_unit_test(a_closer_that_is_not_counted_is_found_out),
	};

	return cmocka_run_group_tests_name("opword seeded", tests, NULL, NULL);
}

#endif
