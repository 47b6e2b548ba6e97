/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection's timers: four deadlines in the pcb and one timer in the wheel, armed for the
 * earliest or earlier.
 *
 * Stopping or moving a deadline back only writes it; the wheel's timer then fires for nothing,
 * finds what is really due and arms itself anew. So the timer moves that come with every ACK cost a
 * store. Handlers note what is to be sent (TODO_*), like segments do.
 *
 * Keepalive (RFC 9293 3.8.4, off unless SO_KEEPALIVE): after keepidle without a segment from the
 * peer a probe below snd_una, then one every keepintvl, and after keepcnt unanswered ones RST and
 * ETIMEDOUT. While data are in flight the retransmission timer is the judge.
 */
#include <errno.h>

#include "transport/tcp/tcp_priv.h"

static void
arm_for_earliest(struct netisr *n, struct tcp_pcb *p)
{
	struct time first = TIME_NEVER;
	unsigned k;

	for (k = 0; k < TCP_TIMERS; k++)
		first = time_min(first, p->due[k]);
	if (!time_is_never(first))
		timer_arm(&n->wheel, &p->timer, first);
}

void
tcp_timer_set(struct netisr *n, struct tcp_pcb *p, enum tcp_timer_kind k, uint64_t after_us)
{
	p->due[k] = time_add_us(n->now, after_us);
	if (!timer_is_armed(&p->timer) || time_before(p->due[k], p->timer.deadline))
		timer_arm(&n->wheel, &p->timer, p->due[k]);
}

void
tcp_timer_stop(struct tcp_pcb *p, enum tcp_timer_kind k)
{
	p->due[k] = TIME_NEVER;
}

/* ---- keepalive ---- */

static uint64_t
opt_or_knob_us(const _Atomic uint16_t *opt, const _Atomic int64_t *knob)
{
	uint64_t s = atomic_load_explicit(opt, memory_order_relaxed);

	return (s != 0 ? s : (uint64_t)knob_get(knob)) * US_PER_SEC;
}

static bool
wants_keepalive(const struct tcp_pcb *p)
{
	return atomic_load_explicit(&p->sh->opts.keepalive, memory_order_relaxed) &&
	    !(p->flags & TCPF_CLOSED) && p->state >= TCP_ESTABLISHED;
}

void
tcp_keep_update(struct netisr *n, struct tcp_pcb *p)
{
	uint64_t idle_us = (uint64_t)(tcp_tick32(n->now) - p->last_rcv_tick) << 10;
	uint64_t wait_us;

	if (!wants_keepalive(p)) {
		tcp_timer_stop(p, TCP_T_KEEP);
		return;
	}
	wait_us = opt_or_knob_us(&p->sh->opts.keepidle_s, &tcp_knobs(n)->keepidle_s);
	p->keep_probes = 0;
	tcp_timer_set(n, p, TCP_T_KEEP, wait_us > idle_us ? wait_us - idle_us : 0);
}

static uint32_t
keep_limit(const struct netisr *n, const struct tcp_pcb *p)
{
	uint32_t cnt = atomic_load_explicit(&p->sh->opts.keepcnt, memory_order_relaxed);

	return cnt != 0 ? cnt : (uint32_t)knob_get(&tcp_knobs(n)->keepcnt);
}

static void
keep_fire(struct netisr *n, struct tcp_pcb *p)
{
	uint64_t idle_us = (uint64_t)(tcp_tick32(n->now) - p->last_rcv_tick) << 10;
	uint64_t wait_us;

	if (!wants_keepalive(p))
		return;
	wait_us = opt_or_knob_us(&p->sh->opts.keepidle_s, &tcp_knobs(n)->keepidle_s);
	/* a tick of 1.024 ms: not a whole one short of the wait counts as waited */
	if (idle_us + 1024 < wait_us) {
		p->keep_probes = 0;
		tcp_timer_set(n, p, TCP_T_KEEP, wait_us - idle_us);
		return;
	}
	if (tcp_flight_bytes(p) != 0) {
		tcp_timer_set(n, p, TCP_T_KEEP, wait_us);
		return;
	}
	if (p->keep_probes >= keep_limit(n, p)) {
		NETISR_COUNT(n, CTR_tcp_keepalive_drops);
		tcp_abort(n, p, ETIMEDOUT);
		return;
	}
	p->keep_probes++;
	NETISR_COUNT(n, CTR_tcp_keepalive_probes);
	tcp_owe(n, p, TODO_PROBE);
	wait_us = opt_or_knob_us(&p->sh->opts.keepintvl_s, &tcp_knobs(n)->keepintvl_s);
	tcp_timer_set(n, p, TCP_T_KEEP, wait_us);
}

/* ---- the wheel's callback ---- */

static void
fire_kind(struct netisr *n, struct tcp_pcb *p, enum tcp_timer_kind k)
{
	switch (k) {
	case TCP_T_REXMIT:
		tcp_rexmit_fire(n, p);
		break;
	case TCP_T_DELACK:
		NETISR_COUNT(n, CTR_tcp_delayed_acks);
		tcp_owe(n, p, TODO_ACK_NOW);
		break;
	case TCP_T_KEEP:
		keep_fire(n, p);
		break;
	case TCP_T_LIFE:
		/* an orphan's peer never closed its side (RFC 9293 has no limit; Linux has) */
		tcp_die(n, p, 0);
		break;
	case TCP_TIMERS:
		break;
	}
}

static void
on_timer(struct netisr *n, struct timer *t)
{
	struct tcp_pcb *p = container_of(t, struct tcp_pcb, timer);
	unsigned k;

	for (k = 0; k < TCP_TIMERS && !(p->flags & TCPF_GONE); k++) {
		if (!time_reached(n->now, p->due[k]))
			continue;
		p->due[k] = TIME_NEVER;
		fire_kind(n, p, (enum tcp_timer_kind)k);
	}
	if (p->flags & TCPF_GONE)
		return;
	/* what just fired was owed an action: the roll-up arms it again where needed */
	arm_for_earliest(n, p);
}

void
tcp_timers_init(struct tcp_pcb *p)
{
	unsigned k;

	for (k = 0; k < TCP_TIMERS; k++)
		p->due[k] = TIME_NEVER;
	timer_init(&p->timer, on_timer);
}
