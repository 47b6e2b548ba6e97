/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SYN-SENT: how the application opens a connection (RFC 9293 3.10.1, 3.10.7.3; cases S17 g, S23 f,
 * S30).
 */
#include "support/script.h"

/* RFC 9293 3.10.1: <SEQ=ISS><CTL=SYN> */
SCRIPT(connect_sends_a_syn_with_mss)
{
	app_connects(s);
	stack_sends(s, SYN(.mss = 1460));
	state_is(s, TCP_SYN_SENT);
}

/* The harness's own promise, for active opens. */
SCRIPT(isn_of_active_open_is_just_below_the_wrap)
{
	app_connects(s);
	stack_sends(s, SYN());
	assert_in_range(s->c->iss, s->isn_base - 50, s->isn_base + 50);
}

/*
 * RFC 9293 3.10.7.3, fourth: SYN and ACK of ours: <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>, ESTABLISHED
 * (case S30 b)
 */
SCRIPT(syn_ack_establishes_and_is_acknowledged)
{
	app_connects(s);
	stack_sends(s, SYN());
	app_polls(s, 0);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
	app_polls(s, POLLOUT);
	app_so_error_is(s, 0);
	app_so_error_is(s, 0);
}

/* Case S30 a: while connecting */
SCRIPT(calls_while_connecting_say_so)
{
	app_connects(s);
	stack_sends(s, SYN());
	app_connect_gives(s, EALREADY);
	app_write_fails(s, EAGAIN);
	app_read_fails(s, EAGAIN);
	app_polls(s, 0);
}

/* RFC 9293 3.10.7.3, first: SEG.ACK outside (ISS, SND.NXT]: <SEQ=SEG.ACK><CTL=RST>, stay */
SCRIPT(syn_ack_with_a_wrong_ack_is_reset)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK(.ack = 555));
	stack_sends(s, RST(555));
	peer_sends(s, SYNACK(.ack = 0));
	stack_sends(s, RST(0));
	state_is(s, TCP_SYN_SENT);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
}

/* RFC 9293 3.10.7.3, first: the same for a bare ACK; with RST on it is dropped */
SCRIPT(wrong_bare_ack_in_syn_sent_is_reset)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, ACK(2, .seq = 100));
	stack_sends(s, RST(2));
	peer_sends(s, ACK(0, .seq = 100));
	stack_sends(s, RST(0));
	state_is(s, TCP_SYN_SENT);
}

/* RFC 9293 3.10.7.3, fifth: neither SYN nor RST: drop */
SCRIPT(good_ack_without_syn_in_syn_sent_is_dropped)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, ACK(1, .seq = 0), DATA(1, 11, .ack = 1), FIN(1, .ack = 1));
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
}

/* RFC 9293 3.10.7.3, eighth step of 3.10.7.4: FIN without ACK in SYN-SENT can't be checked: drop */
SCRIPT(bare_fin_in_syn_sent_is_dropped)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SEG(.flags = TH_FIN, .seq = 1));
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
}

/* RFC 9293 3.10.7.3, second; case S17 g: RST with an acceptable ACK: refused */
SCRIPT(rst_with_our_ack_refuses_the_connection)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, RSTACK(0, 1));
	stack_silent(s);
	state_is(s, TCP_CLOSED);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	app_so_error_is(s, ECONNREFUSED);
	app_so_error_is(s, 0);
	app_write_fails(s, EPIPE);
}

/*
 * Case S17 g: other resets are dropped (RFC 5961 3.2, "SYN-SENT: the RST is acceptable if the ACK
 * field is")
 */
SCRIPT(rst_with_wrong_or_no_ack_in_syn_sent_is_dropped)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, RSTACK(0, 555), RSTACK(0, 0), RST(0), RST(1));
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
	app_so_error_is(s, 0);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
}

/* RFC 6298 2.1, 5.5; case S23 f: SYN at 0, 1, 3, 7 s */
SCRIPT(syn_is_repeated_with_backoff)
{
	app_connects(s);
	stack_sends(s, SYN());
	stack_sends(s, SYN(.after_ms = 1000));
	stack_sends(s, SYN(.after_ms = 2000));
	stack_sends(s, SYN(.after_ms = 4000));
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	stack_silent_ms(s, 20000);
}

/*
 * Case S30 d; RFC 9293 3.8.3: given up after R2, here two repetitions: ETIMEDOUT 1 + 2 + 4 s after
 * the start
 */
