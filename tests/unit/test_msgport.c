/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime/msgport: who owes progress in each state, order, and a two-thread race in which no
 * message may be stranded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/compiler.h"
#include "runtime/msgport.h"

static void
first_push_to_a_free_port_owes_progress_and_the_second_does_not(void **state)
{
	struct msg_node a, b;
	struct msgport p;

	(void)state;
	msgport_init(&p);
	assert_int_equal(msgport_push(&p, &a), MSGPORT_FOUND_IDLE);
	assert_int_equal(msgport_push(&p, &b), MSGPORT_FOUND_MORE);
}

static void
push_to_a_held_port_owes_nothing(void **state)
{
	struct msg_node a;
	struct msgport p;

	(void)state;
	msgport_init(&p);
	assert_true(msgport_take(&p));
	assert_int_equal(msgport_push(&p, &a), MSGPORT_FOUND_HELD);
}

static void
a_held_port_cannot_be_taken(void **state)
{
	struct msgport p;

	(void)state;
	msgport_init(&p);
	assert_true(msgport_take(&p));
	assert_false(msgport_take(&p));
	assert_true(msgport_give(&p));
	assert_true(msgport_take(&p));
}

static void
give_fails_while_a_message_waits(void **state)
{
	struct msg_node a;
	struct msgport p;

	(void)state;
	msgport_init(&p);
	assert_true(msgport_take(&p));
	msgport_push(&p, &a);
	assert_false(msgport_give(&p));
	assert_ptr_equal(msgport_take_all(&p), &a);
	assert_true(msgport_give(&p));
}

static void
messages_come_oldest_first(void **state)
{
	struct msg_node m[5], *got;
	struct msgport p;
	unsigned i;

	(void)state;
	msgport_init(&p);
	for (i = 0; i < ARRAY_LEN(m); i++)
		msgport_push(&p, &m[i]);
	assert_true(msgport_take(&p));
	got = msgport_take_all(&p);
	for (i = 0; i < ARRAY_LEN(m); i++, got = got->next)
		assert_ptr_equal(got, &m[i]);
	assert_null(got);
	assert_null(msgport_take_all(&p));
}

/*
 * ---- two threads: each message is pushed, then waited for; a stranded one would hang (bounded by
 * the count) ----
 */

#define RACES 300000

struct race_msg {
	struct msg_node node;
	_Atomic unsigned handled;
};

static struct msgport port;
static _Atomic unsigned bells;

static void
run_held(void)
{
	for (;;) {
		struct msg_node *m = msgport_take_all(&port);

		while (m != NULL) {
			struct msg_node *next = m->next;

			atomic_fetch_add(&container_of(m, struct race_msg, node)->handled, 1);
			m = next;
		}
		if (msgport_give(&port))
			return;
	}
}

static void *
pusher(void *arg)
{
	struct race_msg m = { .handled = 0 };
	unsigned i;

	(void)arg;
	for (i = 0; i < RACES; i++) {
		if (msgport_push(&port, &m.node) == MSGPORT_FOUND_IDLE) {
			if (msgport_take(&port))
				run_held();
			atomic_fetch_add(&bells, 1);
		}
		while (atomic_load(&m.handled) != i + 1)
			cpu_relax();
	}
	return NULL;
}

static void
no_message_is_stranded_between_two_pushers_that_borrow(void **state)
{
	pthread_t t[2];
	unsigned i;

	(void)state;
	msgport_init(&port);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, pusher, NULL), 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_false(msgport_has_messages(&port));
	assert_false(msgport_is_held(&port));
	assert_true(atomic_load(&bells) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_push_to_a_free_port_owes_progress_and_the_second_does_not),
		cmocka_unit_test(push_to_a_held_port_owes_nothing),
		cmocka_unit_test(a_held_port_cannot_be_taken),
		cmocka_unit_test(give_fails_while_a_message_waits),
		cmocka_unit_test(messages_come_oldest_first),
		cmocka_unit_test(no_message_is_stranded_between_two_pushers_that_borrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
