/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Non-blocking connect from start to finish and what happens after it fails (RFC 9293 3.8.3, 3.9.1,
 * connect(2), poll(2); case S30). What blocks, letter i, is in tests/proof/interrupted.c, what the
 * kernel says to the same calls in tests/unit/test_sock.c.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "runtime/netisr.h"
#include "support/script.h"

static void
connecting(struct script *s)
{
	app_connects(s);
	stack_sends(s, SYN());
}

/* getsockname or getpeername: 0 with the name, or the errno. */
static int
name_of(struct script *s, bool is_peer, struct sockaddr_in *ret_name)
{
	socklen_t len = sizeof(*ret_name);
	int rc;

	memset(ret_name, 0, sizeof(*ret_name));
	assert_true(netisr_take(s->ts.s->netisr[0]));
	rc = is_peer ? darter_getpeername(s->c->fd, (struct sockaddr *)ret_name, &len)
		     : darter_getsockname(s->c->fd, (struct sockaddr *)ret_name, &len);
	rc = rc == 0 ? 0 : errno;
	netisr_give(s->ts.s->netisr[0]);
	return rc;
}

static int
epoll_of(struct script *s, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int ep;

	assert_true(netisr_take(s->ts.s->netisr[0]));
	ep = darter_epoll_create1(0);
	assert_true(ep >= 0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, s->c->fd, &ev), 0);
	netisr_give(s->ts.s->netisr[0]);
	return ep;
}

/* Events that wait; 0: none. */
static uint32_t
events_of(struct script *s, int ep)
{
	struct epoll_event ev = { 0 };
	int n;

	assert_true(netisr_take(s->ts.s->netisr[0]));
	n = darter_epoll_wait(ep, &ev, 1, 0);
	netisr_give(s->ts.s->netisr[0]);
	assert_true(n >= 0);
	return n == 0 ? 0 : ev.events;
}

