/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket/evq*.c, ready.c: epoll on darter's sockets tells what epoll on the kernel's tells.
 * Readiness cases follow the bug reports that other stacks had (an accept that returned EAGAIN
 * makes the listener deaf, edge events only on empty to non-empty, ...).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "unit/both_nets.h"

static int
add(struct net *n, int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = 42 };

	return n->epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

static int
mod(struct net *n, int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = 43 };

	return n->epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
}

static int
new_epoll(struct net *n)
{
	int ep = n->epoll_create1(EPOLL_CLOEXEC);

	assert_true(ep >= 0);
	return ep;
}

/* One event at most; says it. */
static void
say_wait(struct net *n, const char *what, int ep, int timeout_ms)
{
	struct epoll_event ev[4];
	int rc = n->epoll_wait(ep, ev, 4, timeout_ms);

	if (rc == 1)
		say_events(n, what, ev[0].events);
	else
		say_result(n, what, rc);
}

/* ---- cases on both ---- */

static void
fresh_sockets(struct net *n)
{
	int ep = new_epoll(n), tcp = n->socket(AF_INET, SOCK_STREAM, 0);
	int udp = n->socket(AF_INET, SOCK_DGRAM, 0);

	add(n, ep, tcp, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	say_wait(n, "fresh tcp", ep, 0);
	n->close(tcp);
	add(n, ep, udp, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	say_wait(n, "fresh udp", ep, 0);
	n->close(udp);
	say_wait(n, "closed ones are gone", ep, 0);
	n->close(ep);
}

static void
accept_that_failed(struct net *n)
{
	int ep = new_epoll(n), l = listener(n, 8), c = n->socket(AF_INET, SOCK_STREAM, 0), d;

	set_nonblock(n, l);
	say_ok(n, "early accept", n->accept4(l, NULL, NULL, 0));
	add(n, ep, l, EPOLLIN);
	say_wait(n, "nobody yet", ep, NEVER_MS);
	say_ok(n, "connect", connect_to(n, c, port_of(n, l)));
	say_wait(n, "somebody", ep, SOON_MS);
	d = say_ok(n, "accept", n->accept4(l, NULL, NULL, 0));
	say_wait(n, "nobody more", ep, NEVER_MS);
	n->close(d);
	n->close(c);
	n->close(l);
	n->close(ep);
}

static void
many_handshakes(struct net *n)
{
	int l = listener(n, 16), et = new_epoll(n), lt = new_epoll(n), c[8], d[8], i, got = 0;

	set_nonblock(n, l);
	add(n, et, l, EPOLLIN | EPOLLET);
	add(n, lt, l, EPOLLIN);
	for (i = 0; i < 8; i++) {
		c[i] = n->socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect_to(n, c[i], port_of(n, l)), 0);
	}
	say_wait(n, "edge", et, SOON_MS);
	for (i = 0; i < 8; i++) {
		say_wait(n, "level", lt, SOON_MS);
		d[i] = n->accept4(l, NULL, NULL, 0);
		got += d[i] >= 0;
	}
	say(n, "accepted %d\n", got);
	say_wait(n, "level, none left", lt, NEVER_MS);
	for (i = 0; i < 8; i++) {
		n->close(c[i]);
		n->close(d[i]);
	}
	n->close(l);
	n->close(et);
	n->close(lt);
}

static void
data_before_registration(struct net *n)
{
	int fd[2], ep = new_epoll(n);
	char buf[100] = { 0 };

	connected_pair(n, fd);
	n->send(fd[0], buf, sizeof(buf), 0);
	await(n, fd[1], POLLIN);
	add(n, ep, fd[1], EPOLLIN | EPOLLET);
	say_wait(n, "at registration", ep, SOON_MS);
	say_wait(n, "not again", ep, NEVER_MS);
	mod(n, ep, fd[1], EPOLLIN | EPOLLET);
	say_wait(n, "after mod", ep, SOON_MS);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
level_repeats(struct net *n)
{
	int fd[2], ep = new_epoll(n), i;

	connected_pair(n, fd);
	add(n, ep, fd[0], EPOLLOUT);
	for (i = 0; i < 10; i++)
		say_wait(n, "idle", ep, 0);
	mod(n, ep, fd[0], EPOLLIN);
	n->send(fd[1], "x", 1, 0);
	for (i = 0; i < 3; i++)
		say_wait(n, "unread", ep, SOON_MS);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
edge_for_each_arrival(struct net *n)
{
	int fd[2], ep = new_epoll(n), i;
	char buf[64];

	connected_pair(n, fd);
	add(n, ep, fd[1], EPOLLIN | EPOLLET);
	say_wait(n, "empty", ep, NEVER_MS);
	for (i = 0; i < 3; i++) {
		/* never drained: each arrival is told all the same */
		n->send(fd[0], "abc", 3, 0);
		say_wait(n, "arrival", ep, SOON_MS);
		say_wait(n, "told once", ep, NEVER_MS);
	}
	say_result(n, "recv", n->recv(fd[1], buf, sizeof(buf), 0));
	say_wait(n, "reading is no event", ep, NEVER_MS);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
oneshot(struct net *n)
{
	int fd[2], ep = new_epoll(n);

	connected_pair(n, fd);
	add(n, ep, fd[1], EPOLLIN | EPOLLONESHOT);
	n->send(fd[0], "0123456789", 10, 0);
	say_wait(n, "first", ep, SOON_MS);
	n->send(fd[0], "0123456789", 10, 0);
	say_wait(n, "disarmed", ep, NEVER_MS);
	mod(n, ep, fd[1], EPOLLIN | EPOLLONESHOT);
	say_wait(n, "armed again", ep, SOON_MS);
	say_wait(n, "disarmed again", ep, NEVER_MS);
	n->close(fd[0]);
	say_wait(n, "not even the end", ep, NEVER_MS);
	mod(n, ep, fd[1], EPOLLIN | EPOLLRDHUP | EPOLLONESHOT);
	say_wait(n, "the end", ep, SOON_MS);
	n->close(fd[1]);
	n->close(ep);
}

/*
 * Collects until all of `mask` is there: an end arrives when the other side's netisr has sent it,
 * and an edge for room may come before.
 */
static void
say_wait_for(struct net *n, const char *what, int ep, uint32_t mask)
{
	struct epoll_event ev[4] = { { .events = 0 } };
	unsigned i;

	for (i = 0; i < 100 && (ev[0].events & mask) != mask; i++)
		n->epoll_wait(ep, ev, 4, SOON_MS);
	say_events(n, what, ev[0].events);
}

static void
half_close_and_close(struct net *n)
{
	int fd[2], ep = new_epoll(n);

	connected_pair(n, fd);
	add(n, ep, fd[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	say_wait(n, "open", ep, SOON_MS);
	say_ok(n, "shutdown", n->shutdown(fd[0], SHUT_WR));
	say_wait_for(n, "peer's half", ep, EPOLLIN | EPOLLRDHUP);
	say_ok(n, "own shutdown", n->shutdown(fd[1], SHUT_WR));
	say_wait_for(n, "both halves", ep, EPOLLHUP);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
shutdown_of_reading(struct net *n)
{
	int fd[2], ep = new_epoll(n);
	char buf[8];

	connected_pair(n, fd);
	say_ok(n, "shutdown", n->shutdown(fd[0], SHUT_RD));
	add(n, ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	say_wait(n, "own half", ep, SOON_MS);
	say_result(n, "recv", n->recv(fd[0], buf, sizeof(buf), 0));
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
reset_by_peer(struct net *n)
{
	int fd[2], ep = new_epoll(n);
	char buf[8];

	connected_pair(n, fd);
	add(n, ep, fd[1], EPOLLRDHUP);
	reset_close(n, fd[0]);
	await(n, fd[1], POLLIN);
	say_wait(n, "without asking", ep, SOON_MS);
	mod(n, ep, fd[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	say_wait(n, "all", ep, SOON_MS);
	say(n, "error %s\n", strerrorname_np(so_error(n, fd[1])));
	say_wait(n, "error taken", ep, SOON_MS);
	say_result(n, "recv", n->recv(fd[1], buf, sizeof(buf), 0));
	say_result(n, "send", n->send(fd[1], buf, 1, 0));
	n->close(fd[1]);
	n->close(ep);
}

static void
refused_connect(struct net *n)
{
	int ep = new_epoll(n), l = bound(n, SOCK_STREAM), c = n->socket(AF_INET, SOCK_STREAM |
	    SOCK_NONBLOCK, 0);

	add(n, ep, c, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	say_wait(n, "before", ep, SOON_MS);
	/* bound and not listening: refused */
	say_result(n, "connect", connect_to(n, c, port_of(n, l)));
	say_wait(n, "refused", ep, SOON_MS);
	say(n, "error %s\n", strerrorname_np(so_error(n, c)));
	say(n, "error %d\n", so_error(n, c));
	n->close(c);
	n->close(l);
	n->close(ep);
}

static void
connect_completes(struct net *n)
{
	int ep = new_epoll(n), l = listener(n, 2), c = n->socket(AF_INET, SOCK_STREAM |
	    SOCK_NONBLOCK, 0), d;

	say_result(n, "connect", connect_to(n, c, port_of(n, l)));
	add(n, ep, c, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	say_wait(n, "connected", ep, SOON_MS);
	say(n, "error %d\n", so_error(n, c));
	d = n->accept4(l, NULL, NULL, 0);
	n->close(c);
	n->close(d);
	n->close(l);
	n->close(ep);
}

static void
errors_of_ctl(struct net *n)
{
	int ep = new_epoll(n), fd = n->socket(AF_INET, SOCK_DGRAM, 0), other = n->dup(fd);
	struct epoll_event ev = { .events = EPOLLIN };

	say_ok(n, "mod unknown", mod(n, ep, fd, EPOLLIN));
	say_ok(n, "del unknown", n->epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
	say_ok(n, "add", add(n, ep, fd, EPOLLIN));
	say_ok(n, "add twice", add(n, ep, fd, EPOLLIN));
	say_ok(n, "add duplicate", add(n, ep, other, EPOLLIN));
	say_ok(n, "add epoll to itself", add(n, ep, ep, EPOLLIN));
	say_ok(n, "bad op", n->epoll_ctl(ep, 99, fd, &ev));
	say_ok(n, "not an epoll", n->epoll_ctl(fd, EPOLL_CTL_ADD, other, &ev));
	say_ok(n, "bad max", n->epoll_wait(ep, &ev, 0, 0));
	say_ok(n, "bad flags", n->epoll_create1(1));
	say_ok(n, "del", n->epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
	n->close(fd);
	say_ok(n, "closed", add(n, ep, fd, EPOLLIN));
	n->close(other);
	n->close(ep);
	say_ok(n, "closed epoll", n->epoll_wait(ep, &ev, 1, 0));
}

static void
duplicate_keeps_the_item(struct net *n)
{
	int fd[2], ep = new_epoll(n), copy;

	connected_pair(n, fd);
	copy = n->dup(fd[1]);
	add(n, ep, fd[1], EPOLLIN);
	n->close(fd[1]);
	n->send(fd[0], "x", 1, 0);
	say_wait(n, "socket is still open", ep, SOON_MS);
	n->close(copy);
	say_wait(n, "socket is gone", ep, NEVER_MS);
	n->close(fd[0]);
	n->close(ep);
}

static void
room_after_full(struct net *n)
{
	int fd[2], ep = new_epoll(n);
	static char buf[65536];
	struct epoll_event ev;
	int rc;

	connected_pair(n, fd);
	set_nonblock(n, fd[0]);
	set_nonblock(n, fd[1]);
	/* until the peer's window is shut too, so that nothing drains by itself */
	for (;;) {
		struct pollfd p = { .fd = fd[0], .events = POLLOUT };

		while (n->send(fd[0], buf, sizeof(buf), 0) > 0)
			;
		if (n->poll(&p, 1, 300) == 0)
			break;
	}
	add(n, ep, fd[0], EPOLLOUT | EPOLLET);
	say_wait(n, "full", ep, NEVER_MS);
	rc = 0;
	while (rc == 0) {
		while (n->recv(fd[1], buf, sizeof(buf), 0) > 0)
			;
		rc = n->epoll_wait(ep, &ev, 1, 10);
	}
	say_events(n, "drained", ev.events);
	n->close(fd[0]);
	n->close(fd[1]);
	n->close(ep);
}

static void
datagrams(struct net *n)
{
	int ep = new_epoll(n), a = bound(n, SOCK_DGRAM), b = n->socket(AF_INET, SOCK_DGRAM, 0);
	char buf[16];

	assert_int_equal(connect_to(n, b, port_of(n, a)), 0);
	add(n, ep, a, EPOLLIN | EPOLLET);
	say_wait(n, "none", ep, NEVER_MS);
	n->send(b, "abc", 3, 0);
	say_wait(n, "one", ep, SOON_MS);
	n->send(b, "", 0, 0);
	say_wait(n, "empty one", ep, SOON_MS);
	say_result(n, "recv", n->recv(a, buf, sizeof(buf), 0));
	say_result(n, "recv", n->recv(a, buf, sizeof(buf), 0));
	mod(n, ep, a, EPOLLIN | EPOLLOUT);
	say_wait(n, "drained", ep, SOON_MS);
	say_result(n, "shutdown", n->shutdown(b, SHUT_RDWR));
	add(n, ep, b, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	n->epoll_ctl(ep, EPOLL_CTL_DEL, a, NULL);
	say_wait(n, "shut", ep, SOON_MS);
	n->close(a);
	n->close(b);
	n->close(ep);
}

static void
refused_datagram(struct net *n)
{
	int ep = new_epoll(n), a = bound(n, SOCK_DGRAM), b = n->socket(AF_INET, SOCK_DGRAM, 0);
	char buf[4];

	assert_int_equal(connect_to(n, b, port_of(n, a)), 0);
	n->close(a);
	add(n, ep, b, EPOLLIN);
	say_result(n, "send", n->send(b, "x", 1, 0));
	say_wait(n, "refused", ep, SOON_MS);
	say_result(n, "recv", n->recv(b, buf, sizeof(buf), 0));
	say_wait(n, "told once", ep, NEVER_MS);
	n->close(b);
	n->close(ep);
}

static void
many_ready(struct net *n)
{
	int ep = new_epoll(n), a[6], i, rounds, sum = 0;
	struct epoll_event ev[2];

	for (i = 0; i < 6; i++) {
		struct epoll_event in = { .events = EPOLLOUT, .data.u32 = (uint32_t)i };

		a[i] = n->socket(AF_INET, SOCK_DGRAM, 0);
		assert_int_equal(n->epoll_ctl(ep, EPOLL_CTL_ADD, a[i], &in), 0);
	}
	/* two at a time: all get their turn */
	for (rounds = 0; rounds < 3; rounds++) {
		int rc = n->epoll_wait(ep, ev, 2, SOON_MS);

		for (i = 0; i < rc; i++)
			sum |= 1 << ev[i].data.u32;
	}
	say(n, "seen %x\n", (unsigned)sum);
	for (i = 0; i < 6; i++)
		n->close(a[i]);
	n->close(ep);
}

#define BOTH(test, fn) \
	static void \
	test(void **state) \
	{ \
		(void)state; \
		compare(fn); \
	}

BOTH(fresh_socket_reports_as_the_kernels, fresh_sockets)
BOTH(accept_that_returned_eagain_does_not_deafen_the_listener, accept_that_failed)
BOTH(handshakes_at_once_are_all_accepted, many_handshakes)
BOTH(condition_that_holds_at_registration_is_an_event, data_before_registration)
BOTH(level_item_is_reported_again_and_again, level_repeats)
BOTH(edge_item_is_reported_once_for_each_arrival, edge_for_each_arrival)
BOTH(oneshot_item_is_disarmed_until_modified, oneshot)
BOTH(half_close_is_rdhup_and_full_close_is_hup, half_close_and_close)
BOTH(shutdown_of_reading_is_readable, shutdown_of_reading)
BOTH(reset_is_err_and_hup_without_asking, reset_by_peer)
BOTH(refused_connect_is_err_and_hup, refused_connect)
BOTH(completed_connect_is_out_only, connect_completes)
BOTH(ctl_refuses_as_the_kernel_does, errors_of_ctl)
BOTH(item_lives_until_the_last_duplicate_is_closed, duplicate_keeps_the_item)
BOTH(room_in_a_full_buffer_is_an_edge, room_after_full)
BOTH(datagram_arrivals_are_events, datagrams)
BOTH(refused_datagram_is_err_once, refused_datagram)
BOTH(ready_items_take_turns, many_ready)

/* ---- darter's own ---- */

static void
kernel_descriptors_share_the_queue(void **state)
{
	int ep = darter_epoll_create1(0), p[2], u = bound(&darter_net, SOCK_DGRAM), seen = 0, i;
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 1 }, out[4];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ev), 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ev), -1);
	assert_int_equal(errno, EEXIST);
	ev.data.u32 = 2;
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, u, &ev), 0);
	assert_int_equal(darter_epoll_wait(ep, out, 4, NEVER_MS), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(darter_epoll_wait(ep, out, 4, SOON_MS), 1);
	assert_int_equal(out[0].data.u32, 1);
	assert_int_equal(connect_to(&darter_net, u, port_of(&darter_net, u)), 0);
	assert_int_equal(darter_send(u, "y", 1, 0), 1);
	await(&darter_net, u, POLLIN);
	assert_int_equal(darter_epoll_wait(ep, out, 4, SOON_MS), 2);
	/* one place only: both kinds get it in turn */
	for (i = 0; i < 4; i++) {
		assert_int_equal(darter_epoll_wait(ep, out, 1, SOON_MS), 1);
		seen |= (int)out[0].data.u32;
	}
	assert_int_equal(seen, 3);
	close(p[0]);
	close(p[1]);
	darter_close(u);
	darter_close(ep);
}

static void *
write_soon(void *arg)
{
	const int *fd = arg;

	usleep(30000);
	assert_int_equal(write(*fd, "x", 1), 1);
	return NULL;
}

static void
sleeping_wait_is_woken_by_a_kernel_descriptor(void **state)
{
	int ep = darter_epoll_create1(0), p[2];
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 7 };
	pthread_t t;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ev), 0);
	assert_int_equal(pthread_create(&t, NULL, write_soon, &p[1]), 0);
	assert_int_equal(darter_epoll_wait(ep, &ev, 1, SOON_MS), 1);
	assert_int_equal(ev.data.u32, 7);
	pthread_join(t, NULL);
	close(p[0]);
	close(p[1]);
	darter_close(ep);
}

static void
epoll_fd_is_readable_while_events_wait(void **state)
{
	int ep = darter_epoll_create1(0), u = bound(&darter_net, SOCK_DGRAM);
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p = { .events = POLLIN };
	char buf[4];
	int i;

	(void)state;
	assert_int_equal(connect_to(&darter_net, u, port_of(&darter_net, u)), 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, u, &ev), 0);
	p.fd = darter_epoll_fd(ep);
	assert_true(p.fd >= 0);
	assert_int_equal(darter_epoll_fd(ep), p.fd);
	darter_epoll_wait(ep, &ev, 1, 0);	/* readable once for nothing is allowed at first */
	for (i = 0; i < 3; i++) {
		assert_int_equal(poll(&p, 1, NEVER_MS), 0);
		assert_int_equal(darter_send(u, "x", 1, 0), 1);
		assert_int_equal(poll(&p, 1, SOON_MS), 1);
		assert_int_equal(darter_epoll_wait(ep, &ev, 1, SOON_MS), 1);
		assert_int_equal(poll(&p, 1, 0), 1);	/* level: still unread */
		assert_int_equal(darter_recv(u, buf, sizeof(buf), 0), 1);
		assert_int_equal(darter_epoll_wait(ep, &ev, 1, 0), 0);
	}
	darter_close(u);
	darter_close(ep);
}

static void *
wait_one(void *arg)
{
	struct epoll_event ev;
	int *ep = arg;
	long rc = darter_epoll_wait(*ep, &ev, 1, SOON_MS);

	return (void *)(rc < 0 ? -errno : rc);
}

static void
closing_an_epoll_wakes_its_waiters(void **state)
{
	int ep = darter_epoll_create1(0);
	pthread_t t;
	void *rc;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, wait_one, &ep), 0);
	usleep(30000);
	assert_int_equal(darter_close(ep), 0);
	pthread_join(t, &rc);
	assert_int_equal((long)rc, -EBADF);
}

static void
two_waiters_get_two_edges(void **state)
{
	int ep = darter_epoll_create1(0), u[2], i;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	pthread_t t[2];
	void *rc;

	(void)state;
	for (i = 0; i < 2; i++) {
		u[i] = bound(&darter_net, SOCK_DGRAM);
		assert_int_equal(connect_to(&darter_net, u[i], port_of(&darter_net, u[i])), 0);
		assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, u[i], &ev), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, wait_one, &ep), 0);
	usleep(20000);
	for (i = 0; i < 2; i++)
		assert_int_equal(darter_send(u[i], "x", 1, 0), 1);
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], &rc);
		assert_int_equal((long)rc, 1);
		darter_close(u[i]);
	}
	darter_close(ep);
}

