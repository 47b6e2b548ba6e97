/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners under pressure, and connections that end before accept (cases S07, S12). */
#include "support/script.h"

static void
handshake(struct script *s, unsigned i)
{
	use_conn(s, i);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	stack_silent(s);
}

/* Case S07 b: backlog 0 still lets one connection complete, as on Linux */
SCRIPT(backlog_of_zero_takes_one_connection)
{
	app_listens_backlog(s, 0);
	handshake(s, 0);
	app_accepts(s);
	state_is(s, TCP_ESTABLISHED);
}

/* Connections are handed out in the order in which their handshakes ended */
SCRIPT_ON(accept_returns_connections_in_order, .netisrs = 1)
{
	app_listens(s);
	handshake(s, 0);
	handshake(s, 1);
	handshake(s, 2);
	use_conn(s, 0);
	app_accepts(s);
	use_conn(s, 1);
	app_accepts(s);
	use_conn(s, 2);
	app_accepts(s);
	app_accept_fails(s, EAGAIN);
}

/*
 * Case S07 a: a full accept queue never resets a client that got our SYN-ACK; the last ACK is
 * ignored and the handshake ends when there is room.
 */
SCRIPT_ON(full_accept_queue_makes_the_handshake_wait, .netisrs = 1)
{
	unsigned i, got_syn_ack = 0, accepted = 0;

	app_listens_backlog(s, 2);
	for (i = 0; i < 3; i++)
		handshake(s, i);
	use_conn(s, 3);
	peer_sends(s, SYN());
	got_syn_ack = stack_sends_anything(s);	/* Linux stops answering SYNs here; either way: */
	if (got_syn_ack > 0) {
		peer_sends(s, ACK(1));
		stack_sends_anything(s);
	}
	assert_int_equal(script_counter(s, "tcp_resets_sent"), 0);
	for (i = 0; i < 3; i++) {
		use_conn(s, i);
		app_accepts(s);
		accepted++;
	}
	assert_int_equal(accepted, 3);
	use_conn(s, 3);
	peer_sends(s, SYN(.seq = 0));
	if (stack_sends_anything(s) > 0)
		peer_sends(s, ACK(1));
	advance_ms(s, 10);
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
	assert_int_equal(script_counter(s, "tcp_resets_sent"), 0);
}

/*
 * Case S07 d: one client's repeated SYNs are one half-open entry, each answered with the same ISS
 */
SCRIPT_ON(repeated_syns_are_one_half_open_connection, .netisrs = 1)
{
	uint32_t pcbs, half_open, timewait;
	int i;

	app_listens(s);
	for (i = 0; i < 10; i++) {
		peer_sends(s, SYN());
		stack_sends(s, SYNACK());
		tcp_counts(s->ts.s->netisr[0], &pcbs, &half_open, &timewait);
		assert_int_equal(half_open, 1);
	}
}

/* Case S07 c: 5,000 SYNs that nobody completes, and an honest client among them gets in */
SCRIPT_ON(syn_flood_lets_honest_clients_in, .sysctls = { "net.inet.tcp.max_synq=256" })
{
	uint32_t pcbs, half_open, timewait;
	unsigned i;

	app_listens(s);
	for (i = 0; i < 5000; i++) {
		peer_sends(s, SYN(.sport = 1024 + i, .seq = (int64_t)i * 7919));
		wire_dev_clear(s->ts.wire);
	}
	tcp_counts(s->ts.s->netisr[0], &pcbs, &half_open, &timewait);
	assert_true(half_open <= 256);
	use_conn(s, 1);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	peer_sends(s, ACK(1));
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	app_accepts(s);
	peer_sends(s, DATA(1, 101));
	app_reads(s, 100);
	stack_acks(s, 101);
	/* case S07 e: five minutes later nothing of the flood is left */
	teststack_advance(&s->ts, 300 * US_PER_SEC);
	wire_dev_clear(s->ts.wire);
	tcp_counts(s->ts.s->netisr[0], &pcbs, &half_open, &timewait);
	assert_int_equal(half_open, 0);
}

/*
 * Case S12 a: reset between handshake and accept: accept still returns it, its use says ECONNRESET
 * (as on Linux)
 */
SCRIPT(accept_returns_a_connection_that_was_reset)
{
	app_listens(s);
	handshake(s, 0);
	peer_sends(s, RST(1));
	app_accepts(s);
	app_read_fails(s, ECONNRESET);
}