/* Case S30 a: at once after connect(), each call */
SCRIPT(every_call_while_connecting_says_so)
{
	struct sockaddr_in name;
	int ep;

	connecting(s);
	app_connect_gives(s, EALREADY);
	assert_int_equal(name_of(s, true, &name), ENOTCONN);
	app_write_fails(s, EAGAIN);
	app_read_fails(s, EAGAIN);
	app_polls(s, 0);
	ep = epoll_of(s, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	assert_int_equal(events_of(s, ep), 0);
	assert_int_equal(name_of(s, false, &name), 0);
	assert_int_equal(ntohl(name.sin_addr.s_addr), TEST_STACK_IP);
	assert_int_equal(ntohs(name.sin_port), SCRIPT_ACTIVE_LPORT);
	app_so_error_is(s, 0);
	app_connect_gives(s, EALREADY);
	script_close_fd(&s->ts, ep);
}

/* Case S30 b: success: EPOLLOUT alone, no error; connect says 0 once, then EISCONN (as Linux) */
SCRIPT(success_is_told_once_by_connect_and_as_writable)
{
	struct sockaddr_in name;
	int ep;

	connecting(s);
	ep = epoll_of(s, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	assert_int_equal(events_of(s, ep), EPOLLOUT);
	app_polls(s, POLLOUT);
	app_so_error_is(s, 0);
	app_so_error_is(s, 0);
	app_connect_gives(s, 0);
	app_connect_gives(s, EISCONN);
	app_connect_gives(s, EISCONN);
	assert_int_equal(name_of(s, true, &name), 0);
	assert_int_equal(ntohs(name.sin_port), SCRIPT_ACTIVE_FPORT);
	script_close_fd(&s->ts, ep);
}

/* Case S30 c: refused: told once, then the descriptor goes to P:81 (Linux) */
SCRIPT(refusal_is_told_once_and_the_descriptor_goes_elsewhere)
{
	int ep;

	connecting(s);
	ep = epoll_of(s, EPOLLIN | EPOLLOUT);
	peer_sends(s, RSTACK(0, 1));
	assert_int_equal(events_of(s, ep), EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	app_so_error_is(s, ECONNREFUSED);
	app_so_error_is(s, 0);
	app_write_fails(s, EPIPE);
	/* Linux ends the failed attempt with this once SO_ERROR has told why */
	app_connect_gives(s, ECONNABORTED);
	s->c->iss_known = false;
	s->c->snd_nxt = 0;
	s->c->rcv_nxt = 0;
	s->c->fport = 81;
	app_connect_gives(s, EINPROGRESS);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	app_polls(s, POLLOUT);
	app_connect_gives(s, 0);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	script_close_fd(&s->ts, ep);
}

/*
 * Case S30 d: nobody answers: R2 of a SYN is at least three minutes in the strict reading (RFC 9293
 * 3.8.3, MUST-23) and ours is configured; here as strict as that, eight repetitions: 1, 2, … 60 s
 * apart
 */
SCRIPT(silence_ends_in_etimedout_and_an_event)
{
	uint64_t start_us, took_s;
	unsigned syns = 1;
	int ep;

	connecting(s);
	start_us = teststack_now(&s->ts).us;
	app_sets_int(s, IPPROTO_TCP, TCP_SYNCNT, 8);
	ep = epoll_of(s, EPOLLIN);
	while (events_of(s, ep) == 0) {
		assert_true(teststack_now(&s->ts).us - start_us < 1200 * US_PER_SEC);
		advance_ms(s, 100);
		syns += stack_sends_anything(s);
	}
	took_s = (teststack_now(&s->ts).us - start_us) / US_PER_SEC;
	assert_in_range(took_s, 180, 600);
	assert_int_equal(syns, 9);
	assert_int_equal(events_of(s, ep), EPOLLIN | EPOLLERR | EPOLLHUP);
	state_is(s, TCP_CLOSED);
	app_so_error_is(s, ETIMEDOUT);
	app_so_error_is(s, 0);
	script_close_fd(&s->ts, ep);
}

static void
shut_down_while_connecting(struct script *s, int how)
{
	int ep;

	connecting(s);
	ep = epoll_of(s, EPOLLOUT);
	app_shutdown(s, how);
	stack_silent(s);
	assert_true((events_of(s, ep) & EPOLLHUP) != 0);
	state_is(s, TCP_CLOSED);
	stack_silent_ms(s, 5000);
	/* what comes late finds nothing */
	peer_sends(s, SYNACK());
	stack_sends(s, RST(1));
	script_close_fd(&s->ts, ep);
}

/* Case S30 e: shutdown() while connecting returns 0 and ends the attempt, told by EPOLLHUP */
SCRIPT(shutdown_of_writing_ends_an_attempt) { shut_down_while_connecting(s, SHUT_WR); }
SCRIPT(shutdown_of_both_ends_an_attempt) { shut_down_while_connecting(s, SHUT_RDWR); }

/* Case S30 f: close while connecting: nothing is left, the late SYN-ACK is reset */
SCRIPT(close_of_an_attempt_leaves_nothing)
{
	connecting(s);
	app_closes(s);
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
	teststack_expect_no_leak(&s->ts);
	peer_sends(s, SYNACK());
	stack_sends(s, RST(1));
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
	teststack_expect_no_leak(&s->ts);
}

static int
dissolve(struct script *s, int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int rc;

	assert_true(netisr_take(s->ts.s->netisr[0]));
	rc = darter_connect(fd, &none, sizeof(none));
	rc = rc == 0 ? 0 : errno;
	netisr_give(s->ts.s->netisr[0]);
	teststack_run(&s->ts);
	return rc;
}

/* Case S30 g: AF_UNSPEC dissolves a UDP association: strangers are heard again */
SCRIPT(unspec_dissolves_a_udp_association)
{
	app_udp_binds(s, 6000);
	app_udp_connects(s, TEST_PEER_IP, 5000);
	peer_sends_udp(s, .sport = 5001, .dport = 6000, .len = 10);
	app_udp_read_fails(s, EAGAIN);
	wire_dev_clear(s->ts.wire);
	assert_int_equal(dissolve(s, s->ufd), 0);
	peer_sends_udp(s, .sport = 5001, .dport = 6000, .len = 20);
	app_udp_reads(s, 20);
	app_udp_send_fails(s, 0, 0, 10, EDESTADDRREQ);
	app_udp_sends(s, TEST_PEER_IP, 5001, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 5001, .len = 10);
}

/*
 * Case S30 g for TCP: refused (darter/socket.h), and the connection is none the worse. Linux resets
 * it and lets the socket be used again.
 */
SCRIPT(unspec_on_a_tcp_connection_is_refused)
{
	established(s, .active = true);
	assert_int_equal(dissolve(s, s->c->fd), EAFNOSUPPORT);
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	peer_sends(s, ACK(101));
}

/* Case S30 h: a socket that never was connected */
SCRIPT(calls_on_a_socket_that_never_connected)
{
	s->c->fd = script_socket(&s->ts, SOCK_STREAM);
	app_read_fails(s, ENOTCONN);
	app_write_fails(s, EPIPE);
	app_polls(s, POLLOUT | POLLHUP);
	stack_silent(s);
}
