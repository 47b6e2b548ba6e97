/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port on a VLAN (IEEE 802.1Q): only its own frames come in, everything that leaves carries the
 * tag (case S26 d). The peer is on the same VLAN unless a script moves it; the harness looks at the
 * tag of every frame sent.
 */
#include <stdlib.h>
#include <string.h>

#include "support/script.h"
#include "wire/ether.h"
#include "wire/icmp4.h"

#define VID		2002
#define PRIORITY	(5 << VLAN_PCP_SHIFT)

/*
 * FIN+ACK is 54 bytes of packet; with the tag the sender pads by 2 to reach the minimum. Both as a
 * port hands it on that leaves the tag where it is, and as one that takes it off.
 */
static void
padded_fin(struct script *s)
{
	established(s);
	peer_sends(s, FIN(1, .frame_bytes = 56));
	stack_sends(s, ACK(2));
	app_reads_eof(s);
	state_is(s, TCP_CLOSE_WAIT);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 1461), DATA(1461, 2921));
	peer_sends(s, ACK(2921));
	stack_sends(s, DATA(2921, 3001));
	peer_sends(s, ACK(3001));
}

/* Case S26 d: configured, the tag is in the frame */
SCRIPT_ON(tagged_frames_of_our_vlan_are_ours, .vlan = VID)
{
	padded_fin(s);
	counter_is(s, "drop_vlan", 0);
}

/* Case S26 d: configured, the port strips the tag */
SCRIPT_ON(stripped_frames_of_our_vlan_are_ours, .vlan = VID)
{
	s->ts.wire->strips_vlan = true;
	padded_fin(s);
	counter_is(s, "drop_vlan", 0);
}

/* Case S26 d; 802.1Q 6.9: the priority beside the VLAN number does not matter */
SCRIPT_ON(priority_of_a_tag_does_not_matter, .vlan = VID)
{
	s->ts.wire->vlan = PRIORITY | VID;
	padded_fin(s);
	counter_is(s, "drop_vlan", 0);
}

static void
other_vlan(struct script *s, uint16_t tag)
{
	uint16_t ours = s->ts.wire->vlan;

	established(s);
	s->ts.wire->vlan = tag;
	peer_sends(s, DATA(1, 101), FIN(101, .frame_bytes = 60));
	stack_silent_ms(s, 200);
	counter_is(s, "drop_vlan", 2);
	app_reads_nothing(s);
	state_is(s, TCP_ESTABLISHED);
	s->ts.wire->vlan = ours;
	s->c->snd_nxt = 1;
	peer_sends(s, DATA(1, 11));
	app_reads(s, 10);
	stack_acks(s, 11);
}

/* Case S26 d: another VLAN, with and without the port's help; none; priority only (VID 0) */
SCRIPT_ON(frames_of_another_vlan_are_not_ours, .vlan = VID) { other_vlan(s, VID + 1); }
SCRIPT_ON(untagged_frames_are_not_ours_on_a_vlan, .vlan = VID) { other_vlan(s, 0); }
SCRIPT_ON(priority_tagged_frames_are_not_ours_on_a_vlan, .vlan = VID) { other_vlan(s, PRIORITY); }

SCRIPT_ON(stripped_frames_of_another_vlan_are_not_ours, .vlan = VID)
{
	s->ts.wire->strips_vlan = true;
	other_vlan(s, VID + 1);
}

/* Case S26 d: no VLAN configured: tagged frames are dropped, however the tag is told */
SCRIPT(tagged_frames_are_not_ours_without_a_vlan) { other_vlan(s, VID); }

SCRIPT(stripped_frames_are_not_ours_without_a_vlan)
{
	s->ts.wire->strips_vlan = true;
	other_vlan(s, VID);
}

/* 802.1Q: VID 0 is a priority and no VLAN: an untagged port takes it */
SCRIPT(priority_tagged_frames_are_ours_without_a_vlan)
{
	s->ts.wire->vlan = PRIORITY;
	padded_fin(s);
	counter_is(s, "drop_vlan", 0);
}

/* ARP, UDP and ICMP leave with the tag too */
SCRIPT_ON(everything_that_leaves_carries_the_tag, .vlan = VID)
{
	struct wire_frame *f;
	struct ether_view e;

	app_udp_binds(s, 6000);
	peer_sends_udp(s, .sport = 5000, .dport = 6000, .len = 40);
	app_udp_reads(s, 40);
	app_udp_sends(s, TEST_PEER_IP, 5000, 1472);
	stack_sends_udp(s, .sport = 6000, .dport = 5000, .len = 1472);
	peer_sends_udp(s, .sport = 5000, .dport = 9, .len = 10);
	stack_sends_icmp(s, ICMP4_UNREACH, ICMP4_UNREACH_PORT);
	peer_sends_echo(s, 1, 1, 1400);
	stack_sends_icmp(s, ICMP4_ECHO_REPLY, 0);
	s->ts.auto_arp = false;
	app_udp_sends(s, UINT32_C(0xc0000209), 5000, 10);
	f = stack_sent_frame(s);
	assert_non_null(f);
	assert_int_equal(ether_parse(f->bytes, f->len, &e), WIRE_OK);
	assert_int_equal(e.type, ETHER_TYPE_ARP);
	assert_true(e.has_vlan);
	assert_int_equal(e.vlan_tci, VID);
	free(f);
	advance_ms(s, 10000);
	wire_dev_clear(s->ts.wire);	/* the requests that follow */
}
