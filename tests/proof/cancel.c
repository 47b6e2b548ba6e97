/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancelled threads. A call can be cancelled before it begins and in its sleep; what it held is
 * given back: pins (a closed descriptor's socket is freed), queue items, the hold of a netisr.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "unit/both_nets.h"

#include "runtime/stack.h"
#include "socket/sock.h"

#define ROUNDS	150

static int pair[2], lfd, ep;
static _Atomic unsigned n_calls;
static _Atomic bool is_quiet;	/* nothing is fed: a call that always finds work never sleeps */

static void *
block_in_recv(void *arg)
{
	char c;

	(void)arg;
	darter_recv(pair[1], &c, 1, 0);
	return NULL;
}

static void *
block_in_accept(void *arg)
{
	(void)arg;
	darter_accept4(lfd, NULL, NULL, 0);
	return NULL;
}

static void *
block_in_epoll(void *arg)
{
	struct epoll_event ev;

	(void)arg;
	darter_epoll_wait(ep, &ev, 1, -1);
	return NULL;
}

static void *
block_in_poll(void *arg)
{
	struct pollfd p[2] = { { .fd = pair[1], .events = POLLIN },
	    { .fd = *(int *)arg, .events = POLLIN } };

	darter_poll(p, *(int *)arg >= 0 ? 2 : 1, -1);
	return NULL;
}

static void *
block_in_send(void *arg)
{
	static char buf[65536];

	(void)arg;
	while (darter_send(pair[0], buf, sizeof(buf), 0) > 0)
		;
	return NULL;
}

static void *
block_attached(void *arg)
{
	char c;

	assert_int_equal(darter_attach(the_stack, *(unsigned *)arg), 0);
	darter_recv(pair[1], &c, 1, 0);
	return NULL;
}

static void
cancel_after(void *(*fn)(void *), void *arg, unsigned us)
{
	pthread_t t;
	void *result;

	assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
	usleep(us);
	assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Nobody is inside, nobody has it busy. */
static void
expect_at_rest(int fd)
{
	struct sock *so;

	assert_int_equal(sock_pin(fd, 0, &so), 0);
	assert_int_equal(atomic_load(&so->half.user) & (USER_COUNT_MASK | USER_RX_BUSY |
	    USER_TX_BUSY), 1);
	assert_int_equal(atomic_load(&so->half.news.sleepers), 0);
	assert_null(atomic_load(&so->half.news.napper));
	sock_unpin(so, 0);
}

static uint32_t
sockets_open(void)
{
	return atomic_load(&the_stack->sock->n_socks);
}

static void
set_up_fds(void)
{
	struct epoll_event ev = { .events = EPOLLIN };

	connected_pair(&darter_net, pair);
	lfd = listener(&darter_net, 4);
	ep = darter_epoll_create1(0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, pair[1], &ev), 0);
}

static void
close_fds(void)
{
	unsigned i;

	expect_at_rest(pair[0]);
	expect_at_rest(pair[1]);
	expect_at_rest(lfd);
	darter_close(ep);
	darter_close(lfd);
	reset_close(&darter_net, pair[0]);
	reset_close(&darter_net, pair[1]);
	for (i = 0; i < 500 && sockets_open() != 0; i++)
		usleep(1000);
	assert_int_equal(sockets_open(), 0);
}

static void
thread_cancelled_in_its_sleep_leaves_no_pin(void **state)
{
	int none = -1, kernel[2];

	(void)state;
	set_up_fds();
	assert_int_equal(pipe(kernel), 0);
	cancel_after(block_in_recv, NULL, 5000);
	expect_at_rest(pair[1]);
	cancel_after(block_in_accept, NULL, 5000);
	cancel_after(block_in_epoll, NULL, 5000);
	cancel_after(block_in_poll, &none, 5000);
	cancel_after(block_in_poll, &kernel[0], 5000);
	cancel_after(block_in_send, NULL, 20000);
	close(kernel[0]);
	close(kernel[1]);
	close_fds();
}

static void
thread_cancelled_while_attached_is_detached(void **state)
{
	unsigned i, id;
	char c;

	(void)state;
	set_up_fds();
	for (i = 0; i < 20; i++) {
		id = i % 2;
		cancel_after(block_attached, &id, i < 10 ? 3000 : i * 20);
		assert_int_equal(darter_attach(the_stack, id), 0);
		assert_int_equal(darter_detach(), 0);
	}
	/* and the background threads run the netisrs again */
	assert_int_equal(darter_send(pair[0], "x", 1, 0), 1);
	assert_int_equal(darter_recv(pair[1], &c, 1, 0), 1);
	close_fds();
}

static void *
end_attached(void *arg)
{
	assert_int_equal(darter_attach(the_stack, *(unsigned *)arg), 0);
	return NULL;
}

static void
thread_that_ends_attached_is_detached(void **state)
{
	unsigned id = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, end_attached, &id), 0);
	pthread_join(t, NULL);
	assert_int_equal(darter_attach(the_stack, 0), 0);
	assert_int_equal(darter_detach(), 0);
}

