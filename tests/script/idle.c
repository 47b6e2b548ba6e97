/* SPDX-License-Identifier: BSD-2-Clause */
/* What an idle connection keeps: nothing but its control block (DESIGN: rings, idle sweep). */
#include "support/script.h"

SCRIPT(rings_that_have_run_empty_give_their_memory_back)
{
	established(s);
	app_writes(s, 1000);
	stack_sends(s, DATA(1, 1001));
	peer_sends(s, ACK(1001));
	peer_sends(s, DATA(1, 1001, .ack = 1001));
	stack_acks(s, 1001);
	app_reads(s, 1000);
	assert_true(teststack_chunk_bytes(s->ts.s) != 0);
	stack_silent_ms(s, 5000);
	assert_int_equal(teststack_chunk_bytes(s->ts.s), 0);
}

SCRIPT(a_ring_that_holds_bytes_keeps_them)
{
	established(s);
	peer_sends(s, DATA(1, 1001));
	stack_acks(s, 1001);
	stack_silent_ms(s, 5000);
	assert_true(teststack_chunk_bytes(s->ts.s) != 0);
	app_reads(s, 1000);
}

SCRIPT(a_released_connection_goes_on)
{
	established(s);
	peer_sends(s, DATA(1, 101));
	stack_acks(s, 101);
	app_reads(s, 100);
	stack_silent_ms(s, 5000);
	assert_int_equal(teststack_chunk_bytes(s->ts.s), 0);
	peer_sends(s, DATA(101, 301));
	stack_acks(s, 301);
	app_reads(s, 200);
	app_writes(s, 500);
	stack_sends(s, DATA(1, 501));
}
