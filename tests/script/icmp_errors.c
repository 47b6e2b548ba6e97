/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP errors about TCP, path MTU (RFC 1122 4.2.3.9, RFC 5461, RFC 5927, RFC 1191; case S28 a, b,
 * c, h).
 */
#include "support/script.h"
#include "wire/icmp4.h"

static void
syn_sent(struct script *s)
{
	app_connects(s);
	stack_sends(s, SYN());
}

/* Case S28 a: port unreachable while connecting: refused (RFC 1122 4.2.3.9: hard) */
SCRIPT(port_unreachable_refuses_a_connect)
{
	syn_sent(s);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0);
	stack_silent(s);
	app_so_error_is(s, ECONNREFUSED);
	state_is(s, TCP_CLOSED);
}

/*
 * Case S28 a: soft ones: at once as most stacks do, or remembered and told at the timeout; never
 * success, never a hang
 */
static void
soft_error_while_connecting(struct script *s, int type, int code)
{
	app_connects(s);
	app_sets_int(s, IPPROTO_TCP, TCP_SYNCNT, 2);
	stack_sends(s, SYN());
	peer_sends_icmp(s, .type = type, .code = code, .seq = 0);
	advance_ms(s, 300000);
	stack_sends_anything(s);
	state_is(s, TCP_CLOSED);
}

SCRIPT(host_unreachable_is_told_by_connect)
{
	soft_error_while_connecting(s, ICMP4_UNREACH, ICMP4_UNREACH_HOST);
	app_so_error_is(s, EHOSTUNREACH);
}

SCRIPT(net_unreachable_is_told_by_connect)
{
	soft_error_while_connecting(s, ICMP4_UNREACH, ICMP4_UNREACH_NET);
	app_so_error_is(s, ENETUNREACH);
}

/* Case S28 a, 3/13 and 11/0: the attempt goes on, and its end says what was heard */
SCRIPT(filter_on_the_way_is_told_by_connect)
{
	soft_error_while_connecting(s, ICMP4_UNREACH, 13);
	app_so_error_is(s, EHOSTUNREACH);
}

SCRIPT(loop_on_the_way_is_told_by_connect)
{
	soft_error_while_connecting(s, ICMP4_TIME_EXCEEDED, 0);
	app_so_error_is(s, EHOSTUNREACH);
}

/* Case S28 a, 3/2; RFC 1122 4.2.3.9: hard, as port unreachable is */
SCRIPT(protocol_unreachable_ends_a_connect)
{
	syn_sent(s);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PROTO, .seq = 0);
	stack_silent(s);
	app_so_error_is(s, ENOPROTOOPT);
	state_is(s, TCP_CLOSED);
}

/* Case S28 a; RFC 9293 3.9.2.2 MUST-55: source quench is ignored */
SCRIPT(source_quench_is_ignored)
{
	syn_sent(s);
	peer_sends_icmp(s, .type = ICMP4_SOURCE_QUENCH, .seq = 0);
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
	app_so_error_is(s, 0);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
}

/* RFC 5927 4.1: a quote that is not in flight is dropped */
SCRIPT(error_about_a_number_not_in_flight_is_ignored)
{
	syn_sent(s);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 5000);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = -1);
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
	app_so_error_is(s, 0);
}

/* Case S28 b; RFC 9293 MUST-56: soft errors never abort an established connection */
SCRIPT(soft_errors_do_not_abort)
{
	static const int codes[] = { ICMP4_UNREACH_NET, ICMP4_UNREACH_HOST, ICMP4_UNREACH_SRCFAIL };
	unsigned i;

	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	for (i = 0; i < ARRAY_LEN(codes); i++)
		peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = codes[i], .seq = 1);
	peer_sends_icmp(s, .type = ICMP4_TIME_EXCEEDED, .code = 0, .seq = 1);
	peer_sends_icmp(s, .type = ICMP4_PARAM_PROBLEM, .code = 0, .seq = 1);
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, ACK(101));
	app_so_error_is(s, 0);
	stack_silent_ms(s, 2000);
}

/*
 * Case S28 b: hard codes on an established connection: soft as RFC 5461 has it, at the least when
 * not in flight
 */
SCRIPT(stale_hard_error_does_not_abort)
{
	established(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101));
	peer_sends(s, ACK(101));
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 1);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PROTO, .seq = 1);
	stack_silent(s);
	state_is(s, TCP_ESTABLISHED);
}

/* Case S28 c; RFC 1191: lower path MTU: sent again at once in smaller pieces */
SCRIPT(needfrag_resends_at_once_in_smaller_segments)
{
	established(s, .nodelay = true);
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1461));
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 1400, .seq = 1);
	stack_sends(s, DATA(1, 1361));
	stack_sends_anything(s);
	peer_sends(s, ACK(1461));
	app_writes(s, 3000);
	stack_sends(s, DATA(1461, 2821), DATA(2821, 4181));
	stack_sends_anything(s);
}

/* Case S28 c; RFC 1191 5: an old router says 0: the next plateau */
SCRIPT(needfrag_of_zero_takes_a_plateau)
{
	struct seg got;

	established(s, .nodelay = true);
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1461));
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 0, .seq = 1);
	got = script_take(s, 300);
	assert_int_equal(got.seq, 1);
	assert_in_range(got.len, 200, 1459);
	stack_sends_anything(s);
}

/* Case S28 c: larger than what we use, or not in flight: ignored */
SCRIPT(needfrag_that_makes_no_sense_is_ignored)
{
	struct tcp_conn_info before, after;

	established(s);
	assert_true(script_conn_info(s, &before));
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1461));
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 9000, .seq = 1);
	stack_silent(s);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 1000, .seq = 90000);
	stack_silent(s);
	assert_true(script_conn_info(s, &after));
	assert_int_equal(before.mss, after.mss);
}

/* Case S28 c: never below 68, and no storm of tiny segments */
SCRIPT(needfrag_below_the_minimum_starts_no_storm)
{
	established(s);
	app_writes(s, 1460);
	stack_sends(s, DATA(1, 1461));
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 20, .seq = 1);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 68, .seq = 1);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_NEEDFRAG, .mtu = 67, .seq = 1);
	assert_in_range(stack_sends_anything(s), 0, 60);
	state_is(s, TCP_ESTABLISHED);
	peer_sends(s, ACK(1461));
	stack_sends_anything(s);
}

/* Case S28 h: quotes that are cut short, from a stranger, or with a wrong checksum */
SCRIPT(useless_quotes_are_dropped)
{
	syn_sent(s);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0, .quote_bytes = 7);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0, .quote_bytes = -1);
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0, .bad_csum = true);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0,
	    .inner_src = TEST_THIRD_IP);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .seq = 0, .lport = 1);
	stack_silent(s);
	state_is(s, TCP_SYN_SENT);
	app_so_error_is(s, 0);
}
