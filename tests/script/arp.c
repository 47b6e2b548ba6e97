/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP (RFC 826, RFC 5227; RFC 1122 2.3.2; neighbour states of RFC 4861 7.3). The harness answers
 * nothing here.
 */
#include <stdlib.h>
#include <string.h>

#include "support/script.h"
#include "wire/arp.h"
#include "wire/ether.h"

SCRIPT(request_for_our_address_is_answered)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REQUEST);
	stack_sends_arp(s, .op = ARP_OP_REPLY);
	counter_is(s, "arp_replies_sent", 1);
}

SCRIPT(request_for_another_address_is_not_answered)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REQUEST, .target_ip = TEST_THIRD_IP);
	stack_silent(s);
}

/* Malformed: another hardware kind, cut short */
SCRIPT(malformed_arp_is_dropped)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REQUEST, .hw_kind = 6);
	peer_sends_arp(s, .op = ARP_OP_REQUEST, .cut_bytes = 27);
	peer_sends_arp(s, .op = 9);
	stack_silent(s);
	counter_is(s, "drop_arp_bad", 3);
}

/* RFC 1122 2.3.2.2: the packet waits for the answer and is then sent */
SCRIPT(packet_waits_for_resolution)
{
	s->ts.auto_arp = false;
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	stack_silent(s);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_sends_udp(s, .dport = 5000, .len = 10);
	app_udp_sends(s, TEST_PEER_IP, 5000, 20);
	stack_sends_udp(s, .dport = 5000, .len = 20);
}

/*
 * RFC 1122 2.3.2.1: at most one request a second; given up after a few, the packets dropped and
 * counted
 */
SCRIPT(unanswered_requests_are_repeated_and_given_up)
{
	unsigned sent = 1;
	struct wire_frame *f;

	s->ts.auto_arp = false;
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	stack_silent_ms(s, 900);
	advance_ms(s, 30000);
	while ((f = stack_sent_frame(s)) != NULL) {
		free(f);
		sent++;
	}
	assert_in_range(sent, 2, 6);
	assert_true(script_counter(s, "drop_neigh_failed") >= 1);
}

/* A flood of packets to an unresolved neighbour asks once and keeps a bounded queue */
SCRIPT(queue_for_an_unresolved_neighbour_is_bounded)
{
	unsigned i, sent = 0;
	struct wire_frame *f;

	s->ts.auto_arp = false;
	for (i = 0; i < 100; i++)
		app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	stack_silent(s);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	while ((f = stack_sent_frame(s)) != NULL) {
		free(f);
		sent++;
	}
	assert_in_range(sent, 1, 99);
	assert_int_equal(script_counter(s, "drop_neigh_queue_full"), 100 - sent);
}

/* RFC 826: a request tells its sender's address too */
SCRIPT(request_teaches_the_senders_address)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REQUEST);
	stack_sends_arp(s, .op = ARP_OP_REPLY);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_udp(s, .dport = 5000, .len = 10);
}

/* An answer that nobody asked for makes no entry: the next packet still asks */
SCRIPT(unsolicited_reply_makes_no_entry)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_silent(s);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_sends_udp(s, .dport = 5000, .len = 10);
}

/*
 * RFC 5227 2.4: somebody else claims our address: counted, and no reply to a mere claim of theirs
 */
SCRIPT(address_conflict_is_counted)
{
	s->ts.auto_arp = false;
	peer_sends_arp(s, .op = ARP_OP_REQUEST, .sender_ip = TEST_STACK_IP,
	    .target_ip = TEST_STACK_IP, .sender_host = 9);
	counter_is(s, "arp_addr_conflicts", 1);
	wire_dev_clear(s->ts.wire);	/* a defence is allowed (RFC 5227 2.4 b) */
}

/* RFC 5227 2.1.1: a probe (sender 0.0.0.0) for our address is answered and teaches nothing */
SCRIPT(probe_is_answered)
{
	uint8_t frame[60] = { 0 };
	struct arp_view v = { .op = ARP_OP_REQUEST, .target_ip = be32_from_cpu(TEST_STACK_IP) };
	struct wire_frame *f;

	s->ts.auto_arp = false;
	teststack_mac(2, v.sender_mac.b);
	ether_emit(frame, &MAC_BROADCAST, &v.sender_mac, ETHER_TYPE_ARP);
	arp_emit(frame + 14, &v);
	peer_sends_raw(s, frame, sizeof(frame));
	f = stack_sent_frame(s);
	assert_non_null(f);
	free(f);
	stack_silent(s);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_sends_udp(s, .dport = 5000, .len = 10);
}

/* TCP: a SYN waits like any packet; the connect goes on */
SCRIPT(connect_resolves_its_peer_first)
{
	s->ts.auto_arp = false;
	app_connects(s);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1));
}

/*
 * A connect to a neighbour that does not exist fails: EHOSTUNREACH, or the SYN timeout at the
 * latest
 */
SCRIPT(connect_to_an_absent_neighbour_fails)
{
	struct wire_frame *f;

	s->ts.auto_arp = false;
	app_connects(s);
	advance_ms(s, 600000);
	while ((f = stack_sent_frame(s)) != NULL)
		free(f);
	state_is(s, TCP_CLOSED);
	app_polls(s, POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
}

/* A neighbour that went stale and moved: probed, found at its new address */
SCRIPT(stale_neighbour_is_confirmed_by_a_request)
{
	struct wire_frame *f;

	s->ts.auto_arp = false;
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	stack_sends_arp(s, .op = ARP_OP_REQUEST);
	peer_sends_arp(s, .op = ARP_OP_REPLY);
	stack_sends_udp(s, .dport = 5000, .len = 10);
	advance_ms(s, 3600 * 1000);
	while ((f = stack_sent_frame(s)) != NULL)
		free(f);
	app_udp_sends(s, TEST_PEER_IP, 5000, 10);
	advance_ms(s, 20000);
	assert_true(
	    script_counter(s, "neigh_probes_sent") + script_counter(s, "arp_requests_sent") >= 2);
	while ((f = stack_sent_frame(s)) != NULL)
		free(f);
}
