/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip time and retransmission timeout (RFC 6298; Jacobson's fixed point: srtt times 8,
 * rttvar times 4, in microseconds).
 *
 * Samples come from one timed segment a flight, in microseconds, never from one sent twice (Karn);
 * while what is acknowledged had been retransmitted, from the echoed timestamp if there is one,
 * which tells the copies apart. The RTO's floor is a knob, 200 ms (RFC 6298 2.4 says 1 s; every
 * common stack uses 200 ms or less), its ceiling 60 s. The back-off is kept apart, see
 * tcp_rexmit.c.
 */
#include "transport/tcp/tcp_priv.h"

#define SAMPLE_MAX_US	UINT32_C(100000000)	/* keeps srtt8 inside 32 bits */
#define GRANULARITY_US	UINT32_C(1000)		/* RFC 6298's G: the wheel's slot and the round */

void
tcp_rtt_sample(struct tcp_rtt *r, uint32_t sample_us)
{
	uint32_t m = min_u32(max_u32(sample_us, 1), SAMPLE_MAX_US);
	uint32_t srtt = r->srtt8_us >> 3;
	uint32_t delta;

	if (r->srtt8_us == 0) {
		/* 2.2: SRTT = R, RTTVAR = R/2 */
		r->srtt8_us = m << 3;
		r->rttvar4_us = m << 1;
		return;
	}
	/* 2.3: RTTVAR first, with the old SRTT */
	delta = srtt > m ? srtt - m : m - srtt;
	r->rttvar4_us += delta - (r->rttvar4_us >> 2);
	r->srtt8_us += m - srtt;
}

uint32_t
tcp_rtt_rto_us(const struct tcp_rtt *r, uint32_t min_us, uint32_t max_us)
{
	uint32_t rto = (r->srtt8_us >> 3) + max_u32(GRANULARITY_US, r->rttvar4_us);

	return min_u32(max_u32(rto, min_us), max_us);
}

void
tcp_rtt_take(struct netisr *n, struct tcp_pcb *p, uint64_t sample_us)
{
	const struct tcp_stack *k = tcp_knobs(n);
	struct tcp_rtt r = { p->srtt8_us, p->rttvar4_us };

	tcp_rtt_sample(&r, (uint32_t)min_u64(sample_us, SAMPLE_MAX_US));
	p->srtt8_us = r.srtt8_us;
	p->rttvar4_us = r.rttvar4_us;
	p->rto_us = tcp_rtt_rto_us(&r, (uint32_t)tcp_knob_ms_as_us(&k->rto_min_ms),
	    (uint32_t)tcp_knob_ms_as_us(&k->rto_max_ms));
}