SCRIPT(unanswered_syn_times_out)
{
	s->c->fd = script_socket(&s->ts, SOCK_STREAM);
	app_sets_int(s, IPPROTO_TCP, TCP_SYNCNT, 2);
	s->c->lport = SCRIPT_ACTIVE_LPORT;
	s->c->fport = SCRIPT_ACTIVE_FPORT;
	script_connect_on(&s->ts, s->c->fd, s->c->lport, TEST_PEER_IP, s->c->fport);
	stack_sends(s, SYN());
	stack_sends(s, SYN(.after_ms = 1000), SYN(.after_ms = 2000));
	stack_silent_ms(s, 3900);
	app_so_error_is(s, 0);
	stack_silent_ms(s, 200);
	app_so_error_is(s, ETIMEDOUT);
	state_is(s, TCP_CLOSED);
}

/* RFC 6298 5.7, RFC 5681 3.1; case S23 f: a SYN was lost: one segment first, RTO of 3 s */
SCRIPT(lost_syn_makes_the_first_flight_one_segment)
{
	app_connects(s);
	stack_sends(s, SYN());
	stack_sends(s, SYN(.after_ms = 1000));
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	app_writes(s, 1460 * 3);
	stack_sends(s, DATA(1, 1461));
	stack_silent_ms(s, 2900);
	stack_sends(s, DATA(1, 1461, .after_ms = 3000));
}

/* Case S30 c: a failed descriptor can be connected again, as on Linux */
SCRIPT(refused_socket_connects_again)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, RSTACK(0, 1));
	app_so_error_is(s, ECONNREFUSED);
	s->c->iss_known = false;
	s->c->snd_nxt = 0;
	s->c->rcv_nxt = 0;
	app_connect_gives(
	    s, ECONNABORTED); /* Linux ends the failed attempt with this once SO_ERROR is read */
	app_connect_gives(s, EINPROGRESS);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
	app_polls(s, POLLOUT);
}

/*
 * Case S30 f; RFC 9293 3.10.4: close in SYN-SENT deletes the connection; the late SYN-ACK finds
 * nothing
 */
SCRIPT(close_while_connecting_resets_the_late_syn_ack)
{
	app_connects(s);
	stack_sends(s, SYN());
	app_closes(s);
	stack_silent_ms(s, 5000);
	state_is(s, TCP_CLOSED);
	peer_sends(s, SYNACK());
	stack_sends(s, RST(1));
}

/*
 * RFC 9293 3.10.7.4, fourth: the SYN-ACK comes again since our ACK was lost: challenge ACK, which
 * is that ACK
 */
SCRIPT(repeated_syn_ack_is_acknowledged_again)
{
	established(s, .active = true);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1, .seq = 1));
	state_is(s, TCP_ESTABLISHED);
}

/* RFC 9293 3.10.7.3, fourth: data that rides on the SYN-ACK is taken or left, but read once */
SCRIPT(data_on_a_syn_ack_is_read_once)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SEG(.flags = TH_SYN | TH_ACK, .seq = 0, .ack = 1, .len = 50));
	stack_sends_anything(s);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, DATA(1, 51), DATA(51, 101));
	stack_sends_anything(s);
	app_reads(s, 100);
	app_reads_nothing(s);
	advance_ms(s, 200);
	stack_sends_anything(s);
}

/*
 * What was written while… no: writes before the handshake ends are refused; the first one after it
 * goes at once.
 */
SCRIPT(write_after_connect_carries_data_from_one)
{
	established(s, .active = true);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101, .ack = 1));
	peer_sends(s, ACK(101));
	stack_silent_ms(s, 2000);
}

/* Case S28 g: no route, no SYN */
SCRIPT_ON(connect_without_route_fails_at_once, .no_default_route = true)
{
	app_connects_to(s, UINT32_C(0xc6336401), ENETUNREACH);
	stack_silent(s);
}

/* RFC 9293 3.9.2.3, MUST-46: no connection to a multicast or broadcast address */
SCRIPT(connect_to_broadcast_fails)
{
	s->place = HERE;
	int fd = script_socket(&s->ts, SOCK_STREAM);

	assert_int_not_equal(
	    script_connect_on(&s->ts, fd, 0, TEST_NET_BROADCAST_IP, 80), EINPROGRESS);
	assert_int_not_equal(
	    script_connect_on(&s->ts, fd, 0, UINT32_C(0xe0000001), 80), EINPROGRESS);
	stack_silent(s);
	script_close_fd(&s->ts, fd);
}

/*
 * Case S10 on one's own: see open_simultaneous.c. Case S04 g: the port picker never makes a
 * connection to itself.
 */
SCRIPT(send_and_receive_on_an_unconnected_socket_fail)
{
	s->c->fd = script_socket(&s->ts, SOCK_STREAM);
	app_write_fails(s, EPIPE);
	app_read_fails(s, ENOTCONN);
	app_shutdown_fails(s, SHUT_WR, ENOTCONN);
	stack_silent(s);
}
