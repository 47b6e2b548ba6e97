/* SPDX-License-Identifier: BSD-2-Clause */
/* Keep-alive (RFC 9293 3.8.4, MUST-24 to MUST-29; case S25). */
#include <sys/epoll.h>

#include <darter/event.h>

#include "runtime/netisr.h"
#include "support/script.h"

static void
keepalive_10_1_3(struct script *s)
{
	app_sets_int(s, SOL_SOCKET, SO_KEEPALIVE, 1);
	app_sets_int(s, IPPROTO_TCP, TCP_KEEPIDLE, 10);
	app_sets_int(s, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	app_sets_int(s, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/* Case S25 a: the peer's probe without data */
SCRIPT(probe_without_data_is_answered)
{
	established(s);
	peer_sends(s, ACK(1, .seq = 0));
	stack_sends(s, ACK(1, .seq = 1));
}

/* Case S25 b: with one garbage byte, which changes nothing */
SCRIPT(probe_with_garbage_byte_is_answered)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	peer_sends(s, DATA(100, 101, .fill = 0xee));
	stack_sends(s, ACK(101, .seq = 1));
	app_reads(s, 100);
	app_reads_nothing(s);
}

/* Case S25 f; MUST-25: off by default */
SCRIPT(idle_connection_sends_no_probes_by_default)
{
	established(s);
	stack_silent_ms(s, 4 * 3600 * 1000);
	state_is(s, TCP_ESTABLISHED);
}

/* Case S25 f; MUST-28: two hours when switched on */
SCRIPT(default_idle_time_is_two_hours)
{
	established(s);
	app_sets_int(s, SOL_SOCKET, SO_KEEPALIVE, 1);
	stack_silent_ms(s, 7190 * 1000);
	stack_sends(s, ACK(1, .seq = 0, .after_ms = 7200 * 1000, .tol_ms = 8000));
	peer_sends(s, ACK(1));
	stack_silent_ms(s, 7100 * 1000);
}

/* Case S25 c: the probe: seq SND.NXT - 1, ACK, no data; an answer keeps the connection */
SCRIPT(answered_probe_keeps_the_connection)
{
	int i;

	established(s);
	keepalive_10_1_3(s);
	for (i = 0; i < 5; i++) {
		stack_sends(s, ACK(1, .seq = 0, .after_ms = 10000, .tol_ms = 300));
		peer_sends(s, ACK(1));
	}
	state_is(s, TCP_ESTABLISHED);
}

/* Case S25 c, d: three unanswered probes: ETIMEDOUT */
SCRIPT(unanswered_probes_end_the_connection)
{
	established(s);
	keepalive_10_1_3(s);
	stack_sends(s, ACK(1, .seq = 0, .after_ms = 10000, .tol_ms = 300));
	stack_sends(s, ACK(1, .seq = 0, .after_ms = 1000, .tol_ms = 100));
	stack_sends(s, ACK(1, .seq = 0, .after_ms = 1000, .tol_ms = 100));
	advance_ms(s, 1500);
	stack_sends_anything(s);	/* a last RST is allowed */
	state_is(s, TCP_CLOSED);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	app_read_fails(s, ETIMEDOUT);
}

/*
 * Case S25 d: told to an epoll that asked for EPOLLIN only; a call that sleeps, in
 * tests/proof/process.c
 */
SCRIPT(dead_peer_is_told_to_who_only_wants_to_read)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep, n;

	established(s);
	keepalive_10_1_3(s);
	assert_true(netisr_take(s->ts.s->netisr[0]));
	ep = darter_epoll_create1(0);
	assert_int_equal(darter_epoll_ctl(ep, EPOLL_CTL_ADD, s->c->fd, &ev), 0);
	assert_int_equal(darter_epoll_wait(ep, &ev, 1, 0), 0);
	netisr_give(s->ts.s->netisr[0]);
	advance_ms(s, 14000);
	wire_dev_clear(s->ts.wire);
	assert_true(netisr_take(s->ts.s->netisr[0]));
	n = darter_epoll_wait(ep, &ev, 1, 0);
	netisr_give(s->ts.s->netisr[0]);
	assert_int_equal(n, 1);
	assert_int_equal(ev.events, EPOLLIN | EPOLLERR | EPOLLHUP);
	app_read_fails(s, ETIMEDOUT);
	script_close_fd(&s->ts, ep);
}

/* Case S25 c: the peer has no such connection */
SCRIPT(reset_answer_to_a_probe_ends_the_connection)
{
	established(s);
	keepalive_10_1_3(s);
	stack_sends(s, ACK(1, .seq = 0, .after_ms = 10000, .tol_ms = 300));
	peer_sends(s, RST(1));
	app_read_fails(s, ECONNRESET);
	state_is(s, TCP_CLOSED);
}

/* Case S25 e: with data in flight the retransmission timer rules */
SCRIPT(no_probes_while_data_is_in_flight)
{
	struct seg got;
	int i;

	established(s);
	keepalive_10_1_3(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	for (i = 0; i < 6; i++) {
		got = script_take(s, 30000);
		assert_int_equal(got.len, 100);
	}
	state_is(s, TCP_ESTABLISHED);
}

/* Traffic puts the probe off */
SCRIPT(traffic_puts_probes_off)
{
	int i;

	established(s);
	keepalive_10_1_3(s);
	for (i = 0; i < 5; i++) {
		int64_t at = s->c->snd_nxt;

		advance_ms(s, 8000);
		stack_silent(s);
		peer_sends(s, DATA(at, at + 10));
		stack_acks(s, at + 10);
	}
	app_reads(s, 50);
}
