/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP on the wire and at the socket (RFC 768, RFC 1122 4.1; cases S26 g, S27 b-d, S28 d-f, S29). */
#include <stdlib.h>
#include <string.h>

#include "support/script.h"
#include "wire/icmp4.h"
#include "wire/ip4.h"

SCRIPT(datagram_is_delivered_to_the_bound_port)
{
	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 100);
	app_polls(s, POLLIN | POLLOUT);
	app_udp_reads(s, 100);
	app_udp_read_fails(s, EAGAIN);
	stack_silent(s);
}

SCRIPT(datagram_is_sent_as_it_was_given)
{
	app_udp_binds(s, 6000);
	app_udp_sends(s, TEST_PEER_IP, 5000, 100);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 100);
	app_udp_sends(s, TEST_PEER_IP, 5000, 1);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 1);
	app_udp_sends(s, TEST_PEER_IP, 5000, 1472);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 1472);
	stack_silent(s);
}

/* An unbound socket draws a port at the first send (case S29 d: empty datagrams are datagrams) */
SCRIPT(empty_datagram_is_sent)
{
	app_udp_sends(s, TEST_PEER_IP, 5000, 0);
	stack_sends_udp(s, .dport = 5000, .len = 0);
}

/* Case S29 c: empty one between two others */
SCRIPT(empty_datagram_is_received_in_order)
{
	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 5);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 0);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 7);
	app_udp_reads(s, 5);
	app_udp_reads(s, 0);
	app_udp_reads(s, 7);
	app_udp_read_fails(s, EAGAIN);
}

/* Case S29 d: what no IPv4 packet can carry */
SCRIPT(oversized_datagram_is_refused)
{
	app_udp_send_fails(s, TEST_PEER_IP, 5000, 65508, EMSGSIZE);
	stack_silent(s);
}

/* Case S26 g; RFC 768: length field below the IP payload: the surplus is ignored */
SCRIPT(surplus_behind_the_udp_length_is_ignored)
{
	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .ip_len = 40, .udp_len = 40, .len = 32);
	app_udp_reads(s, 32);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .ip_len = 40, .udp_len = 28, .len = 20);
	app_udp_reads(s, 20);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .ip_len = 40, .udp_len = 8, .len = 0);
	app_udp_reads(s, 0);
}

/* Case S26 g: impossible lengths; 65536 is 0 in the field */
SCRIPT(lying_udp_length_is_dropped)
{
	static const int lens[] = { 7, 1, 65536, 41, 65535 };
	unsigned i;

	app_udp_binds(s, 6000);
	for (i = 0; i < ARRAY_LEN(lens); i++)
		peer_sends_udp(
		    s, .sport = 5000, .dport = 6000, .ip_len = 40, .udp_len = lens[i], .len = 32);
	app_udp_read_fails(s, EAGAIN);
	counter_is(s, "drop_udp_len", ARRAY_LEN(lens));
	stack_silent(s);
}

/* Case S27 a, b; RFC 768: 0 means no checksum */
SCRIPT(udp_checksum_is_checked_unless_absent)
{
	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .csum = 1);
	app_udp_read_fails(s, EAGAIN);
	counter_is(s, "drop_udp_csum", 1);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .csum = 2);
	app_udp_reads(s, 10);
}

/* Case S28 f; RFC 1122 4.1.3.1: closed port: Port Unreachable with a quote */
SCRIPT(closed_udp_port_is_unreachable)
{
	peer_sends_udp(s, .sport = 5000, .dport = 9, .len = 10);
	stack_sends_icmp(s, ICMP4_UNREACH, ICMP4_UNREACH_PORT);
	counter_is(s, "drop_udp_no_port", 1);
}

/* Case S28 f; RFC 1122 3.2.2: never for broadcast or multicast */
SCRIPT(closed_udp_port_is_silent_for_broadcast)
{
	peer_sends_udp(s, .sport = 5000, .dport = 9, .len = 10, .dst = TEST_NET_BROADCAST_IP,
	    .dst_mac_broadcast = true);
	peer_sends_udp(
	    s, .sport = 5000, .dport = 9, .len = 10, .dst = 0xffffffff, .dst_mac_broadcast = true);
	peer_sends_udp(s, .sport = 5000, .dport = 9, .len = 10, .dst_mac_broadcast = true);
	stack_silent(s);
}

