/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing the stack's initial sequence number to where a script wants it, without a hook in the
 * stack.
 *
 * RFC 6528: ISN = M + F(tuple, secret) with M a clock of one tick per 4 us. A stack made from the
 * same seed has the same secret, so F of the scripts' first tuple (passive or active) is measured
 * once a process on a stack of its own; then the clock of the script's stack is moved forward,
 * before anything happens on it, to where M + F is the target. At most 4.8 hours of virtual time,
 * in one step.
 */
#include <stdlib.h>
#include <string.h>

#include <darter/darter.h>

#include "wire/ether.h"
#include "wire/ip4.h"

#include "support/script.h"
#include "support/script_priv.h"

#define US_PER_ISN_TICK	4
#define PROBE_WIRE	1

struct offset {
	bool is_known;
	uint64_t seed;
	uint32_t f;		/* ISN - M */
};

static struct offset offsets[2];	/* passive, active */

/* ISN in the TCP segment that the stack has just sent with SYN on. */
static uint32_t
take_isn(struct teststack *ts)
{
	struct ether_view eth;
	struct wire_frame *f;
	struct ip4_view ip;
	struct tcp_view v;
	uint32_t isn;

	teststack_run(ts);
	f = wire_dev_take(ts->wire);
	if (f == NULL || ether_parse(f->bytes, f->len, &eth) != WIRE_OK ||
	    ip4_parse(f->bytes + eth.hdr_bytes, f->len - eth.hdr_bytes, &ip) != WIRE_OK ||
	    tcp_parse(ip.payload, ip.payload_bytes, &v) != WIRE_OK || !(v.flags & TH_SYN))
		fail_msg("%s", "no SYN came from the stack that measures the ISN");
	isn = v.seq;
	free(f);
	return isn;
}

/* A fresh stack answers a SYN, or sends one; the moment of both is the stack's start. */
static uint32_t
measure(struct script *s, bool active)
{
	struct script *probe = calloc(1, sizeof(*probe));
	struct teststack_opts opts = s->opts;
	uint32_t isn, ticks;
	uint8_t frame[256];
	int fd;

	assert_non_null(probe);
	*probe = *s;
	probe->c = &probe->conns[0];
	opts.start_us = 0;
	teststack_init(&probe->ts, &opts, PROBE_WIRE);
	darter_stack_use(probe->ts.s);
	ticks = (uint32_t)(teststack_now(&probe->ts).us / US_PER_ISN_TICK);
	if (active) {
		fd = script_socket(&probe->ts, SOCK_STREAM);
		script_connect_on(
		    &probe->ts, fd, SCRIPT_ACTIVE_LPORT, TEST_PEER_IP, SCRIPT_ACTIVE_FPORT);
	} else {
		fd = script_listen_on(&probe->ts, SCRIPT_LISTEN_PORT);
		wire_dev_inject(
		    probe->ts.wire, 0, frame, script_build(probe, &SYN(), frame, sizeof(frame)));
	}
	isn = take_isn(&probe->ts);
	script_close_fd(&probe->ts, fd);
	darter_stack_use(s->ts.s);
	teststack_fini(&probe->ts);
	free(probe);
	return isn - ticks;
}

void
script_aim_isn(struct script *s, bool active)
{
	struct offset *o = &offsets[active];
	uint64_t seed = s->opts.seed, now_us;
	uint32_t ticks;

	if (s->isn_aimed)
		return;
	s->isn_aimed = true;
	if (!o->is_known || o->seed != seed) {
		o->f = measure(s, active);
		o->seed = seed;
		o->is_known = true;
	}
	now_us = teststack_now(&s->ts).us;
	ticks = s->isn_base - o->f - (uint32_t)(now_us / US_PER_ISN_TICK);
	clock_advance_us(&s->ts.clock, (uint64_t)ticks * US_PER_ISN_TICK);
	s->ts.started = teststack_now(&s->ts);
	teststack_run(&s->ts);
	wire_dev_clear(s->ts.wire);
	script_mark(s);
}
