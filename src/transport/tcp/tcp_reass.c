/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes above rcv_nxt have come: a sorted array of disjoint spans that never touch each
 * other. The bytes themselves are in the receive ring already; the caller writes only what
 * tcp_reass_next_hole() names, so the first bytes received win, whatever a later segment says about
 * the same positions.
 *
 * Bounded: at most TCP_REASS_MAX spans; a segment that needs one more is refused, one that extends
 * or joins spans never is. Linear search. The same array yields the SACK blocks (RFC 2018 4: the
 * block with the newest segment first, then others).
 *
 * All spans lie within one receive window above rcv_nxt, that is within 2^30, so comparisons modulo
 * 2^32 are a total order here. Pure.
 */
#include <string.h>

#include "transport/tcp/tcp_priv.h"

void
tcp_reass_init(struct tcp_reass *r)
{
	r->count = 0;
	memset(r->recent, 0, sizeof(r->recent));
}

/* Index of the first span that ends at or after s. */
static uint32_t
first_reaching(const struct tcp_reass *r, struct seq s)
{
	uint32_t i = 0;

	while (i < r->count && seq_lt(r->span[i].end, s))
		i++;
	return i;
}

bool
tcp_reass_next_hole(const struct tcp_reass *r, struct seq from, struct seq end,
    struct tcp_span *ret_hole)
{
	uint32_t i = first_reaching(r, from);

	while (i < r->count && seq_leq(r->span[i].start, from)) {
		from = seq_max(from, r->span[i].end);
		i++;
	}
	if (seq_geq(from, end))
		return false;
	ret_hole->start = from;
	ret_hole->end = i < r->count ? seq_min(end, r->span[i].start) : end;
	return true;
}

void
tcp_reass_touch(struct tcp_reass *r, struct seq start)
{
	memmove(&r->recent[1], &r->recent[0], sizeof(r->recent) - sizeof(r->recent[0]));
	r->recent[0] = start;
}

bool
tcp_reass_insert(struct tcp_reass *r, struct tcp_span in)
{
	uint32_t first = first_reaching(r, in.start);
	uint32_t last = first;
	struct seq start = in.start;

	/* spans [first, last) touch or overlap the new one */
	while (last < r->count && seq_leq(r->span[last].start, in.end)) {
		in.start = seq_min(in.start, r->span[last].start);
		in.end = seq_max(in.end, r->span[last].end);
		last++;
	}
	if (first == last && r->count == TCP_REASS_MAX)
		return false;
	memmove(&r->span[first + 1], &r->span[last], (r->count - last) * sizeof(r->span[0]));
	r->span[first] = in;
	r->count += 1 - (last - first);
	tcp_reass_touch(r, start);
	return true;
}

struct seq
tcp_reass_advance(struct tcp_reass *r, struct seq nxt)
{
	uint32_t gone = 0;

	while (gone < r->count && seq_leq(r->span[gone].start, nxt)) {
		nxt = seq_max(nxt, r->span[gone].end);
		gone++;
	}
	r->count -= gone;
	memmove(&r->span[0], &r->span[gone], r->count * sizeof(r->span[0]));
	return nxt;
}

/* Adds span i to the blocks unless it is there. */
static unsigned
add_block(const struct tcp_reass *r, uint32_t i, struct tcp_span *blocks, unsigned n)
{
	unsigned k;

	for (k = 0; k < n; k++)
		if (seq_eq(blocks[k].start, r->span[i].start))
			return n;
	blocks[n] = r->span[i];
	return n + 1;
}

unsigned
tcp_reass_sack(const struct tcp_reass *r, struct tcp_span *blocks, unsigned max)
{
	unsigned n = 0, k;
	uint32_t i;

	for (k = 0; k < TCP_SACK_MAX && n < max; k++) {
		for (i = 0; i < r->count; i++)
			if (seq_leq(r->span[i].start, r->recent[k]) &&
			    seq_lt(r->recent[k], r->span[i].end))
				break;
		if (i < r->count)
			n = add_block(r, i, blocks, n);
	}
	/* then the nearest to rcv_nxt: their holes are repaired first */
	for (i = 0; i < r->count && n < max; i++)
		n = add_block(r, i, blocks, n);
	return n;
}

struct seq
tcp_reass_end(const struct tcp_reass *r)
{
	return r->span[r->count - 1].end;
}
