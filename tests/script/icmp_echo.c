/* SPDX-License-Identifier: BSD-2-Clause */
/* Echo, and what ICMP never answers (RFC 792, RFC 1122 3.2.2). */
#include <stdlib.h>
#include <string.h>

#include "support/script.h"
#include "support/script_priv.h"
#include "wire/icmp4.h"

/* RFC 1122 3.2.2.6: the reply has the request's data */
SCRIPT(echo_request_is_answered_with_its_data)
{
	peer_sends_echo(s, 77, 1, 56);
	stack_sends_icmp(s, ICMP4_ECHO_REPLY, 0);
	peer_sends_echo(s, 77, 2, 0);
	stack_sends_icmp(s, ICMP4_ECHO_REPLY, 0);
	peer_sends_echo(s, 77, 3, 1400);
	stack_sends_icmp(s, ICMP4_ECHO_REPLY, 0);
	counter_is(s, "icmp_echo_replies", 3);
}

/* Case S27 a */
SCRIPT(echo_request_with_wrong_checksum_is_dropped)
{
	script_peer_echo(s, HERE, 77, 1, 56, true);
	stack_silent(s);
	counter_is(s, "drop_icmp_csum", 1);
}

/* RFC 1122 3.2.2: unknown types are discarded silently */
SCRIPT(unknown_icmp_type_is_dropped)
{
	peer_sends_icmp(s, .type = 40);
	peer_sends_icmp(s, .type = ICMP4_REDIRECT, .code = 1);
	peer_sends_icmp(s, .type = ICMP4_ECHO_REPLY);
	stack_silent(s);
}

/*
 * RFC 1122 3.2.2.2, 3.2.2: an unknown protocol is told by Protocol Unreachable, or not at all;
 * never twice
 */
SCRIPT(unknown_protocol_gets_one_answer_at_most)
{
	uint8_t frame[128] = { 0 };
	struct wire_frame *f;

	peer_sends_raw(s, frame, script_wrap_ip(frame, 253, TEST_PEER_IP, TEST_STACK_IP, 20));
	counter_is(s, "drop_ip_proto", 1);
	f = stack_sent_frame(s);
	free(f);
	stack_silent(s);
}

/* RFC 1122 3.2.2: no error about an error */
SCRIPT(error_about_an_error_is_never_sent)
{
	peer_sends_icmp(
	    s, .type = ICMP4_UNREACH, .code = ICMP4_UNREACH_PORT, .lport = 9, .fport = 9);
	stack_silent(s);
}