/* Case S12 b, after the kernel's answer: what had come is read first, then the error, once */
SCRIPT(reset_before_accept_with_data_says_so)
{
	app_listens(s);
	handshake(s, 0);
	peer_sends(s, DATA(1, 11));
	peer_sends(s, RST(11));
	app_accepts(s);
	app_reads(s, 10);
	app_read_fails(s, ECONNRESET);
	app_reads_eof(s);
	stack_silent_ms(s, 1000);
}

/* Case S12 c: data and FIN before accept: data, then end of file */
SCRIPT(data_and_fin_before_accept_are_read_after_it)
{
	app_listens(s);
	handshake(s, 0);
	peer_sends(s, DATA_FIN(1, 11));
	stack_acks(s, 12);
	app_accepts(s);
	app_reads(s, 10);
	app_reads_eof(s);
}

/* Case S12 d: aborted connections do not eat the backlog for ever */
SCRIPT_ON(aborted_connections_leave_the_backlog, .netisrs = 1)
{
	unsigned i;

	app_listens_backlog(s, 4);
	for (i = 0; i < 4; i++) {
		handshake(s, i);
		peer_sends(s, RST(1));
	}
	for (i = 0; i < 4; i++) {
		use_conn(s, i);
		app_accepts(s);
		app_closes(s);
	}
	handshake(s, 10);
	app_accepts(s);
	stack_silent(s);
}

/* Case S12 g; RFC 9293 3.10.5: closing a listener resets what waits in its queue */
SCRIPT_ON(closing_a_listener_resets_its_queue, .netisrs = 1)
{
	unsigned i;

	app_listens(s);
	for (i = 0; i < 3; i++)
		handshake(s, i);
	app_closes_listener(s);
	for (i = 0; i < 3; i++) {
		use_conn(s, i);
		stack_sends(s, SEG(.flags = TH_RST | TH_ACK, .seq = 1));
		state_is(s, TCP_CLOSED);
	}
	stack_silent(s);
}

/* RFC 9293 3.10.4, LISTEN: closed; later SYNs meet a closed port */
SCRIPT(syn_after_the_listener_closed_is_reset)
{
	app_listens(s);
	app_closes_listener(s);
	peer_sends(s, SYN());
	stack_sends(s, RSTACK(0, 1));
}

/* A half-open connection whose listener closes is forgotten; its ACK is answered with RST */
SCRIPT(half_open_connections_go_with_their_listener)
{
	app_listens(s);
	peer_sends(s, SYN());
	stack_sends(s, SYNACK());
	app_closes_listener(s);
	stack_sends_anything(s);
	peer_sends(s, ACK(1));
	stack_sends(s, RST(1));
	state_is(s, TCP_CLOSED);
}

/* Accepted connections outlive their listener */
SCRIPT(accepted_connection_outlives_the_listener)
{
	established(s);
	app_closes_listener(s);
	stack_silent(s);
	peer_sends(s, DATA(1, 101));
	app_reads(s, 100);
	stack_acks(s, 101);
}

/*
 * Case S13 l, m; RFC 9293 3.9.2.3 MUST-57, MUST-63: sources and destinations that may not open
 * anything
 */
SCRIPT(syn_from_or_to_an_impossible_address_is_ignored)
{
	static const uint32_t bad_src[] = {
		0, 0x7f000001, 0xe0000001, 0xffffffff, TEST_STACK_IP, TEST_NET_BROADCAST_IP,
	};
	static const uint32_t bad_dst[] = { TEST_NET_BROADCAST_IP, 0xe0000001, 0xffffffff,
		TEST_THIRD_IP };
	unsigned i;

	app_listens(s);
	for (i = 0; i < ARRAY_LEN(bad_src); i++) {
		peer_sends(s, SYN(.src = bad_src[i]));
		stack_silent(s);
	}
	/* ourselves, from the listener's own port */
	peer_sends(s, SYN(.src = TEST_STACK_IP, .sport = SCRIPT_LISTEN_PORT));
	stack_silent(s);
	for (i = 0; i < ARRAY_LEN(bad_dst); i++) {
		peer_sends(s, SYN(.dst = bad_dst[i]));
		stack_silent(s);
		s->c->lport = 81;
		peer_sends(s, SYN(.dst = bad_dst[i]));
		stack_silent(s);
		s->c->lport = 80;
	}
	assert_int_equal(teststack_tcp_count(&s->ts), 0);
}

/* poll on a listener: readable while a connection waits (case S03 a) */
SCRIPT(listener_is_readable_while_a_connection_waits)
{
	app_listens(s);
	app_accept_fails(s, EAGAIN);
	app_polls(s, 0);
	handshake(s, 0);
	app_polls(s, POLLIN);
	app_polls(s, POLLIN);
	app_accepts(s);
	s->c = &s->conns[5];
	app_polls(s, 0);
}