/* Closing sockets while their items are being added, modified and waited for. */
struct churn {
	_Atomic bool stop;
	int ep;
};

static void *
churn_main(void *arg)
{
	struct churn *c = arg;

	while (!atomic_load(&c->stop)) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT };
		int fd = darter_socket(AF_INET, SOCK_DGRAM, 0);

		darter_epoll_ctl(c->ep, EPOLL_CTL_ADD, fd, &ev);
		ev.events = EPOLLIN | EPOLLET;
		darter_epoll_ctl(c->ep, EPOLL_CTL_MOD, fd, &ev);
		darter_close(fd);
	}
	return NULL;
}

static void
sockets_closed_under_a_waiter_leave_nothing(void **state)
{
	struct churn c = { .ep = darter_epoll_create1(0) };
	struct epoll_event ev[8];
	pthread_t t[3];
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn_main, &c), 0);
	for (i = 0; i < 2000; i++)
		assert_true(darter_epoll_wait(c.ep, ev, 8, 1) >= 0);
	atomic_store(&c.stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(darter_epoll_wait(c.ep, ev, 8, 0), 0);
	darter_close(c.ep);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fresh_socket_reports_as_the_kernels),
		cmocka_unit_test(accept_that_returned_eagain_does_not_deafen_the_listener),
		cmocka_unit_test(handshakes_at_once_are_all_accepted),
		cmocka_unit_test(condition_that_holds_at_registration_is_an_event),
		cmocka_unit_test(level_item_is_reported_again_and_again),
		cmocka_unit_test(edge_item_is_reported_once_for_each_arrival),
		cmocka_unit_test(oneshot_item_is_disarmed_until_modified),
		cmocka_unit_test(half_close_is_rdhup_and_full_close_is_hup),
		cmocka_unit_test(shutdown_of_reading_is_readable),
		cmocka_unit_test(reset_is_err_and_hup_without_asking),
		cmocka_unit_test(refused_connect_is_err_and_hup),
		cmocka_unit_test(completed_connect_is_out_only),
		cmocka_unit_test(ctl_refuses_as_the_kernel_does),
		cmocka_unit_test(item_lives_until_the_last_duplicate_is_closed),
		cmocka_unit_test(room_in_a_full_buffer_is_an_edge),
		cmocka_unit_test(datagram_arrivals_are_events),
		cmocka_unit_test(refused_datagram_is_err_once),
		cmocka_unit_test(ready_items_take_turns),
		cmocka_unit_test(kernel_descriptors_share_the_queue),
		cmocka_unit_test(sleeping_wait_is_woken_by_a_kernel_descriptor),
		cmocka_unit_test(epoll_fd_is_readable_while_events_wait),
		cmocka_unit_test(closing_an_epoll_wakes_its_waiters),
		cmocka_unit_test(two_waiters_get_two_edges),
		cmocka_unit_test(sockets_closed_under_a_waiter_leave_nothing),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
