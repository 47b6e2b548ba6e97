/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Initial sequence numbers and timestamp offsets.
 *
 * RFC 6528: ISN = M + F(tuple, secret). M is the stack's clock in units of 4 us, F is SipHash-2-4,
 * so numbers of one 4-tuple grow with time (a new incarnation starts above the old one) and those
 * of another tell an outsider nothing.
 *
 * The timestamp offset (RFC 7323 5.4) is keyed by the two addresses alone: a new connection between
 * the same hosts, on whatever port and netisr, then continues the old one's timestamps, which is
 * what RFC 6191's reuse of TIME_WAIT rests on. The tag keeps the two uses of one key apart.
 */
#include "transport/tcp/tcp_priv.h"

#define TAG_ISN		1u
#define TAG_TS		2u

/* Laid out without padding: every byte is hashed. */
struct isn_input {
	struct ipaddr local;
	struct ipaddr foreign;
	uint16_t lport;
	uint16_t fport;
	uint32_t tag;
};

STATIC_ASSERT(sizeof(struct isn_input) == 40, "no padding");

static uint64_t
keyed(const struct siphash_key *key, const struct tuple *t, uint16_t lport, uint16_t fport,
    uint32_t tag)
{
	struct isn_input in = { t->local, t->foreign, lport, fport, tag };

	return siphash(key, &in, sizeof(in));
}

struct seq
tcp_isn(const struct siphash_key *key, const struct tuple *t, struct time now)
{
	uint32_t f = (uint32_t)keyed(key, t, t->lport, t->fport, TAG_ISN);

	return seq_of(f + (uint32_t)(now.us >> 2));
}

uint32_t
tcp_ts_offset(const struct siphash_key *key, const struct tuple *t)
{
	return (uint32_t)keyed(key, t, 0, 0, TAG_TS);
}
