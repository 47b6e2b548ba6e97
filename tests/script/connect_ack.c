/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ACK that ends a connect's handshake goes with what the application does at once, on a netisr
 * that polls: a connection that is closed right after it takes five packets, not six (RFC 9293
 * 3.10.7.3, fourth, "data or controls that were queued for transmission may be included").
 */
#include "support/script.h"

#define POLLS .sysctls = { "net.isr.poll_idle_us=-1" }

static void
connected(struct script *s)
{
	app_connects(s);
	stack_sends(s, SYN());
	peer_sends(s, SYNACK());
}

SCRIPT_ON(close_right_after_connect_is_ack_and_fin_in_one_segment, POLLS)
{
	connected(s);
	stack_silent(s);
	app_polls(s, POLLOUT);
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 1));
	peer_sends(s, FIN(1, .ack = 2));
	stack_sends(s, ACK(2, .seq = 2));
	stack_silent_ms(s, 100);
	/* three of the five packets */
	counter_is(s, "tcp_segs_sent", 3);
	counter_is(s, "tcp_segs_rcvd", 2);
	state_is(s, TCP_TIME_WAIT);
}

SCRIPT_ON(first_data_right_after_connect_carry_the_ack, POLLS)
{
	connected(s);
	app_writes(s, 100);
	stack_sends(s, DATA(1, 101, .ack = 1));
	peer_sends(s, ACK(101));
	stack_silent_ms(s, 100);
}

SCRIPT_ON(application_that_does_nothing_delays_the_ack_by_a_tenth_of_a_millisecond, POLLS)
{
	connected(s);
	stack_silent(s);
	stack_sends(s, ACK(1, .seq = 1, .after_ms = 0, .tol_ms = 1));
	counter_is(s, "tcp_delayed_acks", 1);
	stack_silent_ms(s, 1000);
	app_closes(s);
	stack_sends(s, FIN(1));
}

/* The peer speaks first, at once: one ACK for both */
SCRIPT_ON(data_of_the_peer_meanwhile_are_acknowledged_with_it, POLLS)
{
	connected(s);
	peer_sends(s, DATA(1, 101));
	stack_sends(s, ACK(101, .seq = 1, .after_ms = 0, .tol_ms = 1));
	stack_silent_ms(s, 1000);
	app_reads(s, 100);
}

/* A SYN-ACK that comes again is answered at once (RFC 5961 4.2) */
SCRIPT_ON(repeated_syn_ack_does_not_wait, POLLS)
{
	connected(s);
	stack_silent(s);
	peer_sends(s, SYNACK());
	stack_sends(s, ACK(1, .seq = 1));
	stack_silent_ms(s, 1000);
}

SCRIPT_ON(knob_of_zero_sends_it_at_once, .sysctls = { "net.isr.poll_idle_us=-1",
    "net.inet.tcp.connect_ack_us=0" })
{
	connected(s);
	stack_sends(s, ACK(1, .seq = 1));
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 1));
	counter_is(s, "tcp_segs_sent", 3);
}

/* … as does a netisr that sleeps: its timer would cost a wake-up */
SCRIPT(netisr_that_sleeps_sends_it_at_once)
{
	connected(s);
	stack_sends(s, ACK(1, .seq = 1));
	app_closes(s);
	stack_sends(s, FIN(1, .ack = 1));
	counter_is(s, "tcp_segs_sent", 3);
}
