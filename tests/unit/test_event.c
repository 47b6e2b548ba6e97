/* SPDX-License-Identifier: BSD-2-Clause */
/* api/event.c, api/socket.c: signal masks around a wait, sets, poll of an epoll descriptor, dup. */
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>

#include "unit/both_nets.h"

static volatile sig_atomic_t n_signals;

static void
on_signal(int signo)
{
	(void)signo;
	n_signals++;
	darter_signal_note();
}

/* A stream socket of darter that has something to say: its connect was refused. */
static int
ready_socket(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(darter_connect(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	return fd;
}

static int
silent_socket(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = darter_socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Blocked and pending: only a mask that lets it in makes the wait return. */
static void
pend_a_signal(sigset_t *ret_open)
{
	sigset_t usr1;

	signal(SIGUSR1, on_signal);
	n_signals = 0;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	assert_int_equal(n_signals, 0);
	pthread_sigmask(SIG_SETMASK, NULL, ret_open);
	sigdelset(ret_open, SIGUSR1);
}

static void
assert_usr1_is_blocked(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	assert_int_equal(sigismember(&now, SIGUSR1), 1);
	assert_int_equal(n_signals, 1);
	sigemptyset(&now);
	sigaddset(&now, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &now, NULL);
}

static void
mask_of_epoll_pwait_holds_for_the_wait_only(void **state)
{
	struct epoll_event ev;
	int ep = darter_epoll_create1(0);
	sigset_t open;

	(void)state;
	pend_a_signal(&open);
	assert_int_equal(darter_epoll_pwait(ep, &ev, 1, 0, NULL), 0);
	assert_int_equal(n_signals, 0);
	assert_int_equal(darter_epoll_pwait(ep, &ev, 1, 0, &open), 0);
	assert_usr1_is_blocked();
	assert_int_equal(darter_close(ep), 0);
	assert_int_equal(darter_epoll_pwait(ep, &ev, 1, 0, &open), -1);
	assert_int_equal(errno, EBADF);
}

static void
mask_of_ppoll_holds_for_the_wait_only(void **state)
{
	struct pollfd p = { .fd = silent_socket(), .events = POLLIN };
	const struct timespec none = { 0, 0 };
	sigset_t open;

	(void)state;
	pend_a_signal(&open);
	assert_int_equal(darter_ppoll(&p, 1, &none, NULL), 0);
	assert_int_equal(n_signals, 0);
	assert_int_equal(darter_ppoll(&p, 1, &none, &open), 0);
	assert_usr1_is_blocked();
	assert_int_equal(darter_close(p.fd), 0);
}

static void
time_that_is_none_is_refused(void **state)
{
	static const struct timespec bad[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };
	static const struct timeval bad_tv[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000 } };
	struct pollfd p = { .fd = -1 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(darter_ppoll(&p, 1, &bad[i], NULL), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(darter_select(0, NULL, NULL, NULL, &bad_tv[i]), -1);
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(darter_select(-1, NULL, NULL, NULL, NULL), -1);
	assert_int_equal(errno, EINVAL);
	/* a microsecond is not rounded to none, and none is not for ever */
	assert_int_equal(darter_ppoll(&p, 1, &(struct timespec){ 0, 1 }, NULL), 0);
}

static void
set_holds_both_kinds_and_nothing_beyond(void **state)
{
	int base = darter_fd_base(), beyond = base + DARTER_FD_SETSIZE;
	struct darter_fd_set set;

	(void)state;
	darter_fd_zero(&set);
	assert_true(darter_fd_set(0, &set) && darter_fd_set(FD_SETSIZE - 1, &set));
	assert_true(darter_fd_set(base, &set) && darter_fd_set(beyond - 1, &set));
	assert_false(darter_fd_set(-1, &set) || darter_fd_set(FD_SETSIZE, &set) ||
	    darter_fd_set(base - 1, &set) || darter_fd_set(beyond, &set));
	assert_true(darter_fd_isset(0, &set) && darter_fd_isset(base, &set) &&
	    darter_fd_isset(beyond - 1, &set));
	assert_false(darter_fd_isset(1, &set) || darter_fd_isset(base + 1, &set) ||
	    darter_fd_isset(beyond, &set) || darter_fd_isset(-1, &set));
	darter_fd_clr(0, &set);
	darter_fd_clr(base, &set);
	darter_fd_clr(beyond, &set);
	darter_fd_clr(-1, &set);
	assert_false(darter_fd_isset(0, &set) || darter_fd_isset(base, &set));
	assert_true(darter_fd_isset(FD_SETSIZE - 1, &set) && darter_fd_isset(beyond - 1, &set));
}

static void
select_leaves_the_ready_of_both_kinds(void **state)
{
	int quiet = silent_socket(), ready = ready_socket(), p[2];
	struct darter_fd_set rd;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	darter_fd_zero(&rd);
	assert_true(darter_fd_set(quiet, &rd) && darter_fd_set(ready, &rd) &&
	    darter_fd_set(p[0], &rd));
	assert_int_equal(darter_select((quiet > ready ? quiet : ready) + 1, &rd, NULL, NULL, NULL),
	    2);
	assert_true(darter_fd_isset(ready, &rd) && darter_fd_isset(p[0], &rd));
	assert_false(darter_fd_isset(quiet, &rd));
	assert_int_equal(darter_close(ready), 0);
	/* closed: the sets stay as they were */
	assert_int_equal(darter_select(ready + 1, &rd, NULL, NULL, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_true(darter_fd_isset(ready, &rd));
	assert_int_equal(darter_close(quiet), 0);
	close(p[0]);
	close(p[1]);
}

/* epoll within poll: ready while the set has events, and a wait on it is woken. */
static void
poll_takes_an_epoll_descriptor(void **state)
{
	int ep = darter_epoll_create1(0), quiet = silent_socket(), ready = ready_socket();
	struct epoll_event ev = { .events = EPOLLIN }, out;
	struct pollfd p[2] = { { .fd = ep, .events = POLLIN }, { .fd = quiet, .events = POLLIN } };

	(void)state;
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, quiet, &ev), 0);
	/* in the beginning it may be readable once for nothing (event.h): a wait settles that */
	assert_true(darter_epoll_fd(ep) >= 0);
	assert_int_equal(darter_epoll_wait(ep, &out, 1, 0), 0);
	assert_int_equal(darter_poll(p, 2, 0), 0);
	assert_int_equal(darter_poll(p, 2, 10), 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, ready, &ev), 0);
	assert_int_equal(darter_poll(p, 2, 5000), 1);
	assert_true(p[0].revents & POLLIN);
	assert_int_equal(p[1].revents, 0);
	assert_int_equal(darter_close(ep), 0);
	assert_int_equal(darter_poll(p, 1, 0), 1);
	assert_int_equal(p[0].revents, POLLNVAL);
	assert_int_equal(darter_close(quiet), 0);
	assert_int_equal(darter_close(ready), 0);
}

static void
dup2_replaces_the_target_and_keeps_the_socket(void **state)
{
	int a = silent_socket(), b = silent_socket();
	struct sockaddr_in at, is;
	socklen_t len = sizeof(at);

	(void)state;
	assert_int_equal(darter_getsockname(a, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(darter_dup2(a, a), a);
	assert_int_equal(darter_dup2(a, b), b);
	assert_int_equal(darter_close(a), 0);
	assert_int_equal(darter_getsockname(b, (struct sockaddr *)&is, &len), 0);
	assert_int_equal(is.sin_port, at.sin_port);
	assert_int_equal(darter_dup2(a, b), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(darter_dup2(b, 3), -1);
	assert_int_equal(errno, EBADF);
	/* dup3 differs in two things: equal numbers are a mistake, and so are unknown flags */
	assert_int_equal(darter_dup3(b, b, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(darter_dup3(b, a, O_NONBLOCK), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(darter_dup3(b, a, O_CLOEXEC), a);
	assert_int_equal(darter_close(b), 0);
	assert_int_equal(darter_close(a), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mask_of_epoll_pwait_holds_for_the_wait_only),
		cmocka_unit_test(mask_of_ppoll_holds_for_the_wait_only),
		cmocka_unit_test(time_that_is_none_is_refused),
		cmocka_unit_test(set_holds_both_kinds_and_nothing_beyond),
		cmocka_unit_test(select_leaves_the_ready_of_both_kinds),
		cmocka_unit_test(poll_takes_an_epoll_descriptor),
		cmocka_unit_test(dup2_replaces_the_target_and_keeps_the_socket),
	};

	return cmocka_run_group_tests_name("event", tests, open_stack, close_stack);
}
