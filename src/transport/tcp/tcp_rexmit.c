/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The retransmission timer (RFC 6298 5) and, in the same slot since they exclude each other, the
 * persist timer (RFC 9293 3.8.6.1).
 *
 * A timeout doubles the wait (5.5) up to rto_max_ms, sets cwnd to one segment and snd_nxt back to
 * snd_una; slow start then sends again what ACKs do not show to have arrived. The doubling is kept
 * until an ACK gives a valid sample (Karn). After data_retries timeouts in a row (RFC 1122 R2;
 * TCP_USER_TIMEOUT instead if set) the connection ends with ETIMEDOUT, or the last ICMP error's
 * errno.
 *
 * Persist runs when data wait and nothing is in flight (or the peer has shrunk its window to
 * nothing over what is): a segment below snd_una draws an ACK with the window. Probes back off like
 * the RTO and go on for ever while the peer answers them (MUST-36, -37); what is counted against
 * data_retries are unanswered ones. With some window the same timer is SWS avoidance's override,
 * and it ends TCP_CORK's 200 ms.
 */
#include <errno.h>

#include "transport/tcp/tcp_priv.h"

uint64_t
tcp_rto_backed_off_us(const struct netisr *n, const struct tcp_pcb *p)
{
	uint64_t us = (uint64_t)p->rto_us << min_u32(p->backoff, TCP_BACKOFF_MAX);

	return min_u64(us, tcp_knob_ms_as_us(&tcp_knobs(n)->rto_max_ms));
}

static void
back_off(struct tcp_pcb *p)
{
	if (p->retries < UINT8_MAX)
		p->retries++;
	if (p->backoff < TCP_BACKOFF_MAX)
		p->backoff++;
}

static bool
is_waiting_to_send(const struct tcp_pcb *p)
{
	return tcp_unsent_bytes(p) != 0 || tcp_fin_is_waiting(p);
}

static bool
is_persisting(const struct tcp_pcb *p)
{
	if (tcp_flight_bytes(p) == 0)
		return true;
	return p->snd_wnd_bytes == 0 && seq_eq(p->snd_nxt, p->snd_una);
}

static uint64_t
persist_wait_us(const struct netisr *n, const struct tcp_pcb *p)
{
	if (tcp_usable_bytes(p) != 0 &&
	    atomic_load_explicit(&p->sh->opts.cork, memory_order_relaxed))
		return TCP_CORK_US;
	return tcp_rto_backed_off_us(n, p);
}

void
tcp_rexmit_arm(struct netisr *n, struct tcp_pcb *p)
{
	bool persist;

	if (p->state < TCP_ESTABLISHED) {
		if (!tcp_timer_is_set(p, TCP_T_REXMIT))
			tcp_timer_set(n, p, TCP_T_REXMIT, tcp_rto_backed_off_us(n, p));
		return;
	}
	if (tcp_flight_bytes(p) == 0 && !is_waiting_to_send(p)) {
		tcp_timer_stop(p, TCP_T_REXMIT);
		p->flags &= ~(uint32_t)TCPF_PERSIST;
		return;
	}
	persist = is_persisting(p);
	if (persist != ((p->flags & TCPF_PERSIST) != 0)) {
		p->flags ^= TCPF_PERSIST;
		tcp_timer_stop(p, TCP_T_REXMIT);
	}
	if (!tcp_timer_is_set(p, TCP_T_REXMIT))
		tcp_timer_set(n, p, TCP_T_REXMIT,
		    persist ? persist_wait_us(n, p) : tcp_rto_backed_off_us(n, p));
}

static void
give_up(struct netisr *n, struct tcp_pcb *p)
{
	int err = p->soft_error != 0 ? p->soft_error : ETIMEDOUT;

	NETISR_COUNT(n, CTR_tcp_conn_timeouts);
	/* For an orphan nobody is told; a RST may get through where data did not. */
	if (p->flags & TCPF_CLOSED)
		tcp_abort(n, p, err);
	else
		tcp_die(n, p, err);
}

/* Called before the retry is counted. */
static bool
has_waited_enough(struct netisr *n, struct tcp_pcb *p)
{
	uint32_t user_ms = atomic_load_explicit(&p->sh->opts.user_timeout_ms, memory_order_relaxed);
	uint32_t limit = (uint32_t)knob_get(&tcp_knobs(n)->data_retries);
	uint32_t waited_ms;

	if (p->retries == 0)
		p->stuck_since_tick = tcp_tick32(n->now) - (p->rto_us >> 10);
	if (user_ms != 0) {
		waited_ms = tcp_ticks_to_ms(tcp_tick32(n->now) - p->stuck_since_tick);
		return waited_ms >= user_ms;
	}
	return p->retries >= limit;
}

static void
syn_timeout(struct netisr *n, struct tcp_pcb *p)
{
	uint32_t limit = atomic_load_explicit(&p->sh->opts.syncnt, memory_order_relaxed);

	if (limit == 0)
		limit = (uint32_t)knob_get(&tcp_knobs(n)->syn_retries);
	if (p->retries >= limit) {
		give_up(n, p);
		return;
	}
	back_off(p);
	p->flags = (p->flags | TCPF_SYN_RESENT) & ~(uint32_t)TCPF_TIMING;
	p->retransmits++;
	NETISR_COUNT(n, CTR_tcp_syn_retransmits);
	tcp_owe(n, p, TODO_SYN);
}

static void
persist_timeout(struct netisr *n, struct tcp_pcb *p)
{
	if (tcp_usable_bytes(p) != 0) {
		tcp_owe(n, p, TODO_OUT | TODO_FORCE);
		return;
	}
	if (has_waited_enough(n, p)) {
		give_up(n, p);
		return;
	}
	back_off(p);
	NETISR_COUNT(n, CTR_tcp_zero_window_probes);
	tcp_owe(n, p, TODO_PROBE);
}

static void
data_timeout(struct netisr *n, struct tcp_pcb *p)
{
	if (has_waited_enough(n, p)) {
		give_up(n, p);
		return;
	}
	back_off(p);
	NETISR_COUNT(n, CTR_tcp_rto);
	tcp_cc_on_timeout(p);
	p->dupacks = 0;
	p->snd_nxt = p->snd_una;
	p->flags = (p->flags | TCPF_TIMEOUT_SENT) & ~(uint32_t)TCPF_TIMING;
	tcp_owe(n, p, TODO_OUT);
}

void
tcp_rexmit_fire(struct netisr *n, struct tcp_pcb *p)
{
	if (p->state < TCP_ESTABLISHED) {
		syn_timeout(n, p);
	} else if (p->flags & TCPF_PERSIST) {
		persist_timeout(n, p);
	} else if (p->snd_wnd_bytes == 0 && tcp_unsent_bytes(p) + tcp_flight_bytes(p) != 0) {
		/* RFC 9293 3.8.6: that the peer takes its window back is no reason to give up */
		p->snd_nxt = p->snd_una;
		p->flags = (p->flags | TCPF_PERSIST) & ~(uint32_t)TCPF_TIMING;
		persist_timeout(n, p);
	} else {
		data_timeout(n, p);
	}
}