/* Case S28 f: and at a limited rate */
SCRIPT(port_unreachable_is_rate_limited)
{
	struct wire_frame *f;
	unsigned i, sent = 0;

	for (i = 0; i < 3000; i++)
		peer_sends_udp(s, .sport = 5000, .dport = (uint16_t)(1000 + i), .len = 10);
	while ((f = stack_sent_frame(s)) != NULL) {
		free(f);
		sent++;
	}
	assert_in_range(sent, 1, 1100);
	assert_int_equal(script_counter(s, "drop_icmp_rate"), 3000 - sent);
}

/* Case S28 d: connected socket: the error is told exactly once, then the socket works */
SCRIPT(port_unreachable_is_told_once_to_a_connected_socket)
{
	app_udp_binds(s, 6000);
	app_udp_connects(s, TEST_PEER_IP, 9);
	app_udp_sends(s, 0, 0, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 9, .len = 10);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .proto = IP_PROTO_UDP,
	    .lport = 6000, .fport = 9);
	app_polls(s, POLLOUT | POLLERR);
	app_udp_read_fails(s, ECONNREFUSED);
	app_udp_read_fails(s, EAGAIN);
	app_udp_sends(s, 0, 0, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 9, .len = 10);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .proto = IP_PROTO_UDP,
	    .lport = 6000, .fport = 9);
	app_so_error_is(s, ECONNREFUSED);
	app_so_error_is(s, 0);
	app_udp_sends(s, 0, 0, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 9, .len = 10);
}

/* Case S28 e: unconnected: nothing is told */
SCRIPT(port_unreachable_is_not_told_to_an_unconnected_socket)
{
	app_udp_binds(s, 6000);
	app_udp_sends(s, TEST_PEER_IP, 9, 10);
	stack_sends_udp(s, .sport = 6000, .dport = 9, .len = 10);
	peer_sends_icmp(s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .proto = IP_PROTO_UDP,
	    .lport = 6000, .fport = 9);
	app_so_error_is(s, 0);
	app_udp_read_fails(s, EAGAIN);
}

/* A connected socket hears its peer only; others meet a closed port */
SCRIPT(connected_socket_hears_its_peer_only)
{
	app_udp_binds(s, 6000);
	app_udp_connects(s, TEST_PEER_IP, 5000);
	peer_sends_udp(s, .sport = 5001, .dport = 6000, .len = 10);
	app_udp_read_fails(s, EAGAIN);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 20, .src = TEST_THIRD_IP);
	app_udp_read_fails(s, EAGAIN);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 30);
	app_udp_reads(s, 30);
	wire_dev_clear(s->ts.wire);	/* the refusals */
}

/* SO_RCVBUF bounds what waits; the surplus is dropped and counted, what came first is kept */
SCRIPT(full_receive_queue_drops_the_newest)
{
	unsigned i, n = 0;

	app_udp_binds(s, 6000);
	script_app_udp_rcvbuf(s, HERE, 4096);
	for (i = 0; i < 200; i++)
		peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 1000);
	assert_true(script_counter(s, "drop_udp_rcvq_full") > 100);
	n = 200 - (unsigned)script_counter(s, "drop_udp_rcvq_full");
	for (i = 0; i < n; i++)
		app_udp_reads(s, 1000);
	app_udp_read_fails(s, EAGAIN);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 1000);
	app_udp_reads(s, 1000);
}

/* No route */
SCRIPT_ON(send_without_route_fails, .no_default_route = true)
{
	app_udp_send_fails(s, UINT32_C(0xc6336401), 9, 10, ENETUNREACH);
	stack_silent(s);
}

/* Source addresses that nobody may have (RFC 1122 3.2.1.3) */
SCRIPT(datagram_from_an_impossible_source_is_dropped)
{
	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .src = 0x7f000001);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .src = 0xe0000001);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .src = 0xffffffff);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 10, .src = TEST_STACK_IP);
	app_udp_read_fails(s, EAGAIN);
	stack_silent(s);
}
