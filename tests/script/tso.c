/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments that a device cuts. The wire device takes large packets as they are, so a script sees
 * what would be cut: a whole number of full segments, and no more than congestion control, the
 * peer's window and Nagle's rule allow without such a device.
 */
#include "link/dev.h"
#include "support/script.h"
#include "support/wire_dev.h"

static void
device_cuts(struct script *s)
{
	s->ts.wire->dev->caps |= DEV_CAP_TSO | DEV_CAP_MULTISEG;
}

/* RFC 9293 3.7.4: what is over waits, as it would behind full segments */
SCRIPT(full_segments_go_out_as_one_and_the_rest_waits)
{
	device_cuts(s);
	established(s, .mss = 1000);
	app_writes(s, 4500);
	stack_sends(s, DATA(1, 4001));
	stack_silent_ms(s, 100);
	peer_sends(s, ACK(4001));
	stack_sends(s, DATA(4001, 4501, .push = 1));
	peer_sends(s, ACK(4501));
	counter_is(s, "tcp_tso_sent", 1);
}

SCRIPT(without_delay_the_rest_follows_at_once)
{
	device_cuts(s);
	established(s, .mss = 1000, .nodelay = true);
	app_writes(s, 2300);
	stack_sends(s, DATA(1, 2001), DATA(2001, 2301, .push = 1));
	peer_sends(s, ACK(2301));
}

/* RFC 5681 3.1: the initial window bounds a large segment too */
SCRIPT(congestion_window_bounds_a_large_segment)
{
	device_cuts(s);
	established(s, .mss = 1000, .nodelay = true);
	app_writes(s, 30000);
	stack_sends(s, DATA(1, 10001));
	stack_silent(s);
	/* slow start: two more segments for two acknowledged (RFC 5681 3.1) */
	peer_sends(s, ACK(2001));
	stack_sends(s, DATA(10001, 14001));
	peer_sends(s, ACK(14001));
	stack_sends_anything(s);
}

/* RFC 9293 3.8.6: never beyond the peer's window */
SCRIPT(window_of_the_peer_bounds_a_large_segment)
{
	device_cuts(s);
	established(s, .mss = 1000, .wnd = 3500);
	app_writes(s, 8000);
	stack_sends(s, DATA(1, 3001));
	stack_silent(s);
	peer_sends(s, ACK(3001, .wnd = 3500));
	stack_sends(s, DATA(3001, 6001));
	peer_sends(s, ACK(6001, .wnd = 3500));
	stack_sends(s, DATA(6001, 8001, .push = 1));
	peer_sends(s, ACK(8001));
}

/* RFC 6298 5.4: the earliest segment alone, and one segment's worth */
SCRIPT(timeout_sends_one_segment_of_a_large_one_again)
{
	device_cuts(s);
	established(s, .mss = 1000);
	app_writes(s, 4000);
	stack_sends(s, DATA(1, 4001, .push = 1));
	stack_sends(s, DATA(1, 1001, .after_ms = 200, .tol_ms = 60));
	/* some of the pieces had come */
	peer_sends(s, ACK(3001));
	stack_sends(s, DATA(3001, 4001, .push = 1));
	peer_sends(s, ACK(4001));
}

/* The FIN rides on the last piece */
SCRIPT(fin_goes_with_a_large_segment)
{
	device_cuts(s);
	established(s, .mss = 1000, .wnd = 1000);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 1001));
	app_shutdown(s, SHUT_WR);
	peer_sends(s, ACK(1001, .wnd = 10000));
	stack_sends(s, DATA_FIN(1001, 3001));
	peer_sends(s, ACK(3002));
}

/* Each piece carries the options, so each is shorter by them (RFC 6691 2) */
SCRIPT(timestamps_shorten_each_piece)
{
	device_cuts(s);
	established(s, .mss = 1000, .ts = true, .nodelay = true);
	app_writes(s, 3000);
	stack_sends(s, DATA(1, 2965), DATA(2965, 3001));
	peer_sends(s, ACK(3001));
}

SCRIPT(knob_switches_large_segments_off)
{
	device_cuts(s);
	sysctl_set(s, "net.inet.tcp.tso", "0");
	established(s, .mss = 1000);
	app_writes(s, 2000);
	stack_sends(s, DATA(1, 1001), DATA(1001, 2001));
	peer_sends(s, ACK(2001));
	counter_is(s, "tcp_tso_sent", 0);
}

SCRIPT(segments_for_a_device_that_cannot_cut_are_never_large)
{
	established(s, .mss = 1000);
	app_writes(s, 2000);
	stack_sends(s, DATA(1, 1001), DATA(1001, 2001));
	peer_sends(s, ACK(2001));
	counter_is(s, "tcp_tso_sent", 0);
}