/* Answers every byte, so it sleeps, works and borrows in turn. */
static void *
echo(void *arg)
{
	char c;

	(void)arg;
	while (darter_recv(pair[1], &c, 1, 0) == 1) {
		atomic_fetch_add(&n_calls, 1);
		darter_send(pair[1], &c, 1, 0);
	}
	return NULL;
}

static void *
feed(void *arg)
{
	_Atomic bool *is_over = arg;
	char buf[64];

	while (!atomic_load(is_over)) {
		if (atomic_load(&is_quiet)) {
			sched_yield();
			continue;
		}
		darter_send(pair[0], "x", 1, MSG_DONTWAIT);
		darter_recv(pair[0], buf, sizeof(buf), MSG_DONTWAIT);
	}
	return NULL;
}

static void
thread_cancelled_at_any_moment_leaves_nothing(void **state)
{
	_Atomic bool is_over = false;
	pthread_t feeder;
	unsigned i;

	(void)state;
	set_up_fds();
	assert_int_equal(pthread_create(&feeder, NULL, feed, &is_over), 0);
	for (i = 0; i < ROUNDS; i++) {
		pthread_t t;
		void *result;

		assert_int_equal(pthread_create(&t, NULL, echo, NULL), 0);
		usleep(100 + i * 7 % 500);
		pthread_cancel(t);
		atomic_store(&is_quiet, true);
		assert_int_equal(pthread_join(t, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		expect_at_rest(pair[1]);
		atomic_store(&is_quiet, false);
	}
	atomic_store(&is_over, true);
	pthread_join(feeder, NULL);
	assert_true(atomic_load(&n_calls) > 0);
	close_fds();
}

/* Each round of calls is over at once, whatever it finds. */
static void *
never_sleep(void *arg)
{
	struct pollfd p = { .fd = pair[1], .events = POLLIN };
	struct epoll_event ev;
	char c;

	(void)arg;
	for (;;) {
		darter_recv(pair[1], &c, 1, MSG_DONTWAIT);
		darter_send(pair[1], "x", 1, MSG_DONTWAIT);
		darter_accept4(lfd, NULL, NULL, 0);
		darter_epoll_wait(ep, &ev, 1, 0);
		darter_poll(&p, 1, 0);
	}
	return NULL;
}

static void *
always_read(void *arg)
{
	char c;

	(void)arg;
	while (darter_recv(pair[1], &c, 1, MSG_PEEK) == 1)
		;
	return NULL;
}

static void
thread_whose_calls_never_sleep_is_cancelled(void **state)
{
	unsigned i;

	(void)state;
	set_up_fds();
	set_nonblock(&darter_net, lfd);
	for (i = 0; i < 20; i++)
		cancel_after(never_sleep, NULL, i * 100);
	assert_int_equal(darter_send(pair[0], "y", 1, 0), 1);
	for (i = 0; i < 20; i++)
		cancel_after(always_read, NULL, i * 100);
	close_fds();
}

/* A call leaves the application's choice alone. */
static void
cancel_state_is_the_same_behind_a_call(void **state)
{
	int old;
	char c;

	(void)state;
	set_up_fds();
	assert_int_equal(darter_recv(pair[1], &c, 1, MSG_DONTWAIT), -1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	assert_int_equal(old, PTHREAD_CANCEL_ENABLE);
	assert_int_equal(darter_recv(pair[1], &c, 1, MSG_DONTWAIT), -1);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	assert_int_equal(old, PTHREAD_CANCEL_DISABLE);
	close_fds();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_cancelled_in_its_sleep_leaves_no_pin),
		cmocka_unit_test(thread_cancelled_while_attached_is_detached),
		cmocka_unit_test(thread_that_ends_attached_is_detached),
		cmocka_unit_test(thread_cancelled_at_any_moment_leaves_nothing),
		cmocka_unit_test(thread_whose_calls_never_sleep_is_cancelled),
		cmocka_unit_test(cancel_state_is_the_same_behind_a_call),
	};

	return cmocka_run_group_tests_name("proof cancel", tests, open_stack, close_stack);
}
