/* SPDX-License-Identifier: BSD-2-Clause */
/* A listener that is shut down refuses connections until it listens again: as the kernel's. */
#include "unit/both_nets.h"

static void
listener_steps(struct net *n, int how)
{
	int l = listener(n, 4), c = n->socket(AF_INET, SOCK_STREAM, 0), d;
	uint16_t port = port_of(n, l);

	say_ok(n, "shutdown", n->shutdown(l, how));
	set_nonblock(n, l);
	say_result(n, "accept", n->accept4(l, NULL, NULL, 0));
	say_result(n, "connect", connect_to(n, c, port));
	say_result(n, "listen again", n->listen(l, 4));
	say_result(n, "accept", n->accept4(l, NULL, NULL, 0));
	n->close(c);
	c = n->socket(AF_INET, SOCK_STREAM, 0);
	/* the kernel draws another one, we keep it */
	say_result(n, "connect", connect_to(n, c, port_of(n, l)));
	await(n, l, POLLIN);
	d = say_ok(n, "accept", n->accept4(l, NULL, NULL, 0));
	say_result(n, "send", n->send(c, "abc", 3, 0));
	n->close(d);
	n->close(c);
	n->close(l);
}

static void
shut_read(struct net *n)
{
	listener_steps(n, SHUT_RD);
}

static void
shut_both(struct net *n)
{
	listener_steps(n, SHUT_RDWR);
}

static void
shut_write(struct net *n)
{
	int l = listener(n, 4), c = n->socket(AF_INET, SOCK_STREAM, 0), d;

	say_ok(n, "shutdown", n->shutdown(l, SHUT_WR));
	say_result(n, "connect", connect_to(n, c, port_of(n, l)));
	d = say_ok(n, "accept", n->accept4(l, NULL, NULL, 0));
	n->close(d);
	n->close(c);
	n->close(l);
}

static void
listener_shut_down_for_reading_refuses_until_it_listens_again(void **state)
{
	(void)state;
	compare(shut_read);
	compare(shut_both);
}

static void
listener_shut_down_for_writing_goes_on(void **state)
{
	(void)state;
	compare(shut_write);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_shut_down_for_reading_refuses_until_it_listens_again),
		cmocka_unit_test(listener_shut_down_for_writing_goes_on),
	};

	return cmocka_run_group_tests_name("proof shutdown", tests, open_stack, close_stack);
}
