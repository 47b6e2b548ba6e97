/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that come while a call sleeps, on darter's sockets and on the kernel's (signal(7); cases
 * S29 g, S30 i). The kernel decides by SA_RESTART and by whether the call has a time-out; so does
 * darter with handlers as its rule says: one that is to interrupt calls darter_signal_note(), one
 * installed with SA_RESTART does not. Bytes that a call has taken already end it on the kernel
 * whatever SA_RESTART says; a handler that wants that of darter notes itself.
 *
 * A signal is sent when the thread is seen to sleep (its state in /proc), so no time is guessed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "unit/both_nets.h"

#define LONG_MS		20000	/* a time-out that is never reached */

static _Atomic unsigned handled;

static void
on_noted(int sig)
{
	(void)sig;
	darter_signal_note();
	atomic_fetch_add(&handled, 1);
}

static void
on_unseen(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

static void
install(int flags, bool notes)
{
	struct sigaction sa = { .sa_handler = notes ? on_noted : on_unseen, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	atomic_store(&handled, 0);
}

/* ---- a call in a thread of its own ---- */

struct call {
	struct net *net;
	int fd;
	size_t want;
	int flags;
	uint16_t port;		/* connects instead of receiving */
	long rc;
	int err;
	_Atomic pid_t tid;
	_Atomic bool is_over;
	pthread_t thread;
};

static void *
run_call(void *arg)
{
	struct call *c = arg;
	char buf[256];

	atomic_store(&c->tid, (pid_t)syscall(SYS_gettid));
	errno = 0;
	c->rc = c->port != 0 ? connect_to(c->net, c->fd, c->port)
			     : c->net->recv(c->fd, buf, c->want, c->flags);
	c->err = errno;
	atomic_store(&c->is_over, true);
	return NULL;
}

static void
start(struct call *c)
{
	atomic_store(&c->is_over, false);
	atomic_store(&c->tid, 0);
	assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
}

/* State letter of a thread; 'S' sleeps. */
static char
state_of(pid_t tid)
{
	char path[64], line[512], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	line[n < 0 ? 0 : n] = '\0';
	end = n < 0 ? NULL : strrchr(line, ')');
	return end != NULL && end[1] != '\0' ? end[2] : 'X';
}

/* The thread has been asleep ten times in a row: it is in the call's sleep, or the call is over. */
static void
await_sleep(struct call *c)
{
	unsigned in_a_row = 0;

	while (in_a_row < 10 && !atomic_load(&c->is_over)) {
		pid_t tid = atomic_load(&c->tid);

		in_a_row = tid != 0 && state_of(tid) == 'S' ? in_a_row + 1 : 0;
		usleep(1000);
	}
}

static void
interrupt(struct call *c)
{
	unsigned before = atomic_load(&handled);

	await_sleep(c);
	assert_int_equal(pthread_kill(c->thread, SIGUSR1), 0);
	while (atomic_load(&handled) == before)
		usleep(200);
	await_sleep(c);
}

/* What the call returned, or that it goes on, which `help` then ends. */
static void
say_outcome(struct net *n, struct call *c, const char *what, int help_fd)
{
	bool goes_on = !atomic_load(&c->is_over);

	if (goes_on)
		n->send(help_fd, "0123456789", 10, 0);
	pthread_join(c->thread, NULL);
	errno = c->err;
	say(n, "%s%s\n", what, goes_on ? " goes on" : "");
	say_result(n, "result", c->rc);
}

static void
set_rcvtimeo(struct net *n, int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000 };

	assert_int_equal(n->setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

/* Case S29 g: with and without SA_RESTART, a time-out, and bytes that have come before */
static void
interrupted_recv(struct net *n, bool is_restarting, int timeout_ms, bool has_part)
{
	struct call c = { .net = n, .want = has_part ? 20 : 10,
		.flags = has_part ? MSG_WAITALL : 0 };
	char rest[64];
	int fd[2];

	install(is_restarting ? SA_RESTART : 0, !is_restarting || has_part);
	connected_pair(n, fd);
	c.fd = fd[1];
	set_rcvtimeo(n, fd[1], timeout_ms);
	if (has_part)
		n->send(fd[0], "abcdefghij", 10, 0);
	start(&c);
	interrupt(&c);
	say_outcome(n, &c, "recv", fd[0]);
	/* nothing is lost: the stream goes on where the call has ended */
	n->send(fd[0], "x", 1, 0);
	await(n, fd[1], POLLIN);
	say_result(n, "next", n->recv(fd[1], rest, sizeof(rest), 0));
	n->close(fd[0]);
	n->close(fd[1]);
}

static void
without_sa_restart(struct net *n)
{
	interrupted_recv(n, false, 0, false);
	interrupted_recv(n, false, 0, true);
	interrupted_recv(n, false, LONG_MS, false);
	interrupted_recv(n, false, LONG_MS, true);
}

static void
with_sa_restart(struct net *n)
{
	interrupted_recv(n, true, 0, false);
	interrupted_recv(n, true, 0, true);
	interrupted_recv(n, true, LONG_MS, false);
	interrupted_recv(n, true, LONG_MS, true);
}

/* Datagrams: no part can have come */
static void
interrupted_datagrams(struct net *n, bool is_restarting, int timeout_ms)
{
	int rx = bound(n, SOCK_DGRAM), tx = n->socket(AF_INET, SOCK_DGRAM, 0);
	struct call c = { .net = n, .fd = rx, .want = 20 };

	install(is_restarting ? SA_RESTART : 0, !is_restarting);
	assert_int_equal(connect_to(n, tx, port_of(n, rx)), 0);
	set_rcvtimeo(n, rx, timeout_ms);
	start(&c);
	interrupt(&c);
	say_outcome(n, &c, "recv", tx);
	n->close(rx);
	n->close(tx);
}

static void
of_datagrams(struct net *n)
{
	interrupted_datagrams(n, false, 0);
	interrupted_datagrams(n, true, 0);
	interrupted_datagrams(n, false, LONG_MS);
	interrupted_datagrams(n, true, LONG_MS);
}

/*
 * Case S30 i: a blocking connect that is interrupted goes on by itself; poll tells how it ended. It
 * hangs because the listener's queue is full.
 */
static void
interrupted_connect(struct net *n)
{
	int l = listener(n, 0), filler = n->socket(AF_INET, SOCK_STREAM, 0), d;
	struct call c = { .net = n, .fd = n->socket(AF_INET, SOCK_STREAM, 0),
		.port = port_of(n, l) };

	install(0, true);
	assert_int_equal(connect_to(n, filler, c.port), 0);
	start(&c);
	interrupt(&c);
	say(n, "over %d\n", atomic_load(&c.is_over));
	pthread_join(c.thread, NULL);
	errno = c.err;
	say_result(n, "connect", c.rc);
	set_nonblock(n, c.fd);
	say_result(n, "again", connect_to(n, c.fd, c.port));
	d = n->accept4(l, NULL, NULL, 0);
	assert_true(d >= 0);
	await(n, c.fd, POLLOUT);
	say(n, "error %d\n", so_error(n, c.fd));
	say_result(n, "send", n->send(c.fd, "x", 1, 0));
	n->close(d);
	n->close(c.fd);
	n->close(filler);
	n->close(l);
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

BOTH(handler_without_sa_restart_interrupts_and_loses_nothing, without_sa_restart)
BOTH(handler_with_sa_restart_interrupts_only_what_has_a_time_out, with_sa_restart)
BOTH(datagram_calls_are_interrupted_alike, of_datagrams)
BOTH(interrupted_connect_goes_on, interrupted_connect)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_without_sa_restart_interrupts_and_loses_nothing),
		cmocka_unit_test(handler_with_sa_restart_interrupts_only_what_has_a_time_out),
		cmocka_unit_test(datagram_calls_are_interrupted_alike),
		cmocka_unit_test(interrupted_connect_goes_on),
	};

	return cmocka_run_group_tests_name("proof interrupted", tests, open_stack, close_stack);
}
