/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: slow start, congestion avoidance, fast recovery (RFC 5681, NewReno of RFC
 * 6582).
 *
 * Windows are counted in bytes and grow by bytes acknowledged (RFC 3465), so that delayed or
 * batched ACKs neither slow us down nor let a peer that splits ACKs speed us up: at most two
 * segments an ACK in slow start, one segment a window in avoidance, without a division. cwnd grows
 * only while it is what limits us (at least half of it was in flight; RFC 2861 3, RFC 7661 4.3 in
 * spirit), so a connection limited by its peer's window does not gather a cwnd that was never
 * tried. After an idle RTO it falls back to the initial window (RFC 5681 4.1), 10 segments (RFC
 * 6928).
 *
 * Pure but for knobs; another algorithm replaces this file's functions.
 */
#include "transport/tcp/tcp_priv.h"

#define CWND_MAX_BYTES	(UINT32_C(1) << 30)

uint32_t
tcp_cc_initial_bytes(uint32_t mss, uint32_t segs)
{
	/* RFC 6928 2: min(10 MSS, max(2 MSS, 14600)), scaled to the knob's number of segments */
	return min_u32(segs * mss, max_u32(2 * mss, segs * 1460));
}

void
tcp_cc_init(struct netisr *n, struct tcp_pcb *p)
{
	uint32_t mss = tcp_eff_mss(p);

	/* RFC 5681 3.1: one segment after a lost SYN */
	p->cwnd_bytes = p->flags & TCPF_SYN_RESENT ? mss :
	    tcp_cc_initial_bytes(mss, (uint32_t)knob_get(&tcp_knobs(n)->init_cwnd));
	p->ssthresh_bytes = CWND_MAX_BYTES;
	p->cwnd_acked_bytes = 0;
	p->recover = p->iss;
}

void
tcp_cc_on_ack(struct tcp_pcb *p, uint32_t acked_bytes, uint32_t flight_before_bytes)
{
	uint32_t mss = tcp_eff_mss(p);

	if (flight_before_bytes < p->cwnd_bytes / 2 || p->cwnd_bytes >= CWND_MAX_BYTES)
		return;
	if (p->cwnd_bytes < p->ssthresh_bytes) {
		/* RFC 3465 2.2, 2.3: L = 2, but 1 while a timeout is being repaired */
		p->cwnd_bytes += min_u32(acked_bytes, p->flags & TCPF_TIMEOUT_SENT ? mss : 2 * mss);
		return;
	}
	p->cwnd_acked_bytes += acked_bytes;
	if (p->cwnd_acked_bytes >= p->cwnd_bytes) {
		p->cwnd_acked_bytes -= p->cwnd_bytes;
		p->cwnd_bytes += mss;
	}
}

/* RFC 5681 eqn. 4 */
static uint32_t
halved_flight(const struct tcp_pcb *p)
{
	return max_u32(tcp_flight_bytes(p) / 2, 2 * tcp_eff_mss(p));
}

void
tcp_cc_enter_recovery(struct tcp_pcb *p)
{
	/* RFC 6582 3.2 steps 2 and 3 */
	p->ssthresh_bytes = halved_flight(p);
	p->cwnd_bytes = p->ssthresh_bytes + TCP_DUP_ACKS * tcp_eff_mss(p);
	p->cwnd_acked_bytes = 0;
	p->recover = p->snd_max;
	p->flags = (p->flags | TCPF_RECOVERY) & ~(uint32_t)TCPF_PARTIAL;
}

void
tcp_cc_on_dup_in_recovery(struct tcp_pcb *p)
{
	/* RFC 5681 3.2 step 4: a segment has left the network */
	if (p->cwnd_bytes < CWND_MAX_BYTES)
		p->cwnd_bytes += tcp_eff_mss(p);
}

void
tcp_cc_on_partial_ack(struct tcp_pcb *p, uint32_t acked_bytes)
{
	uint32_t mss = tcp_eff_mss(p);

	/* RFC 6582 3.2 step 3, partial: deflate by what was acknowledged, add back a segment */
	p->cwnd_bytes -= min_u32(acked_bytes, p->cwnd_bytes);
	if (acked_bytes >= mss)
		p->cwnd_bytes += mss;
	p->cwnd_bytes = max_u32(p->cwnd_bytes, mss);
}

void
tcp_cc_exit_recovery(struct tcp_pcb *p)
{
	uint32_t mss = tcp_eff_mss(p);

	/* RFC 6582 3.2 step 3, full acknowledgment, option 1: no burst */
	p->cwnd_bytes = min_u32(p->ssthresh_bytes, max_u32(tcp_flight_bytes(p), mss) + mss);
	p->cwnd_acked_bytes = 0;
	p->flags &= ~(uint32_t)(TCPF_RECOVERY | TCPF_PARTIAL);
}

void
tcp_cc_on_timeout(struct tcp_pcb *p)
{
	/* RFC 5681 3.1: only the first timeout of a segment lowers ssthresh */
	if (p->retries <= 1)
		p->ssthresh_bytes = halved_flight(p);
	p->cwnd_bytes = tcp_eff_mss(p);
	p->cwnd_acked_bytes = 0;
	/* RFC 6582 4: duplicates of what we are about to send again must not start a recovery */
	p->recover = p->snd_max;
	p->flags &= ~(uint32_t)(TCPF_RECOVERY | TCPF_PARTIAL);
}

void
tcp_cc_after_idle(struct netisr *n, struct tcp_pcb *p)
{
	uint32_t restart;

	if (tcp_flight_bytes(p) != 0 || time_since_us(n->now, p->last_snd) <= p->rto_us)
		return;
	restart = tcp_cc_initial_bytes(tcp_eff_mss(p),
	    (uint32_t)knob_get(&tcp_knobs(n)->init_cwnd));
	p->cwnd_bytes = min_u32(p->cwnd_bytes, restart);
}
